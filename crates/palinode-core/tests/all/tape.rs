//! The dynamic tape: what it records, prints and refuses.

use palinode_core::{DualN, Error, Real, Scalar, Tape, Var, custom, custom_rule, grad, value_and_grad};
use proptest::prelude::*;

#[test]
fn the_table_shows_index_operation_inputs_output_and_saved_values() {
    let mut tape = Tape::traced();
    let record = tape
        .record(&[0.5_f64, 3.0], |x| {
            let v1 = x[0] * x[1];
            let v2 = v1.sin();
            v2 + x[0]
        })
        .unwrap();
    let table = record.table();
    // The table's numbers have all their digits.
    assert_eq!((table.rows[3].output, &table.rows[3].saved[..]), (Some(1.5_f64.sin()), &[1.5_f64.cos()][..]));
    let text = table.to_string();
    let expected = "\
#  op     inputs    output  saved
1  input          0.500000
2  input          3.000000
3  mul    1 2     1.500000  3.000000 0.500000
4  sin    3       0.997495  0.070737
5  add    4 1     1.497495  1.000000 1.000000
";
    assert_eq!(text, expected);
}

#[test]
fn a_traced_sum_of_any_length_has_no_dangling_inputs() {
    let of_leaves = |x: &[Var<f64>]| x.iter().sum::<Var<f64>>();
    let of_sines = |x: &[Var<f64>]| x.iter().map(|v| v.sin()).sum::<Var<f64>>();
    for (n, run) in
        [1, 2, 3, 31, 32, 33, 100].into_iter().flat_map(|n| [(n, of_leaves as fn(&_) -> _), (n, of_sines)])
    {
        let x: Vec<f64> = (0..n).map(|i| i as f64 + 0.5).collect();
        let mut tape = Tape::traced();
        let record = tape.record(&x, run).unwrap();
        let table = record.table();
        let known: std::collections::BTreeSet<u32> = table.rows.iter().map(|row| row.index).collect();
        for row in &table.rows {
            let dangling: Vec<_> = row.inputs.iter().filter(|input| !known.contains(input)).collect();
            assert!(
                dangling.is_empty(),
                "sum of {n}: row {} reads {dangling:?}, which is no row\n{table}",
                row.index
            );
        }
        assert_eq!(table.rows.iter().filter(|row| row.op == "sum").count(), 1);
    }
}

#[test]
fn sizes_are_counted_exactly() {
    let mut tape = Tape::<f64>::traced();
    let record = tape.record(&[1.0, 2.0, 3.0], |x| (x[0] * x[1] + x[2]).sin()).unwrap();
    let size = record.size();
    // Three inputs with an edge to the sink each; mul and add with two edges, sin with one.
    assert_eq!((size.nodes, size.edges), (6, 8));
    assert_eq!(size.bytes, 8 * (8 + 4) + 6 * 8);
    let mut tape = Tape::<f64>::new();
    let record = tape.record(&[1.0, 2.0, 3.0], |x| (x[0] * x[1] + x[2]).sin()).unwrap();
    // One node with three edges for the sum, and one for the pending sine that is the output.
    assert_eq!((record.size().nodes, record.size().edges), (5, 7));
}

fn long(x: &[Var<f64>], steps: usize) -> Var<f64> {
    let mut state = x.to_vec();
    for _ in 0..steps {
        state = vec![
            state[0] * state[1] + state[2] * 0.5,
            state[1] + state[2] * 0.25,
            state[2] * 0.99 + state[0] * 0.001,
        ];
    }
    state[0] + state[1] + state[2]
}

