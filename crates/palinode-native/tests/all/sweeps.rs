//! Sweeps that turn have the same bits, and as many steps, in machine code.

use crate::support::{Outcome, compare, defaults};
use palinode_ir::{Keep, Op, pal, passes, transform};

/// Numbers; one loop after the other; arrays that are captured, or changed in the turn; a loop in a loop; a
/// loop that counts down.
const SOURCES: [&str; 6] = [
    "param x0 = 0.3\ninput n: int\nvar x = x0\nfor k in 0..n { x = sin(x) + 0.01 * k }\nloss l = x * x",
    "param x0 = 0.3\ninput n: int\nvar x = x0\nfor k in 0..n { x = sin(x) }\n\
     for k in 0..n { x = cos(x) + 0.01 * k }\nvar y = x\nfor k in 0..3 { y = y * x }\nloss l = x + y",
    "param w: [4, 4] = fill(0.2, 4, 4)\ninput n: int\nvar h = w[0, ..]\nfor k in 0..n { h = tanh(w @ h) + 0.1 * w[k % 4, ..] }\n\
     h[1] = h[2] * h[1]\nvar g = w @ h\ng[0] = sum(h)\nloss l = sum(g * g)",
    "param u0: [8] = fill(0.4, 8)\ninput n: int\nvar u = u0\nvar e = 0\nfor k in 0..n {\n var next = u\n \
     for i in 1..7 { next[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1] * u[i]) }\n u = next\n e += u[3]\n}\nloss l = sum(u * u) + e",
    "param p = 0.9\ninput n: int\nvar t = p\nfor i in 0..n {\n var x = t\n for j in 0..i + 2 { x = sin(p * x) + 0.1 * j }\n t = x\n}\nloss l = t * t",
    "param a: [5] = fill(0.5, 5)\ninput n: int\nvar x = a[0]\nfor k in 0..n reversed { x = x * a[k % 5] + 0.1 }\n\
     var b = a\nb[2] = x * b[1]\nloss l = x * sum(b * b)",
];

#[test]
fn turns_are_compiled() {
    for source in SOURCES {
        let program = pal::compile(source).unwrap_or_else(|errors| panic!("{source}: {errors:?}")).program;
        for snapshots in [1, 5] {
            let kept = transform::keeping(&program, &|_| Some(Keep::Snapshots(snapshots)));
            let gradient = transform::value_and_grad(&kept, &[0]).unwrap();
            let turns = |inst: &palinode_ir::Inst| matches!(inst.op, Op::Sweep { turns: true, .. });
            assert!(gradient.count(turns) > 0, "{source}");
            for rounds in [0, 1, 2, 17] {
                let at_rounds =
                    pal::compile(&source.replace("n: int", &format!("n: int = {rounds}"))).unwrap();
                let data = defaults(&at_rounds).expect("every argument has a default");
                for gradient in [&gradient, &passes::simplify(&gradient)] {
                    for traps in [true, false] {
                        let outcome = compare(gradient, &data, traps);
                        assert_eq!(
                            outcome,
                            Ok(Outcome::Same),
                            "{rounds} rounds, {snapshots} snapshots\n{source}"
                        );
                    }
                }
            }
        }
    }
}
