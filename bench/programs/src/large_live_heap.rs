//! `large-live-heap`: the constants, the hash, the schedule of operations and the checksum.

use crate::random::{SplitMix64, mix};

/// Buckets of the table.
pub const BUCKETS: usize = 1 << 20;
/// Entries of the table.
pub const ENTRIES: u64 = 5_000_000;
/// Operations whose latency is measured as one.
pub const BATCH: u64 = 256;
/// Batches.
pub const BATCHES: u64 = 40_000;
/// Cells of a temporary list.
pub const LIST_LENGTH: u64 = 16;
/// The checksum walks every bucket whose number is a multiple of this.
pub const CHECKED_STRIDE: usize = 16;

const SEED: u64 = 0x4C69_7665_6F61_6B21;
const FNV_PRIME: u64 = 0x100_0000_01B3;

/// The key of the n-th entry.
#[inline]
pub fn key(n: u64) -> u64 {
    mix(n)
}

/// The bucket of a key.
#[inline]
pub fn bucket(key: u64) -> usize {
    (key >> 44) as usize
}

/// One operation of the mutator; entries are given by their number.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Add the operation's ordinal to the number in the entry's leaf.
    Update(u64),
    /// Exchange the values of two entries.
    Swap(u64, u64),
    /// Give the entry a new leaf.
    Replace(u64),
    /// Build, sum and forget a list whose numbers begin here.
    List(u64),
}

/// The sequence of operations.
#[derive(Clone, Debug)]
pub struct Operations(SplitMix64);

impl Default for Operations {
    fn default() -> Self {
        Self(SplitMix64::new(SEED))
    }
}

impl Operations {
    /// The next operation.
    #[inline]
    pub fn draw(&mut self) -> Operation {
        match self.0.random() >> 62 {
            0 => Operation::Update(self.pick()),
            1 => {
                let first = self.pick();
                Operation::Swap(first, self.pick())
            }
            2 => Operation::Replace(self.pick()),
            _ => Operation::List(self.0.random()),
        }
    }

    #[inline]
    fn pick(&mut self) -> u64 {
        ((self.0.random() >> 32) * ENTRIES) >> 32
    }
}

/// The checksum of the table, entry by entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed(u64);

impl Observed {
    /// One entry: its key and the number in its leaf.
    #[inline]
    pub fn entry(&mut self, key: u64, number: u64) {
        self.fold(key);
        self.fold(number);
    }

    /// The text, after the sum that the operations accumulated.
    pub fn checksum(mut self, accumulated: u64) -> String {
        self.fold(accumulated);
        format!("large-live-heap {:016x}", self.0)
    }

    #[inline]
    fn fold(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(FNV_PRIME);
    }
}
