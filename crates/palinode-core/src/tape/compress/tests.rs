//! The laws of compression on random recordings, and bugs planted into its steps, each of which a law must
//! catch.
//!
//! The reference is a twin of the recording, read from its table: lists of parents and partials, swept by
//! indexing, with signs or with absolute values. The sweep over absolute partials bounds what rounding can
//! do.

use super::draft::Draft;
use super::graph::Graph;
use super::*;
use crate::tape::{CustomRule, Record, Var, custom, custom_rule};
use crate::{Dual, Tape};
use palinode_num::Draws;
use proptest::prelude::*;

fn mix_partial(output: usize, input: usize) -> f64 {
    [0.5 + input as f64, 1.0 / (input as f64 - 2.5)][output]
}

/// Two outputs: weighted sums of all inputs.
fn mix() -> impl CustomRule<f64> {
    custom_rule("mix", |outputs: &[f64], inputs| {
        for (i, input) in inputs.iter_mut().enumerate() {
            *input += outputs[0] * mix_partial(0, i) + outputs[1] * mix_partial(1, i);
        }
    })
}

/// A factor: zeros, units and powers of two among them, so that what depends on them is met.
fn factor(random: &mut Draws) -> f64 {
    match random.below(12) {
        0 => 0.0,
        1 => 1.0,
        2 => -1.0,
        3 => 0.5,
        _ => random.below(2001) as f64 / 1000.0 - 1.0,
    }
}

/// A computation with dead ends, long single-use chains, shared values, sums with repeated terms and custom
/// operations.
fn random_computation(mut random: Draws, x: &[Var<f64>], steps: usize, outputs: usize) -> Vec<Var<f64>> {
    let mut values = x.to_vec();
    for _ in 0..steps {
        // Recent values are used most, so that chains grow; some are used again and again.
        let any = |random: &mut Draws| {
            let reach = if random.below(4) == 0 { values.len() } else { values.len().min(4) };
            values[values.len() - 1 - random.below(reach)]
        };
        let (a, b, c) = (any(&mut random), any(&mut random), any(&mut random));
        let new = match random.below(9) {
            0 => vec![a * b + c * factor(&mut random)],
            1 => vec![a * factor(&mut random) + b * factor(&mut random) + c],
            2 => vec![(a + b).sin() * c],
            3 => vec![[a, b, c, a].iter().sum()],
            4 => vec![Var::dot(&[a, b, a], &[b, c, a])],
            5 => custom(&[a, b, c, Var::lift(2.0)], &[a.value(), b.value() * 0.5], mix()),
            6 => vec![Var::affine(a, &[factor(&mut random), 0.0, factor(&mut random)], &[b, c, c])],
            7 => vec![a.tanh() - b * c * factor(&mut random)],
            _ => vec![(a - b).cos() + c * b + a],
        };
        values.extend(new.into_iter().map(|v| if v.value().abs() > 4.0 { v.sin() } else { v }));
    }
    (0..outputs)
        .map(|_| match random.below(10) {
            0 => Var::lift(3.0),
            _ => values[values.len() - 1 - random.below(values.len().min(8))],
        })
        .collect()
}

/// A recording as lists: the edges of each node, custom operations included.
struct Twin {
    nodes: Vec<Vec<(u32, f64)>>,
    inputs: usize,
    outputs: Vec<u32>,
}

impl Twin {
    fn of(record: &Record<'_, f64>) -> Twin {
        let mut nodes = vec![vec![]];
        let mut outputs_passed = 0;
        for row in record.table().rows {
            let edges = if row.op == "mix" {
                outputs_passed += 1;
                let output = (outputs_passed - 1) % 2;
                (0..).zip(&row.inputs).map(|(i, &node)| (node, mix_partial(output, i))).collect()
            } else {
                row.inputs.iter().copied().zip(row.saved).collect()
            };
            nodes.push(edges);
        }
        Twin { nodes, inputs: record.input_count(), outputs: record.tape.outputs.clone() }
    }

