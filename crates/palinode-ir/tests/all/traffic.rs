//! What loops compute and move, against counts by hand.

use palinode_core::Budget;
use palinode_core::schedule::binomial_cost;
use palinode_ir::interp::Datum;
use palinode_ir::loops::{self, LoopTraffic, Traffic};
use palinode_ir::plan::fit_gradient;
use palinode_ir::transform::Storage;
use palinode_ir::{Program, pal, passes};

use crate::peak::given;

fn counted(program: &Program, inputs: &[Datum<f64>]) -> (Vec<LoopTraffic>, LoopTraffic) {
    // Without a look at infinities, which reads as well.
    loops::lower(program, inputs, false).unwrap().traffic()
}

fn of(source: &str) -> (Vec<LoopTraffic>, LoopTraffic) {
    let model = pal::compile(source).unwrap();
    let inputs = given(&model).unwrap();
    counted(&passes::simplify(&passes::inline(&model.program)), &inputs)
}

#[test]
fn products_count_their_matrices_once() {
    let (rows, all) = of(
        "param a: [7, 5] = fill(0.5, 7, 5)\nparam b: [5, 3] = fill(0.5, 5, 3)\nlet c = a @ b\nloss l = c[0, 0]",
    );
    assert!(rows.is_empty());
    // And an element of the product.
    let read = 8 * (7 * 5 + 5 * 3 + 1);
    assert_eq!(all.traffic, Traffic { flops: 2 * 7 * 5 * 3, functions: 0, read, written: 8 * 7 * 3 });
    let (_, all) = of("param a: [9] = fill(0.5, 9)\nparam b: [9] = fill(0.5, 9)\nloss l = dot(a, b)");
    assert_eq!(all.traffic, Traffic { flops: 18, functions: 0, read: 8 * 18, written: 0 });
    assert_eq!(all.traffic.intensity(20.0), Some(18.0 / 144.0));
}

#[test]
fn loops_are_counted_with_what_is_inside() {
    let source = "param x = 0.5\nparam v: [4] = fill(0.5, 4)\nvar s = x\nfor i in 0..5 {\n for j in 0..7 { s = sin(s) * x + v[1] }\n s = s + 1\n}\nloss s";
    let (rows, all) = of(source);
    let [outer, inner] = rows[..] else { panic!("{rows:?}") };
    assert_eq!((outer.rounds, inner.rounds), (5, 35));
    assert!(outer.span.start < inner.span.start && inner.span.end < outer.span.end);
    assert_eq!((inner.traffic.flops, inner.traffic.functions), (70, 35));
    assert_eq!((outer.traffic.flops, outer.traffic.functions), (75, 35));
    assert_eq!(all.traffic.flops, 75);
    assert!(!all.at_least);
}

#[test]
fn rounds_that_data_decides_are_said_to_be_unknown() {
    let (_, all) = of("param x = 0.5\nvar s = x\nwhile s < 10 { s = s * 2 }\nloss s");
    assert!(all.at_least && all.traffic.flops == 2);
    // Of a branch the side that moves more.
    let (_, all) = of(
        "param x = 0.5\nparam v: [4] = fill(0.5, 4)\nvar a = v * 2\nif x > 0 { a[0] = x } else { a[0] = a[1] + a[2] }\nloss s = a[0]",
    );
    assert_eq!((all.at_least, all.traffic.read), (false, 8 * (4 + 2 + 1)));
}

#[test]
fn sweeps_count_what_is_computed_again() {
    let source = "param w: [40] = fill(0.4, 40)\nvar x = w\nfor i in 0..100 {\nx = sin(x) * 1.01\n}\nloss y = sum(x * x)\n";
    let model = pal::compile(source).unwrap();
    let inputs = given(&model).unwrap();
    let everything = palinode_ir::transform::value_and_grad(&model.program, &[0]).unwrap();
    let (kept, _) = counted(&passes::simplify(&everything), &inputs);
    assert_eq!(kept[0].rounds, 200);
    let fitted =
        fit_gradient(&model.program, &[0], &inputs, 8, &Storage::default(), Budget::from(5000)).unwrap();
    let [snapshots] = fitted.prediction.snapshots[..] else { panic!("{:?}", fitted.prediction) };
    assert!(snapshots.count > 1);
    // The loop and its sweep are one, and the turn between the two ways is a step of the schedule, but no
    // round.
    let rounds = binomial_cost(101, snapshots.count as u32).unwrap().forward - 1;
    let (rows, _) = counted(&fitted.program, &inputs);
    assert_eq!(rows[0].rounds, rounds, "{snapshots:?}");
    // Sines forwards and again; cosines backwards.
    assert_eq!(rows[0].traffic.functions, 40 * rows[0].rounds);
}
