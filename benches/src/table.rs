//! Prints the table, in Markdown.

use crate::measure::{Measured, Row};
use crate::peer::Kind;

/// What the machine and the build are; figures mean nothing without it.
pub fn header() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or(": unknown processor");
    let on: Vec<&str> = [
        ("sse4.2", cfg!(target_feature = "sse4.2")),
        ("avx", cfg!(target_feature = "avx")),
        ("avx2", cfg!(target_feature = "avx2")),
        ("fma", cfg!(target_feature = "fma")),
        ("avx512f", cfg!(target_feature = "avx512f")),
        ("neon", cfg!(target_feature = "neon")),
    ]
    .into_iter()
    .filter_map(|(name, on)| on.then_some(name))
    .collect();
    let features = if on.is_empty() {
        "baseline (set RUSTFLAGS=\"-C target-cpu=native\" for the published figures)".to_owned()
    } else {
        on.join(" ")
    };
    format!(
        "Processor: {}\nTarget features: {features}\n\
         One thread; rounds interleave plain f64 and every peer; minimum over rounds. Time is one gradient, warm:\n\
         record + reverse for 'reverse', evaluate + reverse of an earlier record for 'replay', one pass for 'forward'.\n\
         'first' is a first gradient in a fresh thread, nothing warm, preparation included; bytes are the heap's peak in\n\
         it (nodes, cotangents, growth slack). Operations are the function's active ones; 'allocs' the allocations of\n\
         one warm gradient.\n",
        cpu.trim_start_matches([' ', '\t', ':']),
    )
}

/// The column heads.
pub fn head() -> String {
    let line = line([
        "problem",
        "peer",
        "mode",
        "ns/iter",
        "time/plain",
        "first ns",
        "bytes/iter",
        "bytes/op",
        "allocs",
        "note",
    ]);
    let rule: String = line.chars().map(|c| if c == '|' { '|' } else { '-' }).collect();
    format!("{line}\n{rule}")
}

/// One problem's lines.
pub fn row(row: &Row) -> String {
    let ops = row.operations_per_iteration();
    let about = format!("{}; iteration = {}, {ops:.1} operations", row.describe, row.unit);
    let plain =
        line([row.problem, "plain f64", "primal", &figure(row.plain_ns), "1.00", "", "", "", "", &about]);
    let peers = row.peers.iter().map(|m| peer_line(row, m, ops));
    std::iter::once(plain).chain(peers).collect::<Vec<_>>().join("\n")
}

fn peer_line(row: &Row, m: &Measured, ops: f64) -> String {
    let mode = match m.kind {
        Kind::Reverse => "reverse",
        Kind::Replay => "replay",
        Kind::Forward => "forward",
    };
    match &m.outcome {
        Ok(f) => line([
            row.problem,
            m.name,
            mode,
            &figure(f.ns),
            &figure(f.ns / row.plain_ns),
            &figure(f.first_ns),
            &figure(f.bytes),
            &figure(f.bytes / ops),
            &f.allocations.to_string(),
            &f.note,
        ]),
        Err(why) => line([row.problem, m.name, mode, "-", "-", "-", "-", "-", "-", why]),
    }
}

/// Three significant digits or so, without exponents.
pub fn figure(v: f64) -> String {
    match v {
        v if v < 0.005 => "0".to_owned(),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

fn line(cells: [&str; 10]) -> String {
    let [problem, peer, mode, ns, ratio, first, bytes, per_op, allocs, note] = cells;
    let names = format!("| {problem:<10} | {peer:<23} | {mode:<7}");
    let times = format!("| {ns:>8} | {ratio:>10} | {first:>8}");
    format!("{names} {times} | {bytes:>10} | {per_op:>8} | {allocs:>6} | {note}")
}
