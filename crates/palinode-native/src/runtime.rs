//! What machine code calls.
//!
//! Functions of reals are those of the rule table on `f64`, sums and products are the kernels of
//! `palinode-num` that the interpreter calls, too, and other operations on whole arrays are run by the
//! interpreter, so that the bits are the same.

use std::panic::AssertUnwindSafe;

use cranelift_codegen::ir::types::{self, Type};
use palinode_core::machine::{Task, on_this_machine};
use palinode_core::products::{MatrixView, add_product, times_vector};
use palinode_core::rules::Row;
use palinode_core::{decision, elementary};
use palinode_ir::interp::{Code, Datum, Limits, Tensor, reduce_axis};
use palinode_ir::loops::{Given, Kind, Matrix, Sweep, SweepStep, Taken, kernel_types, one_operation};
use palinode_ir::{Op, Reduction, Rule};

/// Comparisons of numbers that are not larger than this are shown to the hook for decisions.
pub(crate) use palinode_core::decision::TINY;

/// What the first argument of machine code points to.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) workspace: *mut u8,
    /// How many steps are left.
    pub(crate) steps: i64,
    /// How suspicious comparisons were, where the code notes it.
    pub(crate) suspicions: u64,
    /// Whether the hook for decisions is to see every comparison.
    pub(crate) shows_all: bool,
    /// How many elements each growing buffer can hold.
    pub(crate) capacities: *mut i64,
    pub(crate) table: *mut *mut u8,
    pub(crate) calls: *const Call,
    pub(crate) growing: *mut Vec<Vec<u64>>,
    /// How many bytes growing buffers may still take, and the most that they took, moves included.
    pub(crate) left: usize,
    pub(crate) grown: Grown,
    /// The sweeps that are running, outermost first.
    pub(crate) sweeps: *mut Vec<Sweep>,
    /// Those that have ended, whose memory the next ones take.
    pub(crate) ended: *mut Vec<Sweep>,
}

/// The bytes of growing buffers.
#[derive(Clone, Copy)]
pub(crate) struct Grown {
    pub(crate) now: usize,
    pub(crate) most: usize,
}

pub(crate) const WORKSPACE: i32 = 0;
pub(crate) const STEPS: i32 = 8;
pub(crate) const SHOWS_ALL: i32 = 24;
pub(crate) const CAPACITIES: i32 = 32;
const _: () = {
    assert!(core::mem::offset_of!(Context, workspace) == WORKSPACE as usize);
    assert!(core::mem::offset_of!(Context, steps) == STEPS as usize);
    assert!(core::mem::offset_of!(Context, shows_all) == SHOWS_ALL as usize);
    assert!(core::mem::offset_of!(Context, capacities) == CAPACITIES as usize);
};

/// The type of a parameter.
#[derive(Clone, Copy)]
pub(crate) enum Param {
    Real,
    Int,
    Short,
    Pointer,
}

impl Param {
    pub(crate) fn ty(self, pointer: Type) -> Type {
        match self {
            Param::Real => types::F64,
            Param::Int => types::I64,
            Param::Short => types::I32,
            Param::Pointer => pointer,
        }
    }
}

/// A function that machine code calls.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) result: Option<Param>,
    which: Which,
}

macro_rules! functions {
    ($($which:ident $name:literal ($($param:ident)*) $(-> $result:ident)?;)*) => {
        /// Which function.
        #[derive(Clone, Copy)]
        pub(crate) enum Which { $($which,)* }

        /// All of them, in the order of [`Which`].
        pub(crate) const FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            params: &[$(Param::$param,)*],
            result: functions!(@ $($result)?),
            which: Which::$which,
        },)*];
    };
    (@) => { None };
    (@ $result:ident) => { Some(Param::$result) };
}

