//! `liveoak collectors`: which collectors there are.

use crate::args::CollectorsArguments;
use crate::bench::print;
use crate::failure::Failure;
use liveoak_heap::kind::CollectorKind;
use serde_json::{Value, json};
use std::fmt::Write;

/// Prints them all, with a sentence each.
pub(crate) fn run(arguments: CollectorsArguments) -> Result<(), Failure> {
    if arguments.json {
        return print(&format!("{}\n", as_json()));
    }
    let names = CollectorKind::ALL.iter().map(|kind| kind.name().len());
    let width = names.max().unwrap_or(0);
    let mut text = String::new();
    for kind in CollectorKind::ALL {
        let _ = writeln!(text, "{kind:width$}  {}", kind.summary());
    }
    print(&text)
}

fn as_json() -> Value {
    let all = CollectorKind::ALL.iter();
    all.map(|kind| json!({ "name": kind.name(), "summary": kind.summary() }))
        .collect()
}
