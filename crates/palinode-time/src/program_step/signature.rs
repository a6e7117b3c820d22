//! Which argument of a program is state, parameter or input, and which result is the next value of which
//! state.
//!
//! Input: a program or a compiled `.pal` source. Output: a [`Signature`], or what is wrong with the names or
//! types. It makes the values that users give by name into lists, and checks that lengths which share a name
//! agree.

use super::error::ProgramStepError;
use super::values::ProgramValues;
use palinode_ir::interp::{Datum, Tensor};
use palinode_ir::pal::{self, LengthSpec, Model, Role};
use palinode_ir::{Elem, Program, Type};
use std::collections::BTreeMap;

/// What an argument is to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    State,
    Params,
    Input,
}

impl Group {
    fn with_article(self) -> &'static str {
        match self {
            Group::State => "a state",
            Group::Params => "a parameter",
            Group::Input => "an input",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) group: Group,
    /// Its position in its group.
    pub(super) position: usize,
    default: Option<Datum<f64>>,
    lengths: Vec<LengthSpec>,
}

/// A length that several axes share.
#[derive(Clone, Debug)]
struct SharedLength {
    name: String,
    /// Arguments and axes.
    axes: Vec<(usize, usize)>,
    /// The argument that is the length itself.
    int: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Signature {
    /// In the order in which the program takes them.
    pub(super) arguments: Vec<Argument>,
    /// For each result of the program, the position of the state whose next value it is.
    pub(super) state_of_result: Vec<usize>,
    shared_lengths: Vec<SharedLength>,
}

impl Signature {
    /// Of a compiled source: arguments with an output `next_..` are state, other params are parameters, other
    /// inputs are inputs.
    pub(super) fn of_model(model: &Model) -> Result<Signature, ProgramStepError> {
        let arguments = model.arguments.iter().map(|argument| Argument {
            name: argument.name.to_string(),
            ty: argument.ty,
            group: match argument.role {
                Role::Param => Group::Params,
                Role::Input => Group::Input,
            },
            position: 0,
            default: argument.default.as_ref().map(|default| in_si(argument, default)),
            lengths: argument.lengths.clone(),
        });
        Signature::new(&model.program, arguments.collect())
    }

    /// Of a program: arguments with a next value are state, those named are parameters, the others are
    /// inputs.
    pub(super) fn of_program(program: &Program, params: &[&str]) -> Result<Signature, ProgramStepError> {
        let main = program.main();
        let argument = |(at, &value): (usize, &palinode_ir::Value)| {
            let name = main.name_of(value).ok_or_else(|| ProgramStepError::Arguments {
                reason: format!("argument number {at} of the program has no name; name it"),
            })?;
            let ty = main.ty(value);
            let group = if params.contains(&&**name) { Group::Params } else { Group::Input };
            let lengths = vec![LengthSpec::Any; usize::from(ty.rank)];
            Ok(Argument { name: name.to_string(), ty, group, position: 0, default: None, lengths })
        };
        let arguments: Vec<Argument> =
            main.body.params.iter().enumerate().map(argument).collect::<Result<_, ProgramStepError>>()?;
        if let Some(missing) = params.iter().find(|name| !arguments.iter().any(|a| a.name == **name)) {
            let reason = format!("the program has no argument `{missing}` to be a parameter; check the name");
            return Err(ProgramStepError::Arguments { reason });
        }
        for (at, argument) in arguments.iter().enumerate() {
            if arguments[..at].iter().any(|other| other.name == argument.name) {
                let reason = format!("two arguments are called `{}`; rename one", argument.name);
                return Err(ProgramStepError::Arguments { reason });
            }
        }
        Signature::new(program, arguments)
    }

    fn new(program: &Program, mut arguments: Vec<Argument>) -> Result<Signature, ProgramStepError> {
        let mut of_result = Vec::new();
        for (output, after) in program.outputs.iter().zip(program.output_types()) {
            let called = |name: &str| arguments.iter().position(|argument| argument.name == name);
            let next = called(output).or_else(|| output.strip_prefix("next_").and_then(called));
            let Some(at) = next else {
                return Err(ProgramStepError::NotAState { output: output.to_string() });
            };
            let argument = &mut arguments[at];
            if let Some(first) = of_result.iter().position(|&other| other == at) {
                let (first, second) = (program.outputs[first].to_string(), output.to_string());
                return Err(ProgramStepError::TwoNextValues { state: argument.name.clone(), first, second });
            }
            if argument.ty != after {
                let (state, before) = (argument.name.clone(), argument.ty);
                return Err(ProgramStepError::StateType { state, before, after });
            }
            argument.group = Group::State;
            of_result.push(at);
        }
        if of_result.is_empty() {
            return Err(ProgramStepError::NoState);
        }
        for group in [Group::State, Group::Params, Group::Input] {
            let members = arguments.iter_mut().filter(|argument| argument.group == group);
            members.enumerate().for_each(|(position, argument)| argument.position = position);
        }
        let state_of_result = of_result.iter().map(|&at| arguments[at].position).collect();
        let shared_lengths = shared_lengths(&arguments);
        Ok(Signature { arguments, state_of_result, shared_lengths })
    }

    /// The arguments of a group, in order.
    pub(super) fn members(&self, group: Group) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(move |argument| argument.group == group)
    }

