//! The unsafe parts of the tape against a safe twin: a plain list of lists, swept by indexing. Miri runs
//! these (`scripts/miri`), so they are short and use no files, clocks or proptest.

use super::arena::{Arena, FIRST, OpenNode, SINK};
use super::sweep::{Forward, Reverse};
use super::*;
use crate::{Dual, Real, grad};
use palinode_num::Draws;

/// The safe twin: each node's edges, and node 0 is the sink.
#[derive(Default)]
struct Twin {
    nodes: Vec<Vec<(u32, f64)>>,
}

impl Twin {
    fn reverse(&self, seeds: &[f64]) -> Vec<f64> {
        let mut cotangents = seeds.to_vec();
        for (node, edges) in self.nodes.iter().enumerate().rev() {
            // Within a node the arena goes from the last edge to the first; so does the twin, for equal bits.
            for &(parent, partial) in edges.iter().rev() {
                cotangents[parent as usize] += partial * cotangents[node];
            }
        }
        cotangents
    }

    fn forward(&self, seeds: &[f64]) -> Vec<f64> {
        let mut tangents = seeds.to_vec();
        for (node, edges) in self.nodes.iter().enumerate() {
            if !edges.is_empty() && edges[0].0 != SINK {
                tangents[node] = edges.iter().fold(0.0, |sum, &(p, d)| sum + d * tangents[p as usize]);
            }
        }
        tangents
    }
}

/// The edges of every node but the sink.
fn nodes_of(arena: &Arena<f64>) -> Vec<Vec<(u32, f64)>> {
    let edges = |words: &[u32], partials: &[f64]| {
        words.iter().zip(partials).map(|(word, &partial)| (word & !FIRST, partial)).collect()
    };
    arena.nodes().map(|(_, words, partials)| edges(words, partials)).collect()
}

fn push<const N: usize>(arena: &mut Arena<f64>, twin: &mut Twin, edges: [(u32, f64); N]) {
    arena.push(edges.map(|edge| edge.0), edges.map(|edge| edge.1));
    twin.nodes.push(edges.to_vec());
}

/// Records the same random nodes on both.
fn random_recording(arena: &mut Arena<f64>, random: &mut Draws, nodes: u32) -> Twin {
    let mut twin = Twin { nodes: vec![vec![]] };
    for _ in 0..3 {
        arena.push([SINK], [0.0]);
        twin.nodes.push(vec![(SINK, 0.0)]);
    }
    while (twin.nodes.len() as u32) < nodes {
        let below = twin.nodes.len() as u32;
        let mut edge = || (1 + random.below(below as usize - 1) as u32, random.signed());
        let [a, b, c, d] = [edge(), edge(), edge(), edge()];
        match random.below(5) {
            0 => push(arena, &mut twin, [a]),
            1 => push(arena, &mut twin, [a, b, c]),
            2 => push(arena, &mut twin, [a, b, c, d]),
            3 => {
                let many = [a, b, c, d].repeat(1 + random.below(9));
                arena.push_many(many.len(), many.iter().copied());
                twin.nodes.push(many);
            }
            _ => {
                // A sum that stays open, is interrupted, and goes on.
                let open = arena.extend(OpenNode::NONE, 1.0, a, (SINK, 0.0));
                let open = arena.extend(open, 1.0, b, c);
                arena.push([d.0], [d.1]);
                let open = arena.extend(open, 1.0, a, (SINK, 0.0));
                // Where a chunk ends the sum has one more node, so the twin takes the division into nodes
                // from the arena and checks that no edge is missing.
                let parts = nodes_of(arena).split_off(below as usize - 1);
                let flat: Vec<(u32, f64)> = parts.iter().flatten().copied().collect();
                for expected in [a, b, c, d] {
                    assert!(flat.contains(&expected), "{expected:?} was recorded");
                }
                twin.nodes.extend(parts);
                assert_eq!(open.number() + 1, arena.next_node());
            }
        }
        assert_eq!(arena.next_node() as usize, twin.nodes.len());
    }
    twin
}

#[test]
fn arena_and_twin_agree_bit_for_bit() {
    let mut arena = Arena::new(MAX_NODES, usize::MAX);
    for seed in 0..if cfg!(miri) { 3 } else { 30 } {
        let mut random = Draws::new(seed);
        arena.clear();
        let twin = random_recording(&mut arena, &mut random, if cfg!(miri) { 120 } else { 2000 });
        assert_eq!(nodes_of(&arena), twin.nodes[1..]);
        let down: Vec<u32> = arena.nodes_down().map(|(node, ..)| node).collect();
        assert!(down.into_iter().rev().eq(arena.nodes().map(|(node, ..)| node)));
        let nodes = twin.nodes.len();
        let seeds: Vec<f64> = (0..nodes).map(|_| random.signed()).collect();
        let lanes: Vec<[f64; 1]> = seeds.iter().map(|&s| [s]).collect();

        let mut cotangents = lanes.clone();
        Reverse::new(&arena).down_to(&mut cotangents, 1);
        let expected = twin.reverse(&seeds);
        // The sink is nobody's: only the nodes count.
        assert!(cotangents[1..].iter().zip(&expected[1..]).all(|(a, b)| a[0].to_bits() == b.to_bits()));

        // In pieces, as custom operations make them.
        let mut in_pieces = lanes.clone();
        let middle = 4 + random.below(nodes - 4) as u32;
        let mut walk = Reverse::new(&arena);
        walk.down_to(&mut in_pieces, middle);
        walk.down_to(&mut in_pieces, 1);
        assert_eq!(in_pieces[1..], cotangents[1..]);

        let mut tangents = lanes.clone();
        let mut walk = Forward::new(&arena);
        walk.up_to(&mut tangents, middle);
        walk.up_to(&mut tangents, nodes as u32);
        let expected = twin.forward(&seeds);
        assert!(tangents[1..].iter().zip(&expected[1..]).all(|(a, b)| a[0].to_bits() == b.to_bits()));
    }
}

