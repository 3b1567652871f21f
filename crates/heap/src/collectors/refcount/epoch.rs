//! An epoch: counts become what they should be, and what has none is freed.
//!
//! With the world stopped: (1) *increments*, for each slot that changed its reference, each root
//! that did, and each object watched since. An increment that meets a new object makes it counted,
//! and so its slots too. (2) *Decrements*, for what slots and roots held before. An object whose
//! count falls to zero is freed, and its references are decrements in turn; one that keeps a count
//! may have been the entrance to a cycle, and becomes a candidate. (3) What is still new is dead.
//!
//! All increments come first. So no count touches zero on its way to another value, and whatever is
//! zero in (2) is dead.

use super::RefCount;
use super::count::{self, Colour};
use crate::header::{BUFFERED, Header, LOGGED, NEW, WATCHED};
use crate::heap::World;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, ShapeTable};
use crate::space::size_class::SizeClass;
use crate::stats::{Amount, Cause, CollectionKind};

/// How far ahead of use the headers are fetched.
const AHEAD: usize = 12;

/// Runs an epoch, and records it.
pub(super) fn run(world: &mut World<'_, RefCount>, cause: Cause) {
    world.begin(CollectionKind::Epoch, cause);
    let before = world.usage();
    let mut roots = Vec::new();
    world.each_root(|root| roots.push(*root));
    let (this, shapes, _) = world.parts();
    // SAFETY: the world is stopped, and these are its roots.
    unsafe { this.epoch(shapes, roots) };
    let after = this.counted;
    world.tally(
        Amount::default(),
        Amount::default(),
        before.amount().minus(after),
    );
    world.set_objects(after.objects);
}

impl RefCount {
    /// # Safety
    /// The world is stopped, the locals are retired, and `roots` are all roots.
    unsafe fn epoch(&mut self, shapes: &ShapeTable, roots: Vec<Ref>) {
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        // SAFETY: promised by the caller; the log names what was alive at the last epoch.
        unsafe {
            self.log.settle(
                shapes,
                &self.logged,
                |reference| gained.push(reference),
                |reference| lost.push(reference),
            );
            gained.extend_from_slice(&self.watched[self.pinned..]);
            self.pinned = self.watched.len();
            exchange_roots(&self.roots, &roots, &mut gained, &mut lost);
            self.roots = roots;
            self.increment_all(shapes, &gained);
            self.decrement_all(shapes, &lost);
            self.finish_freeing();
        }
        self.young_bytes = 0;
    }

    /// Adds one to the count of each, and counts what becomes reachable by it.
    ///
    /// # Safety
    /// The world is stopped, and these are objects of the heap.
    unsafe fn increment_all(&mut self, shapes: &ShapeTable, references: &[Ref]) {
        for (i, &reference) in references.iter().enumerate() {
            if let Some(ahead) = references.get(i + AHEAD) {
                object::prefetch(ahead.address());
            }
            // SAFETY: promised by the caller.
            unsafe {
                self.increment(shapes, reference);
                while let Some(adopted) = self.work.pop() {
                    let word = object::header(adopted.address());
                    object::each_strong_slot(shapes, adopted.address(), word, |slot| {
                        let target = object::load(slot);
                        if target.is_object() {
                            self.increment(shapes, target);
                        }
                    });
                }
            }
        }
    }

