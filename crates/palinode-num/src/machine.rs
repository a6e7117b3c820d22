//! The one gate to instructions that not every processor has.
//!
//! Input: a [`Task`], code that is compiled once for each [`InstructionSet`]. Output: what it returns,
//! computed by the version for the best instructions of this processor; the choice is made once per process.
//!
//! Invariant: a task gives the same bits on every instruction set. The compiler vectorises what is
//! independent, and neither reorders nor fuses operations on floats, so a task that does not ask for the
//! instruction set keeps this by itself. (`mul_add` means one rounding everywhere, and is a slow call where
//! the instruction is missing.) [`InstructionSet::run`] is for tests that compare.
//!
//! Known limits: on processors other than x86-64 there is one version, for what the target of the build has
//! (NEON on aarch64).
#![allow(unsafe_code)] // named in ARCHITECTURE.md; the tests run tasks on every instruction set

use std::sync::OnceLock;

/// Code that is compiled once for each instruction set.
///
/// ```
/// use palinode_num::machine::{Task, on_this_machine};
///
/// struct Double<'a>(&'a mut [f64]);
///
/// impl Task for Double<'_> {
///     type Output = ();
///     #[inline(always)]
///     fn run(self) {
///         self.0.iter_mut().for_each(|x| *x *= 2.0);
///     }
/// }
///
/// let mut numbers = [1.0, 2.0, 3.0];
/// on_this_machine(Double(&mut numbers));
/// assert_eq!(numbers, [2.0, 4.0, 6.0]);
/// ```
pub trait Task {
    /// What the code returns.
    type Output;

    /// The code. It must be `#[inline(always)]`, and so must what it spends its time in: only what is inlined
    /// into a version is compiled for its instructions.
    fn run(self) -> Self::Output;
}

/// A [`Task`] whose code depends on how many bytes a vector register has: 64, 32, or whatever the target of
/// the build has.
pub trait VectorTask {
    /// What the code returns.
    type Output;

    /// The code, for which the same holds as for [`Task::run`].
    fn run_with<const BYTES: usize>(self) -> Self::Output;
}

impl<T: Task> VectorTask for T {
    type Output = T::Output;
    #[inline(always)]
    fn run_with<const BYTES: usize>(self) -> T::Output {
        self.run()
    }
}

/// Instructions that tasks are compiled for, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// What the target of the build has.
    Baseline,
    /// x86-64-v3: vectors of 256 bits and fused multiply-add.
    Avx2,
    /// x86-64-v4: vectors of 512 bits.
    Avx512,
}

impl InstructionSet {
    /// All of them, ascending.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Avx2, Self::Avx512];

    /// Whether this processor has it.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            macro_rules! has {
                ($($feature:tt)*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
            }
            let v3 = || has!("avx2" "fma" "bmi1" "bmi2" "lzcnt" "popcnt" "movbe" "f16c");
            let v4 = || has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl");
            match self {
                Self::Baseline => true,
                Self::Avx2 => v3(),
                Self::Avx512 => v3() && v4(),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Self::Baseline
        }
    }

    /// The largest one that this processor has.
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<InstructionSet> = OnceLock::new();
        *BEST.get_or_init(|| Self::ALL.into_iter().rfind(|set| set.is_available()).unwrap_or(Self::Baseline))
    }

    /// The task, compiled for these instructions: for tests, and for tasks of which a larger one consists.
    /// Others call [`on_this_machine`].
    ///
    /// # Panics
    /// If this processor does not have them.
    #[inline]
    pub fn run<T: VectorTask>(self, task: T) -> T::Output {
        // Each has what those below it have.
        assert!(self <= Self::best(), "this processor has no {self:?}");
        // SAFETY: the line above.
        unsafe { run_unchecked(self, task) }
    }
}

/// The task, compiled for the best instructions of this processor.
#[inline]
pub fn on_this_machine<T: VectorTask>(task: T) -> T::Output {
    // SAFETY: `best` names only what this processor has.
    unsafe { run_unchecked(InstructionSet::best(), task) }
}

/// # Safety
/// This processor has these instructions.
#[inline]
unsafe fn run_unchecked<T: VectorTask>(set: InstructionSet, task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    match set {
        InstructionSet::Baseline => {}
        // SAFETY: the caller vouches for the features of the version, which `is_available` asks for.
        InstructionSet::Avx2 => return unsafe { x86_64::avx2(task) },
        // SAFETY: likewise.
        InstructionSet::Avx512 => return unsafe { x86_64::avx512(task) },
    }
    debug_assert!(set == InstructionSet::Baseline);
    baseline(task)
}

/// Out of line like the other versions, so that arguments that do not alias stay known not to.
#[inline(never)]
fn baseline<T: VectorTask>(task: T) -> T::Output {
    task.run_with::<16>()
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::VectorTask;

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,movbe,f16c")]
    pub(super) fn avx2<T: VectorTask>(task: T) -> T::Output {
        task.run_with::<32>()
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,movbe,f16c")]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    pub(super) fn avx512<T: VectorTask>(task: T) -> T::Output {
        task.run_with::<64>()
    }
}

#[cfg(test)]
mod tests {
    use super::{InstructionSet, Task, on_this_machine};

    /// Enough operations per element that the versions differ in code.
    struct Chain<'a>(&'a [f64], &'a mut [f64]);

    impl Task for Chain<'_> {
        type Output = usize;
        #[inline(always)]
        fn run(self) -> usize {
            let Self(from, to) = self;
            for (x, y) in from.iter().zip(to.iter_mut()) {
                *y = (x * x + 0.1) / (x * 0.3 - 7.0) * x - x.sqrt();
            }
            to.len()
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let from: Vec<f64> = (0..1003).map(|i| f64::from(i) * 0.37).collect();
        let bits = |run: &dyn Fn(Chain) -> usize| {
            let mut to = vec![0.0; from.len()];
            assert_eq!(run(Chain(&from, &mut to)), from.len());
            to.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        let expected = bits(&|task| task.run());
        assert_eq!(bits(&|task| on_this_machine(task)), expected);
        for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
            assert_eq!(bits(&|task| set.run(task)), expected, "{set:?}");
        }
    }

    #[test]
    fn the_best_set_is_available_and_none_above_it_is() {
        let best = InstructionSet::best();
        for set in InstructionSet::ALL {
            assert!(!set.is_available() || set <= best);
        }
        assert!(best.is_available() && InstructionSet::Baseline.is_available());
    }

    #[test]
    fn an_instruction_set_that_is_missing_is_refused() {
        for set in InstructionSet::ALL.into_iter().filter(|set| !set.is_available()) {
            let refused = std::panic::catch_unwind(|| set.run(Chain(&[], &mut [])));
            assert!(refused.is_err(), "{set:?}");
        }
    }
}
