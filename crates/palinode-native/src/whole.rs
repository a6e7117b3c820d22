//! What all functions of a program have in common: which statements are whose, and where everything lies.

use std::collections::HashMap;

use palinode_ir::loops::{Buf, Lasts, LoopForm, Pieces, Reg, Role, Stmt, Unproven, given_to};

/// The alignment of buffers.
const LINE: usize = 64;

/// What all functions of a program are made with.
pub(crate) struct Whole<'f> {
    pub(crate) form: &'f LoopForm,
    /// Accesses that are checked.
    pub(crate) unproven: &'f Unproven,
    pub(crate) pieces: Pieces<'f>,
    /// Loops that are functions of their own.
    pub(crate) outlined: HashMap<*const Stmt, Outlined>,
    pub(crate) lasts: Lasts,
    /// Where buffers of the workspace begin.
    pub(crate) offsets: Vec<Option<usize>>,
    /// Buffers whose memory is exchanged.
    pub(crate) exchanged: Vec<bool>,
    /// Where pointers to such buffers are in the workspace, if there are several functions, and where the
    /// registers are that several of them use.
    pub(crate) pointers: usize,
    pub(crate) homes: usize,
    /// The bytes of the workspace.
    pub(crate) workspace: usize,
}

impl<'f> Whole<'f> {
    pub(crate) fn of(form: &'f LoopForm, unproven: &'f Unproven, most: u64) -> Whole<'f> {
        let (offsets, pointers) = layout(form);
        let pieces = Pieces::of(form, most);
        let mut exchanged = vec![false; form.buffers.len()];
        find_exchanged(&form.body, &mut exchanged);
        let are_there = !pieces.pieces.is_empty() && exchanged.contains(&true);
        let homes = pointers + if are_there { 8 * form.buffers.len() } else { 0 };
        let workspace = homes + 8 * pieces.words;
        let lasts = Lasts::of(form);
        let outlined = HashMap::new();
        let mut whole =
            Whole { form, unproven, pieces, outlined, lasts, offsets, exchanged, pointers, homes, workspace };
        // Pieces are short enough.
        if whole.pieces.pieces.is_empty() {
            whole.outlined = find(&whole);
        }
        whole
    }

    /// The loops that are functions of their own, in the order of the program.
    pub(crate) fn loops(&self) -> Vec<(&Stmt, &Outlined)> {
        in_order(self)
    }

    /// Whether a buffer is always at the same place of the workspace.
    pub(crate) fn stays(&self, buf: Buf) -> bool {
        self.offsets[buf.index()].is_some() && !self.exchanged[buf.index()]
    }
}

fn find_exchanged(stmts: &[Stmt], found: &mut [bool]) {
    for stmt in stmts {
        if let Stmt::Swap { a, b } = stmt {
            found[a.index()] = true;
            found[b.index()] = true;
        }
        stmt.blocks().into_iter().for_each(|block| find_exchanged(block, found));
    }
}

/// Where each buffer of the workspace begins, and how long that is.
fn layout(form: &LoopForm) -> (Vec<Option<usize>>, usize) {
    let mut at = 0;
    let mut offsets = Vec::with_capacity(form.buffers.len());
    for buffer in &form.buffers {
        offsets.push((buffer.role == Role::Workspace).then_some(at));
        if buffer.role == Role::Workspace {
            let bytes = usize::try_from(buffer.length).unwrap_or(usize::MAX / 16) * buffer.kind.bytes();
            at += bytes.next_multiple_of(LINE);
        }
    }
    (offsets, at)
}

/// Loops over fewer elements take no longer than the call would.
const SHORTEST: i64 = 64;

/// A loop that is a function.
pub(crate) struct Outlined {
    /// Which one it is, in the order of the program.
    pub(crate) number: usize,
    /// Buffers whose addresses it is given.
    pub(crate) buffers: Vec<Buf>,
    /// Registers that it is given.
    pub(crate) registers: Vec<Reg>,
    pub(crate) compares: bool,
    /// Whether it may leave before its end.
    pub(crate) may_leave: bool,
}

/// The loops of a form that are functions.
fn find(whole: &Whole<'_>) -> HashMap<*const Stmt, Outlined> {
    fn look(stmts: &[Stmt], whole: &Whole<'_>, found: &mut HashMap<*const Stmt, Outlined>) {
        for stmt in stmts {
            match stmt {
                Stmt::Each { axes, body } => {
                    let rounds = axes.iter().fold(1_i64, |all, axis| all.saturating_mul(axis.2 - axis.1));
                    if rounds >= SHORTEST {
                        found.insert(stmt, outlined(stmt, body, whole, found.len()));
                    }
                }
                _ => stmt.blocks().into_iter().for_each(|block| look(block, whole, found)),
            }
        }
    }
    let mut found = HashMap::new();
    look(&whole.form.body, whole, &mut found);
    found
}

fn outlined(stmt: &Stmt, body: &[Stmt], whole: &Whole<'_>, number: usize) -> Outlined {
    let mut buffers: Vec<Buf> = body
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::Load { buf, .. } | Stmt::Store { buf, .. } => Some(*buf),
            _ => None,
        })
        .filter(|&buf| !whole.stays(buf))
        .collect();
    buffers.sort_unstable();
    buffers.dedup();
    let compares = body.iter().any(|stmt| matches!(stmt, Stmt::Compare { .. }));
    let is_checked = body.iter().any(|stmt| whole.unproven.contains(stmt));
    Outlined { number, buffers, registers: given_to(stmt), compares, may_leave: compares || is_checked }
}

/// The loops, in the order of the program.
fn in_order<'w>(whole: &'w Whole<'_>) -> Vec<(&'w Stmt, &'w Outlined)> {
    fn collect<'w>(stmts: &'w [Stmt], whole: &'w Whole<'_>, found: &mut Vec<(&'w Stmt, &'w Outlined)>) {
        for stmt in stmts {
            match whole.outlined.get(&core::ptr::from_ref(stmt)) {
                Some(outlined) => found.push((stmt, outlined)),
                None => stmt.blocks().into_iter().for_each(|block| collect(block, whole, found)),
            }
        }
    }
    let mut found = Vec::with_capacity(whole.outlined.len());
    collect(&whole.form.body, whole, &mut found);
    debug_assert!(found.iter().enumerate().all(|(at, (_, outlined))| outlined.number == at));
    found
}
