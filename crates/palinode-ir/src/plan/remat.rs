//! Rematerialisation: values that are live at the peak and needed only later are computed again instead of
//! kept.
//!
//! Input: a program, the shapes of its inputs, a budget. Output: a program that gives the same bits within
//! the budget, or the smallest peak that was reached.
//!
//! One step at a time: predict; look at the arrays that are live at the peak; of those that are not used
//! there, that a repeatable operation made before and that something uses afterwards, take the one with the
//! least work per byte freed; repeat its operation right before the first use after the peak, and what it
//! needs in turn if that is no longer there. A value that was repeated is a value like any other and may be
//! chosen again, so that the result ranges from keeping everything to snapshots within snapshots. This is
//! the greedy scheme of Kirisame et al., *Dynamic tensor rematerialization* (2021), done ahead of time with
//! exact sizes. Where there are many such arrays (code without loops, by the thousand), a step takes several
//! of them that do not need each other: there are no more steps than for a short program.
//!
//! Limits: only within a block (a loop counts as one operation there; what loops keep round by round is
//! chosen by `transform::Storage`). Common subexpressions must not be merged afterwards.

mod repeat;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::interp::Datum;
use crate::op::{FuncId, Kind, Op};
use crate::plan::effort::Effort;
use crate::plan::{PlanError, Prediction, predict, predicted};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::work;

/// After so many steps without a lower peak, the search ends.
const PATIENCE: usize = 24;
/// Up to so many values that could be given up are given up one at a time, of more
const FEW: usize = 56;
/// one of so many.
const AT_ONCE: usize = 8;
/// To look for what is to be repeated takes as long as to walk so often through the program.
const STEP: u64 = 4;
/// How many operations may be repeated to get one value back.
const LONGEST: usize = 64;

/// A program that was fitted into a budget, or as close as possible.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The program.
    pub program: Program,
    /// What it needs.
    pub prediction: Prediction,
    /// How many operations are done twice.
    pub repeated: usize,
    /// Of each value that was made again, the value it equals.
    origins: HashMap<Value, Value>,
}

/// Repeats operations until the program fits into `budget` bytes, or no repetition helps.
///
/// # Errors
/// If the memory of the program depends on data.
pub fn rematerialize<R>(
    program: &Program,
    inputs: &[Datum<R>],
    real_bytes: usize,
    budget: u64,
) -> Result<Fitted, PlanError> {
    let prediction = predict(program, inputs, real_bytes)?;
    let effort = Effort::for_a_run(prediction.work);
    rematerialize_from(program, prediction, inputs, real_bytes, budget, &effort)
}

/// The same, as long as there is effort left.
pub(super) fn rematerialize_within<R>(
    program: &Program,
    inputs: &[Datum<R>],
    real_bytes: usize,
    budget: u64,
    effort: &Effort,
) -> Result<Fitted, PlanError> {
    let prediction = predicted(program, inputs, real_bytes, None, effort)?;
    rematerialize_from(program, prediction, inputs, real_bytes, budget, effort)
}

/// The same of a program of which is known what it needs.
pub(super) fn rematerialize_from<R>(
    program: &Program,
    prediction: Prediction,
    inputs: &[Datum<R>],
    real_bytes: usize,
    budget: u64,
    effort: &Effort,
) -> Result<Fitted, PlanError> {
    let predict = |program: &Program| predicted(program, inputs, real_bytes, None, effort);
    let mut best = Fitted { program: program.clone(), prediction, repeated: 0, origins: HashMap::new() };
    let mut current = best.clone();
    let mut fruitless = 0;
    while current.prediction.heap > budget && fruitless < PATIENCE && !effort.is_over() {
        // Fewer values may do for this budget. If they do not, all go, so that the way down is the same for
        // every budget.
        let excess = current.prediction.heap - budget;
        let Some(choices) = best_choices(&current) else { break };
        let few = enough(&choices.1, excess);
        if few < choices.1.len() {
            let mut fewer = current.clone();
            give_up(&mut fewer, &choices.0, choices.1[..few].iter());
            effort.spend(STEP * fewer.program.size() as u64);
            fewer.prediction = predict(&fewer.program)?;
            if fewer.prediction.heap <= budget {
                best = fewer;
                break;
            }
        }
        give_up(&mut current, &choices.0, choices.1.iter());
        effort.spend(STEP * current.program.size() as u64);
        current.prediction = predict(&current.program)?;
        if current.prediction.heap < best.prediction.heap {
            best = current.clone();
            fruitless = 0;
        } else {
            fruitless += 1;
        }
    }
    if best.repeated > 0 {
        best.program.functions[program.entry.index()].renumber();
        best.prediction = predict(&best.program)?;
    }
    Ok(best)
}

