//! What the table of operations says of each is true of its runs, on all lists of operands that it takes.

use palinode_core::Key;
use palinode_ir::interp::{Datum, Tensor, run};
use palinode_ir::{Axis, Elem, FunctionBuilder, Kind, Linear, Op, Program, Type, transform, typing};
use std::collections::HashSet;

const TYPES: [Type; 7] = [
    Type::REAL,
    Type::array(Elem::F64, 1),
    Type::array(Elem::F64, 2),
    Type::INT,
    Type::array(Elem::Int, 1),
    Type::BOOL,
    Type::array(Elem::Bool, 1),
];

/// Numbers after which little is as usual.
const SPECIAL: [f64; 7] = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300, -1.5];

/// One of each name, and some with attributes.
fn operations() -> Vec<Op> {
    let access = |axis: Axis| [Op::Read(vec![axis]), Op::Write(vec![axis]), Op::AddAt(vec![axis])];
    let more = [Op::Broadcast(vec![0]), Op::Permute(vec![1, 0]), Op::Convert(Elem::Int)];
    Op::all()
        .into_iter()
        .chain(more)
        .chain([Axis::At, Axis::All, Axis::List].into_iter().flat_map(access))
        .collect()
}

/// A program that is one operation on its inputs.
fn alone(op: &Op, types: &[Type]) -> Option<Program> {
    typing::result_types(op, types).ok()?;
    let mut b = FunctionBuilder::new("main");
    let args: Vec<_> = types.iter().map(|&ty| b.param("x", ty)).collect();
    let results = b.emit_all(op.clone(), &args);
    b.finish_program(&results, &vec!["y"; results.len()]).ok()
}

/// Calls `f` with every operation and every list of operands that it takes, as a program.
pub(crate) fn each(mut f: impl FnMut(&Op, &[Type], &Program)) {
    for op in operations() {
        let mut lists: Vec<Vec<Type>> = vec![Vec::new()];
        for _ in 0..=4 {
            for types in &lists {
                if let Some(program) = alone(&op, types) {
                    f(&op, types, &program);
                }
            }
            let longer = |types: &Vec<Type>| TYPES.map(|ty| [&types[..], &[ty]].concat());
            lists = lists.iter().flat_map(longer).collect();
        }
    }
}

/// Three numbers along each axis; matrices that can be solved with, unless numbers are special.
fn datum(ty: Type, key: Key, special: bool) -> Datum<f64> {
    let count = 3_usize.pow(ty.rank.into());
    let real = |at: usize| match special {
        true => SPECIAL[key.below(SPECIAL.len() as u64, at as u64) as usize],
        false => key.gaussian(at as u64) * 0.3 + if ty.rank == 2 && at.is_multiple_of(4) { 4.0 } else { 0.0 },
    };
    let shape = vec![3; ty.rank.into()];
    let numbers = 0..count;
    match ty.elem {
        Elem::F64 | Elem::F32 => Datum::Real(Tensor { shape, data: numbers.map(real).collect() }),
        Elem::Int => {
            Datum::Int(Tensor { shape, data: numbers.map(|at| key.below(4, at as u64) as i64).collect() })
        }
        Elem::Bool => {
            Datum::Bool(Tensor { shape, data: numbers.map(|at| key.below(2, at as u64) == 0).collect() })
        }
    }
}

fn inputs(types: &[Type], seed: u64, special: bool) -> Vec<Datum<f64>> {
    let key = |at: usize| Key::from_seed(seed).split(at as u64);
    types.iter().enumerate().map(|(at, &ty)| datum(ty, key(at), special)).collect()
}

fn reals(data: &[Datum<f64>]) -> Vec<f64> {
    let one =
        |datum: &Datum<f64>| if let Datum::Real(tensor) = datum { tensor.data.clone() } else { Vec::new() };
    data.iter().flat_map(one).collect()
}

/// Which of `places` are real.
fn real_places(types: &[Type], from: usize, to: usize) -> Vec<usize> {
    (from..to.min(types.len())).filter(|&at| types[at].is_real()).collect()
}

/// Whether `f(x + 2 y) = f(x) + 2 f(y)` in these operands; nothing if the operation refuses its operands.
fn is_linear(program: &Program, types: &[Type], places: &[usize], seed: u64) -> Option<bool> {
    let (x, mut y) = (inputs(types, seed, false), inputs(types, !seed, false));
    let mut sum = x.clone();
    for at in 0..types.len() {
        match (&mut sum[at], &y[at]) {
            (Datum::Real(sum), Datum::Real(y)) if places.contains(&at) => {
                sum.data.iter_mut().zip(&y.data).for_each(|(x, y)| *x += 2.0 * y);
            }
            _ => y[at] = x[at].clone(),
        }
    }
    let [x, y, sum] = [x, y, sum].map(|inputs| run(program, &inputs).ok().map(|data| reals(&data)));
    let (x, y, sum) = (x?, y?, sum?);
    let close = |((x, y), sum): ((&f64, &f64), &f64)| (x + 2.0 * y - sum).abs() < 1e-9 * (1.0 + sum.abs());
    Some(x.iter().zip(&y).zip(&sum).all(close))
}

