//! When a cycle begins.
//!
//! A cycle must end before memory does, or allocations stall; but a cycle that begins too early
//! costs processor time for little garbage. The pacer lets the heap grow as the settings say, and
//! no further than leaves room for what the mutators will allocate while the cycle runs: measured in
//! the last cycle, scaled to the size of the heap, and half as much again for the unforeseen.

use crate::config::HeapConfig;
use crate::space::BLOCK_BYTES;

/// The growth that suits this collector, unless the settings say otherwise.
const GROWTH: f64 = 2.0;
/// What is kept free in any case: some blocks for each mutator to allocate from. In a small heap,
/// no more than a sixteenth.
const SPARE: usize = 64 * BLOCK_BYTES;

#[derive(Debug)]
pub(super) struct Pacer {
    config: HeapConfig,
    /// When this much is in use, a cycle is due.
    trigger: usize,
    /// Bytes allocated during the last cycle, for each byte in use when it began.
    rate: f64,
}

impl Pacer {
    pub(super) fn new(config: &HeapConfig) -> Pacer {
        let mut pacer = Pacer {
            config: config.clone(),
            trigger: 0,
            // Until a cycle has been measured: as if a fifth were allocated anew meanwhile.
            rate: 0.2,
        };
        pacer.set_trigger(0, 0);
        pacer
    }

    /// True when `used` bytes make a cycle due.
    pub(super) fn is_due(&self, used: usize) -> bool {
        used > self.trigger
    }

    /// When this much is in use, a cycle is due.
    pub(super) fn trigger(&self) -> usize {
        self.trigger
    }

    /// A cycle that began at `began_at` bytes in use has ended: it found `live` bytes, `used` are in
    /// use now, and `allocated` were allocated while it ran.
    pub(super) fn cycle_ended(
        &mut self,
        began_at: usize,
        live: usize,
        used: usize,
        allocated: usize,
    ) {
        if began_at > 0 {
            let rate = allocated as f64 / began_at as f64;
            // A quiet cycle does not make the pacer forget a busy one at once.
            self.rate = rate.max(self.rate * 0.5);
        }
        self.set_trigger(live, used);
    }

    fn set_trigger(&mut self, live: usize, used: usize) {
        let limit = self.config.max_bytes;
        let grown = self.config.next_threshold(live, GROWTH);
        let reserve = (grown as f64 * self.rate * 1.5) as usize + SPARE.min(limit / 16);
        let safe = limit.saturating_sub(reserve);
        // However busy the mutators are, a part of what is free is used before the next cycle:
        // cycles that follow each other without a breath would find nothing.
        let least = used + limit.saturating_sub(used) / 4;
        self.trigger = grown.min(safe).max(least.min(grown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(limit: usize) -> Pacer {
        Pacer::new(
            &HeapConfig::default()
                .with_max_bytes(limit)
                .with_initial_bytes(8 << 20),
        )
    }

    #[test]
    fn a_roomy_heap_grows_as_the_settings_say() {
        let mut pacer = pacer(4 << 30);
        assert!(!pacer.is_due(7 << 20) && pacer.is_due(9 << 20));
        pacer.cycle_ended(100 << 20, 100 << 20, 100 << 20, 20 << 20);
        assert!(!pacer.is_due(199 << 20) && pacer.is_due(201 << 20));
    }

    #[test]
    fn a_tight_heap_is_collected_before_the_cycle_would_run_out_of_memory() {
        let mut pacer = pacer(530 << 20);
        // Half of the heap was allocated anew while the last cycle ran.
        pacer.cycle_ended(400 << 20, 204 << 20, 220 << 20, 200 << 20);
        assert!(pacer.is_due(300 << 20));
        assert!(!pacer.is_due(222 << 20), "not at once again");
        // Nothing was: the heap may fill up, until the settings' growth.
        for _ in 0..20 {
            pacer.cycle_ended(400 << 20, 204 << 20, 204 << 20, 0);
        }
        assert!(!pacer.is_due(400 << 20) && pacer.is_due(410 << 20));
    }
}
