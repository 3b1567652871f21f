//! The copying loop: evacuates the live objects of a part of the heap.
//!
//! An object is copied when the first reference to it is met, and leaves its new reference behind
//! in its header; every further reference is then changed to that. Copied objects wait on a stack
//! until their own slots are looked at, so that the copy is depth first: what is reached from an
//! object is placed near it. (Cheney's queue in the copied objects themselves needs no stack, but
//! scatters every structure breadth first.)
//!
//! As in [`crate::trace`], the time goes into waiting for headers. So a copied object passes through
//! a short queue on its way from the stack to the scan, and when it enters, the lines that its slots
//! lead to are asked for. A long array of references is looked at piecewise, and what its beginning
//! leads to is copied before the rest is looked at.
//!
//! What is evacuated, and where to, is a [`Migration`]. All decisions about a slot fall in
//! [`Evacuation::forward`], and all slots are enumerated in `scan`: a policy that treats slots
//! differently has these two places to speak up.
//!
//! Invariant between two calls: every object that has been copied (or kept in place) has had its
//! strong slots forwarded, or is on the stack, in the queue, or among the arrays begun.

use crate::header::{HEADER_BYTES, Header};
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, Layout, ShapeTable};
use crate::space::RefRange;
use crate::stats::Amount;
use crate::weak::Fate;

/// Which objects are to be copied, and where to.
pub trait Migration {
    /// How many objects are in the queue while the targets of their slots are fetched: 1 when what
    /// is evacuated fits into the cache, at most [`QUEUE`].
    const AHEAD: usize = QUEUE;

    /// The references whose objects are to be copied.
    fn from(&self) -> RefRange;

    /// Memory for a copy. There must always be room: the migration is planned for the worst case.
    ///
    /// # Safety
    /// `bytes` is the size of an object with this layout that has not been copied before.
    unsafe fn place(&mut self, layout: &Layout, bytes: usize) -> usize;

    /// The header that the copy gets.
    #[inline(always)]
    fn arrival(&self, word: Header) -> Header {
        word
    }

    /// Meets a reference to an object that stays where it is. True when its slots must be looked
    /// at, because it belongs to what is collected and was met for the first time.
    fn meet(&mut self, resident: Ref) -> bool;

    /// True when an object that stays where it is has survived so far.
    fn survives(&self, resident: Ref) -> bool;
}

/// Places in the queue.
pub const QUEUE: usize = 16;
const _: () = assert!(QUEUE.is_power_of_two());

/// Arrays are looked at in pieces of this many slots.
const PIECE: usize = 32;

/// An array of references that has been looked at up to some slot.
#[derive(Clone, Copy, Debug)]
struct Begun {
    array: Ref,
    next: u32,
}

/// The lists of an evacuation, kept from one to the next for their capacity.
#[derive(Default, Debug)]
pub struct Worklists {
    stack: Vec<Ref>,
    arrays: Vec<Begun>,
}

/// One evacuation. See the [module text](self).
pub struct Evacuation<'a, M: Migration> {
    shapes: &'a ShapeTable,
    /// The plan.
    pub migration: M,
    from: RefRange,
    lists: Worklists,
    queue: [Ref; QUEUE],
    head: usize,
    queued: usize,
    specials: Vec<Ref>,
    /// What has been copied.
    pub copied: Amount,
}

impl<'a, M: Migration> Evacuation<'a, M> {
    /// An evacuation that has not begun.
    pub fn new(shapes: &'a ShapeTable, migration: M, lists: Worklists) -> Evacuation<'a, M> {
        debug_assert!(lists.stack.is_empty() && lists.arrays.is_empty());
        Evacuation {
            shapes,
            from: migration.from(),
            migration,
            lists,
            queue: [Ref::NULL; QUEUE],
            head: 0,
            queued: 0,
            specials: Vec::new(),
            copied: Amount::default(),
        }
    }

    /// The migration as it has become, the lists, and what was copied.
    pub fn finish(self) -> (M, Worklists, Amount) {
        debug_assert!(self.lists.stack.is_empty() && self.queued == 0);
        (self.migration, self.lists, self.copied)
    }

    /// The reference that takes the place of `reference`; its object is copied if it has not been.
    ///
    /// # Safety
    /// `reference` is null, an immediate, or led to an object when the evacuation began.
    #[inline(always)]
    pub unsafe fn forward(&mut self, reference: Ref) -> Ref {
        if self.from.contains(reference) {
            // SAFETY: promised by the caller.
            unsafe { self.evacuate(reference) }
        } else {
            if reference.is_object() {
                self.meet(reference);
            }
            reference
        }
    }

    /// Forwards the reference in a slot.
    ///
    /// # Safety
    /// `slot` is a reference slot, and its contents are as for [`Evacuation::forward`].
    #[inline(always)]
    pub unsafe fn forward_slot(&mut self, slot: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let old = object::load(slot);
            if self.from.contains(old) {
                let new = self.evacuate(old);
                object::store(slot, new);
            } else if old.is_object() {
                self.meet(old);
            }
        }
    }

