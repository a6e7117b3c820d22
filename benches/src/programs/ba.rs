//! GradBench's `ba`: errors of bundle adjustment and their sparse Jacobian, 49 cameras, 7776 points, 31,843
//! observations. The two errors of an observation depend on its camera (11), its point (3) and its weight,
//! the third, of the weight, on that alone.
//!
//! `ba.pal` is the model of some observations side by side, each with its own copy of camera and point: then
//! the gradient of the sum of one kind of error holds a row of the Jacobian for every observation. A
//! [`ProgramBatch`] runs it block by block. Time includes what brings cameras and points to the observations
//! and results into the order of rows.

use std::cell::RefCell;
use std::hint::black_box;
use std::ops::Add;
use std::path::Path;

use palinode::prelude::{DualN, Real};
use palinode::time::ProgramBatch;
use palinode_ir::interp::{Code, Datum, Tensor};
use palinode_ir::loops::{self, Traffic};
use palinode_ir::{FuncId, Function, FunctionBuilder, Op, Program, passes, transform};
use palinode_native::{When, machine_code};

use super::{Contest, Figures, WAYS, compiled, limits, peers, source};
use crate::measure::distance;
use crate::rng::{Draws, uniforms};

pub(super) const NAME: &str = "ba";

const CAMERA: usize = 11;
const POINT: usize = 3;
/// The entries of a row: by camera, point and weight.
const ROW: usize = CAMERA + POINT + 1;
/// Cameras, points, observations.
const SIZES: [usize; 3] = [49, 7776, 31_843];
/// Observations of a block: what it reads and makes stays in the second cache.
const BLOCK: usize = 256;

#[derive(Clone)]
struct Problem {
    cameras: Vec<[f64; CAMERA]>,
    points: Vec<[f64; POINT]>,
    weights: Vec<f64>,
    seen: Vec<[f64; 2]>,
}

impl Problem {
    fn new([cameras, points, observations]: [usize; 3]) -> Problem {
        let mut draws = Draws::new(17);
        let mut around = |[lo, hi]: [f64; 2]| uniforms(&mut draws, 1, lo, hi)[0];
        // Points are in front of all cameras, and far away.
        let camera = [
            [[-0.4, 0.4]; 3].as_slice(),
            &[[-1.0, 1.0]; 3],
            &[[390.0, 450.0]],
            &[[-9.0, 9.0]; 2],
            &[[-0.1, 0.1], [-0.01, 0.01]],
        ]
        .concat();
        let cameras = (0..cameras).map(|_| core::array::from_fn(|k| around(camera[k]))).collect();
        let point = [[-3.0, 3.0], [-3.0, 3.0], [8.0, 20.0]];
        let points = (0..points).map(|_| point.map(&mut around)).collect();
        let weights = (0..observations).map(|_| around([0.2, 1.0])).collect();
        let seen = (0..observations).map(|_| [[-200.0, 200.0]; 2].map(&mut around)).collect();
        Problem { cameras, points, weights, seen }
    }

    fn observations(&self) -> usize {
        self.weights.len()
    }

    /// As the eval pairs them.
    #[inline(always)]
    fn camera(&self, observation: usize) -> &[f64; CAMERA] {
        &self.cameras[observation % self.cameras.len()]
    }

    #[inline(always)]
    fn point(&self, observation: usize) -> &[f64; POINT] {
        &self.points[observation % self.points.len()]
    }
}

