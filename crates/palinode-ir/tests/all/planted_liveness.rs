//! Marks of last uses with a planted bug are caught: the run that updates in place differs from the one that
//! always copies, or stops.

use std::panic::{AssertUnwindSafe, catch_unwind};

use palinode_ir::Function;
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::liveness::{BlockMarks, InstMarks, mark};

use crate::pal::compile;

/// No guard for last uses: whatever is used, dies.
fn everything_dies(function: &Function) -> BlockMarks {
    fn spoil(marks: &mut BlockMarks) {
        marks.results_die.fill(true);
        for InstMarks { dies, blocks, .. } in &mut marks.insts {
            dies.fill(true);
            blocks.iter_mut().for_each(spoil);
        }
    }
    let mut marks = mark(function);
    spoil(&mut marks);
    marks
}

/// What a loop takes from around it dies in its first round.
fn captures_die(function: &Function) -> BlockMarks {
    fn spoil(marks: &mut BlockMarks, inside: bool) {
        for InstMarks { dies, blocks, .. } in &mut marks.insts {
            if inside {
                dies.fill(true);
            }
            blocks.iter_mut().for_each(|block| spoil(block, true));
        }
    }
    let mut marks = mark(function);
    spoil(&mut marks, false);
    marks
}

fn is_caught(source: &str, mark: fn(&Function) -> BlockMarks) -> bool {
    let program = compile(source).program;
    let inputs = [Datum::vector(vec![1.0, 2.0, 3.0, 4.0])];
    let expected = Code::always_copying(&program).run(&inputs, &Limits::default()).expect("runs");
    assert_eq!(Code::new(&program).run(&inputs, &Limits::default()), Ok(expected.clone()));
    let spoilt =
        catch_unwind(AssertUnwindSafe(|| Code::marked(&program, mark).run(&inputs, &Limits::default())));
    !matches!(spoilt, Ok(Ok(found)) if found == expected)
}

#[test]
fn a_missing_guard_is_caught() {
    let fork = "param x: [4]\nvar a = x * 2\nvar b = a\nb[0] = 5\nloss y = dot(a, b)";
    let rounds =
        "param x: [4]\nvar s = 0\nfor i in 0..4 {\n var a = x\n a[i] = 0\n s += sum(a * a)\n}\nloss s";
    let chain = "param x: [4]\nvar a = x * 2\na[0] = 5\nloss y = sum(a)";
    assert!(is_caught(fork, everything_dies));
    assert!(is_caught(rounds, everything_dies));
    assert!(is_caught(rounds, captures_die));
    // Where every use is the last, there is nothing to guard.
    assert!(!is_caught(chain, everything_dies));
}
