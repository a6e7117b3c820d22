//! Calls that stay calls: deep call graphs take time and memory in proportion to what is written, not to what
//! it would be without functions, and their derivatives are those of the same program without functions, to
//! second order.

use crate::agree::{check, flat, run_on};
use crate::random::Random;
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::plan::{fit_gradient, predict};
use palinode_ir::transform::Storage;
use palinode_ir::{
    Block, Comparison, FuncId, Function, Inst, Literal, Op, Program, Span, Type, Value, passes, transform,
};

/// `f(n)` calls `f(n - 1)` twice: what is written has a few lines, what is meant `2^n`.
fn doubling(levels: usize, second: &str) -> Program {
    let mut source = "param x = 0.3\nfn f0(u) { return sin(u) * u }\n".to_string();
    for level in 1..=levels {
        let below = level - 1;
        source += &format!("fn f{level}(u) {{ return f{below}(u) + f{below}({second}) }}\n");
    }
    source += &format!("loss end = f{levels}(x)\n");
    compiled(&source)
}

#[test]
fn twenty_levels_of_two_calls_each() {
    let levels = 20;
    let program = doubling(levels, "u / 2");
    assert!(passes::inline(&program).size() < 20_000);
    let gradient = transform::value_and_grad(&program, &[0]).expect("is differentiable");
    let second = transform::hessian(&program, &[0]).expect("is differentiable");
    assert!(gradient.size() < 100_000, "{} instructions", gradient.size());
    assert!(second.size() < 600_000, "{} instructions", second.size());
    // The closed form: a binomial sum over how often the argument was halved. Its terms are positive, so
    // nothing cancels.
    let (x, mut weight) = (0.3_f64, 1.0_f64);
    let mut expected = [0.0; 3];
    for halvings in 0..=levels {
        let scale = 0.5_f64.powi(halvings as i32);
        let u = x * scale;
        let of_u = [u.sin() * u, u.cos() * u + u.sin(), 2.0 * u.cos() - u * u.sin()];
        for (order, of_u) in of_u.into_iter().enumerate() {
            expected[order] += weight * of_u * scale.powi(order as i32);
        }
        weight *= (levels - halvings) as f64 / (halvings + 1) as f64;
    }
    let inputs = [Datum::real(x)];
    let found = flat(&run_on(&passes::simplify(&gradient), &inputs, "the gradient").unwrap());
    let curvature = flat(&run_on(&passes::simplify(&second), &inputs, "the second derivative").unwrap());
    // A million terms, each rounded a few times, all of one sign.
    for (found, expected) in found.iter().chain(&curvature).zip(expected) {
        assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} instead of {expected}");
    }
}

#[test]
fn plans_of_deep_calls() {
    let program = doubling(20, "u / 2");
    let inputs = [Datum::real(0.3)];
    let fitted =
        fit_gradient(&program, &[0], &inputs, 8, &Storage::default(), palinode_core::Budget::UNLIMITED)
            .expect("can be planned");
    let (_, stats) = Code::new(&fitted.program).run_with_stats(&inputs, &Limits::default()).unwrap();
    assert_eq!(stats.peak_bytes as u64, fitted.prediction.peak);
}

/// The law on calls that are too many to be written out, naturally.
#[test]
fn wide_call_graphs_agree_to_second_order() {
    let program = doubling(13, "u * 0.4 + 0.2");
    assert!(program.size() < 1000 && calls(&passes::inline(&program)) > 0, "calls are left");
    let covered = check(&program, &[Datum::real(0.3)], &[0]).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(covered.first_order && covered.second_order);
}

fn calls(program: &Program) -> usize {
    program.count(|inst| matches!(inst.op, Op::Call(_)))
}

/// A random source whose functions call those above them, in loops and branches, with arrays and several
/// results. No value is given to a function twice in one call. Without `loops`, no loop is around a call.
fn call_graph(seed: u64, loops: bool) -> String {
    let mut random = Random::new(seed);
    let mut source = "param x = 0.4\nparam y = -0.7\nparam p: [3] = [0.2, -0.5, 0.9]\n".to_string();
    let number = |random: &mut Random| format!("{}.{}", random.below(2), random.below(9) + 1);
    let (levels, width) = (2 + random.below(3), 1 + random.below(2));
    // Of each kind there is one to start from: a scalar of scalars, an array of an array, a pair.
    source += "fn s0(u, v) { return sin(u) * v + 0.3 * u }\n";
    source += "fn a0(b, t) {\n var c = b\n c[1] = tanh(c[0] * t)\n return c * 0.8 + b[2]\n}\n";
    source += "fn d0(u, v) { return u * cos(v), u - 0.5 * v }\n";
    let mut made = 1;
    for _ in 0..levels {
        let below = made;
        for _ in 0..width {
            let pick = |random: &mut Random| random.below(below);
            let line = |random: &mut Random| {
                let (k, a, b) = (pick(random), number(random), number(random));
                match random.below(if loops { 6 } else { 4 }) {
                    0 => format!(" s = s * 0.6 + s{k}(s * {a}, v + {b})\n"),
                    4 => format!(
                        " for i{made}_{} in 0..2 {{ s = 0.5 * s + 0.2 * s{k}(s + {a}, {b} * v) }}\n",
                        random.below(1000)
                    ),
                    2 => format!(
                        " if s > {a} {{ s = s0(s * {b}, v + s) }} else {{ s = s - 0.5 * s{k}(v * {a}, s + {b}) }}\n"
                    ),
                    3 => format!(
                        " let q{0}, r{0} = d{k}(s * {a}, v + {b})\n s = 0.5 * q{0} + r{0} * v\n",
                        random.below(100_000)
                    ),
                    1 => format!(" s += 0.1 * sum(a{k}([s, v * {a}, {b}], u + {a}))\n"),
                    _ => format!(
                        " var w{0} = 0\n while w{0} < 2 {{ s = 0.4 * s + 0.3 * s{k}(s * {a}, v * {b})\n w{0} += 1 }}\n",
                        random.below(100_000)
                    ),
                }
            };
            let (one, two) = (line(&mut random), line(&mut random));
            let three = line(&mut random);
            source += &format!("fn s{made}(u, v) {{\n var s = u * 0.9\n{one}{two} return s + 0.1 * u\n}}\n");
            let (k, l) = (random.below(below), random.below(below));
            let head = if loops { "for j in 0..3" } else { "let j = 1\n if t < 9" };
            source += &format!(
                "fn a{made}(b, t) {{\n var c = a{k}(b * 0.7, t + 0.1)\n {head} {{ c[j] = c[j] * 0.5 + 0.2 * s{l}(b[j] * t, c[j] + 0.3) }}\n \
                 return c\n}}\n"
            );
            source +=
                &format!("fn d{made}(u, v) {{\n var s = v * 0.9\n{three} return s * u, s - 0.2 * v\n}}\n");
            made += 1;
        }
    }
    let top = made - 1;
    source += &format!("let m, n = d{top}(x * 0.8, y + 0.1)\n");
    source += &format!("loss end = s{top}(x + 0.1, y * 0.9) + sum(a{top}(p * 0.5, x * 1.1)) + m * n\n");
    source
}