/// Where a block is: the instruction and the block of it to enter, from the body of the entry on.
type Path = Vec<(usize, usize)>;

/// How many of these, the best first, free so many bytes; all of them if they do not.
fn enough(choices: &[Choice], excess: u64) -> usize {
    let mut freed = 0_u64;
    let frees = |choice: &Choice| {
        freed = freed.saturating_add(choice.freed);
        freed >= excess
    };
    choices.iter().position(frees).map_or(choices.len(), |last| last + 1)
}

/// Computes these again where they are needed.
fn give_up<'c>(current: &mut Fitted, path: &[(usize, usize)], choices: impl Iterator<Item = &'c Choice>) {
    let Fitted { program, repeated, origins, .. } = current;
    let function = &mut program.functions[program.entry.index()];
    let mut body = core::mem::take(&mut function.body);
    let mut block = &mut body;
    for &(at, inner) in path {
        block = &mut block.insts[at].blocks[inner];
    }
    let before = block.insts.len();
    repeat::repeat(function, block, choices.collect(), origins);
    // A repetition that serves several uses may replace more than it adds.
    *repeated = *repeated + block.insts.len() - before;
    function.body = body;
}

/// The block to work on and what to give up there, the best first.
fn best_choices(current: &Fitted) -> Option<(Path, Vec<Choice>)> {
    let Fitted { program, prediction, origins, .. } = current;
    let entry = program.entry;
    let live: HashSet<Value> = prediction
        .live
        .iter()
        .filter_map(|array| array.value)
        .filter(|(function, _)| *function == entry)
        .map(|(_, value)| value)
        .collect();
    let main = program.main();
    let path = match prediction.peak_at {
        Some((function, value)) if function == entry => path_to(&main.body, value)?,
        Some(_) | None => return None,
    };
    let mut twins: HashMap<Value, Vec<Value>> = HashMap::new();
    for (&twin, &origin) in origins {
        twins.entry(origin).or_insert_with(|| vec![origin]).push(twin);
    }
    let mut found: Option<(usize, Vec<Scored>)> = None;
    let mut block = &main.body;
    for (depth, &(at, inner)) in path.iter().enumerate() {
        let sizes = Sizes(entry, prediction);
        let search = Search { function: main, block, peak: at, live: &live, sizes, origins, twins: &twins };
        let choices = search.choices().into_iter();
        let mut scored: Vec<Scored> =
            choices.map(|choice| (choice.work / choice.freed as f64, choice)).collect();
        // Of equal ones the first, as they are found.
        scored.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        if let Some((score, _)) = scored.first()
            && found.as_ref().is_none_or(|(_, best)| *score < best[0].0)
        {
            found = Some((depth, scored));
        }
        if let Some(next) = block.insts[at].blocks.get(inner) {
            block = next;
        }
    }
    let (depth, scored) = found?;
    Some((path[..depth].to_vec(), some_apart(scored)))
}

/// A choice, after its work for each byte that it frees.
type Scored = (f64, Choice);

/// The best of many, which do not need each other; of a few the very best.
fn some_apart(scored: Vec<Scored>) -> Vec<Choice> {
    let most = (scored.len().saturating_sub(FEW) / AT_ONCE).max(1);
    let (mut chosen, mut given_up, mut needed): (Vec<Choice>, HashSet<Value>, HashSet<Value>) =
        Default::default();
    for (_, choice) in scored {
        if chosen.len() == most {
            break;
        }
        if needed.contains(&choice.value) || choice.needs.iter().any(|value| given_up.contains(value)) {
            continue;
        }
        given_up.insert(choice.value);
        needed.extend(&choice.needs);
        chosen.push(choice);
    }
    chosen
}

