//! Generational: most objects die young, so the young are collected alone.
//!
//! The idea: allocate by bumping through a nursery small enough to stay in the cache. When it is
//! full, copy the survivors to the old generation, all of them, and begin again at its start: dead
//! objects cost nothing. The old generation is a [`MarkedSpace`]: marked when it has grown enough,
//! swept lazily.
//!
//! A minor collection must find the references from old to young without looking at the old
//! generation. The write barrier remembers *slots*: when a young reference is stored into an old
//! object's slot that did not hold a young one, the slot's address is noted. The test needs no
//! memory access until the rare case, since the generation of an object is a matter of its address.
//!
//! Invariants, while the mutators run:
//! - every slot of an old object that holds a young reference is in some mutator's remembered set,
//!   or in that of retired mutators;
//! - a remembered slot lies in an object that was live when it was stored to;
//! - after a minor collection, the nursery and all remembered sets are empty.

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::header::{Header, MARK, WATCHED};
use crate::heap::World;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, ShapeTable};
use crate::space::cells::Cache;
use crate::space::marked::MarkedSpace;
use crate::space::nursery::Nursery;
use crate::space::size_class::SizeClass;
use crate::space::{BLOCK_BYTES, Extent};
use crate::stats::{Amount, Cause, CollectionKind};
use crate::weak::{self, Fate};

/// A remembered set is cleaned of what it need not hold when it has grown to this many slots.
const REMEMBERED_LIMIT: usize = 1 << 20;

/// Full collections are the expensive ones here, and what is promoted is likely to live.
const GROWTH: f64 = 3.0;

/// The generational collector. See the [module text](self).
pub struct Generational {
    nursery: Nursery,
    old: MarkedSpace,
    /// Where survivors are copied to.
    cache: Cache,
    /// Slots of copied objects that still lead into the nursery; kept for its capacity.
    to_forward: Vec<u32>,
    /// Remembered slots of mutators that have been retired: a mutator may end before the next
    /// minor collection, its slots stay.
    remembered: Vec<u32>,
    /// Objects in the old generation.
    old_objects: u64,
    /// The limit of the heap, both generations together.
    max_bytes: usize,
    reservation: Reservation,
}

/// What a minor collection may need: the whole nursery, rounded up to cells, and one block begun
/// for each size class.
const fn reserve(nursery: usize) -> usize {
    nursery + nursery / 2 + 40 * BLOCK_BYTES
}

/// What the old generation may grow to beside a nursery of this size, so that a minor collection
/// always finds room for all survivors.
fn old_limit(max_bytes: usize, nursery: usize) -> usize {
    let rest = max_bytes.saturating_sub(nursery);
    rest.saturating_sub(reserve(nursery)).max(rest / 2)
}

/// A mutator's part.
pub struct Local {
    cursor: usize,
    end: usize,
    /// The nursery in units of references; see [`Local::is_young`].
    young_start: u32,
    young_length: u32,
    /// The mark bit of the last large object, which is born old. It does no harm in the nursery,
    /// where nobody reads it.
    birth: u64,
    /// Addresses of old slots that hold young references, in units of four bytes.
    remembered: Vec<u32>,
}

impl Local {
    /// True for a reference into the nursery; false for null and for immediates.
    #[inline(always)]
    fn is_young(&self, reference: Ref) -> bool {
        // References are even and immediates odd: the rotation makes an odd difference huge.
        reference
            .to_bits()
            .wrapping_sub(self.young_start)
            .rotate_right(1)
            < self.young_length
    }

    #[cold]
    #[inline(never)]
    fn remember(&mut self, slot: usize) {
        if self.remembered.len() >= REMEMBERED_LIMIT
            && self.remembered.len() == self.remembered.capacity()
        {
            self.remembered.sort_unstable();
            self.remembered.dedup();
        }
        self.remembered.push((slot >> 2) as u32);
    }
}

// SAFETY: a minor collection keeps what is reachable from the roots and from remembered slots,
// which by the invariant are all references into the nursery; a full one marks from all roots.
unsafe impl Collector for Generational {
    const NAME: &'static str = "generational";
    const MOVES: bool = true;
    const ZEROED: bool = true;
    type Local = Local;

