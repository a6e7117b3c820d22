//! What enters at each step: the same at every one, one of a list, or what a function makes of the number of
//! the step.
//!
//! Input: a step. Output: its input, over the number of the loop. Of a list and of what is made, the inputs
//! of one unit are held over that number: the list itself is the caller's, over `f64`, and is not copied.
//! Inputs that are made all have the size of the first, so that a budget planned with it holds.

use crate::error::Error;
use crate::implicit::number::Number;
use crate::rollout::flat::{Flat, Shape, Verbatim, count, reloaded};
use crate::step::Step;
use palinode_core::{Reals, Scalar, Snapshot};

/// What enters at each step.
pub(in crate::rollout) enum Inputs<'i, St: Step, S: Number> {
    /// The same at every step.
    Same(St::Input<S>),
    /// One for each step.
    Each(Each<'i, St, S>),
}

impl<'i, St: Step, S: Number> Inputs<'i, St, S> {
    /// Those of a list.
    pub(in crate::rollout) fn of_list(list: &'i Vec<St::Input<f64>>) -> Self {
        Inputs::Each(Each::new(Origin::List(list)))
    }

    /// Those that a function makes of the number of the step.
    pub(in crate::rollout) fn by(function: &'i dyn Fn(u64) -> St::Input<f64>) -> Self {
        Inputs::Each(Each::new(Origin::Function { function, first: None, given: 0 }))
    }

    /// The list that they are from, if they are.
    pub(in crate::rollout) fn list(&self) -> Option<&'i [St::Input<f64>]> {
        match self {
            Inputs::Each(Each { origin: Origin::List(list), .. }) => Some(list),
            Inputs::Same(_) | Inputs::Each(_) => None,
        }
    }

    /// How many steps have one: all if it is the same for all, or made.
    pub(in crate::rollout) fn count(&self) -> Option<usize> {
        self.list().map(<[_]>::len)
    }

    /// How many numbers the inputs of so many steps have that are from a list.
    pub(super) fn numbers(&self, steps: u64) -> usize {
        let list = self.list().unwrap_or(&[]);
        list[..(steps as usize).min(list.len())].iter().map(count).sum()
    }

    /// The words of the numbers and of the rest of the input of a step, where inputs may differ in these.
    pub(in crate::rollout) fn lengths(&self, step: u64) -> (usize, usize) {
        let input = usize::try_from(step).ok().and_then(|step| self.list()?.get(step));
        input.map_or((0, 0), Snapshot::lengths)
    }

    /// Whether they do.
    pub(in crate::rollout) fn differ_in_size(&self) -> bool {
        let first = self.lengths(0);
        self.list().unwrap_or(&[]).iter().any(|input| Snapshot::lengths(input) != first)
    }

    #[inline(always)]
    pub(in crate::rollout) fn at(&mut self, step: u64) -> Result<&St::Input<S>, Error> {
        match self {
            Inputs::Same(input) => Ok(input),
            Inputs::Each(each) => each.of(step, step + 1).map(|inputs| &inputs[0]),
        }
    }

    /// Those of the steps from `from` to `to`: one for each, or the one for all.
    #[inline(always)]
    pub(in crate::rollout) fn of(&mut self, from: u64, to: u64) -> Result<&[St::Input<S>], Error> {
        match self {
            Inputs::Same(input) => Ok(core::slice::from_ref(input)),
            Inputs::Each(each) => each.of(from, to),
        }
    }

    /// Makes inputs again the next time, even those that are held.
    pub(super) fn ask_again(&mut self) {
        if let Inputs::Each(each) = self {
            each.at = None;
        }
    }

    /// Forgets the inputs that are held, with their memory.
    pub(super) fn forget(&mut self) {
        if let Inputs::Each(each) = self {
            (each.held, each.at) = (Vec::new(), None);
        }
    }

    /// Whether all inputs have the same words and as many numbers, and the bytes that it took to find out.
    /// What a function makes has, if it has no words.
    pub(super) fn are_alike(&mut self) -> Result<(bool, usize), Error> {
        let Inputs::Each(each) = self else { return Ok((true, 0)) };
        let list = match each.origin {
            Origin::List(list) => list,
            Origin::Function { .. } => {
                each.of(0, 1)?;
                return Ok((each.flat.plain.is_empty(), 0));
            }
        };
        let (mut first, mut words) = (Vec::new(), Vec::new());
        let numbers = list.first().map_or(0, |input| Shape::of(input, &mut first));
        let alike = list.iter().all(|input| Shape::of(input, &mut words) == numbers && words == first);
        Ok((alike, (first.capacity() + words.capacity()) * size_of::<u64>()))
    }

    /// About the bytes of lists for each step more that is recorded at once and has an input of its own:
    /// itself, its numbers and their cotangents, in lists that grow.
    pub(super) fn bytes_each(&self) -> usize {
        let Inputs::Each(each) = self else { return 0 };
        each.held.first().map_or(0, |input| {
            let Flat { reals, plain } = &each.flat;
            let lists = 4 * (reals.len() * size_of::<S>() + plain.len() * size_of::<u64>());
            size_of::<St::Input<S>>() + input.heap_bytes() + lists
        })
    }

    /// The heap bytes held; a list is held by the rollout.
    pub(super) fn heap_bytes(&self) -> usize {
        let each = match self {
            Inputs::Same(input) => return input.heap_bytes(),
            Inputs::Each(each) => each,
        };
        let of_origin = match &each.origin {
            Origin::List(list) => bytes_of_list::<f64, _>(list),
            Origin::Function { given, .. } => *given,
        };
        of_origin + bytes_of_list::<S, _>(&each.held) + each.flat.heap_bytes()
    }
}