/// The way to the instruction that defines a value; the last entry names the instruction itself.
fn path_to(block: &Block, value: Value) -> Option<Path> {
    for (at, inst) in block.insts.iter().enumerate() {
        if inst.results.contains(&value) {
            return Some(vec![(at, usize::MAX)]);
        }
        for (number, inner) in inst.blocks.iter().enumerate() {
            if let Some(mut path) = path_to(inner, value) {
                path.insert(0, (at, number));
                return Some(path);
            }
        }
    }
    None
}

/// A value to give up at the peak.
struct Choice {
    value: Value,
    /// The instruction before which it is made again.
    before: usize,
    /// What is repeated, in order, by position in the block.
    repeat: Vec<usize>,
    /// Operands of it that are there under another name.
    instead: HashMap<Value, Value>,
    /// What is read or made again for that, besides the value itself.
    needs: Vec<Value>,
    work: f64,
    freed: u64,
}

struct Sizes<'a>(FuncId, &'a Prediction);

impl Sizes<'_> {
    fn elements(&self, value: Value) -> u64 {
        self.1.elements.get(&(self.0, value)).copied().unwrap_or(1)
    }
}

struct Search<'a> {
    function: &'a Function,
    block: &'a Block,
    /// The instruction at which the peak is.
    peak: usize,
    live: &'a HashSet<Value>,
    sizes: Sizes<'a>,
    origins: &'a HashMap<Value, Value>,
    /// Of each origin, all values that equal it.
    twins: &'a HashMap<Value, Vec<Value>>,
}

impl Search<'_> {
    fn choices(&self) -> Vec<Choice> {
        let mut uses: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (at, inst) in self.block.insts.iter().enumerate() {
            inst.for_each_use(&mut |value| {
                let of_value = uses.entry(value).or_default();
                if of_value.last() != Some(&at) {
                    of_value.push(at);
                }
            });
        }
        let end = self.block.insts.len();
        for &result in &self.block.results {
            uses.entry(result).or_default().push(end);
        }
        let defined: HashMap<Value, usize> = self
            .block
            .insts
            .iter()
            .enumerate()
            .flat_map(|(at, inst)| inst.results.iter().map(move |&result| (result, at)))
            .collect();
        let mut values: Vec<Value> = self.live.iter().copied().collect();
        values.sort_unstable();
        values.into_iter().filter_map(|value| self.choice(value, &uses, &defined)).collect()
    }

    fn choice(
        &self,
        value: Value,
        uses: &BTreeMap<Value, Vec<usize>>,
        defined: &HashMap<Value, usize>,
    ) -> Option<Choice> {
        let made = *defined.get(&value)?;
        let uses_of = uses.get(&value)?;
        let before = *uses_of.iter().find(|&&at| at > self.peak)?;
        let is_result = uses_of.last() == Some(&self.block.insts.len());
        if made >= self.peak
            || uses_of.contains(&self.peak)
            || is_result
            || !is_repeatable(&self.block.insts[made])
        {
            return None;
        }
        let mut chain = Chain {
            search: self,
            uses,
            defined,
            before,
            repeat: Vec::new(),
            instead: HashMap::new(),
            needs: Vec::new(),
            longer: 0,
            work: 0.0,
        };
        chain.add(made)?;
        let Chain { mut repeat, instead, needs, longer, work, .. } = chain;
        let bytes = self.bytes(value);
        let freed = bytes.checked_sub(longer).filter(|&freed| freed > 0)?;
        repeat.sort_unstable();
        Some(Choice { value, before, repeat, instead, needs, work, freed })
    }

    fn bytes(&self, value: Value) -> u64 {
        self.sizes.elements(value) * self.function.ty(value).elem.bytes(self.sizes.1.real_bytes) as u64
    }

    fn origin(&self, value: Value) -> Value {
        *self.origins.get(&value).unwrap_or(&value)
    }

    fn work(&self, inst: &Inst) -> f64 {
        let size = |value: &Value| {
            if self.function.ty(*value).is_scalar() { 1 } else { self.sizes.elements(*value) }
        };
        let operands: Vec<u64> = inst.args.iter().map(size).collect();
        work::work(inst, inst.results.iter().map(size).max().unwrap_or(1), &operands)
    }
}

