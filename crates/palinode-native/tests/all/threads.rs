//! One program is run by several threads at once: the bits are those of the interpreter, whoever compiles it
//! and whenever that is.

use std::thread;

use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{pal, passes, transform};
use palinode_native::{When, machine_code};

use crate::support::bits;

const SOURCE: &str = "
param a: [n] = [1, 2]
param k = 0.3
var u = a
for t in 0..50 {
    for i in 1..n { u[i] = 0.5 * sin(u[i]) + k * u[i - 1] }
    u[0] = cos(k * u[n - 1])
}
var s = k
while s < 3 { s += 0.2 + k * u[0]^2 }
loss y = s + sum(u * u)
";

#[test]
fn threads_that_share_a_program_get_the_same_bits() {
    let model = pal::compile(SOURCE).unwrap();
    let gradient = passes::simplify(&transform::value_and_grad(&model.program, &[0, 1]).unwrap());
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    // Several lengths: each has machine code of its own, more of them than are kept.
    let given = |length: usize, k: f64| {
        [Datum::vector((0..length).map(|i| 1.0 / (i + 1) as f64).collect()), Datum::real(k)]
    };
    for when in [When::Possible, When::Worthwhile] {
        let code = Code::on(&machine_code(when), &gradient);
        let of_interpreter = Code::new(&gradient);
        thread::scope(|scope| {
            for thread in 0..4 {
                let (code, of_interpreter) = (&code, &of_interpreter);
                scope.spawn(move || {
                    for turn in 0..40 {
                        let inputs = given(2 + (turn * 7 + thread) % 11, 0.1 + 0.01 * turn as f64);
                        let expected = of_interpreter.run(&inputs, &limits).unwrap();
                        let found = code.run(&inputs, &limits).unwrap();
                        let [expected, found] =
                            [expected, found].map(|all| all.iter().map(bits).collect::<Vec<_>>());
                        assert_eq!(expected, found, "{when:?}, thread {thread}, turn {turn}");
                    }
                });
            }
        });
    }
}

/// Errors of one thread are no errors of the others.
#[test]
fn a_run_that_stops_disturbs_no_other() {
    let model =
        pal::compile("param x = 1\nvar s = x\nfor i in 0..2000 { s = sin(s) / x }\nloss y = s").unwrap();
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    let code = Code::on(&machine_code(When::Possible), &model.program);
    let expected = Code::new(&model.program).run(&[Datum::real(1.0)], &limits).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (code, expected) = (&code, &expected);
            scope.spawn(move || {
                for _ in 0..50 {
                    let found = code.run(&[Datum::real(f64::from(thread % 2))], &limits);
                    match thread % 2 {
                        0 => assert_eq!(found.unwrap_err().code(), "PAL0260"),
                        _ => assert_eq!(&found.unwrap(), expected),
                    }
                }
            });
        }
    });
}
