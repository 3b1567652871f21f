//! `liveoak bench`: one program on one collector, in this process. Comparisons are in [`crate::comparison`].

pub(crate) mod measurement;

use crate::args::{BenchArguments, Selection};
use crate::comparison;
use crate::failure::Failure;
use crate::process;
use crate::workload::{self, Job, Program};
use liveoak_heap::collector::Collector;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::kind::{self, CollectorKind};
use liveoak_heap::stats::{Stats, process_cpu_time};
use liveoak_report::{gc_log, statistics, units};
use measurement::{Measurement, Quantity};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Runs what the flags ask for.
pub(crate) fn run(arguments: Box<BenchArguments>) -> Result<(), Failure> {
    check(&arguments)?;
    match (arguments.program, arguments.gc) {
        (Selection::One(program), Selection::One(gc)) => run_one(&arguments, program, gc),
        _ => comparison::run(&arguments),
    }
}

/// Refuses flags that would be ignored.
fn check(arguments: &BenchArguments) -> Result<(), Failure> {
    let refuse = |flag, reason: String| Err(Failure::Flag { flag, reason });
    let Selection::One(program) = arguments.program else {
        return check_comparison(arguments);
    };
    if arguments.depth.is_some() && program.default_depth().is_none() {
        return refuse(
            "--depth",
            format!("does not apply to {program}: it builds no trees"),
        );
    }
    if arguments.objects.is_some() && program.default_objects().is_none() {
        return refuse(
            "--objects",
            format!("does not apply to {program}: use --depth"),
        );
    }
    if !program.is_written_on(arguments.api) {
        return Err(Failure::NoSafeVersion { program });
    }
    match arguments.gc {
        Selection::One(_) => Ok(()),
        Selection::All => check_comparison(arguments),
    }
}

fn check_comparison(arguments: &BenchArguments) -> Result<(), Failure> {
    let given = [
        ("--stats", arguments.stats),
        ("--gc-log", arguments.gc_log.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Flag {
            flag,
            reason: "is about one heap: choose one program and one collector".to_string(),
        }),
    }
}

fn run_one(arguments: &BenchArguments, program: Program, gc: CollectorKind) -> Result<(), Failure> {
    let job = Job {
        program,
        api: arguments.api,
        depth: arguments.depth_of(program),
        objects: arguments.objects_of(program),
    };
    let config = arguments.config(program);
    let run = gc.run(OneRun { job, config })?;
    let mut output = String::new();
    if let Some(path) = &arguments.gc_log {
        write_log(path, &run.stats, &mut output)?;
    }
    if arguments.stats {
        output.push_str(&statistics::text(&run.stats));
        output.push('\n');
    }
    if arguments.json {
        let _ = writeln!(output, "{}", run.json());
    } else {
        output.push_str(&run.text());
    }
    print(&output)
}

/// Writes to standard output; unlike `print!`, a closed pipe is an error and not a panic.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::Output)
}

fn write_log(path: &Path, stats: &Stats, output: &mut String) -> Result<(), Failure> {
    let mut log = String::new();
    for line in gc_log::unified(stats) {
        let _ = writeln!(log, "{line}");
    }
    if path == Path::new("-") {
        output.push_str(&log);
        return Ok(());
    }
    fs::write(path, log).map_err(|source| Failure::Log {
        path: path.to_path_buf(),
        source,
    })
}

/// One program on one heap, whatever the collector.
struct OneRun {
    job: Job,
    config: HeapConfig,
}

impl kind::Program for OneRun {
    type Output = Result<Run, Failure>;

    fn run<C: Collector>(self) -> Result<Run, Failure> {
        let OneRun { job, config } = self;
        let limit = config.max_bytes;
        let heap: Heap<C> = Heap::new(config)?;
        let outcome = workload::run(&heap, job)?;
        let mut measurements = general(&outcome.stats);
        measurements.extend(outcome.measurements);
        Ok(Run {
            program: job.program,
            collector: C::NAME,
            checksum: outcome.checksum,
            note: note(limit),
            measurements,
            stats: heap.stats(),
        })
    }
}

fn note(limit: usize) -> String {
    format!("heap {}, pauses in CPU time", units::bytes(limit as u64))
}

/// What is measured of every program.
fn general(stats: &Stats) -> Vec<Measurement> {
    let pauses = stats.pauses();
    let collections = stats.totals().collections;
    let mut all = vec![Measurement::new(
        "cpu_ms",
        "CPU time",
        Quantity::Millis(process_cpu_time()),
    )];
    if let Some(peak) = process::peak_resident_bytes() {
        all.push(Measurement::new(
            "peak_rss_bytes",
            "peak memory",
            Quantity::Bytes(peak),
        ));
    }
    all.push(Measurement::new(
        "max_pause_us",
        "longest pause",
        Quantity::Micros(pauses.cpu().max()),
    ));
    all.push(Measurement::new(
        "max_pause_wall_us",
        "by the wall clock",
        Quantity::Micros(pauses.wall().max()),
    ));
    all.push(Measurement::new(
        "collections",
        "collections",
        Quantity::Count(collections),
    ));
    all
}

/// A run that came to its end.
struct Run {
    program: Program,
    collector: &'static str,
    checksum: String,
    note: String,
    measurements: Vec<Measurement>,
    stats: Stats,
}

impl Run {
    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("checksum".to_string(), self.checksum.clone().into());
        object.insert("note".to_string(), self.note.clone().into());
        for measurement in &self.measurements {
            object.insert(measurement.field.to_string(), measurement.json());
        }
        Value::Object(object)
    }

    fn text(&self) -> String {
        let mut text = format!("{} on {} ({})\n", self.program, self.collector, self.note);
        let labels = self.measurements.iter().map(|m| m.label.chars().count());
        let width = labels.max().unwrap_or(0);
        for measurement in &self.measurements {
            let _ = writeln!(text, "{:width$}  {}", measurement.label, measurement.text());
        }
        let _ = writeln!(text, "{:width$}  {}", "checksum", self.checksum);
        text
    }
}