    #[inline(never)]
    fn meet(&mut self, resident: Ref) {
        if self.migration.meet(resident) {
            self.lists.stack.push(resident);
        }
    }

    #[inline(always)]
    unsafe fn evacuate(&mut self, reference: Ref) -> Ref {
        let from = reference.address();
        // SAFETY: `reference` is an object in the range to be emptied, or its forwarded remains.
        unsafe {
            let word = object::header(from);
            if let Some(target) = word.forwarding() {
                return target;
            }
            debug_assert!(!word.is_free(), "{reference:?} is reachable and free");
            let layout = self.shapes.layout(word.shape());
            let bytes = match layout.form {
                Form::Fixed | Form::Special => layout.bytes as usize,
                _ => object::bytes(self.shapes, word),
            };
            let to = self.migration.place(layout, bytes);
            object::copy(from + HEADER_BYTES, to + HEADER_BYTES, bytes - HEADER_BYTES);
            object::set_header(to, self.migration.arrival(word));
            let target = Ref::from_address(to);
            object::set_header(from, word.forwarded_to(target));
            self.copied.objects += 1;
            self.copied.bytes += bytes as u64;
            if has_references(layout) {
                self.lists.stack.push(target);
            }
            target
        }
    }

    /// Looks at the slots of a copied object.
    #[inline(always)]
    unsafe fn scan(&mut self, object: Ref) {
        let address = object.address();
        let shapes = self.shapes;
        // SAFETY: what is to be scanned has been copied, or stays.
        unsafe {
            let word = object::header(address);
            let layout = shapes.layout(word.shape());
            if layout.form == Form::References && word.aux() as usize > PIECE {
                self.lists.arrays.push(Begun {
                    array: object,
                    next: 0,
                });
                return;
            }
            if object::each_strong_slot(shapes, address, word, |slot| self.forward_slot(slot)) {
                self.specials.push(object);
            }
        }
    }

    /// Looks at the next piece of the array begun last. False when there is none.
    unsafe fn scan_piece(&mut self) -> bool {
        let Some(begun) = self.lists.arrays.last_mut() else {
            return false;
        };
        let address = begun.array.address();
        // SAFETY: the array has been copied, or stays; the slots are within its length.
        unsafe {
            let length = object::header(address).aux() as usize;
            let start = begun.next as usize;
            let end = length.min(start + PIECE);
            begun.next = end as u32;
            if end == length {
                self.lists.arrays.pop();
            }
            for slot in start..end {
                object::prefetch(object::load(object::slot_address(address, slot)).address());
            }
            for slot in start..end {
                self.forward_slot(object::slot_address(address, slot));
            }
        }
        true
    }

    /// Asks for the headers that the slots of `object` lead to.
    #[inline(always)]
    unsafe fn fetch_targets(&self, object: Ref) {
        let address = object.address();
        // SAFETY: what is to be scanned has been copied, or stays.
        unsafe {
            let layout = self.shapes.layout(object::header(address).shape());
            let mut map = layout.map;
            while map != 0 {
                let slot = object::slot_address(address, map.trailing_zeros() as usize);
                object::prefetch(object::load(slot).address());
                map &= map - 1;
            }
        }
    }
}

/// True when objects of this layout can hold references.
#[inline(always)]
fn has_references(layout: &Layout) -> bool {
    match layout.form {
        Form::Fixed => layout.map != 0,
        form => form != Form::Data,
    }
}

impl<M: Migration> Fate for Evacuation<'_, M> {
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref> {
        if self.from.contains(reference) {
            // SAFETY: promised by the caller.
            return unsafe { object::header(reference.address()) }.forwarding();
        }
        self.migration.survives(reference).then_some(reference)
    }

    unsafe fn keep(&mut self, reference: Ref) -> Ref {
        // SAFETY: promised by the caller.
        unsafe { self.forward(reference) }
    }

    unsafe fn drain(&mut self) {
        // SAFETY: what is on the lists has been copied, or stays.
        unsafe {
            loop {
                while self.queued < M::AHEAD {
                    let Some(next) = self.lists.stack.pop() else {
                        break;
                    };
                    if M::AHEAD > 1 {
                        self.fetch_targets(next);
                    }
                    self.queue[(self.head + self.queued) % QUEUE] = next;
                    self.queued += 1;
                }
                if self.queued == 0 {
                    if self.scan_piece() {
                        continue;
                    }
                    return;
                }
                let next = self.queue[self.head];
                self.head = (self.head + 1) % QUEUE;
                self.queued -= 1;
                self.scan(next);
            }
        }
    }

    fn take_specials(&mut self) -> Vec<Ref> {
        std::mem::take(&mut self.specials)
    }
}
