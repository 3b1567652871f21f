//! Reference counting: deferred, coalescing, with trial deletion for cycles.
//!
//! The idea: an object that nobody refers to is dead, so count the referrers. Done at every store,
//! that costs more than tracing; four papers take nearly all of it away.
//! - *Deferral* (Deutsch and Bobrow, "An efficient, incremental, automatic garbage collector", CACM
//!   1976): roots change all the time and are not counted as they do. They are counted at an
//!   *epoch*, with the world stopped, and hold until the next (`epoch.rs`).
//! - *Coalescing* (Levanoni and Petrank, OOPSLA 2001): of the stores into a slot between two epochs
//!   only what was there before the first and what is there after the last matters (`log.rs`).
//! - *New objects are ignored* (Blackburn and McKinley, "Ulterior reference counting", OOPSLA 2003;
//!   Shahriyar, Blackburn and Frampton, "Down for the count?", ISMM 2012): an object is born logged
//!   and uncounted. If nothing that is counted refers to it at the next epoch, it was never counted
//!   at all, and its block goes back, mostly without being looked at (`blocks.rs`).
//! - *Cycles* (Bacon and Rajan, "Concurrent cycle collection in reference counted systems", ECOOP
//!   2001, the synchronous algorithm): what has lost a reference and lives on is a candidate; now and
//!   then the candidates are tried (`cycles.rs`).
//!
//! No step recurses: a list of any length is freed with a worklist.
//!
//! **Weak slots, ephemerons and guardians.** Who is alive by which kind of reference is a question
//! about paths, and counts do not know paths. So the target of any slot that is not strong, and any
//! guarded object, is *watched*: it has a count for being watched, and counting never frees it. A
//! collection that finds watched objects traces instead, decides as every tracing collector does
//! ([`weak::process`](crate::weak::process)), and counts everything anew (`backup.rs`). The same
//! trace serves when the candidates have become so many that trying them would cost more.
//!
//! Invariants, between epochs:
//! - an object that is not new has a count equal to the number of strong slots of objects that are
//!   not new that held it *at the last epoch*, plus the roots that held it then, plus one if it is
//!   watched (`verify.rs` recomputes this);
//! - what a slot held at the last epoch is what it holds now, or what the log says of it;
//! - every dead object that is not new can be reached from a candidate, or its death is still in the
//!   log or among the roots of the last epoch.

mod backup;
mod blocks;
mod count;
mod cycles;
mod epoch;
mod log;
#[cfg(test)]
mod tests;
mod verify;

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::header::{Header, LOGGED, NEW, WATCHED};
use crate::heap::World;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use crate::space::cells::{Cache, CellSpace};
use crate::space::size_class::SizeClass;
use crate::space::{BLOCK_BYTES, Extent};
use crate::stats::{Amount, Cause};
use blocks::Blocks;
use count::Counts;
use cycles::Candidates;
use log::{LocalLog, Log, LoggedSlots};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An epoch is due when a mutator has noted this many old values.
const LOG_LIMIT: usize = 1 << 20;

/// Bytes allocated from one epoch to the next, if the user set no size of the nursery.
const EPOCH_BYTES: usize = 16 << 20;

/// A search for dead cycles is due when the counted objects have grown to this multiple of what the
/// last one left.
const GROWTH: f64 = 2.0;

/// The reference-counting collector. See the [module text](self).
pub struct RefCount {
    space: CellSpace,
    counts: Counts,
    blocks: Blocks,
    candidates: Candidates,
    /// What the mutators noted since the last epoch, as far as they have handed it in.
    log: Log,
    logged: Arc<LoggedSlots>,
    /// The roots of the last epoch, each of which has a count, and others that are no objects.
    roots: Vec<Ref>,
    /// Watched objects; the first `pinned` of them have their count for it.
    watched: Vec<Ref>,
    pinned: usize,
    /// Objects that are counted, and the bytes of their cells.
    counted: Amount,
    /// Bytes handed out since the last epoch.
    young_bytes: usize,
    /// An epoch is due when `young_bytes` would exceed this.
    budget: usize,
    /// A cycle collection is due when the counted bytes exceed this.
    threshold: usize,
    /// The part of all objects that trial deletion looks at before tracing takes over.
    patience: f64,
    /// Worklist, empty between collections; kept for its capacity.
    work: Vec<Ref>,
    config: HeapConfig,
    reservation: Reservation,
}

