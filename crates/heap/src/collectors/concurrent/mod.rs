//! Concurrent: on-the-fly mark-sweep, with a thread of its own.
//!
//! The idea is that of the slide deck which derives concurrent mark-and-sweep collectors from a
//! coalgebraic specification, in Specware (model of memory as a rooted graph; dynamic fixpoint
//! iteration; observer maintenance; its end point is "the essence of the coarse-grain Dijkstra et
//! al. on-the-fly collector"). A node is dead if it is not in the least S with roots ∪ successors(S)
//! ⊆ S. The collector computes S step by step, while the mutators change the graph, and every
//! transformer of the graph, mutators' stores included, keeps the work set
//!
//! > WS = (roots ∪ successors(S)) \ S.
//!
//! When WS is empty, S is a fixpoint: it contains everything that is reachable, and whatever is not
//! in S has been dead since before the cycle ended. S may also contain objects that died meanwhile;
//! the next cycle finds them.
//!
//! Where this departs from the deck:
//! - The deck keeps WS *exactly*, by steps that are atomic (`atomic (addArc(x,y) || WS ← WS ∪ {y | x
//!   ∈ S ∧ y ∉ S})`). Real stores are not atomic with their bookkeeping, and the guard, tested before
//!   the store, loses objects when the marker passes between test and store. Here a mutator shades
//!   **unconditionally, then stores**; WS may hold more than the definition says, never less.
//! - WS lies in pieces: a stack of the marker's and a buffer of each mutator's
//!   ([`protocol`]); a mutator issues no fence to shade, and takes a lock only when its buffer has
//!   run over.
//! - The deck's `roots` are observed in one atomic step. Here roots (stacks, registers) change
//!   without a barrier; they are read at the beginning of a cycle and **again before it ends**, with
//!   the world stopped: that is the handshake, the only time when mutators wait.
//! - The deck counts the supply of free nodes among the live ones; here free memory has no colour,
//!   and new objects are **born in S** (with the current sense of the mark bit). The stores that
//!   initialise them shade, too.
//!
//! A cycle: stop the world briefly, turn the sense of the mark bit over (all objects are unmarked by
//! definition), switch the barriers on, read the roots; mark, beside the mutators; when no work is
//! left, stop the world again, take the mutators' buffers and the roots; if that turns out to be
//! more than a little work, let the world go on and mark beside it; otherwise S is complete: weak
//! references are decided, the barriers switched off, and the blocks are swept beside the mutators.
//!
//! Invariants, besides WS:
//! - only the thread that holds the work (`Shared::work`) sets mark bits; mutators never do, but
//!   for their new objects;
//! - an object once marked stays marked until the sense is turned over, with the world stopped;
//! - no block is unswept while marking, so that every object is live until the cycle has ended;
//! - a block that the collector's thread sweeps stands in no list, and is back in the space whenever
//!   the world is stopped;
//! - the collector's thread holds the heap only while it works, a millisecond at a time; the heap
//!   can go at any moment in between, and the thread goes with it.
//!
//! Locks, in the order in which they are taken: the heap's, the work, the pile of greys.

mod cycle;
mod marking;
mod pacing;
pub mod protocol;
mod supply;
#[cfg(test)]
mod tests;
mod thread;
mod verify;

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::header::Header;
use crate::heap::{Heap, World};
use crate::lock;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use crate::space::cells::{Cache, CellSpace, InFlight};
use crate::space::{BLOCK_BYTES, Extent};
use crate::stats::{Cause, Collection, Usage};
use marking::Found;
use pacing::Pacer;
use protocol::{Barrier, WorkSet};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Nodes that a mutator shades before it looks through its buffer.
const GREYS: usize = 1024;

/// The concurrent collector. See the [module text](self).
pub struct Concurrent {
    space: CellSpace,
    reservation: Reservation,
    /// The value of the mark bit that means "in S".
    sense: u64,
    phase: Phase,
    /// Bytes that the last cycle left, plus those of runs handed out since.
    used: usize,
    /// Bytes of all runs and large objects ever handed out.
    allocated: usize,
    pacer: Pacer,
    /// A cycle is wanted.
    requested: Option<Cause>,
    /// What is known of the cycle that runs.
    current: Current,
    /// Blocks that the thread has taken out to sweep.
    in_flight: usize,
    /// Bytes of the range, from its beginning, that have been given pages ahead of the mutators.
    warmed: usize,
    /// Counts cycles whose marking has ended.
    marked_cycles: u64,
    /// See [`Collector::progress`].
    progress: u64,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Where a cycle stands. Changes with the world stopped, except from `Sweep` to `Idle`, which
/// happens under the heap's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Mark,
    Sweep,
}

