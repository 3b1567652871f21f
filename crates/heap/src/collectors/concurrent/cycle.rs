//! The cycle: what is done with the world stopped.
//!
//! Each of these functions runs inside a pause, on whichever thread stopped the world, and holds
//! the work meanwhile; the collector's thread does not touch the heap then.

use super::marking::{Marker, Verdict};
use super::{Concurrent, Phase, WorkState, thread};
use crate::header::MARK;
use crate::heap::World;
use crate::lock;
use crate::object;
use crate::stats::{
    Amount, Cause, CollectionKind, ConcurrentPhase, ConcurrentWork, Elapsed, Pause, PausePhase,
    Stats, Timer, Usage,
};
use crate::weak;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a pause may go on marking what the last look at the roots has brought to light.
pub(super) const REMARK_BUDGET: Duration = Duration::from_micros(200);
/// Nodes traced between two looks at the clock or at the stop flag.
pub(super) const STRIDE: usize = 128;
/// Nodes traced in a step that a program asked for.
const STEP_NODES: usize = 1024;
/// Blocks swept in a step that a program asked for.
const STEP_BLOCKS: usize = 16;

type Stopped<'a, 'b> = &'a mut World<'b, Concurrent>;

/// Begins a cycle: S ← {} ‖ WS ← roots.
pub(super) fn begin(world: Stopped<'_, '_>, cause: Cause) {
    flip(world);
    let before = world.usage();
    let record = world
        .stats()
        .begin(CollectionKind::Concurrent, cause, before);
    world.collector().current.record = Some(record);
    record_pause(world, PausePhase::InitialMark, before);
    let now = world.stats().uptime();
    world.collector().current.stretch = now;
    thread::wake(&world.collector().shared);
}

/// Turns the sense over, switches the barriers on and reads the roots.
fn flip(world: Stopped<'_, '_>) {
    let began = world.usage();
    let this = world.collector();
    debug_assert!(this.phase == Phase::Idle && !this.space.has_unswept());
    this.requested = None;
    this.sense ^= MARK;
    this.phase = Phase::Mark;
    this.current.began = began;
    this.current.allocated_before = this.allocated;
    this.current.cpu = Duration::ZERO;
    let sense = this.sense;
    world.each_local(|_, local| {
        local.sense = sense;
        local.barrier.set_marking(true);
    });
    let shared = Arc::clone(&world.collector().shared);
    let work = &mut *lock(&shared.work);
    work.cpu = Duration::ZERO;
    work.found.start(sense);
    world.each_root(|root| work.set.push(*root));
}

/// Looks whether S is complete: WS ← WS ∪ roots \ S, and marks what that brings for as long as
/// `budget` says. True when marking has ended.
pub(super) fn remark(world: Stopped<'_, '_>, budget: Duration) -> bool {
    let before = world.usage();
    let shared = Arc::clone(&world.collector().shared);
    let work = &mut *lock(&shared.work);
    let (this, stats) = world.collector_and_stats();
    end_stretch(this, work, stats, ConcurrentPhase::Mark);
    work.set.absorb(&mut lock(&shared.greys));
    world.each_root(|root| work.set.push(*root));
    let done = mark_for(world, work, budget);
    if done {
        complete(world, work);
    }
    record_pause(world, PausePhase::Remark, before);
    let now = world.stats().uptime();
    world.collector().current.stretch = now;
    done
}

/// Marks until nothing is left, or the time is over. True when nothing is left.
fn mark_for(world: Stopped<'_, '_>, work: &mut WorkState, budget: Duration) -> bool {
    // SAFETY: while marking nothing is freed, so all that is reachable is there.
    let mut marker = unsafe { Marker::new(world.shapes(), &mut work.found) };
    let started = Instant::now();
    while !work.set.advance(&mut marker, STRIDE) {
        if started.elapsed() >= budget {
            return false;
        }
    }
    true
}

/// S is complete: decides weak references, and declares all blocks unswept.
fn complete(world: Stopped<'_, '_>, work: &mut WorkState) {
    let (_, shapes, guardians) = world.parts();
    // SAFETY: the world is stopped, and everything reachable from the roots is marked.
    let outcome = unsafe {
        let mut marker = Marker::new(shapes, &mut work.found);
        let mut verdict = Verdict {
            marker: &mut marker,
            set: &mut work.set,
        };
        weak::process(shapes, guardians, &mut verdict)
    };
    work.found.forget_ephemerons();
    world.report_cleared(outcome);
    world.each_local(|_, local| local.barrier.set_marking(false));

    let now = world.usage();
    let began = world.collector().current.began;
    let marked = work.found.marked;
    let mut after = now.amount().minus(began.amount());
    after += marked;
    let freed = now.amount().minus(after);
    world.set_objects(after.objects);

    let this = world.collector();
    this.phase = Phase::Sweep;
    this.used = after.bytes as usize;
    this.current.live = marked.bytes as usize;
    this.marked_cycles += 1;
    this.progress += 1;
    this.space.schedule_sweep();
    let sense = this.sense;
    // SAFETY: what is not in S now is dead.
    unsafe {
        this.space
            .sweep_large(shapes, |word| object::is_marked(word, sense))
    };
    if let Some(record) = &mut this.current.record {
        record.marked = marked;
        record.freed = freed;
    } else {
        // A full collection: `World` keeps the record. The objects are counted already.
        world.tally(marked, Amount::default(), freed);
        world.set_objects(after.objects);
    }
}