/// How far from where it was seen the camera shows the point, weighted.
#[inline(always)]
fn error<S: Real>(
    camera: [S; CAMERA],
    point: [S; POINT],
    weight: S,
    seen: &[f64; 2],
    sin_cos: impl Fn(S) -> (S, S),
) -> [S; 2] {
    let [rx, ry, rz, cx, cy, cz, focal, u0, v0, k1, k2] = camera;
    let [x, y, z] = [point[0] - cx, point[1] - cy, point[2] - cz];
    let square = rx * rx + ry * ry + rz * rz;
    let [x, y, z] = if square > 0.0 {
        let angle = square.sqrt();
        let (sine, cosine) = sin_cos(angle);
        let inverse = S::one() / angle;
        let [a, b, c] = [rx * inverse, ry * inverse, rz * inverse];
        let along = (a * x + b * y + c * z) * (S::one() - cosine);
        [
            x * cosine + (b * z - c * y) * sine + a * along,
            y * cosine + (c * x - a * z) * sine + b * along,
            z * cosine + (a * y - b * x) * sine + c * along,
        ]
    } else {
        [x + (ry * z - rz * y), y + (rz * x - rx * z), z + (rx * y - ry * x)]
    };
    let (u, v) = (x / z, y / z);
    let r = u * u + v * v;
    let scale = (S::one() + k1 * r + k2 * r * r) * focal;
    [weight * (u * scale + u0 - seen[0]), weight * (v * scale + v0 - seen[1])]
}

/// Errors of observations, two each, then those of weights; and the entries of the Jacobian, row by row.
struct Answer {
    errors: Vec<f64>,
    entries: Vec<f64>,
}

impl Answer {
    fn sized(problem: &Problem) -> Answer {
        let n = problem.observations();
        Answer { errors: vec![0.0; 3 * n], entries: vec![0.0; (2 * ROW + 1) * n] }
    }
    fn results(&self) -> Vec<f64> {
        [&self.errors[..], &self.entries].concat()
    }
}

#[inline(never)]
fn plain(problem: &Problem, errors: &mut [f64]) {
    let (of_points, of_weights) = errors.split_at_mut(2 * problem.observations());
    let places =
        of_points.as_chunks_mut().0.iter_mut().zip(of_weights).zip(&problem.weights).zip(&problem.seen);
    for (i, (((of_point, of_weight), &weight), seen)) in places.enumerate() {
        *of_point = error(*problem.camera(i), *problem.point(i), weight, seen, f64::sin_cos);
        *of_weight = 1.0 - weight * weight;
    }
}

/// All directions at once.
#[inline(never)]
fn by_tangents(problem: &Problem, answer: &mut Answer) {
    let n = problem.observations();
    let (rows, by_weights) = answer.entries.split_at_mut(2 * ROW * n);
    let rows = rows.as_chunks_mut::<ROW>().0.as_chunks_mut::<2>().0;
    for (i, rows) in rows.iter_mut().enumerate() {
        let (camera, point, weight) = (problem.camera(i), problem.point(i), problem.weights[i]);
        let inputs: [f64; ROW] = core::array::from_fn(|k| match k {
            ..CAMERA => camera[k],
            _ if k < ROW - 1 => point[k - CAMERA],
            _ => weight,
        });
        let p = DualN::<f64, ROW>::variables(inputs);
        let camera = core::array::from_fn(|k| p[k]);
        let point = core::array::from_fn(|k| p[CAMERA + k]);
        let found = error(camera, point, p[ROW - 1], &problem.seen[i], |x| (x.sin(), x.cos()));
        for (k, (row, found)) in rows.iter_mut().zip(found).enumerate() {
            answer.errors[2 * i + k] = found.value;
            *row = found.tangents.0;
        }
        answer.errors[2 * n + i] = 1.0 - weight * weight;
        by_weights[i] = -2.0 * weight;
    }
}

/// The params that each output depends on.
const OF_OUTPUTS: [&[usize]; 3] = [&[0, 1, 2], &[0, 1, 2], &[2]];

