//! Tables, as aligned text and as Markdown.

use crate::contenders::BASELINE;
use crate::results::{CPU, Outcome, PAUSE, PEAK};

/// A table of cells; the first column is aligned to the left, like the last, the others to the right.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// One row of a program's table before it is rendered.
pub(crate) type Row<'a> = (&'a str, &'a Outcome);

/// The table of one program, fastest first; what has no result comes last and says why.
pub(crate) fn of_program(title: String, rows: &[Row<'_>]) -> Table {
    let baseline = rows
        .iter()
        .find(|(name, _)| *name == BASELINE)
        .and_then(|(_, outcome)| outcome.figure(CPU));
    let with_latency = rows
        .iter()
        .any(|(_, outcome)| outcome.figure("max_latency_us").is_some());
    let mut header = vec![
        "contender",
        "CPU s",
        "× box",
        "spread",
        "peak MB",
        "pause ms",
    ];
    if with_latency {
        header.extend(["batch max ms", "(wall)", "p99.9 ms", "setup s"]);
    }
    header.push("note");

    let mut sorted: Vec<_> = rows.to_vec();
    sorted.sort_by(|a, b| speed(a.1).total_cmp(&speed(b.1)));
    let rows = sorted
        .into_iter()
        .map(|(name, outcome)| row(name, outcome, baseline, with_latency))
        .collect();
    Table {
        title,
        header,
        rows,
    }
}

fn speed(outcome: &Outcome) -> f64 {
    outcome.figure(CPU).unwrap_or(f64::INFINITY)
}

fn row(name: &str, outcome: &Outcome, baseline: Option<f64>, with_latency: bool) -> Vec<String> {
    let show = |figure: &str, unit: f64, digits: usize| match outcome.figure(figure) {
        Some(value) => format!("{:.digits$}", value / unit),
        None => "–".into(),
    };
    let (spread, note) = match outcome {
        Outcome::Measured { spread, note, .. } => {
            (format!("{:.0} %", spread * 100.0), note.clone())
        }
        Outcome::Missing(reason) => ("–".into(), reason.clone()),
        Outcome::Failed(reason) => ("–".into(), format!("failed: {reason}")),
    };
    let ratio = match (outcome.figure(CPU), baseline) {
        (Some(cpu), Some(baseline)) => format!("{:.2}", cpu / baseline),
        _ => "–".into(),
    };
    let mut cells = vec![name.to_string(), show(CPU, 1e3, 3), ratio, spread];
    cells.extend([show(PEAK, 1e6, 0), show(PAUSE, 1e3, 2)]);
    if with_latency {
        cells.push(show("max_latency_us", 1e3, 2));
        cells.push(show("max_latency_wall_us", 1e3, 2));
        cells.push(show("p999_latency_us", 1e3, 2));
        cells.push(show("setup_cpu_ms", 1e3, 2));
    }
    cells.push(note);
    cells
}

impl Table {
    /// As aligned text.
    pub(crate) fn text(&self) -> String {
        let lines = std::iter::once(self.header.iter().map(|s| s.to_string()).collect())
            .chain(self.rows.iter().cloned())
            .collect::<Vec<Vec<String>>>();
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| {
                let cells = lines.iter().map(|line| line[column].chars().count());
                cells.max().unwrap_or(0)
            })
            .collect();
        let mut text = format!("{}\n", self.title);
        for line in &lines {
            for (column, cell) in line.iter().enumerate() {
                let padding = " ".repeat(widths[column] - cell.chars().count());
                match self.is_text(column) {
                    true => text.push_str(&format!("  {cell}{padding}")),
                    false => text.push_str(&format!("  {padding}{cell}")),
                }
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let header: Vec<_> = self.header.iter().map(|s| s.to_string()).collect();
        let rule: Vec<_> = (0..header.len())
            .map(|column| if self.is_text(column) { "---" } else { "---:" }.to_string())
            .collect();
        let mut text = format!("### {}\n\n{}{}", self.title, line(&header), line(&rule));
        self.rows.iter().for_each(|row| text.push_str(&line(row)));
        text
    }

    fn is_text(&self, column: usize) -> bool {
        column == 0 || column + 1 == self.header.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Sample;

    fn measured(cpu: f64) -> Outcome {
        let figures = [(CPU.to_string(), cpu), (PEAK.to_string(), 2e6)].into();
        let note = String::new();
        Outcome::of(vec![Sample { figures, note }])
    }

    #[test]
    fn fastest_first_and_failures_said() {
        let (slow, fast) = (measured(200.0), measured(50.0));
        let failed = Outcome::Failed("signal 11".into());
        let rows = [("x", &failed), ("box", &slow), ("y", &fast)];
        let table = of_program("t".into(), &rows);
        let names: Vec<_> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["y", "box", "x"]);
        assert_eq!(table.rows[0][2], "0.25");
        assert!(table.text().contains("failed: signal 11"));
        assert!(table.markdown().contains("| y | 0.050 | 0.25 |"));
    }
}