    fn new(config: &HeapConfig) -> Result<Generational, HeapError> {
        config.at_least(8 * BLOCK_BYTES, Self::NAME)?;
        let nursery = Nursery::most(config.max_bytes, config.nursery_bytes);
        let old_bytes = config.max_bytes + reserve(nursery) + 4 * BLOCK_BYTES;
        let reservation = Reservation::new(nursery + old_bytes, config.huge_pages)?;
        let young = Extent {
            start: reservation.start(),
            bytes: nursery,
        };
        let old = Extent {
            start: young.end(),
            bytes: old_bytes,
        };
        let nursery = Nursery::new(young, config.nursery_bytes);
        let mut policy = config.clone();
        policy.max_bytes = old_limit(config.max_bytes, BLOCK_BYTES);
        if policy.initial_bytes == 0 {
            policy.initial_bytes = config.max_bytes / 4;
        }
        Ok(Generational {
            nursery,
            old: MarkedSpace::new(old, old_bytes, &policy, GROWTH),
            cache: Cache::default(),
            to_forward: Vec::new(),
            remembered: Vec::new(),
            old_objects: 0,
            max_bytes: config.max_bytes,
            reservation,
        })
    }

    fn attach(&mut self) -> Local {
        Local {
            cursor: 0,
            end: 0,
            young_start: Ref::from_address(self.nursery.extent().start).to_bits(),
            young_length: (self.nursery.extent().bytes >> 3) as u32,
            birth: 0,
            remembered: Vec::new(),
        }
    }

    fn retire(&mut self, local: &mut Local) {
        self.retire_chunk(local);
        self.remembered.append(&mut local.remembered);
    }

    #[inline(always)]
    fn allocate(local: &mut Local, request: Request) -> Option<usize> {
        let cell = local.cursor;
        let next = cell + request.bytes;
        // A large object is born old even when the chunk has room for it: the reserve for the
        // survivors of the nursery does not count on whole blocks.
        if next > local.end || request.class.is_large() {
            return None;
        }
        local.cursor = next;
        Some(cell)
    }

    fn refill(
        &mut self,
        _shapes: &ShapeTable,
        local: &mut Local,
        request: Request,
        effort: Effort,
    ) -> Refill {
        if request.class.is_large() {
            local.birth = self.old.sense();
            return self.allocate_large(request, effort);
        }
        if !self.old_has_room(0) {
            return Refill::Pause(Cause::AllocationFailure);
        }
        self.retire_chunk(local);
        let Some(chunk) = self.nursery.chunk(request.bytes) else {
            return Refill::Pause(Cause::NurseryFull);
        };
        local.cursor = chunk.start;
        local.end = chunk.end();
        Self::allocate(local, request).map_or(Refill::Pause(Cause::NurseryFull), Refill::Ready)
    }

    #[inline(always)]
    fn birth(local: &Local, _address: usize, header: Header) -> Header {
        Header(header.0 | local.birth)
    }

    #[inline(always)]
    unsafe fn store(local: &mut Local, _: &ShapeTable, object: usize, slot: usize, value: Ref) {
        // SAFETY: promised by the caller.
        unsafe {
            if local.is_young(value) && !local.is_young(Ref::from_address(object)) {
                // A slot that holds a young reference already is remembered already.
                if !local.is_young(object::load(slot)) {
                    local.remember(slot);
                }
            }
            object::store(slot, value);
        }
    }

    fn collect(world: &mut World<'_, Self>, work: Work) {
        world.begin(CollectionKind::Minor, work.cause());
        minor(world);
        let old = &world.collector().old;
        let full = match work {
            Work::Full(_) => true,
            Work::Step => false,
            Work::Allocation(..) => old.is_due() || !world.collector().old_has_room(0),
        };
        if !full {
            return;
        }
        let cause = match work {
            Work::Full(cause) => cause,
            _ => Cause::Threshold,
        };
        world.begin(CollectionKind::Full, cause);
        let before = world.usage();
        // SAFETY: the nursery is empty, so all objects are in the old space.
        let marked = unsafe { MarkedSpace::mark(world, |c| &c.reservation, |c| &mut c.old) };
        world.tally(marked, Amount::default(), before.amount().minus(marked));
        world.set_objects(marked.objects);
        world.collector().old_objects = marked.objects;
    }

    unsafe fn each_object(&self, shapes: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        let young = self.nursery.filled();
        // SAFETY: promised by the caller; retired chunks end with a free header.
        unsafe {
            crate::space::walk(shapes, young.start, young.end(), visit);
            self.old.each_object(visit);
        }
    }

