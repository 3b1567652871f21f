//! A cell space whose dead are found by marking: the whole of mark-sweep, and the old generation.
//!
//! Nothing is ever unmarked. The *sense* of the mark bit is turned over at each marking: what was
//! marked is unmarked by definition, and new objects are born marked. Blocks are swept lazily, just
//! before the allocator uses them, when their lines are about to be needed anyway.
//!
//! Invariants:
//! - between markings, in a swept block every object's mark bit equals `sense`; in an unswept block
//!   an object is dead if and only if its mark bit differs from `sense`;
//! - no block is unswept when the sense is turned over.

use super::cells::{Cache, CellSpace, Swept};
use super::size_class::SizeClass;
use super::{BLOCK_BYTES, Extent};
use crate::collector::Collector;
use crate::config::HeapConfig;
use crate::header::{Header, MARK};
use crate::heap::World;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use crate::stats::{Amount, Timer};
use crate::trace::Marker;
use crate::weak;

/// See the [module text](self).
pub struct MarkedSpace {
    /// The cells.
    pub space: CellSpace,
    sense: u64,
    /// Bytes that survived the last marking, plus those of runs handed out since.
    used: usize,
    /// When `used` would exceed this, a marking is due.
    threshold: usize,
    /// Kept between markings for its capacity.
    mark_stack: Vec<Ref>,
    config: HeapConfig,
    growth: f64,
}

impl MarkedSpace {
    /// A space over `extent`, of which at most `limit` bytes may be in use. `growth` is the growth
    /// that suits the collector.
    pub fn new(extent: Extent, limit: usize, config: &HeapConfig, growth: f64) -> MarkedSpace {
        MarkedSpace {
            space: CellSpace::new(extent, limit),
            sense: 0,
            used: 0,
            threshold: config.next_threshold(0, growth),
            mark_stack: Vec::new(),
            config: config.clone(),
            growth,
        }
    }

