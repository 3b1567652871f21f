//! Incremental: the plain mark-sweep collector, cut into steps of bounded length.
//!
//! The idea: the program stops often and briefly. Each stop does one operation of the
//! [machine]: marks a few thousand objects, or sweeps a few thousand cells. In between
//! the program changes the graph, so a write barrier (Dijkstra's) makes every stored reference grey
//! while marking is under way: no black object ever leads to a white one.
//!
//! This file says when to step. Marking starts when the free objects are fewer than FREENUM. From
//! then on the program pays for what it allocates: one step for every *quantum* of bytes, such that
//! marking ends before the memory does. Debts are paid one step at a time, so that no stop is
//! longer than a step. A program that finds no memory steps until there is some; when a whole cycle
//! has brought none, a full collection follows, and then an error.
//!
//! Not bounded by MARKNUM are: the marking of the roots (a pause of the length of the root stacks
//! at the beginning and at the end of marking), and the weak processing at the end of marking (it
//! takes one pause for all weak references, ephemerons, guardians and what those bring back). A
//! heap without those has no such pause. Nor is the first touch of fresh memory, which happens
//! while the program runs: with huge pages the operating system clears 2 MiB at a time. Blocks
//! that a sweep has emptied are given back to the operating system by full collections only, since
//! that takes the longer the more they are.
//!
//! Invariants: those of the [machine]; and every mutator's [`Local`] agrees with the machine about
//! phase and cursor while mutators run.

mod check;
pub mod local;
pub mod machine;
#[cfg(test)]
mod tests;

pub use local::Local;
pub use machine::{Colour, Machine, Phase, Segment};

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::config::{HeapConfig, IncrementalSettings};
use crate::error::HeapError;
use crate::header::{HEADER_BYTES, Header};
use crate::heap::World;
use crate::memory::Reservation;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use crate::space::size_class::SizeClass;
use crate::space::{BLOCK_BYTES, Extent};
use crate::stats::{Amount, Cause, Collection, CollectionKind, Elapsed, Pause, PausePhase};
use crate::weak;
use machine::{FREE_OBJECT_BYTES, Marking, REFERENCES_PER_MARK, SEGMENT};

/// Bytes that a program may allocate for each object marked, unless memory is short.
const BYTES_PER_MARK: usize = 4;
/// Bytes that a program may allocate for each cell swept, unless memory is short.
const BYTES_PER_SWEEP: usize = 1;
/// A cycle must begin long before memory runs out, so the heap needs room to grow into.
const GROWTH: f64 = 2.0;

/// The incremental collector. See the [module text](self).
pub struct Incremental {
    machine: Machine,
    pace: Pace,
    /// Kept for its capacity.
    roots: Vec<Ref>,
    /// The record of the cycle under way.
    record: Option<Collection>,
    config: HeapConfig,
    reservation: Reservation,
}

/// How the steps follow the allocation.
#[derive(Debug, Default)]
struct Pace {
    /// Bytes allocated and not yet paid for.
    debt: usize,
    /// Bytes for which one step is due, in the phase under way.
    quantum: usize,
    /// Where the heap should be at most when marking ends.
    goal: usize,
}

impl Pace {
    /// A phase begins in which a step is due for every `affordable` bytes, but `usual` are enough.
    fn start(&mut self, affordable: usize, usual: usize) {
        self.quantum = affordable.min(usual).max(1);
        self.debt = 0;
    }
}