fn bytes_of_list<S, I: Reals<S>>(list: &Vec<I>) -> usize {
    list.capacity() * size_of::<I>() + list.iter().map(Reals::heap_bytes).sum::<usize>()
}

/// The cotangents of all inputs, one after the other; none if there is one input for all.
#[derive(Default)]
pub(super) struct CotangentsOfInputs<T> {
    pub(super) all: Vec<T>,
    /// How many of these are final, from the end.
    pub(super) reversed: usize,
}

impl<T: Copy> CotangentsOfInputs<T> {
    /// Those of the inputs before the ones that are final. From the end, because inputs need not have the
    /// same size.
    pub(super) fn take_from_the_end(&mut self, cotangents: &[T]) {
        let end = self.all.len() - self.reversed;
        self.all[end - cotangents.len()..end].copy_from_slice(cotangents);
        self.reversed += cotangents.len();
    }
}

/// The inputs of one unit.
pub(in crate::rollout) struct Each<'i, St: Step, S: Number> {
    origin: Origin<'i, St::Input<f64>>,
    held: Vec<St::Input<S>>,
    /// The first step whose input is held, and how many are.
    at: Option<(u64, usize)>,
    flat: Flat<f64>,
}

enum Origin<'i, I> {
    List(&'i Vec<I>),
    Function {
        function: &'i dyn Fn(u64) -> I,
        /// How many numbers and words the first had that was made.
        first: Option<(usize, usize)>,
        /// The most heap bytes that the function gave at a time.
        given: usize,
    },
}

impl<'i, St: Step, S: Number> Each<'i, St, S> {
    fn new(origin: Origin<'i, St::Input<f64>>) -> Self {
        Each { origin, held: Vec::new(), at: None, flat: Flat::default() }
    }

    #[inline]
    fn of(&mut self, from: u64, to: u64) -> Result<&[St::Input<S>], Error> {
        let count = (to - from) as usize;
        if self.at != Some((from, count)) {
            self.at = None;
            if self.held.len() < count {
                self.held.reserve_exact(count - self.held.len());
            }
            for (place, step) in (from..to).enumerate() {
                self.make(step, place)?;
            }
            self.at = Some((from, count));
        }
        Ok(&self.held[..count])
    }

    /// The input of a step comes to this place of the list, or to its end.
    #[inline]
    fn make(&mut self, step: u64, place: usize) -> Result<(), Error> {
        let Each { origin, held, flat, .. } = self;
        flat.clear();
        match origin {
            Origin::List(list) => list[step as usize].save(&mut Verbatim(flat)),
            Origin::Function { function, first, given } => {
                let input = function(step);
                *given = input.heap_bytes().max(*given);
                input.save(&mut Verbatim(flat));
                drop(input);
                let size = (flat.reals.len(), flat.plain.len());
                if *first.get_or_insert(size) != size {
                    return Err(Error::InputChanged { step });
                }
            }
        }
        let source = &mut flat.read(<S as Scalar>::from_f64);
        match held.get_mut(place) {
            Some(input) => {
                reloaded(input, source);
            }
            None => held.push(St::Input::load(source)),
        }
        Ok(())
    }
}
