//! Buffers that are not needed at the same time share memory.
//!
//! A buffer is needed from the first statement that touches it to the last one; where these are in different
//! loops, for the whole of those loops. Buffers that are exchanged are needed as one. Those of one kind whose
//! times do not overlap become one buffer, if they are of one length, or nearly.

use std::collections::BTreeMap;

use super::super::form::{Buf, Kind, LoopForm, Port, Role, Stmt};
use super::touch::Touch;

/// From the number of a statement to that of another.
type Time = (usize, usize);

pub(super) fn run(form: &mut LoopForm) {
    let count = form.buffers.len();
    let mut walk = Walk { at: 0, loops: Vec::new(), needed: vec![None; count], exchanged: Vec::new() };
    walk.block(&form.body);
    let end = walk.at;
    let Walk { mut needed, exchanged, .. } = walk;
    // What is given out is needed to the end.
    for port in &form.outputs {
        if let Port::Array(place) = port {
            let time = &mut needed[place.buf.index()];
            *time = Some(Mention::all((time.as_ref().map_or(0, |mention| mention.time.0), end)));
        }
    }
    let mut groups: Vec<usize> = (0..count).collect();
    for (a, b) in exchanged {
        let (a, b) = (groups[a], groups[b]);
        groups.iter_mut().filter(|group| **group == a).for_each(|group| *group = b);
    }
    let mut times: Vec<Option<Time>> =
        needed.iter().map(|mention| mention.as_ref().map(|m| m.time)).collect();
    let mut hulls: BTreeMap<usize, (Time, usize)> = BTreeMap::new();
    for (buf, time) in times.iter().enumerate() {
        if let Some(time) = time {
            let hull = hulls.entry(groups[buf]).or_insert((*time, 0));
            hull.0 = (hull.0.0.min(time.0), hull.0.1.max(time.1));
            hull.1 += 1;
        }
    }
    let is_exchanged = |buf: usize| hulls.get(&groups[buf]).is_some_and(|hull| hull.1 > 1);
    for (buf, time) in times.iter_mut().enumerate() {
        if time.is_some() {
            *time = Some(hulls[&groups[buf]].0);
        }
    }
    // In the order in which they are first needed.
    let mut order: Vec<(Time, usize)> = (0..count)
        .filter(|&buf| form.buffers[buf].role == Role::Workspace)
        .filter_map(|buf| times[buf].map(|time| (time, buf)))
        .collect();
    order.sort_unstable();
    let mut home: Vec<Buf> = (0..count).map(|buf| Buf(buf as u32)).collect();
    // Memory by kind, length and whether it is exchanged somewhere, with the end of its last time.
    let mut free: BTreeMap<(Kind, u64, bool), Vec<(usize, Buf)>> = BTreeMap::new();
    for ((begin, end), buf) in order {
        let (kind, length, swaps) = (form.buffers[buf].kind, form.buffers[buf].length, is_exchanged(buf));
        // Memory that is exchanged must be as long as what it is exchanged with.
        let most = if swaps { length } else { length.saturating_add(length / 4) };
        let found = free
            .range_mut((kind, length, false)..=(kind, most, true))
            .filter(|((_, own, exchanged), _)| *own == length || !exchanged)
            .find_map(|(key, memory)| {
                let at = memory.iter().rposition(|(busy, _)| *busy < begin)?;
                Some((*key, memory.swap_remove(at).1))
            });
        let (key, memory) = match found {
            Some(((kind, length, was), memory)) => ((kind, length, was || swaps), memory),
            None => ((kind, length, swaps), Buf(buf as u32)),
        };
        home[buf] = memory;
        free.entry(key).or_default().push((end, memory));
    }
    let is_used = |buf: usize| times[buf].is_some() && home[buf].index() == buf;
    // Buffers that nothing touches, or that are in the memory of others, are gone.
    let mut number = vec![Buf(0); count];
    let mut kept = Vec::new();
    for (buf, buffer) in form.buffers.drain(..).enumerate() {
        if buffer.role != Role::Workspace || is_used(buf) {
            number[buf] = Buf(u32::try_from(kept.len()).expect("fewer than before"));
            kept.push(buffer);
        }
    }
    form.buffers = kept;
    let rename = |buf: &mut Buf| *buf = number[home[buf.index()].index()];
    for_each_buffer(&mut form.body, &rename);
    for port in form.inputs.iter_mut().chain(&mut form.outputs) {
        if let Port::Array(place) = port {
            rename(&mut place.buf);
        }
    }
}

fn for_each_buffer(stmts: &mut [Stmt], f: &dyn Fn(&mut Buf)) {
    for stmt in stmts {
        stmt.for_each_buffer(&mut |buf| f(buf));
        stmt.blocks_mut().into_iter().for_each(|block| for_each_buffer(block, f));
    }
}

/// Where a buffer is touched.
#[derive(Clone)]
struct Mention {
    time: Time,
    /// The loops around all statements that touch it, outermost first: where they begin.
    loops: Vec<usize>,
}

impl Mention {
    fn all(time: Time) -> Mention {
        Mention { time, loops: Vec::new() }
    }
}

struct Walk {
    /// The number of the next statement.
    at: usize,
    /// The loops around it: where they begin, and the buffers that must be needed to their end.
    loops: Vec<(usize, Vec<usize>)>,
    needed: Vec<Option<Mention>>,
    exchanged: Vec<(usize, usize)>,
}

impl Walk {
    fn touch(&mut self, buf: usize) {
        let around: Vec<usize> = self.loops.iter().map(|around| around.0).collect();
        let mention = self.needed[buf]
            .get_or_insert_with(|| Mention { time: (self.at, self.at), loops: around.clone() });
        // Loops that are around this statement but not around the others, and the other way round.
        let common = mention.loops.iter().zip(&around).take_while(|(a, b)| a == b).count();
        if let Some(&begin) = mention.loops.get(common) {
            mention.time.0 = mention.time.0.min(begin);
        }
        mention.loops.truncate(common);
        mention.time.1 = mention.time.1.max(self.at);
        if let Some(around) = self.loops.get_mut(common) {
            around.1.push(buf);
        }
    }

    fn touch_all(&mut self, touch: &Touch) {
        let mut bufs: Vec<usize> = touch.reads.union(&touch.writes).map(|buf| buf.index()).collect();
        bufs.sort_unstable();
        bufs.into_iter().for_each(|buf| self.touch(buf));
    }

    fn block(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.at += 1;
            match stmt {
                Stmt::For { .. } | Stmt::While { .. } | Stmt::Sweep { .. } => {
                    // A sweep keeps and restores its state between the statements inside of it.
                    let itself = Touch::itself(stmt);
                    self.touch_all(&itself);
                    self.loops.push((self.at, Vec::new()));
                    stmt.blocks().into_iter().for_each(|block| self.block(block));
                    self.at += 1;
                    let (_, bufs) = self.loops.pop().expect("just pushed");
                    for buf in bufs {
                        if let Some(mention) = &mut self.needed[buf] {
                            mention.time.1 = mention.time.1.max(self.at);
                        }
                    }
                    self.touch_all(&itself);
                }
                Stmt::If { .. } => stmt.blocks().into_iter().for_each(|block| self.block(block)),
                _ => {
                    if let Stmt::Swap { a, b } = stmt {
                        self.exchanged.push((a.index(), b.index()));
                    }
                    self.touch_all(&Touch::of(stmt));
                }
            }
        }
    }
}