/// A program that gives the outputs, and of each sum of one the gradient by what it depends on.
fn with_rows(program: &Program) -> Program {
    let mut functions: Vec<Function> = Vec::new();
    let mut b = FunctionBuilder::new("rows");
    let args: Vec<_> = program.input_types().into_iter().map(|ty| b.param("argument", ty)).collect();
    let n = b.dim(args[2], 0);
    let one = b.real(1.0);
    let ones = b.fill(one, &[n]);
    let (mut outputs, mut rows) = (Vec::new(), Vec::new());
    for (at, wrt) in OF_OUTPUTS.into_iter().enumerate() {
        let mut only = program.clone();
        let entry = program.entry.index();
        only.functions[entry].body.results = vec![program.main().body.results[at]];
        only.outputs = vec![program.outputs[at].clone()];
        let back = passes::inline(&transform::vjp(&only, wrt).expect("a row"));
        let mut function = back.main().clone();
        function.name = format!("row_{at}").into();
        let id = FuncId(functions.len() as u32);
        b.declare(id, function.param_types(), function.result_types());
        functions.push(function);
        let mut results = b.emit_all(Op::Call(id), &[&args[..], &[ones]].concat());
        outputs.push(results.remove(0));
        rows.append(&mut results);
    }
    let results = [outputs, rows].concat();
    let names = (0..results.len()).map(|k| format!("result_{k}").into()).collect();
    let (function, mistakes) = b.finish(&results);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let entry = FuncId(functions.len() as u32);
    functions.push(function);
    passes::simplify(&passes::inline(&Program { functions, entry, outputs: names }))
}

/// Cameras and points of so many observations from `first` on, side by side; the last one again where there
/// are no more.
fn set(problem: &Problem, block: usize, first: usize, inputs: &mut Vec<Datum<f64>>) {
    if inputs.is_empty() {
        let shapes = [vec![CAMERA, block], vec![POINT, block], vec![block], vec![2, block]];
        let zeros =
            |shape: Vec<usize>| Datum::Real(Tensor { data: vec![0.0; shape.iter().product()], shape });
        inputs.extend(shapes.map(zeros));
    }
    let [Datum::Real(cameras), Datum::Real(points), Datum::Real(weights), Datum::Real(seen)] =
        &mut inputs[..]
    else {
        unreachable!("four arrays of reals");
    };
    let last = problem.observations() - 1;
    for at in 0..block {
        let i = (first + at).min(last);
        problem.camera(i).iter().enumerate().for_each(|(k, &x)| cameras.data[k * block + at] = x);
        problem.point(i).iter().enumerate().for_each(|(k, &x)| points.data[k * block + at] = x);
        weights.data[at] = problem.weights[i];
        problem.seen[i].iter().enumerate().for_each(|(k, &x)| seen.data[k * block + at] = x);
    }
}

fn data(datum: &Datum<f64>) -> &[f64] {
    let Datum::Real(tensor) = datum else { unreachable!("rows are real") };
    &tensor.data
}

/// What a program gave for the observations from `first` on, to its places.
fn place(outputs: &[Datum<f64>], block: usize, first: usize, answer: &mut Answer) {
    let n = answer.errors.len() / 3;
    let count = block.min(n - first);
    for at in 0..count {
        let i = first + at;
        for k in 0..2 {
            answer.errors[2 * i + k] = data(&outputs[k])[at];
            let [camera, point, weight] = [3, 4, 5].map(|array| data(&outputs[array + 3 * k]));
            let row = &mut answer.entries[(2 * i + k) * ROW..][..ROW];
            (0..CAMERA).for_each(|k| row[k] = camera[k * block + at]);
            (0..POINT).for_each(|k| row[CAMERA + k] = point[k * block + at]);
            row[ROW - 1] = weight[at];
        }
    }
    answer.errors[2 * n + first..][..count].copy_from_slice(&data(&outputs[2])[..count]);
    answer.entries[2 * ROW * n + first..][..count].copy_from_slice(&data(&outputs[9])[..count]);
}

/// By a program, block by block.
fn by_program(problem: &Problem, code: &Code, block: usize, answer: &mut Answer) {
    let blocks = problem.observations().div_ceil(block);
    let all = ProgramBatch::new(code)
        .limits(limits())
        .run(blocks, |at, inputs| set(problem, block, at * block, inputs));
    for (at, outputs) in all.into_iter().enumerate() {
        place(&outputs.expect("rows"), block, at * block, answer);
    }
}

