//! The law of budgets: from the first run to the written answer, the heap of the whole process holds no more
//! than the budget, beside what it held when the run began, which is printed.
//!
//! The allocator that counts is the command's own. A process that runs nothing but the command is needed for
//! that: this test starts itself again.

use std::process::Command as Process;

use clap::Parser;

use crate::args::Cli;
use crate::session::Session;

/// Words of a command line for the process that is started, one a line.
const WORDS: &str = "PALINODE_LAW_WORDS";

/// Not a test of its own: what the started process does.
#[test]
fn child() {
    let Ok(words) = std::env::var(WORDS) else { return };
    let cli = Cli::try_parse_from(words.split('\n')).unwrap();
    let mut session = Session::new(crate::name(&cli.command), cli.json);
    crate::dispatch(&mut session, &cli.command).unwrap();
    eprintln!("highest {}", crate::execute::highest_of_runs());
}

/// Runs a command line within a budget, which the process keeps; gives what is printed.
fn run(words: &[&str], budget: &str) -> String {
    let (is_done, errors, text) = start(&[words, &["--budget", budget]].concat());
    assert!(is_done, "{words:?}: {errors}");
    let highest = errors.lines().find_map(|line| line.strip_prefix("highest ")).unwrap();
    let allowed = held(&text) + budget.parse::<palinode_core::Budget>().unwrap().bytes() as f64;
    let is_within = highest.parse::<f64>().unwrap() <= allowed;
    assert!(is_within, "{words:?} --budget {budget}: {highest} of {allowed}\n{text}");
    text
}