/// The same program with every function calling itself, in a branch that is never taken: a recursive function
/// stays a function.
fn kept(program: &Program) -> Program {
    let mut program = program.clone();
    for (at, function) in program.functions.iter_mut().enumerate() {
        if at != program.entry.index() {
            call_itself(function, FuncId(at as u32));
        }
    }
    palinode_ir::verify(&program).expect("is valid");
    program
}

fn call_itself(function: &mut Function, id: FuncId) {
    let Some(&scalar) = function.body.params.iter().find(|&&param| function.ty(param) == Type::REAL) else {
        return;
    };
    let [square, bound, never] = [Type::REAL, Type::REAL, Type::BOOL].map(|ty| function.fresh(ty, None));
    let place = Span::NONE;
    let results = function.body.results.clone();
    let mut fresh =
        || -> Vec<Value> { results.iter().map(|&value| function.fresh(function.ty(value), None)).collect() };
    let (again, out) = (fresh(), fresh());
    let insts = [
        Inst::new(Op::rule(palinode_core::rules::Row::Multiply), vec![scalar, scalar], vec![square], place),
        Inst::new(Op::Const(Literal::Real(-1.0)), vec![], vec![bound], place),
        Inst::new(Op::Compare(Comparison::Less), vec![square, bound], vec![never], place),
    ];
    let call = Inst::new(Op::Call(id), function.body.params.clone(), again.clone(), place);
    let mut branch = Inst::new(Op::If, vec![never], out.clone(), place);
    branch.blocks = vec![
        Block { params: vec![], insts: vec![call], results: again },
        Block { params: vec![], insts: vec![], results },
    ];
    function.body.insts.extend(insts);
    function.body.insts.push(branch);
    function.body.results = out;
}

fn point() -> Vec<Datum<f64>> {
    vec![Datum::real(0.4), Datum::real(-0.7), Datum::vector(vec![0.2, -0.5, 0.9])]
}

fn compiled(source: &str) -> Program {
    crate::pal::compile(source).program
}

#[test]
fn random_call_graphs_agree_to_second_order() {
    let count = crate::random_programs::from_environment("PALINODE_PROGRAMS", 10);
    let mut second_order = 0;
    for seed in 0..count {
        let source = call_graph(seed, true);
        let program = kept(&compiled(&source));
        assert!(calls(&passes::inline(&program)) > 0);
        let covered = check(&program, &point(), &[0, 1, 2])
            .unwrap_or_else(|failure| panic!("{seed}: {failure}\n{source}"));
        assert!(covered.first_order, "{seed}: {source}");
        second_order += usize::from(covered.second_order);
        // A plan of it says what the run takes, or why it cannot.
        let gradient = passes::simplify(&transform::value_and_grad(&program, &[0, 1, 2]).unwrap());
        let (_, stats) = Code::new(&gradient).run_with_stats(&point(), &Limits::default()).unwrap();
        match predict(&gradient, &point(), 8) {
            Ok(prediction) => assert_eq!(prediction.peak, stats.peak_bytes as u64, "{seed}: {source}"),
            Err(error) => assert!(error.to_string().starts_with("PAL04"), "{seed}: {error}"),
        }
    }
    assert!(second_order as f64 > 0.9 * count as f64);
}

/// Where nothing can be moved out of a loop around a call, it is the same sums in the same order.
#[test]
fn gradients_have_the_same_bits_whether_calls_stay_or_not() {
    for seed in 0..50 {
        let source = call_graph(seed, false);
        let program = compiled(&source);
        let bits = |program: &Program| {
            let gradient = transform::value_and_grad(program, &[0, 1, 2]).expect("is differentiable");
            let found = flat(&run_on(&gradient, &point(), "the gradient").unwrap());
            // Accumulators start from 0, so that the sign of a zero may differ.
            found.into_iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<u64>>()
        };
        assert_eq!(bits(&program), bits(&kept(&program)), "{seed}: {source}");
    }
}