    fn reverse(&self, seed: &[f64], of_partial: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut cotangents = vec![0.0; self.nodes.len()];
        for (&output, seed) in self.outputs.iter().zip(seed) {
            cotangents[output as usize] += of_partial(*seed);
        }
        for node in (1..self.nodes.len()).rev() {
            for &(parent, partial) in self.nodes[node].iter().rev() {
                cotangents[parent as usize] += of_partial(partial) * cotangents[node];
            }
        }
        cotangents[1..=self.inputs].to_vec()
    }

    /// What any order of the same products and sums can differ by: a rounding per edge and per node on every
    /// path.
    fn bound(&self, seed: &[f64]) -> Vec<f64> {
        let roundings = self.nodes.len() + self.nodes.iter().map(Vec::len).sum::<usize>();
        let absolute = self.reverse(seed, f64::abs);
        absolute.iter().map(|a| a * 2.0 * roundings as f64 * f64::EPSILON + 1e-30).collect()
    }
}

/// What a random seed stands for.
struct Case {
    computation: Draws,
    inputs: Vec<f64>,
    seed: Vec<f64>,
    steps: usize,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = Draws::new(seed);
        let inputs = (0..1 + random.below(5)).map(|_| factor(&mut random)).collect();
        let outputs = 1 + random.below(4);
        let seed = (0..outputs).map(|_| factor(&mut random)).collect();
        // Mostly short, so that a failure is; some with several blocks.
        let most = if random.below(8) == 0 { 500 } else { 60 };
        let steps = 1 + random.below(most);
        Case { computation: random, inputs, seed, steps }
    }

    fn record<'t>(&self, tape: &'t mut Tape<f64>) -> Record<'t, f64> {
        let run =
            |x: &[Var<f64>]| random_computation(self.computation.clone(), x, self.steps, self.seed.len());
        tape.record(&self.inputs, run).unwrap()
    }

    /// Compresses step by step, lets `tamper` change the draft after each step, and says which law fails, if
    /// any.
    fn check(&self, chains: bool, tamper: impl Fn(&'static str, &mut Draft<f64>)) -> Result<(), String> {
        let mut tape = Tape::new();
        let mut record = self.record(&mut tape);
        let twin = Twin::of(&record);
        let (size, values) = (record.size(), record.values().to_vec());
        let expected = record.reverse(&self.seed).unwrap().to_vec();
        let mut draft = Draft::of(record.tape, None).unwrap();
        tamper("what matters", &mut draft);
        if chains {
            draft = draft.fused("chains fused", fuse::fuse).unwrap();
            tamper("chains fused", &mut draft);
            draft = draft.fused("blocks fused", block::fuse_blocks).unwrap();
            tamper("blocks fused", &mut draft);
        }
        let mut compressed = draft.finish(Partials::Exact).unwrap();
        if compressed.values() != values {
            return Err("values".into());
        }
        let found = compressed.reverse(&self.seed).unwrap().to_vec();
        let equal = if chains {
            let bound = twin.bound(&self.seed);
            (0..found.len()).all(|i| (found[i] - expected[i]).abs() <= bound[i])
        } else {
            found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        if !equal {
            return Err(format!("gradient: {found:?} instead of {expected:?}"));
        }
        let steps = compressed.report().steps.clone();
        let grows = |a: Size, b: Size| b.nodes > a.nodes || b.edges > a.edges || b.bytes > a.bytes;
        if steps[0].size != size || steps.windows(2).any(|pair| grows(pair[0].size, pair[1].size)) {
            return Err(format!("sizes: {}", compressed.report()));
        }
        Ok(())
    }
}

/// The gradient of a recording for these cotangents, and its compressed form.
fn compressed(
    x: &[f64],
    run: impl FnMut(&[Var<f64>]) -> Var<f64>,
    seed: f64,
) -> (Vec<f64>, CompressedRecord<f64>) {
    let mut tape = Tape::new();
    let mut record = tape.record(x, run).unwrap();
    let exact = record.reverse(&[seed]).unwrap().to_vec();
    (exact, record.compress(&Compression::default()).unwrap())
}

fn untouched(_: &'static str, _: &mut Draft<f64>) {}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn leaving_out_what_does_not_matter_changes_no_bit(seed in any::<u64>()) {
        prop_assert_eq!(Case::new(seed).check(false, untouched), Ok(()));
    }

    #[test]
    fn fusing_changes_gradients_by_rounding_only(seed in any::<u64>()) {
        prop_assert_eq!(Case::new(seed).check(true, untouched), Ok(()));
    }

    #[test]
    fn forward_and_reverse_are_transposes(seed in any::<u64>()) {
        let case = Case::new(seed);
        let mut tape = Tape::new();
        let record = case.record(&mut tape);
        let tangents: Vec<f64> = (0..case.inputs.len()).map(|i| 1.0 - 0.3 * i as f64).collect();
        let expected = record.forward(&tangents).unwrap();
        let bound: f64 = Twin::of(&record).bound(&vec![1.0; case.seed.len()]).iter().sum();
        let mut plain = record.compress(&Compression { chains: false, blocks: false, ..Compression::default() }).unwrap();
        prop_assert_eq!(&plain.forward(&tangents).unwrap(), &expected);
        let fused = case.record(&mut tape).compress(&Compression::default()).unwrap();
        for (a, b) in fused.forward(&tangents).unwrap().iter().zip(&expected) {
            prop_assert!((a - b).abs() <= bound, "{} and {}", a, b);
        }
        // Lanes are single sweeps.
        let lanes: Vec<[f64; 2]> = case.seed.iter().map(|&s| [s, 1.0]).collect();
        let both = plain.reverse_many(&lanes).unwrap();
        let first = plain.reverse(&case.seed).unwrap();
        prop_assert!(both.iter().zip(first).all(|(lanes, first)| lanes[0].to_bits() == first.to_bits()));
    }

    #[test]
    fn asking_for_some_inputs_gives_their_cotangents(seed in any::<u64>(), keep in 1..32_usize) {
        let case = Case::new(seed);
        let mut tape = Tape::new();
        let mut record = case.record(&mut tape);
        let all = record.reverse(&case.seed).unwrap().to_vec();
        // In descending order, to see that the order asked for is kept.
        let inputs: Vec<usize> = (0..all.len()).rev().filter(|i| keep >> i & 1 == 1).collect();
        let how = Compression { chains: false, blocks: false, inputs: Some(inputs.clone()), ..Compression::default() };
        let mut compressed = record.compress(&how).unwrap();
        prop_assert_eq!(compressed.input_count(), inputs.len());
        let found = compressed.reverse(&case.seed).unwrap();
        prop_assert!(found.iter().zip(&inputs).all(|(a, &i)| a.to_bits() == all[i].to_bits()));
    }

    #[test]
    fn narrow_partials_change_what_the_report_says(seed in any::<u64>()) {
        let case = Case::new(seed);
        for (partials, unit) in [(Partials::F32, 2_f64.powi(-24)), (Partials::Bf16, 2_f64.powi(-8))] {
            let mut tape = Tape::new();
            let mut record = case.record(&mut tape);
            let twin = Twin::of(&record);
            let absolute: f64 = twin.reverse(&case.seed, f64::abs).iter().sum();
            let depth = twin.nodes.len() as f64;
            let exact = record.reverse(&case.seed).unwrap().to_vec();
            let mut narrow = record.compress(&Compression { partials, ..Compression::default() }).unwrap();
            let narrowing = narrow.report().narrowing.clone().unwrap();
            prop_assert!(narrowing.each_output);
            let found = narrow.reverse(&case.seed).unwrap();
            let weight: f64 = case.seed.iter().map(|s| s.abs()).sum();
            for (a, b) in found.iter().zip(&exact) {
                // By linearity: each output's error, weighted. Then an allowance for rounding in double
                // precision.
                let reported = weight * narrowing.absolute;
                prop_assert!((a - b).abs() <= reported * 1.0001 + absolute * depth * 1e-14);
                // And the report is no larger than the unit roundoff of the partials allows.
                prop_assert!((a - b).abs() <= absolute * ((1.0 + unit).powf(depth) - 1.0) + 1e-30);
            }
        }
    }
}

