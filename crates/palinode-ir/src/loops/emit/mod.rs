//! Loop form -> source text in Rust and C, to read, to vendor, and to compile.
//!
//! Input: loop forms, with the names of what they are given and give. Output: files: a crate, or a `.c` and a
//! `.h`, which need nothing but a support module that is among them. They compute the bits that the
//! interpreter computes; where a form stops, they say why and at which line of the model.
//!
//! | file | does |
//! |---|---|
//! | `write` | the walk over a form, which both languages share |
//! | `each`, `frame` | fused loops, each a function of its own, and the arrays that it is given |
//! | `whole` | statements on whole arrays |
//! | `arithmetic` | rows of the rule table, comparisons, integers |
//! | `uses`, `names` | what is a variable, where it is declared, how it is called |
//! | `language`, `rust`, `c` | what the languages write differently |
//! | `function` | what is around a form: memory, parameters, results |
//! | `files` | what is around functions: the crate, the header |
//! | `symbols` | the elementary functions, printed from the text of `palinode-num` |
//! | `support`, `support/` | what emitted code calls |
//!
//! Invariants: emitted Rust has no `unsafe`; an access of which the verifier does not know that it is inside
//! is checked when it is made. Nothing is contracted: C is to be built with `-ffp-contract=off`.
//!
//! Absent: compilers, files.

mod arithmetic;
mod c;
mod each;
mod files;
mod frame;
mod function;
mod language;
mod names;
mod rust;
mod support;
mod symbols;
mod text;
mod uses;
mod whole;
mod write;

use std::sync::Arc;

pub use files::{File, c, rust, rust_library};

use super::form::{LoopForm, Refusal, Role, Stmt};
use super::verify::verify;
use crate::op::Rule;
use crate::types::Span;

/// A loop form that becomes a function.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// What it gives, as in `The value of drag.pal`.
    pub about: String,
    /// The form.
    pub form: &'a LoopForm,
    /// How the inputs are called.
    pub inputs: Vec<Arc<str>>,
    /// How the outputs are called.
    pub outputs: Vec<Arc<str>>,
}

/// What is asked for.
pub struct Options<'a> {
    /// Whether all steps are counted, not only those of loops whose end is not known.
    pub counts: bool,
    /// The line of a place in the source.
    pub line_of: &'a dyn Fn(Span) -> Option<u32>,
}

/// Why a form has no text.
///
/// # Errors
/// What there is no text of.
pub fn supported(form: &LoopForm) -> Result<(), Refusal> {
    let refuse = |what: &str| Err(Refusal { what: what.into(), span: Span::NONE });
    if form.buffers.iter().any(|buffer| buffer.role == Role::Growing) {
        return refuse("a vector whose length depends on data");
    }
    if let Err(error) = verify(form) {
        return refuse(&format!("a wrong loop form ({error})"));
    }
    match form.body.iter().find_map(unsupported) {
        Some(what) => refuse(&what),
        None => Ok(()),
    }
}

/// What there is no text of in a statement.
fn unsupported(stmt: &Stmt) -> Option<String> {
    let row = |rule: Rule| (!arithmetic::is_known(rule)).then(|| format!("`{}`", rule.row.name()));
    let own = match stmt {
        Stmt::Kernel { op, .. } => Some(format!("`{}`", op.name())),
        Stmt::Sweep { .. } => Some("a sweep that keeps snapshots".into()),
        Stmt::Map { rule, .. } | Stmt::Function { rule, .. } => row(*rule),
        Stmt::Reserve { .. } => Some("a vector whose length depends on data".into()),
        Stmt::Move { .. } | Stmt::Round32 { .. } | Stmt::Int { .. } | Stmt::Index { .. } => None,
        Stmt::Compare { .. } | Stmt::And { .. } | Stmt::Or { .. } | Stmt::Not { .. } => None,
        Stmt::Select { .. } | Stmt::Truncate { .. } | Stmt::Convert { .. } | Stmt::Load { .. } => None,
        Stmt::Store { .. } | Stmt::Finite { .. } | Stmt::AllFinite { .. } | Stmt::Within { .. } => None,
        Stmt::Holds { .. } | Stmt::Stop | Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. } => None,
        Stmt::Each { .. } | Stmt::Reduce { .. } | Stmt::Product { .. } | Stmt::Dots { .. } => None,
        Stmt::Swap { .. } | Stmt::Step => None,
    };
    own.or_else(|| stmt.blocks().into_iter().flatten().find_map(unsupported))
}
