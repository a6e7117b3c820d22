//! `palinode check`: mistakes of models, without running them.

use palinode_ir::pal::{Argument, Output, Role};
use serde_json::json;

use crate::answer::{Json, Text};
use crate::args::CheckArgs;
use crate::model::Loaded;
use crate::problem::Failed;
use crate::session::{Answer, Session};
use crate::{model, numbers, value};

pub(crate) fn run(session: &mut Session, args: &CheckArgs) -> Result<(), Failed> {
    let models = Failed::all(args.files.iter().map(|path| model::load(session, path)))?;
    session.answer(&Models(models))
}

struct Models(Vec<Loaded>);

impl Answer for Models {
    fn text(&self, session: &Session) -> Text<'_> {
        let one = |loaded: &Loaded| {
            let of_role = |role| loaded.arguments().iter().filter(|one| one.role == role).count() as u64;
            let counts = [
                numbers::plural(of_role(Role::Param), "param"),
                numbers::plural(of_role(Role::Input), "input"),
                numbers::plural(loaded.model.outputs.len() as u64, "output"),
            ];
            format!("{}: ok ({})\n", session.sources.name_of(loaded.file), counts.join(", "))
        };
        self.0.iter().map(one).collect::<String>().into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let argument = |one: &Argument| {
            json!({
                "name": &*one.name,
                "role": value::role(one),
                "type": one.ty.to_string(),
                "unit": value::unit(one.unit.as_ref()),
                "has_default": one.default.is_some(),
            })
        };
        let output = |one: &Output| {
            json!({
                "name": &*one.name,
                "loss": one.is_loss,
                "type": one.ty.to_string(),
                "unit": value::unit(one.unit.as_ref()),
            })
        };
        let one = |loaded: &Loaded| {
            json!({
                "model": session.sources.name_of(loaded.file),
                "arguments": loaded.arguments().iter().map(argument).collect::<Vec<_>>(),
                "outputs": loaded.model.outputs.iter().map(output).collect::<Vec<_>>(),
            })
        };
        json!({ "models": self.0.iter().map(one).collect::<Vec<_>>() }).into()
    }
}
