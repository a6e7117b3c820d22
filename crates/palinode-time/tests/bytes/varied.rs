//! Steps whose states and recordings change in size and kind on the way.

use palinode_core::{Real, Reals, Sink, Source};
use palinode_time::{Number, PlainInput, Step};

/// A step with what is needed to take gradients of loops of it.
pub(crate) trait Model: Step<Params<f64> = f64> {
    /// What counts steps in the state.
    fn taken<S: Number>(state: &Self::State<S>) -> u64;
    fn loss<S: Number>(state: &Self::State<S>) -> S;
    fn start(&self, numbers: usize) -> Self::State<f64>;
    fn input(&self, step: u64) -> Self::Input<f64>;
}

/// After so many steps what is otherwise small becomes large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quiet(pub(crate) u64);

type Counted<R> = (R, PlainInput<u64>);
type WithList<S> = (S, Vec<S>, PlainInput<u64>);

/// A body that is a point, a pair or a cloud.
#[derive(Debug)]
pub(crate) enum Body<S> {
    Point(S),
    Pair([S; 2]),
    Cloud(Vec<S>),
}

impl<S> Body<S> {
    fn numbers(&self) -> &[S] {
        match self {
            Body::Point(x) => core::slice::from_ref(x),
            Body::Pair(pair) => pair,
            Body::Cloud(cloud) => cloud,
        }
    }
}

impl<S: Reals<S>> Reals<S> for Body<S> {
    fn save(&self, to: &mut impl Sink<S>) {
        match self {
            Body::Point(x) => {
                to.word(0);
                x.save(to);
            }
            Body::Pair(pair) => {
                to.word(1);
                pair.save(to);
            }
            Body::Cloud(cloud) => {
                to.word(2);
                cloud.save(to);
            }
        }
    }
    fn load(from: &mut impl Source<S>) -> Self {
        match from.word() {
            0 => Body::Point(S::load(from)),
            1 => Body::Pair(Reals::load(from)),
            _ => Body::Cloud(Reals::load(from)),
        }
    }
    fn heap_bytes(&self) -> usize {
        if let Body::Cloud(cloud) = self { cloud.heap_bytes() } else { 0 }
    }
}

/// A body that changes its kind by the number of the step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds(pub(crate) Quiet);

impl Step for Kinds {
    type State<S: Number> = Counted<Body<S>>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, (body, taken): &mut Counted<Body<S>>, a: &S, _: &()) {
        taken.0 += 1;
        let sum = body.numbers().iter().fold(S::zero(), |sum, &x| sum + x);
        let next = |i: u64| (sum * *a + i as f64 * 0.1).sin();
        let late = taken.0 > self.0.0;
        *body = match (late, taken.0 % 5) {
            (false, 0..3) => Body::Point(next(0)),
            (false, _) | (true, 0) => Body::Pair([next(0), next(1)]),
            (true, kind) => Body::Cloud((0..20 * kind + taken.0 % 7).map(next).collect()),
        };
    }
}

impl Model for Kinds {
    fn taken<S: Real>((_, taken): &Counted<Body<S>>) -> u64 {
        taken.0
    }
    fn loss<S: Real>((body, _): &Counted<Body<S>>) -> S {
        body.numbers().iter().fold(S::zero(), |sum, &x| sum + x * x)
    }
    fn start(&self, _: usize) -> Counted<Body<f64>> {
        (Body::Point(0.5), PlainInput(0))
    }
    fn input(&self, _: u64) {}
}

/// A number that takes as many small steps inside each step as its size asks for, and a list that does not
/// change its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adaptive(pub(crate) Quiet);

impl Step for Adaptive {
    type State<S: Number> = WithList<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, (x, list, taken): &mut WithList<S>, a: &S, _: &()) {
        taken.0 += 1;
        // Decided by numbers: 1 after the quiet steps, and then more and more.
        let mut left = S::from_f64(1.0 + 0.5 * taken.0.saturating_sub(self.0.0) as f64) + *x * 0.0;
        while left > 0.5 {
            *x = (*x * *a + 0.1).sin() + list[0] * 0.01;
            left -= 1.0;
        }
        list.iter_mut().for_each(|y| *y = *y * *a + *x);
    }
}

impl Model for Adaptive {
    fn taken<S: Real>((_, _, taken): &WithList<S>) -> u64 {
        taken.0
    }
    fn loss<S: Real>((x, list, _): &WithList<S>) -> S {
        list.iter().fold(*x, |sum, &y| sum + y * y)
    }
    fn start(&self, numbers: usize) -> WithList<f64> {
        (0.3, vec![0.1; numbers], PlainInput(0))
    }
    fn input(&self, _: u64) {}
}

/// Three numbers whose steps take a hundred times as many operations after the quiet ones; there is nothing
/// on the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heavy(pub(crate) Quiet);

impl Step for Heavy {
    type State<S: Number> = Counted<[S; 3]>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, ([x, y, z], taken): &mut Counted<[S; 3]>, a: &S, _: &()) {
        taken.0 += 1;
        for _ in 0..if taken.0 > self.0.0 { 100 + taken.0 % 17 } else { 1 } {
            (*x, *y, *z) = ((*y * *a + *z).sin(), *x * 0.5 + *z * 0.25, *x - *y * 0.5);
        }
    }
}