#[test]
fn limits_give_typed_errors_and_leave_the_tape_usable() {
    let x = [0.5, 0.25, 0.125];
    let (expected, gradient) = value_and_grad(|x| long(x, 10), &x).unwrap();
    for limit in [0, 1, 3, 4, 8, 20] {
        let mut tape = Tape::with_limits(limit, usize::MAX);
        let error = tape.value_and_grad(|x| long(x, 1000), &x).unwrap_err();
        assert_eq!(error, Error::TapeFull { limit });
        assert_eq!(error.code(), "PAL0105");
    }
    for limit in [0, 100, 5_000, 20_000] {
        let mut tape = Tape::with_limits(1000, limit);
        let error = tape.value_and_grad(|x| long(x, 100_000), &x).unwrap_err();
        assert!(matches!(error, Error::ByteLimit { .. } | Error::TapeFull { .. }), "{limit}: {error}");
    }
    let mut tape = Tape::with_limits(200, usize::MAX);
    assert_eq!(tape.value_and_grad(|x| long(x, 1_000_000), &x).unwrap_err(), Error::TapeFull { limit: 200 });
    assert_eq!(tape.value_and_grad(|x| long(x, 10), &x).unwrap(), (expected, gradient.clone()));
    let mut tape = Tape::with_limits(u32::MAX, 50_000);
    let error = tape.value_and_grad(|x| long(x, 1_000_000), &x).unwrap_err();
    let Error::ByteLimit { limit: 50_000, needed, node } = error else { panic!("{error}") };
    // A node of this chain has three edges: 36 bytes and a cotangent of 8.
    assert!((50_000..51_000).contains(&needed) && (1_000..1_137).contains(&node), "{error}");
    assert!(error.to_string().contains("more than the 50000 allowed (50 kB)"), "{error}");
    assert_eq!(tape.value_and_grad(|x| long(x, 10), &x).unwrap(), (expected, gradient));
}

#[test]
fn a_node_limit_admits_exactly_that_many_nodes() {
    let x = [0.5, 0.25, 0.125];
    let needed = Tape::new().record(&x, |x| long(x, 10)).unwrap().size().nodes as u32;
    assert!(
        Tape::with_limits(needed, usize::MAX).record(&x, |x| long(x, 10)).is_ok(),
        "{needed} nodes fit into {needed}"
    );
    let error = Tape::with_limits(needed - 1, usize::MAX).record(&x, |x| long(x, 10)).unwrap_err();
    assert_eq!(error, Error::TapeFull { limit: needed - 1 });
    // 200 nodes with three edges each need 12 kB: the nodes run out first, not the bytes.
    let error = Tape::with_limits(200, 50_000).record(&x, |x| long(x, 1_000_000)).unwrap_err();
    assert_eq!(error, Error::TapeFull { limit: 200 });
}

/// Chains, sums of all lengths and wide dot products; `shape` says which.
fn shaped(x: &[Var<f64>], shape: &[usize]) -> Var<f64> {
    shape.iter().fold(x[0] * x[1], |state, &kind| match kind % 4 {
        0 => (state * x[1]).sin() + x[2],
        1 => (0..kind).map(|i| state * x[i % x.len()]).sum::<Var<f64>>().tanh(),
        2 => Var::dot(&vec![state; kind], &x.iter().copied().cycle().take(kind).collect::<Vec<_>>()).sin(),
        _ => (0..kind).fold(state, |state, i| (state + x[i % x.len()] * x[0]).cos() * x[1]),
    })
}

proptest! {
    #[test]
    fn the_budget_of_a_recording_is_enough(shape in proptest::collection::vec(0..600_usize, 0..60), inputs in 3..40_usize) {
        let x: Vec<f64> = (0..inputs).map(|i| 0.5 / (1.0 + i as f64)).collect();
        let mut tape = Tape::new();
        let mut record = tape.record(&x, |x| shaped(x, &shape)).unwrap();
        let (budget, needed) = (record.budget(), record.size().bytes);
        let expected = record.reverse(&[1.0]).unwrap().to_vec();
        let mut within = Tape::with_budget(budget);
        let mut record = within.record(&x, |x| shaped(x, &shape)).unwrap_or_else(|error| panic!("{error}"));
        // Where a chunk ends a long sum goes on in another node, so the bits may differ.
        let found = record.reverse(&[1.0]).unwrap();
        prop_assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs())));
        prop_assert!(within.heap_bytes() <= budget.bytes());
        prop_assert!(budget.bytes() <= 2 * needed + 8_000, "{} for {}", budget, needed);
        let too_little = Tape::with_budget(needed.saturating_sub(1).into()).record(&x, |x| shaped(x, &shape)).map(|_| ());
        prop_assert_eq!(too_little.unwrap_err().code(), "PAL0107");
    }
}

#[test]
fn the_budget_of_a_large_recording_is_little_more_than_it_needs() {
    let mut tape = Tape::new();
    let record = tape.record(&[0.5, 0.25, 0.125], |x| long(x, 100_000)).unwrap();
    let (budget, needed) = (record.budget().bytes(), record.size().bytes);
    assert!(budget < needed + needed / 500, "{budget} for {needed}");
}

