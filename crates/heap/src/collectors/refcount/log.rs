//! The log: what the mutators overwrote since the last epoch.
//!
//! Coalescing (Levanoni and Petrank, "An on-the-fly reference-counting garbage collector for Java",
//! OOPSLA 2001): between two epochs a slot may be overwritten many times, with
//! `o0, o1, …, on`. Of all the increments and decrements that this means, only the decrement of
//! `o0` and the increment of `on` matter. So the barrier notes what was there *before the first*
//! store of the epoch, and the epoch compares it with what is there then.
//!
//! The unit is the object where objects are small: the flag `LOGGED` says that its slots have been
//! noted. In a large array of references one store must not cost a copy of the array, and a random
//! one would drag in neighbours that did not change. There the unit is the slot: a map beside the
//! heap has a bit for each, and the header's flag stays clear. (The paper has cards for this; a slot
//! is exact, and costs one bit of address space per four bytes, touched only where such arrays lie.)
//! Objects of special shape are logged by slots too, since not all of their slots count.
//!
//! Several mutators may store into the same object at once. Each reads the old values first and sets
//! the flag then, atomically; who finds it set already throws away what it read. The one who set it
//! read before anybody could store, since a store happens only after its thread has seen the flag.

use crate::header::{Header, LOGGED};
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, ShapeTable};
use crate::space::Extent;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Arrays of references up to this length are logged as a whole.
const WHOLE_ARRAY: u32 = 16;

/// What was there before the first store of the epoch.
#[derive(Default, Debug)]
pub(super) struct Log {
    /// Objects logged as a whole.
    pub(super) objects: Vec<Ref>,
    /// The old values of all their strong slots, in the same order.
    pub(super) values: Vec<Ref>,
    /// Single slots, each with its old value.
    pub(super) slots: Vec<(SlotRef, Ref)>,
}

/// The address of a slot, in units of four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SlotRef(u32);

impl SlotRef {
    fn new(address: usize) -> SlotRef {
        SlotRef((address >> 2) as u32)
    }

    /// The slot's address.
    #[inline(always)]
    pub(super) fn address(self) -> usize {
        (self.0 as usize) << 2
    }
}

/// Which single slots have been logged.
#[derive(Debug)]
pub(super) struct LoggedSlots {
    start: usize,
    bits: Box<[AtomicU8]>,
}

impl LoggedSlots {
    /// A map for the slots in `extent`, none logged.
    pub(super) fn new(extent: Extent) -> LoggedSlots {
        let bits = Box::new_zeroed_slice(extent.bytes / 32 + 1);
        LoggedSlots {
            start: extent.start,
            // SAFETY: all zeroes is a row of zeroes. Zeroed memory costs nothing until touched.
            bits: unsafe { bits.assume_init() },
        }
    }

    fn place(&self, slot: usize) -> (&AtomicU8, u8) {
        let index = (slot - self.start) / 4;
        (&self.bits[index / 8], 1 << (index % 8))
    }

    /// True when the slot has been logged.
    pub(super) fn has(&self, slot: usize) -> bool {
        let (byte, bit) = self.place(slot);
        byte.load(Ordering::Acquire) & bit != 0
    }