/// A mutator's part: its runs of free cells, and what it overwrote.
pub struct Local {
    cache: Cache,
    noted: LocalLog,
}

// SAFETY: an epoch frees what has count zero after all increments, that is, what neither a root nor
// a counted object refers to; trial deletion what only its own cycle refers to; the backup trace what
// it did not reach. Objects do not move.
unsafe impl Collector for RefCount {
    const NAME: &'static str = "refcount";
    const MOVES: bool = false;
    type Local = Local;

    fn new(config: &HeapConfig) -> Result<RefCount, HeapError> {
        config.at_least(BLOCK_BYTES, Self::NAME)?;
        let reservation = Reservation::new(config.max_bytes, config.huge_pages)?;
        let extent = Extent {
            start: reservation.start(),
            bytes: config.max_bytes,
        };
        Ok(RefCount {
            space: CellSpace::new(extent, config.max_bytes),
            counts: Counts::default(),
            blocks: Blocks::default(),
            candidates: Candidates::default(),
            log: Log::default(),
            logged: Arc::new(LoggedSlots::new(extent)),
            roots: Vec::new(),
            watched: Vec::new(),
            pinned: 0,
            counted: Amount::default(),
            young_bytes: 0,
            budget: match config.nursery_bytes {
                0 => EPOCH_BYTES,
                bytes => bytes,
            }
            .min(config.max_bytes / 8)
            .max(BLOCK_BYTES),
            threshold: config.next_threshold(0, GROWTH),
            patience: cycles::PATIENCE,
            work: Vec::new(),
            config: config.clone(),
            reservation,
        })
    }

    fn attach(&mut self) -> Local {
        Local {
            cache: Cache::default(),
            noted: LocalLog {
                log: Log::default(),
                logged: Arc::clone(&self.logged),
            },
        }
    }

    fn retire(&mut self, local: &mut Local) {
        self.young_bytes += local.cache.take_tally();
        self.young_bytes -= local.cache.unused();
        self.space.retire(&mut local.cache);
        self.log.absorb(&mut local.noted.log);
    }

    #[inline(always)]
    fn allocate(local: &mut Local, request: Request) -> Option<usize> {
        if request.class.is_large() {
            return None;
        }
        match local.cache.take(request.class) {
            Some(cell) => Some(cell),
            None => next_run(&mut local.cache, request.class),
        }
    }

    fn refill(
        &mut self,
        _: &ShapeTable,
        local: &mut Local,
        request: Request,
        effort: Effort,
    ) -> Refill {
        self.young_bytes += local.cache.take_tally();
        let due = self.young_bytes > 0 && self.young_bytes + request.bytes > self.budget
            || local.noted.log.len() > LOG_LIMIT;
        if effort == Effort::Normal && due {
            return Refill::Pause(Cause::Threshold);
        }
        let address = if request.class.is_large() {
            self.large(request.bytes)
        } else {
            self.cell(&mut local.cache, request.class)
        };
        address.map_or(Refill::Pause(Cause::AllocationFailure), Refill::Ready)
    }

    #[inline(always)]
    fn birth(_: &Local, _: usize, header: Header) -> Header {
        Header(header.0 | NEW | LOGGED)
    }

    #[inline(always)]
    unsafe fn store(
        local: &mut Local,
        shapes: &ShapeTable,
        object: usize,
        slot: usize,
        value: Ref,
    ) {
        // SAFETY: promised by the caller. Acquire: who sees the flag stores after the one who set
        // it has read the old values.
        unsafe {
            let word = Header(object::header_cell(object).load(Ordering::Acquire));
            if !word.has(LOGGED) {
                local.noted.note(shapes, object, word, slot);
            }
            object::store(slot, value);
        }
    }

