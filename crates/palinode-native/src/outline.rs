//! Loops over elements as functions of their own.
//!
//! What is around a loop takes no machine registers inside of it, and the compiler works on short functions.
//! A loop is given the addresses of buffers that do not stay at a place of the workspace, and what its rounds
//! read of registers. It returns bits that are zero if nothing went wrong.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::Type;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Value};
use palinode_ir::loops::Stmt;

use crate::codegen::{Gen, ty};
use crate::whole::{Outlined, Whole};

impl Outlined {
    /// What it is given.
    pub(crate) fn params(&self, whole: &Whole<'_>, pointer: Type) -> Vec<AbiParam> {
        // The context, the workspace, and addresses.
        let pointers = core::iter::repeat_n(pointer, 2 + self.buffers.len());
        let registers = self.registers.iter().map(|reg| ty(whole.form.registers[reg.index()]));
        pointers.chain(registers).map(AbiParam::new).collect()
    }
}

impl Gen<'_> {
    /// Takes what the function of a loop is given.
    pub(crate) fn begin_loop(&mut self, outlined: &Outlined, params: &[Value]) {
        let mut given = params[1..].iter();
        let mut next = || *given.next().expect("as many as the signature says");
        self.workspace = next();
        for &buf in &outlined.buffers {
            let address = next();
            self.point(buf, address);
        }
        for &reg in &outlined.registers {
            let value = next();
            self.set(reg, value);
        }
        if outlined.compares {
            self.load_shows_all();
        }
    }

    pub(crate) fn whole_loop(&mut self, stmt: &Stmt) {
        let Stmt::Each { axes, body } = stmt else { unreachable!("a loop over elements") };
        self.each(axes, body);
    }

    pub(crate) fn call_loop(&mut self, outlined: &Outlined) {
        let mut args = vec![self.context, self.workspace];
        for &buf in &outlined.buffers {
            let address = self.start_of(buf);
            args.push(address);
        }
        for &reg in &outlined.registers {
            let value = self.get(reg);
            args.push(value);
        }
        let callee = self.callee(outlined.number);
        let call = self.builder.ins().call(callee, &args);
        let bits = self.builder.inst_results(call)[0];
        if outlined.may_leave {
            let fine = self.builder.ins().icmp_imm_s(IntCC::Equal, bits, 0);
            self.unless(fine);
        } else {
            self.note_bits(bits);
        }
    }
}
