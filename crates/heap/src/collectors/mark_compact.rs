//! Mark-compact: the live objects slide to the start of the range, in the order in which they were
//! allocated.
//!
//! The idea: allocate by bumping through one range. When it is full enough, mark what is reachable
//! in a [`Bitmap`], from which the new place of each object can be computed; then go once through
//! the live objects, from low to high, change their references, and move them down. This is the
//! order of the LISP 2 collector (and of Jonkers' threaded one), with the Compressor's table in
//! place of a forwarding word in each object: two passes over the live objects in all, none over the
//! dead, and headers that stay intact. Large objects stay where they are, in a space of their own.
//!
//! A collection because an allocation wanted memory leaves a *settled* prefix in place: the longest
//! one of which at most a tenth is dead. Long-lived objects gather there, so most references
//! need not be changed, and little memory is copied. A full collection leaves no gap anywhere.
//!
//! Invariants:
//! - the range up to its top is objects and free headers, and no object passes another;
//! - the bitmap is clear between collections;
//! - what the range occupies and the blocks of large objects are within the limit.

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::frontier::Frontier;
use crate::header::Header;
use crate::heap::World;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Kind, ShapeTable};
use crate::space::bitmap::Bitmap;
use crate::space::bump::{BumpSpace, Chunk};
use crate::space::large::LargeSpace;
use crate::space::size_class::LARGEST;
use crate::space::{BLOCK_BYTES, Extent, RefRange};
use crate::stats::{Amount, Cause, CollectionKind};
use crate::weak::{self, Fate};

/// A collection goes over all that lives twice.
const GROWTH: f64 = 3.0;

/// At most this part of what is settled may be dead.
const WASTE: u64 = 10;

/// The mark-compact collector. See the [module text](self).
pub struct MarkCompact {
    space: BumpSpace,
    large: LargeSpace,
    bitmap: Bitmap,
    /// When objects would occupy more than this, a collection is due.
    threshold: usize,
    /// Kept between collections for its capacity.
    mark_stack: Vec<Ref>,
    config: HeapConfig,
    reservation: Reservation,
}

// SAFETY: marks all that is reachable from the roots, with the world stopped, and changes every
// reference to what is moved.
unsafe impl Collector for MarkCompact {
    const NAME: &'static str = "mark-compact";
    const MOVES: bool = true;
    const ZEROED: bool = true;
    type Local = Chunk;

    fn new(config: &HeapConfig) -> Result<MarkCompact, HeapError> {
        config.at_least(2 * BLOCK_BYTES, Self::NAME)?;
        let bytes = config.max_bytes / BLOCK_BYTES * BLOCK_BYTES;
        let reservation = Reservation::new(2 * bytes, config.huge_pages)?;
        let extent = Extent {
            start: reservation.start(),
            bytes,
        };
        let large = Extent {
            start: extent.end(),
            bytes,
        };
        Ok(MarkCompact {
            space: BumpSpace::new(extent),
            large: LargeSpace::new(large),
            bitmap: Bitmap::new(extent),
            threshold: config.next_threshold(0, GROWTH),
            mark_stack: Vec::new(),
            config: config.clone(),
            reservation,
        })
    }

    fn attach(&mut self) -> Chunk {
        Chunk::default()
    }

    fn retire(&mut self, local: &mut Chunk) {
        self.space.retire(local);
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
        let limit = match effort {
            Effort::Normal => self.threshold,
            Effort::Limit | Effort::Last => self.limit(),
        };
        let cause = match effort {
            Effort::Normal => Cause::Threshold,
            Effort::Limit | Effort::Last => Cause::AllocationFailure,
        };
        let address = if request.class.is_large() {
            self.large_below(request.bytes, limit)
        } else {
            self.small_below(local, request.bytes, limit)
        };
        address.map_or(Refill::Pause(cause), Refill::Ready)
    }

    #[inline(always)]
    unsafe fn store(_: &mut Chunk, _: &ShapeTable, _object: usize, slot: usize, value: Ref) {
        // SAFETY: promised by the caller. No barrier: marking happens with the world stopped.
        unsafe { object::store(slot, value) }
    }

    fn collect(world: &mut World<'_, Self>, work: Work) {
        world.begin(CollectionKind::Full, work.cause());
        let before = world.usage();
        let waste = match work {
            Work::Full(_) => None,
            Work::Allocation(..) | Work::Step => Some(WASTE),
        };
        let live = mark(world);
        let moved = compact(world, waste);
        world.collector().adapt(live.bytes as usize);
        world.tally(live, moved, before.amount().minus(live));
        world.set_objects(live.objects);
    }

