//! Where statements read and write: inside of their buffers, of the right kind, and apart from each other.

use super::super::form::{
    Buf, Buffer, Index, Kept, Kind, LoopForm, Matrix, Operand, Place, Port, Role, Stmt, Taken,
};
use super::Verifier;

/// How many elements an array of this shape has; none if a number overflows on the way, even if there are
/// none at all.
pub(super) fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |all, &n| all.checked_mul(n.max(1)))?;
    Some(shape.iter().product())
}

/// What the workspace takes is a number of bytes, and every input has its buffers as long as it is.
pub(super) fn buffers(form: &LoopForm) -> Result<(), String> {
    let mut bytes = 0_u64;
    for (number, buffer) in form.buffers.iter().enumerate() {
        let buf = Buf(u32::try_from(number).map_err(|_| "there are too many buffers")?);
        match buffer.role {
            Role::Workspace => {
                let own = buffer.length.checked_mul(buffer.kind.bytes() as u64);
                let all = own.and_then(|own| bytes.checked_add(own)?.checked_add(WASTE));
                bytes = all.filter(|&all| all < MOST).ok_or("the workspace does not fit into memory")?;
            }
            Role::Growing if buffer.length == 0 => {}
            Role::Growing => return Err(format!("{buf} grows, but not from nothing")),
            Role::Input(input) => match form.inputs.get(input) {
                Some(Port::Array(place))
                    if place.buf == buf
                        && place.at.known() == Some(0)
                        && elements(&place.shape).map(|count| count as u64) == Some(buffer.length) => {}
                _ => return Err(format!("{buf} is not what input {input} gives")),
            },
        }
    }
    for (number, port) in form.inputs.iter().enumerate() {
        if let Port::Array(place) = port
            && form.buffers.get(place.buf.index()).map(|buffer| buffer.role) != Some(Role::Input(number))
        {
            return Err(format!("{} is not what input {number} gives", place.buf));
        }
    }
    Ok(())
}

/// At most so much of the workspace behind each buffer is not used.
const WASTE: u64 = 64;

/// So many bytes are more than any memory.
const MOST: u64 = 1 << 62;