/// Whether some random case catches a bug.
fn caught(chains: bool, tamper: impl Fn(&'static str, &mut Draft<f64>)) -> bool {
    (0..200).any(|seed| {
        Case::new(seed).check(chains, untouched).unwrap();
        Case::new(seed).check(chains, &tamper).is_err()
    })
}

/// The graph without these rows; what they pointed to stays.
fn without(graph: &Graph<f64>, gone: impl Fn(usize) -> bool) -> Graph<f64> {
    let mut left = Graph::with_capacity(0, 0).unwrap();
    for row in (0..graph.nodes.len()).filter(|&row| !gone(row)) {
        for edge in graph.edges_of(row) {
            left.push_edge(graph.parents[edge], graph.partials[edge]);
        }
        left.end_row(graph.nodes[row]);
    }
    left
}

#[test]
fn a_live_node_that_is_dropped_is_caught() {
    for which in [0, 1, 2] {
        assert!(caught(false, |_, draft| draft.graph = without(&draft.graph, |row| row == which)));
    }
}

#[test]
fn a_live_edge_that_is_dropped_is_caught() {
    let plant = |_: &'static str, draft: &mut Draft<f64>| {
        // The edge is taken from a row that keeps another.
        let graph = &mut draft.graph;
        if let Some(row) = (0..graph.nodes.len()).find(|&row| graph.edges_of(row).len() > 1) {
            let edge = graph.edges_of(row).start;
            graph.parents.remove(edge);
            graph.partials.remove(edge);
            graph.ends[row..].iter_mut().for_each(|end| *end -= 1);
        }
    };
    assert!(caught(false, plant) && caught(true, plant));
}