#[test]
fn limits_stop_the_arena_before_they_are_passed() {
    for limit in [1, 2, 5, 300] {
        let mut arena = Arena::<f64>::new(limit, usize::MAX);
        for pushed in 0..limit {
            assert_eq!(arena.failure(), None, "after {pushed} of {limit}");
            match pushed % 3 {
                0 => arena.push([SINK], [0.0]),
                1 => arena.push([SINK; 4], [0.0; 4]),
                _ => arena.push_many(40, [(SINK, 0.0)].into_iter()),
            };
        }
        assert_eq!((arena.failure(), arena.next_node()), (None, limit + 1));
        arena.push([SINK], [0.0]);
        assert_eq!(arena.failure(), Some(&Error::TapeFull { limit }));
        arena.clear();
        assert_eq!(arena.failure(), None);
    }
    for limit in [0, 100, 5000, 100_000] {
        let mut arena = Arena::<f64>::new(MAX_NODES, limit);
        while arena.failure().is_none() {
            arena.push([SINK, SINK], [0.0, 1.0]);
            let with_cotangents = arena.bytes() + arena.next_node() as usize * size_of::<f64>();
            assert!(arena.failure().is_some() || with_cotangents <= limit, "{with_cotangents} of {limit}");
        }
        let Some(&Error::ByteLimit { limit: named, needed, node }) = arena.failure() else {
            panic!("no limit")
        };
        assert!(named == limit && needed > limit && node == arena.next_node() - 1);
    }
}

#[test]
fn nested_and_parallel_recordings_reach_their_own_memory() {
    fn cube<S: Real>(x: S) -> S {
        (0..3).fold(S::one(), |product, _| product * x)
    }
    // A tape inside a tape of the same type, on several threads at once.
    let outer = |x: f64| {
        let second = |x: &[Var<f64>]| {
            let inner = grad(|y| cube(y[0]), &[x[0].value()]).unwrap()[0];
            x[0] * inner + grad(|y: &[Var<Var<f64>>]| cube(y[0]), &[x[0]]).unwrap()[0]
        };
        grad(second, &[x]).unwrap()[0]
    };
    // d/dx (x c + 3 x^2) = c + 6 x with c = 3 x^2 taken as a constant.
    let threads: Vec<_> = [1.0, 2.0].map(|x| std::thread::spawn(move || outer(x))).into_iter().collect();
    let slopes: Vec<f64> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(slopes, [9.0, 24.0]);
    assert_eq!(grad(|x: &[Var<Dual<f64>>]| cube(x[0]), &[Dual::new(2.0, 1.0)]).unwrap()[0].tangent, 12.0);
}

#[test]
fn a_panic_inside_leaves_the_tape_usable() {
    let mut tape = Tape::new();
    let failed = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        let _ = tape.record(&[1.0], |x| if x[0] > 0.0 { panic!("the closure's own") } else { x[0] });
    }));
    assert!(failed.is_err());
    assert_eq!(tape.value_and_grad(|x| x[0] * x[0], &[3.0]).unwrap(), (9.0, vec![6.0]));
}

#[test]
fn long_sums_cross_chunks() {
    let n = if cfg!(miri) { 400 } else { 5000 };
    let x: Vec<f64> = (0..n).map(f64::from).collect();
    let g = grad(|x| x.iter().map(|v| v * v).sum(), &x).unwrap();
    assert!(g.iter().zip(&x).all(|(g, x)| *g == 2.0 * x));
}

/// A rule that computes with Vars of the tape that asks for its name.
struct Meddler([Var<f64>; 2]);

impl CustomRule<f64> for Meddler {
    fn name(&self) -> &'static str {
        let _ = (self.0[0] * self.0[1] + self.0[0]) * self.0[1].sin();
        "meddler"
    }
    fn reverse(&self, outputs: &[f64], inputs: &mut [f64]) -> Result<(), Error> {
        inputs[0] += outputs[0];
        Ok(())
    }
}

#[test]
fn a_rule_may_compute_with_its_tape_before_it_is_recorded() {
    let mut tape = Tape::traced();
    let mut record =
        tape.record(&[2.0, 3.0], |x| custom(x, &[x[0].value()], Meddler([x[0], x[1]]))[0] * x[0]).unwrap();
    assert_eq!(record.reverse(&[1.0]).unwrap(), [4.0, 0.0]);
}

#[test]
fn a_panic_between_edges_leaves_no_half_node() {
    let mut arena = Arena::new(MAX_NODES, usize::MAX);
    arena.push([SINK], [0.0]);
    let broken = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        arena.push_many(5, (0..5).map(|i| if i == 3 { panic!("no edge") } else { (1, 1.0) }))
    }));
    assert!(broken.is_err());
    arena.push([1], [7.0]);
    assert_eq!(nodes_of(&arena), [vec![(SINK, 0.0)], vec![(1, 7.0)]]);
}

#[test]
fn threads_give_their_numbers_back() {
    let number =
        || std::thread::spawn(|| grad(|x| x[0], &[1.0]).map(|_| stamp::blocks_in_use())).join().unwrap();
    let first = number().unwrap();
    for _ in 0..if cfg!(miri) { 3 } else { 200 } {
        // Other tests run at the same time, so the number may move, but not by one per thread.
        assert!(number().unwrap() < first + 64);
    }
}
