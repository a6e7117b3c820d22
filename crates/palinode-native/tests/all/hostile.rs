//! Loop forms that are wrong are refused, or stop: machine code stays inside of its buffers whoever made
//! them.

use palinode_core::rules::Row;
use palinode_ir::interp::{Datum, Limits};
use palinode_ir::loops::{Buf, Buffer, Index, Kind, LoopForm, Operand, Place, Port, Reg, Role, Stmt, verify};
use palinode_native::{Native, Stopped};

fn workspace(length: u64) -> Buffer {
    Buffer { kind: Kind::Real, length, role: Role::Workspace, name: None }
}

/// Adds 1 to each of four numbers, in two buffers.
fn form() -> LoopForm {
    let (counter, x, y, n) = (Reg(0), Reg(1), Reg(2), Reg(3));
    LoopForm {
        name: "f".into(),
        inputs: vec![Port::Array(place(0)), Port::Scalar(Operand::Reg(n))],
        outputs: vec![Port::Array(place(1))],
        registers: vec![Kind::Int, Kind::Real, Kind::Real, Kind::Real],
        origins: Vec::new(),
        buffers: vec![
            Buffer { kind: Kind::Real, length: 4, role: Role::Input(0), name: None },
            workspace(4),
            workspace(5),
        ],
        body: vec![Stmt::Each {
            axes: vec![(counter, 0, 4)],
            body: vec![
                Stmt::Load { to: x, buf: Buf(0), at: Index::reg(counter) },
                Stmt::Map { rule: Row::Add.into(), to: y, args: vec![Operand::Reg(x), Operand::Real(1.0)] },
                Stmt::Store { buf: Buf(1), at: Index::reg(counter), from: Operand::Reg(y) },
            ],
        }],
        traps: true,
        spans: Vec::new(),
    }
}

fn place(buf: u32) -> Place {
    Place::first(Buf(buf), vec![4])
}

fn run(form: LoopForm) -> Result<Vec<Datum<f64>>, Stopped> {
    let native = Native::new(form).expect("it compiles");
    let inputs = [Datum::vector(vec![1.0, 2.0, 3.0, 4.0]), Datum::real(0.0)];
    native.run(&inputs, &Limits::default()).map(|(outputs, _)| outputs)
}

/// The statements of the loop.
fn inside(form: &mut LoopForm) -> &mut Vec<Stmt> {
    let Stmt::Each { body, .. } = &mut form.body[0] else { unreachable!("a loop") };
    body
}

#[test]
fn the_form_itself_is_right() {
    assert!(verify(&form()).unwrap().is_empty());
    assert_eq!(run(form()), Ok(vec![Datum::vector(vec![2.0, 3.0, 4.0, 5.0])]));
}

#[test]
fn wrong_forms_are_refused() {
    let refused = |what: &str, spoil: &dyn Fn(&mut LoopForm)| {
        let mut form = form();
        spoil(&mut form);
        let error = verify(&form).expect_err(what);
        assert!(error.contains(what), "{what}: {error}");
        assert!(Native::new(form).is_err(), "{what} compiles");
    };
    refused("is read before it is set", &|form| drop(inside(form).remove(0)));
    refused("is of another kind", &|form| form.registers[2] = Kind::Bool);
    refused("is of another kind", &|form| form.buffers[1].kind = Kind::Int);
    refused("changes an input", &|form| {
        let Stmt::Store { buf, .. } = &mut inside(form)[2] else { unreachable!("a store") };
        *buf = Buf(0);
    });
    refused("leaves its buffer", &|form| form.outputs[0] = Port::Array(Place { shape: vec![5], ..place(1) }));
    refused("leaves its buffer", &|form| {
        form.body.push(Stmt::Function {
            rule: Row::Exp.into(),
            place: Place { at: Index::constant(1), ..place(1) },
        });
    });
    refused("holds control", &|form| inside(form).push(Stmt::Stop));
    refused("depends on other rounds", &|form| {
        let Stmt::Store { at, .. } = &mut inside(form)[2] else { unreachable!("a store") };
        *at = Index::constant(0);
    });
    refused("depends on other rounds", &|form| {
        let Stmt::Load { buf, at, .. } = &mut inside(form)[0] else { unreachable!("a load") };
        (*buf, *at) = (Buf(1), Index { constant: 3, terms: vec![(Reg(0), -1)] });
    });
    refused("exchanges unlike buffers", &|form| form.body.push(Stmt::Swap { a: Buf(1), b: Buf(2) }));
    refused("there is no", &|form| inside(form).push(Stmt::Finite { a: Operand::Reg(Reg(9)) }));
    refused("runs over nothing", &|form| {
        let Stmt::Each { axes, .. } = &mut form.body[0] else { unreachable!("a loop") };
        axes[0].2 = 0;
    });
    refused("does not grow", &|form| {
        form.body.push(Stmt::Reserve { buf: Buf(1), length: Index::constant(9) });
    });
}

#[test]
fn accesses_that_are_not_proven_stop_outside() {
    for (constant, factor, is_inside) in
        [(1, 1, false), (-1, 1, false), (0, 2, false), (3, -1, true), (4, -1, false)]
    {
        let mut form = form();
        let Stmt::Load { at, .. } = &mut inside(&mut form)[0] else { unreachable!("a load") };
        *at = Index { constant, terms: vec![(Reg(0), factor)] };
        assert_eq!(verify(&form).unwrap().is_empty(), is_inside);
        assert_eq!(run(form).is_ok(), is_inside, "{constant} + {factor} k");
    }
    // A growing buffer has no element before one is reserved.
    for (reserved, is_inside) in [(0, false), (1, true)] {
        let mut form = form();
        form.buffers[2] = Buffer { length: 0, role: Role::Growing, ..workspace(0) };
        form.body.push(Stmt::Reserve { buf: Buf(2), length: Index::constant(reserved) });
        form.body.push(Stmt::Store { buf: Buf(2), at: Index::constant(0), from: Operand::Real(1.0) });
        assert_eq!(run(form).is_ok(), is_inside, "{reserved} reserved");
    }
}

#[test]
fn infinities_stop_a_form_that_notes_them() {
    let mut form = form();
    inside(&mut form).push(Stmt::Finite { a: Operand::Reg(Reg(2)) });
    let Stmt::Map { args, .. } = &mut inside(&mut form)[1] else { unreachable!("a sum") };
    args[1] = Operand::Real(f64::INFINITY);
    assert_eq!(run(form), Err(Stopped));
}
