//! `gcbench`: the constants of Boehm's GCBench, and its checksum.

/// Depth of the tree that is built and dropped first, to stretch the heap.
pub const STRETCH_DEPTH: u32 = 18;
/// Depth of the tree that lives to the end.
pub const LONG_LIVED_DEPTH: u32 = 16;
/// Doubles in the array that lives to the end.
pub const ARRAY_LENGTH: usize = 500_000;
/// Doubles of it that are set.
pub const ARRAY_USED: usize = ARRAY_LENGTH / 2;
/// Depths of the temporary trees.
pub const DEPTHS: [u32; 7] = [4, 6, 8, 10, 12, 14, 16];

/// The number of nodes in a tree.
pub const fn size(depth: u32) -> u64 {
    (1 << (depth + 1)) - 1
}

/// How many trees of a depth are built top-down, and again bottom-up.
pub const fn iterations(depth: u32) -> u64 {
    2 * size(STRETCH_DEPTH) / size(depth)
}

/// What the program observes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// Temporary trees built.
    pub trees: u64,
    /// Sum of the lengths of the left spines.
    pub spine: u64,
    /// Nodes in the long-lived tree at the end.
    pub live: u64,
    /// Sum of the array's elements from 1 on.
    pub sum: f64,
}

impl Observed {
    /// The text that every contender must print.
    pub fn checksum(&self) -> String {
        format!(
            "gcbench trees={} spine={} live={} array={:016x}",
            self.trees,
            self.spine,
            self.live,
            self.sum.to_bits()
        )
    }
}
