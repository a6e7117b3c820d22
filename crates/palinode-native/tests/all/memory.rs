//! What machine code takes is what it says: before the run, after it, and to the allocator. A budget of so
//! many bytes is enough for it, and with one byte less the interpreter decides what happens.

use palinode_core::{Budget, points};
use palinode_ir::interp::{Chosen, Code, Datum, Limits, Stats};
use palinode_ir::{Keep, Program, passes, transform};
use palinode_native::{When, machine_code};

use crate::counting::{ALL, measured};
use crate::support::{bits, each_example};

type Ran = Option<(Vec<Datum<f64>>, Stats)>;

/// Runs it as often as it takes for nothing to be made any more; the last run, its peak, and its calls of the
/// allocator.
fn settled(code: &Code, inputs: &[Datum<f64>], limits: &Limits) -> (Ran, usize, usize) {
    for _ in 0..2 {
        let _ = code.run(inputs, limits);
    }
    let (ran, taken) = measured(|| code.run_with_stats(inputs, limits));
    (ran.ok(), taken[ALL].peak, taken[ALL].calls)
}

/// The programs of an example, those with few snapshots among them.
fn family(program: &Program, wrt: &[usize]) -> Vec<(String, Program)> {
    let mut all = vec![("value".to_string(), passes::simplify(&passes::inline(program)))];
    let mut add = |name: String, program: &Program| {
        if let Ok(gradient) = transform::value_and_grad(program, wrt) {
            all.push((name, passes::simplify(&gradient)));
        }
    };
    add("gradient".to_string(), program);
    for snapshots in [1, 3] {
        let few = transform::keeping(program, &|_| Some(Keep::Snapshots(snapshots)));
        add(format!("gradient, {snapshots} snapshots"), &few);
    }
    all
}

#[test]
fn what_is_said_is_what_the_allocator_sees() {
    let engine = machine_code(When::Possible);
    let (mut ran_natively, mut within_budgets) = (0, 0);
    let mut wrong = Vec::new();
    each_example(|name, model, inputs, wrt| {
        for (what, program) in family(&model.program, wrt) {
            let case = format!("{name}, {what}");
            let limits = Limits::default();
            let code = Code::on(&engine, &program);
            let Chosen::Machine { bytes, .. } = code.prepare(inputs, &limits) else { continue };
            // The first run makes the workspace, too.
            let (first, taken) = measured(|| code.run_with_stats(inputs, &limits));
            let Ok((outputs, stats)) = first else { continue };
            if !stats.by_machine {
                continue;
            }
            ran_natively += 1;
            if stats.heap_bytes < bytes {
                wrong.push(format!("{case}: {} in the end, {bytes} said before", stats.heap_bytes));
            }
            // Kernels that the interpreter does take memory of its own, so that no budget is kept by them.
            let within = |bytes: usize| Limits { budget: Budget::from(bytes), ..limits };
            let (within_it, taken_within) =
                measured(|| code.run_with_stats(inputs, &within(stats.heap_bytes)));
            let is_by_machine = within_it.as_ref().is_ok_and(|(_, stats)| stats.by_machine);
            let has_kernels = code.prepare(inputs, &within(usize::MAX - 1)) != code.prepare(inputs, &limits);
            if has_kernels {
                continue;
            }
            within_budgets += 1;
            if !is_by_machine {
                wrong.push(format!("{case}: {} bytes are not enough", stats.heap_bytes));
            }
            for (what, peak) in [("in the first run", taken[ALL].peak), ("within", taken_within[ALL].peak)] {
                if peak > stats.heap_bytes {
                    wrong.push(format!("{case}: {peak} bytes {what}, {} said", stats.heap_bytes));
                }
            }
            // It is no wide estimate either.
            if taken[ALL].peak + 1024 + stats.heap_bytes / 8 < stats.heap_bytes {
                wrong.push(format!("{case}: {} bytes, {} said", taken[ALL].peak, stats.heap_bytes));
            }
            // One byte less: the interpreter, which takes what it takes.
            let less = stats.heap_bytes - 1;
            let (left, taken) = measured(|| code.run_with_stats(inputs, &within(less)));
            if let Ok((again, stats)) = left {
                if taken[ALL].peak > less {
                    wrong.push(format!("{case}: {} bytes within {less}", taken[ALL].peak));
                }
                if stats.by_machine {
                    wrong.push(format!("{case}: {less} bytes are enough, too"));
                }
                assert_eq!(
                    again.iter().map(bits).collect::<Vec<_>>(),
                    outputs.iter().map(bits).collect::<Vec<_>>()
                );
            }
        }
    });
    println!("{ran_natively} programs, {within_budgets} within budgets");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran_natively > 100 && within_budgets > 80, "{ran_natively} programs, {within_budgets} within");
}

