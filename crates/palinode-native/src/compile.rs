//! Loop form -> machine code in memory.
//!
//! One function for a program, one for each of the pieces of a long one, and one for each longer loop over
//! elements of a short one: the first calls the others in their places. Each returns bits that are zero if
//! all went well.

use std::sync::Arc;

use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};
use palinode_ir::loops::{self, LoopForm};

use crate::codegen::{Gen, Part};
use crate::runtime::{self, Call};
use crate::whole::Whole;

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// Machine code, and what it calls.
pub(crate) struct Compiled {
    /// Keeps the memory of the code.
    pub(crate) code: Option<Code>,
    pub(crate) entry: *const u8,
    /// What it calls kernels for, by number.
    pub(crate) calls: Vec<Call>,
    /// The bytes of the workspace.
    pub(crate) workspace: usize,
    /// Whether it notes how suspicious comparisons are instead of showing them to the hook for decisions.
    pub(crate) suspects: bool,
    /// Whether an earlier process has made it.
    pub(crate) was_there: bool,
}

/// Where machine code lies.
pub(crate) enum Code {
    Module(Box<JITModule>),
    /// A library, which is closed at the end.
    Library(#[allow(dead_code)] libloading::Library), // it is there to be dropped
}

// SAFETY: the code is finished, and never changed again; it reads and writes what its arguments point to.
#[allow(unsafe_code)]
unsafe impl Send for Compiled {}
// SAFETY: as above; the module is only dropped.
#[allow(unsafe_code)]
unsafe impl Sync for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(Code::Module(module)) = self.code.take() {
            // SAFETY: whoever runs the code holds this.
            #[allow(unsafe_code)]
            unsafe {
                module.free_memory();
            }
        }
    }
}

/// So many statements are one function, at most: then compiling takes time in proportion to the length of a
/// program. (500 or 2,000 take the same time.)
pub(crate) const MOST: u64 = 1_000;

/// So many bytes of the stack are there in any thread.
const MOST_OF_STACK: u32 = 1 << 20;

fn isa(is_long: bool) -> Result<Arc<dyn TargetIsa>, Refused> {
    let mut flags = settings::builder();
    let set = [
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        // It takes a third of the time, and gains a fifth where there is something to gain.
        ("opt_level", if is_long { "none" } else { "speed" }),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        // A frame of many registers may be longer than the guard page behind the stack: each page of it is
        // touched in order.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("unwind_info", "false"),
    ];
    for (name, value) in set {
        flags.set(name, value).map_err(|error| Refused(format!("Cranelift: {error}")))?;
    }
    let builder = cranelift_native::builder().map_err(|error| Refused(error.to_string()))?;
    builder.finish(settings::Flags::new(flags)).map_err(|error| Refused(format!("Cranelift: {error}")))
}

/// Compiles a loop form: as one function, or in pieces of at most so many statements.
pub(crate) fn compile(form: &LoopForm, most: u64) -> Result<Compiled, Refused> {
    let unproven =
        loops::verify(form).map_err(|error| Refused(format!("the loop form is wrong: {error}")))?;
    let refused = |error: &dyn core::fmt::Display| Refused(format!("Cranelift: {error}"));
    let whole = Whole::of(form, &unproven, most);
    let isa = isa(!whole.pieces.pieces.is_empty())?;
    let mut jit = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    for function in runtime::FUNCTIONS {
        jit.symbol(function.name, function.address());
    }
    let mut module = JITModule::new(jit);
    let pointer = module.target_config().pointer_type();
    let mut imports = Vec::new();
    for function in runtime::FUNCTIONS {
        let mut signature = module.make_signature();
        for kind in function.params {
            signature.params.push(AbiParam::new(kind.ty(pointer)));
        }
        signature.returns.extend(function.result.map(|kind| AbiParam::new(kind.ty(pointer))));
        let id = module
            .declare_function(function.name, Linkage::Import, &signature)
            .map_err(|error| refused(&error))?;
        imports.push(id);
    }
    let mut signature = module.make_signature();
    // The context, the table of buffers, the scalars that are given, those that are taken.
    signature.params.extend([AbiParam::new(pointer); 4]);
    signature.returns.push(AbiParam::new(types::I64));
    let pieces = whole.pieces.pieces.iter().map(Part::Piece);
    let loops = whole.loops().into_iter().map(|(stmt, outlined)| Part::Loop(stmt, outlined));
    let parts: Vec<Part<'_>> = core::iter::once(Part::First).chain(pieces).chain(loops).collect();
    let signature = |part: &Part<'_>| match part {
        Part::First | Part::Piece(_) => signature.clone(),
        Part::Loop(_, outlined) => {
            Signature { params: outlined.params(&whole, pointer), ..signature.clone() }
        }
    };
    let declared = parts.iter().enumerate().map(|(number, part)| {
        module
            .declare_function(&format!("part{number}"), Linkage::Local, &signature(part))
            .map_err(|error| refused(&error))
    });
    let ids = declared.collect::<Result<Vec<FuncId>, Refused>>()?;
    let (mut context, mut frontend) = (module.make_context(), FunctionBuilderContext::new());
    let (mut calls, mut frame, mut deepest) = (Vec::new(), 0, 0);
    for (number, (&id, part)) in ids.iter().zip(&parts).enumerate() {
        context.func.signature = signature(part);
        let callees = if number == 0 { &ids[1..] } else { &[] };
        let imported = [&imports[..], callees].map(|ids| {
            ids.iter().map(|&id| module.declare_func_in_func(id, &mut context.func)).collect::<Vec<_>>()
        });
        let builder = FunctionBuilder::new(&mut context.func, &mut frontend);
        let gen_ = Gen::new(&whole, *part, builder, imported, pointer, &mut calls);
        gen_.function().finalize(module.target_config());
        module.define_function(id, &mut context).map_err(|error| refused(&format!("{error:?}")))?;
        let layout = context.compiled_code().and_then(|code| code.buffer.frame_layout());
        let bytes = layout.map_or(0, |layout| layout.frame_to_fp_offset);
        // The first one calls the others.
        if number == 0 {
            frame = bytes
        } else {
            deepest = bytes.max(deepest)
        }
        module.clear_context(&mut context);
    }
    if frame + deepest > MOST_OF_STACK {
        return Err(Refused(format!("it takes {} bytes of the stack", frame + deepest)));
    }
    module.finalize_definitions().map_err(|error| refused(&error))?;
    let address = module.get_finalized_function(ids[0]);
    let code = Some(Code::Module(Box::new(module)));
    Ok(Compiled {
        code,
        entry: address,
        calls,
        workspace: whole.workspace,
        suspects: false,
        was_there: false,
    })
}