/// What must be repeated to have a value again before some instruction.
struct Chain<'a> {
    search: &'a Search<'a>,
    uses: &'a BTreeMap<Value, Vec<usize>>,
    defined: &'a HashMap<Value, usize>,
    before: usize,
    repeat: Vec<usize>,
    instead: HashMap<Value, Value>,
    needs: Vec<Value>,
    /// Bytes of arrays that must live longer, through the peak.
    longer: u64,
    work: f64,
}

impl Chain<'_> {
    fn add(&mut self, at: usize) -> Option<()> {
        if self.repeat.contains(&at) {
            return Some(());
        }
        if self.repeat.len() >= LONGEST {
            return None;
        }
        self.repeat.push(at);
        let search = self.search;
        let inst = &search.block.insts[at];
        // What is made again later anyway is only moved.
        let is_moved = self.repeat.len() > 1 && inst.results.iter().any(|&result| self.later(result));
        self.work += if is_moved { 0.0 } else { search.work(inst) };
        let mut operands = inst.args.clone();
        inst.blocks.iter().for_each(|block| operands.extend(block.captures()));
        self.needs.extend(operands.iter().filter(|&&operand| !search.function.ty(operand).is_scalar()));
        for operand in operands {
            let last = self.uses.get(&operand).and_then(|uses| uses.last()).copied().unwrap_or(0);
            let is_there = search.function.ty(operand).is_scalar() || last >= self.before;
            if let Some(twin) = self.at_hand(operand).filter(|_| !is_there) {
                self.instead.insert(operand, twin);
                self.needs.push(twin);
                continue;
            }
            match self.defined.get(&operand) {
                _ if is_there => {}
                // From around the block: it can stay, for its bytes if it would be gone at the peak.
                None => self.longer += if last >= search.peak { 0 } else { search.bytes(operand) },
                Some(&made) if is_repeatable(&search.block.insts[made]) => self.add(made)?,
                Some(_) => self.longer += if last >= search.peak { 0 } else { search.bytes(operand) },
            }
        }
        Some(())
    }
}

impl Chain<'_> {
    /// Values that equal this one.
    fn twins(&self, value: Value) -> impl Iterator<Item = Value> {
        let all = self.search.twins.get(&self.search.origin(value));
        all.into_iter().flatten().copied().filter(move |&twin| twin != value)
    }

    /// A twin that is live where the value is wanted.
    fn at_hand(&self, value: Value) -> Option<Value> {
        let is_live = |twin: &Value| {
            let last = self.uses.get(twin).and_then(|uses| uses.last()).copied().unwrap_or(0);
            self.defined.get(twin).is_some_and(|&made| made < self.before) && last >= self.before
        };
        self.twins(value).filter(is_live).min()
    }

    /// Whether a twin is made after the place where the value is wanted.
    fn later(&self, value: Value) -> bool {
        self.twins(value).any(|twin| self.defined.get(&twin).is_some_and(|&made| made >= self.before))
    }
}

/// Whether an operation can be done twice: it changes nothing and holds no loop.
fn is_repeatable(inst: &Inst) -> bool {
    match inst.op.facts().kind {
        // What was packed was packed to be small: to have it again, the array would have to be there.
        _ if matches!(inst.op, Op::Pack(_)) => false,
        Kind::Elementwise | Kind::Reads | Kind::Makes | Kind::Reshapes | Kind::Fuses => true,
        // Scalars, or too much.
        Kind::Literal | Kind::Measures => false,
        Kind::Updates | Kind::Repeats(_) | Kind::Branches | Kind::Calls => false,
    }
}