    /// The value of the mark bit of live objects.
    #[inline(always)]
    pub fn sense(&self) -> u64 {
        self.sense
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// True when a marking is due.
    pub fn is_due(&self) -> bool {
        self.used >= self.threshold
    }

    /// True when `bytes` more would make a marking due.
    pub fn would_be_due(&self, bytes: usize) -> bool {
        self.used + bytes > self.threshold
    }

    /// Counts the runs that `cache` has taken.
    pub fn count(&mut self, cache: &mut Cache) {
        self.used += cache.take_tally();
    }

    /// Takes the runs of `cache` back.
    pub fn retire(&mut self, cache: &mut Cache) {
        self.count(cache);
        self.used -= cache.unused();
        self.space.retire(cache);
    }

    /// A cell of `class`, from wherever there is one; none when the limit is reached.
    pub fn cell(&mut self, cache: &mut Cache, class: SizeClass) -> Option<usize> {
        let sense = self.sense;
        let live = move |word| object::is_marked(word, sense);
        // SAFETY: `live` tells the dead apart by the invariant, and the cache's run is used up.
        let found = unsafe {
            cache.advance(class)
                || self
                    .space
                    .refill_by_sweeping(cache, class, live, &mut Swept::default())
                || self.space.refill_from_partial(cache, class)
                || self.space.refill_from_pool(cache, class)
                || self.sweep_for_a_block() && self.space.refill_from_pool(cache, class)
        };
        self.count(cache);
        if found { cache.take(class) } else { None }
    }

    /// Memory for a large object; none when the limit is reached.
    pub fn large(&mut self, bytes: usize) -> Option<usize> {
        let mut address = self.space.allocate_large(bytes);
        if address.is_none() && self.space.has_unswept() {
            // Blocks that wait for the sweeper may turn out to be empty.
            self.finish_sweep();
            address = self.space.allocate_large(bytes);
        }
        if address.is_some() {
            self.used += bytes;
        }
        address
    }

    /// Sweeps everything that still waits.
    pub fn finish_sweep(&mut self) {
        let sense = self.sense;
        // SAFETY: `sense` tells the dead apart by the invariant.
        unsafe {
            self.space
                .finish_sweep(|word| object::is_marked(word, sense))
        };
    }

    /// Sweeps until some block turns out to be empty.
    fn sweep_for_a_block(&mut self) -> bool {
        let sense = self.sense;
        let used = self.space.pool().used();
        let live = move |word| object::is_marked(word, sense);
        // SAFETY: `sense` tells the dead apart by the invariant.
        while unsafe { self.space.sweep_some(live, &mut Swept::default()) } {
            if self.space.pool().used() < used {
                return true;
            }
        }
        false
    }

    /// Marks from all roots and makes the sweeper's list. All objects of the heap must be in this
    /// space. Returns what was marked; the sense has changed.
    ///
    /// # Safety
    /// `of` gives the space of this world's collector that all references lead into.
    pub unsafe fn mark<C: Collector>(
        world: &mut World<'_, C>,
        reservation: fn(&C) -> &Reservation,
        of: fn(&mut C) -> &mut MarkedSpace,
    ) -> Amount {
        let this = of(world.collector());
        this.finish_sweep();
        let timer = Timer::start();
        let sense = this.sense ^ MARK;
        let stack = std::mem::take(&mut this.mark_stack);
        let mut marker = Marker::new(world.shapes(), sense, stack);
        world.each_root(|root| marker.push(*root));
        let (_, shapes, guardians) = world.parts();
        // SAFETY: the world is stopped, and all roots have been pushed.
        let outcome = unsafe {
            marker.drain();
            weak::process(shapes, guardians, &mut marker)
        };
        world.report_cleared(outcome);
        world.record_marking(timer.stop().cpu);
        let marked = Amount {
            objects: marker.objects,
            bytes: marker.bytes,
        };
        let this = of(world.collector());
        this.mark_stack = marker.into_stack();
        this.sense = sense;
        this.space.schedule_sweep();
        // SAFETY: what is not marked in the new sense was not reached.
        unsafe {
            this.space
                .sweep_large(shapes, |word| object::is_marked(word, sense))
        };
        this.used = marked.bytes as usize;
        this.threshold = this.config.next_threshold(this.used, this.growth);
        // Free blocks beyond the new threshold will not be needed soon. A quarter more is kept, so
        // that a heap that breathes does not give memory away only to ask for it again.
        let keep = this.threshold.saturating_sub(this.space.committed()) + this.threshold / 4;
        let keep = keep / BLOCK_BYTES;
        let collector = world.collector();
        let reservation: *const Reservation = reservation(collector);
        // SAFETY: the reservation is not changed by anything here.
        of(collector)
            .space
            .pool()
            .release(unsafe { &*reservation }, keep as u32);
        marked
    }

    /// Calls `visit` with every object but those that wait for the sweeper.
    ///
    /// # Safety
    /// No mutator runs, and the caches have been retired.
    pub unsafe fn each_object(&self, mut visit: impl FnMut(usize, Header)) {
        let sense = self.sense;
        // SAFETY: promised by the caller.
        unsafe {
            self.space.each_object(|address, word| {
                if object::is_marked(word, sense) {
                    visit(address, word);
                }
            });
        }
    }

    /// True when an object begins at `address` that does not wait for the sweeper.
    pub fn is_object_start(&self, address: usize) -> bool {
        // SAFETY: the space says that an object begins there.
        self.space.is_object_start(address)
            && object::is_marked(unsafe { object::header(address) }, self.sense)
    }

    /// The invariant, checked: no object in a swept block is unmarked.
    pub fn verify(&self, _shapes: &ShapeTable) -> Result<(), String> {
        if self.space.has_unswept() {
            return Ok(());
        }
        let mut problem = None;
        let sense = self.sense;
        // SAFETY: verification runs with the world stopped.
        unsafe {
            self.space.each_object(|address, word| {
                if !object::is_marked(word, sense) {
                    problem = Some(format!(
                        "object at {address:#x} is unmarked in a swept block"
                    ));
                }
            });
        }
        problem.map_or(Ok(()), Err)
    }
}