    fn is_object_start(&self, shapes: &ShapeTable, address: usize) -> bool {
        if !self.nursery.extent().contains(address) {
            return self.old.is_object_start(address);
        }
        let young = self.nursery.filled();
        let mut found = false;
        // SAFETY: retired chunks end with a free header.
        unsafe {
            crate::space::walk(shapes, young.start, young.end(), &mut |at, _| {
                found |= at == address;
            });
        }
        found
    }

    fn used(&self) -> usize {
        self.old.used() + self.nursery.used()
    }

    fn committed(&self) -> usize {
        self.old.space.committed() + self.nursery.touched()
    }

    fn largest(&self) -> usize {
        old_limit(self.max_bytes, BLOCK_BYTES)
    }

    fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        self.old.verify(shapes)
    }
}

impl Generational {
    /// True when the old generation can take `bytes` more and still leave the reserve that a minor
    /// collection may need.
    fn old_has_room(&mut self, bytes: usize) -> bool {
        let limit = old_limit(self.max_bytes, self.nursery.size());
        if self.old.space.committed() + bytes <= limit {
            return true;
        }
        // Blocks that wait for the sweeper may turn out to be empty.
        self.old.finish_sweep();
        self.old.space.committed() + bytes <= limit
    }

    /// Takes back what is left of a mutator's chunk.
    fn retire_chunk(&mut self, local: &mut Local) {
        // SAFETY: the rest of the chunk is free, and belongs to this mutator.
        unsafe { self.nursery.give_back(local.cursor, local.end) };
        local.cursor = 0;
        local.end = 0;
    }

    fn allocate_large(&mut self, request: Request, effort: Effort) -> Refill {
        if effort == Effort::Normal && self.old.would_be_due(request.bytes) {
            return Refill::Pause(Cause::Threshold);
        }
        if !self.old_has_room(request.bytes) {
            return Refill::Pause(Cause::AllocationFailure);
        }
        match self.old.large(request.bytes) {
            Some(address) => {
                self.old_objects += 1;
                Refill::Ready(address)
            }
            None => Refill::Pause(Cause::AllocationFailure),
        }
    }
}

/// Copies what is reachable in the nursery to the old generation.
fn minor(world: &mut World<'_, Generational>) {
    let before = world.usage();
    let shapes = world.shapes();
    let this = world.collector();
    let sense = this.old.sense();
    let extent = this.nursery.extent();
    let to_forward = std::mem::take(&mut this.to_forward);
    let mut remembered = std::mem::take(&mut this.remembered);
    // The evacuation owns these while it runs, so that roots can be visited through the world.
    let cache = std::mem::take(&mut this.cache);
    let old: *mut MarkedSpace = &mut this.old;
    let mut evacuation = Evacuation {
        shapes,
        old,
        cache,
        to_forward,
        specials: Vec::new(),
        found: Vec::new(),
        nursery: extent,
        sense,
        copied: Amount::default(),
    };
    // SAFETY: the world is stopped; roots and remembered slots hold objects of this heap.
    unsafe {
        world.each_root(|root| *root = evacuation.forward(*root));
        for (i, &slot) in remembered.iter().enumerate() {
            if let Some(&ahead) = remembered.get(i + 8) {
                object::prefetch((ahead as usize) << 2);
            }
            evacuation.forward_slot((slot as usize) << 2);
        }
        remembered.clear();
        evacuation.drain();
        let (_, shapes, guardians) = world.parts();
        let outcome = weak::process(shapes, guardians, &mut evacuation);
        world.report_cleared(outcome);
    }
    let Evacuation {
        cache,
        to_forward,
        copied,
        ..
    } = evacuation;
    let this = world.collector();
    this.to_forward = to_forward;
    this.remembered = remembered;
    this.cache = cache;
    // The survivors count as used; the rest of the runs is taken back, so that blocks can be walked.
    let mut cache = std::mem::take(&mut this.cache);
    this.old.retire(&mut cache);
    this.cache = cache;
    // The larger the old generation, the smaller the nursery: both, and the reserve, are within the
    // limit.
    let room = this.max_bytes.saturating_sub(this.old.space.committed()) / 3;
    this.nursery.empty(copied.bytes as usize, room);
    this.old_objects += copied.objects;
    let survivors = this.old_objects;
    let freed = Amount {
        objects: before.objects.saturating_sub(survivors),
        bytes: before.bytes.saturating_sub(this.used() as u64),
    };
    world.tally(Amount::default(), copied, freed);
    world.set_objects(survivors);
}

