//! Statements on whole arrays: calls of the support module.

use super::super::form::{Buf, Index, Matrix, Place, Taken};
use super::arithmetic;
use super::text::Text;
use super::uses::Spot;
use super::write::Writer;
use crate::op::{Reduction, Rule};

impl Writer<'_> {
    /// Elements one after another, as arguments of a function of the support module.
    pub(super) fn stretch(&mut self, place: &Place, is_changed: bool) -> Vec<String> {
        let array = self.elements(place.buf, &place.at, place.elements(), is_changed);
        self.language.slice(array, place.elements())
    }

    pub(super) fn elements(&mut self, buf: Buf, at: &Index, count: usize, is_changed: bool) -> String {
        let is_all = at.known() == Some(0) && self.form.buffers[buf.index()].length == count as u64;
        let from = if is_all { None } else { Some(self.place(at)) };
        let name = self.names.buffer(buf);
        self.language.stretch(name, from.as_deref(), count, is_changed)
    }

    /// A function of elements, over themselves.
    pub(super) fn function_of_all(&mut self, rule: Rule, place: &Place) {
        if arithmetic::elementary(rule.row.name()).is_some() {
            let name = rule.row.name();
            let args = self.stretch(place, true);
            self.needs.of_all(name);
            let call = self.language.call(&format!("{name}_of_all"), &args).text;
            return self.push(format!("{call};"));
        }
        // In C it stands where it is, and in Rust, too.
        let counter = self.names.unique("e");
        let from = Text::atom(self.place(&place.at));
        let at = match place.at.known() {
            Some(0) => counter.clone(),
            _ => format!("{} + {counter}", from.text),
        };
        let element = Text::atom(format!("{}[{at}]", self.names.buffer(place.buf)));
        let head = self.language.rounds(&counter, "0", &place.elements().to_string(), false);
        let value = self.row(rule, core::slice::from_ref(&element)).text;
        self.inside(head, |writer| writer.push(format!("{} = {value};", element.text)));
    }

    pub(super) fn matrix(&mut self, matrix: &Matrix) -> String {
        let span = matrix.span().expect("the verifier: it is in a buffer");
        let array = self.elements(matrix.buf, &matrix.at, span, false);
        let mut args = vec![array];
        args.extend(matrix.sizes.iter().chain(&matrix.steps).map(ToString::to_string));
        self.call("matrix", &args).text
    }

    /// Where a result goes: into elements, or a register that is set afterwards.
    pub(super) fn reduce(&mut self, spot: Spot, kind: Reduction, from: &Place, to: &Taken) {
        let name = match kind {
            Reduction::Sum => "sum",
            Reduction::Max => "largest",
            Reduction::Min => "smallest",
        };
        match to {
            Taken::Scalar(reg) => {
                self.goes_to(*reg);
                let args = self.stretch(from, false);
                let text = self.call(name, &args).text;
                self.set(spot, *reg, &text);
            }
            Taken::Array(place) => {
                let mut args = self.stretch(from, false);
                args.extend(from.shape[1..].iter().map(ToString::to_string));
                args.extend(self.stretch(place, true));
                let name = match kind {
                    Reduction::Sum => "sums",
                    Reduction::Max => "largest_of_each",
                    Reduction::Min => "smallest_of_each",
                };
                let call = self.call(name, &args).text;
                self.push(format!("{call};"));
            }
        }
    }

    pub(super) fn dots(&mut self, spot: Spot, strong: bool, a: &Matrix, x: &Place, to: &Taken) {
        let mut args = vec![self.matrix(a)];
        args.extend(self.stretch(x, false));
        match to {
            Taken::Scalar(reg) => {
                self.goes_to(*reg);
                let text = self.call(if strong { "strong_dot" } else { "dot" }, &args).text;
                self.set(spot, *reg, &text);
            }
            Taken::Array(place) => {
                args.extend(self.stretch(place, true));
                let call = self.call(if strong { "strong_dots" } else { "dots" }, &args).text;
                self.push(format!("{call};"));
            }
        }
    }
}
