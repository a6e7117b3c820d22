//! Updates of one buffer at shifted places become one loop over the places.
//!
//! The reverse of a stencil adds to the neighbours of every element, one loop for each neighbour, and all of
//! these loops load and store the whole array. Here the places are cut into boxes in which the same loops
//! reach every place; for each box there is one loop, in which the updates of a place follow each other in
//! the order of the loops that they come from. So every sum is added in the order in which it was.

use crate::fast::FastMap;

use super::super::form::{Buf, Index, Kind, LoopForm, Reg, Stmt};
use super::fuse::forwarded;
use super::rewrite::{copied, fresh};
use super::touch::Touch;

/// How many statements ahead another update is looked for.
const WINDOW: usize = 48;

/// At most so many boxes are cut.
const BOXES: usize = 40;

/// At most so many statements are in the loop for one box.
const LARGEST: usize = 96;

pub(super) fn run(form: &mut LoopForm) {
    let LoopForm { body, registers, .. } = form;
    block(body, registers);
}

fn block(stmts: &mut Vec<Stmt>, registers: &mut Vec<Kind>) {
    for stmt in stmts.iter_mut() {
        if !matches!(stmt, Stmt::Each { .. }) {
            stmt.blocks_mut().into_iter().for_each(|inner| block(inner, registers));
        }
    }
    let mut at = 0;
    while at < stmts.len() {
        let found = chain(stmts, at).and_then(|chain| {
            let updates: Vec<Update<'_>> = chain.iter().filter_map(|&at| update(&stmts[at])).collect();
            let loops = gathered(&updates, registers)?;
            Some((chain, loops))
        });
        if let Some((chain, loops)) = found {
            // What is between them goes before them.
            let last = *chain.last().expect("a chain has links");
            let between = (at..=last).filter(|at| !chain.contains(at)).map(|at| stmts[at].clone());
            let instead: Vec<Stmt> = between.chain(loops).collect();
            let next = at + instead.len();
            stmts.splice(at..=last, instead);
            at = next;
            continue;
        }
        at += 1;
    }
}

/// A loop that sets the elements of a box of a buffer, or adds to them.
struct Update<'s> {
    buf: Buf,
    axes: &'s [(Reg, i64, i64)],
    body: &'s [Stmt],
    /// The distances between elements along the axes.
    strides: Vec<i64>,
    /// The coordinates of the place at which all counters are 0, and what is left of it.
    origin: Vec<i64>,
    rest: i64,
}

impl Update<'_> {
    /// The coordinates that it reaches along an axis.
    fn reach(&self, axis: usize) -> (i64, i64) {
        let (_, from, to) = self.axes[axis];
        (self.origin[axis] + from, self.origin[axis] + to)
    }
}

/// A loop with one store, at a place that depends on its counters only and is loaded nowhere else.
fn update(stmt: &Stmt) -> Option<Update<'_>> {
    let Stmt::Each { axes, body } = stmt else { return None };
    let mut stores = body.iter().filter_map(|stmt| match stmt {
        Stmt::Store { buf, at, .. } => Some((*buf, at)),
        _ => None,
    });
    let (buf, at) = stores.next()?;
    if stores.next().is_some() || axes.is_empty() {
        return None;
    }
    let is_elsewhere =
        |stmt: &Stmt| matches!(stmt, Stmt::Load { buf: from, at: place, .. } if *from == buf && place != at);
    if body.iter().any(is_elsewhere) || at.terms.len() != axes.len() {
        return None;
    }
    let stride = |axis: &(Reg, i64, i64)| at.terms.iter().find(|term| term.0 == axis.0).map(|term| term.1);
    let strides: Vec<i64> = axes.iter().map(stride).collect::<Option<_>>()?;
    if strides.iter().any(|&stride| stride < 1) {
        return None;
    }
    let (mut origin, mut rest) = (Vec::new(), at.constant);
    for &stride in &strides {
        origin.push(rest.div_euclid(stride));
        rest = rest.rem_euclid(stride);
    }
    let update = Update { buf, axes, body, strides, origin, rest };
    // The box stays inside of the rows, so that coordinates say where an element is.
    let fits = (1..axes.len()).all(|axis| {
        let (from, to) = update.reach(axis);
        let (stride, around) = (update.strides[axis], update.strides[axis - 1]);
        from >= 0 && around % stride == 0 && to <= around / stride
    });
    fits.then_some(update)
}

/// The statements from `first` on that update one buffer at places of one kind; what is between them could
/// stand before them.
fn chain(stmts: &[Stmt], first: usize) -> Option<Vec<usize>> {
    let begin = update(&stmts[first])?;
    let mut links = vec![first];
    let mut all = Touch::of(&stmts[first]);
    for (at, stmt) in stmts.iter().enumerate().skip(first + 1).take(WINDOW) {
        let touch = Touch::of(stmt);
        match update(stmt) {
            Some(next) if next.buf == begin.buf => {
                if next.strides != begin.strides || next.rest != begin.rest {
                    break;
                }
                links.push(at);
                all.join(touch);
            }
            _ if all.orders(&touch) => break,
            _ => {}
        }
    }
    (links.len() > 1).then_some(links)
}

/// The loops for all boxes, if they are not too many.
fn gathered(updates: &[Update<'_>], registers: &mut Vec<Kind>) -> Option<Vec<Stmt>> {
    let rank = updates[0].axes.len();
    let adds = |update: &Update<'_>| {
        update.body.iter().any(|stmt| matches!(stmt, Stmt::Load { buf, .. } if *buf == update.buf))
    };
    // Boxes that do not meet are best left alone.
    let meets = |a: &Update<'_>, b: &Update<'_>| {
        (0..rank).all(|axis| a.reach(axis).0 < b.reach(axis).1 && b.reach(axis).0 < a.reach(axis).1)
    };
    let any = updates
        .iter()
        .enumerate()
        .any(|(at, update)| adds(update) && updates[..at].iter().any(|other| meets(other, update)));
    if !any || updates.iter().map(|update| update.body.len()).sum::<usize>() > LARGEST {
        return None;
    }
    let mut cells: Vec<Vec<(i64, i64)>> = vec![Vec::new()];
    for axis in 0..rank {
        let mut borders: Vec<i64> =
            updates.iter().flat_map(|update| [update.reach(axis).0, update.reach(axis).1]).collect();
        borders.sort_unstable();
        borders.dedup();
        cells = cells
            .into_iter()
            .flat_map(|cell| {
                borders.windows(2).map(move |pair| {
                    let mut cell = cell.clone();
                    cell.push((pair[0], pair[1]));
                    cell
                })
            })
            .collect();
        if cells.len() > BOXES {
            return None;
        }
    }
    let mut loops = Vec::new();
    for cell in cells {
        let covers = |update: &&Update<'_>| {
            cell.iter().enumerate().all(|(axis, &(from, to))| {
                let (low, high) = update.reach(axis);
                low <= from && to <= high
            })
        };
        let reaching: Vec<&Update<'_>> = updates.iter().filter(covers).collect();
        if reaching.is_empty() {
            continue;
        }
        let axes: Vec<(Reg, i64, i64)> =
            cell.iter().map(|&(from, to)| (fresh(Kind::Int, registers), from, to)).collect();
        let mut body = Vec::new();
        for update in reaching {
            let mut counters = FastMap::default();
            for (axis, own) in update.axes.iter().enumerate() {
                counters.insert(own.0, Index::reg(axes[axis].0).offset(-update.origin[axis])?);
            }
            body = forwarded(body, copied(update.body, counters, registers)?)?;
        }
        loops.push(Stmt::Each { axes, body });
    }
    Some(loops)
}