impl Incremental {
    /// The machine, to be inspected.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    fn cycle_is_due(&self) -> bool {
        self.machine.phase() == Phase::Idle
            && self.machine.num_free() < self.machine.thresholds().free_num
    }

    fn step_is_due(&self) -> bool {
        self.machine.phase() != Phase::Idle && self.pace.debt >= self.pace.quantum
    }

    fn memory(&mut self, local: &mut Local, request: Request) -> Option<usize> {
        if request.class.is_large() {
            let address = self.machine.large(request.bytes)?;
            self.pace.debt += request.bytes;
            return Some(address);
        }
        let address = self.machine.cell(local, request.class);
        self.pace.debt += self.machine.count(local);
        address
    }

    /// Marking begins: chooses the quantum such that it ends before the goal is reached. At most
    /// `objects` are to be marked.
    fn pace_marking(&mut self, objects: u64) {
        let mark_num = self.machine.thresholds().mark_num;
        let used = self.machine.used();
        let limit = self.machine.space().limit();
        let objects = objects as usize;
        let slots = used.saturating_sub(objects * HEADER_BYTES) / 4;
        let work = objects + slots / SEGMENT + slots / REFERENCES_PER_MARK;
        // Two more: the roots are marked at least twice.
        let steps = work / mark_num + 2;
        let goal = if self.pace.goal > used {
            self.pace.goal
        } else {
            limit
        };
        let room = goal.saturating_sub(used);
        self.pace
            .start(room / steps, mark_num.saturating_mul(BYTES_PER_MARK));
    }

    /// Sweeping begins: likewise.
    fn pace_sweeping(&mut self, objects: u64) {
        let sweep_num = self.machine.thresholds().sweep_num;
        // Every second cell may be a free run, and every block may be free.
        let cells = 2 * objects as usize + self.machine.range().bytes / BLOCK_BYTES;
        let steps = cells / sweep_num + 1;
        let room = self
            .machine
            .space()
            .limit()
            .saturating_sub(self.machine.used());
        self.pace
            .start(room / steps, sweep_num.saturating_mul(BYTES_PER_SWEEP));
    }

    /// The machine is idle: chooses the next goal, and FREENUM unless it is a setting.
    fn pace_idle(&mut self, objects: u64) {
        let used = self.machine.used();
        let limit = self.machine.space().limit();
        let live = self.machine.marked().bytes as usize;
        let least = used + used / 16;
        self.pace.goal = self
            .config
            .next_threshold(live, GROWTH)
            .max(least)
            .min(limit);
        self.pace.debt = 0;
        if self.config.incremental.free_num == 0 {
            // What the program may allocate while the objects there are now are being marked, and
            // a few steps more.
            let mark_num = self.machine.thresholds().mark_num;
            let steps = mark_num.saturating_mul(4);
            let wanted = steps
                .saturating_add(objects as usize)
                .saturating_mul(BYTES_PER_MARK);
            let room = wanted.min(self.pace.goal.saturating_sub(used) / 2);
            let start = self.pace.goal.saturating_sub(room);
            self.machine.thresholds.free_num = (limit - start) / FREE_OBJECT_BYTES;
        }
    }
}

/// The thresholds in force: those set, and for the others what suits the heap's size. A step takes
/// about a hundred microseconds on a large heap.
fn thresholds(config: &HeapConfig) -> IncrementalSettings {
    let set = config.incremental;
    let or = |value: usize, default: usize| if value == 0 { default } else { value };
    let mark_num = or(set.mark_num, (config.max_bytes >> 16).clamp(256, 4096));
    let sweep_num = or(set.sweep_num, (config.max_bytes >> 15).clamp(512, 8192));
    IncrementalSettings {
        mark_num,
        sweep_num,
        free_num: set.free_num,
    }
}

// SAFETY: what is freed was white when the stack was empty and no root led to anything white. By
// the machine's invariant no black object led to it either, so it was not reachable; and what is
// not reachable stays so. Objects born since are black where the sweeper has yet to come.
unsafe impl Collector for Incremental {
    const NAME: &'static str = "incremental";
    const MOVES: bool = false;
    type Local = Local;

    fn new(config: &HeapConfig) -> Result<Incremental, HeapError> {
        config.at_least(BLOCK_BYTES, Self::NAME)?;
        let reservation = Reservation::new(config.max_bytes, config.huge_pages)?;
        let extent = Extent {
            start: reservation.start(),
            bytes: config.max_bytes,
        };
        let mut this = Incremental {
            machine: Machine::new(extent, config.max_bytes, thresholds(config)),
            pace: Pace::default(),
            roots: Vec::new(),
            record: None,
            config: config.clone(),
            reservation,
        };
        this.pace_idle(0);
        Ok(this)
    }

    fn attach(&mut self) -> Local {
        let mut local = Local::default();
        local.publish(&self.machine);
        local
    }

    fn retire(&mut self, local: &mut Local) {
        self.pace.debt += self.machine.retire(local);
    }