/// Ends the cycle when everything has been swept. True when it has ended.
pub(super) fn end_if_swept(
    this: &mut Concurrent,
    work: &mut WorkState,
    stats: &mut Stats,
    usage: Usage,
) -> bool {
    if this.phase != Phase::Sweep || this.in_flight > 0 || this.space.has_unswept() {
        return false;
    }
    end_stretch(this, work, stats, ConcurrentPhase::Sweep);
    this.phase = Phase::Idle;
    this.progress += 1;
    let current = &mut this.current;
    let allocated = this.allocated - current.allocated_before;
    let began_at = current.began.bytes as usize;
    this.pacer
        .cycle_ended(began_at, current.live, this.used, allocated);
    if let Some(record) = current.record.take() {
        let mut elapsed = Elapsed {
            wall: stats.uptime().saturating_sub(record.start),
            cpu: current.cpu,
        };
        for work in &record.concurrent {
            elapsed.cpu += work.elapsed.cpu;
        }
        stats.finish(record, usage, elapsed);
    }
    true
}

/// Drives the cycle under way to its end.
pub(super) fn finish(world: Stopped<'_, '_>) {
    if world.collector().phase == Phase::Mark {
        remark(world, Duration::MAX);
    }
    if world.collector().phase == Phase::Sweep {
        while world.collector().sweep_one() {}
        end_sweep(world);
    }
}

/// Collects everything that is dead now, sweeps it, and gives back to the operating system what will
/// not be needed soon.
pub(super) fn full(world: Stopped<'_, '_>, cause: Cause) {
    finish(world);
    world.begin(CollectionKind::Full, cause);
    let timer = Timer::start();
    flip(world);
    mark_all(world);
    world.record_marking(timer.stop().cpu);
    finish(world);
    world.collector().release();
}

/// Marks everything in this pause.
fn mark_all(world: Stopped<'_, '_>) {
    let shared = Arc::clone(&world.collector().shared);
    let work = &mut *lock(&shared.work);
    mark_for(world, work, Duration::MAX);
    complete(world, work);
}

/// A bounded piece of the cycle, on behalf of the thread: begins one if none runs.
pub(super) fn step(world: Stopped<'_, '_>) {
    match world.collector().phase {
        Phase::Idle => begin(world, Cause::Explicit),
        Phase::Mark => {
            if mark_some(world) {
                remark(world, Duration::MAX);
            }
        }
        Phase::Sweep => {
            let before = world.usage();
            for _ in 0..STEP_BLOCKS {
                if !world.collector().sweep_one() {
                    break;
                }
            }
            record_pause(world, PausePhase::SweepStep, before);
            end_sweep(world);
        }
    }
}

/// Traces a bounded number of nodes. True when nothing is left.
fn mark_some(world: Stopped<'_, '_>) -> bool {
    let before = world.usage();
    let shared = Arc::clone(&world.collector().shared);
    let work = &mut *lock(&shared.work);
    // SAFETY: as in `mark_for`.
    let mut marker = unsafe { Marker::new(world.shapes(), &mut work.found) };
    let done = work.set.advance(&mut marker, STEP_NODES);
    if !done {
        record_pause(world, PausePhase::MarkStep, before);
    }
    done
}

/// Ends the cycle, if everything has been swept.
fn end_sweep(world: Stopped<'_, '_>) {
    let usage = world.usage();
    let shared = Arc::clone(&world.collector().shared);
    let (this, stats) = world.collector_and_stats();
    end_if_swept(this, &mut lock(&shared.work), stats, usage);
}

fn record_pause(world: Stopped<'_, '_>, phase: PausePhase, before: Usage) {
    let elapsed = world.timer().elapsed();
    let after = world.usage();
    let (this, stats) = world.collector_and_stats();
    let Some(record) = &mut this.current.record else {
        return;
    };
    let pause = Pause {
        phase,
        start: stats.uptime().saturating_sub(elapsed.wall),
        elapsed,
        bytes_before: before.bytes,
        bytes_after: after.bytes,
    };
    this.current.cpu += elapsed.cpu;
    if phase != PausePhase::SweepStep {
        record.marking += elapsed.cpu;
    }
    stats.pause(record, pause);
}

/// Notes what the thread has done since the stretch of work beside the mutators began, and begins
/// another.
fn end_stretch(this: &mut Concurrent, work: &mut WorkState, stats: &Stats, phase: ConcurrentPhase) {
    let now = stats.uptime();
    let start = std::mem::replace(&mut this.current.stretch, now);
    let elapsed = Elapsed {
        wall: now.saturating_sub(start),
        cpu: std::mem::take(&mut work.cpu),
    };
    if let Some(record) = &mut this.current.record {
        if phase == ConcurrentPhase::Mark {
            record.marking += elapsed.cpu;
        }
        record.concurrent.push(ConcurrentWork {
            phase,
            start,
            elapsed,
        });
    }
}
