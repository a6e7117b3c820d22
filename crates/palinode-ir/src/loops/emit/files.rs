//! What is around functions: a crate, or a header and a source in C.

use super::super::form::{Kind, Operand, Port};
use super::c::{self as c_text, C};
use super::function::{Field, Function, function};
use super::language::{Language, NOTES, SUSPICIONS};
use super::rust::{self as rust_text, Rust, wrapped};
use super::support::{self, Needs};
use super::{Options, Task};

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the directory that is written.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Where the functions of the model begin, if it has some.
    pub functions: Option<usize>,
}

impl File {
    fn new(path: impl Into<String>, text: String) -> File {
        File { path: path.into(), text, functions: None }
    }
}

/// What the first lines of every file say.
const HEADING: &str = "Written by `palinode emit`; do not edit.";

/// A crate with a module for each form.
pub fn rust(name: &str, tasks: &[Task<'_>], options: &Options<'_>) -> Vec<File> {
    let mut files = Vec::new();
    let manifest = format!(
        "# {HEADING}\n[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.88\"\n\n\
         [features]\n# With it, square roots and fused multiply-adds are those of the standard library, which is faster\n\
         # on processors other than x86-64.\nstd = []\n\n[workspace]\n"
    );
    files.push(File::new("Cargo.toml", manifest));
    let mut needs = Needs::default();
    let modules: Vec<File> = tasks
        .iter()
        .map(|task| {
            let (text, functions) =
                module_of(task, options, function(task, options, false, &Rust, "", &mut needs));
            File { path: format!("src/{}.rs", task.name), text, functions: Some(functions) }
        })
        .collect();
    let mut lib = format!("//! {}\n//!\n//! {HEADING}\n", tasks.first().map_or("", |task| &task.about));
    lib.push_str("#![no_std]\n#![deny(unsafe_code)]\n\n#[cfg(feature = \"std\")]\nextern crate std;\n\n");
    tasks.iter().for_each(|task| lib.push_str(&format!("pub mod {};\n", task.name)));
    lib.push_str("mod support;\n\npub use support::{Error, Stop};\n");
    files.push(File::new("src/lib.rs", lib));
    files.push(File::new("src/support.rs", support_module(&needs)));
    files.extend(modules);
    files
}

/// A form as one file, with an entry for a machine that loads it, and the names of what is to be looked up in
/// it: the entry, and a number, the bytes of the workspace. (The crate's `std` is there.) All steps are
/// counted.
///
/// The entry is given, by their addresses, the workspace, the steps that are left and how suspicious
/// comparisons were so far (`Machine` in the text, which it changes), the buffers by their numbers, scalars
/// that are given, and where those that are taken go, or the addresses of arrays; it returns 0, or 1 if it
/// stopped.
pub fn rust_library(task: &Task<'_>) -> (String, [&'static str; 2]) {
    let mut needs = Needs::default();
    let options = Options { counts: true, line_of: &|_| None };
    let function = function(task, &options, true, &Rust, "", &mut needs);
    let (counts, suspects) = (function.counts, function.suspects);
    let (module, _) = module_of(task, &options, function);
    let name = task.name;
    let mut call = vec!["w".to_string()];
    for (number, port) in task.form.inputs.iter().enumerate() {
        match port {
            Port::Scalar(Operand::Reg(reg)) => call.push(match task.form.registers[reg.index()] {
                Kind::Real => format!("f64::from_bits(*given.add({number}))"),
                Kind::Int => format!("*given.add({number}) as i64"),
                Kind::Bool => format!("*given.add({number}) & 1 != 0"),
            }),
            Port::Scalar(_) => {}
            Port::Array(place) => {
                let buffer = &task.form.buffers[place.buf.index()];
                let of = format!("[{}; {}]", rust_text::scalar(buffer.kind), buffer.length);
                call.push(format!("&*(*table.add({})).cast::<{of}>()", place.buf.index()));
            }
        }
    }
    let results = Function::result_names(task);
    let taken: Vec<String> = results
        .iter()
        .zip(&task.form.outputs)
        .enumerate()
        .map(|(number, (name, port))| match port {
            Port::Array(_) => format!("            *taken.add({number}) = results.{name}.as_ptr() as u64;\n"),
            Port::Scalar(operand) => {
                let value = match task.form.kind(*operand) {
                    Kind::Real => format!("results.{name}.to_bits()"),
                    Kind::Int => format!("results.{name} as u64"),
                    Kind::Bool => format!("u64::from(results.{name})"),
                };
                format!("            *taken.add({number}) = {value};\n")
            }
        })
        .collect();
    let (before, after) = match counts {
        true => (
            "        w.step_limit = (*machine).steps as u64;\n",
            "        (*machine).steps = w.step_limit as i64;\n",
        ),
        false => ("", ""),
    };
    let suspicions = match suspects {
        true => format!("        (*machine).{SUSPICIONS} |= w.{SUSPICIONS};\n"),
        false => String::new(),
    };
    let text = format!(
        "mod program {{\n{module}}}\n\nmod support {{\n{}}}\n\n\
         #[repr(C)]\npub struct Machine {{\n    workspace: *mut program::Workspace,\n    steps: i64,\n    {SUSPICIONS}: u64,\n}}\n\n\
         #[unsafe(no_mangle)]\npub static palinode_workspace: usize = size_of::<program::Workspace>();\n\n\
         #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn palinode_entry(\n    machine: *mut Machine,\n    \
         table: *const *const u8,\n    given: *const u64,\n    taken: *mut u64,\n) -> i64 {{\n    unsafe {{\n        \
         let w = &mut *(*machine).workspace;\n{before}        match program::{name}({}) {{\n            \
         Err(_) => return 1,\n            Ok(results) => {{\n{}            }}\n        }}\n{after}{suspicions}        0\n    }}\n}}\n",
        support_module(&needs),
        call.join(", "),
        taken.concat(),
    );
    (text, ["palinode_entry", "palinode_workspace"])
}

