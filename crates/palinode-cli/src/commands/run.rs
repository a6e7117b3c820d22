//! `palinode run`: the outputs of a model.

use palinode_ir::interp::{Datum, Limits};
use palinode_ir::pal::Output;
use serde_json::json;

use crate::answer::{Json, Text};
use crate::args::RunArgs;
use crate::commands::{effort, measured, run_model, run_values};
use crate::execute::Ran;
use crate::problem::Failed;
use crate::session::Session;
use crate::table::{Cell, STRONG, table};
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
    let ran = Ran {
        outputs: loaded
            .model
            .outputs
            .iter()
            .zip(ran.outputs)
            .map(|(output, datum)| value::in_unit(datum, output.unit.as_ref()))
            .collect(),
        ..ran
    };
    let outputs = || loaded.model.outputs.iter().zip(&ran.outputs);
    let text = || {
        let look = args.show.look();
        let row = |(output, datum)| {
            let (output, datum): (&Output, &Datum<f64>) = (output, datum);
            let unit = output.unit.as_ref().map_or("", |unit| &*unit.text);
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            let shown = Text::from("= ").then(numbers::datum(datum, look)).then(unit);
            vec![Cell::new(&*output.name).style(STRONG), Cell::new(shown)]
        };
        let table = table(outputs().map(row).collect(), " ");
        let peak = match budget {
            Some(budget) => format!(
                "{}, within {budget}; {}",
                storage::within_budget(ran.cost.charged, ran.cost.arrays),
                storage::held(ran.cost.held)
            ),
            None => format!("peak {}", numbers::bytes(ran.cost.peak)),
        };
        table.then(format!("\n{}, {peak}\n", effort(ran.cost, session)))
    };
    let fields = || {
        let values = outputs().map(|(output, datum)| {
            Json::fields([
                ("name", json!(&*output.name).into()),
                ("loss", json!(output.is_loss).into()),
                ("shape", json!(datum.shape()).into()),
                ("value", value::datum(datum, None)),
                ("unit", value::unit(output.unit.as_ref()).into()),
            ])
        });
        let mut memory = json!({
            "peak_bytes": ran.cost.peak,
            "arrays_peak_bytes": ran.cost.arrays,
            "charged_bytes": ran.cost.charged,
        });
        if let Some(budget) = budget {
            memory["budget_bytes"] = json!(budget.bytes());
            memory["held_bytes"] = json!(ran.cost.held);
        }
        Json::fields([
            ("model", json!(session.sources.name_of(loaded.file)).into()),
            ("outputs", Json::List(values.collect())),
        ])
        .and(measured(ran.cost, session, memory))
    };
    session.answer(text, fields)
}