#[test]
fn what_is_linear_is() {
    let mut held: HashSet<&str> = HashSet::new();
    each(|op, types, program| {
        let places = match op.facts().linear {
            Linear::No => return,
            Linear::Jointly(from, to) => vec![real_places(types, from, to)],
            Linear::Each { .. } => vec![vec![0], vec![1]],
            Linear::WithEach { .. } => vec![vec![0, 1], vec![0, 2]],
        };
        let all = places.iter().filter(|places| !places.is_empty());
        for (places, seed) in all.flat_map(|places| (0..8).map(move |seed| (places, seed))) {
            let found = is_linear(program, types, places, seed);
            assert_ne!(found, Some(false), "`{}` of {types:?} in {places:?}", op.name());
            if found.is_some() {
                held.insert(op.name());
            }
        }
        if op.facts().linear == (Linear::Each { strong: true }) {
            let fill = |ty: Type, x: f64| datum(ty, Key::from_seed(0), false).map(|_| x);
            let product = run(program, &[fill(types[0], 0.0), fill(types[1], f64::INFINITY)]).unwrap();
            assert!(reals(&product).iter().all(|&x| x == 0.0), "`{}` is not strong", op.name());
        }
        if op.facts().linear == (Linear::WithEach { strong: true }) {
            let fill = |ty: Type, x: f64| datum(ty, Key::from_seed(0), false).map(|_| x);
            let of = [fill(types[0], 2.0), fill(types[1], 0.0), fill(types[2], f64::INFINITY)];
            let sum = run(program, &of).unwrap();
            assert!(reals(&sum).iter().all(|&x| x == 2.0), "`{}` is not strong", op.name());
        }
    });
    let missing =
        operations().into_iter().find(|op| op.facts().linear != Linear::No && !held.contains(op.name()));
    assert_eq!(missing, None, "never run");
}

#[test]
fn what_commutes_does_and_what_cannot_fail_does_not() {
    each(|op, types, program| {
        for seed in 0..8 {
            let special = seed % 2 == 0;
            let operands = inputs(types, seed, special);
            let found = run(program, &operands);
            assert!(op.facts().may_fail || found.is_ok(), "`{}` of {operands:?}: {found:?}", op.name());
            if op.facts().commutes {
                let swapped = alone(op, &[types[1], types[0]]).expect("takes both orders");
                let other = run(&swapped, &[operands[1].clone(), operands[0].clone()]);
                assert_eq!(format!("{found:?}"), format!("{other:?}"), "`{}` of {operands:?}", op.name());
            }
        }
    });
}

#[test]
fn what_computes_nothing_gives_what_was_there() {
    each(|op, types, program| {
        let facts = op.facts();
        if facts.computes || facts.kind == Kind::Literal || matches!(op, Op::Unpack(_)) {
            return;
        }
        let operands = inputs(types, 1, false);
        let Ok(found) = run(program, &operands) else { return };
        let there = reals(&operands);
        let is_there = |x: &f64| *x == 0.0 || there.iter().any(|y| x.to_bits() == y.to_bits());
        assert!(reals(&found).iter().all(is_there), "`{}` computes", op.name());
    });
}

#[test]
fn derivatives_stop_where_the_table_says_so_and_pass_what_is_linear() {
    each(|op, types, program| {
        let places = match op.facts().linear {
            Linear::Jointly(from, to) => real_places(types, from, to),
            Linear::No if op.facts().cuts => real_places(types, 0, types.len()),
            Linear::WithEach { .. } => real_places(types, 0, 2),
            Linear::No | Linear::Each { .. } => return,
        };
        let at = inputs(types, 1, false);
        let Ok(value) = run(program, &at) else { return };
        if places.is_empty() || reals(&value).is_empty() {
            return;
        }
        let mut moved = at.clone();
        let all = inputs(types, 2, false);
        places.iter().for_each(|&place| moved[place] = all[place].clone());
        let tangents = places.iter().map(|&place| all[place].clone());
        let jvp = transform::jvp(program, &places).unwrap();
        let found = reals(&run(&jvp, &at.into_iter().chain(tangents).collect::<Vec<_>>()).unwrap());
        let found = &found[reals(&value).len()..];
        let expected = match op.facts().cuts {
            true => vec![0.0; found.len()],
            false => reals(&run(program, &moved).unwrap()),
        };
        let close = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-9 * (1.0 + y.abs());
        assert!(found.iter().zip(&expected).all(close), "`{}`: {found:?}, not {expected:?}", op.name());
    });
}

#[test]
fn names_are_unique() {
    let mut seen = HashSet::new();
    Op::all().iter().for_each(|op| assert!(seen.insert(op.name()), "`{}` twice", op.name()));
}