    #[inline(always)]
    fn allocate(local: &mut Local, request: Request) -> Option<usize> {
        if request.class.is_large() {
            return None;
        }
        match local.cache.take(request.class) {
            Some(cell) => Some(cell),
            None => next_run(local, request.class),
        }
    }

    fn refill(
        &mut self,
        _: &ShapeTable,
        local: &mut Local,
        request: Request,
        effort: Effort,
    ) -> Refill {
        self.pace.debt += self.machine.count(local);
        if effort == Effort::Normal {
            if self.cycle_is_due() {
                return Refill::Pause(Cause::Threshold);
            }
            if self.step_is_due() {
                return Refill::Step(Cause::Threshold);
            }
        }
        match self.memory(local, request) {
            Some(address) => Refill::Ready(address),
            // The cycle under way may free some.
            None if self.machine.phase() != Phase::Idle => Refill::Step(Cause::AllocationFailure),
            None => Refill::Pause(Cause::AllocationFailure),
        }
    }

    #[inline(always)]
    fn birth(local: &Local, address: usize, header: Header) -> Header {
        local.colour(address, header)
    }

    #[inline(always)]
    unsafe fn initialise(local: &mut Local, value: Ref) {
        // SAFETY: promised by the caller. The new object is black: what it refers to must not be
        // white.
        unsafe { local.barrier(value) }
    }

    #[inline(always)]
    unsafe fn store(local: &mut Local, _: &ShapeTable, _object: usize, slot: usize, value: Ref) {
        // SAFETY: promised by the caller.
        unsafe { local.dijkstra_store(slot, value) }
    }

    fn collect(world: &mut World<'_, Self>, work: Work) {
        match work {
            Work::Step | Work::Allocation(..) => step(world, work.cause()),
            Work::Full(cause) => full(world, cause),
        }
        world.each_local(|this, local| local.publish(&this.machine));
    }

    unsafe fn each_object(&self, _: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        // SAFETY: promised by the caller.
        unsafe {
            self.machine.space().each_object(|address, word| {
                if !self.machine.awaits_sweep(address, word) {
                    visit(address, word);
                }
            });
        }
    }

    fn is_object_start(&self, _: &ShapeTable, address: usize) -> bool {
        self.machine.space().is_object_start(address)
            // SAFETY: the space says that an object begins there.
            && !self.machine.awaits_sweep(address, unsafe { crate::object::header(address) })
    }

    fn used(&self) -> usize {
        self.machine.used()
    }

    fn committed(&self) -> usize {
        self.machine.space().committed()
    }

    fn largest(&self) -> usize {
        self.machine.space().limit()
    }

    fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        self.machine.verify(shapes)
    }
}

/// The next run of the block that the mutator is allocating in: needs no lock.
#[cold]
#[inline(never)]
fn next_run(local: &mut Local, class: SizeClass) -> Option<usize> {
    if local.cache.advance(class) {
        local.cache.take(class)
    } else {
        None
    }
}

/// One step, which is one pause of the cycle's record.
fn step(world: &mut World<'_, Incremental>, cause: Cause) {
    let before = world.usage();
    if world.collector().machine.phase() == Phase::Idle {
        let record = world
            .stats()
            .begin(CollectionKind::Incremental, cause, before);
        world.collector().record = Some(record);
    }
    let phase = advance(world);
    let quantum = world.collector().pace.quantum;
    let debt = &mut world.collector().pace.debt;
    *debt = debt.saturating_sub(quantum);
    let after = world.usage();
    let elapsed = world.timer().elapsed();
    let Some(mut record) = world.collector().record.take() else {
        return;
    };
    let stats = world.stats();
    let pause = Pause {
        phase,
        start: stats.uptime().saturating_sub(elapsed.wall),
        elapsed,
        bytes_before: before.bytes,
        bytes_after: after.bytes,
    };
    stats.pause(&mut record, pause);
    world.collector().record = Some(record);
    if world.collector().machine.phase() == Phase::Idle {
        close_record(world);
    }
}