#[test]
fn later_calls_allocate_nothing_but_their_results() {
    let engine = machine_code(When::Possible);
    let (mut wrong, mut count) = (Vec::new(), 0);
    each_example(|name, model, inputs, wrt| {
        for (what, program) in family(&model.program, wrt) {
            let code = Code::on(&engine, &program);
            let limits = Limits { trap_nonfinite: true, ..Limits::default() };
            let (Some((outputs, stats)), _, calls) = settled(&code, inputs, &limits) else { continue };
            if !stats.by_machine
                || code.prepare(inputs, &within_some(&limits)) != code.prepare(inputs, &limits)
            {
                continue;
            }
            count += 1;
            let (copies, taken) = measured(|| outputs.clone());
            drop(copies);
            // References to inputs are kept beside the stack where there are many.
            let expected = taken[ALL].calls + usize::from(inputs.len() > 8);
            if calls != expected {
                wrong
                    .push(format!("{name}, {what}: {calls} calls of the allocator, results take {expected}"));
            }
        }
    });
    println!("{count} programs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 80, "{count}");
}

/// The same with a budget that is enough for anything.
fn within_some(limits: &Limits) -> Limits {
    Limits { budget: Budget::from(usize::MAX - 1), ..*limits }
}

/// Comparisons that are suspicious are seen in machine code as they are in the interpreter, and it is machine
/// code that runs the program again beside them.
#[test]
fn suspicious_decisions_are_seen_natively() {
    let source = "param x = 0.5\nvar s = x\nfor i in 0..100 { if s <= 0.5 { s = s + 0.0 * i } else { s = s * 0.5 } }\nloss y = s";
    let model = palinode_ir::pal::compile(source).unwrap();
    let program = passes::simplify(&passes::inline(&model.program));
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    let on = [Code::new(&program), Code::on(&machine_code(When::Possible), &program)];
    for (x, is_tie) in [(0.5, true), (0.4, false), (0.5000001, false)] {
        let inputs = [Datum::real(x)];
        for code in &on {
            let is_native = code.prepare(&inputs, &limits) != Chosen::Interpreter;
            let (ran, suspicious) = points::suspicious([x], || code.run_with_stats(&inputs, &limits));
            let (_, stats) = ran.unwrap();
            assert_eq!((suspicious, stats.by_machine), (is_tie, is_native), "{x}");
            // As the command does: the run at the point, then those beside it.
            let mut at = Vec::new();
            let of = (points::Parts::Along, 1);
            let verified = points::verified::<f64, _, palinode_core::Error>(&[x], of, |point, parts| {
                let (outputs, stats) = code.run_with_stats(&[Datum::real(point[0])], &limits).unwrap();
                assert_eq!(stats.by_machine, is_native);
                at.push(point[0]);
                if let Some(parts) = parts {
                    parts.push(1.0);
                }
                Ok(outputs)
            });
            assert!(verified.is_ok());
            assert_eq!(at.len() > 1, is_tie, "{x}: {at:?}");
        }
    }
}
