//! Several programs or collectors, each pair in a process of its own, in one table.
//!
//! A process of its own, because peak memory and CPU time are those of a process, and because one run should not find
//! the memory of the operating system in the state in which another has left it.

use crate::args::{BenchArguments, Selection};
use crate::bench::print;
use crate::failure::Failure;
use crate::workload::Program;
use clap::ValueEnum;
use liveoak_heap::kind::CollectorKind;
use liveoak_report::table::Table;
use liveoak_report::units;
use serde_json::{Map, Value, json};
use std::env;
use std::io::{self, IsTerminal};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Runs all pairs and prints the table.
pub(crate) fn run(arguments: &BenchArguments) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for program in programs(arguments) {
        for gc in collectors(arguments) {
            rows.push(Row::measure(arguments, program, gc)?);
        }
    }
    if arguments.json {
        let runs: Vec<Value> = rows.iter().map(Row::json).collect();
        print(&format!("{}\n", json!({ "runs": runs })))?;
    } else {
        print(&text(&rows))?;
    }
    let failed = rows.iter().filter(|row| row.result.is_err()).count();
    if failed > 0 {
        let runs = rows.len();
        return Err(Failure::Comparison { failed, runs });
    }
    Ok(())
}

fn programs(arguments: &BenchArguments) -> Vec<Program> {
    match arguments.program {
        Selection::One(program) => vec![program],
        Selection::All => {
            let all = Program::value_variants().iter().copied();
            all.filter(|program| program.is_written_on(arguments.api))
                .collect()
        }
    }
}

fn collectors(arguments: &BenchArguments) -> Vec<CollectorKind> {
    match arguments.gc {
        Selection::One(gc) => vec![gc],
        Selection::All => CollectorKind::ALL.to_vec(),
    }
}

/// One run: the fields of its JSON object, or why there are none.
struct Row {
    program: Program,
    gc: CollectorKind,
    result: Result<Map<String, Value>, String>,
}

impl Row {
    fn measure(
        arguments: &BenchArguments,
        program: Program,
        gc: CollectorKind,
    ) -> Result<Row, Failure> {
        if io::stderr().is_terminal() {
            eprintln!("{program} on {gc} ...");
        }
        let start = |program: &std::path::Path, source| Failure::Start {
            program: program.to_path_buf(),
            source,
        };
        let this = env::current_exe().map_err(|error| start("liveoak".as_ref(), error))?;
        let output = Command::new(&this)
            .args(flags(arguments, program, gc))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| start(&this, error))?;
        let result = read(&output);
        Ok(Row {
            program,
            gc,
            result,
        })
    }

    fn json(&self) -> Value {
        let mut object = match &self.result {
            Ok(fields) => fields.clone(),
            Err(reason) => Map::from_iter([("error".to_string(), reason.clone().into())]),
        };
        object.insert("program".to_string(), self.program.name().into());
        object.insert("collector".to_string(), self.gc.name().into());
        Value::Object(object)
    }

    fn number(&self, field: &str) -> Option<f64> {
        self.result.as_ref().ok()?.get(field)?.as_f64()
    }

    fn time(&self, field: &str, unit: Duration) -> String {
        let time = self
            .number(field)
            .map(|number| unit.mul_f64(number.max(0.0)));
        time.map_or("-".to_string(), units::duration)
    }
}

/// The flags of the process for one run.
fn flags(arguments: &BenchArguments, program: Program, gc: CollectorKind) -> Vec<String> {
    let given = |flag: &str, value: Option<String>| value.map(|value| format!("{flag}={value}"));
    let depth = arguments
        .depth
        .filter(|_| program.default_depth().is_some());
    let objects = arguments
        .objects
        .filter(|_| program.default_objects().is_some());
    let mut flags: Vec<String> = [
        "bench",
        program.name(),
        "--json",
        "--gc",
        gc.name(),
        "--api",
        arguments.api.name(),
    ]
    .map(String::from)
    .to_vec();
    flags.extend(given("--heap", arguments.heap.map(|n| n.to_string())));
    flags.extend(given("--nursery", arguments.nursery.map(|n| n.to_string())));
    flags.extend(given("--depth", depth.map(|n| n.to_string())));
    flags.extend(given("--objects", objects.map(|n| n.to_string())));
    flags.extend(given("--growth", arguments.growth.map(|x| x.to_string())));
    flags.extend(given(
        "--mark-num",
        arguments.mark_num.map(|n| n.to_string()),
    ));
    flags.extend(given(
        "--sweep-num",
        arguments.sweep_num.map(|n| n.to_string()),
    ));
    flags.extend(given(
        "--free-num",
        arguments.free_num.map(|n| n.to_string()),
    ));
    if arguments.sanity {
        flags.push("--sanity".to_string());
    }
    flags
}

/// The last line of the output, or the reason why the process failed.
fn read(output: &Output) -> Result<Map<String, Value>, String> {
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let line = errors.lines().find(|line| !line.trim().is_empty());
        let said = line.map(|line| line.trim_start_matches("error: ").to_string());
        return Err(said.unwrap_or_else(|| output.status.to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().next_back().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| format!("its result is not JSON: {error}"))
}

fn text(rows: &[Row]) -> String {
    let program_width = rows
        .iter()
        .map(|row| row.program.name().len())
        .max()
        .unwrap_or(0);
    let name = |row: &Row| format!("{:program_width$}  {}", row.program, row.gc);
    let mut table = Table::new([
        &format!("{:program_width$}  collector", "program"),
        "CPU time",
        "peak memory",
        "longest pause",
        "collections",
    ]);
    for row in rows.iter().filter(|row| row.result.is_ok()) {
        let peak = row
            .number("peak_rss_bytes")
            .map(|bytes| units::bytes(bytes as u64));
        let collections = row
            .number("collections")
            .map(|count| units::count(count as u64));
        table.row([
            name(row),
            row.time("cpu_ms", Duration::from_millis(1)),
            peak.unwrap_or("-".to_string()),
            row.time("max_pause_us", Duration::from_micros(1)),
            collections.unwrap_or("-".to_string()),
        ]);
    }
    let mut text = table.to_string();
    for row in rows {
        if let Err(reason) = &row.result {
            text.push_str(&format!("{}  failed: {reason}\n", name(row)));
        }
    }
    text
}