/// Ends the record of a cycle that was done in steps.
fn close_record(world: &mut World<'_, Incremental>) {
    let this = world.collector();
    let (marked, freed) = (this.machine.marked(), this.machine.freed());
    let Some(mut record) = this.record.take() else {
        return;
    };
    record.marked = marked;
    record.freed = freed;
    let after = world.usage();
    let stats = world.stats();
    let elapsed = Elapsed {
        wall: stats.uptime().saturating_sub(record.start),
        cpu: record.pauses().total().cpu,
    };
    stats.finish(record, after, elapsed);
}

/// Collects everything that is dead now: what died since the cycle under way began may have been
/// marked already, so that cycle is driven to its end and another follows, all in one pause.
fn full(world: &mut World<'_, Incremental>, cause: Cause) {
    while world.collector().machine.phase() != Phase::Idle {
        advance(world);
    }
    // The pause as a whole is counted in the record of the full collection.
    close_record(world);
    world.begin(CollectionKind::Full, cause);
    advance(world);
    while world.collector().machine.phase() != Phase::Idle {
        advance(world);
    }
    let this = world.collector();
    let marked = this.machine.marked();
    // Free blocks beyond the next goal will not be needed soon.
    let space = this.machine.space();
    let keep = this.pace.goal.saturating_sub(space.committed()) / BLOCK_BYTES;
    space.pool().release(&this.reservation, keep as u32);
    world.tally(marked, Amount::default(), Amount::default());
}

/// One operation of the machine, whichever is next.
fn advance(world: &mut World<'_, Incremental>) -> PausePhase {
    let shapes = world.shapes();
    let machine = &mut world.collector().machine;
    match machine.phase() {
        Phase::Idle => {
            start_marking(world);
            PausePhase::InitialMark
        }
        Phase::Mark if machine.stack_count() > 0 => {
            // SAFETY: the world is stopped; slots of marked objects hold objects of this heap.
            unsafe { machine.mark(shapes) };
            PausePhase::MarkStep
        }
        Phase::Mark => {
            finish_marking(world);
            PausePhase::Remark
        }
        Phase::Sweep => {
            sweep(world);
            PausePhase::SweepStep
        }
    }
}

fn start_marking(world: &mut World<'_, Incremental>) {
    let objects = world.usage().objects;
    let roots = roots(world);
    let this = world.collector();
    this.pace_marking(objects);
    // SAFETY: the machine is idle, and the world is stopped.
    unsafe { this.machine.start_marking(&roots) };
    this.roots = roots;
}

/// All roots as they are now, in the buffer that is kept for them.
fn roots(world: &mut World<'_, Incremental>) -> Vec<Ref> {
    let mut roots = std::mem::take(&mut world.collector().roots);
    roots.clear();
    world.each_root(|root| roots.push(*root));
    roots
}

/// The stack is empty: marks the roots again, since they have no barrier, and goes on with what
/// was found; if nothing was, decides about weak references and begins to sweep.
fn finish_marking(world: &mut World<'_, Incremental>) {
    let shapes = world.shapes();
    let roots = roots(world);
    let this = world.collector();
    // SAFETY: as in `advance`; roots hold objects of this heap.
    unsafe {
        this.machine.mark_roots(&roots);
        this.machine.mark(shapes);
    }
    this.roots = roots;
    if this.machine.num_mark() > 0 {
        return;
    }
    let objects = world.usage().objects;
    let (this, shapes, guardians) = world.parts();
    let mut marking = Marking {
        machine: &mut this.machine,
        shapes,
    };
    // SAFETY: the world is stopped, and all that is reachable from the roots is marked.
    let outcome = unsafe { weak::process(shapes, guardians, &mut marking) };
    world.report_cleared(outcome);
    let this = world.collector();
    // SAFETY: nothing is grey, no root leads to a white object, and weak processing has dealt with
    // all weak references.
    unsafe { this.machine.start_sweeping() };
    this.pace_sweeping(objects);
}

fn sweep(world: &mut World<'_, Incremental>) {
    // SAFETY: the phase is Sweep, the world is stopped, and locals are retired.
    let freed = unsafe { world.collector().machine.sweep() };
    world.tally(Amount::default(), Amount::default(), freed);
    let objects = world.usage().objects;
    let this = world.collector();
    if this.machine.phase() == Phase::Idle {
        this.pace_idle(objects);
    }
}
