//! `palinode run`: the outputs of a model.

use palinode_core::Budget;
use palinode_ir::interp::Limits;
use serde_json::json;

use crate::answer::{Json, Text};
use crate::args::RunArgs;
use crate::commands::{batch, effort, engine_line, measured, output_json, run_model, run_values};
use crate::execute::Ran;
use crate::model::Loaded;
use crate::numbers::Look;
use crate::problem::Failed;
use crate::session::{Answer, Session};
use crate::table::{Cell, STRONG, table};
use crate::{execute, inputs, model, numbers, storage, value};

pub(crate) fn run(session: &mut Session, args: &RunArgs) -> Result<(), Failed> {
    if args.batch.batch.is_some() {
        return batch::run(session, args);
    }
    let loaded = model::load(session, &args.model.model)?;
    let inputs = inputs::bind(session, &loaded, &args.model.given)?;
    let engine = execute::engine(&args.engine);
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let budget = match &args.budget {
        Some(word) => Some(storage::budget(session, word).map_err(|problem| *problem)?),
        None => None,
    };
    let ran = match budget {
        Some(budget) => {
            let program = storage::value_within(&loaded.model.program, &inputs, budget)?;
            run_values(&loaded, &program, &inputs, &Limits { budget, ..limits }, &engine)?
        }
        None => run_model(&loaded, &inputs, &limits, &engine)?,
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
    session.answer(&Outputs { loaded: &loaded, ran, budget, look: args.show.look() })
}

struct Outputs<'a> {
    loaded: &'a Loaded,
    /// With values in the units of the outputs.
    ran: Ran,
    budget: Option<Budget>,
    look: Look,
}

impl Answer for Outputs<'_> {
    fn text(&self, session: &Session) -> Text<'_> {
        let cost = &self.ran.cost;
        let outputs = self.loaded.model.outputs.iter().zip(&self.ran.outputs);
        let rows = outputs.map(|(output, datum)| {
            let unit = output.unit.as_ref().map_or("", |unit| &*unit.text);
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            let shown = Text::from("= ").then(numbers::datum(datum, self.look)).then(unit);
            vec![Cell::new(&*output.name).style(STRONG), Cell::new(shown)]
        });
        let table = table(rows.collect(), " ");
        let peak = match self.budget {
            Some(budget) => format!(
                "{}, within {budget}; {}",
                storage::within_budget(cost.charged, cost.arrays),
                storage::held(execute::held(cost))
            ),
            None => format!("peak {}", numbers::bytes(cost.peak)),
        };
        table.then(format!("\n{}, {peak}\n{}", effort(cost, session), engine_line(&cost.by)))
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let cost = &self.ran.cost;
        let outputs = self.loaded.model.outputs.iter().zip(&self.ran.outputs);
        let mut memory = json!({
            "peak_bytes": cost.peak,
            "arrays_peak_bytes": cost.arrays,
            "charged_bytes": cost.charged,
        });
        if let Some(budget) = self.budget {
            memory["budget_bytes"] = json!(budget.bytes());
            memory["held_bytes"] = json!(execute::held(cost));
        }
        Json::fields([
            ("model", json!(session.sources.name_of(self.loaded.file)).into()),
            ("outputs", Json::List(outputs.map(|(output, datum)| output_json(output, datum)).collect())),
        ])
        .and(measured(cost, session, memory))
    }
}
