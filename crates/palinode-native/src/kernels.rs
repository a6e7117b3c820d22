//! Calls of kernels: what is passed, and where it is.
//!
//! Where all addresses are known when the code is made, the runtime knows them, too: then one call does all
//! kernels that follow each other. Otherwise the words are put on the stack, a call for each.

use cranelift_codegen::ir::{InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value};
use palinode_ir::loops::{Buf, Given, Index, Kind, Operand, Role, Stmt, Taken};

use crate::codegen::Gen;
use crate::runtime::{At, Call, Interpreted, MOST_KNOWN, Site, Which};

/// What a kernel is passed.
enum Word<'s> {
    Scalar(Operand),
    At(Buf, &'s Index),
}

/// A kernel: itself, what it is given, what it gives.
type Kernel<'s> = (Site, Vec<Word<'s>>, &'s [Taken]);

impl Gen<'_> {
    /// Whether a statement is the call of a kernel that may wait for others that follow.
    pub(crate) fn waits(&mut self, stmt: &Stmt) -> bool {
        let Some(places) = self.known_places(stmt) else { return false };
        let site = self.kernel(stmt).expect("it has places").0;
        self.calls.push(Call { site, places });
        self.waiting += 1;
        true
    }

    /// Calls the kernels that are waiting.
    pub(crate) fn call_kernels(&mut self) {
        if self.waiting == 0 {
            return;
        }
        let first = self.int((self.calls.len() - self.waiting) as i64);
        let count = self.int(self.waiting as i64);
        self.waiting = 0;
        let context = self.context;
        let done = self.call(Which::Kernels, &[context, first, count]).expect("whether it could");
        self.unless(done);
    }

    /// Where all that a kernel is passed lies, if that is known.
    fn known_places(&self, stmt: &Stmt) -> Option<Box<[At]>> {
        let mut places = Vec::new();
        let mut see = |buf: Buf, at: &Index| {
            let known = self.known_place(buf, at);
            places.extend(known);
            known.is_some()
        };
        let all = match stmt {
            Stmt::AllFinite { place } | Stmt::Function { place, .. } => see(place.buf, &place.at),
            Stmt::Reduce { from, to: Taken::Array(to), .. } => see(from.buf, &from.at) && see(to.buf, &to.at),
            Stmt::Product { a, b, to, .. } => see(a.buf, &a.at) && see(b.buf, &b.at) && see(to.buf, &to.at),
            Stmt::Dots { a, x, to: Taken::Array(to), .. } => {
                see(a.buf, &a.at) && see(x.buf, &x.at) && see(to.buf, &to.at)
            }
            Stmt::Kernel { given, taken, .. } => {
                given.iter().all(|given| matches!(given, Given::Array(place) if see(place.buf, &place.at)))
                    && taken.iter().all(|to| matches!(to, Taken::Array(to) if see(to.buf, &to.at)))
            }
            _ => return None,
        };
        (all && places.len() <= MOST_KNOWN).then(|| places.into())
    }

    fn known_place(&self, buf: Buf, at: &Index) -> Option<At> {
        let buffer = &self.form.buffers[buf.index()];
        let bytes = usize::try_from(at.known()?).ok()?.checked_mul(buffer.kind.bytes())?;
        match buffer.role {
            Role::Input(_) => Some(At::Input(buf.index(), bytes)),
            Role::Workspace if self.whole.exchanged[buf.index()] => None,
            Role::Workspace => Some(At::Workspace(self.whole.offsets[buf.index()]?.checked_add(bytes)?)),
            Role::Growing => None,
        }
    }

    /// The kernel of a statement.
    fn kernel<'s>(&self, stmt: &'s Stmt) -> Option<Kernel<'s>> {
        use core::slice::from_ref;
        Some(match stmt {
            Stmt::AllFinite { place } => {
                (Site::AllFinite { count: place.elements() }, vec![Word::At(place.buf, &place.at)], &[])
            }
            Stmt::Function { rule, place } => {
                (Site::function(*rule, place.elements()), vec![Word::At(place.buf, &place.at)], &[])
            }
            Stmt::Reduce { kind, from, to } => {
                let lengths = from.shape[..].try_into().expect("the verifier: three axes");
                (Site::Reduce { kind: *kind, lengths }, vec![Word::At(from.buf, &from.at)], from_ref(to))
            }
            Stmt::Product { strong, a, b, to: _, adds } => {
                let site = Site::Product { strong: *strong, a: a.into(), b: b.into(), adds: *adds };
                (site, vec![Word::At(a.buf, &a.at), Word::At(b.buf, &b.at)], &[])
            }
            Stmt::Dots { strong, a, x, to } => {
                let site = Site::Dots { strong: *strong, a: a.into() };
                (site, vec![Word::At(a.buf, &a.at), Word::At(x.buf, &x.at)], from_ref(to))
            }
            Stmt::Kernel { op, single, given, taken } => {
                let kinds: Vec<Kind> = given
                    .iter()
                    .map(|given| match given {
                        Given::Scalar(operand) => self.kind(*operand),
                        Given::Array(place) => self.form.buffers[place.buf.index()].kind,
                    })
                    .collect();
                let words = given
                    .iter()
                    .map(|given| match given {
                        Given::Scalar(operand) => Word::Scalar(*operand),
                        Given::Array(place) => Word::At(place.buf, &place.at),
                    })
                    .collect();
                let site = Interpreted::new(op, *single, given, &kinds, taken, self.form.traps);
                (Site::Interpreted(Box::new(site)), words, taken)
            }
            _ => return None,
        })
    }

    /// Calls the kernel of a statement on words and addresses; leaves if it fails.
    pub(crate) fn call_kernel(&mut self, stmt: &Stmt) {
        let (site, given, taken) = self.kernel(stmt).expect("it is a kernel");
        let given: Vec<Value> = given
            .into_iter()
            .map(|word| match word {
                Word::Scalar(operand) => self.operand(operand),
                Word::At(buf, at) => self.pointer_at(buf, at),
            })
            .collect();
        let product;
        let taken = match stmt {
            Stmt::Product { to, .. } => {
                product = [Taken::Array(to.clone())];
                &product[..]
            }
            _ => taken,
        };
        // The words, followed by the scalars that are taken.
        let slot = self.slot(given.len() + 2 * taken.len());
        let scalar = |number: usize| 8 * (given.len() + taken.len() + number) as i32;
        for (number, taken) in taken.iter().enumerate() {
            let address = match taken {
                Taken::Scalar(_) => self.builder.ins().stack_addr(self.pointer, slot, scalar(number)),
                Taken::Array(place) => self.pointer_at(place.buf, &place.at),
            };
            self.builder.ins().stack_store(self.pointer, address, slot, 8 * (given.len() + number) as i32);
        }
        for (number, &value) in given.iter().enumerate() {
            self.builder.ins().stack_store(self.pointer, value, slot, 8 * number as i32);
        }
        self.calls.push(Call { site, places: Box::default() });
        let number = self.int(self.calls.len() as i64 - 1);
        let words = self.builder.ins().stack_addr(self.pointer, slot, 0);
        let context = self.context;
        let done = self.call(Which::Kernel, &[context, number, words]).expect("whether it could");
        self.unless(done);
        for (number, taken) in taken.iter().enumerate() {
            if let Taken::Scalar(reg) = taken {
                let of = self.register_type(*reg);
                let value = self.builder.ins().stack_load(self.pointer, of, slot, scalar(number));
                self.set(*reg, value);
            }
        }
    }

    /// So many words of the stack, for what is passed on now: calls that follow have the same ones.
    pub(crate) fn slot(&mut self, words: usize) -> StackSlot {
        let words = words.next_power_of_two();
        let builder = &mut self.builder;
        *self.slots.entry(words).or_insert_with(|| {
            let bytes = 8 * words as u32;
            builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3))
        })
    }
}
