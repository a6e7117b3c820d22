//! Programs that call emitted functions: they read words from a file and print words.

use std::fmt::Write as _;

use palinode_ir::loops::{Kind, LoopForm, Operand, Place, Port};

use super::Case;

/// Whether a port is an input that is known when the form is made.
pub(super) fn is_known(port: &Port) -> bool {
    matches!(port, Port::Scalar(Operand::Int(_)))
}

fn kind_of_scalar(form: &LoopForm, operand: Operand) -> Kind {
    match operand {
        Operand::Reg(reg) => form.registers[reg.index()],
        Operand::Real(_) => Kind::Real,
        Operand::Int(_) => Kind::Int,
        Operand::Bool(_) => Kind::Bool,
    }
}

fn kind_of_array(form: &LoopForm, place: &Place) -> Kind {
    form.buffers[place.buf.index()].kind
}

/// A main function in Rust.
pub(super) fn rust(cases: &[Case]) -> String {
    let mut out = String::from(
        "#![allow(dead_code)] // not every program has all kinds of inputs
use std::io::Read;
struct Words(Vec<u8>, usize);
impl Words {
    fn next(&mut self) -> u64 {
        let word = self.0[self.1..self.1 + 8].try_into().unwrap();
        self.1 += 8;
        u64::from_le_bytes(word)
    }
    fn reals<const N: usize>(&mut self) -> [f64; N] { core::array::from_fn(|_| f64::from_bits(self.next())) }
    fn ints<const N: usize>(&mut self) -> [i64; N] { core::array::from_fn(|_| self.next() as i64) }
    fn bools<const N: usize>(&mut self) -> [bool; N] { core::array::from_fn(|_| self.next() != 0) }
}
trait Print { fn print(self); }
impl Print for f64 { fn print(self) { print!(\" {:x}\", if self.is_nan() { f64::NAN.to_bits() } else { self.to_bits() }) } }
impl Print for i64 { fn print(self) { print!(\" {self:x}\") } }
impl Print for bool { fn print(self) { print!(\" {:x}\", u64::from(self)) } }
impl<T: Print + Copy, const N: usize> Print for &[T; N] { fn print(self) { self.iter().for_each(|x| x.print()) } }
",
    );
    for (number, case) in cases.iter().enumerate() {
        let _ = writeln!(out, "fn run{number}(words: &mut Words) {{\n    let _ = &words;");
        let mut args = String::new();
        for (at, port) in case.form.inputs.iter().enumerate().filter(|(_, port)| !is_known(port)) {
            let (read, by) = match port {
                Port::Scalar(operand) => match kind_of_scalar(&case.form, *operand) {
                    Kind::Real => ("f64::from_bits(words.next())", ""),
                    Kind::Int => ("words.next() as i64", ""),
                    Kind::Bool => ("words.next() != 0", ""),
                },
                Port::Array(place) => match kind_of_array(&case.form, place) {
                    Kind::Real => ("words.reals()", "&"),
                    Kind::Int => ("words.ints()", "&"),
                    Kind::Bool => ("words.bools()", "&"),
                },
            };
            let _ = writeln!(out, "    let in{at} = {read};");
            let _ = write!(args, ", {by}in{at}");
        }
        let name = &case.name;
        let _ = writeln!(out, "    let mut w = Box::new(programs::{name}::Workspace::new());");
        // Twice: what a run leaves behind must not matter.
        let _ = writeln!(out, "    let _ = programs::{name}::{name}(&mut w{args});");
        let _ = writeln!(out, "    match programs::{name}::{name}(&mut w{args}) {{");
        let _ = writeln!(
            out,
            "        Err(error) => print!(\"{{error}}\"),\n        Ok(results) => {{\n            print!(\"0\");"
        );
        for at in 0..case.form.outputs.len() {
            let _ = writeln!(out, "            results.out{at}.print();");
        }
        let _ = writeln!(out, "        }}\n    }}\n    println!();\n}}");
    }
    let _ = writeln!(out, "fn main() {{\n    let mut bytes = Vec::new();");
    out.push_str("    std::fs::File::open(std::env::args().nth(1).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();\n");
    out.push_str("    let all = move || {\n    let mut words = Words(bytes, 0);\n");
    for number in 0..cases.len() {
        let _ = writeln!(out, "    run{number}(&mut words);");
    }
    out.push_str("    };\n    std::thread::Builder::new().stack_size(1 << 29).spawn(all).unwrap().join().unwrap();\n}\n");
    out
}

/// A main function in C.
pub(super) fn c(cases: &[Case]) -> String {
    let mut out = String::from(
        "#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include \"programs.h\"
static FILE *file;
static uint64_t next(void) {
    uint64_t word = 0;
    if (fread(&word, sizeof word, 1, file) != 1) exit(2);
    return word;
}
static void put(uint64_t word) { printf(\" %llx\", (unsigned long long)word); }
static double real_of(uint64_t word) { double x; memcpy(&x, &word, sizeof x); return x; }
static void put_real(double x) { uint64_t word; memcpy(&word, &x, sizeof word); put(x != x ? UINT64_C(0x7ff8000000000000) : word); }
",
    );
    for (number, case) in cases.iter().enumerate() {
        let name = format!("programs_{}", case.name);
        let _ = writeln!(out, "static void run{number}(void) {{");
        let (mut args, mut frees) = (String::new(), String::new());
        for (at, port) in case.form.inputs.iter().enumerate().filter(|(_, port)| !is_known(port)) {
            let (kind, length) = match port {
                Port::Scalar(operand) => (kind_of_scalar(&case.form, *operand), None),
                Port::Array(place) => (kind_of_array(&case.form, place), Some(place.elements())),
            };
            let (ty, read) = match kind {
                Kind::Real => ("double", "real_of(next())"),
                Kind::Int => ("int64_t", "(int64_t)next()"),
                Kind::Bool => ("bool", "next() != 0"),
            };
            match length {
                None => {
                    let _ = writeln!(out, "    {ty} in{at} = {read};");
                }
                Some(length) => {
                    // As long as it is, so that sanitizers see what lies behind it.
                    let _ = writeln!(out, "    {ty} *in{at} = malloc({} * sizeof *in{at});", length.max(1));
                    let _ = writeln!(out, "    for (size_t i = 0; i < {length}u; i++) in{at}[i] = {read};");
                    let _ = writeln!(frees, "    free(in{at});");
                }
            }
            let _ = write!(args, ", in{at}");
        }
        let _ = writeln!(out, "    {name}_workspace *w = calloc(1, sizeof *w);\n    {name}_results r;");
        let _ = writeln!(out, "    (void){name}(w{args}, &r);");
        let _ = writeln!(
            out,
            "    int stop = {name}(w{args}, &r);\n    printf(\"%d\", stop);\n    if (stop == 0) {{"
        );
        for (at, port) in case.form.outputs.iter().enumerate() {
            let (kind, length) = match port {
                Port::Scalar(operand) => (kind_of_scalar(&case.form, *operand), None),
                Port::Array(place) => (kind_of_array(&case.form, place), Some(place.elements())),
            };
            let put = if kind == Kind::Real { "put_real(" } else { "put((uint64_t)" };
            let _ = match length {
                None => writeln!(out, "        {put}r.out{at});"),
                Some(length) => {
                    writeln!(out, "        for (size_t i = 0; i < {length}u; i++) {put}r.out{at}[i]);")
                }
            };
        }
        let _ = writeln!(out, "    }}\n    printf(\"\\n\");\n{frees}    free(w);\n}}");
    }
    out.push_str("int main(int argc, char **argv) {\n    if (argc < 2 || !(file = fopen(argv[1], \"rb\"))) return 2;\n");
    for number in 0..cases.len() {
        let _ = writeln!(out, "    run{number}();");
    }
    out.push_str("    fclose(file);\n    return 0;\n}\n");
    out
}