/// The cycle that runs, for pacing and for the record.
#[derive(Default, Debug)]
struct Current {
    /// None for a cycle whose marking took place in one pause: that is a full collection, whose
    /// record was closed at the end of the pause.
    record: Option<Collection>,
    /// When the stretch of work beside the mutators began, since the heap was created.
    stretch: Duration,
    /// The heap when the sense was turned over.
    began: Usage,
    /// [`Concurrent::allocated`] at that time.
    allocated_before: usize,
    /// Bytes found live.
    live: usize,
    /// CPU time of pauses.
    cpu: Duration,
}

/// What the collector's thread and the mutators share without the heap's lock.
struct Shared {
    work: Mutex<WorkState>,
    /// The common pile: nodes shaded by mutators whose buffers ran over.
    greys: Mutex<Vec<Ref>>,
    signal: Mutex<thread::Signal>,
    bell: Condvar,
}

/// The work of the collector's thread. Who stops the world may do it as well.
#[derive(Default)]
struct WorkState {
    set: WorkSet<Ref>,
    found: Found,
    /// Blocks taken out of the space.
    blocks: Vec<InFlight>,
    /// CPU time that the thread has used beside the mutators in this phase.
    cpu: Duration,
}

/// A mutator's part.
pub struct Local {
    cache: Cache,
    /// Mark bit of new objects.
    sense: u64,
    barrier: Barrier<Ref>,
    shared: Arc<Shared>,
    /// An allocation waits for memory until this many cycles have been marked.
    patience: Option<u64>,
}

impl Local {
    #[inline(always)]
    fn shade(&mut self, value: Ref) {
        let Local {
            barrier,
            sense,
            shared,
            ..
        } = self;
        barrier.shade(value, |greys| overflow(greys, *sense, shared));
    }
}

/// The buffer is full: leaves out what is in S, and hands the rest over when it is worth it.
#[cold]
#[inline(never)]
fn overflow(greys: &mut Vec<Ref>, sense: u64, shared: &Shared) {
    for grey in greys.iter() {
        object::prefetch(grey.address());
    }
    // SAFETY: what was shaded in this cycle is an object, and is not freed before the cycle ends.
    greys.retain(|grey| unsafe { !object::is_marked(object::header(grey.address()), sense) });
    if greys.len() > GREYS / 2 {
        lock(&shared.greys).append(greys);
    }
}

// SAFETY: frees only what is not in S when WS = (roots ∪ successors(S)) \ S is empty, with the
// world stopped; the module text and `protocol` say why the work set misses nothing.
unsafe impl Collector for Concurrent {
    const NAME: &'static str = "concurrent";
    const MOVES: bool = false;
    type Local = Local;

    fn new(config: &HeapConfig) -> Result<Concurrent, HeapError> {
        config.at_least(BLOCK_BYTES, Self::NAME)?;
        let reservation = Reservation::new(config.max_bytes, config.huge_pages)?;
        let extent = Extent {
            start: reservation.start(),
            bytes: config.max_bytes,
        };
        Ok(Concurrent {
            space: CellSpace::new(extent, config.max_bytes),
            reservation,
            sense: 0,
            phase: Phase::Idle,
            used: 0,
            allocated: 0,
            pacer: Pacer::new(config),
            requested: None,
            current: Current::default(),
            in_flight: 0,
            warmed: 0,
            marked_cycles: 0,
            progress: 0,
            shared: Arc::new(Shared {
                work: Mutex::default(),
                greys: Mutex::default(),
                signal: Mutex::default(),
                bell: Condvar::new(),
            }),
            thread: None,
        })
    }

    fn attach(&mut self) -> Local {
        Local {
            cache: Cache::default(),
            sense: self.sense,
            barrier: Barrier::new(self.phase == Phase::Mark, GREYS),
            shared: Arc::clone(&self.shared),
            patience: None,
        }
    }

