//! Tracing real objects: what [`protocol::Tracer`](super::protocol::Tracer) means for headers and
//! slots.
//!
//! Mark bits are set by one thread at a time (whoever holds the work set), but in words in which
//! mutators may set their own bits meanwhile: so by an atomic read-modify-write. Slots are read as
//! they are found; whether the marker sees a slot before or after a mutator's store does not matter,
//! since the mutator has shaded the value before it stored it.

use super::protocol::{Node, Tracer, WorkSet};
use crate::header::{Header, MARK};
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, ShapeTable};
use crate::stats::Amount;
use crate::weak::Fate;
use std::sync::atomic::Ordering;

/// Arrays of references with more elements are scanned in pieces of this length.
const SEGMENT: u32 = 1024;

/// Ephemerons looked at between two polls.
const EPHEMERONS: usize = 256;

impl Node for Ref {
    #[inline(always)]
    fn is_node(self) -> bool {
        self.is_object()
    }
}

/// An array that is marked, and whose elements from `from` on have not been scanned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) array: Ref,
    pub(super) from: u32,
}

/// What one cycle of marking has found so far.
#[derive(Default, Debug)]
pub(super) struct Found {
    /// The value of the mark bit that means "in S".
    pub(super) sense: u64,
    /// Rests of large arrays.
    pub(super) segments: Vec<Segment>,
    /// Marked objects with weak slots, and ephemerons: weak processing wants them.
    pub(super) specials: Vec<Ref>,
    /// The ephemerons among the specials.
    ephemerons: Vec<Ref>,
    /// Where the pass over the ephemerons stands.
    next_ephemeron: usize,
    /// This pass has added work.
    pass_found: bool,
    /// What was marked.
    pub(super) marked: Amount,
}

impl Found {
    /// Forgets the last cycle.
    pub(super) fn start(&mut self, sense: u64) {
        debug_assert!(self.segments.is_empty());
        self.sense = sense;
        self.specials.clear();
        self.forget_ephemerons();
        self.marked = Amount::default();
    }

    /// Marking has ended: ephemerons may be freed from now on.
    pub(super) fn forget_ephemerons(&mut self) {
        self.ephemerons.clear();
        self.next_ephemeron = 0;
        self.pass_found = false;
    }
}

/// Traces objects of the heap with these shapes.
pub(super) struct Marker<'a> {
    shapes: &'a ShapeTable,
    found: &'a mut Found,
}

impl<'a> Marker<'a> {
    /// # Safety
    /// As long as the marker is used, every reference that it is given, and every reference that it
    /// finds in a slot, is an object of the heap with these shapes that has not been freed.
    pub(super) unsafe fn new(shapes: &'a ShapeTable, found: &'a mut Found) -> Marker<'a> {
        Marker { shapes, found }
    }

    /// Looks at some ephemerons: the value of one whose key is in S belongs to WS. This is done
    /// while the mutators run, so that little is left for the pause; what a mutator does to an
    /// ephemeron meanwhile is covered by the barrier, as for any slot. True when a pass over all of
    /// them has added nothing.
    pub(super) fn settle(&mut self, set: &mut WorkSet<Ref>) -> bool {
        let from = self.found.next_ephemeron;
        let to = (from + EPHEMERONS).min(self.found.ephemerons.len());
        let mut found_some = false;
        for &ephemeron in &self.found.ephemerons[from..to] {
            let address = ephemeron.address();
            // SAFETY: a marked ephemeron is an object; its slots hold objects, by `new`.
            unsafe {
                let info = object::special(self.shapes, object::header(address));
                let Some((key, value)) = info.ephemeron else {
                    continue;
                };
                let key = object::load(address + key as usize);
                let value = object::load(address + value as usize);
                if value.is_object()
                    && (!key.is_object() || self.is_marked(key))
                    && !self.is_marked(value)
                {
                    set.push(value);
                    found_some = true;
                }
            }
        }
        self.found.pass_found |= found_some;
        self.found.next_ephemeron = to;
        if to < self.found.ephemerons.len() {
            return false;
        }
        self.found.next_ephemeron = 0;
        !std::mem::take(&mut self.found.pass_found)
    }

    #[inline(always)]
    unsafe fn is_marked(&self, reference: Ref) -> bool {
        // SAFETY: the caller passes an object.
        let word = unsafe { object::header(reference.address()) };
        object::is_marked(word, self.found.sense)
    }

    #[cold]
    fn note_special(&mut self, reference: Ref, word: Header) {
        let info = object::special(self.shapes, word);
        // Shapes that are special only because they have many slots need nothing in the pause.
        if info.ephemeron.is_some() || !info.weak.is_empty() || !info.phantom.is_empty() {
            self.found.specials.push(reference);
        }
        if info.ephemeron.is_some() {
            self.found.ephemerons.push(reference);
        }
    }
}

impl Tracer for Marker<'_> {
    type Node = Ref;

    #[inline(always)]
    fn expect(&self, node: Ref) {
        object::prefetch(node.address());
    }

    #[inline(always)]
    fn trace(&mut self, node: Ref, found: &mut Vec<Ref>) {
        let address = node.address();
        // SAFETY: by the promise of `new`, `node` is an object.
        unsafe {
            let word = object::header(address);
            debug_assert!(!word.is_free(), "{node:?} is reachable and free");
            if object::is_marked(word, self.found.sense) {
                return;
            }
            object::header_cell(address).fetch_xor(MARK, Ordering::Relaxed);
            self.found.marked.objects += 1;
            self.found.marked.bytes += object::bytes(self.shapes, word) as u64;
            if self.shapes.layout(word.shape()).form == Form::References && word.aux() > SEGMENT {
                self.found.segments.push(Segment {
                    array: node,
                    from: 0,
                });
                return;
            }
            let special = object::each_strong_slot(self.shapes, address, word, |slot| {
                let target = object::load(slot);
                if target.is_object() {
                    found.push(target);
                }
            });
            if special {
                self.note_special(node, word);
            }
        }
    }

    fn trace_rest(&mut self, found: &mut Vec<Ref>) -> bool {
        let Some(segment) = self.found.segments.last_mut() else {
            return false;
        };
        let address = segment.array.address();
        // SAFETY: the array is an object, and its length never changes.
        unsafe {
            let length = object::header(address).aux();
            let end = length.min(segment.from + SEGMENT);
            for slot in segment.from..end {
                let target = object::load(object::slot_address(address, slot as usize));
                if target.is_object() {
                    found.push(target);
                }
            }
            segment.from = end;
            if end == length {
                self.found.segments.pop();
            }
        }
        true
    }
}

/// Weak processing at the end of a cycle, with the world stopped.
pub(super) struct Verdict<'a, 'b> {
    pub(super) marker: &'a mut Marker<'b>,
    pub(super) set: &'a mut WorkSet<Ref>,
}

impl Fate for Verdict<'_, '_> {
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref> {
        // SAFETY: promised by the caller; nothing is freed before marking ends.
        unsafe { self.marker.is_marked(reference) }.then_some(reference)
    }

    unsafe fn keep(&mut self, reference: Ref) -> Ref {
        self.set.push(reference);
        reference
    }

    unsafe fn drain(&mut self) {
        while !self.set.advance(self.marker, usize::MAX) {}
    }

    fn take_specials(&mut self) -> Vec<Ref> {
        std::mem::take(&mut self.marker.found.specials)
    }
}
