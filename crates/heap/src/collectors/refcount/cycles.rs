//! Dead cycles, by trial deletion.
//!
//! Bacon and Rajan, "Concurrent cycle collection in reference counted systems", ECOOP 2001, section
//! 3 (the synchronous algorithm; the concurrent one is not needed, since the world is stopped). A
//! cycle can only become dead when an object on it loses a reference and keeps others. Such objects
//! are *candidates*: purple, and in a buffer. For all candidates together:
//! 1. *mark gray*: take the references inside what they reach off the counts, as if all of it were
//!    deleted;
//! 2. *scan*: what has still a count is referred to from outside; it and what it reaches become black
//!    again, their counts restored. The rest is white;
//! 3. *collect*: white is dead.
//!
//! Where this departs from the paper: the three procedures are loops over a worklist; a candidate
//! that is a root now is left out (it loses that count some day, and is a candidate again); an
//! object that dies while in the buffer waits there no longer than until a quarter of the buffer is
//! dead; and there is an end to patience. A few candidates may lead to all of the heap, and then
//! trying them costs more than tracing, since it goes over everything up to three times. So when
//! more than [`PATIENCE`] of the objects have become gray, the attempt is given up, and the backup
//! trace takes over. It forgets all counts and colours anyway, so nothing needs to be undone.

use super::RefCount;
use super::count::{self, Colour};
use super::epoch::{footprint, has_references};
use crate::header::{BUFFERED, Header};
use crate::heap::World;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use crate::stats::{Amount, Cause, CollectionKind};

/// The part of all objects that trial deletion looks at before it gives up.
pub(super) const PATIENCE: f64 = 0.125;

/// Objects that trial deletion may look at in any case.
const LEAST: u64 = 1000;

/// The buffer of possible roots of dead cycles.
///
/// Invariant: it holds exactly the objects with the flag `BUFFERED`, each once. Those that are not
/// purple any more are no candidates; those with no count are dead, and wait to be freed.
#[derive(Default, Debug)]
pub(super) struct Candidates {
    buffer: Vec<Ref>,
    /// How many of them are dead.
    dead: usize,
}

impl Candidates {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// All of them.
    pub(super) fn as_slice(&self) -> &[Ref] {
        &self.buffer
    }

    /// Writes the header `word` of an object that has lost a reference and lives on; makes it a
    /// candidate if it may be on a cycle.
    ///
    /// # Safety
    /// `reference` is an object of the heap with these shapes, and the world is stopped.
    #[inline(always)]
    pub(super) unsafe fn consider(&mut self, shapes: &ShapeTable, reference: Ref, word: Header) {
        let mut word = word;
        if !count::is(word, Colour::Purple) && has_references(shapes, word) {
            word = count::painted(word, Colour::Purple);
            if !word.has(BUFFERED) {
                word = Header(word.0 | BUFFERED);
                self.buffer.push(reference);
            }
        }
        // SAFETY: promised by the caller.
        unsafe { object::set_header(reference.address(), word) };
    }

    /// One of them has died.
    pub(super) fn note_dead(&mut self) {
        self.dead += 1;
    }

    /// True when a good part of the buffer is dead.
    pub(super) fn worth_purging(&self) -> bool {
        self.dead >= 1000 && self.dead >= self.buffer.len() / 4
    }

    /// Takes those that are no candidates any more out of the buffer, and gives those that are dead.
    ///
    /// # Safety
    /// The world is stopped.
    pub(super) unsafe fn purge(&mut self) -> Vec<Ref> {
        let mut dead = Vec::with_capacity(self.dead);
        self.buffer.retain(|&candidate| {
            let address = candidate.address();
            // SAFETY: what is in the buffer has not been freed.
            unsafe {
                let word = object::header(address);
                if count::is(word, Colour::Purple) {
                    return true;
                }
                object::set_header(address, Header(word.0 & !BUFFERED));
                if !count::is_counted(word) {
                    dead.push(candidate);
                }
            }
            false
        });
        self.dead = 0;
        dead
    }

    /// Forgets all, before all objects are counted anew.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.dead = 0;
    }
}

/// Runs a cycle collection, and records it. An epoch has just been run. If it fails, the counts are
/// in disorder, and the backup must follow.
pub(super) fn run(world: &mut World<'_, RefCount>, cause: Cause) -> Result<(), TooMuch> {
    let (this, shapes, _) = world.parts();
    if this.candidates.len() as u64 > this.most_gray() {
        return Err(TooMuch);
    }
    world.begin(CollectionKind::Cycles, cause);
    let (this, ..) = world.parts();
    let before = this.counted;
    // SAFETY: the world is stopped, and the counts are exact.
    unsafe { this.collect_cycles(shapes)? };
    let after = this.counted;
    world.tally(Amount::default(), Amount::default(), before.minus(after));
    world.set_objects(after.objects);
    Ok(())
}

/// The candidates lead to so much of the heap that tracing it costs less.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooMuch;

impl RefCount {
    /// How many objects may become gray.
    fn most_gray(&self) -> u64 {
        ((self.counted.objects as f64 * self.patience) as u64).saturating_add(LEAST)
    }

