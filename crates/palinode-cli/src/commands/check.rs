//! `palinode check`: mistakes of models, without running them.

use palinode_ir::pal::Role;
use serde_json::{Value, json};

use crate::args::CheckArgs;
use crate::problem::Failed;
use crate::session::Session;
use crate::{model, numbers, value};

pub(crate) fn run(session: &mut Session, args: &CheckArgs) -> Result<(), Failed> {
    let mut text = String::new();
    let mut fields: Vec<Value> = Vec::new();
    let mut problems = Vec::new();
    for path in &args.files {
        let loaded = match model::load(session, path) {
            Ok(loaded) => loaded,
            Err(Failed(more)) => {
                problems.extend(more);
                continue;
            }
        };
        let name = session.sources.name_of(loaded.file).to_string();
        let of_role = |role| loaded.arguments().iter().filter(|one| one.role == role).count() as u64;
        let counts = [
            numbers::plural(of_role(Role::Param), "param"),
            numbers::plural(of_role(Role::Input), "input"),
            numbers::plural(loaded.model.outputs.len() as u64, "output"),
        ];
        text.push_str(&format!("{name}: ok ({})\n", counts.join(", ")));
        let arguments = loaded.arguments().iter().map(|one| {
            json!({
                "name": &*one.name,
                "role": if one.role == Role::Param { "param" } else { "input" },
                "type": one.ty.to_string(),
                "unit": value::unit(one.unit.as_ref()),
                "has_default": one.default.is_some(),
            })
        });
        let outputs = loaded.model.outputs.iter().map(|one| {
            json!({
                "name": &*one.name,
                "loss": one.is_loss,
                "type": one.ty.to_string(),
                "unit": value::unit(one.unit.as_ref()),
            })
        });
        fields.push(json!({
            "model": name,
            "arguments": arguments.collect::<Vec<_>>(),
            "outputs": outputs.collect::<Vec<_>>(),
        }));
    }
    if !problems.is_empty() {
        return Err(Failed(problems));
    }
    session.answer(|| text, || json!({ "models": fields }).into())
}
