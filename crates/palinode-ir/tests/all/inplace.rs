//! Arrays that are updated in place, forwards and backwards: nothing is copied, and an update costs the same
//! however long the array. Also what a recorded run writes down.

use palinode_core::{Var, grad};
use palinode_ir::interp::{Code, Datum, Event, Limits, Stats};
use palinode_ir::plan::predict;
use palinode_ir::{Program, pal, passes, transform};

/// Both directions, simplified.
fn directions(source: &str) -> [(&'static str, Program); 2] {
    let model = pal::compile(source).unwrap_or_else(|problems| panic!("{problems:?}"));
    let gradient = transform::value_and_grad(&model.program, &[0]).expect("it has a gradient");
    [("value", passes::simplify(&model.program)), ("gradient", passes::simplify(&gradient))]
}

fn recorded(program: &Program, inputs: &[Datum<f64>]) -> (Vec<Datum<f64>>, Stats) {
    let (outputs, stats, _) = Code::new(program).run_recorded(inputs, &Limits::default()).unwrap();
    (outputs, stats)
}

/// The gradient with respect to the first input, on the tape.
fn on_the_tape(program: &Program, inputs: &[Datum<f64>]) -> Vec<f64> {
    let code = Code::new(program);
    let f = |x: &[Var<f64>]| {
        let mut given: Vec<Datum<Var<f64>>> = inputs.iter().map(Datum::lift).collect();
        let mut at = 0;
        given[0] = given[0].map(|_| {
            at += 1;
            x[at - 1]
        });
        code.run(&given, &Limits::default()).unwrap()[0].as_real().unwrap()
    };
    grad(f, inputs[0].as_vector().unwrap()).unwrap()
}

fn assert_close(name: &str, found: &[f64], expected: &[f64]) {
    let scale = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    assert_eq!(found.len(), expected.len(), "{name}");
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-12 * scale, "{name}: element {at} is {a}, the tape says {b}");
    }
}

/// What the standard cases of in-place code look like.
const CASES: [(&str, &str); 5] = [
    (
        "a dynamic-programming table",
        "param a: [n]\ninput gap\nvar d = zeros(n + 1, n + 1)\nfor i in 0..n + 1 { d[i, 0] = gap * i }\n\
         for j in 0..n + 1 { d[0, j] = gap * j }\nfor i in 0..n { for j in 0..n {\n\
         d[i + 1, j + 1] = min(d[i, j] + (a[i] - a[n - 1 - j])^2, d[i, j + 1] + gap, d[i + 1, j] + gap)\n} }\nloss y = d[n, n]",
    ),
    (
        "a prefix recurrence",
        "param a: [n]\ninput gap\nvar p = a\nfor k in 1..n { p[k] = sin(p[k]) + gap * p[k - 1] * p[k] }\nloss y = sum(p)",
    ),
    (
        "a Gauss-Seidel sweep",
        "param a: [n]\ninput gap\nvar u = zeros(n)\nfor s in 0..5 { for k in 1..n - 1 {\n\
         u[k] = (a[k] + tanh(u[k - 1]) * gap + u[k + 1] * u[k]) / 3\n} }\nloss y = sum(u)",
    ),
    (
        "a heat step in place",
        "param a: [n]\ninput gap\nvar u = a\nfor s in 0..5 {\nvar left = u[0]\nfor k in 1..n - 1 {\nlet old = u[k]\n\
         u[k] = old + gap * old * (left - 2 * old + u[k + 1])\nleft = old\n} }\nloss y = sum(u)",
    ),
    (
        "a bubble of swaps",
        "param a: [n]\ninput gap\nvar b = a\nfor s in 0..n { for k in 0..n - 1 {\nif b[k] > b[k + 1] {\nlet t = b[k]\nb[k] = b[k + 1] * gap\n\
         b[k + 1] = t\n} } }\nvar y = 0.0\nfor k in 0..n { y += b[k] * k }\nloss z = y",
    ),
];

