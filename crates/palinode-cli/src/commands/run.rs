//! `palinode run`: the outputs of a model.

use palinode_ir::interp::Limits;
use serde_json::{Value, json};

use crate::args::RunArgs;
use crate::commands::{effort, run_model, run_values};
use crate::problem::Failed;
use crate::session::Session;
use crate::table::{Cell, STRONG, layout};
use crate::{execute, inputs, model, numbers, storage, value};

pub(crate) fn run(session: &mut Session, args: &RunArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model.model)?;
    let inputs = inputs::bind(session, &loaded, &args.model)?;
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let budget = match &args.budget {
        Some(word) => Some(storage::budget(session, word).map_err(|problem| *problem)?),
        None => None,
    };
    let ran = match budget {
        Some(budget) => {
            let program = storage::value_within(&loaded.model.program, &inputs, budget)?;
            run_values(&loaded, &program, &inputs, &Limits { budget, ..limits })?
        }
        None => run_model(&loaded, &inputs, &limits)?,
    };
    let look = args.show.look();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut fields: Vec<Value> = Vec::new();
    for (output, datum) in loaded.model.outputs.iter().zip(ran.outputs) {
        let datum = value::in_unit(datum, output.unit.as_ref());
        let unit = output.unit.as_ref().map_or("", |unit| &*unit.text);
        let shown = format!("{} {unit}", numbers::datum(&datum, look));
        rows.push(vec![Cell::new(&*output.name).style(STRONG), Cell::new(format!("= {}", shown.trim_end()))]);
        fields.push(json!({
            "name": &*output.name,
            "loss": output.is_loss,
            "shape": datum.shape(),
            "value": value::datum(&datum),
            "unit": value::unit(output.unit.as_ref()),
        }));
    }
    let table = layout(&rows, " ");
    let peak = match budget {
        Some(budget) => format!("{} of arrays, within {budget}", numbers::bytes(ran.cost.arrays)),
        None => numbers::bytes(ran.cost.peak),
    };
    let text = format!("{table}\n{}, peak {peak}\n", effort(ran.cost));
    let mut answer = json!({
        "model": session.sources.name_of(loaded.file),
        "outputs": fields,
        "steps": ran.cost.steps,
        "seconds": ran.cost.seconds,
        "memory": {
            "peak_bytes": ran.cost.peak,
            "arrays_peak_bytes": ran.cost.arrays,
            "charged_bytes": ran.cost.charged,
        },
    });
    if let Some(budget) = budget {
        answer["memory"]["budget_bytes"] = json!(budget.bytes());
    }
    session.answer(&text, answer);
    Ok(())
}