    fn retire(&mut self, local: &mut Local) {
        self.count(&mut local.cache);
        self.used -= local.cache.unused();
        self.allocated -= local.cache.unused();
        self.space.retire(&mut local.cache);
        if !local.barrier.is_empty() {
            lock(&self.shared.greys).append(&mut local.barrier.take());
        }
    }

    #[inline(always)]
    fn allocate(local: &mut Local, request: Request) -> Option<usize> {
        if request.class.is_large() {
            return None;
        }
        local.cache.take(request.class)
    }

    fn refill(
        &mut self,
        _shapes: &ShapeTable,
        local: &mut Local,
        request: Request,
        effort: Effort,
    ) -> Refill {
        self.count(&mut local.cache);
        if self.phase == Phase::Idle && self.pacer.is_due(self.used + request.bytes) {
            self.request(Cause::Threshold);
        }
        let address = if request.class.is_large() {
            self.large(request.bytes)
        } else {
            self.cell(&mut local.cache, request.class)
        };
        if self.has_to_warm() {
            thread::wake(&self.shared);
        }
        match address {
            Some(address) => {
                local.patience = None;
                Refill::Ready(address)
            }
            None => self.no_memory(local, effort),
        }
    }

    #[inline(always)]
    fn birth(local: &Local, _address: usize, header: Header) -> Header {
        Header(header.0 | local.sense)
    }

    #[inline(always)]
    unsafe fn initialise(local: &mut Local, value: Ref) {
        // The new object is born in S, so its successors belong to WS.
        local.shade(value);
    }

    #[inline(always)]
    unsafe fn store(local: &mut Local, _: &ShapeTable, _object: usize, slot: usize, value: Ref) {
        let Local {
            barrier,
            sense,
            shared,
            ..
        } = local;
        // SAFETY: promised by the caller.
        let store = |value| unsafe { object::store(slot, value) };
        barrier.store(value, |greys| overflow(greys, *sense, shared), store);
    }

    fn collect(world: &mut World<'_, Self>, work: Work) {
        match work {
            Work::Full(cause) => cycle::full(world, cause),
            Work::Allocation(..) => cycle::finish(world),
            Work::Step => cycle::step(world),
        }
    }

    unsafe fn each_object(&self, _: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        // SAFETY: promised by the caller.
        unsafe {
            self.space.each_object(|address, word| {
                if self.is_kept(word) {
                    visit(address, word);
                }
            });
        }
    }

    fn is_object_start(&self, _: &ShapeTable, address: usize) -> bool {
        // SAFETY: the space says that an object begins there.
        self.space.is_object_start(address) && self.is_kept(unsafe { object::header(address) })
    }

    fn used(&self) -> usize {
        self.used
    }

    fn committed(&self) -> usize {
        self.space.committed()
    }

    fn largest(&self) -> usize {
        self.space.limit()
    }

    fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        self.check(shapes)
    }

    fn start(heap: &Heap<Self>) -> Result<(), HeapError> {
        let handle = thread::spawn(heap)?;
        heap.inner.lock().collector.thread = Some(handle);
        Ok(())
    }

    fn shutdown(&mut self) {
        thread::stop(&self.shared, self.thread.take());
    }

    fn stopped(&mut self) {
        // From here until the world runs again the thread sees that it is stopped as soon as it has
        // the work, and lets go of it.
        let shared = Arc::clone(&self.shared);
        self.take_blocks_back(&mut lock(&shared.work));
    }

    fn progress(&self) -> u64 {
        self.progress
    }
}

impl Concurrent {
    /// Counts the runs that `cache` has taken.
    fn count(&mut self, cache: &mut Cache) {
        let bytes = cache.take_tally();
        self.used += bytes;
        self.allocated += bytes;
    }

    /// Asks the thread to begin a cycle.
    fn request(&mut self, cause: Cause) {
        if self.requested.is_none() {
            self.requested = Some(cause);
            thread::wake(&self.shared);
        }
    }

    /// Takes back the blocks that the thread has, swept or not. True when there were any.
    fn take_blocks_back(&mut self, work: &mut WorkState) -> bool {
        if work.blocks.is_empty() {
            return false;
        }
        for block in work.blocks.drain(..) {
            self.space.give_back(block);
        }
        self.in_flight = 0;
        self.progress += 1;
        true
    }

    /// True for an object that has not been found dead.
    fn is_kept(&self, word: Header) -> bool {
        self.phase == Phase::Mark || object::is_marked(word, self.sense)
    }
}
