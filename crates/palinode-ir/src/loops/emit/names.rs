//! Names of registers and buffers: those of the source, where it has some.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use palinode_core::rules::Row;

use super::super::form::{Buf, LoopForm, Operand, Port, Reg, Stmt};

/// Words that are no names in Rust, in C or in C++, which reads headers of C, or are macros of compilers.
const WORDS: &str = "Self abstract alignas alignof and and_eq as asm async auto await become bitand bitor bool \
    box break case catch char class co_await co_return co_yield compl concept const consteval constexpr \
    constinit const_cast continue crate decltype default delete do double dyn dynamic_cast else enum explicit \
    export extern false final float fn for friend gen goto if impl in inline int let linux long loop macro \
    main match mod move mut mutable namespace new noexcept not not_eq nullptr operator or or_eq override priv \
    private protected pub public ref register reinterpret_cast requires restrict return self short signed \
    sizeof static static_assert static_cast struct super switch template this thread_local throw trait true \
    try type typedef typeid typename typeof union unix unsafe unsigned unsized use using virtual void volatile \
    wchar_t where while xor xor_eq yield f32 f64 i64 u64 usize int64_t uint64_t \
    assert errno stdin stdout NULL INFINITY NAN Some None Ok Err Result Option Error Stop Workspace Results \
    w out bad suspicions suspicions_here steps stop abs min max y0 y1 yn j0 j1 jn gamma";

/// The names of a form.
pub(super) struct Names {
    taken: HashSet<String>,
    registers: Vec<Option<String>>,
    buffers: Vec<String>,
    /// How many registers without a name have been printed.
    nameless: usize,
    /// The names of counters, by how deeply loops are nested.
    counters: Vec<&'static str>,
}

/// Names of counters, outermost first.
const COUNTERS: [&str; 8] = ["i", "j", "k", "l", "m", "n", "p", "q"];

impl Names {
    /// Names for the inputs, the buffers and the registers of a form.
    pub(super) fn new(form: &LoopForm, inputs: &[Arc<str>]) -> Names {
        let mut taken: HashSet<String> = WORDS.split_whitespace().map(String::from).collect();
        taken.extend(super::support::NAMES.iter().map(|&word| word.to_string()));
        taken.extend(Row::ALL.iter().map(|row| row.name().to_string()));
        let mut names = Names {
            taken,
            registers: vec![None; form.registers.len()],
            buffers: vec![String::new(); form.buffers.len()],
            nameless: 0,
            counters: Vec::new(),
        };
        // Inputs first, so that they have their own names.
        for (port, name) in form.inputs.iter().zip(inputs) {
            match port {
                Port::Scalar(Operand::Reg(reg)) => {
                    names.registers[reg.index()] = Some(names.unique(name));
                }
                Port::Scalar(_) => {}
                Port::Array(place) => {
                    names.buffers[place.buf.index()] = names.unique(name);
                }
            }
        }
        let mut kept = HashMap::new();
        what_is_kept(&form.body, None, form, &mut kept);
        for (at, buffer) in form.buffers.iter().enumerate() {
            if names.buffers[at].is_empty() {
                let of = kept.get(&Buf(at as u32)).map(|name| match name {
                    Some(name) => format!("{name}_kept"),
                    None => "kept".into(),
                });
                let own = buffer.name.as_deref();
                names.buffers[at] = names.unique(own.or(of.as_deref()).unwrap_or("memory"));
            }
        }
        for (at, origin) in form.origins.iter().enumerate() {
            if let (None, Some(name)) = (&names.registers[at], &origin.name) {
                names.registers[at] = Some(names.unique(name));
            }
        }
        names.counters = COUNTERS.iter().copied().filter(|&name| !names.taken.contains(name)).collect();
        names
    }

    /// The name of a buffer.
    pub(super) fn buffer(&self, buf: Buf) -> &str {
        &self.buffers[buf.index()]
    }

    /// Whether the source has a name for a register.
    pub(super) fn has_own(&self, reg: Reg) -> bool {
        self.registers[reg.index()].is_some()
    }

    /// The name of a register.
    pub(super) fn register(&mut self, reg: Reg) -> String {
        if self.registers[reg.index()].is_none() {
            self.nameless += 1;
            let name = self.unique(&format!("t{}", self.nameless));
            self.registers[reg.index()] = Some(name);
        }
        self.registers[reg.index()].clone().unwrap_or_default()
    }

    /// The name of the counter of a loop in so many others.
    pub(super) fn counter(&mut self, reg: Reg, depth: usize) -> String {
        if let Some(name) = &self.registers[reg.index()] {
            return name.clone();
        }
        let name = match self.counters.get(depth) {
            Some(&name) => name.to_string(),
            None => self.unique("round"),
        };
        self.registers[reg.index()] = Some(name.clone());
        name
    }

    /// A name that nobody else has.
    pub(super) fn unique(&mut self, wish: &str) -> String {
        let plain = spelled(wish);
        let mut name = plain.clone();
        let mut number = 2;
        while self.taken.contains(&name) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        self.taken.insert(name.clone());
        name
    }
}

/// A wish as what may be a name.
fn spelled(wish: &str) -> String {
    let plain: String = wish.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // Those that begin with an underscore are the compilers' own, and with `pal_` those of emitted C.
    let is_free = plain.starts_with(|c: char| c.is_ascii_alphabetic()) && !plain.starts_with("pal_");
    if is_free { plain } else { format!("x{plain}") }
}

/// A name of its own, such as that of a field.
pub(super) fn identifier(wish: &str) -> String {
    let plain = spelled(wish);
    if WORDS.split_whitespace().any(|word| word == plain) { format!("{plain}_") } else { plain }
}

/// What outermost loops keep in buffers, round by round: the name of the first that has one.
fn what_is_kept(
    stmts: &[Stmt],
    outermost: Option<Reg>,
    form: &LoopForm,
    found: &mut HashMap<Buf, Option<Arc<str>>>,
) {
    for stmt in stmts {
        if let Stmt::Store { buf, at, from } = stmt
            && at.terms.iter().any(|term| Some(term.0) == outermost)
        {
            let own = match from {
                Operand::Reg(reg) => form.origins.get(reg.index()).and_then(|origin| origin.name.clone()),
                _ => None,
            };
            let name = found.entry(*buf).or_default();
            *name = name.take().or(own);
        }
        let counter = match stmt {
            Stmt::For { counter, .. } => Some(*counter),
            _ => None,
        };
        for block in stmt.blocks() {
            what_is_kept(block, outermost.or(counter), form, found);
        }
    }
}
