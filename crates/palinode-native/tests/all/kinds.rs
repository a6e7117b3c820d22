//! Which kinds of statements the loop forms of random programs have, in loops over elements and elsewhere:
//! what none of them has, nothing tests.

use std::collections::BTreeMap;

use crate::elements;
use crate::programs::{family, from_environment, of_source};
use crate::random::Random;
use crate::random::generate::source;
use crate::random::programs::{self, Kind};
use palinode_ir::interp::Datum;
use palinode_ir::loops::{self, Stmt};

macro_rules! kinds {
    ($($kind:ident)*) => {
        const KINDS: &[&str] = &[$(stringify!($kind),)*];

        fn kind(stmt: &Stmt) -> &'static str {
            match stmt {
                $(Stmt::$kind { .. } => stringify!($kind),)*
            }
        }
    };
}

kinds! {
    Move Map Round32 Int Index Compare And Or Not Select Truncate Convert Load Store Finite AllFinite Within
    Holds Stop For While Sweep If Each Function Reduce Product Dots Kernel Swap Reserve Step
}

/// Those that random programs do not have in a loop over elements, and those that none can have there.
const NOT_IN_EACH: [&str; 19] = [
    "AllFinite",
    "Within",
    "Holds",
    "Stop",
    "For",
    "While",
    "Sweep",
    "If",
    "Each",
    "Function",
    "Reduce",
    "Product",
    "Dots",
    "Kernel",
    "Swap",
    "Reserve",
    "Step",
    // A loop that is joined with another one reads what is moved.
    "Move",
    // Updates that are gathered have it, if a counter is a number in them: `tests/loops/gather.txt`.
    "Index",
];

fn count(stmts: &[Stmt], in_each: bool, found: &mut BTreeMap<(&'static str, bool), usize>) {
    for stmt in stmts {
        *found.entry((kind(stmt), in_each)).or_default() += 1;
        let in_each = in_each || matches!(stmt, Stmt::Each { .. });
        stmt.blocks().into_iter().for_each(|block| count(block, in_each, found));
    }
}

/// What should have been found, and whether in a loop over elements.
fn missing(found: &BTreeMap<(&'static str, bool), usize>) -> Vec<(&'static str, bool)> {
    KINDS
        .iter()
        .flat_map(|&kind| [(kind, false), (kind, true)])
        .filter(|&(kind, in_each)| !(in_each && NOT_IN_EACH.contains(&kind)))
        .filter(|one| !found.contains_key(one))
        .collect()
}

#[test]
fn every_kind_of_statement_is_reached() {
    let mut found = BTreeMap::new();
    let seeds = 0..from_environment("PALINODE_KINDS", 60);
    for seed in seeds {
        if missing(&found).is_empty() {
            break;
        }
        let mut all = Vec::new();
        let (program, inputs) = of_source(&source(seed)).unwrap_or_else(|error| panic!("{error}"));
        all.push((program, inputs));
        for kind in [Kind::Any, Kind::Strong, Kind::Walked] {
            all.push((programs::program(seed, 16, kind), programs::inputs(&mut Random::new(seed))));
        }
        all.push(elements::program(seed));
        for (program, inputs) in all {
            let wrt: Vec<usize> =
                (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
            for (_, program) in family(&program, &wrt, 2) {
                for form in
                    [loops::lower(&program, &inputs, true), loops::lower_plainly(&program, &inputs, true)]
                {
                    form.iter().for_each(|form| count(&form.body, false, &mut found));
                }
            }
        }
    }
    println!("{found:#?}");
    let missing = missing(&found);
    assert!(missing.is_empty(), "no random program has {missing:?}");
}