functions! {
    Map "palinode_map" (Short Short Real Real Real) -> Real;
    FromInt "palinode_from_int" (Int) -> Real;
    Compared "palinode_compared" (Real Real Short) -> Int;
    Kernel "palinode_kernel" (Pointer Int Pointer) -> Int;
    Kernels "palinode_kernels" (Pointer Int Int) -> Int;
    Reserve "palinode_reserve" (Pointer Int Int) -> Int;
    SweepBegin "palinode_sweep_begin" (Pointer Int Int Int);
    SweepNext "palinode_sweep_next" (Pointer Pointer) -> Int;
    Copy "palinode_copy" (Pointer Pointer Int);
}

impl Function {
    pub(crate) fn address(&self) -> *const u8 {
        match self.which {
            Which::Map => map as *const u8,
            Which::FromInt => from_int as *const u8,
            Which::Compared => compared as *const u8,
            Which::Kernel => kernel as *const u8,
            Which::Kernels => kernels as *const u8,
            Which::Reserve => reserve as *const u8,
            Which::SweepBegin => sweep_begin as *const u8,
            Which::SweepNext => sweep_next as *const u8,
            Which::Copy => copy_bytes as *const u8,
        }
    }
}

/// The number by which machine code names a row.
pub(crate) fn number(row: Row) -> i64 {
    Row::ALL.iter().position(|&other| other == row).expect("all rows are listed") as i64
}

extern "C" fn map(row: i32, parameter: i32, a: f64, b: f64, c: f64) -> f64 {
    let row = Row::ALL[row as usize];
    row.value(parameter, &[a, b, c][..row.arity()])
}

extern "C" fn from_int(n: i64) -> f64 {
    palinode_ir::interp::real_of(n)
}

/// Shows a comparison to the hook; 0 if the hook unwinds to end the run. Nothing may unwind through machine
/// code; the interpreter will reach the same comparison and unwind there.
extern "C" fn compared(a: f64, b: f64, is_equality: i32) -> i64 {
    let shown = std::panic::catch_unwind(|| decision::compared_plainly(Some(a), Some(b), is_equality != 0));
    i64::from(shown.is_ok())
}

/// A place of a program where machine code calls a kernel.
pub(crate) struct Call {
    pub(crate) site: Site,
    /// Where what it is passed lies, if that is known.
    pub(crate) places: Box<[At]>,
}

/// So many places may be known of a call.
pub(crate) const MOST_KNOWN: usize = 8;

/// A place of which the distance from the beginning is known, in bytes.
#[derive(Clone, Copy)]
pub(crate) enum At {
    Workspace(usize),
    /// In the input whose buffer has this number.
    Input(usize, usize),
}

/// What machine code has done by a kernel, at one place of the program.
pub(crate) enum Site {
    /// A function of so many numbers, over themselves.
    Function { vectors: Option<elementary::Function>, rule: Rule, count: usize },
    /// Whether so many numbers are finite.
    AllFinite { count: usize },
    /// Along the middle one of three axes.
    Reduce { kind: Reduction, lengths: [usize; 3] },
    /// Of two matrices.
    Product { strong: bool, a: Shape, b: Shape, adds: bool },
    /// Of the rows of a matrix and a vector.
    Dots { strong: bool, a: Shape },
    /// Any other operation.
    Interpreted(Box<Interpreted>),
}

/// How a matrix lies in memory.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    sizes: [usize; 2],
    steps: [usize; 2],
    span: usize,
}

impl From<&Matrix> for Shape {
    fn from(matrix: &Matrix) -> Shape {
        let span = matrix.span().expect("the verifier: it is in a buffer");
        Shape { sizes: matrix.sizes, steps: matrix.steps, span }
    }
}

/// The reals that a word points to.
///
/// # Safety
/// It is the address of so many, which nobody changes meanwhile.
#[allow(unsafe_code)]
unsafe fn reals<'a>(word: u64, count: usize) -> &'a [f64] {
    if count == 0 {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts(word as *const f64, count) }
}

/// The same, to be changed.
///
/// # Safety
/// It is the address of so many, which nobody else uses meanwhile.
#[allow(unsafe_code)]
unsafe fn reals_mut<'a>(word: u64, count: usize) -> &'a mut [f64] {
    if count == 0 {
        return &mut [];
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts_mut(word as *mut f64, count) }
}

