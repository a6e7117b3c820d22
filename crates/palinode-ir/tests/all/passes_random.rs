//! Every pass, on random programs: the same results, bit by bit.

use palinode_core::Dual;
use palinode_ir::interp::{Code, Datum, Limits, Stats};
use palinode_ir::passes::{self, Pass};
use palinode_ir::text::{parse, print};
use palinode_ir::{Block, Inst, Literal, Op, Program, verify};

use crate::random::Random;
use crate::random::programs::{Kind, inputs, program};
use crate::random_programs::from_environment;

type Outcome = Result<(Vec<Datum<f64>>, Stats), String>;

fn run(program: &Program, inputs: &[Datum<f64>]) -> Outcome {
    let limits = Limits { steps: 100_000, depth: 100, ..Limits::default() };
    Code::new(program).run_with_stats(inputs, &limits).map_err(|error| error.to_string())
}

/// Whether two numbers are the same; zeros of either sign are if `any_zero`.
fn same_number(a: f64, b: f64, any_zero: bool) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (any_zero && a == 0.0 && b == 0.0)
}

pub(crate) fn same(a: &Datum<f64>, b: &Datum<f64>, any_zero: bool) -> bool {
    match (a, b) {
        (Datum::Real(a), Datum::Real(b)) => {
            a.shape == b.shape && a.data.iter().zip(&b.data).all(|(&a, &b)| same_number(a, b, any_zero))
        }
        (Datum::Int(_) | Datum::Bool(_) | Datum::Real(_), _) => a == b,
    }
}

/// What is wrong with `after`, if it should do what `before` does.
fn difference(before: &Outcome, after: &Outcome, any_zero: bool) -> Option<String> {
    match (before, after) {
        (Err(_), _) => None,
        (Ok(_), Err(error)) => Some(format!("now there is an error: {error}")),
        (Ok((before, _)), Ok((after, _))) => {
            let at = before.iter().zip(after).position(|(a, b)| !same(a, b, any_zero))?;
            Some(format!("result {at} was {:?}, is {:?}", before[at], after[at]))
        }
    }
}

fn cases() -> u64 {
    from_environment("PALINODE_PROGRAMS", 100)
}

/// Every pass; taking fused operations apart needs some first.
pub(crate) fn all() -> Vec<(&'static str, Pass)> {
    let unfuse: Pass = |program| passes::unfuse(&passes::fuse(program));
    let others = passes::ALL.iter().filter(|(name, _)| *name != "unfuse").copied();
    others.chain([("unfuse of fuse", unfuse)]).collect()
}

fn seeds() -> impl Iterator<Item = (u64, usize, Kind)> {
    let kind = |seed: u64| if seed % 4 == 3 { Kind::Strong } else { Kind::Any };
    (0..cases()).map(move |seed| (seed, 4 + (seed % 40) as usize, kind(seed)))
}

#[test]
fn every_pass_keeps_every_result() {
    let (mut good, mut total) = (0, 0);
    let mut changed = vec![0; all().len()];
    for (seed, size, kind) in seeds() {
        let program = program(seed, size, kind);
        let mut random = Random::new(seed ^ 0xabc);
        let inputs: Vec<_> = (0..3).map(|_| inputs(&mut random)).collect();
        let before: Vec<Outcome> = inputs.iter().map(|inputs| run(&program, inputs)).collect();
        total += before.len();
        good += before.iter().filter(|outcome| outcome.is_ok()).count();
        for (at, (name, pass)) in all().iter().enumerate() {
            let result = pass(&program);
            verify(&result).unwrap_or_else(|invalid| panic!("{name}, seed {seed}: {invalid}"));
            changed[at] += usize::from(result != program);
            for (inputs, before) in inputs.iter().zip(&before) {
                if let Some(difference) = difference(before, &run(&result, inputs), kind == Kind::Strong) {
                    let (program, result) = (print(&program), print(&result));
                    panic!("{name}, seed {seed}: {difference}\n{inputs:?}\n{program}\nbecame\n{result}");
                }
            }
        }
    }
    println!("{good} of {total} runs without an error");
    assert!(good * 10 > total * 6, "{good} of {total} runs without an error");
    for ((name, _), changed) in all().iter().zip(changed) {
        println!("{name} changed {changed}");
        assert!(changed as u64 * 50 > cases(), "{name} changed only {changed} programs");
    }
}

/// Programs also run on numbers that carry derivatives, which must stay the same too (up to the sign of a
/// zero).
#[test]
fn every_pass_keeps_tangents() {
    let limits = Limits { steps: 100_000, depth: 100, ..Limits::default() };
    for (seed, size, kind) in seeds() {
        let program = program(seed + 2_000_000, size, kind);
        let inputs = inputs(&mut Random::new(seed));
        let mut direction = Random::new(seed);
        let inputs: Vec<Datum<Dual<f64>>> =
            inputs.iter().map(|datum| datum.map(|x| Dual::new(x, direction.below(5) as f64 - 2.0))).collect();
        let run = |program: &Program| {
            let data = Code::new(program).run(&inputs, &limits).ok()?;
            let parts =
                |part: fn(Dual<f64>) -> f64| data.iter().map(|datum| datum.map(part)).collect::<Vec<_>>();
            Some([parts(|x| x.value), parts(|x| x.tangent)])
        };
        let Some(before) = run(&program) else { continue };
        for (name, pass) in all() {
            let result = pass(&program);
            let after = run(&result).unwrap_or_else(|| panic!("{name}, seed {seed}: now there is an error"));
            for (before, after) in before.iter().flatten().zip(after.iter().flatten()) {
                if !same(before, after, true) {
                    let (text, result) = (print(&program), print(&result));
                    panic!("{name}, seed {seed}: {before:?} became {after:?}\n{text}\nbecame\n{result}");
                }
            }
        }
    }
}

