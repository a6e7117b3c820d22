//! Fused loops: a function for each, whose arguments are arrays that do not overlap, so that the compiler
//! knows it. Loops over a few elements stay where they are.

use core::ops::RangeInclusive;

use super::super::form::{Buf, Index, Operand, Reg, Stmt};
use super::super::passes::touch::Touch;
use super::frame::{Frame, split};
use super::language::{Given, GivenScalar, Head, NOTES, SUSPICIONS, SUSPICIONS_HERE};
use super::write::Writer;

/// Up to so many elements a loop is no function.
const FEW: i64 = 4;
/// Rows of so many elements are taken one at a time. Longer ones are vectorised themselves, and of shorter
/// ones several can be loaded at once.
const SHORT: RangeInclusive<i64> = 5..=32;

impl Writer<'_> {
    /// A loop over elements.
    pub(super) fn each(&mut self, axes: &[(Reg, i64, i64)], body: &[Stmt]) {
        let elements: i128 = axes.iter().map(|&(_, from, to)| i128::from(to) - i128::from(from)).product();
        if elements <= i128::from(FEW) {
            self.nest(axes, body);
        } else {
            self.fused(axes, body);
        }
        for axis in axes {
            self.fixed.remove(&axis.0);
        }
    }

    /// Loops around a body, here.
    fn nest(&mut self, axes: &[(Reg, i64, i64)], body: &[Stmt]) {
        let mut open = 0;
        let innermost = axes.iter().rposition(|axis| axis.2 - axis.1 > 1);
        for (at, &(counter, from, to)) in axes.iter().enumerate() {
            if to - from == 1 {
                self.fixed.insert(counter, from);
                continue;
            }
            if open > 0
                && Some(at) == innermost
                && SHORT.contains(&(to - from))
                && let Some(name) = self.language.row_by_row()
            {
                let line = self.call(name, &[]).text;
                self.push(format!("{line};"));
            }
            let name = self.names.counter(counter, self.loops);
            self.counters.insert(counter);
            let head = self.language.rounds(&name, &from.to_string(), &to.to_string(), false);
            self.push(head);
            self.depth += 1;
            self.loops += 1;
            open += 1;
        }
        self.block(body);
        for _ in 0..open {
            self.depth -= 1;
            self.loops -= 1;
            self.push("}");
        }
    }

    /// The same as a function, and its call.
    fn fused(&mut self, axes: &[(Reg, i64, i64)], body: &[Stmt]) {
        let mut frame = Frame::of(axes, body, self.unproven);
        let scalars = self.scalars(axes, body);
        for at in 0..frame.parts.len() {
            let (buf, is_changed) = (frame.parts[at].buf, frame.parts[at].is_changed);
            let own = self.names.buffer(buf).to_string();
            let is_first = frame.parts[..at].iter().all(|part| part.buf != buf);
            frame.parts[at].name = if is_first { own } else { self.names.unique(&own) };
            debug_assert!(is_first || !is_changed, "what is stored is at one place");
        }
        let name = self.function_name(&frame);

        let out = core::mem::take(&mut self.out);
        let (depth, notes, has_notes) = (self.depth, self.notes, self.has_notes);
        let suspects_outside = self.suspects;
        (self.depth, self.notes, self.has_notes, self.suspects) = (1, false, false, false);
        let line = self.line;
        self.frame = Some(frame);
        self.line = 0;
        self.nest(axes, body);
        let of_loop = if self.line == 0 { None } else { Some(self.line) };
        let frame = self.frame.take().expect("it was set above");
        let lines = core::mem::replace(&mut self.out, out);
        let (is_noting, suspects) = (self.notes, self.suspects);
        self.suspects = suspects || suspects_outside;
        (self.depth, self.notes, self.has_notes) = (depth, notes, has_notes);
        self.line = of_loop.unwrap_or(line);
        if is_noting {
            self.needs.add("finite");
        }

        let arrays: Vec<Given> = frame
            .parts
            .iter()
            .map(|part| {
                let buffer = &self.form.buffers[part.buf.index()];
                Given {
                    name: part.name.clone(),
                    kind: buffer.kind,
                    length: part.length(buffer.length),
                    is_changed: part.is_changed,
                }
            })
            .collect();
        let given: Vec<GivenScalar> = scalars
            .iter()
            .map(|&reg| GivenScalar {
                name: self.names.register(reg),
                kind: self.form.registers[reg.index()],
                is_counter: self.counters.contains(&reg),
            })
            .collect();
        let may_stop = frame.may_stop;
        let head = Head { name: &name, line: of_loop, arrays: &arrays, scalars: &given, may_stop, suspects };
        let mut function = self.language.function(&head);
        for (_, name) in
            [(is_noting, NOTES), (suspects, SUSPICIONS_HERE)].iter().filter(|declared| declared.0)
        {
            function.push(format!("    {}", self.language.declare_notes(name)));
        }
        function.extend(lines);
        if suspects {
            function.push(format!("    *{SUSPICIONS} |= {SUSPICIONS_HERE};"));
        }
        if may_stop {
            function.push(format!("    {}", self.language.end(is_noting)));
        }
        function.push("}".into());
        function.push(String::new());
        self.functions.extend(function);

        let mut args = Vec::new();
        for part in &frame.parts {
            let index = Index { constant: part.least, terms: part.fixed.clone() };
            let from = if part.is_whole { None } else { Some(self.place(&index)) };
            args.push(self.language.part(self.names.buffer(part.buf), from.as_deref(), part.is_changed));
        }
        args.extend(given.into_iter().map(|given| given.name));
        if suspects {
            args.push(format!("&mut {SUSPICIONS}"));
        }
        let call = format!("{name}({})", args.join(", "));
        let line = match may_stop {
            true => self.language.attempt(&call, self.here()),
            false => format!("{call};"),
        };
        self.push(line);
    }

    fn function_name(&mut self, frame: &Frame) -> String {
        let mut names: Vec<&str> = Vec::new();
        for part in frame.parts.iter().filter(|part| part.is_changed) {
            names.push(self.names.buffer(part.buf));
        }
        let wish = match names[..] {
            [] => "look".to_string(),
            [name] => format!("set_{name}"),
            [first, second, ..] => format!("set_{first}_and_{second}"),
        };
        self.names.unique(&format!("{}{wish}", self.prefix))
    }

    /// The registers from outside that a loop reads.
    fn scalars(&self, axes: &[(Reg, i64, i64)], body: &[Stmt]) -> Vec<Reg> {
        let mut inside: Vec<Reg> = axes.iter().map(|axis| axis.0).collect();
        let mut found = Vec::new();
        for stmt in body {
            let mut touch = Touch::itself(stmt);
            if let (Stmt::Load { at, .. } | Stmt::Store { at, .. }, false) =
                (stmt, self.unproven.contains(stmt))
            {
                // Their places are reckoned where the loop is called.
                touch.uses.retain(|reg| !at.terms.iter().any(|term| term.0 == *reg));
                if let Stmt::Store { from: Operand::Reg(reg), .. } = stmt {
                    touch.uses.insert(*reg);
                }
            }
            found.extend(touch.uses.iter().copied().filter(|reg| !inside.contains(reg)));
            inside.extend(touch.sets);
        }
        found.retain(|reg| !self.fixed.contains_key(reg));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The array of an access, and the place in it.
    pub(super) fn access(&mut self, buf: Buf, at: &Index) -> (String, String) {
        let Some(frame) = &self.frame else {
            return (self.names.buffer(buf).to_string(), self.place(at));
        };
        let (varying, fixed) = split(at, &frame.axes);
        let part = frame.of.get(&(buf, fixed)).or_else(|| frame.of.get(&(buf, Vec::new())));
        let part = &frame.parts[*part.expect("the loop has a part for each access")];
        let name = part.name.clone();
        let index = match part.is_whole {
            true => at.clone(),
            false => Index { constant: at.constant - part.least, terms: varying },
        };
        (name, self.place(&index))
    }

    /// The whole array of an access that is looked at when it is made.
    pub(super) fn array_of(&self, buf: Buf) -> String {
        match &self.frame {
            None => self.names.buffer(buf).to_string(),
            Some(frame) => frame.parts[frame.of[&(buf, Vec::new())]].name.clone(),
        }
    }
}