    unsafe fn each_object(&self, shapes: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        // SAFETY: promised by the caller.
        unsafe {
            self.space.each_object(shapes, visit);
            self.large.each_object(visit);
        }
    }

    fn is_object_start(&self, shapes: &ShapeTable, address: usize) -> bool {
        self.space.is_object_start(shapes, address) || self.large.is_object_start(address)
    }

    fn used(&self) -> usize {
        self.space.used() + self.large.used()
    }

    fn committed(&self) -> usize {
        self.space.touched() + self.large.committed()
    }

    fn largest(&self) -> usize {
        self.limit()
    }

    fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        if self.occupied() > self.limit() {
            return Err(format!(
                "{} bytes are in use, beyond the limit",
                self.occupied()
            ));
        }
        if !self.bitmap.is_clear(self.space.top()) {
            return Err("the bitmap is not clear between collections".to_string());
        }
        // SAFETY: verification runs with the world stopped.
        unsafe { self.space.verify(shapes)? };
        self.large.verify()
    }
}

impl MarkCompact {
    fn limit(&self) -> usize {
        self.config.max_bytes / BLOCK_BYTES * BLOCK_BYTES
    }

    fn occupied(&self) -> usize {
        self.space.occupied() + self.large.committed()
    }

    /// What a mutator gets at a time: little enough to stay in the cache, and that the chunks of
    /// many mutators do not fill a small heap.
    fn chunk_bytes(&self) -> usize {
        (self.threshold / 32).clamp(LARGEST, BLOCK_BYTES) & !7
    }

    /// Memory for a small object from a new chunk, if not more than `limit` is occupied then.
    fn small_below(&mut self, local: &mut Chunk, bytes: usize, limit: usize) -> Option<usize> {
        self.space.retire(local);
        let left = limit.min(self.limit()).saturating_sub(self.occupied()) & !7;
        if left < bytes {
            return None;
        }
        let chunk = self.chunk_bytes().min(left).max(bytes);
        if !self.space.refill(local, chunk) {
            return None;
        }
        local.take(bytes)
    }

    /// Memory for a large object, if not more than `limit` is occupied then.
    fn large_below(&mut self, bytes: usize, limit: usize) -> Option<usize> {
        if self.occupied() + LargeSpace::footprint(bytes) > limit.min(self.limit()) {
            return None;
        }
        let address = self.large.allocate(bytes)?;
        // The range must not hold memory that now belongs to the large object.
        let rest = self.limit() - self.large.committed();
        self.space.trim(&self.reservation, rest);
        Some(address)
    }

    /// Sets the next threshold, when `live` bytes have survived, and gives back what will not be
    /// needed until then.
    fn adapt(&mut self, live: usize) {
        self.threshold = self.config.next_threshold(live, GROWTH);
        let rest = self.threshold.saturating_sub(self.large.committed());
        self.space.trim(&self.reservation, rest);
        let spare = self.threshold.saturating_sub(self.occupied());
        self.large.trim(&self.reservation, spare);
    }
}

/// Marks what is reachable, and frees the large objects that are not.
fn mark(world: &mut World<'_, MarkCompact>) -> Amount {
    let shapes = world.shapes();
    let this = world.collector();
    // The marker owns these while it runs, so that roots can be visited through the world.
    let mut marker = Marker {
        shapes,
        small: RefRange::new(this.space.extent().start, this.space.top()),
        bitmap: std::mem::take(&mut this.bitmap),
        large: std::mem::take(&mut this.large),
        frontier: Frontier::new(std::mem::take(&mut this.mark_stack)),
        specials: Vec::new(),
        marked: Amount::default(),
    };
    world.each_root(|root| marker.push(*root));
    let (_, shapes, guardians) = world.parts();
    // SAFETY: the world is stopped, and all roots have been pushed.
    let outcome = unsafe {
        marker.drain();
        weak::process(shapes, guardians, &mut marker)
    };
    // The list is among the roots: what is on it will be changed when objects move.
    world.report_cleared(outcome);
    let this = world.collector();
    this.bitmap = marker.bitmap;
    this.large = marker.large;
    this.mark_stack = marker.frontier.stack;
    let mut live = marker.marked;
    live += this.large.sweep();
    live
}