/// The passes one after another: each sees what the others make.
#[test]
fn passes_in_any_order_keep_every_result() {
    for (seed, size, kind) in seeds() {
        let program = program(seed + 1_000_000, size, kind);
        let mut random = Random::new(seed);
        let inputs = inputs(&mut random);
        let before = run(&program, &inputs);
        let mut now = program;
        let mut trail = Vec::new();
        for _ in 0..8 {
            let (name, pass) = passes::ALL[random.below(passes::ALL.len())];
            let next = pass(&now);
            trail.push(name);
            if let Some(difference) = difference(&before, &run(&next, &inputs), kind == Kind::Strong) {
                panic!(
                    "{trail:?}, seed {seed}: {difference}\n{inputs:?}\n{}\nbecame\n{}",
                    print(&now),
                    print(&next)
                );
            }
            now = next;
        }
    }
}

#[test]
fn programs_are_printed_and_read_back() {
    for (seed, size, kind) in seeds() {
        let program = program(seed, size, kind);
        for program in [passes::simplify(&program), program] {
            let text = print(&program);
            let again = parse(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            assert_eq!(print(&again), text);
            assert_eq!(again, program);
        }
    }
}

#[test]
fn simplification_settles_and_is_deterministic() {
    let mut restless = 0;
    for (seed, size, kind) in seeds() {
        let program = program(seed, size, kind);
        let once = passes::simplify(&program);
        assert_eq!(once, passes::simplify(&program), "seed {seed}");
        restless += u64::from(passes::simplify(&once) != once);
    }
    println!("{restless} of {} changed when simplified again", cases());
    assert!(restless * 20 < cases(), "{restless}");
}

/// Passes do not make copies or fills necessary, and simplification as a whole should save most of them.
#[test]
fn memory_does_not_get_worse() {
    let cost = |stats: Stats| stats.elements_copied + stats.elements_filled;
    let mut totals = vec![(0, 0, 0); all().len()];
    for (seed, size, kind) in seeds() {
        // Dead code would hide what a live copy costs.
        let program = passes::dce(&program(seed, size, kind));
        let inputs = inputs(&mut Random::new(seed));
        let Ok((_, before)) = run(&program, &inputs) else { continue };
        for ((name, pass), total) in all().iter().zip(&mut totals) {
            let result = passes::dce(&pass(&program));
            let Ok((_, after)) = run(&result, &inputs) else { panic!("{name}, seed {seed}") };
            total.0 += cost(before);
            total.1 += cost(after);
            total.2 += u64::from(cost(after) > cost(before));
        }
    }
    for ((name, _), (before, after, worse)) in all().iter().zip(totals) {
        println!("{name}: {before} elements copied and filled before, {after} after, {worse} programs worse");
        // Operations that give their operand back unchanged (`concat` of one) share memory behind everyone's
        // back, and a fill that was reshaped may be filled again: rare, and gone once all passes have run.
        assert!(worse * 100 <= cases(), "{name}: {worse} programs need more");
        assert!(after <= before, "{name}");
        assert!(*name != "simplify" || after < before, "{after} of {before}");
    }
}

/// A wrong rewrite: changes the program at the first place it finds, and says whether there was one.
type Wrong = fn(&mut Block) -> bool;

fn first(block: &mut Block, change: &mut dyn FnMut(&mut Inst) -> bool) -> bool {
    block
        .insts
        .iter_mut()
        .any(|inst| change(inst) || inst.blocks.iter_mut().any(|block| first(block, change)))
}

fn rule(name: &str) -> Op {
    Op::rule(palinode_core::rules::Row::named(name).unwrap())
}

/// Changes the first instruction of a kind.
fn spoil(block: &mut Block, is: fn(&Inst) -> bool, change: fn(&mut Inst)) -> bool {
    first(block, &mut |inst| {
        let found = is(inst);
        if found {
            change(inst);
        }
        found
    })
}

/// What each pass could do wrong.
fn planted() -> Vec<(&'static str, Wrong)> {
    vec![
        ("fold: a difference the wrong way round", |block| {
            spoil(block, |inst| inst.op == rule("sub"), |inst| inst.args.swap(0, 1))
        }),
        ("fold: the other side of a branch", |block| {
            spoil(block, |inst| inst.op == Op::If, |inst| inst.blocks.swap(0, 1))
        }),
        ("fold: a carried value is its initial one", |block| {
            let carries = |inst: &Inst| matches!(inst.op, Op::For { .. }) && inst.args.len() > 1;
            spoil(block, carries, |inst| inst.blocks[0].results[0] = inst.args[1])
        }),
        ("identities: -0 is 0", |block| {
            let is = |inst: &Inst| inst.op == Op::Const(Literal::Real(-0.0));
            spoil(block, is, |inst| inst.op = Op::Const(Literal::Real(0.0)))
        }),
        ("identities: x - x is 0", |block| {
            let is = |inst: &Inst| inst.op == rule("sub") && inst.args[0] == inst.args[1];
            spoil(block, is, |inst| inst.op = rule("strong_mul"))
        }),
        ("identities: a read sees the version before a write", |block| {
            let mut writes = std::collections::HashMap::new();
            first(block, &mut |inst| {
                if matches!(inst.op, Op::Write(_)) {
                    writes.insert(inst.results[0], inst.args[0]);
                }
                let before = inst.args.first().and_then(|array| writes.get(array));
                let Some(&before) = before.filter(|_| matches!(inst.op, Op::Read(_))) else { return false };
                inst.args[0] = before;
                true
            })
        }),
        ("cse: abs(x) is neg(x)", |block| {
            spoil(block, |inst| inst.op == rule("abs"), |inst| inst.op = rule("neg"))
        }),
        ("dce: an update is not needed", |block| {
            let updates = |inst: &Inst| matches!(inst.op, Op::AddAt(_) | Op::Write(_));
            spoil(block, updates, |inst| {
                inst.args.truncate(1);
                inst.op = Op::StopGradient;
            })
        }),
        ("unroll: the rounds in the other order", |block| {
            first(block, &mut |inst| {
                let Op::For { descending, .. } = &mut inst.op else { return false };
                *descending = !*descending;
                true
            })
        }),
        ("unroll: a literal is one more", |block| {
            first(block, &mut |inst| {
                let Op::Const(Literal::Int(number)) = &mut inst.op else { return false };
                *number += 1;
                true
            })
        }),
        ("counted: something is pushed twice", |block| {
            spoil(block, |inst| inst.op == Op::Push, |inst| inst.args.push(inst.args[1]))
        }),
        ("logs: the entries in the other order", |block| {
            let is_log = |inst: &Inst| inst.op == Op::Push;
            first(block, &mut |inst| {
                let logs = inst.blocks.iter().any(|block| block.insts.iter().any(is_log));
                let Op::For { descending, .. } = &mut inst.op else { return false };
                *descending ^= logs;
                logs
            })
        }),
        ("fuse: min for add", |block| {
            spoil(block, |inst| inst.op == rule("add"), |inst| inst.op = rule("min"))
        }),
        ("inline: the wrong argument", |block| {
            let is = |inst: &Inst| inst.op == rule("mul") && inst.args[0] != inst.args[1];
            spoil(block, is, |inst| inst.args[0] = inst.args[1])
        }),
    ]
}

#[test]
fn wrong_rewrites_are_caught() {
    for (name, wrong) in planted() {
        let mut caught = 0;
        for (seed, size) in (0..400).map(|seed| (seed, 4 + (seed % 40) as usize)) {
            let program = program(seed, size, Kind::Any);
            let mut changed = program.clone();
            if !wrong(&mut changed.functions[0].body) || verify(&changed).is_err() {
                continue;
            }
            let mut random = Random::new(seed);
            let found = (0..3).any(|_| {
                let inputs = inputs(&mut random);
                difference(&run(&program, &inputs), &run(&changed, &inputs), false).is_some()
            });
            caught += usize::from(found);
            if caught == 3 {
                break;
            }
        }
        println!("{name}: caught in {caught} programs");
        assert!(caught > 0, "{name} was not caught");
    }
}

/// Blocks nested as deep as a text may nest them.
#[test]
fn deep_programs_do_not_overflow_the_stack() {
    let depth = 128;
    let open: String = (0..depth)
        .map(|k| {
            let round =
                format!("y{k} = for i{k} in n (s{k}: f64[_] = a) {{ c{k} = const 2.0 t{k} = mul x, c{k} ");
            let choice = format!("y{k} = if b {{ t{k} = mul x, x ");
            if k % 2 == 0 { round } else { choice }
        })
        .collect();
    let mut text =
        format!("entry fn f(a: f64[_], x: f64, n: int, b: bool) -> (f64[_]) outputs (y) {{ {open}");
    text.push_str("yield a ");
    for k in (0..depth).rev() {
        let other = if k % 2 == 0 { "" } else { "else { yield a } " };
        text.push_str(&format!("}} {other}w{k} = write y{k}[n], x yield w{k} "));
    }
    text.push('}');
    let program = parse(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    for (_, pass) in all() {
        pass(&program);
    }
}

#[test]
fn passes_have_names() {
    let names: Vec<&str> = passes::pipeline().map(|(name, _)| name).collect();
    assert_eq!(names[0], "unfuse");
    let all: std::collections::HashMap<&str, Pass> = passes::ALL.iter().copied().collect();
    assert!(names.iter().all(|name| all.contains_key(name)));
}
