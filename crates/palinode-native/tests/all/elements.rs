//! A number -> a program over the elements of arrays of several kinds: reals of both precisions, integers,
//! truth values; lists of places; lengths around those at which machine code changes its ways.
//!
//! Programs are texts. What goes wrong in one goes wrong with every engine.

use std::fmt::Write;

use crate::random::Random;
use palinode_ir::interp::{Datum, Tensor};
use palinode_ir::{Program, text};

const LENGTHS: [usize; 10] = [0, 1, 2, 3, 4, 7, 16, 511, 513, 1025];

/// The values so far, by what they are.
#[derive(Default)]
struct Values {
    reals: Vec<String>,
    singles: Vec<String>,
    ints: Vec<String>,
    truths: Vec<String>,
    /// Numbers alone.
    numbers: Vec<String>,
}

struct Writer<'r> {
    random: &'r mut Random,
    values: Values,
    text: String,
    count: usize,
}

impl Writer<'_> {
    fn put(&mut self, line: &str) -> String {
        self.count += 1;
        let name = format!("v{}", self.count);
        let _ = writeln!(self.text, "  {name} = {line}");
        name
    }

    fn pick(&mut self, from: fn(&Values) -> &Vec<String>) -> String {
        let from = from(&self.values);
        from[self.random.below(from.len())].clone()
    }

    fn step(&mut self) {
        let [a, b] = [(); 2].map(|()| self.pick(|values| &values.reals));
        let [i, j] = [(); 2].map(|()| self.pick(|values| &values.ints));
        let [p, q] = [(); 2].map(|()| self.pick(|values| &values.truths));
        let x = self.pick(|values| &values.numbers);
        let s = self.pick(|values| &values.singles);
        let binary = ["add", "sub", "mul", "div", "strong_mul", "max", "min", "atan2", "hypot"];
        let unary = ["neg", "abs", "exp", "sin", "tanh", "sqrt", "relu", "recip", "cbrt"];
        let whole = ["iadd", "isub", "imul", "imin", "imax", "idiv", "irem"];
        let compared = ["less", "less_eq", "equal"];
        match self.random.below(16) {
            0 | 1 => {
                let line = format!("{} {a}, {b}", self.random.pick(&binary));
                let made = self.put(&line);
                self.values.reals.push(made);
            }
            2 => {
                let line = format!("{} {a}", self.random.pick(&unary));
                let made = self.put(&line);
                self.values.reals.push(made);
            }
            3 => {
                let line = format!("{} {x}, {a}", self.random.pick(&["add", "mul", "sub"]));
                let made = self.put(&line);
                self.values.reals.push(made);
            }
            4 => {
                let line = format!("select {p}, {a}, {b}");
                let made = self.put(&line);
                self.values.reals.push(made);
            }
            5 => {
                let made = self.put(&format!("convert<f64> {i}"));
                self.values.reals.push(made);
            }
            6 => {
                // Places that a list names: all, or nearly all, are there.
                let zero = self.put("const 0i");
                let most = if self.random.chance(20) { "const 5i" } else { "const 0i" };
                let most = self.put(most);
                let floor = self.put(&format!("imax {i}, {zero}"));
                let list = self.put(&format!("imin {floor}, {most}"));
                let made = self.put(&format!("read {a}[@{list}]"));
                self.values.reals.push(made);
            }
            7 => {
                let line = format!("{} {i}, {j}", self.random.pick(&whole));
                let made = self.put(&line);
                self.values.ints.push(made);
            }
            8 => {
                let bounded = self.put(&format!("tanh {a}"));
                let made = self.put(&format!("convert<int> {bounded}"));
                self.values.ints.push(made);
            }
            9 => {
                let made = self.put(&format!("select {p}, {i}, {j}"));
                self.values.ints.push(made);
            }
            10 => {
                let line = format!("{} {a}, {b}", self.random.pick(&compared));
                let made = self.put(&line);
                self.values.truths.push(made);
            }
            11 => {
                let line = format!("{} {i}, {j}", self.random.pick(&compared));
                let made = self.put(&line);
                self.values.truths.push(made);
            }
            12 => {
                let line = match self.random.below(3) {
                    0 => format!("and {p}, {q}"),
                    1 => format!("or {p}, {q}"),
                    _ => format!("not {p}"),
                };
                let made = self.put(&line);
                self.values.truths.push(made);
            }
            13 => {
                let short = self.put(&format!("convert<f32> {a}"));
                let made = self.put(&format!("mul {short}, {s}"));
                let long = self.put(&format!("convert<f64> {made}"));
                self.values.singles.push(short);
                self.values.singles.push(made);
                self.values.reals.push(long);
            }
            14 => {
                let made = self.put(&format!("reduce_sum<0> {a}"));
                self.values.numbers.push(made);
            }
            _ => {
                // An element that is there, or one that cannot be.
                let at = if self.random.chance(3) { "const 5000i" } else { "const 0i" };
                let at = self.put(at);
                let made = self.put(&format!("read {a}[{at}]"));
                self.values.numbers.push(made);
            }
        }
    }
}

/// The program of a number, and inputs.
pub(crate) fn program(seed: u64) -> (Program, Vec<Datum<f64>>) {
    let random = &mut Random::new(seed);
    let length = *random.pick(&LENGTHS);
    let shape = vec![length];
    let reals = (0..length).map(|_| 1.5 * random.signed()).collect();
    let ints = (0..length).map(|_| random.below(9) as i64 - 4).collect();
    let inputs = vec![
        Datum::Real(Tensor { shape: shape.clone(), data: reals }),
        Datum::Int(Tensor { shape, data: ints }),
        Datum::real(random.signed()),
    ];
    let mut writer = Writer { random, values: Values::default(), text: String::new(), count: 0 };
    writer.values.reals.push("a".into());
    writer.values.numbers.push("x".into());
    let n = writer.put("dim<0> a");
    let iota = writer.put(&format!("iota {n}"));
    writer.values.ints.extend(["l".into(), iota]);
    let truth = writer.put("less a, x");
    writer.values.truths.push(truth);
    let single = writer.put("convert<f32> a");
    writer.values.singles.push(single);
    let steps = 3 + writer.random.below(18);
    (0..steps).for_each(|_| writer.step());
    // Everything is looked at.
    let (reals, ints) = (writer.values.reals.clone(), writer.values.ints.clone());
    let mut sum = writer.put("const 0.0");
    for value in reals {
        let one = writer.put(&format!("reduce_sum<0> {value}"));
        sum = writer.put(&format!("add {sum}, {one}"));
    }
    for value in ints {
        let one = writer.put(&format!("convert<f64> {value}"));
        let one = writer.put(&format!("reduce_sum<0> {one}"));
        sum = writer.put(&format!("add {sum}, {one}"));
    }
    for number in writer.values.numbers.clone() {
        sum = writer.put(&format!("add {sum}, {number}"));
    }
    let last = writer.pick(|values| &values.reals);
    let flags = writer.pick(|values| &values.truths);
    let text = format!(
        "entry fn main(a: f64[_], l: int[_], x: f64) -> (f64, f64[_], bool[_]) outputs (y, z, w) {{\n{}  yield \
         {sum}, {last}, {flags}\n}}\n",
        writer.text
    );
    let program = text::parse(&text).unwrap_or_else(|errors| panic!("seed {seed}: {errors:?}\n{text}"));
    (program, inputs)
}
