//! What is printed parses, and is the same form; what is damaged is refused or another form, and nothing
//! panics.

use palinode_ir::interp::Datum;
use palinode_ir::loops::{self, LoopForm, parse, verify};

use super::damage::damaged;
use super::{forms, of_examples};
use crate::random::Random;
use crate::random::programs::{self, Kind};
use crate::random_programs::from_environment;

fn of_random_programs(count: u64) -> Vec<LoopForm> {
    let mut found = Vec::new();
    for seed in 0..count {
        for kind in [Kind::Any, Kind::Strong, Kind::Walked] {
            let program = programs::program(seed, 4 + (seed % 20) as usize, kind);
            let inputs = programs::inputs(&mut Random::new(seed));
            let wrt: Vec<usize> =
                (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
            found.extend(forms(&program, &inputs, &wrt));
        }
    }
    found
}

fn is_read_back(form: &LoopForm) {
    let text = form.to_string();
    match parse(&text) {
        Ok(again) => {
            assert!(
                again == LoopForm { spans: Vec::new(), origins: Vec::new(), ..form.clone() },
                "another form:\n{text}\n{again}"
            )
        }
        Err(error) => panic!("{error}\n{text}"),
    }
}

#[test]
fn what_is_printed_parses() {
    let examples = of_examples();
    assert!(examples.len() > 200, "{} forms", examples.len());
    examples.iter().for_each(is_read_back);
    of_random_programs(10).iter().for_each(is_read_back);
}

#[test]
fn names_and_numbers_of_any_kind_are_read_back() {
    let text = "loops a\\{20}b(r0, b0[0][2], -5i) -> (r1, -0.0, nan:7ff8000000000001, -inf, true) traps {
  real: r0-r1 r3
  int: r2
  b0: real[2] input 1 (\\{21}ä.x)
  b1: bool[7] growing
  r1 = polygamma<-2> r0
  r2 = index -3*r2 - r5 - 9223372036854775808
  b0[0][2] = powi<7> itself
  r1, b1[0][] = kernel f32 solve_t r0, b0[r2 + 1][1, 2]
  = kernel det
}
";
    let form = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(form.to_string(), text);
    is_read_back(&form);
    assert_eq!(&*form.name, "a b");
}

#[test]
fn mistakes_are_reported_with_line_and_reason() {
    let with = |stmt: &str| format!("loops f() -> () {{\n  int: r0\n  b0: int[2] workspace\n  {stmt}\n}}\n");
    for (text, line, reason) in [
        ("", 1, "the text ends too early"),
        ("loops f() -> () {", 1, "the text ends too early"),
        ("loops f() -> () {\n  int: r1\n}", 2, "r0 is not declared"),
        ("loops f() -> () {\n  int: r0-r1\n  real: r1\n}", 3, "r1 is declared twice"),
        ("loops f() -> () {\n  int: r0-r4000000000\n}", 2, "are no registers"),
        ("loops f() -> () {\n  b1: int[2] workspace\n}", 2, "b1 is out of order"),
        ("loops f() -> () {\n}\nstop", 3, "something follows the end"),
        (&with("r0 = shift r0"), 4, "there is no operation `shift`"),
        (&with("r0 = iadd r0"), 4, "expected 2 operands, found 1"),
        (&with("r0 = 99999999999999999999i"), 4, "expected a register or a literal"),
        (&with("b0[0] = "), 4, "expected a register or a literal"),
        (&with("b0[r0 + 99999999999999999999] = 1i"), 4, "the number is too large"),
        (&with("b0[0][2] = kernel for r0"), 4, "there is no kernel `for`"),
        (&with("b0[0][2] += reduce_sum b0[0][2]"), 4, "only a product of matrices adds"),
        (&with("for r0 in 3i {"), 5, "the text ends too early"),
        (&with("jump r0"), 4, "this is no statement"),
        (&with("stop now"), 4, "the line should end here"),
    ] {
        let error = parse(text).expect_err(reason);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.message.contains(reason), "{error}, not {reason}");
    }
    let deep = format!("loops f() -> () {{\n{}{}}}", "if true {\n".repeat(9000), "}\n".repeat(9000));
    assert!(parse(&deep).expect_err("too deep").message.contains("deep"));
}

/// `PALINODE_PROGRAMS=1000000` is the long run.
#[test]
fn damaged_texts_do_no_harm() {
    let count = from_environment("PALINODE_PROGRAMS", 20_000);
    let texts: Vec<String> = of_random_programs(4).iter().map(LoopForm::to_string).collect();
    let random = &mut Random::new(7);
    let (mut read, mut right) = (0, 0);
    for _ in 0..count {
        let text = damaged(&texts[random.below(texts.len())], random);
        let Ok(form) = parse(&text) else { continue };
        read += 1;
        is_read_back(&form);
        if verify(&form).is_ok() {
            right += 1;
            // What is right stays right.
            let mut form = form;
            loops::improve(&mut form);
            verify(&form).unwrap_or_else(|error| panic!("{error}\n{text}\n{form}"));
        }
    }
    assert!(read > count / 10 && right > count / 100 && right < read, "{read} read, {right} right");
}
