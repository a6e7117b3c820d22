//! The bars Palinode is held to, as ratios inside one run: those of the table, printed, and [`Held`], by
//! which a bench fails.

use crate::measure::Row;
use crate::peer::{Kind, name};
use crate::table::figure;
use std::process::ExitCode;

/// Time / plain of the best C++ tape (CoDiPack 3.1, g++ -O3 -march=native) at the full sizes, measured
/// elsewhere.
const CPP_TAPE: [(&str, f64); 4] = [("nchain", 2.1), ("lorenz", 21.0), ("gmm", 12.3), ("lstm", 2.7)];
/// How far behind the best C++ tape is still accepted.
const CPP_FLOOR: f64 = 1.3;
/// "Level" within the noise of a run.
const LEVEL: f64 = 1.05;

/// A limit, and where we are. Smaller is better.
struct Bar {
    what: String,
    limit: f64,
    /// Still accepted up to here, but said.
    floor: f64,
    unit: &'static str,
    ours: Option<f64>,
}

impl Bar {
    fn new(what: String, limit: f64, unit: &'static str, ours: Option<f64>) -> Self {
        Self { what, limit, floor: limit, unit, ours }
    }

    fn print(&self) -> String {
        let verdict = match self.ours {
            None => "open".to_owned(),
            Some(v) if v <= self.limit => format!("PASS  {} {}", figure(v), self.unit),
            Some(v) if v <= self.floor => format!("floor {} {}", figure(v), self.unit),
            Some(v) => format!("MISS  {} {}", figure(v), self.unit),
        };
        format!("  {:<64} limit {:>7} {:<5} {verdict}", self.what, figure(self.limit), self.unit)
    }
}

/// Bars by which a bench fails: a time that is missed in a full run, a wrong answer in every run. Quick runs
/// are for machines that do other things as well, so they say what is missed and go on.
pub struct Held {
    quick: bool,
    failed: bool,
}

impl Held {
    /// Nothing has been judged yet.
    pub fn new(quick: bool) -> Self {
        Self { quick, failed: false }
    }

    /// A time, or a ratio of times, that must not be above a limit.
    pub fn time(&mut self, what: &str, limit: f64, unit: &'static str, ours: f64) {
        println!("{}", Bar::new(what.to_owned(), limit, unit, Some(ours)).print());
        self.failed |= !self.quick && (ours > limit || ours.is_nan());
    }

    /// An answer that must be right.
    pub fn right(&mut self, what: &str, is_right: bool) {
        if !is_right {
            println!("  WRONG: {what}");
        }
        self.failed |= !is_right;
    }

    /// What the bench ends with.
    pub fn exit(self) -> ExitCode {
        if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Every bar that the measured rows allow to judge.
pub fn report(rows: &[Row]) -> String {
    let bars = rows.iter().flat_map(of_row);
    let mut out = String::from("Bars for Palinode (limits from this run; 'open': not measured)\n");
    for bar in bars {
        out += &bar.print();
        out.push('\n');
    }
    out
}

fn of_row(row: &Row) -> Vec<Bar> {
    let mut bars = Vec::new();
    let var = row.figures(name::PALINODE_VAR);
    let var_ns = var.map(|f| f.ns);
    if let (true, Some(echidna)) = (row.problem == "logistic", row.figures(name::ECHIDNA_REVERSE)) {
        let bytes = echidna.bytes.min(echidna_exact_bytes(row));
        for (label, share) in [("3.5x", 3.5), ("5x (aim)", 5.0)] {
            let what = format!("logistic: Var {label} faster than {}", name::ECHIDNA_REVERSE);
            bars.push(Bar::new(format!("{what}, warm"), echidna.ns / share, "ns", var_ns));
            let first = var.map(|f| f.first_ns);
            bars.push(Bar::new(format!("{what}, first"), echidna.first_ns / share, "ns", first));
        }
        for (label, share) in [("70 %", 0.7), ("50 % (aim)", 0.5)] {
            let what = format!("logistic: Var at most {label} of its bytes ({} exact)", figure(bytes));
            bars.push(Bar::new(what, share * bytes, "B", var.map(|f| f.bytes)));
        }
    }
    for (kind, label) in [(Kind::Reverse, "recording"), (Kind::Replay, "replaying")] {
        let others = row.peers.iter().filter(|m| m.kind == kind && !m.name.starts_with("palinode"));
        let best = others.filter_map(|m| m.outcome.as_ref().ok()).map(|f| f.ns).min_by(f64::total_cmp);
        if let Some(best) = best {
            let what = format!("{}: Var faster than every {label} reverse-mode peer", row.problem);
            bars.push(Bar::new(what, best, "ns", var_ns));
        }
    }
    if let Some(peer) = row.figures(name::NUM_DUAL) {
        let ours = row.figures(name::PALINODE_DUAL).map(|f| f.ns);
        let what = format!("{}: DualN level with num-dual", row.problem);
        bars.push(Bar::new(what, LEVEL * peer.ns, "ns", ours));
    }
    let reference = CPP_TAPE.iter().find(|(problem, _)| row.full_size && *problem == row.problem);
    if let Some(&(_, limit)) = reference {
        let what = format!("{}: Var time/plain against the best C++ tape", row.problem);
        let ours = var_ns.map(|ns| ns / row.plain_ns);
        bars.push(Bar { floor: CPP_FLOOR * limit, ..Bar::new(what, limit, "x", ours) });
    }
    bars
}

/// Bytes per iteration of echidna's `Reverse` without the slack of its growing vectors: 8 a statement, 12 an
/// operand (multiplier and index), 8 a cotangent. The byte bar uses it where it is the smaller, so that slack
/// does not help us.
fn echidna_exact_bytes(row: &Row) -> f64 {
    let c = row.counts;
    (16 * c.operations + 12 * c.operands) as f64 / row.iterations as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_well(quick: bool, judge: impl FnOnce(&mut Held)) -> bool {
        let mut held = Held::new(quick);
        judge(&mut held);
        format!("{:?}", held.exit()) == format!("{:?}", ExitCode::SUCCESS)
    }

    #[test]
    fn a_missed_time_fails_full_runs_and_a_wrong_answer_every_run() {
        for quick in [false, true] {
            assert!(ends_well(quick, |held| held.time("met", 4.0, "x", 3.9)));
            assert_eq!(ends_well(quick, |held| held.time("missed", 4.0, "x", 4.1)), quick);
            assert_eq!(ends_well(quick, |held| held.time("not measured", 4.0, "x", f64::NAN)), quick);
            assert!(ends_well(quick, |held| held.right("the answer", true)));
            assert!(!ends_well(quick, |held| held.right("the answer", false)));
        }
    }
}
