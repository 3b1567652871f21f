//! From runs to medians: the last line of JSON, the checksum, the pauses that HotSpot logs.

use crate::process::Run;
use std::collections::BTreeMap;

/// One run's figures by name; times in the units that the names say.
pub(crate) type Figures = BTreeMap<String, f64>;

/// CPU time of the process, in milliseconds.
pub(crate) const CPU: &str = "cpu_ms";
/// Peak resident memory, in bytes.
pub(crate) const PEAK: &str = "peak_bytes";
/// The longest interruption by the collector.
pub(crate) const PAUSE: &str = "max_pause_us";

/// A run that is correct: its figures and its note.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) figures: Figures,
    pub(crate) note: String,
}

/// All runs of one pair.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Medians, the spread of CPU time (greatest minus least, by the median), the number of runs, and the note of
    /// the last run.
    Measured {
        medians: Figures,
        spread: f64,
        runs: usize,
        note: String,
    },
    /// Something is missing on this machine.
    Missing(String),
    /// It ran, and crashed, was too slow, or gave a wrong answer.
    Failed(String),
}

impl Outcome {
    /// The median of a figure.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        match self {
            Outcome::Measured { medians, .. } => medians.get(name).copied(),
            _ => None,
        }
    }

    /// Summarises at least one sample.
    pub(crate) fn of(samples: Vec<Sample>) -> Self {
        let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let (runs, mut note) = (samples.len(), String::new());
        for sample in samples {
            for (name, value) in sample.figures {
                columns.entry(name).or_default().push(value);
            }
            note = sample.note;
        }
        let medians: Figures = columns
            .iter_mut()
            .map(|(name, values)| (name.clone(), median(values)))
            .collect();
        let cpu = &columns[CPU];
        let spread = (cpu[cpu.len() - 1] - cpu[0]) / medians[CPU].max(f64::MIN_POSITIVE);
        Outcome::Measured {
            medians,
            spread,
            runs,
            note,
        }
    }
}

/// Sorts the values and takes the middle one, or the mean of the two middle ones.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

/// Reads what a run printed and checks its answer.
pub(crate) fn sample(run: &Run, checksum: &str) -> Result<Sample, String> {
    let line = run
        .output
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .ok_or("printed no line of results")?;
    let line: serde_json::Value =
        serde_json::from_str(line).map_err(|error| format!("unreadable results: {error}"))?;
    let fields = line.as_object().ok_or("unreadable results")?;
    match fields.get("checksum").and_then(|value| value.as_str()) {
        None => return Err("no checksum".into()),
        Some(found) if found != checksum => return Err(format!("wrong checksum: {found}")),
        Some(_) => {}
    }
    let mut figures: Figures = fields
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .collect();
    if let Some(pause) = longest_logged_pause(&run.output) {
        figures.entry(PAUSE.into()).or_insert(pause);
    }
    figures.insert(CPU.into(), run.cpu.as_secs_f64() * 1e3);
    figures.insert(PEAK.into(), run.peak as f64);
    let note = fields.get("note").and_then(|value| value.as_str());
    Ok(Sample {
        figures,
        note: note.unwrap_or_default().into(),
    })
}

/// The longest pause in HotSpot's log (`… GC(3) Pause Young … 2.430ms`), in microseconds.
fn longest_logged_pause(output: &str) -> Option<f64> {
    output
        .lines()
        .filter(|line| line.contains("[gc") && line.contains(" Pause "))
        .filter_map(|line| line.rsplit(' ').next()?.strip_suffix("ms"))
        .filter_map(|number| number.parse::<f64>().ok())
        .map(|milliseconds| milliseconds * 1e3)
        .max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn run(output: &str) -> Run {
        Run {
            cpu: Duration::from_millis(20),
            peak: 4096,
            output: output.into(),
        }
    }

    #[test]
    fn takes_the_last_line_of_json() {
        let text =
            "{not this}\nnoise\n{\"checksum\": \"a\", \"max_pause_us\": 3, \"note\": \"n\"}\n";
        let sample = sample(&run(text), "a").unwrap();
        assert_eq!(sample.figures[PAUSE], 3.0);
        assert_eq!(sample.figures[CPU], 20.0);
        assert_eq!(sample.note, "n");
    }

    #[test]
    fn a_wrong_answer_is_no_answer() {
        for text in ["", "{\"checksum\": \"b\"}", "{}", "{"] {
            assert!(sample(&run(text), "a").is_err(), "{text}");
        }
    }

    #[test]
    fn reads_pauses_from_the_log() {
        let text = "[0.1s][info][gc] GC(4) Pause Young (Allocation Failure) 76M->8M(247M) 0.118ms\n\
                    [0.2s][info][gc] GC(5) Pause Full (System.gc()) 76M->8M(247M) 37.936ms\n\
                    [0.2s][info][gc] GC(6) Concurrent Mark 100.0ms\n";
        assert_eq!(longest_logged_pause(text), Some(37936.0));
    }

    #[test]
    fn medians_of_odd_and_even() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
