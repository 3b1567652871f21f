//! Mark-sweep: the plain one, and the oracle of all others.
//!
//! The idea: stop the world, mark what can be reached from the roots, and let the allocator sweep
//! the blocks one by one, just before it allocates from them. All of it is in
//! [`MarkedSpace`]; this file says when.
//!
//! Invariant: every object of the heap lies in the one marked space.

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::header::Header;
use crate::heap::World;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use crate::space::cells::Cache;
use crate::space::marked::MarkedSpace;
use crate::space::{BLOCK_BYTES, Extent};
use crate::stats::{Amount, Cause, CollectionKind};

/// Half as much again as what is live: this is the collector for those who want to save memory, and
/// marking is cheap.
const GROWTH: f64 = 1.5;

/// The mark-sweep collector. See the [module text](self).
pub struct MarkSweep {
    space: MarkedSpace,
    reservation: Reservation,
}

/// A mutator's part: its runs of free cells.
pub struct Local {
    cache: Cache,
    /// Mark bit of new objects.
    sense: u64,
}

// SAFETY: frees only what a full trace from all roots, with the world stopped, did not reach.
unsafe impl Collector for MarkSweep {
    const NAME: &'static str = "mark-sweep";
    const MOVES: bool = false;
    type Local = Local;

    fn new(config: &HeapConfig) -> Result<MarkSweep, HeapError> {
        config.at_least(BLOCK_BYTES, Self::NAME)?;
        let reservation = Reservation::new(config.max_bytes, config.huge_pages)?;
        let extent = Extent {
            start: reservation.start(),
            bytes: config.max_bytes,
        };
        let space = MarkedSpace::new(extent, config.max_bytes, config, GROWTH);
        Ok(MarkSweep { space, reservation })
    }

    fn attach(&mut self) -> Local {
        Local {
            cache: Cache::default(),
            sense: self.space.sense(),
        }
    }

    fn retire(&mut self, local: &mut Local) {
        self.space.retire(&mut local.cache);
    }

    #[inline(always)]
    fn allocate(local: &mut Local, request: Request) -> Option<usize> {
        if request.class.is_large() {
            return None;
        }
        local.cache.take(request.class)
    }

    fn refill(
        &mut self,
        _shapes: &ShapeTable,
        local: &mut Local,
        request: Request,
        effort: Effort,
    ) -> Refill {
        self.space.count(&mut local.cache);
        if effort == Effort::Normal && self.space.would_be_due(request.bytes) {
            return Refill::Pause(Cause::Threshold);
        }
        let address = if request.class.is_large() {
            self.space.large(request.bytes)
        } else {
            self.space.cell(&mut local.cache, request.class)
        };
        address.map_or(Refill::Pause(Cause::AllocationFailure), Refill::Ready)
    }

    #[inline(always)]
    fn birth(local: &Local, _address: usize, header: Header) -> Header {
        Header(header.0 | local.sense)
    }

    #[inline(always)]
    unsafe fn store(_: &mut Local, _: &ShapeTable, _object: usize, slot: usize, value: Ref) {
        // SAFETY: promised by the caller. No barrier: marking happens with the world stopped.
        unsafe { object::store(slot, value) }
    }

    fn collect(world: &mut World<'_, Self>, work: Work) {
        world.begin(CollectionKind::Full, work.cause());
        let before = world.usage();
        // SAFETY: all objects are in the one space.
        let marked = unsafe { MarkedSpace::mark(world, |c| &c.reservation, |c| &mut c.space) };
        world.each_local(|collector, local| local.sense = collector.space.sense());
        world.tally(marked, Amount::default(), before.amount().minus(marked));
        world.set_objects(marked.objects);
    }

    unsafe fn each_object(&self, _: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        // SAFETY: promised by the caller.
        unsafe { self.space.each_object(visit) }
    }

    fn is_object_start(&self, _: &ShapeTable, address: usize) -> bool {
        self.space.is_object_start(address)
    }

    fn used(&self) -> usize {
        self.space.used()
    }

    fn committed(&self) -> usize {
        self.space.space.committed()
    }

    fn largest(&self) -> usize {
        self.space.space.limit()
    }

    fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        self.space.verify(shapes)
    }
}