impl Verifier<'_> {
    /// The least and the largest value of an index, if nothing overflows.
    pub(super) fn index(&self, index: &Index) -> Result<(i128, i128), String> {
        let (mut least, mut most) = (i128::from(index.constant), i128::from(index.constant));
        let is_sorted = index.terms.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !is_sorted || index.terms.iter().any(|term| term.1 == 0) {
            return Err(format!("the terms of {index} are not in order"));
        }
        for &(reg, factor) in &index.terms {
            self.reads(&[Operand::Reg(reg)], Kind::Int)?;
            let (low, high) = self.ranges[reg.index()];
            let ends = [i128::from(low) * i128::from(factor), i128::from(high) * i128::from(factor)];
            least = least.saturating_add(ends[0].min(ends[1]));
            most = most.saturating_add(ends[0].max(ends[1]));
        }
        Ok((least, most))
    }

    pub(super) fn buffer(&self, buf: Buf) -> Result<&Buffer, String> {
        self.form.buffers.get(buf.index()).ok_or_else(|| format!("there is no {buf}"))
    }

    /// Notes an access that may be outside.
    pub(super) fn access(&mut self, stmt: &Stmt, buf: Buf, at: &Index) -> Result<Kind, String> {
        let (least, most) = self.index(at)?;
        let buffer = self.buffer(buf)?;
        let (kind, length) = (buffer.kind, i128::from(buffer.length));
        if buffer.role == Role::Growing || least < 0 || most >= length {
            self.unproven.0.insert(core::ptr::from_ref(stmt));
        }
        Ok(kind)
    }

    pub(super) fn place(&self, place: &Place, who: &str) -> Result<(), String> {
        let count = elements(&place.shape).ok_or_else(|| format!("{who} does not fit into memory"))?;
        self.stretch(place.buf, &place.at, count as i128, who)
    }

    /// So many elements from an index on are in a buffer that does not grow.
    fn stretch(&self, buf: Buf, at: &Index, count: i128, who: &str) -> Result<(), String> {
        let (least, most) = self.index(at)?;
        let buffer = self.buffer(buf)?;
        if buffer.role == Role::Growing || least < 0 || most.saturating_add(count) > i128::from(buffer.length)
        {
            return Err(format!("{who} leaves its buffer: {count} from {buf}[{at}] on"));
        }
        Ok(())
    }

    /// A place of reals.
    pub(super) fn reals(&self, place: &Place, who: &str) -> Result<(), String> {
        self.place(place, who)?;
        self.are_real(place.buf, who)
    }

    fn are_real(&self, buf: Buf, who: &str) -> Result<(), String> {
        match self.buffer(buf)?.kind {
            Kind::Real => Ok(()),
            Kind::Int | Kind::Bool => Err(format!("{buf} is of another kind than {who} takes")),
        }
    }

    pub(super) fn matrix(&self, matrix: &Matrix, who: &str) -> Result<(), String> {
        let span = matrix.span().ok_or_else(|| format!("{who} does not fit into memory"))?;
        self.stretch(matrix.buf, &matrix.at, span as i128, who)?;
        self.are_real(matrix.buf, who)
    }

    /// Where so many reals go that are made from these buffers.
    pub(super) fn result(&mut self, to: &Taken, count: usize, from: &[Buf], who: &str) -> Result<(), String> {
        let place = match to {
            Taken::Scalar(reg) if count == 1 => return self.set(*reg, Kind::Real),
            Taken::Scalar(_) => return Err(format!("{who} has other lengths than {to}")),
            Taken::Array(place) => place,
        };
        self.reals(place, who)?;
        self.changes(place.buf)?;
        if elements(&place.shape) != Some(count) {
            return Err(format!("{who} has other lengths than {to}"));
        }
        if from.contains(&place.buf) {
            return Err(format!("{who} reads what it writes: {to}"));
        }
        Ok(())
    }

    pub(super) fn changes(&self, buf: Buf) -> Result<(), String> {
        match self.buffer(buf)?.role {
            Role::Input(_) => Err(format!("{buf}: the form changes an input")),
            Role::Workspace | Role::Growing => Ok(()),
        }
    }

    /// A state has memory for its snapshots, and each part for itself.
    pub(super) fn state(&self, state: &[Kept], room: u64, steps: i64) -> Result<(), String> {
        if room == 0 && steps > 1 && !state.is_empty() {
            return Err("a sweep has no memory for snapshots".into());
        }
        state.iter().try_for_each(|kept| self.kept(kept, room))?;
        let homes: Vec<Buf> = state.iter().map(|kept| kept.snapshots()).collect();
        let states = state.iter().filter_map(|kept| match kept {
            Kept::Array { buf, .. } => Some(*buf),
            Kept::Scalar { .. } => None,
        });
        for (number, home) in homes.iter().enumerate() {
            if homes[..number].contains(home) || states.clone().any(|buf| buf == *home) {
                return Err(format!("a sweep reads what it writes: {home}"));
            }
        }
        Ok(())
    }

    /// A part of a state has room for its snapshots.
    fn kept(&self, kept: &Kept, room: u64) -> Result<(), String> {
        let (kind, count, snapshots) = match *kept {
            Kept::Scalar { reg, snapshots } => (self.read(Operand::Reg(reg))?, 1, snapshots),
            Kept::Array { buf, count, snapshots } => {
                let buffer = self.buffer(buf)?;
                if buffer.role != Role::Workspace || count as u64 > buffer.length {
                    return Err(format!("a state leaves its buffer: {count} of {buf}"));
                }
                (buffer.kind, count as u64, snapshots)
            }
        };
        let home = self.buffer(snapshots)?;
        if home.kind != kind {
            return Err(format!("{snapshots} is of another kind than the state of a sweep"));
        }
        let needed = count.checked_mul(room);
        if home.role != Role::Workspace || needed.is_none_or(|needed| needed > home.length) {
            return Err(format!("the snapshots of a sweep leave their buffer: {room} in {snapshots}"));
        }
        Ok(())
    }
}
