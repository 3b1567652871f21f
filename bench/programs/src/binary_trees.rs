//! `binary-trees`: the schedule of the Benchmarks Game's program, and its checksum.

use std::fmt::Write;

/// Depth of the smallest temporary trees.
pub const MIN_DEPTH: u32 = 4;

/// The depths of the temporary trees, each with the number of trees.
pub fn schedule(depth: u32) -> impl Iterator<Item = (u32, u64)> {
    (MIN_DEPTH..=depth)
        .step_by(2)
        .map(move |d| (d, 1 << (depth - d + MIN_DEPTH)))
}

/// The checksum, written as the program goes.
#[derive(Clone, Debug)]
pub struct Observed(String);

impl Observed {
    /// Starts with the nodes counted in the stretch tree.
    pub fn new(depth: u32, stretch: u64) -> Self {
        Self(format!("binary-trees {depth} stretch={stretch}"))
    }

    /// The nodes counted in all trees of one depth.
    pub fn depth(&mut self, depth: u32, trees: u64, check: u64) {
        write!(self.0, " {depth}={trees}:{check}").expect("a String takes everything");
    }

    /// Ends with the nodes counted in the long-lived tree.
    pub fn checksum(self, long_lived: u64) -> String {
        format!("{} long={long_lived}", self.0)
    }
}