impl Model for Heavy {
    fn taken<S: Real>((_, taken): &Counted<[S; 3]>) -> u64 {
        taken.0
    }
    fn loss<S: Real>((numbers, _): &Counted<[S; 3]>) -> S {
        numbers.iter().fold(S::zero(), |sum, &x| sum + x * x)
    }
    fn start(&self, _: usize) -> Counted<[f64; 3]> {
        ([0.1, 0.2, 0.3], PlainInput(0))
    }
    fn input(&self, _: u64) {}
}

/// A list pushed by a list that enters at each step; those after the quiet steps are longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pushed(pub(crate) Quiet);

impl Step for Pushed {
    type State<S: Number> = Counted<Vec<S>>;
    type Params<S: Number> = S;
    type Input<S: Number> = Vec<S>;
    fn step<S: Real>(&self, (list, taken): &mut Counted<Vec<S>>, a: &S, push: &Vec<S>) {
        taken.0 += 1;
        let push = push.iter().fold(S::zero(), |sum, &x| sum + x);
        list.iter_mut().for_each(|x| *x = (*x * *a + push).sin());
    }
}

impl Model for Pushed {
    fn taken<S: Real>((_, taken): &Counted<Vec<S>>) -> u64 {
        taken.0
    }
    fn loss<S: Real>((list, _): &Counted<Vec<S>>) -> S {
        list.iter().fold(S::zero(), |sum, &x| sum + x * x)
    }
    fn start(&self, numbers: usize) -> Counted<Vec<f64>> {
        (vec![0.3; numbers], PlainInput(0))
    }
    fn input(&self, step: u64) -> Vec<f64> {
        let long = if step > self.0.0 { 30 } else { 3 };
        (0..long + step % 3).map(|i| i as f64 * 0.01).collect()
    }
}

/// Rows of different lengths, more and fewer of them by the number of the step, pushed by a list that is
/// longest elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ragged(pub(crate) Quiet);

impl Ragged {
    /// How many times as many there are of everything at a step.
    fn factor(&self, step: u64) -> u64 {
        if step > self.0.0 { 4 } else { 1 }
    }
}

impl Step for Ragged {
    type State<S: Number> = Counted<Vec<Vec<S>>>;
    type Params<S: Number> = S;
    type Input<S: Number> = Vec<S>;
    fn step<S: Real>(&self, (rows, taken): &mut Counted<Vec<Vec<S>>>, a: &S, push: &Vec<S>) {
        taken.0 += 1;
        let push = push.iter().fold(S::zero(), |sum, &x| sum + x);
        let sum = rows.iter().flatten().fold(push, |sum, &x| sum + x * 0.1);
        let factor = self.factor(taken.0);
        rows.resize_with((1 + taken.0 * 7 % 5 * factor) as usize, Vec::new);
        for (i, row) in rows.iter_mut().enumerate() {
            row.iter_mut().for_each(|x| *x = (*x * *a).sin());
            // Many words where there are few numbers, and the other way round.
            let columns =
                1 + (taken.0 * 3 + i as u64) % 11 * if taken.0.is_multiple_of(4) { 0 } else { factor };
            row.resize(columns as usize, (sum * *a + i as f64 * 0.1).sin());
        }
    }
}

impl Model for Ragged {
    fn taken<S: Real>((_, taken): &Counted<Vec<Vec<S>>>) -> u64 {
        taken.0
    }
    fn loss<S: Real>((rows, _): &Counted<Vec<Vec<S>>>) -> S {
        rows.iter().flatten().fold(S::zero(), |sum, &x| sum + x * x)
    }
    fn start(&self, numbers: usize) -> Counted<Vec<Vec<f64>>> {
        (vec![vec![0.3; numbers.min(5)]], PlainInput(0))
    }
    fn input(&self, step: u64) -> Vec<f64> {
        (0..1 + step * 5 % 13 * self.factor(step)).map(|i| i as f64 * 0.001).collect()
    }
}

/// A cloud that is a smaller one, a pair or a point after the quiet steps, and takes a few operations more at
/// some steps than at others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shrinking(pub(crate) Quiet);

impl Step for Shrinking {
    type State<S: Number> = Counted<Body<S>>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, (body, taken): &mut Counted<Body<S>>, a: &S, _: &()) {
        taken.0 += 1;
        let mut sum = body.numbers().iter().fold(S::zero(), |sum, &x| sum + x * 0.3);
        // Decided by numbers.
        let mut left = S::from_f64((taken.0 * 3 % 7) as f64 * 0.5) + sum * 0.0;
        while left > 0.5 {
            sum = (sum * *a + 0.1).sin();
            left -= 1.0;
        }
        let next = |i: u64| (sum * *a + i as f64 * 0.1).sin();
        let late = taken.0.saturating_sub(self.0.0);
        *body = match late * 7 % 5 {
            0 => Body::Point(next(0)),
            1 | 2 => Body::Pair([next(0), next(1)]),
            kind => Body::Cloud((0..kind - 2 + late % 3).map(next).collect()),
        };
    }
}

impl Model for Shrinking {
    fn taken<S: Real>((_, taken): &Counted<Body<S>>) -> u64 {
        taken.0
    }
    fn loss<S: Real>((body, _): &Counted<Body<S>>) -> S {
        body.numbers().iter().fold(S::zero(), |sum, &x| sum + x * x)
    }
    fn start(&self, numbers: usize) -> Counted<Body<f64>> {
        (Body::Cloud(vec![0.3; numbers]), PlainInput(0))
    }
    fn input(&self, _: u64) {}
}
