//! The interpreter: arrays, and what their updates cost.

use crate::pal::compile;
use palinode_ir::interp::{Code, Datum, Limits, Stats};

fn stats(source: &str, inputs: &[Datum<f64>]) -> (Vec<Datum<f64>>, Stats) {
    Code::new(&compile(source).program).run_with_stats(inputs, &Limits::default()).unwrap()
}

fn vector(length: usize, x: f64) -> Datum<f64> {
    Datum::vector(vec![x; length])
}

#[test]
fn loops_of_writes_and_calls_copy_nothing() {
    let n = 100_000;
    let written = "param a: [n]\nvar b = a\nfor k in 0..n { b[k] = b[k] + b[k] }\noutput b";
    let called = "param a: [n]\nfn touch(a, k, x) {\n var b = a\n b[k] += x\n return b\n}\nvar b = a\nfor k in 0..n { b = touch(b, k, 1.0) }\noutput b";
    for (source, steps) in [(written, n), (called, 2 * n)] {
        let (out, cost) = stats(source, &[vector(n, 1.0)]);
        assert_eq!(out[0].as_vector().unwrap(), vec![2.0; n]);
        // One array, changed in place from the input to the result; the copy of the result is beside it at
        // the end.
        let bytes = 8 * n;
        assert!((2 * bytes..2 * bytes + 5000).contains(&cost.heap_bytes), "{cost:?}");
        let (peak_bytes, result_bytes) = (bytes, bytes);
        let steps = steps as u64;
        let expected = Stats { steps, allocations: 1, peak_bytes, result_bytes, ..Stats::default() };
        assert_eq!(Stats { heap_bytes: 0, ..cost }, expected);
    }
}

/// Sources, their inputs, the first numbers of their first result, and how many elements they copy and fill.
#[test]
fn copies_are_made_where_they_must_be() {
    let cases = [
        (
            "# writes in branches and inner loops\nparam a: [n]\nvar b = a\nfor k in 0..n {\n if k % 2 == 0 { b[k] = 5 }\n for j in 0..2 { b[k] += 1 }\n}\noutput b",
            vec![vector(1000, 1.0)],
            vec![7.0, 3.0, 7.0, 3.0],
            (0, 0),
        ),
        (
            "# a fork\nparam a: [n]\nvar b = a\nb[0] = 9\noutput b\noutput a2 = a",
            vec![Datum::vector(vec![1.0, 2.0])],
            vec![9.0, 2.0],
            (2, 0),
        ),
        (
            "# swapped arrays stay apart\nparam a: [n]\nparam b: [n]\nvar p, q = a, b\nfor k in 0..3 {\n p[k] = k\n p, q = q, p\n}\noutput both = concat(p, q)",
            vec![vector(3, 10.0), vector(3, 20.0)],
            vec![20.0, 1.0, 20.0, 0.0, 10.0, 2.0],
            (0, 6),
        ),
        (
            "# a branch takes what the other needs\nparam a: [n]\nparam b: [n]\nvar p, q = a, b\nfor k in 0..1000 { if k % 2 == 0 { p[0] = 1 } else { q[0] = 1 } }\noutput p\noutput q",
            vec![vector(100, 0.0), vector(100, 0.0)],
            vec![1.0, 0.0],
            (0, 0),
        ),
        (
            "# read in every round, and updated after the loop\nparam a: [n]\nvar s = 0.0\nfor k in 0..n { s += a[k] }\nvar b = a\nb[0] = s\noutput b",
            vec![vector(1000, 1.0)],
            vec![1000.0, 1.0],
            (0, 0),
        ),
        (
            "# captured and carried at once: the first update has to copy, the others do not\nparam a: [n]\nvar b = a\nfor k in 0..n { b[k] += a[k] }\noutput b",
            vec![vector(1000, 1.0)],
            vec![2.0; 1000],
            (1000, 0),
        ),
        (
            "# a while that looks at what it carries\nparam a: [n]\nvar b = a\nvar k = 0\nwhile k < len(b) { b[k] += 1; k += 1 }\noutput b",
            vec![vector(5000, 1.0)],
            vec![2.0; 5000],
            (0, 0),
        ),
        (
            "# a log\nparam x\nvar l = [x]\nfor k in 0..200_000 { l = append(l, k, k) }\noutput l",
            vec![Datum::real(7.0)],
            vec![7.0, 0.0, 0.0, 1.0, 1.0],
            (0, 0),
        ),
        (
            "# reshapes of what dies\nparam a: [10, 10]\nvar m = a\nfor k in 0..10 {\n m = reshape(reshape(m, 100), 10, 10)\n m[k, ..] = 3\n}\noutput m",
            vec![Datum::matrix(10, 10, vec![0.0; 100])],
            vec![3.0; 100],
            (0, 0),
        ),
        (
            "# a reshape of what the sum needs\nparam m: [2, 2]\nvar a = m\na[0, 1] = a[1, 0]\noutput b = append(reshape(a, 4), sum(a))",
            vec![Datum::matrix(2, 2, vec![1.0, 2.0, 3.0, 4.0])],
            vec![1.0, 3.0, 3.0, 4.0, 11.0],
            (4, 1),
        ),
    ];
    for (source, inputs, expected, cost) in cases {
        let (out, found) = stats(source, &inputs);
        assert_eq!(out[0].as_vector().unwrap()[..expected.len()], expected, "{source}");
        assert_eq!((found.elements_copied, found.elements_filled), cost, "{source}");
    }
}

/// Used in one branch only, and dropped in the other.
#[test]
fn a_branch_may_drop_what_the_other_takes() {
    let source = "param a: [n]\ninput c: int\nvar r = a\nif c == 1 { r[0] = 1 } else { r = zeros(0) }\nr = append(r, 1.0)\noutput r";
    for (c, length) in [(1, 4), (0, 1)] {
        let (out, cost) = stats(source, &[vector(3, 0.0), Datum::int(c)]);
        assert_eq!((out[0].elements(), cost.elements_copied), (length, 0));
    }
}
