//! Machines: other ways to run a program on plain numbers, with the results that the interpreter has.
//!
//! Input: a program, and an [`Engine`] that makes a machine for it. [`Code`](super::Code) asks the machine
//! whenever it is run on `f64`. What a machine does not do is done by the interpreter, which also says what
//! is wrong with a run that went wrong: a machine knows no errors.
//!
//! Absent: any machine. They live in packages of their own, and are handed in.

use core::any::{Any, TypeId};
use core::fmt;
use std::sync::Arc;

use palinode_core::Real;
use smallvec::SmallVec;

use super::{Datum, Limits, Stats};
use crate::program::Program;

/// Who runs a program, and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Chosen {
    /// The interpreter, which was asked for.
    #[default]
    Interpreter,
    /// The interpreter, because of this: `compiling takes longer than running`.
    InterpreterBecause(String),
    /// A machine, which may still leave a run to the interpreter.
    Machine {
        /// What it is: `machine code`.
        name: &'static str,
        /// How long it took to make, in seconds; 0 if it had been made before.
        seconds: f64,
        /// The bytes that a run takes, results included and inputs not.
        bytes: usize,
        /// Whether arrays that grow with the data come on top of that.
        grows: bool,
    },
}

/// A program that is run in another way.
pub trait Machine: fmt::Debug + Send + Sync {
    /// Makes itself ready for inputs like these and says who will run them. What that takes is no part of a
    /// run, in time and in bytes.
    fn prepare(&self, inputs: &[&Datum<f64>], limits: &Limits) -> Chosen;

    /// If nobody knows how long a run takes: after how many steps the interpreter has taken as long as
    /// compiling. Such a run begins in the interpreter, and is stopped then.
    fn trial(&self, inputs: &[&Datum<f64>], limits: &Limits) -> Option<u64>;

    /// A trial run has come to its end after so many steps, or was stopped.
    fn tried(&self, inputs: &[&Datum<f64>], limits: &Limits, steps: Option<u64>);

    /// Runs it, within the limits; nothing if the interpreter is to do it. Within a budget, what has not been
    /// made ready is left to the interpreter: nothing but the run is to take memory then.
    fn run(&self, inputs: &[&Datum<f64>], limits: &Limits) -> Option<(Vec<Datum<f64>>, Stats)>;
}

/// Makes machines.
pub trait Compiler: fmt::Debug + Send + Sync {
    /// A machine for a program. Nothing is compiled before it is asked to.
    fn machine(&self, program: &Program) -> Arc<dyn Machine>;
}

/// Who runs programs on plain numbers: the interpreter, or machines.
#[derive(Clone, Debug, Default)]
pub struct Engine(Option<Arc<dyn Compiler>>);

impl Engine {
    /// The interpreter.
    pub const INTERPRETER: Engine = Engine(None);

    /// Machines, and the interpreter for what they leave to it.
    pub fn new(compiler: impl Compiler + 'static) -> Engine {
        Engine(Some(Arc::new(compiler)))
    }

    pub(super) fn machine(&self, program: &Program) -> Option<Arc<dyn Machine>> {
        self.0.as_ref().map(|compiler| compiler.machine(program))
    }
}

/// Inputs by reference: mostly there are few.
type Inputs<'a> = SmallVec<[&'a Datum<f64>; 8]>;

/// The inputs, if they are plain numbers.
pub(super) fn plain<R: Real>(inputs: &[Datum<R>]) -> Option<Inputs<'_>> {
    if TypeId::of::<R>() != TypeId::of::<f64>() {
        return None;
    }
    inputs.iter().map(|input| (input as &dyn Any).downcast_ref()).collect()
}

/// Plain numbers as what they are.
pub(super) fn same<R: Real>(outputs: Vec<Datum<f64>>) -> Vec<Datum<R>> {
    let mut outputs = Some(outputs);
    let found = (&mut outputs as &mut dyn Any).downcast_mut::<Option<Vec<Datum<R>>>>();
    found.and_then(Option::take).expect("the inputs were plain numbers")
}