/// Whether it came to its end, and what it wrote.
fn start(words: &[&str]) -> (bool, String, String) {
    let output = Process::new(std::env::current_exe().unwrap())
        .args(["budget_law::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(WORDS, ["palinode"].iter().chain(words).copied().collect::<Vec<_>>().join("\n"))
        .output()
        .unwrap();
    let [errors, text] = [output.stderr, output.stdout].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.success(), errors, text)
}

/// The least budget that a refusal names: that of a budget of one byte.
fn least(words: &[&str]) -> String {
    let (_, errors, _) = start(&[words, &["--budget", "1"]].concat());
    let (_, rest) = errors.split_once("at least ").unwrap_or_else(|| panic!("{words:?}: {errors}"));
    let (rounded, _) = rest.split_once('"').unwrap();
    match rounded.split_once('(') {
        Some((_, exact)) => exact.split(' ').next().unwrap().replace(',', ""),
        None => rounded.replace(' ', ""),
    }
}

/// Whatever is written to files is gone afterwards.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("palinode-law-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, source: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, source).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The least budget that is named is kept, too: what `--check` holds beside its runs is in it, whether it
/// looks at corners, or a tie is compared on both sides.
#[test]
fn the_least_that_is_named_is_kept() {
    let folder = Folder::new("least");
    let smooth = "param w: [5000]\nloss l = sum(w * sin(w))\n";
    // Every entry is at a kink, which forward mode is asked about.
    let kinks = "param w: [5000]\nparam a = 2\nloss l = a * sum(abs(w - 0.5) * w)\n";
    let tied = "param w: [3000]\nvar s = w[0]\nif s <= 0.5 { s = s * 2 } else { s = s * 2.0 }\nloss l = s * sum(w * w)\n";
    for (name, source) in [("smooth.pal", smooth), ("kinks.pal", kinks), ("tied.pal", tied)] {
        let model = folder.file(name, source);
        for more in [&["--check"][..], &["--check", "--json"], &[]] {
            let words = [&["grad", &model, "--set", "w=0.5"][..], more].concat();
            let budget = least(&words);
            let text = run(&words, &budget);
            assert!(!text.contains("not fit into the budget"), "{words:?} --budget {budget}: {text}");
        }
    }
}

/// What is printed to be held beside the budget; rounded, so up to the next.
fn held(text: &str) -> f64 {
    if let Some((_, rest)) = text.split_once("\"held_bytes\": ") {
        return rest.split([',', '\n']).next().unwrap().trim().parse().unwrap();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.windows(2).position(|pair| pair == ["in", "addition"]).unwrap_or_else(|| panic!("{text}"));
    let unit = match words[at - 1] {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        other => panic!("{other} in {text}"),
    };
    let decimals = words[at - 2].split_once('.').map_or(0, |(_, decimals)| decimals.len());
    (words[at - 2].parse::<f64>().unwrap() + 0.6 * 0.1_f64.powi(decimals as i32)) * unit
}

/// The runs after the gradient are within the budget as well, where memory depends on data: differences, the
/// exact gradient beside a rounded one, and how a loop ended.
#[test]
fn what_is_run_later_is_within_the_budget() {
    let folder = Folder::new("later");
    let model = folder.file(
        "while.pal",
        "param w: [2000]\nvar x = w\nwhile sum(x * x) > 10 {\n  x = 0.8 * sin(x)\n}\nloss l = sum(x * w)\n",
    );
    for (more, budget) in [
        (&["--check"][..], "250kB"),
        (&["--check", "--json"], "250kB"),
        (&["--narrow", "x=f32"], "250kB"),
        (&[], "150kB"),
    ] {
        run(&[&["grad", &model, "--set", "w=0.5", "--accept-points"][..], more].concat(), budget);
    }
}

/// So is forward mode, where reverse mode does not fit, and a plan with counted rounds.
#[test]
fn other_ways_to_a_gradient_are_within_the_budget() {
    let folder = Folder::new("ways");
    let lines: String = (0..30).map(|k| format!("let y{} = sin(y{k}) * b + y{k} * a\n", k + 1)).collect();
    let chain = format!(
        "param a = 0.3\nparam b = 0.7\ninput z: [1000]\nlet y0 = z * b + a\n{lines}loss l = sum(y30 * y15 * y0)\n"
    );
    let nested = "param a = 0.9\nparam b: [300]\nvar s = 0.0\nfor i in 0..50 {\n  var x = b * a\n  while sum(x) > 40 {\n    x = x * 0.9 + 0.01 * a\n  }\n  s = s + x[1] * a\n}\nloss y = s\n";
    let set = ["--set", "z=1"];
    let chain = [&["grad", &folder.file("chain.pal", &chain)][..], &set].concat().join("\n");
    let nested = ["grad", &folder.file("nested.pal", nested), "--set", "b=0.5"].join("\n");
    for (words, way) in [(chain, "forward mode"), (nested, "a run of the values counted")] {
        for more in [&[][..], &["--json"]] {
            // Machine code takes less, and may need no other way; it is held to the law alone.
            let native: Vec<&str> = words.split('\n').chain(more.iter().copied()).collect();
            let words = [&native[..], &["--engine", "interpret"]].concat();
            let (_, errors, _) = start(&[&words[..], &["--budget", "1"]].concat());
            let (_, help) = errors.split_once("--budget ").unwrap_or_else(|| panic!("{words:?}: {errors}"));
            let budget = help.split(' ').next().unwrap().trim_end_matches(',');
            run(&[&native[..], &["--engine", "jit"]].concat(), budget);
            let text = run(&words, budget);
            assert!(text.contains(way) || more == ["--json"], "{text}");
        }
    }
}

/// Where memory depends on data, gradients are made between runs. For a long program with few data that takes
/// much more than the runs do; it is in what is printed.
#[test]
fn making_gradients_between_runs_is_printed() {
    let folder = Folder::new("made");
    let lines: String = (0..400).map(|k| format!("let y{} = sin(y{k}) * a + b\n", k + 1)).collect();
    let ends = "var x = y400\nvar s = 0.0\nwhile x > 0.01 {\n  x = 0.999 * sin(x)\n  s = s + x * b\n}\nloss l = s * y400\n";
    let model =
        folder.file("long.pal", &format!("param a = 0.5\nparam b = 2\nlet y0 = a + b\n{lines}{ends}"));
    // With a log of every round; then so little that logs are tried in vain before snapshots are kept.
    for (more, budget) in [(&[][..], "70kB"), (&[], "44kB"), (&["--json"], "44kB"), (&["--check"], "44kB")] {
        run(&[&["grad", &model, "--engine", "jit"], more].concat(), budget);
        let text = run(&[&["grad", &model, "--engine", "interpret"], more].concat(), budget);
        let has_snapshots = text.contains("a run of the values counted") || more == ["--json"];
        assert_eq!(has_snapshots, budget == "44kB", "{text}");
    }
}

#[test]
fn the_process_stays_within_the_budget_and_what_is_printed() {
    let folder = Folder::new("all");
    let file = |name: &str, source: &str| folder.file(name, source);
    let layers = file(
        "layers.pal",
        "param w: [5000]\nvar x = w\nfor i in 0..6 {\n  x = sin(x) * 1.1 + w\n}\nloss l = sum(x)\noutput x\n",
    );
    let decided = file(
        "decided.pal",
        "param w: [5000]\ninput u: [5000]\nlet x = select(w > 0.2, w * u, exp(w))\nlet y = tanh(x)\nloss l = sum(y * y * x)\n",
    );
    // A tie, of which both sides are compared.
    let tied = file(
        "tied.pal",
        "param w: [5000]\nvar s = w[0]\nif s <= 0.5 { s = s * 2 } else { s = s + 0.5 }\nloss l = s * sum(w * w)\n",
    );
    let sets = ["--set", "w=0.5", "--set", "u=2"];
    let (layers_set, decided_set) = (&sets[..2], &sets[..]);
    let mut seen = 0;
    for (model, set) in [(&layers, layers_set), (&decided, decided_set), (&tied, layers_set)] {
        for (command, budgets) in [
            (&["grad"][..], &["1MB", "390kB"][..]),
            (&["grad", "--json"], &["1MB", "390kB"]),
            (&["grad", "--check"], &["1MB", "390kB"]),
            (&["grad", "--check", "--json"], &["390kB"]),
            // What is next to the least that works: a copy of the answer as text would take more.
            (&["grad", "--full"], &["390kB"]),
            (&["run", "--full"], &["82kB"]),
            (&["run", "--json"], &["82kB"]),
        ] {
            for budget in budgets {
                // The parts of a dozen gradients are compared.
                let budget = if budget.ends_with("82kB") || model != &tied { budget } else { &"1.2MB" };
                run(&[&[command[0], model], &command[1..], set].concat(), budget);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 30);
}
