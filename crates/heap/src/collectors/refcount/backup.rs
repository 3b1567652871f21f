//! The backup: trace everything, and count it anew.
//!
//! A trace decides exactly who is alive, weak slots, ephemerons and guardians included, and it
//! meets every reference between living objects once, which is all that counting is. So it starts by
//! forgetting everything that was known: counts, log, candidates, who is new and who is watched. What
//! is left afterwards is a heap in which every count is right, nothing is logged, nobody is new, and
//! the watched are those that a surviving slot or guardian names.
//!
//! Colours: white has not been reached, black has.

use super::RefCount;
use super::count::{self, Colour, Counts};
use super::epoch::footprint;
use crate::frontier::Frontier;
use crate::header::{Header, USER_FLAG_0, USER_FLAG_1, WATCHED};
use crate::heap::World;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Kind, ShapeTable};
use crate::stats::{Amount, Cause, CollectionKind};
use crate::weak::{self, Fate};

/// Flags that survive the forgetting.
const KEPT: u64 = !0xffff | USER_FLAG_0 | USER_FLAG_1;

/// Runs the trace, and records it.
pub(super) fn run(world: &mut World<'_, RefCount>, cause: Cause) {
    world.begin(CollectionKind::Full, cause);
    let before = world.usage();
    let shapes = world.shapes();
    let this = world.collector();
    this.forget();
    let mut trace = Trace {
        shapes,
        counts: std::mem::take(&mut this.counts),
        frontier: Frontier::new(std::mem::take(&mut this.work)),
        specials: Vec::new(),
        taken: Vec::new(),
        reached: Amount::default(),
    };
    // SAFETY: the world is stopped, and all objects are white.
    unsafe {
        world.each_root(|root| trace.keep_object(*root));
        trace.drain();
        let (_, _, guardians) = world.parts();
        let outcome = weak::process(shapes, guardians, &mut trace);
        world.report_cleared(outcome);
        // Who was brought back, and who was reported, is a root now.
        let mut roots = Vec::new();
        world.each_root(|root| roots.push(*root));
        for &root in roots.iter().filter(|root| root.is_object()) {
            trace.counts.increment(root);
        }
        let (this, _, guardians) = world.parts();
        this.counts = std::mem::take(&mut trace.counts);
        this.work = std::mem::take(&mut trace.frontier.stack);
        this.roots = roots;
        this.watch_again(shapes, &trace.taken, guardians.watched.iter().map(|w| w.0));
        this.sweep(shapes);
    }
    let after = this_counted(world);
    world.tally(
        trace.reached,
        Amount::default(),
        before.amount().minus(after),
    );
    world.set_objects(after.objects);
}

fn this_counted(world: &mut World<'_, RefCount>) -> Amount {
    world.collector().counted
}

impl RefCount {
    /// Forgets all that counting knows; all objects are white.
    fn forget(&mut self) {
        self.log.clear(&self.logged);
        self.counts.clear();
        self.candidates.clear();
        self.blocks.clear();
        self.roots.clear();
        self.watched.clear();
        self.pinned = 0;
        self.young_bytes = 0;
        // SAFETY: the world is stopped, and the caches have been retired.
        unsafe {
            self.space.each_object(|address, word| {
                let word = count::painted(Header(word.0 & KEPT), Colour::White);
                object::set_header(address, word);
            });
        }
    }

    /// Watches what the slots of surviving special objects that are not strong refer to, and what
    /// is guarded.
    ///
    /// # Safety
    /// These are surviving objects, and weak processing has been done.
    unsafe fn watch_again(
        &mut self,
        shapes: &ShapeTable,
        specials: &[Ref],
        guarded: impl Iterator<Item = Ref>,
    ) {
        let mut watched: Vec<Ref> = guarded.collect();
        for special in specials {
            // SAFETY: promised by the caller.
            unsafe {
                let word = object::header(special.address());
                object::each_reference_slot(shapes, special.address(), word, |kind, slot| {
                    let target = object::load(slot);
                    if kind != Kind::Reference && target.is_object() {
                        watched.push(target);
                    }
                });
            }
        }
        watched.retain(|&target| {
            // SAFETY: what a surviving slot refers to has survived.
            unsafe {
                let word = object::header(target.address());
                let first = !word.has(WATCHED);
                if first {
                    object::set_header(target.address(), Header(word.0 | WATCHED));
                    self.counts.increment(target);
                }
                first
            }
        });
        self.pinned = watched.len();
        self.watched = watched;
    }