#[test]
fn a_wrong_sign_of_a_fused_partial_is_caught() {
    let plant = |step: &'static str, draft: &mut Draft<f64>| {
        if step == "blocks fused"
            && let Some(partial) = draft.graph.partials.first_mut()
        {
            *partial = -*partial;
        }
    };
    assert!(caught(true, plant));
}

#[test]
fn a_node_with_two_uses_that_is_fused_into_one_of_them_is_caught() {
    let plant = |step: &'static str, draft: &mut Draft<f64>| {
        if step != "what matters" {
            return;
        }
        let uses = |graph: &Graph<f64>, node: u32| graph.parents.iter().filter(|&&p| p == node).count();
        let graph = &draft.graph;
        let twice = (0..graph.nodes.len()).find(|&row| {
            uses(graph, graph.nodes[row]) == 2
                && !draft.marks[graph.nodes[row] as usize].has(graph::Mark::PINNED)
        });
        if let Some(row) = twice {
            // The first use gets the node's first parent instead of the node, the second gets nothing.
            let (node, parent) = (graph.nodes[row], graph.parents[graph.edges_of(row).start]);
            let mut fused = without(graph, |r| r == row);
            let edge = fused.parents.iter().position(|&p| p == node).unwrap();
            fused.parents[edge] = parent;
            draft.graph = fused;
        }
    };
    assert!(caught(false, plant));
}

#[test]
fn a_chain_becomes_one_node() {
    let run = |p: &[Var<f64>]| (0..1000).fold(p[0], |x, _| x.sin() * p[1] + p[2]);
    let (exact, mut compressed) = compressed(&[0.5, 1.0, 0.0], run, 1.0);
    assert_eq!(compressed.report().steps[0].size.nodes, 1003);
    assert_eq!((compressed.size().nodes, compressed.size().edges), (4, 3));
    for (a, b) in compressed.reverse(&[1.0]).unwrap().iter().zip(&exact) {
        assert!((a - b).abs() <= 1e-12 * b.abs());
    }
}