/// The sum and the product of three inputs, as one operation.
fn sum_and_product(x: [Var<f64>; 3]) -> [Var<f64>; 2] {
    let [a, b, c] = x.map(|x| x.value());
    let by_others = custom_rule("sum and product", move |outputs: &[f64], inputs| {
        for (input, others) in inputs.iter_mut().zip([b * c, a * c, a * b]) {
            *input += outputs[0] + outputs[1] * others;
        }
    });
    let outputs = custom(&x, &[a + b + c, a * b * c], by_others);
    [outputs[0], outputs[1]]
}

#[test]
fn custom_operations_mix_with_all_else() {
    fn by_hand(x: &[Var<f64>]) -> Var<f64> {
        let a = x[0].sin();
        let (s, p) = (a + x[1] + 2.0, a * x[1] * 2.0);
        let (t, q) = (s + p + x[0], s * p * x[0]);
        t * q + s
    }
    fn by_custom(x: &[Var<f64>]) -> Var<f64> {
        let [s, p] = sum_and_product([x[0].sin(), x[1], Var::lift(2.0)]);
        let [t, q] = sum_and_product([s, p, x[0]]);
        t * q + s
    }
    let x = [0.7, -1.3];
    for mut tape in [Tape::new(), Tape::traced()] {
        let expected = value_and_grad(by_hand, &x).unwrap();
        let mut record = tape.record(&x, by_custom).unwrap();
        assert!((record.values()[0] - expected.0).abs() < 1e-14);
        let reverse = record.reverse(&[1.0]).unwrap().to_vec();
        let many = record.reverse_many(&[[0.0, 1.0, 2.0]]).unwrap();
        for i in 0..2 {
            assert!((reverse[i] - expected.1[i]).abs() < 1e-13, "{reverse:?} {expected:?}");
            assert_eq!([many[i][0], many[i][1]], [0.0, reverse[i]]);
            let direction = [f64::from(u8::from(i == 0)), f64::from(u8::from(i == 1))];
            assert!((record.forward(&direction).unwrap()[0] - reverse[i]).abs() < 1e-13);
        }
        let lanes = record.forward_many(&[[1.0, 0.0], [0.0, 1.0]]).unwrap()[0];
        assert!((lanes[0] - reverse[0]).abs() < 1e-13 && (lanes[1] - reverse[1]).abs() < 1e-13);
        assert_eq!(record.table().rows.iter().filter(|row| row.op == "sum and product").count(), 4);
        assert_eq!(record.pattern(), [vec![0, 1]]);
    }
    // Constants only: nothing is recorded and the outputs are constants.
    let mut tape = Tape::new();
    let mut record = tape.record(&[1.0], |x| {
        let [s, p] = sum_and_product([2.0, 3.0, 4.0].map(Var::lift));
        assert!(!s.is_active() && !p.is_active());
        x[0] * s + p
    });
    assert_eq!(record.as_mut().unwrap().reverse(&[1.0]).unwrap(), [9.0]);
}

#[test]
fn thousands_of_custom_operations_in_one_tape() {
    let steps = 3000;
    let run = |x: &[Var<f64>]| {
        let mut state = [x[0], x[1], x[2]];
        for _ in 0..steps {
            let [s, p] = sum_and_product(state);
            state = [s * 0.25, p * 0.1 + state[1] * 0.5, state[2] * 0.75 + s * 0.01];
        }
        state[0] + state[1] + state[2]
    };
    let x = [0.5, 0.25, 0.75];
    let mut tape = Tape::new();
    let mut record = tape.record(&x, run).unwrap();
    let reverse = record.reverse(&[1.0]).unwrap().to_vec();
    let forward = record.forward(&[1.0, 0.0, 0.0]).unwrap()[0];
    assert!((reverse[0] - forward).abs() <= 1e-12 * forward.abs().max(1e-300));
}

