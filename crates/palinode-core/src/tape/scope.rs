//! Open recordings: how whatever carries a stamp reaches the recorder.
//!
//! Input: a recorder to open a scope with, then stamps. Output: the recorder that is being recorded into.
//!
//! Invariants: a stamp stands for one `Recorder<S>` with one `S` (a `Var<S>` gets its stamp only from a scope
//! of an `Recorder<S>`, and whatever carries a stamp is invariant in `S`: see [`Invariant`]); a pointer is
//! valid for exactly as long as its scope is open (`stamp.rs` sees to it that nobody finds it later).

#![allow(unsafe_code)] // named in ARCHITECTURE.md: turns a stamp's pointer back into the recorder it came from

use super::arena::OpenNode;
use super::recorder::Recorder;
use super::stamp::Stamp;
use palinode_num::Scalar;

/// What carries a stamp of a `Recorder<S>` has one of these: it cannot become the same thing over a subtype
/// or supertype of `S`. Two types that differ in lifetimes only (`for<'a> fn(&'a ())` and `fn(&'static ())`,
/// say) can be different numbers, and the stamp would lead one to the recorder of the other.
///
/// ```
/// fn shortened<'a>(x: Option<&'static str>) -> Option<&'a str> { x } // what is covariant can
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Var<&'static str>) -> palinode_core::Var<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Array<&'static str>) -> palinode_core::Array<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Boundary<&'static str>) -> palinode_core::Boundary<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Tape<&'static str>) -> palinode_core::Tape<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a, 't>(x: palinode_core::Record<'t, &'static str>) -> palinode_core::Record<'t, &'a str> { x
/// }
/// ```
/// ```compile_fail
/// fn shortened<'a, 't>(x: palinode_core::ArrayOperand<'t, &'static str>) -> palinode_core::ArrayOperand<'t,
/// &'a str> { x }
/// ```
pub(crate) type Invariant<S> = core::marker::PhantomData<fn(S) -> S>;

/// An open recording: while it lives, Vars with its stamp reach the recorder.
pub(crate) struct Scope<'a, S> {
    stamp: Stamp,
    recorder: core::marker::PhantomData<&'a mut Recorder<S>>,
}

impl<'a, S: 'static> Scope<'a, S> {
    /// Opens a scope on this thread.
    ///
    /// # Panics
    /// If 63 scopes are open on this thread already.
    pub(crate) fn open(recorder: &'a mut Recorder<S>, traced: bool) -> Self {
        let stamp = Stamp::opened(core::ptr::from_mut(recorder).cast(), traced);
        Scope { stamp, recorder: core::marker::PhantomData }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }
}

impl<S> Drop for Scope<'_, S> {
    fn drop(&mut self) {
        self.stamp.close();
    }
}

impl Stamp {
    /// [`Stamp::check`], and the way to the recorder for the rest of this operation.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn open<S: 'static>(self) -> Open<S> {
        Open(self.recorder().cast())
    }
}

/// The recorder of a scope that was open on this thread when the operation at hand began. A scope cannot end
/// inside an operation, so within it no second check is needed; it must not be kept beyond.
#[derive(Clone, Copy)]
pub(crate) struct Open<S>(*mut Recorder<S>);

impl<S: Scalar> Open<S> {
    /// Appends a node.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn push<const N: usize>(self, parents: [u32; N], partials: [S; N]) -> u32 {
        debug_assert!(!self.0.is_null(), "a constant has no tape");
        // SAFETY: as in `with_recorder`: the scope is still open (see the type), and `push` calls no method
        // of `S`, so nothing reaches this recorder meanwhile.
        unsafe { (*self.0).arena.push(parents, partials) }
    }

    /// Adds edges to an open node; see [`Arena::extend`](super::arena::Arena::extend).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn extend(self, node: OpenNode, one: S, first: (u32, S), second: (u32, S)) -> OpenNode {
        debug_assert!(!self.0.is_null(), "a constant has no tape");
        // SAFETY: as in `push`; `one` is passed in so that `extend` calls no method of `S` either.
        unsafe { (*self.0).arena.extend(node, one, first, second) }
    }

    /// Takes a node with few edges back; see [`Recorder::take_back`].
    #[inline(never)]
    pub(crate) fn take_back(self, node: OpenNode, zero: S) -> Option<[(u32, S); 2]> {
        debug_assert!(!self.0.is_null(), "a constant has no tape");
        // SAFETY: as in `extend`: `zero` is passed in so that no method of `S` is called.
        unsafe { (*self.0).take_back(node, zero) }
    }
}

/// Runs `f` with the recorder of an open scope.
///
/// While it runs the scope counts as busy: whatever `f` calls (a number type of the user's, a custom rule)
/// panics if it uses a `Var` of this scope, instead of reaching the same recorder a second time.
pub(crate) fn with_recorder<S: 'static, R>(stamp: Stamp, f: impl FnOnce(&mut Recorder<S>) -> R) -> R {
    stamp.busy(|recorder| {
        // SAFETY: the scope is open on this thread, so the pointer is that of the `&mut Recorder<S>` which
        // the scope borrows, with the same `S` (module invariant). Nothing else uses it now: while the entry
        // is busy every other way to it fails its check, and `Open` does not outlive its operation.
        f(unsafe { &mut *recorder.cast::<Recorder<S>>() })
    })
}