impl Shape {
    /// The matrix that a word points to.
    ///
    /// # Safety
    /// It is the address of such a matrix, which nobody changes meanwhile.
    #[allow(unsafe_code)]
    unsafe fn view<'a>(self, word: u64) -> MatrixView<'a, f64> {
        // SAFETY: as the caller says.
        let data = unsafe { reals(word, self.span) };
        MatrixView::with_steps(data, self.sizes, self.steps)
    }
}

struct AllFinite<'a>(&'a [f64]);

impl Task for AllFinite<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        // No early exit, so that the loop is vectorised.
        self.0.iter().fold(true, |all, x| all & (x.abs() < f64::INFINITY))
    }
}

impl Site {
    pub(crate) fn function(rule: Rule, count: usize) -> Site {
        let same = |function: &&elementary::Function| function.name() == rule.row.name();
        let vectors = elementary::Function::ALL.iter().find(same).copied();
        Site::Function { vectors, rule, count }
    }

    /// Runs the kernel; returns whether it succeeded.
    ///
    /// # Safety
    /// `words` has a word for each operand and each result: scalars that are given, and addresses of as many
    /// elements as the site says, results apart from operands.
    #[allow(unsafe_code)]
    unsafe fn run(&self, words: *mut u64) -> bool {
        // SAFETY: the caller says how many words there are, and what they point to.
        unsafe {
            let word = |number: usize| *words.add(number);
            match *self {
                Site::Function { vectors, rule, count } => {
                    let numbers = reals_mut(word(0), count);
                    match vectors {
                        Some(function) => function.in_place(numbers),
                        None => numbers.iter_mut().for_each(|x| *x = rule.row.value(rule.parameter, &[*x])),
                    }
                }
                Site::AllFinite { count } => return on_this_machine(AllFinite(reals(word(0), count))),
                Site::Reduce { kind, lengths } => {
                    let results = reals_mut(word(1), lengths[0] * lengths[2]);
                    reduce_axis(kind, reals(word(0), lengths.iter().product()), lengths, results);
                }
                Site::Product { strong, a, b, adds } => {
                    let c = reals_mut(word(2), a.sizes[0] * b.sizes[1]);
                    if !adds {
                        c.fill(0.0);
                    }
                    add_product(c, a.view(word(0)), b.view(word(1)), strong);
                }
                Site::Dots { strong, a } => {
                    let x = reals(word(1), a.sizes[1]);
                    times_vector(reals_mut(word(2), a.sizes[0]), a.view(word(0)), x, strong);
                }
                Site::Interpreted(ref site) => return site.run(words),
            }
        }
        true
    }
}

/// An operation that the interpreter does: a program of one instruction.
pub(crate) struct Interpreted {
    code: Code,
    limits: Limits,
    /// Kinds and, of arrays, lengths.
    given: Vec<(Kind, Option<Vec<usize>>)>,
    /// How many elements each result has.
    taken: Vec<usize>,
}

impl Interpreted {
    pub(crate) fn new(
        op: &Op,
        single: bool,
        given: &[Given],
        kinds: &[Kind],
        taken: &[Taken],
        traps: bool,
    ) -> Interpreted {
        let (types, _) = kernel_types(op, single, given, kinds).expect("the verifier: it is a kernel");
        let shape = |given: &Given| match given {
            Given::Scalar(_) => None,
            Given::Array(place) => Some(place.shape.clone()),
        };
        let given: Vec<(Kind, Option<Vec<usize>>)> =
            kinds.iter().zip(given).map(|(&kind, given)| (kind, shape(given))).collect();
        let program = one_operation(op, &types);
        let taken = taken
            .iter()
            .map(|taken| match taken {
                Taken::Scalar(_) => 1,
                Taken::Array(place) => place.elements(),
            })
            .collect();
        let limits = Limits { trap_nonfinite: traps, ..Limits::default() };
        Interpreted { code: Code::new(&program), limits, given, taken }
    }

