//! A loop form run statement by statement, as its definition says: what machine code is compared with, and
//! what a spoilt form shows itself by.
//!
//! An access that the verifier has proven to be inside and that is not is a panic.

use palinode_core::products::{MatrixView, add_product, times_vector};
use palinode_ir::IntOp;
use palinode_ir::interp::{Code, Datum, Limits, Tensor, real_of, reduce_axis};
use palinode_ir::loops::{
    Buf, Given, Index, Kept, Kind, LoopForm, Matrix, Operand, Place, Port, Reg, Role, Stmt, Sweep, SweepStep,
    Taken, Unproven, kernel_types, one_operation, verify,
};

/// How a run ends before its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// As the form says.
    Stopped,
    /// It takes too long.
    Long,
    /// The verifier finds it wrong.
    Refused(String),
}

type Ran<T> = Result<T, Ended>;

/// The results and the steps that were taken, with what the verifier says first. At most so many `steps` of
/// the program, and so many statements and elements as there is `fuel`.
pub(crate) fn run(
    form: &LoopForm,
    inputs: &[Datum<f64>],
    steps: i64,
    fuel: i64,
) -> Ran<(Vec<Datum<f64>>, i64)> {
    let unproven = verify(form).map_err(Ended::Refused)?;
    let words = |datum: &Datum<f64>| -> Vec<u64> {
        match datum {
            Datum::Real(tensor) => tensor.data.iter().map(|x| x.to_bits()).collect(),
            Datum::Int(tensor) => tensor.data.iter().map(|&n| n as u64).collect(),
            Datum::Bool(tensor) => tensor.data.iter().map(|&x| u64::from(x)).collect(),
        }
    };
    let memory = form
        .buffers
        .iter()
        .map(|buffer| match buffer.role {
            Role::Input(number) => words(&inputs[number]),
            Role::Workspace => vec![0; buffer.length as usize],
            Role::Growing => Vec::new(),
        })
        .collect();
    let registers = vec![0; form.registers.len()];
    let mut run = Run { form, unproven, memory, registers, bad: false, steps, fuel };
    for (port, input) in form.inputs.iter().zip(inputs) {
        if let Port::Scalar(Operand::Reg(reg)) = port {
            run.registers[reg.index()] = words(input)[0];
        }
    }
    run.block(&form.body)?;
    if run.bad {
        return Err(Ended::Stopped);
    }
    Ok((form.outputs.iter().map(|port| run.output(port)).collect(), steps - run.steps))
}

struct Run<'f> {
    form: &'f LoopForm,
    unproven: Unproven,
    /// The bits of each element.
    memory: Vec<Vec<u64>>,
    registers: Vec<u64>,
    /// Whether something went wrong that is looked at at the end.
    bad: bool,
    steps: i64,
    /// How many statements may still run.
    fuel: i64,
}