    /// Adds one to the count. An object that was new goes on the worklist: its slots count from now
    /// on.
    ///
    /// # Safety
    /// The world is stopped, and `reference` is an object of the heap.
    #[inline(always)]
    unsafe fn increment(&mut self, shapes: &ShapeTable, reference: Ref) {
        let address = reference.address();
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(address);
            debug_assert!(!word.is_free(), "{reference:?} is referred to and free");
            if !word.has(NEW) {
                let word = count::painted(self.counts.up(reference, word), Colour::Black);
                object::set_header(address, word);
                return;
            }
            let word = count::with_first(Header(word.0 & !(NEW | LOGGED)));
            object::set_header(address, word);
            self.adopt(shapes, address, word);
            if has_references(shapes, word) {
                self.work.push(reference);
            }
        }
    }

    /// Notes that the object at `address` is counted from now on.
    ///
    /// # Safety
    /// `address` is an object of the heap, and `word` its header.
    #[inline(always)]
    pub(super) unsafe fn adopt(&mut self, shapes: &ShapeTable, address: usize, word: Header) {
        let (class, bytes) = footprint(shapes, word);
        self.counted.objects += 1;
        self.counted.bytes += bytes as u64;
        if !class.is_large() {
            self.blocks.adopt(self.space.pool().block_of(address));
        }
    }

    /// Takes one off the count of each, and frees what has none left.
    ///
    /// # Safety
    /// The world is stopped, all increments have been made, and each of these has a count that is to
    /// be taken off.
    pub(super) unsafe fn decrement_all(&mut self, shapes: &ShapeTable, references: &[Ref]) {
        for (i, &reference) in references.iter().enumerate() {
            if let Some(ahead) = references.get(i + AHEAD) {
                object::prefetch(ahead.address());
            }
            // SAFETY: promised by the caller; a dead object's slots hold what they held when it was
            // counted for them.
            unsafe {
                self.decrement(shapes, reference);
                while let Some(next) = self.work.pop() {
                    self.decrement(shapes, next);
                }
            }
        }
    }

    /// Takes one off the count. If none is left, the object is freed, and what it refers to goes on
    /// the worklist.
    ///
    /// # Safety
    /// As for [`RefCount::decrement_all`].
    #[inline(always)]
    unsafe fn decrement(&mut self, shapes: &ShapeTable, reference: Ref) {
        let address = reference.address();
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(address);
            debug_assert!(!word.is_free() && !word.has(NEW), "{reference:?}: {word:?}");
            let word = self.counts.down(reference, word);
            if count::is_counted(word) {
                self.candidates.consider(shapes, reference, word);
                return;
            }
            debug_assert!(!word.has(WATCHED), "{reference:?} has a count for that");
            let work = &mut self.work;
            object::each_strong_slot(shapes, address, word, |slot| {
                let target = object::load(slot);
                if target.is_object() {
                    object::prefetch(target.address());
                    work.push(target);
                }
            });
            let (_, bytes) = footprint(shapes, word);
            self.counted.objects -= 1;
            self.counted.bytes -= bytes as u64;
            if word.has(BUFFERED) {
                // The buffer still names it; it is freed when the buffer is gone through.
                object::set_header(address, count::painted(word, Colour::Black));
                self.candidates.note_dead();
            } else {
                self.free(address);
            }
        }
    }

    /// Gives the memory of an object back.
    ///
    /// # Safety
    /// The object is dead, and nothing names it that will be followed.
    #[inline(always)]
    pub(super) unsafe fn free(&mut self, address: usize) {
        // SAFETY: promised by the caller; the caches have been retired.
        if unsafe { self.space.free(address) } {
            self.blocks.release(self.space.pool().block_of(address));
        }
    }

    /// After objects were freed: new objects that were not counted are dead, and blocks are swept
    /// where it pays.
    ///
    /// # Safety
    /// The world is stopped, and every live object has been counted.
    pub(super) unsafe fn finish_freeing(&mut self) {
        if self.candidates.worth_purging() {
            // SAFETY: these are dead, and the buffer does not name them any more.
            unsafe {
                for dead in self.candidates.purge() {
                    self.free(dead.address());
                }
            }
        }
        // SAFETY: promised by the caller.
        unsafe { self.blocks.settle(&mut self.space) };
        self.space.forget_freed_large();
    }
}

/// What became of the roots since the last epoch. Most of a deep stack is the same as it was, at the
/// same place.
fn exchange_roots(old: &[Ref], new: &[Ref], gained: &mut Vec<Ref>, lost: &mut Vec<Ref>) {
    let common = old.len().min(new.len());
    for (&old, &new) in old.iter().zip(new) {
        if old != new {
            if new.is_object() {
                gained.push(new);
            }
            if old.is_object() {
                lost.push(old);
            }
        }
    }
    gained.extend(new[common..].iter().filter(|root| root.is_object()));
    lost.extend(old[common..].iter().filter(|root| root.is_object()));
}

/// False for objects that refer to nothing, whatever happens: they are on no cycle.
#[inline(always)]
pub(super) fn has_references(shapes: &ShapeTable, word: Header) -> bool {
    let layout = shapes.layout(word.shape());
    match layout.form {
        Form::Fixed => layout.map != 0,
        Form::References => word.aux() != 0,
        Form::Special => true,
        Form::Data | Form::Free => false,
    }
}

/// The size class of an object, and the bytes that it takes: of its cell, or its own.
#[inline(always)]
pub(super) fn footprint(shapes: &ShapeTable, word: Header) -> (SizeClass, usize) {
    let layout = shapes.layout(word.shape());
    let class = match layout.form {
        Form::Fixed | Form::Special => layout.class,
        // SAFETY: `word` is the header of an object.
        _ => SizeClass::of(unsafe { object::bytes(shapes, word) }),
    };
    if class.is_large() {
        // SAFETY: as above.
        (class, unsafe { object::bytes(shapes, word) })
    } else {
        (class, class.cell())
    }
}