    /// Runs it; returns whether it succeeded.
    ///
    /// # Safety
    /// `words` has a word for each operand and each result, and those of arrays are pointers to so many
    /// elements of their kind.
    #[allow(unsafe_code)]
    unsafe fn run(&self, words: *mut u64) -> bool {
        let mut inputs = Vec::with_capacity(self.given.len());
        for (at, (kind, shape)) in self.given.iter().enumerate() {
            // SAFETY: there is a word for each operand.
            let word = unsafe { *words.add(at) };
            // SAFETY: the word is the scalar itself, or a pointer to as many elements as the shape has.
            inputs.push(unsafe { datum(*kind, word, shape.as_deref()) });
        }
        // Nothing may unwind through machine code: the interpreter will come here, too, and does.
        let ran = std::panic::catch_unwind(AssertUnwindSafe(|| self.code.run(&inputs, &self.limits)));
        let Ok(Ok(outputs)) = ran else { return false };
        if outputs.iter().zip(&self.taken).any(|(output, &count)| output.elements() != count) {
            return false;
        }
        for (at, (output, count)) in outputs.iter().zip(&self.taken).enumerate() {
            // SAFETY: there is a word for each result, after those of the operands.
            let word = unsafe { words.add(self.given.len() + at) };
            // SAFETY: it is the address of so many elements.
            unsafe {
                match output {
                    Datum::Real(tensor) => copy(&tensor.data, *word as *mut f64, *count),
                    Datum::Int(tensor) => copy(&tensor.data, *word as *mut i64, *count),
                    Datum::Bool(tensor) => copy(&tensor.data, *word as *mut bool, *count),
                }
            }
        }
        true
    }
}

/// What a word of machine code is: a scalar, or the address of an array of this shape.
///
/// # Safety
/// An address is that of as many elements of the kind as the shape has.
#[allow(unsafe_code)]
pub(crate) unsafe fn datum(kind: Kind, word: u64, shape: Option<&[usize]>) -> Datum<f64> {
    let Some(shape) = shape else {
        return match kind {
            Kind::Real => Datum::real(f64::from_bits(word)),
            Kind::Int => Datum::int(word as i64),
            Kind::Bool => Datum::bool(word & 1 != 0),
        };
    };
    let (shape, count) = (shape.to_vec(), shape.iter().product());
    // SAFETY: as the caller says.
    unsafe {
        match kind {
            Kind::Real => Datum::Real(Tensor { shape, data: elements(word as *const f64, count) }),
            Kind::Int => Datum::Int(Tensor { shape, data: elements(word as *const i64, count) }),
            Kind::Bool => Datum::Bool(Tensor { shape, data: elements(word as *const bool, count) }),
        }
    }
}

#[allow(unsafe_code)]
unsafe fn elements<T: Copy>(from: *const T, count: usize) -> Vec<T> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts(from, count) }.to_vec()
}

#[allow(unsafe_code)]
unsafe fn copy<T: Copy>(from: &[T], to: *mut T, count: usize) {
    if count > 0 {
        // SAFETY: as the caller says.
        unsafe { core::slice::from_raw_parts_mut(to, count) }.copy_from_slice(from);
    }
}

extern "C" fn kernel(context: *mut Context, call: i64, words: *mut u64) -> i64 {
    // SAFETY: machine code passes its context on, the number of a call, and as many words as that has.
    #[allow(unsafe_code)]
    let done = unsafe { (*(*context).calls.add(call as usize)).site.run(words) };
    i64::from(done)
}

/// So many calls of which all places are known, until one fails.
extern "C" fn kernels(context: *mut Context, first: i64, count: i64) -> i64 {
    let all = (first..first + count).all(|call| {
        let mut words = [0; MOST_KNOWN];
        // SAFETY: machine code passes its context on, and the numbers of calls whose places are in the
        // workspace and in inputs; the verifier has found that they are long enough.
        #[allow(unsafe_code)]
        unsafe {
            let context = &*context;
            let call = &*context.calls.add(call as usize);
            for (word, place) in words.iter_mut().zip(&call.places) {
                *word = match *place {
                    At::Workspace(offset) => context.workspace.add(offset) as u64,
                    At::Input(buf, offset) => (*context.table.add(buf)).add(offset) as u64,
                };
            }
            call.site.run(words.as_mut_ptr())
        }
    });
    i64::from(all)
}