    fn collect(world: &mut World<'_, Self>, work: Work) {
        match work {
            Work::Step => epoch::run(world, Cause::Explicit),
            Work::Allocation(_, cause) => {
                epoch::run(world, cause);
                let this = world.collector();
                if this.counted.bytes as usize > this.threshold {
                    whole(world, Cause::Threshold);
                }
            }
            Work::Full(cause) => {
                if world.collector().watched.is_empty() {
                    epoch::run(world, cause);
                }
                whole(world, cause);
                let this = world.collector();
                if cause == Cause::OutOfMemory {
                    this.blocks.list_all(&mut this.space);
                }
            }
        }
    }

    fn watch(&mut self, object: Ref) {
        // SAFETY: the mutator says that it is an object; atomic, since others may log it.
        let before = unsafe { object::header_cell(object.address()) };
        if before.fetch_or(WATCHED, Ordering::AcqRel) & WATCHED == 0 {
            self.watched.push(object);
        }
    }

    unsafe fn each_object(&self, _: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        // SAFETY: promised by the caller.
        unsafe {
            self.space.each_object(|address, word| {
                if !awaits_freeing(word) {
                    visit(address, word);
                }
            });
        }
    }

    fn is_object_start(&self, _: &ShapeTable, address: usize) -> bool {
        // SAFETY: the space says that an object begins there.
        self.space.is_object_start(address) && !awaits_freeing(unsafe { object::header(address) })
    }

    fn used(&self) -> usize {
        self.counted.bytes as usize + self.young_bytes
    }

    fn committed(&self) -> usize {
        self.space.committed()
    }

    fn largest(&self) -> usize {
        self.space.limit()
    }

    fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        verify::verify(self, shapes)
    }
}

/// True for an object that is dead, and is kept only because the buffer of candidates names it.
fn awaits_freeing(word: Header) -> bool {
    !word.has(NEW) && !count::is_counted(word)
}

/// Looks for what counting alone does not find: by trial deletion, or by tracing when something is
/// watched or the candidates lead to too much. What was new has been counted, or something is
/// watched.
fn whole(world: &mut World<'_, RefCount>, cause: Cause) {
    let this = world.collector();
    let done = if !this.watched.is_empty() {
        Err(cycles::TooMuch)
    } else if this.candidates.len() == 0 {
        Ok(())
    } else {
        cycles::run(world, cause)
    };
    if done.is_err() {
        backup::run(world, cause);
    }
    let this = world.collector();
    this.threshold = this
        .config
        .next_threshold(this.counted.bytes as usize, GROWTH);
    // Free blocks beyond what may be used before the next collection will not be needed soon.
    let keep = (this.threshold + this.budget).saturating_sub(this.space.committed()) / BLOCK_BYTES;
    this.space.pool().release(&this.reservation, keep as u32);
}

#[cold]
#[inline(never)]
fn next_run(cache: &mut Cache, class: SizeClass) -> Option<usize> {
    if cache.advance(class) {
        cache.take(class)
    } else {
        None
    }
}

impl RefCount {
    /// A cell of `class`, from wherever there is one; none when the limit is reached.
    fn cell(&mut self, cache: &mut Cache, class: SizeClass) -> Option<usize> {
        if !cache.advance(class) {
            // SAFETY: the cache's run is used up.
            let block = unsafe {
                match self.space.take_partial(cache, class) {
                    Some(block) => block,
                    None => self.space.take_fresh(cache, class)?,
                }
            };
            self.blocks.give(block);
        }
        cache.take(class)
    }

    /// Memory for a large object; none when the limit is reached.
    fn large(&mut self, bytes: usize) -> Option<usize> {
        let address = self.space.allocate_large(bytes)?;
        self.blocks.young_large.push(address);
        self.young_bytes += bytes;
        Some(address)
    }
}