pub(super) fn measured(rounds: usize, python: Option<&Path>) -> (Vec<Figures>, Traffic) {
    let problem = &Problem::new(SIZES);
    let program = with_rows(&compiled(NAME, &source(NAME)).program);
    let mut first = Vec::new();
    set(problem, BLOCK, 0, &mut first);
    let answers: Vec<RefCell<Answer>> =
        (0..2 + WAYS.len()).map(|_| RefCell::new(Answer::sized(problem))).collect();
    let mut answers = answers.iter();
    let mut answer = || answers.next().expect("one for each");
    let mut contest = Contest::default();
    let found = answer();
    let call = || plain(black_box(problem), &mut found.borrow_mut().errors);
    contest.enter(call, |()| ("plain value".into(), found.borrow().results()));
    let found = answer();
    let call = || by_tangents(black_box(problem), &mut found.borrow_mut());
    contest.enter(call, |()| ("DualN<15> by hand".into(), found.borrow().results()));
    for way in &WAYS {
        let code = Code::on(&(way.engine)(), &program);
        let who = way.who(&code.prepare(&first, &limits()), &limits());
        let found = answer();
        let call = move || by_program(black_box(problem), &code, BLOCK, &mut found.borrow_mut());
        contest.enter(call, |()| (who, found.borrow().results()));
    }
    let mut found = contest.race(rounds);
    // It computes no entries.
    found[0].results.truncate(1);
    if let Some(python) = python {
        let array = |shape: &[usize], data: Vec<f64>| Datum::Real(Tensor { shape: shape.to_vec(), data });
        let Problem { cameras, points, weights, seen } = problem;
        let inputs = [
            ("cameras", array(&[cameras.len(), CAMERA], cameras.concat())),
            ("points", array(&[points.len(), POINT], points.concat())),
            ("weights", array(&[weights.len()], weights.clone())),
            ("seen", array(&[seen.len(), 2], seen.concat())),
        ];
        let named: Vec<(&str, &Datum<f64>)> = inputs.iter().map(|(name, datum)| (*name, datum)).collect();
        found.extend(peers::all(python, NAME, &named, &[]));
    }
    let form = loops::lower(&program, &first, limits().trap_nonfinite).expect("a loop form");
    let blocks = problem.observations().div_ceil(BLOCK);
    (found, std::iter::repeat_n(form.traffic().1.traffic, blocks).fold(Traffic::default(), Add::add))
}

/// How far machine code's errors and entries are from those of tangents, and those from the plain function's
/// errors and their differences; for fewer observations, of which some have a camera that does not turn.
pub fn distances() -> [f64; 3] {
    let mut problem = Problem::new([7, 50, 300]);
    problem.cameras[3][..3].fill(0.0);
    let (mut ours, mut tangents) = (Answer::sized(&problem), Answer::sized(&problem));
    let program = with_rows(&compiled(NAME, &source(NAME)).program);
    by_program(&problem, &Code::on(&machine_code(When::Possible), &program), 64, &mut ours);
    by_tangents(&problem, &mut tangents);
    let errors_at = |problem: &Problem| {
        let mut errors = vec![0.0; tangents.errors.len()];
        plain(problem, &mut errors);
        errors
    };
    let moved = |k: usize, h: f64| {
        let Problem { mut cameras, mut points, mut weights, seen } = problem.clone();
        match k {
            ..CAMERA => cameras.iter_mut().for_each(|camera| camera[k] += h),
            _ if k < ROW - 1 => points.iter_mut().for_each(|point| point[k - CAMERA] += h),
            _ => weights.iter_mut().for_each(|weight| *weight += h),
        }
        errors_at(&Problem { cameras, points, weights, seen })
    };
    let n = problem.observations();
    let mut worst = 0.0_f64;
    for k in 0..ROW {
        let h = 1e-5;
        let differences: Vec<f64> =
            moved(k, h).iter().zip(moved(k, -h)).map(|(up, down)| (up - down) / (2.0 * h)).collect();
        let column = (0..2 * n).map(|row| tangents.entries[row * ROW + k]);
        let of_weights = tangents.entries[2 * ROW * n..].iter().map(|x| if k == ROW - 1 { *x } else { 0.0 });
        let column: Vec<f64> = column.chain(of_weights).collect();
        worst = worst.max(distance(&column, &differences));
    }
    let errors = distance(&ours.errors, &errors_at(&problem));
    [errors, distance(&ours.entries, &tangents.entries), worst]
}