/// Moves what is marked down, and changes all references to it. Gives what was moved.
fn compact(world: &mut World<'_, MarkCompact>, waste: Option<u64>) -> Amount {
    let shapes = world.shapes();
    let this = world.collector();
    let mut bitmap = std::mem::take(&mut this.bitmap);
    let (start, top) = (this.space.extent().start, this.space.top());
    let settled = bitmap.dense_prefix(top, waste);
    let end = bitmap.plan(settled, top);
    let slide = Slide {
        shapes,
        bitmap: &bitmap,
        unsettled: RefRange::new(settled, top.max(settled)),
        settled,
    };
    // SAFETY: the world is stopped, everything reachable is marked, and the plan is made. The large
    // objects that are left have been swept; the roots and the watched objects are live.
    let slid = unsafe {
        world.each_root(|root| *root = slide.new_place(*root));
        let (this, _, guardians) = world.parts();
        for (object, _) in &mut guardians.watched {
            *object = slide.new_place(*object);
        }
        this.large
            .each_object(&mut |address, word| slide.update(address, word));
        slide.run_fast(start, top)
    };
    debug_assert!(slid.end <= end);
    bitmap.clear(top);
    let this = world.collector();
    this.bitmap = bitmap;
    this.space.set_top(slid.end, slid.gaps);
    slid.moved
}

/// Marks in the bitmap what is reachable from what is pushed. Both the header and its bit are asked
/// for when a reference enters the queue of the frontier.
struct Marker<'a> {
    shapes: &'a ShapeTable,
    small: RefRange,
    bitmap: Bitmap,
    large: LargeSpace,
    frontier: Frontier,
    specials: Vec<Ref>,
    /// Small objects marked.
    marked: Amount,
}

impl Marker<'_> {
    #[inline(always)]
    fn push(&mut self, reference: Ref) {
        self.frontier.push(reference);
    }

    /// # Safety
    /// `reference` is an object of this heap.
    #[inline(always)]
    unsafe fn visit(&mut self, reference: Ref) {
        let address = reference.address();
        // SAFETY: promised by the caller.
        unsafe {
            if !self.small.contains(reference) {
                if self.large.mark(reference) {
                    self.scan(reference, object::header(address));
                }
                return;
            }
            if self.bitmap.is_marked(address) {
                return;
            }
            let word = object::header(address);
            debug_assert!(!word.is_free(), "{reference:?} is reachable and free");
            let bytes = object::bytes(self.shapes, word);
            self.bitmap.mark(address, bytes);
            self.marked.objects += 1;
            self.marked.bytes += bytes as u64;
            self.scan(reference, word);
        }
    }

    /// # Safety
    /// `object` is an object of this heap, with header `word`.
    #[inline(always)]
    unsafe fn scan(&mut self, object: Ref, word: Header) {
        let frontier = &mut self.frontier;
        // SAFETY: promised by the caller.
        let special = unsafe {
            object::each_strong_slot(self.shapes, object.address(), word, |slot| {
                frontier.push(object::load(slot));
            })
        };
        if special {
            self.specials.push(object);
        }
    }
}

impl Fate for Marker<'_> {
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref> {
        let marked = if self.small.contains(reference) {
            // SAFETY: small objects lie in the extent of the bitmap.
            unsafe { self.bitmap.is_marked(reference.address()) }
        } else {
            self.large.is_marked(reference)
        };
        marked.then_some(reference)
    }

    unsafe fn keep(&mut self, reference: Ref) -> Ref {
        self.push(reference);
        reference
    }

    unsafe fn drain(&mut self) {
        loop {
            let bitmap = &self.bitmap;
            let next = self.frontier.next(|next| {
                object::prefetch(next.address());
                object::prefetch(bitmap.bit_address(next.address()));
            });
            let Some(next) = next else { return };
            // SAFETY: only objects of this heap are pushed.
            unsafe { self.visit(next) };
        }
    }

    fn take_specials(&mut self) -> Vec<Ref> {
        std::mem::take(&mut self.specials)
    }
}

/// The pass over the live objects that changes references and moves.
struct Slide<'a> {
    shapes: &'a ShapeTable,
    bitmap: &'a Bitmap,
    /// The references to objects that may move.
    unsettled: RefRange,
    /// Objects that begin below stay.
    settled: usize,
}

/// What a slide did.
#[derive(Default)]
struct Slid {
    /// The end of the last object.
    end: usize,
    /// Bytes of free memory among what is settled.
    gaps: usize,
    moved: Amount,
}

