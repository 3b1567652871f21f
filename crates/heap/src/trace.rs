//! The marker: which objects can be reached, computed as fast as memory allows.
//!
//! Marking waits for memory: the header of almost every object on a large heap is a cache miss.
//! So references wait on their way from the stack to the scan in a short queue ([`Frontier`]), in
//! which the line of each is being fetched; the mark bit is tested when a reference leaves the
//! queue, when its header has arrived. (Boehm, "Reducing garbage collector cache misses", ISMM
//! 2000.)
//!
//! Invariant between two calls: every object that is marked has had all its strong slots pushed,
//! and every reference pushed is marked, in the queue, or on the stack.

use crate::frontier::Frontier;
use crate::header::{Header, MARK, WATCHED};
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;

/// Marks what is reachable from what is pushed.
pub struct Marker<'a> {
    shapes: &'a ShapeTable,
    /// The value of the mark bit that means "marked" in this cycle.
    sense: u64,
    frontier: Frontier,
    /// Objects with weak slots or ephemerons that were marked: weak processing wants them.
    pub specials: Vec<Ref>,
    /// Watched objects that were marked; see [`crate::weak::Fate::watch`].
    found: Vec<Ref>,
    /// Objects marked.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl<'a> Marker<'a> {
    /// A marker for which `sense` (0 or [`MARK`]) means "marked".
    pub fn new(shapes: &'a ShapeTable, sense: u64, stack: Vec<Ref>) -> Marker<'a> {
        Marker {
            shapes,
            sense,
            frontier: Frontier::new(stack),
            specials: Vec::new(),
            found: Vec::new(),
            objects: 0,
            bytes: 0,
        }
    }

    /// The value of the mark bit that means "marked".
    pub fn sense(&self) -> u64 {
        self.sense
    }

    /// The empty stack, to be used again by the next cycle.
    pub fn into_stack(self) -> Vec<Ref> {
        self.frontier.stack
    }

    /// Adds a reference to what is to be marked.
    #[inline(always)]
    pub fn push(&mut self, reference: Ref) {
        self.frontier.push(reference);
    }

    /// Marks until nothing is left.
    ///
    /// # Safety
    /// The world is stopped, and every reference pushed or reachable from there is an object of the
    /// heap with these shapes.
    pub unsafe fn drain(&mut self) {
        let fetch = |next: Ref| object::prefetch(next.address());
        while let Some(next) = self.frontier.next(fetch) {
            // SAFETY: promised by the caller.
            unsafe { self.visit(next) };
        }
    }

    #[inline(always)]
    unsafe fn visit(&mut self, reference: Ref) {
        let address = reference.address();
        // SAFETY: by the caller's promise `reference` is an object.
        unsafe {
            let word = object::header(address);
            debug_assert!(!word.is_free(), "{reference:?} is reachable and free");
            if object::is_marked(word, self.sense) {
                return;
            }
            object::set_header(address, Header(word.0 ^ MARK));
            self.objects += 1;
            self.bytes += object::bytes(self.shapes, word) as u64;
            let frontier = &mut self.frontier;
            let special = object::each_strong_slot(self.shapes, address, word, |slot| {
                frontier.push(object::load(slot));
            });
            if special {
                self.specials.push(reference);
            }
            if word.has(WATCHED) {
                object::set_header(address, Header((word.0 ^ MARK) & !WATCHED));
                self.found.push(reference);
            }
        }
    }
}

impl crate::weak::Fate for Marker<'_> {
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref> {
        // SAFETY: promised by the caller; nothing is freed before marking ends.
        let word = unsafe { object::header(reference.address()) };
        object::is_marked(word, self.sense).then_some(reference)
    }

    unsafe fn keep(&mut self, reference: Ref) -> Ref {
        self.push(reference);
        reference
    }

    unsafe fn drain(&mut self) {
        // SAFETY: promised by the caller.
        unsafe { Marker::drain(self) }
    }

    fn take_specials(&mut self) -> Vec<Ref> {
        std::mem::take(&mut self.specials)
    }

    unsafe fn watch(&mut self, key: Ref) -> bool {
        // SAFETY: promised by the caller.
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
