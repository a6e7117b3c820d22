//! `--check` against models whose derivatives are known in closed form: away from jumps and kinks, near them,
//! and on them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::transcript::json;

/// The answer to `grad --check` of a model, and the exit code.
fn checked(name: &str, source: &str) -> (Value, i32) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("checking");
    fs::create_dir_all(&folder).unwrap();
    let file = format!("{name}.pal");
    fs::write(folder.join(&file), source).unwrap();
    // A kink of a rule and a decision at one point may be refused otherwise (PAL0119).
    json(&folder, &["grad", &file, "--check", "--accept-points"])
}

/// The first gradient, what the check says of it, and the exit code.
fn one(name: &str, source: &str) -> (f64, Value, i32) {
    let (answer, code) = checked(name, source);
    let part = &answer["gradient"][0];
    assert!(part.is_object(), "{source}\n{answer:#}");
    (part["gradient"].as_f64().unwrap(), part["check"].clone(), code)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3)
}

const GOOD: &[&str] = &["agrees", "within"];
const JUMP: &[&str] = &["jump"];
const KINK: &[&str] = &["kink"];

#[test]
fn known_derivatives_at_near_and_away_from_kinks_and_jumps() {
    let rem = "loss y = x % 2";
    let step = "loss y = x*x + floor(x)";
    let hinge = "var s = 0.0\nif x > 0 {\n  s = 3*x\n}\nloss y = s + x";
    let above = "var s = 0.0\nif x > 1 {\n  s = x*x + 5\n} else {\n  s = x*x*x\n}\nloss y = s";
    let from = "var s = 0.0\nif x >= 1 {\n  s = x*x + 5\n} else {\n  s = x*x*x\n}\nloss y = s";
    let smooth = "var s = 0.0\nif x > 1 {\n  s = x*x\n} else {\n  s = 2*x - 1\n}\nloss y = s";
    let whole = "loss y = real(int(x)) + 3*x";
    let grow = "var s = 1.0\nvar n = 0\nwhile s < 10 {\n  s = s * x\n  n = n + 1\n}\nloss y = s";
    let sixth = 10_f64.powf(1.0 / 6.0);
    let table: &[(&str, f64, f64, &[&str])] = &[
        (rem, 0.3, 1.0, GOOD),
        (rem, 1.3, 1.0, GOOD),
        (rem, -0.7, 1.0, GOOD),
        (rem, 100.3, 1.0, GOOD),
        (rem, 1_000_000.3, 1.0, GOOD),
        (rem, 1.999_999, 1.0, GOOD),
        (rem, 2.000_001, 1.0, GOOD),
        (rem, 2.0, 1.0, JUMP),
        (rem, 100.0, 1.0, JUMP),
        (step, 2.5, 5.0, GOOD),
        (step, 3.0 - 1e-9, 6.0 - 2e-9, GOOD),
        (step, 3.0 + 1e-9, 6.0 + 2e-9, GOOD),
        (step, 3.0, 6.0, JUMP),
        (step, 1000.5, 2001.0, GOOD),
        (step, 1_000_000.25, 2_000_000.5, GOOD),
        ("loss y = abs(x)", 0.0, 0.0, KINK),
        // Slopes on both sides that still change, and a kink that is small beside the slope.
        ("loss y = relu(x)*3 + cos(x)", 0.0, 0.0, KINK),
        ("loss y = 100000*x + relu(x)*3", 0.0, 100_000.0, KINK),
        // A kink and a jump at one point.
        ("loss y = relu(x) + floor(x)", 0.0, 0.0, JUMP),
        ("loss y = sin(x) - 2*relu(x) + floor(x)", 0.0, 1.0, JUMP),
        ("loss y = abs(x)", 1e-9, 1.0, GOOD),
        ("loss y = abs(x - 1) + x*x", 1.0, 2.0, KINK),
        ("loss y = abs(x - 1) + x*x", 1.000_001, 3.000_002, GOOD),
        (hinge, 0.0, 1.0, KINK),
        (hinge, 1e-9, 4.0, GOOD),
        (hinge, -1e-9, 1.0, GOOD),
        (hinge, 5.0, 4.0, GOOD),
        (above, 1.0, 3.0, JUMP),
        (from, 1.0, 2.0, JUMP),
        (above, 1.0 + 1e-10, 2.0 + 2e-10, GOOD),
        (above, 1.0 - 1e-10, 3.0 - 6e-10, GOOD),
        (smooth, 1.0, 2.0, GOOD),
        ("loss y = round(x) * x", 2.5, 3.0, JUMP),
        ("loss y = round(x) * x", 2.4999, 2.0, GOOD),
        ("loss y = ceil(x) * x", 2.0, 2.0, JUMP),
        ("loss y = trunc(x) * x", 2.0, 2.0, JUMP),
        ("loss y = trunc(x) * x", 0.0, 0.0, GOOD),
        ("loss y = sign(x) * x", 0.0, 1.0, KINK),
        (whole, 2.0, 3.0, JUMP),
        (whole, 1.999_999_9, 3.0, GOOD),
        (whole, 77.7, 3.0, GOOD),
        (grow, 1.5, 6.0 * 1.5_f64.powi(5), GOOD),
        // Not far from here the loop does not end.
        (grow, 1.01, 232.0 * 1.01_f64.powi(231), GOOD),
        (grow, sixth + 1e-9, 6.0 * (sixth + 1e-9).powi(5), GOOD),
        (grow, sixth - 1e-9, 7.0 * (sixth - 1e-9).powi(6), GOOD),
    ];
    let mut failures = Vec::new();
    for (at, (source, x, exact, statuses)) in table.iter().enumerate() {
        let source = format!("param x = {x:?}\n{source}\n");
        let (gradient, check, code) = one(&format!("table{at}"), &source);
        let status = check["status"].as_str().unwrap();
        if !close(gradient, *exact) || code != 0 || !statuses.contains(&status) {
            failures
                .push(format!("{source}gives {gradient} for {exact}, {statuses:?}, exit {code}: {check}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn values_on_both_sides_of_a_jump_are_reported() {
    let (_, check, _) = one("sides", "param x = 3\nloss y = x*x + floor(x)\n");
    let value = |name: &str| check[name].as_f64().unwrap();
    assert!(close(value("left"), 11.0) && close(value("right"), 12.0), "{check}");
    assert!(close(value("differences"), 6.0), "{check}");
}

#[test]
fn a_search_by_halving_is_told_apart_from_its_function() {
    let source = "param a = 2\nvar low = 0.0\nvar high = 4.0\nfor i in 0..40 {\n  let m = (low + high) / 2\n  if m * m < a {\n    low = m\n  } else {\n    high = m\n  }\n}\nloss y = low\n";
    let (gradient, check, code) = one("halving", source);
    assert_eq!((gradient, code), (0.0, 0), "{check}");
    assert!(["within", "crossed", "agrees"].contains(&check["status"].as_str().unwrap()), "{check}");
    let slope = check["across"].as_f64().unwrap_or_else(|| panic!("{check}"));
    assert!((slope - 0.5 / 2_f64.sqrt()).abs() < 1e-3, "{check}");
}

/// What does not change when all entries move alike still depends on them.
#[test]
fn decisions_of_differences_are_seen() {
    for source in [
        "param a = 1\nparam b = 2\nvar y = 0.0\nif a - b > -1.5 {\n  y = (a - b)*(a - b)\n}\nloss z = y\n",
        "param w: [3] = [1, 2, 4]\nlet p = softmax(w)\nvar y = 0.0\nif p[0] < 0.5 {\n  y = p[0]\n}\nloss z = y\n",
        "param w: [2] = [1, 3]\nvar y = 0.0\nif w[1] - w[0] > 1 {\n  y = sum(w)\n}\nloss z = y\n",
    ] {
        let (answer, code) = checked("alike", source);
        assert_eq!((&answer["decisions"]["count"], code), (&Value::from(1), 0), "{source}{answer:#}");
        for part in answer["gradient"].as_array().unwrap() {
            assert!(GOOD.contains(&part["check"]["status"].as_str().unwrap()), "{source}{part}");
        }
    }
}

#[test]
fn arrays_with_decisions_inside() {
    // 30 entries: six are compared one by one, and all along a direction that crosses many of the jumps.
    let w: Vec<String> = (0..30).map(|k| format!("{:.4}", -3.03 + 6.1 * f64::from(k) / 29.0)).collect();
    let source = "var s = 0.0\nfor i in 0..30 {\n  if w[i] > 0.5 {\n    s = s + w[i]*w[i] + 1\n  } else {\n    s = s + floor(4*w[i]) - 2*w[i]\n  }\n}\nloss z = s\n";
    let (answer, code) = checked("array", &format!("param w: [30] = [{}]\n{source}", w.join(", ")));
    let part = &answer["gradient"][0];
    assert_eq!(code, 0, "{part}");
    assert!(GOOD.contains(&part["check"]["status"].as_str().unwrap()), "{}", part["check"]);
    for (g, x) in part["gradient"].as_array().unwrap().iter().zip(part["at"].as_array().unwrap()) {
        let (g, x) = (g.as_f64().unwrap(), x.as_f64().unwrap());
        assert!(close(g, if x > 0.5 { 2.0 * x } else { -2.0 }), "{x} {g}");
    }
    let (_, check, _) = one("largest", "param x = 1\nlet w = [x, 1, 0.5]\nloss y = max(w)\n");
    assert_eq!(check["status"], "kink");
}

/// What a term is at a point, `t` being the distance from it: its text, its derivative there by the
/// conventions of the rule table, its slopes to the left and to the right, and by how much it jumps.
const CORNERS: &[(&str, f64, [f64; 2], f64)] = &[
    ("relu(t)", 0.0, [0.0, 1.0], 0.0),
    ("relu(-t)", 0.0, [-1.0, 0.0], 0.0),
    ("abs(t)", 0.0, [-1.0, 1.0], 0.0),
    ("max(t, 3*t)", 2.0, [1.0, 3.0], 0.0),
    ("min(t, 0)", 0.5, [1.0, 0.0], 0.0),
    ("norm([t, 0])", 0.0, [-1.0, 1.0], 0.0),
    ("floor(t)", 0.0, [0.0, 0.0], 1.0),
    ("ceil(t)", 0.0, [0.0, 0.0], 1.0),
    ("sign(t)", 0.0, [0.0, 0.0], 2.0),
    ("t % 1", 1.0, [1.0, 1.0], 0.0),
    ("up", 0.0, [0.0, 3.0], 2.0),
    ("low", -2.0, [0.0, -2.0], 0.0),
];
const SMOOTH: &[(&str, f64)] =
    &[("cos(t)", 0.0), ("exp(2*t)", 2.0), ("t*t", 0.0), ("sin(3*t)", 3.0), ("7", 0.0)];

/// Random numbers below what is asked for, one after another.
fn draws(seed: u64) -> impl FnMut(usize) -> usize {
    let (key, mut drawn) = (palinode_core::Key::from_seed(seed), 0);
    move |n| {
        drawn += 1;
        key.below(n as u64, drawn) as usize
    }
}

/// Kinks and jumps, of rules and of decisions, several at one point. What is right is never called wrong;
/// what is wrong, because the gradient of a term is stopped or another one is added, never right.
#[test]
fn random_corners() {
    let models: u64 = std::env::var("PALINODE_CHECKS").ok().and_then(|word| word.parse().ok()).unwrap_or(25);
    let mut draw = draws(7);
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..models {
        let point = [0.0, 2.0, -3.5][draw(3)];
        let (mut text, mut slope) = (String::new(), 0.0);
        let (mut sides, mut jump, mut jumps) = ([0.0; 2], 0.0, false);
        for at in 0..2 + draw(4) {
            let (term, by, beside, height) = match at < 2 {
                true => CORNERS[draw(CORNERS.len())],
                false => {
                    let (term, by) = SMOOTH[draw(SMOOTH.len())];
                    (term, by, [by; 2], 0.0)
                }
            };
            let weight = (1 + draw(30)) as f64 / 10.0 * if draw(2) == 0 { 1.0 } else { -1.0 };
            text += &format!(" + {weight:?} * {term}");
            slope += weight * by;
            sides = [sides[0] + weight * beside[0], sides[1] + weight * beside[1]];
            jump += weight * height;
            jumps |= height != 0.0;
        }
        if jumps && close(jump, 0.0) {
            continue;
        }
        // Kinks that cancel leave a smooth function: what is chosen at each of them is not its derivative,
        // and the answer says so.
        let cancel = !jumps && close(sides[0], sides[1]) && !close(slope, sides[0]);
        let branches =
            "var up = 0.0\nif t > 0 {\n  up = 3*t + 2\n}\nvar low = -2*t\nif t < 0 {\n  low = t*t\n}\n";
        let model = |rest: &str| {
            format!("param x = {point:?}\nlet t = x - {point:?}\n{branches}loss y = 0.3*t{text}{rest}\n")
        };
        let (source, slope) = (model(""), slope + 0.3);
        let (gradient, check, code) = one("corner", &source);
        assert!(
            close(gradient, slope) && code == if cancel { 4 } else { 0 },
            "{source}{gradient} {slope} {check}"
        );
        seen.push(check["status"].as_str().unwrap().to_string());
        for wrong in
            [" + stop_gradient(0.5*t)", " - stop_gradient(0.02*exp(t))", " + 0.1*t - 0.1*stop_gradient(t)"]
        {
            let (_, check, code) = one("corner_wrong", &model(wrong));
            assert_eq!((check["status"].as_str(), code), (Some("disagrees"), 4), "{}{check}", model(wrong));
        }
    }
    for status in ["kink", "jump"] {
        assert!(seen.iter().any(|one| one == status), "{seen:?}");
    }
    assert!(seen.iter().filter(|one| *one == "crossed").count() * 4 < seen.len(), "{seen:?}");
}

/// Sums of terms with known derivatives, at random points, on jumps and next to them. What is right is never
/// called wrong; what is wrong (a term whose gradient is stopped) is.
#[test]
fn random_models() {
    let models: u64 = std::env::var("PALINODE_CHECKS").ok().and_then(|word| word.parse().ok()).unwrap_or(60);
    let mut draw = draws(99);
    let mut seen: Vec<String> = Vec::new();
    for at in 0..models {
        let tenth = |k: usize| k as f64 / 10.0;
        let near = [0.0, 1e-9, -1e-9, 1e-5, -1e-5, 0.13, -0.27][draw(7)];
        let x = draw(12) as f64 / 2.0 + near;
        let (a, b, c, d, e) =
            (tenth(5 + draw(20)), tenth(draw(30)), tenth(draw(30)), tenth(draw(30)), draw(10) as f64 / 2.0);
        let smooth = format!("{a} * x*x");
        let rest = format!("{b} * floor(2*x) + {c} * abs(x - {e}) + {d} * (x % 1.5) + s");
        let branch = format!("var s = 0.0\nif x > {e} {{\n  s = {b} * x\n}}\n");
        let slope =
            2.0 * a * x + c * if x == e { 0.0 } else { (x - e).signum() } + d + if x > e { b } else { 0.0 };
        let source = format!("param x = {x:?}\n{branch}loss y = {smooth} + {rest}\n");
        let (gradient, check, code) = one("random", &source);
        let status = check["status"].as_str().unwrap().to_string();
        assert!(close(gradient, slope) && code == 0, "{source}{gradient} {slope} {check}");
        seen.push(status.clone());
        // Where the branch and the corner are, the point may take the decisions of neither side.
        if x == e {
            continue;
        }
        assert!(status != "kink" || near.abs() == 1e-9, "{source}{check}");
        // Halves and multiples of 1.5 are where the jumps are.
        let jumps = b != 0.0 && (2.0 * x).fract() == 0.0 || d != 0.0 && (x / 1.5).fract() == 0.0;
        assert_eq!(status == "jump", jumps, "{source}{check}");
        // The same with a term that is held fixed.
        if 2.0 * a * x > 0.1 && at % 2 == 0 {
            let wrong = format!("param x = {x:?}\n{branch}loss y = stop_gradient({smooth}) + {rest}\n");
            let (_, check, code) = one("wrong", &wrong);
            assert_eq!((check["status"].as_str(), code), (Some("disagrees"), 4), "{wrong}{check}");
            assert!(
                (check["differences"].as_f64().unwrap() - slope).abs() < 1e-3 * (1.0 + slope.abs()),
                "{wrong}{check}"
            );
        }
    }
    for status in ["agrees", "jump"] {
        assert!(seen.iter().any(|one| one == status), "{seen:?}");
    }
}
