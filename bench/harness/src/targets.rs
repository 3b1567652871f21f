//! The numbers that Liveoak sets out to reach, each with its measure.

use crate::contenders::{BASELINE, CONTENDERS, Role};
use crate::results::{CPU, Outcome, PAUSE, PEAK};
use crate::table::Table;
use std::collections::BTreeMap;

/// All outcomes, by program and contender.
pub(crate) type Results = BTreeMap<(&'static str, &'static str), Outcome>;

/// A number to reach: a measure that must not exceed a limit.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) text: String,
    pub(crate) limit: f64,
    /// The measured value, or why there is none.
    pub(crate) measured: Result<f64, String>,
}

const GENERATIONAL: &str = "liveoak-generational";
const MARK_SWEEP: &str = "liveoak-mark-sweep";
const HEAP: &str = "large-live-heap";

impl Target {
    /// Whether it is reached; nothing, if it was not measured.
    pub(crate) fn reached(&self) -> Option<bool> {
        Some(*self.measured.as_ref().ok()? <= self.limit)
    }

    fn verdict(&self) -> String {
        match (&self.measured, self.reached()) {
            (_, Some(true)) => "reached".into(),
            (_, Some(false)) => "NOT reached".into(),
            (Err(reason), None) => format!("not measured: {reason}"),
            (Ok(_), None) => unreachable!("what is measured is judged"),
        }
    }
}

/// All targets, in the order of the issue.
pub(crate) fn all(results: &Results) -> Vec<Target> {
    let mut targets = vec![
        ratio(results, GENERATIONAL, "gcbench", BASELINE, 0.38),
        ratio(
            results,
            "liveoak-generational-safe",
            "gcbench",
            BASELINE,
            0.45,
        ),
        ratio(results, GENERATIONAL, "binary-trees-16", BASELINE, 0.31),
        ratio(results, GENERATIONAL, "binary-trees-20", BASELINE, 0.35),
        ratio(results, GENERATIONAL, HEAP, BASELINE, 1.3),
    ];
    for program in [
        "gcbench",
        "binary-trees-16",
        "binary-trees-18",
        "binary-trees-20",
        HEAP,
    ] {
        targets.push(ahead_of_rivals(results, program));
    }
    targets.push(ratio(results, MARK_SWEEP, "gcbench", "boehm", 0.8));
    for program in ["binary-trees-16", "binary-trees-18", "binary-trees-20"] {
        targets.push(ratio(results, MARK_SWEEP, program, BASELINE, 1.0));
    }
    targets.push(ratio(results, MARK_SWEEP, HEAP, BASELINE, 1.5));
    targets.push(Target {
        text: format!("{MARK_SWEEP}, {HEAP}: resident memory ÷ live bytes"),
        limit: 1.3,
        measured: quotient(
            figure(results, MARK_SWEEP, HEAP, PEAK),
            figure(results, MARK_SWEEP, HEAP, "live_bytes"),
        ),
    });
    targets.push(single(
        results,
        MARK_SWEEP,
        HEAP,
        "mark_cpu_ms",
        "marking, ms CPU",
        250.0,
    ));
    for collector in ["liveoak-incremental", "liveoak-concurrent"] {
        targets.push(ratio(results, collector, HEAP, BASELINE, 1.8));
        targets.push(single(
            results,
            collector,
            HEAP,
            PAUSE,
            "longest pause, µs",
            1000.0,
        ));
    }
    let stalls = ("alloc_stalls", "allocation stalls");
    targets.push(single(
        results,
        "liveoak-concurrent",
        HEAP,
        stalls.0,
        stalls.1,
        0.0,
    ));
    targets.push(ratio(
        results,
        "liveoak-mark-compact",
        "gcbench",
        BASELINE,
        1.5,
    ));
    targets.push(ratio(results, "liveoak-refcount", "gcbench", BASELINE, 1.2));
    targets.push(finishes(results, "liveoak-refcount", "long-list"));
    targets
}