#[test]
fn sums_dots_and_affine_combinations_have_the_bits_of_plain_numbers() {
    for n in [0, 1, 2, 3, 5, 33, 100, 1000] {
        let a: Vec<f64> = (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 7.0 - 6.5).collect();
        let c: Vec<f64> = (0..n).map(|i| ((i * 53 + 5) % 89) as f64 / 9.0 - 4.25).collect();
        let (sum, dot) = (f64::sum_of(&a), f64::dot(&a, &c));
        let affine = 0.75 + dot;
        let chain = a.iter().zip(&c).fold(0.75, |sum, (&x, &c)| x.mul_add(c, sum));
        let mut tape = Tape::new();
        let both: Vec<f64> = a.iter().chain(&c).copied().chain([0.75]).collect();
        let mut record = tape
            .record(&both, |v| {
                let (x, y) = (&v[..n], &v[n..2 * n]);
                let chain = Var::chain_over(v[2 * n], n, |i| (x[i], y[i]));
                [Var::sum_of(x), Var::dot(x, y), Var::affine(v[2 * n], &c, x), chain]
            })
            .unwrap();
        assert_eq!(record.values(), [sum, dot, affine, chain], "{n} terms");
        assert!(record.size().nodes <= both.len() + 4);
        let g = record.reverse(&[1.0, 0.0, 0.0, 0.0]).unwrap().to_vec();
        assert!(g[..n].iter().all(|&v| v == 1.0) && g[n..].iter().all(|&v| v == 0.0));
        let g = record.reverse(&[0.0, 1.0, 0.0, 0.0]).unwrap().to_vec();
        assert_eq!((&g[..n], &g[n..2 * n]), (&c[..], &a[..]));
        let g = record.reverse(&[0.0, 0.0, 1.0, 0.0]).unwrap().to_vec();
        assert_eq!((&g[..n], g[2 * n]), (&c[..], 1.0));
        let g = record.reverse(&[0.0, 0.0, 0.0, 1.0]).unwrap().to_vec();
        assert_eq!((&g[..n], &g[n..2 * n], g[2 * n]), (&c[..], &a[..], 1.0));
    }
}

#[test]
fn any_control_flow_is_followed() {
    // Recursion: Fibonacci-like products.
    fn product_tree(x: &[Var<f64>]) -> Var<f64> {
        if x.len() == 1 { x[0] } else { product_tree(&x[..x.len() / 2]) * product_tree(&x[x.len() / 2..]) }
    }
    let x = [1.5, -2.0, 0.5, 3.0, -1.25];
    let g = grad(product_tree, &x).unwrap();
    let product: f64 = x.iter().product();
    assert!(g.iter().zip(x).all(|(g, x)| (g - product / x).abs() < 1e-14), "{g:?}");

    // While: Newton's square root; the derivative of the result is that of the root.
    let root = |x: &[Var<f64>]| {
        let mut guess = x[0];
        while (guess * guess - x[0]).value().abs() > 1e-13 {
            guess = (guess + x[0] / guess) * 0.5;
        }
        guess
    };
    assert!((grad(root, &[2.0]).unwrap()[0] - 0.5 / 2f64.sqrt()).abs() < 1e-12);

    // Mutation: a bubble sort by swaps, then a weighted sum.
    let sorted = |x: &[Var<f64>]| {
        let mut v = x.to_vec();
        for end in (1..v.len()).rev() {
            for i in 0..end {
                if v[i] > v[i + 1] {
                    v.swap(i, i + 1);
                }
            }
        }
        v.iter().enumerate().map(|(rank, &x)| (rank + 1) as f64 * x).sum::<Var<f64>>()
    };
    assert_eq!(grad(sorted, &[3.0, 1.0, 2.0, -5.0]).unwrap(), [4.0, 2.0, 3.0, 1.0]);
}

#[test]
fn a_million_steps() {
    let x = [0.5, 0.25, 1e-6];
    let mut tape = Tape::new();
    let steps = 1_000_000;
    fn run<S: Real>(x: &[S], steps: usize) -> S {
        let mut state = [x[0], x[1], x[2]];
        for _ in 0..steps {
            let next = state[0] * 0.999_999 + state[1] * 1e-7 + state[2] * 1e-9;
            state = [next, state[0], state[1]];
        }
        state[0]
    }
    let (_, gradient) = tape.value_and_grad(|x| run(x, steps), &x).unwrap();
    let expected = run(&DualN::variables(x), steps).tangents;
    for i in 0..3 {
        assert!(
            (gradient[i] - expected[i]).abs() <= 1e-9 * expected[i].abs(),
            "{i}: {gradient:?} {expected:?}"
        );
    }
}

