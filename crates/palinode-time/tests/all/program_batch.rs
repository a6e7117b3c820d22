//! One program over many inputs: the same bits as one by one, on any number of threads, within budgets.

use palinode_core::{Accumulator, Budget, Scalar};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::pal;
use palinode_time::{ProgramBatch, SampleError, spread};

/// Rounds, memory and branches depend on the sample.
const MODEL: &str = "
    input x
    input n: int
    var sum = 0
    var kept = zeros(n)
    for i in 0..n {
        if x * i > 2 { sum += sin(x * i) } else { sum -= x }
        kept[i] = sum
    }
    output last = sum
    output norms = kept[0..1] * x
";

fn code() -> Code {
    Code::new(&pal::compile(MODEL).expect("it is right").program)
}

fn set(sample: usize, inputs: &mut Vec<Datum<f64>>) {
    inputs.clear();
    inputs.push(Datum::real(0.37 * sample as f64 - 3.0));
    inputs.push(Datum::int(1 + (sample % 17) as i64 * 3));
}

fn bits(outputs: &[Datum<f64>]) -> Vec<u64> {
    outputs.iter().filter_map(Datum::as_vector).flatten().map(|x| x.to_bits()).collect()
}

fn on_threads<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

#[test]
fn answers_and_sums_have_the_same_bits_on_any_number_of_threads() {
    let code = code();
    let one_by_one: Vec<Vec<u64>> = (0..1100)
        .map(|sample| {
            let mut inputs = Vec::new();
            set(sample, &mut inputs);
            bits(&code.run(&inputs, &Limits::default()).unwrap())
        })
        .collect();
    for threads in [1, 2, 3, 7] {
        let batch = ProgramBatch::new(&code).parallel();
        let found = on_threads(threads, || batch.run(1100, set));
        let found: Vec<Vec<u64>> = found.into_iter().map(|outputs| bits(&outputs.unwrap())).collect();
        assert_eq!(found, one_by_one, "{threads} threads");
        for how in [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact] {
            let sum = on_threads(threads, || batch.sum(1100, set, how)).unwrap();
            let number = |sample: usize, at: usize| f64::from_bits(one_by_one[sample][at]);
            let expected: Vec<u64> = (0..2)
                .map(|at| f64::sum_with_over(1100, how, |sample| number(sample, at)).to_bits())
                .collect();
            assert_eq!(bits(&sum), expected, "{threads} threads, {how:?}");
        }
    }
}

#[test]
fn a_budget_is_that_of_all_threads() {
    let code = code();
    let heaps: Vec<usize> = ProgramBatch::new(&code)
        .run_with_stats(34, set)
        .into_iter()
        .map(|ran| ran.unwrap().1.heap_bytes)
        .collect();
    let (least, most) = (*heaps.iter().min().unwrap(), *heaps.iter().max().unwrap());
    assert!(least < most);
    // From one run at a time to all of them: what does not fit into a share runs by itself.
    for budget in [most, most + least, 2 * most, 4 * most] {
        let limits = Limits { budget: Budget::from(budget), ..Limits::default() };
        let found =
            on_threads(4, || ProgramBatch::new(&code).limits(limits).parallel().run_with_stats(34, set));
        for (ran, &heap) in found.iter().zip(&heaps) {
            assert_eq!(ran.as_ref().unwrap().1.heap_bytes, heap);
        }
    }
    let limits = Limits { budget: Budget::from(most - 1), ..Limits::default() };
    let found = on_threads(4, || ProgramBatch::new(&code).limits(limits).parallel().run(34, set));
    for (sample, (ran, &heap)) in found.iter().zip(&heaps).enumerate() {
        assert_eq!(ran.is_ok(), heap < most, "{sample}");
    }
}

#[test]
fn what_fails_is_named() {
    let code = Code::new(&pal::compile("input x: [n]\ninput at: int\noutput y = x[at]").unwrap().program);
    let set = |sample: usize, inputs: &mut Vec<Datum<f64>>| {
        inputs.clear();
        inputs.push(Datum::vector(vec![1.0; 5]));
        inputs.push(Datum::int(sample as i64));
    };
    let answers = ProgramBatch::new(&code).run(7, set);
    assert!(answers[..5].iter().all(Result::is_ok) && answers[5..].iter().all(Result::is_err));
    let error = ProgramBatch::new(&code).sum(7, set, Accumulator::Naive).unwrap_err();
    assert!(matches!(error, SampleError::Run { sample: 5, .. }), "{error}");
    assert_eq!(error.code(), "PAL0253");
    let lengths = Code::new(&pal::compile("input x: [n]\noutput y = x * 2").unwrap().program);
    let longer = |sample: usize, inputs: &mut Vec<Datum<f64>>| {
        inputs.clear();
        inputs.push(Datum::vector(vec![1.0; 1 + sample]));
    };
    let error = ProgramBatch::new(&lengths).sum(3, longer, Accumulator::Exact).unwrap_err();
    assert!(matches!(error, SampleError::NoSum { sample: 1, result: 0 }), "{error}");
}

#[test]
fn work_is_spread_in_order() {
    for threads in [1, 3] {
        let done = on_threads(3, || {
            spread(
                100,
                threads,
                || 0,
                |seen: &mut usize, i| {
                    *seen += 1;
                    (i, *seen)
                },
            )
        });
        assert!(done.iter().enumerate().all(|(i, &(own, seen))| i == own && seen >= 1));
        assert!(spread(0, threads, || (), |_, i| i).is_empty());
    }
}