fn support_module(needs: &Needs) -> String {
    format!(
        "//! What the modules of this crate call. {HEADING}\n\
         #![allow(dead_code, clippy::all)] // not every model uses every function\n\n{}",
        support::rust(needs)
    )
}

/// The type of a field in Rust.
fn of_rust(field: &Field, by: &str) -> String {
    match field.length {
        None => rust_text::scalar(field.kind).into(),
        Some(length) => format!("{by}[{}; {length}]", rust_text::scalar(field.kind)),
    }
}

/// What an array is, for people.
fn shape(field: &Field) -> String {
    let lengths: Vec<String> = field.shape.iter().map(ToString::to_string).collect();
    lengths.join(" by ")
}

/// The text of a module, and where its functions begin.
fn module_of(task: &Task<'_>, options: &Options<'_>, function: Function) -> (String, usize) {
    let mut lines = vec![format!("//! {}", task.about)];
    lines.push("//!".into());
    lines.push(format!("//! {HEADING}"));
    lines.push(
        "#![allow(clippy::all, non_snake_case, unused_assignments, unused_imports, unused_mut, unused_variables)]"
            .into(),
    );
    lines.extend(["".into(), "use super::support::*;".into(), "".into()]);
    rust_workspace(&function, &mut lines);
    rust_results(&function, &mut lines);
    let before = lines.join("\n").len() + 1;
    rust_function(task, options, &function, &mut lines);
    lines.push(String::new());
    lines.extend(function.loops);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    (lines.join("\n") + "\n", before)
}

fn rust_workspace(function: &Function, lines: &mut Vec<String>) {
    lines.push("/// Memory for one run at a time; a large one belongs in a `static` or a `Box`.".into());
    lines.push("pub struct Workspace {".into());
    if function.counts {
        lines.push("    /// How many rounds of loops a run may do.".into());
        lines.push("    pub step_limit: u64,".into());
    }
    if function.suspects {
        lines.push("    /// How suspicious comparisons were.".into());
        lines.push(format!("    pub {SUSPICIONS}: u64,"));
    }
    for field in &function.workspace {
        lines.push(format!("    pub(crate) {}: {},", field.name, of_rust(field, "")));
    }
    lines.push("}".into());
    lines.push(String::new());
    lines.push("impl Workspace {".into());
    lines.push("    /// Memory.".into());
    lines.push("    pub const fn new() -> Workspace {".into());
    lines.push("        Workspace {".into());
    if function.counts {
        lines.push("            step_limit: u64::MAX,".into());
    }
    if function.suspects {
        lines.push(format!("            {SUSPICIONS}: 0,"));
    }
    for field in &function.workspace {
        let zero = match rust_text::scalar(field.kind) {
            "f64" => "0.0",
            "i64" => "0",
            _ => "false",
        };
        lines.push(format!("            {}: [{zero}; {}],", field.name, field.length.unwrap_or(0)));
    }
    lines.extend(["        }", "    }", "}", ""].map(String::from));
    lines.push("impl Default for Workspace {".into());
    lines.push("    fn default() -> Workspace {".into());
    lines.push("        Workspace::new()".into());
    lines.extend(["    }", "}", ""].map(String::from));
}

