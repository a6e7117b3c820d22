//! What enters at each step: the same at every one, a list, or what a function makes of the number of the step when it is needed.
//!
//! Input: a step. Output: its input, over the number of the loop. Of inputs that are made, those of one unit are held; all have the size of the first, so that a
//! budget planned with it holds.

use crate::error::Error;
use crate::rollout::flat::{Flat, Verbatim, reloaded};
use palinode_core::{Real, Reals};

/// What enters at each step.
pub(in crate::rollout) enum Inputs<'i, I> {
    /// The same at every step.
    Same(I),
    /// One for each step.
    Each(Vec<I>),
    /// Made when they are needed. Their cotangents are not kept.
    Made(Made<'i, I>),
}

impl<I> Inputs<'_, I> {
    /// How many steps have one: all if it is the same for all, or made.
    pub(in crate::rollout) fn count(&self) -> Option<usize> {
        match self {
            Inputs::Same(_) | Inputs::Made(_) => None,
            Inputs::Each(inputs) => Some(inputs.len()),
        }
    }

    #[inline(always)]
    pub(in crate::rollout) fn at(&mut self, step: u64) -> Result<&I, Error> {
        match self {
            Inputs::Same(input) => Ok(input),
            Inputs::Each(inputs) => Ok(&inputs[step as usize]),
            Inputs::Made(made) => made.of(step, step + 1).map(|inputs| &inputs[0]),
        }
    }

    /// Those of the steps from `from` to `to`: one for each, or the one for all.
    #[inline(always)]
    pub(in crate::rollout) fn of(&mut self, from: u64, to: u64) -> Result<&[I], Error> {
        match self {
            Inputs::Same(input) => Ok(core::slice::from_ref(input)),
            Inputs::Each(inputs) => Ok(&inputs[from as usize..to as usize]),
            Inputs::Made(made) => made.of(from, to),
        }
    }

    /// Makes inputs again the next time, even those that are kept.
    pub(super) fn forget_made(&mut self) {
        if let Inputs::Made(made) = self {
            made.at = None;
        }
    }

    /// The heap bytes held.
    pub(super) fn heap_bytes<S>(&self) -> usize
    where
        I: Reals<S>,
    {
        let of_list = |list: &Vec<I>| {
            list.capacity() * size_of::<I>() + list.iter().map(Reals::heap_bytes).sum::<usize>()
        };
        match self {
            Inputs::Same(input) => input.heap_bytes(),
            Inputs::Each(inputs) => of_list(inputs),
            Inputs::Made(made) => of_list(&made.kept) + size_of_val(&*made.maker) + made.maker.heap_bytes(),
        }
    }
}

/// The inputs of one unit, made when they are asked for.
pub(in crate::rollout) struct Made<'i, I> {
    maker: Box<dyn Make<I> + 'i>,
    kept: Vec<I>,
    /// The first step whose input is kept, and how many are.
    at: Option<(u64, usize)>,
}

impl<'i, I> Made<'i, I> {
    /// Inputs by a function, whose numbers become those of the loop one by one.
    pub(in crate::rollout) fn by<S, R>(
        function: &'i dyn Fn(u64) -> R,
        number: impl Fn(f64) -> S + 'i,
    ) -> Made<'i, I>
    where
        S: Real + 'i,
        R: Reals<f64>,
        I: Reals<S>,
    {
        let maker = Maker { function, number, flat: Flat::default(), first: None, given: 0 };
        Made { maker: Box::new(maker), kept: Vec::new(), at: None }
    }

    pub(super) fn of(&mut self, from: u64, to: u64) -> Result<&[I], Error> {
        let count = (to - from) as usize;
        if self.at != Some((from, count)) {
            self.at = None;
            self.kept.reserve_exact(count.saturating_sub(self.kept.len()));
            for (place, step) in (from..to).enumerate() {
                self.maker.make(step, &mut self.kept, place)?;
            }
            self.at = Some((from, count));
        }
        Ok(&self.kept[..count])
    }

    /// One that was made, if any was.
    pub(super) fn first(&self) -> Option<&I> {
        self.kept.first()
    }

    /// Forgets the inputs, with their memory.
    pub(super) fn forget(&mut self) {
        (self.kept, self.at) = (Vec::new(), None);
    }

    /// Whether all inputs have the same words: they have none. What others have is not known before.
    pub(super) fn are_alike(&mut self) -> Result<bool, Error> {
        self.of(0, 1)?;
        Ok(self.maker.has_no_words())
    }
}

trait Make<I> {
    /// The input of a step comes to this place of the list, or to its end.
    fn make(&mut self, step: u64, kept: &mut Vec<I>, place: usize) -> Result<(), Error>;
    fn has_no_words(&self) -> bool;
    fn heap_bytes(&self) -> usize;
}

struct Maker<'i, R, F> {
    function: &'i dyn Fn(u64) -> R,
    number: F,
    flat: Flat<f64>,
    /// How many numbers and words the first had that was made.
    first: Option<(usize, usize)>,
    /// The most heap bytes that the function gave at a time.
    given: usize,
}

impl<S: Real, R: Reals<f64>, I: Reals<S>, F: Fn(f64) -> S> Make<I> for Maker<'_, R, F> {
    fn make(&mut self, step: u64, kept: &mut Vec<I>, place: usize) -> Result<(), Error> {
        let Maker { function, number, flat, first, given } = self;
        flat.clear();
        let input = function(step);
        *given = input.heap_bytes().max(*given);
        input.save(&mut Verbatim(flat));
        drop(input);
        let size = (flat.reals.len(), flat.plain.len());
        if *first.get_or_insert(size) != size {
            return Err(Error::InputChanged { step });
        }
        let source = &mut flat.read(&*number);
        match kept.get_mut(place) {
            Some(input) => {
                reloaded(input, source);
            }
            None => kept.push(I::load(source)),
        }
        Ok(())
    }

    fn has_no_words(&self) -> bool {
        self.flat.plain.is_empty()
    }

    fn heap_bytes(&self) -> usize {
        self.flat.heap_bytes() + self.given
    }
}