impl Run<'_> {
    fn kind(&self, operand: Operand) -> Kind {
        match operand {
            Operand::Reg(reg) => self.form.registers[reg.index()],
            Operand::Real(_) => Kind::Real,
            Operand::Int(_) => Kind::Int,
            Operand::Bool(_) => Kind::Bool,
        }
    }

    fn get(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.registers[reg.index()],
            Operand::Real(value) => value.to_bits(),
            Operand::Int(n) => n as u64,
            Operand::Bool(value) => u64::from(value),
        }
    }

    fn real(&self, operand: Operand) -> f64 {
        f64::from_bits(self.get(operand))
    }

    fn int(&self, operand: Operand) -> i64 {
        self.get(operand) as i64
    }

    fn set(&mut self, to: Reg, value: u64) {
        self.registers[to.index()] = value;
    }

    fn index(&self, index: &Index) -> i64 {
        index.terms.iter().fold(index.constant, |sum, &(reg, factor)| {
            sum.wrapping_add((self.registers[reg.index()] as i64).wrapping_mul(factor))
        })
    }

    /// The element at an index; stops outside, unless that was to be impossible.
    fn element(&self, stmt: &Stmt, buf: Buf, at: &Index) -> Ran<usize> {
        let place = self.index(at);
        match usize::try_from(place) {
            Ok(place) if place < self.memory[buf.index()].len() => Ok(place),
            _ if self.unproven.contains(stmt) => Err(Ended::Stopped),
            _ => panic!("{buf}[{at}] is {place}, and was to be inside\n{}", self.form),
        }
    }

    fn range(&self, place: &Place) -> core::ops::Range<usize> {
        let from = usize::try_from(self.index(&place.at)).expect("the verifier: inside");
        from..from + place.elements()
    }

    fn words(&self, place: &Place) -> &[u64] {
        &self.memory[place.buf.index()][self.range(place)]
    }

    fn reals(&self, place: &Place) -> Vec<f64> {
        self.words(place).iter().map(|&word| f64::from_bits(word)).collect()
    }

    fn put(&mut self, to: &Taken, words: &[u64]) {
        match to {
            Taken::Scalar(reg) => self.set(*reg, words[0]),
            Taken::Array(place) => {
                let range = self.range(place);
                self.memory[place.buf.index()][range].copy_from_slice(words);
            }
        }
    }

    fn put_reals(&mut self, to: &Taken, reals: &[f64]) {
        let words: Vec<u64> = reals.iter().map(|x| x.to_bits()).collect();
        self.put(to, &words);
    }

    /// The rows of a matrix.
    fn matrix(&self, matrix: &Matrix) -> Vec<Vec<f64>> {
        let from = self.index(&matrix.at) as usize;
        let entry = |i: usize, j: usize| {
            let at = from + i * matrix.steps[0] + j * matrix.steps[1];
            f64::from_bits(self.memory[matrix.buf.index()][at])
        };
        let row = |i: usize| (0..matrix.sizes[1]).map(|j| entry(i, j)).collect();
        (0..matrix.sizes[0]).map(row).collect()
    }

    fn datum(&self, kind: Kind, words: &[u64], shape: Vec<usize>) -> Datum<f64> {
        match kind {
            Kind::Real => {
                Datum::Real(Tensor { shape, data: words.iter().map(|&x| f64::from_bits(x)).collect() })
            }
            Kind::Int => Datum::Int(Tensor { shape, data: words.iter().map(|&x| x as i64).collect() }),
            Kind::Bool => Datum::Bool(Tensor { shape, data: words.iter().map(|&x| x != 0).collect() }),
        }
    }

    fn output(&self, port: &Port) -> Datum<f64> {
        match port {
            Port::Scalar(operand) => self.datum(self.kind(*operand), &[self.get(*operand)], Vec::new()),
            Port::Array(place) => {
                let kind = self.form.buffers[place.buf.index()].kind;
                self.datum(kind, self.words(place), place.shape.clone())
            }
        }
    }

    fn count(&mut self, steps: i64) -> Ran<()> {
        self.steps -= steps;
        if self.steps < 0 { Err(Ended::Stopped) } else { Ok(()) }
    }

    fn burn(&mut self, fuel: usize) -> Ran<()> {
        self.fuel -= fuel as i64;
        if self.fuel < 0 { Err(Ended::Long) } else { Ok(()) }
    }

    fn block(&mut self, stmts: &[Stmt]) -> Ran<()> {
        stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn each(&mut self, axes: &[(Reg, i64, i64)], body: &[Stmt]) -> Ran<()> {
        let Some((&(counter, from, to), rest)) = axes.split_first() else { return self.block(body) };
        for k in from..to {
            self.burn(1)?;
            self.set(counter, k as u64);
            self.each(rest, body)?;
        }
        Ok(())
    }

    fn integer(&mut self, op: IntOp, a: i64, b: i64) -> i64 {
        let (value, over) = match op {
            IntOp::Add => a.overflowing_add(b),
            IntOp::Sub => a.overflowing_sub(b),
            IntOp::Mul => a.overflowing_mul(b),
            IntOp::Min => (a.min(b), false),
            IntOp::Max => (a.max(b), false),
            IntOp::Div | IntOp::Rem if b == 0 => (0, true),
            IntOp::Div => {
                let (quotient, over) = a.overflowing_div(b);
                (if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }, over)
            }
            IntOp::Rem => {
                let rest = a.wrapping_rem(b);
                (if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }, false)
            }
        };
        self.bad |= over;
        value
    }

    fn compare(&self, op: palinode_ir::Comparison, a: Operand, b: Operand) -> bool {
        fn holds<T: PartialOrd>(op: palinode_ir::Comparison, a: T, b: T) -> bool {
            match op {
                palinode_ir::Comparison::Less => a < b,
                palinode_ir::Comparison::LessEq => a <= b,
                palinode_ir::Comparison::Equal => a == b,
            }
        }
        match self.kind(a) {
            Kind::Real => holds(op, self.real(a), self.real(b)),
            Kind::Int | Kind::Bool => holds(op, self.int(a), self.int(b)),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Ran<()> {
        self.burn(1)?;
        match stmt {
            Stmt::Move { to, from } => self.set(*to, self.get(*from)),
            Stmt::Map { rule, to, args } => {
                let args: Vec<f64> = args.iter().map(|&arg| self.real(arg)).collect();
                self.set(*to, rule.row.value(rule.parameter, &args).to_bits());
            }
            Stmt::Round32 { to, a } => {
                let short = self.real(*a) as f32;
                self.set(*to, f64::from(short).to_bits());
            }
            Stmt::Int { op, to, a, b } => {
                let value = self.integer(*op, self.int(*a), self.int(*b));
                self.set(*to, value as u64);
            }
            Stmt::Index { to, index } => self.set(*to, self.index(index) as u64),
            Stmt::Compare { op, to, a, b } => self.set(*to, u64::from(self.compare(*op, *a, *b))),
            Stmt::And { to, a, b } => self.set(*to, self.get(*a) & self.get(*b)),
            Stmt::Or { to, a, b } => self.set(*to, self.get(*a) | self.get(*b)),
            Stmt::Not { to, a } => self.set(*to, self.get(*a) ^ 1),
            Stmt::Select { to, holds, a, b } => {
                let chosen = if self.get(*holds) != 0 { a } else { b };
                self.set(*to, self.get(*chosen));
            }
            Stmt::Truncate { to, a } => {
                let whole = self.real(*a).trunc();
                let is_inside = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole);
                self.bad |= !is_inside;
                self.set(*to, whole as i64 as u64);
            }
            Stmt::Convert { to, a } => self.set(*to, real_of(self.int(*a)).to_bits()),
            Stmt::Load { to, buf, at } => {
                let place = self.element(stmt, *buf, at)?;
                self.set(*to, self.memory[buf.index()][place]);
            }
            Stmt::Store { buf, at, from } => {
                let place = self.element(stmt, *buf, at)?;
                self.memory[buf.index()][place] = self.get(*from);
            }
            Stmt::Finite { a } => self.bad |= !self.real(*a).is_finite(),
            Stmt::AllFinite { place } => {
                self.burn(place.elements())?;
                if !self.reals(place).iter().all(|x| x.is_finite()) {
                    return Err(Ended::Stopped);
                }
            }
            Stmt::Within { a, length } => {
                if !(0..self.int(*length)).contains(&self.int(*a)) {
                    return Err(Ended::Stopped);
                }
            }
            Stmt::Holds { a } if self.get(*a) == 0 => return Err(Ended::Stopped),
            Stmt::Holds { .. } => {}
            Stmt::Stop => return Err(Ended::Stopped),
            Stmt::Step => self.count(1)?,
            Stmt::For { counter, rounds, descending, counts, body } => {
                let rounds = self.int(*rounds).max(0);
                if *counts {
                    self.count(rounds)?;
                }
                for k in 0..rounds {
                    self.burn(1)?;
                    let k = if *descending { rounds - 1 - k } else { k };
                    self.set(*counter, k as u64);
                    self.block(body)?;
                }
            }
            Stmt::While { condition, holds, body } => loop {
                self.block(condition)?;
                if self.get(*holds) == 0 {
                    break;
                }
                self.count(1)?;
                self.burn(1)?;
                self.block(body)?;
            },
            Stmt::Sweep { counter, rounds, room, state, advance, turn, back } => {
                for step in Sweep::new(self.int(*rounds), *room, turn.is_some()) {
                    self.burn(1)?;
                    match step {
                        SweepStep::Advance(from, to) => {
                            self.count((to - from) as i64)?;
                            for k in from..to {
                                self.set(*counter, k);
                                self.block(advance)?;
                            }
                        }
                        SweepStep::Keep(number) => {
                            state.iter().for_each(|kept| self.snapshot(kept, number, true));
                        }
                        SweepStep::Restore(number) => {
                            state.iter().for_each(|kept| self.snapshot(kept, number, false));
                        }
                        SweepStep::Turn => {
                            self.count(1)?;
                            self.block(turn.as_ref().expect("only a sweep that turns has a turn"))?;
                        }
                        SweepStep::Back(round) => {
                            self.count(1)?;
                            self.set(*counter, round);
                            self.block(back)?;
                        }
                    }
                }
            }
            Stmt::If { holds, then, other } => {
                self.block(if self.get(*holds) != 0 { then } else { other })?;
            }
            Stmt::Each { axes, body } => self.each(axes, body)?,
            Stmt::Function { rule, place } => {
                self.burn(place.elements())?;
                let one = |x: f64| rule.row.value(rule.parameter, &[x]);
                let made: Vec<f64> = self.reals(place).into_iter().map(one).collect();
                self.put_reals(&Taken::Array(place.clone()), &made);
            }
            Stmt::Reduce { kind, from, to } => {
                self.burn(from.elements())?;
                let lengths = from.shape[..].try_into().expect("the verifier: three axes");
                let [outer, _, inner]: [usize; 3] = lengths;
                let mut results = vec![0.0; outer * inner];
                reduce_axis(*kind, &self.reals(from), lengths, &mut results);
                self.put_reals(to, &results);
            }
            Stmt::Product { strong, a, b, to, adds } => {
                self.burn(a.sizes[0].saturating_mul(a.sizes[1]).saturating_mul(b.sizes[1]))?;
                let (rows, depth, columns) = (a.sizes[0], a.sizes[1], b.sizes[1]);
                let (a, b) = (self.matrix(a).concat(), self.matrix(b).concat());
                let mut results = if *adds { self.reals(to) } else { vec![0.0; to.elements()] };
                let (a, b) = (MatrixView::by_rows(&a, rows, depth), MatrixView::by_rows(&b, depth, columns));
                add_product(&mut results, a, b, *strong);
                self.put_reals(&Taken::Array(to.clone()), &results);
            }
            Stmt::Dots { strong, a, x, to } => {
                self.burn(a.sizes[0].saturating_mul(a.sizes[1]))?;
                let x = self.reals(x);
                let dot = |row: &Vec<f64>| {
                    let mut result = [0.0];
                    times_vector(&mut result, MatrixView::by_rows(row, 1, row.len()), &x, *strong);
                    result[0]
                };
                let results: Vec<f64> = self.matrix(a).iter().map(dot).collect();
                self.put_reals(to, &results);
            }
            Stmt::Kernel { op, single, given, taken } => {
                let inputs: Vec<Datum<f64>> = given
                    .iter()
                    .map(|given| match given {
                        Given::Scalar(operand) => {
                            self.datum(self.kind(*operand), &[self.get(*operand)], Vec::new())
                        }
                        Given::Array(place) => {
                            let kind = self.form.buffers[place.buf.index()].kind;
                            self.datum(kind, self.words(place), place.shape.clone())
                        }
                    })
                    .collect();
                let kinds: Vec<Kind> = inputs.iter().map(|input| Kind::of(input.ty().elem)).collect();
                let (types, _) = kernel_types(op, *single, given, &kinds).expect("the verifier: a kernel");
                let limits = Limits { trap_nonfinite: self.form.traps, ..Limits::default() };
                let ran = Code::new(&one_operation(op, &types)).run(&inputs, &limits);
                let outputs = ran.map_err(|_| Ended::Stopped)?;
                for (output, taken) in outputs.iter().zip(taken) {
                    let words: Vec<u64> = match output {
                        Datum::Real(tensor) => tensor.data.iter().map(|x| x.to_bits()).collect(),
                        Datum::Int(tensor) => tensor.data.iter().map(|&n| n as u64).collect(),
                        Datum::Bool(tensor) => tensor.data.iter().map(|&x| u64::from(x)).collect(),
                    };
                    let count = if let Taken::Array(place) = taken { place.elements() } else { 1 };
                    if words.len() != count {
                        return Err(Ended::Stopped);
                    }
                    self.put(taken, &words);
                }
            }
            Stmt::Swap { a, b } => self.memory.swap(a.index(), b.index()),
            Stmt::Reserve { buf, length } => {
                let length = self.index(length);
                let memory = &mut self.memory[buf.index()];
                let held = memory.len();
                if length > held as i64 {
                    if length > 1 << 20 {
                        return Err(Ended::Long);
                    }
                    // As machine code does: by a half at least.
                    memory.resize((length as usize).max(held + held / 2).max(64), 0);
                }
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, kept: &Kept, number: u64, keeps: bool) {
        match *kept {
            Kept::Scalar { reg, snapshots } => {
                let home = &mut self.memory[snapshots.index()][number as usize];
                if keeps { *home = self.registers[reg.index()] } else { self.registers[reg.index()] = *home }
            }
            Kept::Array { buf, count, snapshots } => {
                let from = number as usize * count;
                let state = self.memory[buf.index()][..count].to_vec();
                let home = &mut self.memory[snapshots.index()][from..from + count];
                if keeps {
                    home.copy_from_slice(&state);
                } else {
                    let kept = home.to_vec();
                    self.memory[buf.index()][..count].copy_from_slice(&kept);
                }
            }
        }
    }
}