fn has_arrays(function: &Function) -> bool {
    function.results.iter().any(|field| field.length.is_some())
}

fn rust_results(function: &Function, lines: &mut Vec<String>) {
    lines.push("/// What a run gives.".into());
    lines.push("#[derive(Clone, Copy, Debug, PartialEq)]".into());
    lines.push(format!("pub struct Results{} {{", if has_arrays(function) { "<'a>" } else { "" }));
    for field in &function.results {
        if field.length.is_some() {
            lines.push(format!("    /// {}, row by row.", shape(field)));
        } else {
            lines.push("    /// A number.".into());
        }
        lines.push(format!("    pub {}: {},", field.name, of_rust(field, "&'a ")));
    }
    lines.extend(["}", ""].map(String::from));
}

fn rust_function(task: &Task<'_>, options: &Options<'_>, function: &Function, lines: &mut Vec<String>) {
    lines.push(format!("/// {}", task.about));
    for (name, n) in &function.known {
        lines.push(format!("///\n/// Here `{name}` is {n}."));
    }
    lines.push("///".into());
    lines.push("/// # Errors".into());
    lines.push("/// Where the model would stop: why, and at which line.".into());
    let life = if has_arrays(function) { "'a " } else { "" };
    let mut params = vec![format!("w: &{life}mut Workspace")];
    for field in &function.params {
        params.push(format!("{}: {}", field.name, of_rust(field, &format!("&{life}"))));
    }
    let of_life = if has_arrays(function) { "<'a>" } else { "" };
    lines.extend(wrapped(
        &format!("pub fn {}{of_life}(", task.name),
        &params,
        &format!(") -> Result<Results{of_life}, Error> {{"),
    ));
    for field in &function.workspace {
        let mutable = if function.exchanged.contains(&field.name) { "mut " } else { "" };
        lines.push(format!("    let {mutable}{} = &mut w.{};", field.name, field.name));
    }
    if function.counts {
        lines.push("    let mut steps = w.step_limit;".into());
    }
    if function.has_notes {
        lines.push(
            "    // Bits of differences of numbers and themselves: zero as long as all are finite.".into(),
        );
        lines.push(format!("    {}", Rust.declare_notes(NOTES)));
    }
    if function.suspects {
        lines.push(format!("    {}", Rust.declare_notes(SUSPICIONS)));
    }
    lines.extend(function.body.iter().cloned());
    if function.counts && options.counts {
        lines.push("    w.step_limit = steps;".into());
    }
    if function.suspects {
        lines.push(format!("    w.{SUSPICIONS} = {SUSPICIONS};"));
    }
    let results: Vec<String> = function
        .results
        .iter()
        .map(|field| {
            if field.name == field.value {
                field.name.clone()
            } else {
                format!("{}: {}", field.name, field.value)
            }
        })
        .collect();
    lines.extend(wrapped("    Ok(Results { ", &results, " })"));
    lines.push("}".into());
}