/// How many nodes a computation with two inputs writes besides these and the one for its output.
fn nodes_written(f: impl FnMut(&[Var<f64>]) -> Var<f64>) -> usize {
    let mut tape = Tape::new();
    tape.record(&[2.0, 3.0], f).unwrap().size().nodes - 2
}

#[test]
fn trivial_operations_are_never_recorded() {
    // An output that is an input needs no node at all; one that is not needs its own.
    assert_eq!(nodes_written(|x| x[0]), 0);
    assert_eq!(nodes_written(|x| x[0] * 1.0), 0);
    assert_eq!(nodes_written(|x| 1.0 * x[0] + 0.0 - 0.0), 0);
    assert_eq!(nodes_written(|x| -(-x[0]) / 1.0), 0);
    assert_eq!(nodes_written(|x| Var::lift(2.0) * 3.0 + x[0]), 0);
    assert_eq!(nodes_written(|x| x[0] * Var::lift(1.0)), 0);
    assert_eq!(nodes_written(|x| [x[0]].iter().sum()), 0);
    assert_eq!(nodes_written(|x| Var::sum_of(&[x[0]])), 0);
    assert_eq!(nodes_written(|x| Var::dot(&[x[0]], &[Var::lift(1.0)])), 0);
    assert_eq!(nodes_written(|x| Var::affine(Var::lift(1.0), &[1.0], &[x[1]])), 0);
    assert_eq!(nodes_written(|x| Var::affine(x[1], &[0.0, 0.0], &[x[0], x[1]])), 0);
    assert_eq!(nodes_written(|x| Var::affine(Var::lift(1.0), &[0.0], &[x[0]])), 0);
    assert_eq!(nodes_written(|_| Var::lift(1.0) + 2.0), 0);
    // Two parents are a pending form, written once as the output.
    assert_eq!(nodes_written(|x| x[0] + x[1]), 1);
    assert_eq!(nodes_written(|x| x.iter().sum()), 1);
    assert_eq!(nodes_written(|x| [x[0] * x[1]].iter().sum::<Var<f64>>().sin()), 1);
    assert_eq!(nodes_written(|x| Var::dot(x, x).sqrt()), 1);
    assert_eq!(nodes_written(|x| Var::sum_of(&[x[0], x[1], x[0]]) * 2.0), 1);
    assert_eq!(nodes_written(|x| Var::affine(x[0], &[2.0, 3.0], x).exp()), 1);
}

#[test]
fn short_sums_that_are_taken_back_keep_their_derivatives() {
    let gradient = |f: fn(&[Var<f64>]) -> Var<f64>| grad(f, &[2.0, 3.0]).unwrap();
    assert_eq!(gradient(|x| [x[0] * 5.0].iter().sum()), [5.0, 0.0]);
    assert_eq!(gradient(|x| [x[0], x[0]].iter().sum::<Var<f64>>() * x[1]), [6.0, 4.0]);
    assert_eq!(gradient(|x| [x[1], x[0]].iter().sum()), [1.0, 1.0]);
    assert_eq!(gradient(|x| [x[0] * x[1], x[1]].iter().sum()), [3.0, 3.0]);
    // Something else is recorded inside the sum: its node is no longer the last.
    let between = |x: &[Var<f64>]| {
        let terms = x.iter().map(|v| [v * v, x[0] * x[1], *v].iter().sum::<Var<f64>>().sin());
        terms.sum::<Var<f64>>()
    };
    let expected = [(4.0_f64 + 6.0 + 2.0).cos(), (9.0_f64 + 6.0 + 3.0).cos()];
    let [a, b] = [5.0 + 3.0, 7.0 + 2.0];
    let found = grad(between, &[2.0, 3.0]).unwrap();
    assert!((found[0] - (a * expected[0] + 3.0 * expected[1])).abs() < 1e-14);
    assert!((found[1] - (b * expected[1] + 2.0 * expected[0])).abs() < 1e-14);
    // At a limit nothing is taken back from a recording that failed.
    let refused = Tape::with_limits(1, usize::MAX)
        .record(&[2.0], |x| [x[0] * 2.0].iter().sum::<Var<f64>>())
        .map(|_| ());
    assert_eq!(refused.unwrap_err().code(), "PAL0105");
}
