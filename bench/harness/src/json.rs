//! All results as one JSON document.

use crate::machine::Machine;
use crate::results::Outcome;
use crate::targets::{Results, Target};
use serde_json::{Value, json};

/// The document.
pub(crate) fn document(machine: &Machine, results: &Results, targets: &[Target]) -> Value {
    let results: Vec<Value> = results
        .iter()
        .map(|((program, contender), outcome)| entry(program, contender, outcome))
        .collect();
    let targets: Vec<Value> = targets
        .iter()
        .map(|target| {
            json!({
                "number": target.text,
                "limit": target.limit,
                "measured": target.measured.as_ref().ok(),
                "reached": target.reached(),
                "reason": target.measured.as_ref().err(),
            })
        })
        .collect();
    json!({ "machine": machine.to_string(), "results": results, "targets": targets })
}

fn entry(program: &str, contender: &str, outcome: &Outcome) -> Value {
    let mut entry = json!({ "program": program, "contender": contender });
    match outcome {
        Outcome::Measured {
            medians,
            spread,
            runs,
            note,
        } => {
            entry["status"] = json!("measured");
            entry["medians"] = json!(medians);
            entry["spread"] = json!(spread);
            entry["runs"] = json!(runs);
            entry["note"] = json!(note);
        }
        Outcome::Missing(reason) => {
            entry["status"] = json!("missing");
            entry["reason"] = json!(reason);
        }
        Outcome::Failed(reason) => {
            entry["status"] = json!("failed");
            entry["reason"] = json!(reason);
        }
    }
    entry
}