/// A header and a source, with a function for each form; their names begin with that of the model.
pub fn c(name: &str, tasks: &[Task<'_>], options: &Options<'_>) -> Vec<File> {
    let mut needs = Needs::default();
    let guard = format!("{}_H", name.to_uppercase());
    let mut header = format!(
        "/* {HEADING} */\n#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n{STOPS}"
    );
    let mut body = String::new();
    for task in tasks {
        let prefix = format!("{}_", task.name);
        let function = function(task, options, false, &C, &prefix, &mut needs);
        let (head, text) = c_function(name, task, &function);
        header.push_str(&head);
        body.push_str(&text);
    }
    header.push_str("#endif\n");
    let mut source = format!(
        "/* {HEADING}\n   Build it with -ffp-contract=off: then it gives the bits that palinode gives. */\n\
         #include \"{name}.h\"\n\n{}\n",
        support::c(&needs)
    );
    let functions = Some(source.len());
    source.push_str(&body);
    let source = File { path: format!("{name}.c"), text: source, functions };
    vec![File::new(format!("{name}.h"), header), source]
}

/// Why a run stops.
const STOPS: &str = "/* What functions return: 0, or why they stopped. */
#ifndef PAL_STOPS
#define PAL_STOPS
enum {
    PAL_NOT_FINITE = 1, /* a number is infinite or NaN */
    PAL_OUTSIDE = 2,    /* an index is outside of its array */
    PAL_OVERFLOW = 3,   /* an integer is too large, or is divided by zero */
    PAL_FAILED = 4,     /* what the model demands does not hold */
    PAL_STEPS = 5       /* there are no steps left */
};
#endif

";

fn c_function(model: &str, task: &Task<'_>, function: &Function) -> (String, String) {
    let name = format!("{model}_{}", task.name);
    let mut head = vec![format!("/* Memory for one run of {name} at a time. */"), "typedef struct {".into()];
    head.push("    int line; /* of the model, where a run stopped */".into());
    if function.counts {
        head.push(
            "    uint64_t step_limit; /* how many rounds of loops a run may do; 0 if any number */".into(),
        );
    }
    for field in &function.workspace {
        let length = field.length.unwrap_or(0).max(1);
        head.push(format!("    {} {}[{length}];", c_text::scalar(field.kind), field.name));
    }
    head.push(format!("}} {name}_workspace;\n"));
    head.push("typedef struct {".into());
    for field in &function.results {
        head.push(match field.length {
            None => format!("    {} {};", c_text::scalar(field.kind), field.name),
            Some(_) => {
                format!("    const {} *{}; /* {} */", c_text::scalar(field.kind), field.name, shape(field))
            }
        });
    }
    head.push(format!("}} {name}_results;\n"));
    let mut params = vec![format!("{name}_workspace *w")];
    for field in &function.params {
        params.push(match field.length {
            None => format!("{} {}", c_text::scalar(field.kind), field.name),
            Some(length) => format!("const {} {}[{}]", c_text::scalar(field.kind), field.name, length.max(1)),
        });
    }
    params.push(format!("{name}_results *out"));
    head.push(format!("/* {} Results that are arrays lie in the workspace or are inputs.", task.about));
    for (name, n) in &function.known {
        head.push(format!("   Here {name} is {n}."));
    }
    head.push("   Returns 0, or why it stopped; w->line says where. */".into());
    head.extend(wrapped(&format!("int {name}("), &params, ");"));
    head.push(String::new());

    let mut lines: Vec<String> = function.loops.clone();
    lines.push(format!("/* {} */", task.about));
    lines.extend(wrapped(&format!("int {name}("), &params, ") {"));
    lines.push("    w->line = 0;".into());
    for field in function.params.iter().filter(|field| !field.is_used) {
        lines.push(format!("    (void){};", field.name));
    }
    for field in &function.workspace {
        let constant = if function.exchanged.contains(&field.name) { "" } else { "const " };
        lines.push(format!(
            "    {} *{constant}{} = w->{};",
            c_text::scalar(field.kind),
            field.name,
            field.name
        ));
    }
    if function.counts {
        lines.push("    uint64_t steps = w->step_limit ? w->step_limit : UINT64_MAX;".into());
    }
    if function.has_notes {
        lines.push(
            "    /* Bits of differences of numbers and themselves: zero as long as all are finite. */".into(),
        );
        lines.push(format!("    uint64_t {NOTES} = 0;"));
    }
    lines.extend(function.body.iter().cloned());
    for field in &function.results {
        lines.push(format!("    out->{} = {};", field.name, field.value));
    }
    lines.extend(["    return PAL_DONE;", "}", ""].map(String::from));
    (head.join("\n") + "\n", lines.join("\n") + "\n")
}