    /// # Safety
    /// The world is stopped, and the counts are those of this moment.
    unsafe fn collect_cycles(&mut self, shapes: &ShapeTable) -> Result<(), TooMuch> {
        let mut left = self.most_gray();
        // SAFETY: promised by the caller; here and below every reference met is in a slot of an
        // object that has not been freed, or in the buffer.
        unsafe {
            for root in self.roots.iter().filter(|root| root.is_object()) {
                let word = object::header(root.address());
                object::set_header(root.address(), count::painted(word, Colour::Black));
            }
            for dead in self.candidates.purge() {
                self.free(dead.address());
            }
            let candidates = std::mem::take(&mut self.candidates.buffer);
            for (i, &candidate) in candidates.iter().enumerate() {
                if let Some(ahead) = candidates.get(i + 8) {
                    object::prefetch(ahead.address());
                }
                self.mark_gray(shapes, candidate, &mut left)?;
            }
            let mut alive = Vec::new();
            for &candidate in &candidates {
                self.scan(shapes, candidate, &mut alive);
            }
            for &candidate in &candidates {
                let word = object::header(candidate.address());
                object::set_header(candidate.address(), Header(word.0 & !BUFFERED));
            }
            for &candidate in &candidates {
                self.collect_white(shapes, candidate);
            }
            self.candidates.buffer = candidates;
            self.candidates.clear();
            self.finish_freeing();
        }
        Ok(())
    }

    /// Takes the references inside of what `start` reaches off the counts; `left` more objects may
    /// become gray.
    ///
    /// # Safety
    /// As for [`RefCount::collect_cycles`].
    unsafe fn mark_gray(
        &mut self,
        shapes: &ShapeTable,
        start: Ref,
        left: &mut u64,
    ) -> Result<(), TooMuch> {
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(start.address());
            if count::is(word, Colour::Gray) {
                return Ok(());
            }
            object::set_header(start.address(), count::painted(word, Colour::Gray));
            self.work.push(start);
            while let Some(next) = self.work.pop() {
                if *left == 0 {
                    self.work.clear();
                    return Err(TooMuch);
                }
                *left -= 1;
                let word = object::header(next.address());
                let (work, counts) = (&mut self.work, &mut self.counts);
                object::each_strong_slot(shapes, next.address(), word, |slot| {
                    let target = object::load(slot);
                    if !target.is_object() {
                        return;
                    }
                    let word = counts.down(target, object::header(target.address()));
                    object::set_header(target.address(), count::painted(word, Colour::Gray));
                    if !count::is(word, Colour::Gray) {
                        work.push(target);
                    }
                });
            }
        }
        Ok(())
    }

    /// What is gray and reachable from `start` becomes black or white. What is found alive meanwhile
    /// is blackened at once, with `alive` as worklist.
    ///
    /// # Safety
    /// As for [`RefCount::collect_cycles`].
    unsafe fn scan(&mut self, shapes: &ShapeTable, start: Ref, alive: &mut Vec<Ref>) {
        self.work.push(start);
        // SAFETY: promised by the caller.
        unsafe {
            while let Some(next) = self.work.pop() {
                let word = object::header(next.address());
                if !count::is(word, Colour::Gray) {
                    continue;
                }
                if count::is_counted(word) {
                    object::set_header(next.address(), count::painted(word, Colour::Black));
                    alive.push(next);
                    self.scan_black(shapes, alive);
                    continue;
                }
                object::set_header(next.address(), count::painted(word, Colour::White));
                let work = &mut self.work;
                object::each_strong_slot(shapes, next.address(), word, |slot| {
                    let target = object::load(slot);
                    if target.is_object() {
                        work.push(target);
                    }
                });
            }
        }
    }

    /// Gives the references of those in `alive`, which are black, back to the counts, and of all that
    /// they reach.
    ///
    /// # Safety
    /// As for [`RefCount::collect_cycles`].
    unsafe fn scan_black(&mut self, shapes: &ShapeTable, alive: &mut Vec<Ref>) {
        // SAFETY: promised by the caller.
        unsafe {
            while let Some(next) = alive.pop() {
                let word = object::header(next.address());
                let counts = &mut self.counts;
                object::each_strong_slot(shapes, next.address(), word, |slot| {
                    let target = object::load(slot);
                    if !target.is_object() {
                        return;
                    }
                    let word = counts.up(target, object::header(target.address()));
                    object::set_header(target.address(), count::painted(word, Colour::Black));
                    if !count::is(word, Colour::Black) {
                        alive.push(target);
                    }
                });
            }
        }
    }

    /// Frees what is white and reachable from `start`.
    ///
    /// # Safety
    /// As for [`RefCount::collect_cycles`]; `start` may have been freed in this cycle collection.
    unsafe fn collect_white(&mut self, shapes: &ShapeTable, start: Ref) {
        // SAFETY: promised by the caller. The header of what was freed a moment ago can still be
        // read: it is that of free memory, and black.
        unsafe {
            self.take_white(start);
            while let Some(next) = self.work.pop() {
                let word = object::header(next.address());
                let this = &mut *self;
                object::each_strong_slot(shapes, next.address(), word, |slot| {
                    let target = object::load(slot);
                    if target.is_object() {
                        this.take_white(target);
                    }
                });
                let (_, bytes) = footprint(shapes, word);
                self.counted.objects -= 1;
                self.counted.bytes -= bytes as u64;
                self.free(next.address());
            }
        }
    }

    /// Puts a white object on the worklist, once.
    ///
    /// # Safety
    /// As for [`RefCount::collect_white`].
    #[inline(always)]
    unsafe fn take_white(&mut self, reference: Ref) {
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(reference.address());
            if count::is(word, Colour::White) {
                object::set_header(reference.address(), count::painted(word, Colour::Black));
                self.work.push(reference);
            }
        }
    }
}
