//! What `palinode-time` takes from the allocator. Without a harness, because the bytes of all threads are
//! counted (a store on disk has a thread of its own), and the harness has one that allocates when it likes.
//!
//! Arguments choose parts by name, as with a harness. Each part runs in a process of its own, all at once.

mod chain;
mod counting;
mod flat_memory;
#[cfg(feature = "ir")]
mod program_step;
mod rollout;
mod rollout_combined;
mod store;
mod varied;

const PARTS: &[(&str, fn())] = &[
    ("rollout_combined", rollout_combined::run),
    ("rollout", rollout::run),
    ("store", store::run),
    ("flat_memory", flat_memory::run),
    #[cfg(feature = "ir")]
    ("program_step", program_step::run),
];

fn main() {
    let filters: Vec<String> = std::env::args().skip(1).filter(|text| !text.starts_with('-')).collect();
    if let [one] = &filters[..]
        && let Some((_, run)) = PARTS.iter().find(|(name, _)| name == one)
    {
        return run();
    }
    let chosen = PARTS.iter().filter(|(name, _)| {
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    });
    let this = std::env::current_exe().expect("a file");
    let start = |name| std::process::Command::new(&this).arg(name).spawn().expect("a process");
    let running: Vec<_> = chosen.map(|(name, _)| (name, start(name))).collect();
    let ended: Vec<_> = running.into_iter().map(|(name, mut child)| (name, child.wait())).collect();
    for (name, status) in ended {
        assert!(status.expect("an end").success(), "{name} failed");
    }
}