/// The targets as a table.
pub(crate) fn table(targets: &[Target]) -> Table {
    let rows = targets.iter().map(|target| {
        let measured = match target.measured {
            Ok(value) => format!("{value:.2}"),
            Err(_) => "–".into(),
        };
        let limit = format!("≤ {}", target.limit);
        vec![target.text.clone(), measured, limit, target.verdict()]
    });
    Table {
        title: "Numbers to reach".into(),
        header: vec!["number", "measured", "target", "verdict"],
        rows: rows.collect(),
    }
}

fn figure(
    results: &Results,
    contender: &'static str,
    program: &'static str,
    name: &str,
) -> Result<f64, String> {
    match results.get(&(program, contender)) {
        None => Err(format!("{contender} was not run")),
        Some(Outcome::Missing(reason) | Outcome::Failed(reason)) => {
            Err(format!("{contender}: {reason}"))
        }
        Some(outcome) => outcome
            .figure(name)
            .ok_or_else(|| format!("{contender} does not print {name}")),
    }
}

fn quotient(value: Result<f64, String>, by: Result<f64, String>) -> Result<f64, String> {
    Ok(value? / by?)
}

fn ratio(
    results: &Results,
    contender: &'static str,
    program: &'static str,
    by: &'static str,
    limit: f64,
) -> Target {
    Target {
        text: format!("{contender}, {program}: CPU ÷ {by}"),
        limit,
        measured: quotient(
            figure(results, contender, program, CPU),
            figure(results, by, program, CPU),
        ),
    }
}

fn single(
    results: &Results,
    contender: &'static str,
    program: &'static str,
    name: &str,
    text: &str,
    limit: f64,
) -> Target {
    Target {
        text: format!("{contender}, {program}: {text}"),
        limit,
        measured: figure(results, contender, program, name),
    }
}

/// The generational collector against the fastest collector of somebody else.
fn ahead_of_rivals(results: &Results, program: &'static str) -> Target {
    let best = CONTENDERS
        .iter()
        .filter(|contender| contender.role == Role::Rival)
        .filter_map(|rival| {
            Some((
                results.get(&(program, rival.name))?.figure(CPU)?,
                rival.name,
            ))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let (cpu, rival) = match best {
        Some((cpu, name)) => (Ok(cpu), name),
        None => (Err("no rival was run".into()), "the best rival"),
    };
    Target {
        text: format!("{GENERATIONAL}, {program}: CPU ÷ best rival ({rival})"),
        limit: 1.0,
        measured: quotient(figure(results, GENERATIONAL, program, CPU), cpu),
    }
}

/// Finishing with the right answer is all that is asked; 0 means that it did.
fn finishes(results: &Results, contender: &'static str, program: &'static str) -> Target {
    Target {
        text: format!("{contender}, {program}: 10 M elements freed without recursion (0: done)"),
        limit: 0.0,
        measured: figure(results, contender, program, CPU).map(|_| 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Sample;

    fn outcome(cpu: f64) -> Outcome {
        let figures = [(CPU.to_string(), cpu)].into();
        let note = String::new();
        Outcome::of(vec![Sample { figures, note }])
    }

    #[test]
    fn judges_what_was_measured_and_says_what_was_not() {
        let mut results = Results::new();
        results.insert(("gcbench", BASELINE), outcome(100.0));
        results.insert(("gcbench", GENERATIONAL), outcome(37.0));
        results.insert(("gcbench", "boehm"), outcome(90.0));
        results.insert(("gcbench", MARK_SWEEP), outcome(80.0));
        let targets = all(&results);
        assert_eq!(targets[0].reached(), Some(true));
        assert_eq!(targets[1].reached(), None);
        let find = |text: &str| targets.iter().find(|t| t.text.contains(text)).unwrap();
        assert_eq!(find("best rival (boehm)").reached(), Some(true));
        assert_eq!(find("÷ boehm").reached(), Some(false));
        assert!(table(&targets).text().contains("NOT reached"));
    }
}