/// One evacuation of the nursery.
///
/// What waits is slots, not objects: an object is touched when its slot is taken from the stack,
/// and its own slots are looked at while it is still in the cache. Depth first, the last slot
/// first: a structure that was built children first is read from its end to its beginning, as it
/// lies in memory, which measured better than writing it in the order in which it will be walked.
struct Evacuation<'a> {
    shapes: &'a ShapeTable,
    old: *mut MarkedSpace,
    cache: Cache,
    /// Addresses of slots, in units of four bytes.
    to_forward: Vec<u32>,
    specials: Vec<Ref>,
    /// Watched objects that were copied, at their old places.
    found: Vec<Ref>,
    nursery: Extent,
    sense: u64,
    copied: Amount,
}

impl Evacuation<'_> {
    #[inline(always)]
    fn is_young(&self, reference: Ref) -> bool {
        reference.is_object() && self.nursery.contains(reference.address())
    }

    #[inline(always)]
    unsafe fn forward_slot(&mut self, slot: usize) {
        // SAFETY: the caller passes a slot that holds a reference of this heap.
        unsafe {
            let old = object::load(slot);
            if self.is_young(old) {
                object::store(slot, self.evacuate(old));
            }
        }
    }

    #[inline(always)]
    unsafe fn forward(&mut self, reference: Ref) -> Ref {
        if self.is_young(reference) {
            // SAFETY: the caller passes a reference of this heap.
            unsafe { self.evacuate(reference) }
        } else {
            reference
        }
    }

    #[inline(always)]
    unsafe fn evacuate(&mut self, reference: Ref) -> Ref {
        let from = reference.address();
        // SAFETY: `reference` is an object in the nursery, or its forwarded remains.
        unsafe {
            let word = object::header(from);
            if let Some(target) = word.forwarding() {
                return target;
            }
            let layout = self.shapes.layout(word.shape());
            let (bytes, class) = if layout.form == Form::Fixed {
                (layout.bytes as usize, layout.class)
            } else {
                let bytes = object::bytes(self.shapes, word);
                (bytes, SizeClass::of(bytes))
            };
            let to = match self.cache.take(class) {
                Some(cell) => cell,
                None => self.cell_slowly(class),
            };
            let target = Ref::from_address(to);
            object::set_header(from, word.forwarded_to(target));
            object::set_header(to, Header(word.0 & !MARK | self.sense));
            object::copy(from + 8, to + 8, bytes - 8);
            self.copied.objects += 1;
            self.copied.bytes += bytes as u64;
            let special = object::each_strong_slot(self.shapes, to, word, |slot| {
                if self.is_young(object::load(slot)) {
                    self.to_forward.push((slot >> 2) as u32);
                }
            });
            if special {
                self.specials.push(target);
            }
            if word.has(WATCHED) {
                object::set_header(to, Header(object::header(to).0 & !WATCHED));
                self.found.push(reference);
            }
            target
        }
    }

    #[cold]
    #[inline(never)]
    fn cell_slowly(&mut self, class: SizeClass) -> usize {
        // SAFETY: the old generation is touched by nobody else during the evacuation.
        let old = unsafe { &mut *self.old };
        old.cell(&mut self.cache, class)
            .expect("the reserve holds the whole nursery")
    }
}

impl Fate for Evacuation<'_> {
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref> {
        if !self.nursery.contains(reference.address()) {
            // Old objects are not collected now.
            return Some(reference);
        }
        // SAFETY: promised by the caller.
        unsafe { object::header(reference.address()) }.forwarding()
    }

    unsafe fn keep(&mut self, reference: Ref) -> Ref {
        // SAFETY: promised by the caller.
        unsafe { self.forward(reference) }
    }

    unsafe fn drain(&mut self) {
        while let Some(slot) = self.to_forward.pop() {
            let slot = (slot as usize) << 2;
            // SAFETY: the slot is in an object that was copied just now, and leads into the
            // nursery.
            unsafe {
                let now = self.evacuate(object::load(slot));
                object::store(slot, now);
            }
        }
    }

    fn take_specials(&mut self) -> Vec<Ref> {
        std::mem::take(&mut self.specials)
    }

    unsafe fn watch(&mut self, key: Ref) -> bool {
        // SAFETY: promised by the caller; an object that has not survived is in the nursery, and
        // not forwarded.
        unsafe {
            let word = object::header(key.address());
            object::set_header(key.address(), Header(word.0 | WATCHED));
        }
        true
    }

    fn take_found(&mut self) -> Vec<Ref> {
        std::mem::take(&mut self.found)
    }
}
