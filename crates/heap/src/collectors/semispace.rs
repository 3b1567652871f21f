//! Semispace: two halves, of which one is in use.
//!
//! The idea (Fenichel and Yochelson 1969; Cheney 1970): allocate by bumping through one half. When
//! it is full enough, copy what is reachable into the other half and exchange them: dead objects
//! cost nothing, and the survivors lie close together, each near the object that led to it (see
//! [`crate::copy`]). Large objects stay where they are, in a space beside the halves.
//!
//! The limit covers both halves and the large objects. The halves have no fixed size: what the large
//! objects leave is shared equally, and a half takes from the operating system only what the growth
//! policy lets it use.
//!
//! Invariants:
//! - all small objects lie in `active`, and `other` is empty;
//! - twice what `active` occupies, and the blocks of large objects, are within the limit: so a
//!   collection always finds room for all survivors.

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::config::HeapConfig;
use crate::copy::{Evacuation, Migration, Worklists};
use crate::error::HeapError;
use crate::header::Header;
use crate::heap::World;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Layout, ShapeTable};
use crate::space::bump::{BumpSpace, Chunk};
use crate::space::large::LargeSpace;
use crate::space::size_class::LARGEST;
use crate::space::{BLOCK_BYTES, Extent, RefRange};
use crate::stats::{Amount, Cause, CollectionKind};
use crate::weak::{self, Fate};

/// Every collection copies all that lives; half of the space is idle anyway.
const GROWTH: f64 = 3.0;

/// The semispace collector. See the [module text](self).
pub struct Semispace {
    active: BumpSpace,
    other: BumpSpace,
    large: LargeSpace,
    /// When objects would occupy more than this, a collection is due.
    threshold: usize,
    lists: Worklists,
    config: HeapConfig,
    reservation: Reservation,
}

// SAFETY: copies all that is reachable from the roots, with the world stopped, and changes every
// reference to what was copied.
unsafe impl Collector for Semispace {
    const NAME: &'static str = "semispace";
    const MOVES: bool = true;
    const ZEROED: bool = true;
    type Local = Chunk;

    fn new(config: &HeapConfig) -> Result<Semispace, HeapError> {
        config.at_least(4 * BLOCK_BYTES, Self::NAME)?;
        let half = config.max_bytes / 2 / BLOCK_BYTES * BLOCK_BYTES;
        let large = config.max_bytes / BLOCK_BYTES * BLOCK_BYTES;
        let reservation = Reservation::new(2 * half + large, config.huge_pages)?;
        let extent = |offset: usize, bytes: usize| Extent {
            start: reservation.start() + offset,
            bytes,
        };
        Ok(Semispace {
            active: BumpSpace::new(extent(0, half)),
            other: BumpSpace::new(extent(half, half)),
            large: LargeSpace::new(extent(2 * half, large)),
            threshold: config.next_threshold(0, GROWTH),
            lists: Worklists::default(),
            config: config.clone(),
            reservation,
        })
    }

    fn attach(&mut self) -> Chunk {
        Chunk::default()
    }

    fn retire(&mut self, local: &mut Chunk) {
        self.active.retire(local);
    }

    #[inline(always)]
    fn allocate(local: &mut Chunk, request: Request) -> Option<usize> {
        if request.class.is_large() {
            return None;
        }
        local.take(request.bytes)
    }

    fn refill(
        &mut self,
        _shapes: &ShapeTable,
        local: &mut Chunk,
        request: Request,
        effort: Effort,
    ) -> Refill {
        if request.class.is_large() {
            return self.refill_large(request.bytes, effort);
        }
        self.active.retire(local);
        let left = self.half_limit().saturating_sub(self.active.occupied());
        if left < request.bytes {
            return Refill::Pause(Cause::AllocationFailure);
        }
        let until_due = self.threshold.saturating_sub(self.occupied());
        let wanted = match effort {
            Effort::Normal if until_due < request.bytes => return Refill::Pause(Cause::Threshold),
            Effort::Normal => self.chunk_bytes().min(until_due & !7),
            Effort::Limit | Effort::Last => self.chunk_bytes(),
        };
        let bytes = wanted.min(left & !7).max(request.bytes);
        if !self.active.refill(local, bytes) {
            return Refill::Pause(Cause::AllocationFailure);
        }
        local
            .take(request.bytes)
            .map_or(Refill::Pause(Cause::AllocationFailure), Refill::Ready)
    }

    #[inline(always)]
    unsafe fn store(_: &mut Chunk, _: &ShapeTable, _object: usize, slot: usize, value: Ref) {
        // SAFETY: promised by the caller. No barrier: copying happens with the world stopped.
        unsafe { object::store(slot, value) }
    }

    fn collect(world: &mut World<'_, Self>, work: Work) {
        world.begin(CollectionKind::Full, work.cause());
        let before = world.usage();
        let (copied, stayed) = evacuate(world);
        let mut live = copied;
        live += stayed;
        world.collector().adapt(live.bytes as usize);
        world.tally(stayed, copied, before.amount().minus(live));
        world.set_objects(live.objects);
    }

