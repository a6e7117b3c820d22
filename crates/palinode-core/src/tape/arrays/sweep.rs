//! Sweeps over the steps of arrays, between the nodes of the arena.
//!
//! Input: a finished recording, and a cotangent (or tangent) per node and cell, `N` at a time. Output: the
//! same array, with what the steps passed on.
//!
//! Backwards, a read adds to its cell; a write takes its cell's cotangent away and gives it to what was
//! written. An operation on whole arrays first reads all cotangents of its result, then takes them away if it
//! replaced what was there, then adds to its arguments. So it does not matter whether arguments and result
//! overlap.
//!
//! Invariant: what is moved unchanged stays the same bit by bit, so that a copy in between changes nothing.

use super::formula::{Elements, Reader};
use super::layout::{Home, Layout, Region, accumulate};
use super::residual::Lent;
use super::steps::{ArrayTape, Kind, Linear, Partial, Step, Whole};
#[cfg(test)]
use crate::array::tests::planted::Bug;
use crate::tape::Sums;
use crate::tape::arena::SINK;
use palinode_num::{AccumulateProducts, Scalar};

/// The recording's arrays and where their cells lie in a sweep's memory.
#[derive(Clone, Copy)]
pub(crate) struct Arrays<'a, S> {
    tape: &'a ArrayTape<S>,
    layout: Layout<'a>,
}

/// Memory that the operations of one sweep share.
pub(crate) struct Scratch<S, const N: usize> {
    received: Vec<[S; N]>,
}

impl<S, const N: usize> Scratch<S, N> {
    pub(crate) const fn new() -> Self {
        Scratch { received: Vec::new() }
    }
}

/// Goes through the elements of an argument, whose partial is one or some number: a loop for each kind.
macro_rules! for_each_term {
    ($linear:expr, $argument:expr, $elements:expr, |$element:pat_param| {
        one => $one:expr,
        $partial:ident => $scaled:expr,
    }) => {{
        let elements = $elements;
        for_each_partial($linear, &$argument.partial, |partials| match partials {
            Partials::One => elements.for_each(|$element| $one),
            Partials::Same($partial) => elements.for_each(|$element| $scaled),
            Partials::Each(partials) => elements.zip(partials).for_each(|($element, $partial)| $scaled),
        })
    }};
}

impl<'a, S: Scalar> Arrays<'a, S> {
    pub(crate) fn new(tape: &'a ArrayTape<S>, nodes: u32) -> Self {
        Arrays { tape, layout: tape.layout(nodes as usize) }
    }

    #[inline]
    fn cell(self, step: &Step) -> usize {
        self.layout.cell(step.storage, step.cell)
    }

    fn places(self, region: &Region) -> impl Iterator<Item = usize> {
        self.layout.places(region)
    }

    /// One step, backwards.
    #[inline]
    pub(crate) fn reverse<const N: usize>(
        self,
        step: &Step,
        cotangents: &mut [[S; N]],
        scratch: &mut Scratch<S, N>,
    ) {
        match step.kind {
            Kind::Get => {
                let received = cotangents[step.node as usize];
                accumulate(&mut cotangents[self.cell(step)], received);
            }
            Kind::Set => {
                let cell = &mut cotangents[self.cell(step)];
                let received = *cell;
                #[cfg(test)]
                let taken = !Bug::CellNotTaken.is_planted();
                #[cfg(not(test))]
                let taken = true;
                if taken {
                    *cell = [S::zero(); N];
                }
                if step.node != SINK {
                    accumulate(&mut cotangents[step.node as usize], received);
                }
            }
            Kind::Add => {
                let received = cotangents[self.cell(step)];
                accumulate(&mut cotangents[step.node as usize], received);
            }
            Kind::Whole => self.reverse_whole(step, cotangents, scratch),
        }
    }

    #[inline(never)]
    fn reverse_whole<const N: usize>(
        self,
        step: &Step,
        cotangents: &mut [[S; N]],
        scratch: &mut Scratch<S, N>,
    ) {
        let whole = &self.tape.whole[step.storage as usize];
        let (output, replaces) = whole.output();
        let received = &mut scratch.received;
        received.clear();
        received.extend(self.places(output).map(|place| cotangents[place]));
        #[cfg(test)]
        let replaces = replaces && !Bug::RegionNotTaken.is_planted();
        if replaces && output.home != Home::Nodes {
            self.places(output).for_each(|place| cotangents[place] = [S::zero(); N]);
        }
        if received.iter().flatten().all(|cotangent| cotangent.vanishes_everywhere()) {
            return;
        }
        match whole {
            Whole::Linear(linear) => self.reverse_linear(linear, received, cotangents),
            Whole::Product(product) => product.reverse(self.layout, received, cotangents),
        }
    }

    fn reverse_linear<const N: usize>(
        self,
        linear: &Linear<S>,
        received: &[[S; N]],
        cotangents: &mut [[S; N]],
    ) {
        for argument in &linear.arguments {
            let places = self.places(&argument.region);
            for_each_term!(linear, argument, places.zip(received), |(place, &received)| {
                one => accumulate(&mut cotangents[place], received),
                partial => cotangents[place] = S::strong_add(cotangents[place], partial, received),
            });
        }
    }