    /// Notes that the slot has been logged; false when it had been already.
    fn set(&self, slot: usize) -> bool {
        let (byte, bit) = self.place(slot);
        byte.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    /// Notes that the slot is not logged. The world is stopped.
    pub(super) fn clear(&self, slot: usize) {
        let (byte, bit) = self.place(slot);
        byte.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// A mutator's log, with the map that all share.
#[derive(Debug)]
pub(super) struct LocalLog {
    pub(super) log: Log,
    pub(super) logged: Arc<LoggedSlots>,
}

impl LocalLog {
    /// The barrier of a store into `slot` of `object`, whose header is `word`, not logged.
    ///
    /// # Safety
    /// `slot` is a reference slot of `object`, an object of the heap with these shapes.
    #[inline(never)]
    pub(super) unsafe fn note(
        &mut self,
        shapes: &ShapeTable,
        object: usize,
        word: Header,
        slot: usize,
    ) {
        let form = shapes.layout(word.shape()).form;
        // SAFETY: passed on from the caller.
        unsafe {
            match form {
                Form::Fixed => self.note_object(shapes, object, word),
                Form::References if word.aux() <= WHOLE_ARRAY => {
                    self.note_object(shapes, object, word)
                }
                Form::References => self.note_slot(slot),
                Form::Special => {
                    let offset = (slot - object) as u32;
                    if object::special(shapes, word).strong.contains(&offset) {
                        self.note_slot(slot);
                    }
                }
                Form::Data | Form::Free => debug_assert!(false, "no reference slot there"),
            }
        }
    }

    /// # Safety
    /// `object` is an object of the heap with these shapes, and `word` was its header.
    unsafe fn note_object(&mut self, shapes: &ShapeTable, object: usize, word: Header) {
        let values = &mut self.log.values;
        let before = values.len();
        // SAFETY: promised by the caller.
        unsafe {
            object::each_strong_slot(shapes, object, word, |slot| values.push(object::load(slot)));
            if object::header_cell(object).fetch_or(LOGGED, Ordering::AcqRel) & LOGGED == 0 {
                self.log.objects.push(Ref::from_address(object));
            } else {
                values.truncate(before);
            }
        }
    }

    /// # Safety
    /// `slot` is a strong slot of an object.
    unsafe fn note_slot(&mut self, slot: usize) {
        if self.logged.has(slot) {
            return;
        }
        // SAFETY: promised by the caller. The value is read before the bit is set: see the module.
        let old = unsafe { object::load(slot) };
        if self.logged.set(slot) {
            self.log.slots.push((SlotRef::new(slot), old));
        }
    }
}

impl Log {
    /// How much has been noted.
    pub(super) fn len(&self) -> usize {
        self.values.len() + self.slots.len()
    }

    /// Moves all of `other` here.
    pub(super) fn absorb(&mut self, other: &mut Log) {
        if self.objects.is_empty() && self.slots.is_empty() {
            // The other gets an empty log with capacity.
            std::mem::swap(self, other);
            return;
        }
        self.objects.append(&mut other.objects);
        self.values.append(&mut other.values);
        self.slots.append(&mut other.slots);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, logged: &LoggedSlots) {
        for (slot, _) in &self.slots {
            logged.clear(slot.address());
        }
        self.objects.clear();
        self.values.clear();
        self.slots.clear();
    }

    /// Compares what was with what is. Calls `gained` with each reference that a slot holds now and
    /// did not hold, and `lost` with each that it held and does not hold now. The objects and slots
    /// are not logged any more, and the log is empty.
    ///
    /// # Safety
    /// The world is stopped, and what was logged has not been freed.
    pub(super) unsafe fn settle(
        &mut self,
        shapes: &ShapeTable,
        logged: &LoggedSlots,
        mut gained: impl FnMut(Ref),
        mut lost: impl FnMut(Ref),
    ) {
        let mut compare = |old: Ref, new: Ref| {
            if old != new {
                if new.is_object() {
                    gained(new);
                }
                if old.is_object() {
                    lost(old);
                }
            }
        };
        let mut values = self.values.iter();
        for (i, object) in self.objects.iter().enumerate() {
            if let Some(ahead) = self.objects.get(i + 8) {
                object::prefetch(ahead.address());
            }
            // SAFETY: promised by the caller.
            unsafe {
                let word = object::header(object.address());
                object::set_header(object.address(), Header(word.0 & !LOGGED));
                object::each_strong_slot(shapes, object.address(), word, |slot| {
                    let old = values.next().copied().unwrap_or(Ref::NULL);
                    compare(old, object::load(slot));
                });
            }
        }
        for (i, &(slot, old)) in self.slots.iter().enumerate() {
            if let Some((ahead, _)) = self.slots.get(i + 8) {
                object::prefetch(ahead.address());
            }
            // SAFETY: as above.
            compare(old, unsafe { object::load(slot.address()) });
        }
        self.clear(logged);
    }
}