#[test]
fn standard_cases_copy_nothing() {
    for (name, source) in CASES {
        let [(_, value), (_, gradient)] = directions(source);
        for n in [5, 24] {
            let a = (0..n).map(|k| f64::from((k * 7919 + 13) % 101) / 101.0).collect();
            let inputs = [Datum::vector(a), Datum::real(0.3)];
            // The plan says so before anything runs.
            for program in [&value, &gradient] {
                let plan = predict(program, &inputs, 8).expect("nothing but branches depends on data");
                assert_eq!(plan.copies, [], "{name}");
            }
            let (_, forwards) = recorded(&value, &inputs);
            let (found, backwards) = recorded(&gradient, &inputs);
            for stats in [forwards, backwards] {
                assert_eq!((stats.elements_copied, stats.elements_flattened), (0, 0), "{name}: {stats:?}");
                assert_eq!(stats.elements_added, 0, "{name}: {stats:?}");
            }
            assert_close(name, found[1].as_vector().unwrap(), &on_the_tape(&value, &inputs));
        }
    }
}

/// What updates cost beyond what a run costs without any.
fn by_updates(program: &Program, length: usize, updates: usize) -> [u64; 6] {
    let inputs = |updates: usize| {
        let places =
            |factor: usize| Datum::ints((0..updates).map(|at| (at * factor % length) as i64).collect());
        let start = (0..length).map(|at| 0.5 + (at % 10) as f64 / 10.0).collect();
        [Datum::vector(start), places(7919), places(104_729)]
    };
    let counts = |updates: usize| {
        let (_, stats) = recorded(program, &inputs(updates));
        [
            stats.elements_copied,
            stats.elements_flattened,
            stats.elements_zeroed,
            stats.elements_added,
            stats.elements_filled,
            stats.instructions,
        ]
    };
    let (some, none) = (counts(updates), counts(0));
    core::array::from_fn(|at| some[at] - none[at])
}

#[test]
fn the_length_of_the_array_does_not_matter() {
    let source = include_str!("../../../../examples/inplace.pal");
    for (name, program) in directions(source) {
        let expected = by_updates(&program, 100, 2000);
        assert_eq!(expected[..5], [0; 5], "{name}");
        for length in [1000, 10_000] {
            assert_eq!(by_updates(&program, length, 2000), expected, "{name}, {length} elements");
        }
    }
    // The reading that makes it matter: the array is needed as it was.
    let forked = "param a: [m]\ninput i: int [n]\ninput j: int [n]\nvar b = a\nvar s = 0.0\nfor k in 0..n {\nlet old = b\n\
                  b[i[k]] = b[j[k]] / 2\ns += dot(old, b)\n}\nloss y = s";
    let [(_, value), _] = directions(forked);
    assert!(by_updates(&value, 1000, 20)[0] >= 1000);
}

#[test]
fn recorded_runs_say_what_memory_depends_on() {
    let source = "param a: [3] = [1, 2, 3]\ninput n: int = 2\nvar b = a\nfor k in 0..n { if b[k] > 1.5 { b[k] = 0 } }\n\
                  var x = 4.0\nwhile x > 1.5 { x /= 2 }\noutput c = b[0..n] * 2\noutput y = x";
    let model = pal::compile(source).unwrap();
    let inputs = [Datum::vector(vec![1.0, 2.0, 3.0]), Datum::int(2)];
    let (_, stats, events) = Code::new(&model.program).run_recorded(&inputs, &Limits::default()).unwrap();
    use Event::{Elements, Holds, Rounds};
    // The input; two rounds with a branch each; three conditions of the `while`; the slice, in which the
    // product is.
    let expected = [
        Elements(3),
        Rounds(2),
        Holds(false),
        Holds(true),
        Holds(true),
        Holds(true),
        Holds(false),
        Elements(2),
    ];
    assert_eq!(events, expected);
    assert_eq!((stats.allocations, stats.peak_bytes, stats.result_bytes), (2, 40, 16));
}