    /// One step, backwards, over cotangents that are sums.
    pub(crate) fn reverse_summed<A: AccumulateProducts<S>>(self, step: &Step, sums: &mut Sums<S, A>) {
        let node = step.node as usize;
        match step.kind {
            Kind::Get => sums.add(self.cell(step), sums.total(node)),
            Kind::Set => {
                let received = sums.total(self.cell(step));
                sums.clear(self.cell(step));
                if step.node != SINK {
                    sums.add(node, received);
                }
            }
            Kind::Add => sums.add(node, sums.total(self.cell(step))),
            Kind::Whole => {
                let whole = &self.tape.whole[step.storage as usize];
                let (output, replaces) = whole.output();
                let received: Vec<S> = self.totals(output, sums);
                if replaces && output.home != Home::Nodes {
                    self.places(output).for_each(|place| sums.clear(place));
                }
                if received.iter().all(|cotangent| cotangent.vanishes_everywhere()) {
                    return;
                }
                match whole {
                    Whole::Linear(linear) => self.reverse_linear_summed(linear, &received, sums),
                    Whole::Product(product) => product.reverse_summed(self.layout, &received, sums),
                }
            }
        }
    }

    /// The cotangents of a region. Of a number that stands for many elements it is read once.
    fn totals<A: AccumulateProducts<S>>(self, region: &Region, sums: &Sums<S, A>) -> Vec<S> {
        let mut last = None;
        let read = |place: usize| match last {
            Some((known, total)) if known == place => total,
            _ => last.insert((place, sums.total(place))).1,
        };
        let mut totals = Vec::with_capacity(region.places.len());
        totals.extend(self.places(region).map(read));
        totals
    }

    fn reverse_linear_summed<A: AccumulateProducts<S>>(
        self,
        linear: &Linear<S>,
        received: &[S],
        sums: &mut Sums<S, A>,
    ) {
        for argument in &linear.arguments {
            let places = self.places(&argument.region);
            for_each_term!(linear, argument, places.zip(received), |(place, &received)| {
                one => sums.add(place, received),
                partial => sums.add_product(place, partial, received),
            });
        }
    }

    /// One step, forwards.
    pub(crate) fn forward<const N: usize>(
        self,
        step: &Step,
        tangents: &mut [[S; N]],
        scratch: &mut Scratch<S, N>,
    ) {
        match step.kind {
            Kind::Get => tangents[step.node as usize] = tangents[self.cell(step)],
            Kind::Set => {
                let written = if step.node == SINK { [S::zero(); N] } else { tangents[step.node as usize] };
                tangents[self.cell(step)] = written;
            }
            Kind::Add => {
                let added = tangents[step.node as usize];
                accumulate(&mut tangents[self.cell(step)], added);
            }
            Kind::Whole => {
                let whole = &self.tape.whole[step.storage as usize];
                let sent = &mut scratch.received;
                sent.clear();
                let (output, replaces) = whole.output();
                sent.resize(output.places.len(), [S::zero(); N]);
                match whole {
                    Whole::Linear(linear) => self.forward_linear(linear, tangents, sent),
                    Whole::Product(product) => product.forward(self.layout, tangents, sent),
                }
                if replaces {
                    self.places(output).for_each(|place| tangents[place] = [S::zero(); N]);
                }
                for (place, &sent) in self.places(output).zip(&*sent) {
                    accumulate(&mut tangents[place], sent);
                }
            }
        }
    }

    fn forward_linear<const N: usize>(self, linear: &Linear<S>, tangents: &[[S; N]], sent: &mut [[S; N]]) {
        for argument in &linear.arguments {
            let places = self.places(&argument.region);
            for_each_term!(linear, argument, places.zip(sent.iter_mut()), |(place, sent)| {
                one => accumulate(sent, tangents[place]),
                partial => *sent = S::strong_add(*sent, partial, tangents[place]),
            });
        }
    }
}

/// The partials by one argument.
enum Partials<'a, S> {
    One,
    Same(S),
    Each(Elements<'a, S>),
}

/// Hands the partials by one argument to `f`: kept, or computed by the rule from what was kept.
fn for_each_partial<S: Scalar>(linear: &Linear<S>, partial: &Partial<S>, f: impl FnOnce(Partials<'_, S>)) {
    let operands = || &linear.operands.as_ref().expect("a rule's operands are kept with it").values;
    match partial {
        Partial::One => f(Partials::One),
        Partial::Constant(partial) => f(Partials::Same(*partial)),
        Partial::Saved(values) => f(Partials::Each(Reader::Run(values).iter())),
        Partial::Operand(which) => match operands()[*which].lend() {
            Lent::Number(partial) => f(Partials::Same(partial)),
            lent => f(Partials::Each(lent.reader().iter())),
        },
        Partial::Computed(which) => {
            let lent: Vec<Lent<'_, S>> = operands().iter().map(|residual| residual.lend()).collect();
            let readers: Vec<_> = lent.iter().map(Lent::reader).collect();
            let rule = &linear.operands.as_ref().expect("a rule is kept with its operands").formula;
            let values = rule.partials(*which, &readers);
            f(Partials::Each(Reader::Run(&values).iter()));
        }
    }
}