    /// The values of a group: what is given by name, defaults for the rest.
    pub(super) fn values(
        &self,
        group: Group,
        given: &[(&str, Datum<f64>)],
    ) -> Result<ProgramValues<f64>, ProgramStepError> {
        for (name, _) in given {
            if !self.members(group).any(|argument| argument.name == *name) {
                return Err(ProgramStepError::UnknownName {
                    name: (*name).to_string(),
                    a_group: group.with_article(),
                    names: self.members(group).map(|argument| argument.name.clone()).collect(),
                });
            }
        }
        let value = |argument: &Argument| {
            let datum = given.iter().rev().find(|(name, _)| *name == argument.name).map(|(_, datum)| datum);
            let datum = datum.or(argument.default.as_ref());
            let datum = datum.ok_or_else(|| ProgramStepError::Missing { name: argument.name.clone() })?;
            argument.check(datum)?;
            Ok(datum.clone())
        };
        Ok(ProgramValues::new(self.members(group).map(value).collect::<Result<_, _>>()?))
    }

    /// The arguments of a run, in the order of the program.
    pub(super) fn arranged<S: Copy>(
        &self,
        state: &ProgramValues<S>,
        params: &ProgramValues<S>,
        input: &ProgramValues<S>,
    ) -> Result<Vec<Datum<S>>, String> {
        let of = |group| match group {
            Group::State => state,
            Group::Params => params,
            Group::Input => input,
        };
        for group in [Group::State, Group::Params, Group::Input] {
            let (expected, found) = (self.members(group).count(), of(group).len());
            if expected != found {
                let names: Vec<String> = self.members(group).map(|argument| argument.name.clone()).collect();
                return Err(format!(
                    "the program takes {expected} values as {} ({}), not {found}; make them with `ProgramStep`'s own methods",
                    group.with_article().trim_start_matches(['a', 'n', ' ']),
                    names.join(", "),
                ));
            }
        }
        let arranged: Vec<Datum<S>> =
            self.arguments.iter().map(|argument| of(argument.group)[argument.position].clone()).collect();
        self.check_shared_lengths(&arranged)?;
        Ok(arranged)
    }

    /// Lengths that share a name agree: only now are all arrays at hand.
    fn check_shared_lengths<S>(&self, arranged: &[Datum<S>]) -> Result<(), String> {
        for SharedLength { name, axes, int } in &self.shared_lengths {
            let length = |&(at, axis): &(usize, usize)| arranged[at].shape().get(axis).copied();
            let first = length(&axes[0]);
            let argument = |at: usize| &self.arguments[at].name;
            if let Some(other) = axes[1..].iter().find(|other| length(other) != first) {
                return Err(format!(
                    "`{}` and `{}` must agree on the length `{name}`; give both the same number of elements along that axis",
                    argument(axes[0].0),
                    argument(other.0)
                ));
            }
            if let Some(at) = *int
                && arranged[at].as_int().map(usize::try_from) != first.map(Ok)
            {
                return Err(format!("`{name}` is not the length of `{}`; give it that", argument(axes[0].0)));
            }
        }
        Ok(())
    }
}

impl Argument {
    /// Whether a value is what the declaration says.
    fn check(&self, datum: &Datum<f64>) -> Result<(), ProgramStepError> {
        let misfit = |reason| Err(ProgramStepError::Misfit { name: self.name.clone(), reason });
        let found = datum.ty();
        let same_kind = found.elem == self.ty.elem || (found.is_real() && self.ty.is_real());
        if !same_kind || found.rank != self.ty.rank {
            return misfit(format!("is {}, and {found} was given; convert it", self.ty));
        }
        let elements = datum.shape().iter().try_fold(1_usize, |product, &length| product.checked_mul(length));
        if elements != Some(datum.elements()) {
            let (shape, found) = (datum.shape(), datum.elements());
            return misfit(format!(
                "has the shape {shape:?} but {found} elements; give it one for each place"
            ));
        }
        for (axis, (&length, spec)) in datum.shape().iter().zip(&self.lengths).enumerate() {
            if let LengthSpec::Known(declared) = spec
                && *declared != length
            {
                return misfit(format!("has length {declared} along axis {axis}, and {length} was given"));
            }
        }
        Ok(())
    }
}

fn shared_lengths(arguments: &[Argument]) -> Vec<SharedLength> {
    let mut axes: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, argument) in arguments.iter().enumerate() {
        for (axis, spec) in argument.lengths.iter().enumerate() {
            if let LengthSpec::Named(name) = spec {
                axes.entry(name).or_default().push((at, axis));
            }
        }
    }
    let shared = axes.into_iter().map(|(name, axes)| {
        let int = arguments.iter().position(|argument| argument.name == name && argument.ty == Type::INT);
        SharedLength { name: name.to_string(), axes, int }
    });
    shared.filter(|shared| shared.axes.len() > 1 || shared.int.is_some()).collect()
}

/// A default as the program takes it.
fn in_si(argument: &pal::Argument, default: &pal::Default) -> Datum<f64> {
    let shape = default.shape().to_vec();
    let data = default.data().iter().map(|&x| argument.unit.as_ref().map_or(x, |unit| unit.to_si(x)));
    match argument.ty.elem {
        Elem::F64 | Elem::F32 => Datum::Real(Tensor { shape, data: data.collect() }),
        Elem::Int => Datum::Int(Tensor { shape, data: data.map(|x| x as i64).collect() }),
        Elem::Bool => Datum::Bool(Tensor { shape, data: data.map(|x| x != 0.0).collect() }),
    }
}
