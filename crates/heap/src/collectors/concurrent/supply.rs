//! The supply of free memory: where an allocation finds a cell, and what it does when there is none.
//!
//! All of it runs under the heap's lock, on behalf of a mutator whose run of free cells is used up.
//! The order in which memory is looked for keeps allocations short: what the thread has swept comes
//! first, then a few blocks that the mutator sweeps itself, then a fresh one.

use super::{Concurrent, Local, Phase};
use crate::collector::{Effort, Refill};
use crate::memory::HUGE_PAGE;
use crate::object;
use crate::space::cells::{Cache, Swept};
use crate::space::size_class::SizeClass;
use crate::space::{BLOCK_BYTES, Extent};
use crate::stats::Cause;

/// Blocks that a mutator sweeps in one allocation before it takes a fresh one instead.
const LAZY_BLOCKS: u32 = 8;
/// How far ahead of the mutators memory is given pages.
const WARM_AHEAD: usize = 16 * HUGE_PAGE;

impl Concurrent {
    /// A cell of `class`, from wherever there is one.
    pub(super) fn cell(&mut self, cache: &mut Cache, class: SizeClass) -> Option<usize> {
        // SAFETY: the cache's run of this class is used up.
        let found = unsafe {
            cache.advance(class)
                || self.space.refill_from_partial(cache, class)
                || self.sweep_a_few(class) && self.space.refill_from_partial(cache, class)
                || self.space.refill_from_pool(cache, class)
                || self.refill_by_sweeping(cache, class)
                || self.sweep_for_a_block() && self.space.refill_from_pool(cache, class)
        };
        self.count(cache);
        if found { cache.take(class) } else { None }
    }

    /// Sweeps a bounded number of blocks of `class`, until one has room.
    fn sweep_a_few(&mut self, class: SizeClass) -> bool {
        let sense = self.sense;
        // SAFETY: blocks are unswept only after S was completed: what is not in S is dead.
        unsafe {
            self.space
                .sweep_some_of(class, LAZY_BLOCKS, |word| object::is_marked(word, sense))
        }
    }

    fn refill_by_sweeping(&mut self, cache: &mut Cache, class: SizeClass) -> bool {
        let sense = self.sense;
        let live = move |word| object::is_marked(word, sense);
        // SAFETY: as above, and the cache's run is used up.
        unsafe {
            self.space
                .refill_by_sweeping(cache, class, live, &mut Swept::default())
        }
    }

    /// Sweeps until some block turns out to be empty.
    fn sweep_for_a_block(&mut self) -> bool {
        let used = self.space.pool().used();
        while self.sweep_one() {
            if self.space.pool().used() < used {
                return true;
            }
        }
        false
    }

    /// Sweeps one block that waits, if there is one.
    pub(super) fn sweep_one(&mut self) -> bool {
        let sense = self.sense;
        let live = move |word| object::is_marked(word, sense);
        // SAFETY: as above.
        unsafe { self.space.sweep_some(live, &mut Swept::default()) }
    }

    /// Memory for a large object.
    pub(super) fn large(&mut self, bytes: usize) -> Option<usize> {
        let mut address = self.space.allocate_large(bytes);
        while address.is_none() && self.sweep_for_a_block() {
            address = self.space.allocate_large(bytes);
        }
        if address.is_some() {
            self.used += bytes;
            self.allocated += bytes;
        }
        address
    }

    /// What an allocation does for which there is no memory. It waits until a cycle that began
    /// after it asked has been marked; after that, the world is stopped for it.
    pub(super) fn no_memory(&mut self, local: &mut Local, effort: Effort) -> Refill {
        if self.in_flight > 0 {
            // The thread is about to give blocks back.
            return Refill::Wait(self.progress);
        }
        if effort > Effort::Normal {
            return Refill::Pause(Cause::AllocationFailure);
        }
        let until = *local.patience.get_or_insert(match self.phase {
            Phase::Mark => self.marked_cycles + 2,
            Phase::Idle | Phase::Sweep => self.marked_cycles + 1,
        });
        if self.marked_cycles >= until {
            local.patience = None;
            return Refill::Pause(Cause::AllocationFailure);
        }
        if self.phase != Phase::Mark {
            self.request(Cause::AllocationFailure);
        }
        Refill::Wait(self.progress)
    }

    /// True when the mutators are about to reach memory that has no pages yet. To fault in a huge
    /// page takes milliseconds on some machines, longer than any pause: the thread does it ahead of
    /// them. Small heaps are left alone.
    pub(super) fn has_to_warm(&self) -> bool {
        let reached = self.space.pool().high_water() as usize * BLOCK_BYTES;
        reached >= WARM_AHEAD && self.warmed < self.space.limit().min(reached + WARM_AHEAD)
    }

    /// The next piece of memory to be given pages.
    pub(super) fn next_to_warm(&mut self) -> Option<Extent> {
        if !self.has_to_warm() {
            return None;
        }
        let reached = self.space.pool().high_water() as usize * BLOCK_BYTES;
        // What the mutators have reached has pages already, or will have before we come.
        let start = self.warmed.max(reached / HUGE_PAGE * HUGE_PAGE);
        let bytes = HUGE_PAGE.min(self.space.limit() - start);
        self.warmed = start + bytes;
        Some(Extent {
            start: self.reservation.start() + start,
            bytes,
        })
    }

    /// Gives the pages of free blocks back to the operating system, except those that will be used
    /// before the next cycle. Everything has been swept.
    pub(super) fn release(&mut self) {
        let soon = self.pacer.trigger().saturating_sub(self.used);
        let pool = self.space.pool();
        pool.release(&self.reservation, (soon / BLOCK_BYTES) as u32);
    }
}