impl Slide<'_> {
    /// The reference that takes the place of `reference`.
    ///
    /// # Safety
    /// `reference` is null, an immediate, or leads to an object that is marked.
    #[inline(always)]
    unsafe fn new_place(&self, reference: Ref) -> Ref {
        if !self.unsettled.contains(reference) {
            return reference;
        }
        // SAFETY: promised by the caller.
        unsafe { self.bitmap.new_place(reference) }
    }

    /// Changes all references in an object, weak ones included.
    ///
    /// # Safety
    /// `object` is a live object with header `word`, whose references have not been changed yet.
    #[inline(always)]
    unsafe fn update(&self, object: usize, word: Header) {
        // SAFETY: promised by the caller; after weak processing, no slot leads to a dead object.
        unsafe {
            let special = object::each_strong_slot(self.shapes, object, word, |slot| {
                self.update_slot(slot);
            });
            if special {
                self.update_weak(object, word);
            }
        }
    }

    /// # Safety
    /// `slot` is a reference slot of a live object, and has not been changed yet.
    #[inline(always)]
    unsafe fn update_slot(&self, slot: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let old = object::load(slot);
            if self.unsettled.contains(old) {
                object::store(slot, self.bitmap.new_place(old));
            }
        }
    }

    /// # Safety
    /// As for [`Slide::update`].
    #[cold]
    #[inline(never)]
    unsafe fn update_weak(&self, object: usize, word: Header) {
        // SAFETY: promised by the caller.
        unsafe {
            object::each_reference_slot(self.shapes, object, word, |kind, slot| {
                if kind != Kind::Reference {
                    self.update_slot(slot);
                }
            });
        }
    }

    /// Goes through the marked objects of `start..top`.
    ///
    /// # Safety
    /// The world is stopped, and the bitmap and the plan are complete. To be called once.
    #[inline(always)]
    unsafe fn run(&self, start: usize, top: usize) -> Slid {
        let mut slid = Slid {
            end: start,
            ..Slid::default()
        };
        // SAFETY: every marked bit that does not belong to the object before is the header of a
        // live object; objects move down only, to where everything has been moved away.
        unsafe {
            let mut at = self.bitmap.next_marked(start, top);
            while at < top {
                let word = object::header(at);
                let bytes = object::bytes(self.shapes, word);
                let to = if at < self.settled {
                    at
                } else {
                    slid.end.max(self.settled)
                };
                if slid.end < to {
                    object::set_header(slid.end, Header::free((to - slid.end) as u32));
                    object::poison(slid.end, to - slid.end);
                    slid.gaps += to - slid.end;
                }
                if to != at {
                    debug_assert_eq!(self.new_place(Ref::from_address(at)).address(), to);
                    move_words(at, to, bytes);
                    slid.moved.objects += 1;
                    slid.moved.bytes += bytes as u64;
                }
                self.update(to, word);
                slid.end = to + bytes;
                at = self.bitmap.next_marked(at + bytes, top);
            }
        }
        slid
    }

    /// [`Slide::run`], with the processor's own population count where it has one: the x86-64 that
    /// the compiler assumes by default has not.
    ///
    /// # Safety
    /// As for [`Slide::run`].
    unsafe fn run_fast(&self, start: usize, top: usize) -> Slid {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt") {
            #[target_feature(enable = "popcnt")]
            unsafe fn counting(slide: &Slide<'_>, start: usize, top: usize) -> Slid {
                // SAFETY: passed on from the caller.
                unsafe { slide.run(start, top) }
            }
            // SAFETY: the processor has it; the rest is passed on from the caller.
            return unsafe { counting(self, start, top) };
        }
        // SAFETY: passed on from the caller.
        unsafe { self.run(start, top) }
    }
}

/// Moves the words of an object; the ranges may overlap.
///
/// # Safety
/// The ranges are memory of the heap, 8-aligned, and `bytes` is a multiple of 8, at least 16.
#[inline(always)]
unsafe fn move_words(from: usize, to: usize, bytes: usize) {
    type Pair = [u64; 2];
    // SAFETY: promised by the caller. Small objects in line: all is read before anything is written.
    unsafe {
        if bytes <= 32 {
            let first = *(from as *const Pair);
            let last = *((from + bytes - 16) as *const Pair);
            *(to as *mut Pair) = first;
            *((to + bytes - 16) as *mut Pair) = last;
        } else {
            std::ptr::copy(from as *const u64, to as *mut u64, bytes / 8);
        }
    }
}