extern "C" fn reserve(context: *mut Context, buf: i64, length: i64) -> i64 {
    let (buf, Ok(length)) = (buf as usize, usize::try_from(length)) else { return 0 };
    // SAFETY: machine code passes its context on; nobody else has its memory while it runs.
    #[allow(unsafe_code)]
    unsafe {
        let context = &mut *context;
        let memory = &mut (&mut *context.growing)[buf];
        let held = memory.len();
        // By a half at least, so that many pushes cost little.
        let wanted = length.max(held + held / 2).max(64);
        // While it is moved, it is there twice.
        let Some(bytes) = wanted.checked_mul(8) else { return 0 };
        if bytes > context.left || memory.try_reserve_exact(wanted - held).is_err() {
            return 0;
        }
        context.grown.most = context.grown.most.max(context.grown.now + bytes);
        context.grown.now += bytes - held * 8;
        context.left -= bytes - held * 8;
        memory.resize(wanted, 0);
        *context.capacities.add(buf) = wanted as i64;
        *context.table.add(buf) = memory.as_mut_ptr().cast();
    }
    1
}

extern "C" fn sweep_begin(context: *mut Context, rounds: i64, room: i64, turns: i64) {
    // SAFETY: machine code passes its context on; nobody else has its memory while it runs.
    #[allow(unsafe_code)]
    let (sweeps, ended) = unsafe { (&mut *(*context).sweeps, &mut *(*context).ended) };
    let (has_state, turns) = (room > 0, turns != 0);
    sweeps.push(match has_state.then(|| ended.pop()).flatten() {
        Some(sweep) => sweep.again(rounds, room as u64, turns),
        None => Sweep::new(rounds, room as u64, turns),
    });
}

/// What the innermost sweep does next, as machine code tells it apart; what it is about goes to `about`.
extern "C" fn sweep_next(context: *mut Context, about: *mut [i64; 2]) -> i64 {
    // SAFETY: machine code passes its context on; nobody else has its memory while it runs.
    #[allow(unsafe_code)]
    let (sweeps, ended) = unsafe { (&mut *(*context).sweeps, &mut *(*context).ended) };
    let step = sweeps.last_mut().expect("a sweep that runs was begun").next();
    let (code, first, second) = match step {
        Some(SweepStep::Advance(from, to)) => (ADVANCE, from, to),
        Some(SweepStep::Keep(number)) => (KEEP, number, 0),
        Some(SweepStep::Restore(number)) => (RESTORE, number, 0),
        Some(SweepStep::Back(round)) => (BACK, round, 0),
        Some(SweepStep::Turn) => (TURN, 0, 0),
        None => {
            ended.extend(sweeps.pop().filter(Sweep::has_memory));
            return 0;
        }
    };
    // SAFETY: it is the address of two words.
    #[allow(unsafe_code)]
    unsafe {
        *about = [first as i64, second as i64];
    }
    code
}

/// What [`sweep_next`] gives; 0 is the end.
pub(crate) const ADVANCE: i64 = 1;
pub(crate) const KEEP: i64 = 2;
pub(crate) const RESTORE: i64 = 3;
pub(crate) const BACK: i64 = 4;
pub(crate) const TURN: i64 = 5;

extern "C" fn copy_bytes(to: *mut u8, from: *const u8, bytes: i64) {
    // SAFETY: machine code copies a state to or from a snapshot of it: other memory, and so many bytes long,
    // as the verifier has found.
    #[allow(unsafe_code)]
    unsafe {
        core::ptr::copy_nonoverlapping(from, to, bytes as usize);
    }
}
