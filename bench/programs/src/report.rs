//! The line of JSON with which a contender ends.

use std::fmt::Write;

/// Fields of the line, in the order in which they were given.
#[derive(Clone, Debug)]
pub struct Report(String);

impl Report {
    /// A report of a run with this checksum.
    pub fn new(checksum: &str) -> Self {
        let mut report = Self(String::new());
        report.text("checksum", checksum);
        report
    }

    /// Adds a number, with three decimals.
    pub fn number(&mut self, name: &str, value: f64) {
        write!(self.0, ", \"{name}\": {value:.3}").expect("a String takes everything");
    }

    /// Adds a text; the programs' texts need no escapes but those of quote and backslash.
    pub fn text(&mut self, name: &str, value: &str) {
        let separator = if self.0.is_empty() { "" } else { ", " };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        write!(self.0, "{separator}\"{name}\": \"{value}\"").expect("a String takes everything");
    }

    /// Prints the line and ends the process without tearing anything down.
    pub fn finish(self) -> ! {
        println!("{{{}}}", self.0);
        std::process::exit(0)
    }
}