    /// Frees what is white, and takes stock of what is not.
    ///
    /// # Safety
    /// What is white is dead.
    unsafe fn sweep(&mut self, shapes: &ShapeTable) {
        let live = |word| count::is(word, Colour::Black);
        // SAFETY: promised by the caller.
        unsafe {
            self.space.schedule_sweep();
            self.space.finish_sweep(live);
            self.space.sweep_large(shapes, live);
            let mut counted = Amount::default();
            let (blocks, pool) = (&mut self.blocks, self.space.pool());
            self.space.each_object(|address, word| {
                let (class, bytes) = footprint(shapes, word);
                counted.objects += 1;
                counted.bytes += bytes as u64;
                if !class.is_large() {
                    blocks.adopt(pool.block_of(address));
                }
            });
            self.counted = counted;
        }
        self.blocks.list_again(&mut self.space);
    }
}

/// A trace that counts. What is in the frontier is a reference that has not been counted yet.
struct Trace<'a> {
    shapes: &'a ShapeTable,
    counts: Counts,
    frontier: Frontier,
    /// Special objects reached, for weak processing.
    specials: Vec<Ref>,
    /// Special objects that weak processing has taken.
    taken: Vec<Ref>,
    reached: Amount,
}

impl Trace<'_> {
    /// Makes the object survive without a count: what keeps it is not a strong slot.
    ///
    /// # Safety
    /// The world is stopped, and `reference` is no object or one of this heap.
    unsafe fn keep_object(&mut self, reference: Ref) {
        if !reference.is_object() {
            return;
        }
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(reference.address());
            if count::is(word, Colour::White) {
                self.blacken(reference, word);
            }
        }
    }

    /// Writes the header of an object that was just reached, and puts its references on the stack.
    ///
    /// # Safety
    /// The world is stopped, `reference` is an object, and `word` is to be its header but for the
    /// colour.
    #[inline(always)]
    unsafe fn blacken(&mut self, reference: Ref, word: Header) {
        let address = reference.address();
        // SAFETY: promised by the caller.
        unsafe {
            object::set_header(address, count::painted(word, Colour::Black));
            self.reached.objects += 1;
            self.reached.bytes += object::bytes(self.shapes, word) as u64;
            let frontier = &mut self.frontier;
            let special = object::each_strong_slot(self.shapes, address, word, |slot| {
                frontier.push(object::load(slot));
            });
            if special {
                self.specials.push(reference);
            }
        }
    }
}

impl Fate for Trace<'_> {
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref> {
        // SAFETY: promised by the caller; nothing is freed before the trace ends.
        let word = unsafe { object::header(reference.address()) };
        count::is(word, Colour::Black).then_some(reference)
    }

    unsafe fn keep(&mut self, reference: Ref) -> Ref {
        // SAFETY: promised by the caller.
        unsafe { self.keep_object(reference) };
        reference
    }

    unsafe fn drain(&mut self) {
        let fetch = |next: Ref| object::prefetch(next.address());
        while let Some(next) = self.frontier.next(fetch) {
            // SAFETY: the world is stopped, and what was pushed is an object of the heap.
            unsafe {
                let word = object::header(next.address());
                debug_assert!(!word.is_free(), "{next:?} is reachable and free");
                let word = self.counts.up(next, word);
                if count::is(word, Colour::White) {
                    self.blacken(next, word);
                } else {
                    object::set_header(next.address(), word);
                }
            }
        }
    }

    fn take_specials(&mut self) -> Vec<Ref> {
        let specials = std::mem::take(&mut self.specials);
        self.taken.extend_from_slice(&specials);
        specials
    }
}
