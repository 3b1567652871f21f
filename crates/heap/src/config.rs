//! Settings of a heap.

use crate::error::HeapError;

/// Settings of a heap; every collector reads those that concern it.
///
/// ```
/// use liveoak_heap::config::HeapConfig;
/// let config = HeapConfig::default().with_max_bytes(64 << 20);
/// assert_eq!(config.max_bytes, 64 << 20);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HeapConfig {
    /// The most that objects may take, in bytes of blocks. Allocation fails beyond it.
    pub max_bytes: usize,
    /// No full collection before this much is in use; zero: an eighth of the limit, but at most
    /// 64 MiB.
    pub initial_bytes: usize,
    /// After a full collection, the next is due when the heap has grown to this multiple of what
    /// survived; zero: what suits the collector. Less saves memory, more saves time.
    pub growth: f64,
    /// Bytes of the nursery (`generational`), at most an eighth of the limit; zero: it adapts to how
    /// much survives, up to a third of the limit. For `refcount`, the bytes allocated from one
    /// epoch to the next.
    pub nursery_bytes: usize,
    /// Ask the operating system for huge pages.
    pub huge_pages: bool,
    /// Check the whole heap after every collection. Slow; can be turned on in any run.
    pub sanity: bool,
    /// Settings of the incremental collector.
    pub incremental: IncrementalSettings,
    /// How many records of single collections the statistics keep (the totals are always exact).
    pub records: usize,
}

/// The three thresholds of the incremental collector. Zero means: chosen from the heap's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct IncrementalSettings {
    /// MARKNUM: objects marked in one step.
    pub mark_num: usize,
    /// SWEEPNUM: objects swept in one step.
    pub sweep_num: usize,
    /// FREENUM: marking starts when fewer free objects than this are left.
    pub free_num: usize,
}

impl Default for HeapConfig {
    fn default() -> HeapConfig {
        HeapConfig {
            max_bytes: 1 << 30,
            initial_bytes: 0,
            growth: 0.0,
            nursery_bytes: 0,
            huge_pages: true,
            sanity: false,
            incremental: IncrementalSettings::default(),
            records: 1000,
        }
    }
}

impl HeapConfig {
    /// Sets the limit.
    pub fn with_max_bytes(mut self, bytes: usize) -> HeapConfig {
        self.max_bytes = bytes;
        self
    }

    /// Sets the size of the nursery.
    pub fn with_nursery_bytes(mut self, bytes: usize) -> HeapConfig {
        self.nursery_bytes = bytes;
        self
    }

    /// Sets how full the heap must be before the first collection.
    pub fn with_initial_bytes(mut self, bytes: usize) -> HeapConfig {
        self.initial_bytes = bytes;
        self
    }

    /// Turns the check of the whole heap after every collection on or off.
    pub fn with_sanity(mut self, sanity: bool) -> HeapConfig {
        self.sanity = sanity;
        self
    }

    /// Refuses what no collector can work with.
    pub(crate) fn check(&self) -> Result<(), HeapError> {
        if self.growth != 0.0 && !(self.growth >= 1.05 && self.growth <= 100.0) {
            return Err(HeapError::BadSetting {
                setting: "growth",
                reason: format!("{} is neither 0 nor between 1.05 and 100", self.growth),
            });
        }
        if self.max_bytes > crate::reference::ADDRESS_LIMIT {
            return Err(HeapError::LimitTooLarge {
                limit: self.max_bytes,
            });
        }
        Ok(())
    }

    /// Refuses a limit below `least`.
    pub(crate) fn at_least(&self, least: usize, collector: &'static str) -> Result<(), HeapError> {
        if self.max_bytes < least {
            return Err(HeapError::LimitTooSmall {
                limit: self.max_bytes,
                least,
                collector,
            });
        }
        Ok(())
    }

    /// How full the heap may get before the next full collection, when `live` bytes survived the
    /// last one. `growth` is what suits the collector.
    pub(crate) fn next_threshold(&self, live: usize, growth: f64) -> usize {
        let growth = if self.growth == 0.0 {
            growth
        } else {
            self.growth
        };
        let grown = (live as f64 * growth) as usize;
        let initial = match self.initial_bytes {
            0 => (self.max_bytes / 8).min(64 << 20),
            bytes => bytes,
        };
        grown.max(initial).min(self.max_bytes)
    }
}