#[test]
fn a_running_sum_of_many_inputs_is_fused_in_linear_time() {
    // Fused from the first node up, this would take a step per pair of inputs.
    let n = 199_998;
    let mut tape = Tape::new();
    let x: Vec<f64> = (0..n).map(|i| f64::from(i) * 1e-6).collect();
    let record = tape
        .record(&x, |x| x.chunks(3).fold(Var::lift(1.0), |s, x| s + x[0] * x[1] + x[2]))
        .unwrap_or_else(|e| panic!("{e}"));
    let started = std::time::Instant::now();
    let compressed = record.compress(&Compression::default()).unwrap();
    assert_eq!(compressed.size().nodes, n as usize + 1);
    assert!(started.elapsed().as_secs_f64() < 5.0, "{:?}", started.elapsed());
}

#[test]
fn a_simulation_with_a_small_state_becomes_its_derivatives() {
    let run = |p: &[Var<f64>]| {
        let mut s = [p[0], p[1], p[2]];
        for _ in 0..10_000 {
            let [x, y, z] = s;
            s = [
                x + p[3] * (y - x) * 0.001,
                y + (x * (p[4] - z) - y) * 0.001,
                z + (x * y - p[5] * z) * 0.001,
            ];
        }
        s.to_vec()
    };
    let mut tape = Tape::new();
    let mut record = tape.record(&[1.0, 1.0, 1.0, 10.0, 10.0, 8.0 / 3.0], run).unwrap();
    let twin = Twin::of(&record);
    let seed = [1.0, -0.5, 0.25];
    let (exact, bound) = (record.reverse(&seed).unwrap().to_vec(), twin.bound(&seed));
    let mut compressed = record.compress(&Compression::default()).unwrap();
    assert!(compressed.size().nodes < 30, "{}", compressed.report());
    for (i, found) in compressed.reverse(&seed).unwrap().iter().enumerate() {
        assert!((found - exact[i]).abs() <= bound[i].min(1e-9 * exact[i].abs()), "{found} and {}", exact[i]);
    }
}

#[test]
fn behind_a_shared_node_nothing_is_copied() {
    // `copy` has one edge and many uses; `wide` has many edges and one use, `copy`.
    let mut tape = Tape::new();
    let run = |x: &[Var<f64>]| {
        let wide = x.iter().sum::<Var<f64>>();
        let copy: Var<f64> = [Var::lift(1.0), wide, Var::lift(2.0)].iter().sum();
        (0..10).map(|i| copy * x[i] + x[i + 1] * x[i + 2]).collect::<Vec<_>>()
    };
    let record = tape.record(&[0.5; 12], run).unwrap();
    let compressed = record.compress(&Compression::default()).unwrap();
    // `wide` keeps its row, `copy` is gone.
    assert_eq!((compressed.size().nodes, compressed.size().edges), (12 + 1 + 10, 12 + 4 * 10));
}

#[test]
fn infinities_and_tiny_products_are_not_fused() {
    // The cotangent would bring the product back into range: 1e-200 * 1e-200 * 1e300.
    let run = |x: &[Var<f64>]| {
        let a = (x[0] + x[1] + x[2]) * 1e-200;
        let b = (a + x[1] + x[2]) * 1e-200;
        b + x[1] * 0.0 + x[2] * 0.0
    };
    let (exact, mut fused) = compressed(&[1.0, 2.0, 3.0], run, 1e300);
    assert!(exact[0] > 0.0);
    assert_eq!(fused.reverse(&[1e300]).unwrap(), exact);
    // A vertical slope behind a zero: strong zero keeps it out of both.
    let run = |x: &[Var<f64>]| {
        let root = (x[0] + x[1] + x[2]).sqrt();
        let shared = root + x[1] + x[2];
        shared * 0.0 + x[1] * x[2] + x[0]
    };
    let (exact, mut fused) = compressed(&[0.0, 0.0, 0.0], run, 1.0);
    assert_eq!(fused.reverse(&[1.0]).unwrap(), exact);
    assert_eq!(exact, [1.0, 0.0, 0.0]);
}