    unsafe fn each_object(&self, shapes: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        // SAFETY: promised by the caller.
        unsafe {
            self.active.each_object(shapes, visit);
            self.large.each_object(visit);
        }
    }

    fn is_object_start(&self, shapes: &ShapeTable, address: usize) -> bool {
        self.active.is_object_start(shapes, address) || self.large.is_object_start(address)
    }

    fn used(&self) -> usize {
        self.active.used() + self.large.used()
    }

    fn committed(&self) -> usize {
        self.active.touched() + self.other.touched() + self.large.committed()
    }

    fn largest(&self) -> usize {
        self.config.max_bytes / BLOCK_BYTES * BLOCK_BYTES
    }

    fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        if self.other.occupied() != 0 {
            return Err("the other half is not empty".to_string());
        }
        if 2 * self.active.occupied() + self.large.committed() > self.config.max_bytes {
            return Err(format!(
                "{} bytes in the half in use and {} of large objects leave no room for a copy",
                self.active.occupied(),
                self.large.committed()
            ));
        }
        // SAFETY: verification runs with the world stopped.
        unsafe { self.active.verify(shapes)? };
        self.large.verify()
    }
}

impl Semispace {
    /// Bytes that the objects take, a copy not counted.
    fn occupied(&self) -> usize {
        self.active.occupied() + self.large.committed()
    }

    /// What a half may grow to, with the large objects as they are.
    fn half_limit(&self) -> usize {
        ((self.config.max_bytes - self.large.committed()) / 2).min(self.active.extent().bytes)
    }

    /// What a mutator gets at a time: little enough to stay in the cache, and that the chunks of
    /// many mutators do not fill a small heap.
    fn chunk_bytes(&self) -> usize {
        (self.threshold / 32).clamp(LARGEST, BLOCK_BYTES) & !7
    }

    fn refill_large(&mut self, bytes: usize, effort: Effort) -> Refill {
        let footprint = LargeSpace::footprint(bytes);
        if effort == Effort::Normal && self.occupied() + footprint > self.threshold {
            return Refill::Pause(Cause::Threshold);
        }
        let taken = 2 * self.active.occupied() + self.large.committed();
        if taken + footprint > self.config.max_bytes {
            return Refill::Pause(Cause::AllocationFailure);
        }
        let Some(address) = self.large.allocate(bytes) else {
            return Refill::Pause(Cause::AllocationFailure);
        };
        // The halves must not hold memory that now belongs to the large object.
        let half = self.half_limit();
        self.active.trim(&self.reservation, half);
        self.other.trim(&self.reservation, half);
        Refill::Ready(address)
    }

    /// Sets the next threshold, when `live` bytes have survived, and gives back what will not be
    /// needed until then.
    fn adapt(&mut self, live: usize) {
        self.threshold = self.config.next_threshold(live, GROWTH);
        let half = self
            .threshold
            .saturating_sub(self.large.committed())
            .min(self.half_limit());
        self.active.trim(&self.reservation, half);
        self.other.trim(&self.reservation, half);
        let spare = self.threshold.saturating_sub(self.occupied());
        self.large.trim(&self.reservation, spare);
    }
}

/// Copies what is reachable to the other half, and exchanges the halves. Gives what was copied, and
/// the large objects that stayed.
fn evacuate(world: &mut World<'_, Semispace>) -> (Amount, Amount) {
    let shapes = world.shapes();
    let this = world.collector();
    let extent = this.other.extent();
    // The evacuation owns these while it runs, so that roots can be visited through the world.
    let migration = Flip {
        from: RefRange::new(this.active.extent().start, this.active.top()),
        top: extent.start,
        end: extent.end(),
        large: std::mem::take(&mut this.large),
    };
    let lists = std::mem::take(&mut this.lists);
    let mut evacuation = Evacuation::new(shapes, migration, lists);
    // SAFETY: the world is stopped, and the roots hold objects of this heap.
    unsafe {
        world.each_root(|root| *root = evacuation.forward(*root));
        evacuation.drain();
        let (_, shapes, guardians) = world.parts();
        let outcome = weak::process(shapes, guardians, &mut evacuation);
        world.report_cleared(outcome);
    }
    let (migration, lists, copied) = evacuation.finish();
    let this = world.collector();
    this.lists = lists;
    this.large = migration.large;
    let stayed = this.large.sweep();
    this.other.set_top(migration.top, 0);
    this.active.set_top(this.active.extent().start, 0);
    std::mem::swap(&mut this.active, &mut this.other);
    (copied, stayed)
}

/// From one half to the other; large objects stay.
struct Flip {
    from: RefRange,
    top: usize,
    end: usize,
    large: LargeSpace,
}

impl Migration for Flip {
    fn from(&self) -> RefRange {
        self.from
    }

    #[inline(always)]
    unsafe fn place(&mut self, _: &Layout, bytes: usize) -> usize {
        let address = self.top;
        self.top += bytes;
        debug_assert!(self.top <= self.end, "the other half holds all survivors");
        address
    }

    fn meet(&mut self, resident: Ref) -> bool {
        self.large.mark(resident)
    }

    fn survives(&self, resident: Ref) -> bool {
        self.large.is_marked(resident)
    }
}