#[test]
fn dead_ends_and_constants_are_gone() {
    let mut tape = Tape::new();
    let record = tape.record(&[1.0, 2.0, 3.0], |x| {
        let dead = x[0] * x[1] + x[2];
        let _ = custom(&[dead, x[0]], &[1.0, 2.0], mix());
        let mixed = custom(&[x[0], x[1]], &[1.0, 2.0], mix());
        [mixed[1], Var::lift(7.0), x[2]]
    });
    let record = record.unwrap();
    assert_eq!(record.size().nodes, 3 + 1 + 2 + 2);
    let mut compressed = record.compress(&Compression::default()).unwrap();
    // Both outputs of the custom operation stay.
    assert_eq!((compressed.size().nodes, compressed.size().edges), (5, 0));
    assert_eq!(compressed.reverse(&[1.0, 1.0, 1.0]).unwrap(), [mix_partial(1, 0), mix_partial(1, 1), 1.0]);
}

#[test]
fn refusals_name_what_is_wrong() {
    let mut tape = Tape::new();
    let with = |tape: &mut Tape<f64>, inputs: &[usize]| {
        let how = Compression { inputs: Some(inputs.to_vec()), ..Compression::default() };
        tape.record(&[1.0, 2.0], |x| x[0] * x[1]).unwrap().compress(&how).map(|_| ())
    };
    assert_eq!(with(&mut tape, &[2]), Err(Error::NoSuchInput { input: 2, inputs: 2 }));
    assert_eq!(with(&mut tape, &[1, 1]), Err(Error::InputTwice { input: 1 }));
    assert_eq!(with(&mut tape, &[1, 0]), Ok(()));
    let how = Compression { partials: Partials::F32, ..Compression::default() };
    let mut duals = Tape::new();
    let record = duals.record(&[Dual::new(1.0, 1.0)], |x: &[Var<Dual<f64>>]| x[0] * x[0]).unwrap();
    assert_eq!(record.compress(&how).map(|_| ()), Err(Error::NotPlain));
    let record = tape.record(&[1.0], |x| x[0] * 1e200).unwrap();
    assert_eq!(record.compress(&how).map(|_| ()), Err(Error::PartialTooLarge { value: 1e200 }));
    let mut compressed = tape.record(&[1.0], |x| x[0] * 2.0).unwrap().compress(&how).unwrap();
    assert_eq!(compressed.reverse(&[1.0, 2.0]).map(<[f64]>::to_vec).unwrap_err().code(), "PAL0101");
}

#[test]
fn second_order_survives_compression() {
    // Duals inside: the partials carry tangents, which fusing multiplies too.
    let run = |x: &[Var<Dual<f64>>]| (0..5).fold(x[0], |s, _| s.sin() * x[1] + x[2]);
    let point = [Dual::new(0.3, 1.0), Dual::new(0.7, -1.0), Dual::new(0.1, 0.5)];
    let mut tape = Tape::new();
    let mut record = tape.record(&point, run).unwrap();
    let exact = record.reverse(&[Dual::new(1.0, 0.0)]).unwrap().to_vec();
    let mut compressed = record.compress(&Compression::default()).unwrap();
    assert_eq!(compressed.size().nodes, 4);
    for (a, b) in compressed.reverse(&[Dual::new(1.0, 0.0)]).unwrap().iter().zip(&exact) {
        assert!((a.primal() - b.primal()).abs() < 1e-14 && (a.tangent - b.tangent).abs() < 1e-13);
    }
}

#[test]
fn the_report_is_a_table() {
    let mut tape = Tape::new();
    let record =
        tape.record(&[0.5, 1.0, 0.0], |p| (0..1000).fold(p[0], |x, _| x.sin() * p[1] + p[2])).unwrap();
    let how = Compression { partials: Partials::Bf16, ..Compression::default() };
    let compressed = record.compress(&how).unwrap();
    let text = compressed.report().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "                    nodes       edges        bytes");
    assert_eq!(lines[1], "recorded             1003        3003     43.0 KiB");
    assert_eq!(lines[5], "bf16 partials           4           3         50 B");
    assert!(lines[6].starts_with("bf16 partials change derivatives by at most "), "{text}");
}
