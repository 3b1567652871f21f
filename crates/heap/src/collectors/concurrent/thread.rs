//! The collector's thread.
//!
//! It sleeps until a cycle is wanted, and then works in stints of about a millisecond. It holds the
//! heap only during a stint, and no lock while it marks or sweeps but that of its own work; it looks
//! at the stop flag every few microseconds, and lets go of the work when it is set. So nobody waits
//! for it longer than that.
//!
//! It ends when the heap has gone. When the last handle is dropped, the thread is between two stints
//! and is told to [stop]; or it is in one, and then it is the thread that drops the heap.

use super::marking::Marker;
use super::{Concurrent, Phase, Shared, cycle};
use crate::error::HeapError;
use crate::heap::{Heap, Inner, State};
use crate::lock;
use crate::memory;
use crate::object;
use crate::stats::thread_cpu_time;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the thread works before it looks around.
const STINT: Duration = Duration::from_millis(1);
/// Blocks that are taken out to be swept at a time.
const BATCH: usize = 32;

/// What the thread is told.
#[derive(Default, Debug)]
pub(super) struct Signal {
    wanted: bool,
    quit: bool,
}

/// Starts the thread.
pub(super) fn spawn(heap: &Heap<Concurrent>) -> Result<JoinHandle<()>, HeapError> {
    let inner = Arc::downgrade(&heap.inner);
    let shared = Arc::clone(&heap.inner.lock().collector.shared);
    std::thread::Builder::new()
        .name("liveoak-concurrent".to_string())
        .spawn(move || run(&inner, &shared))
        .map_err(|error| HeapError::Thread(error.to_string()))
}

/// Tells the thread that there is work.
pub(super) fn wake(shared: &Shared) {
    lock(&shared.signal).wanted = true;
    shared.bell.notify_one();
}

/// Tells the thread to end, and waits until it has.
pub(super) fn stop(shared: &Shared, thread: Option<JoinHandle<()>>) {
    lock(&shared.signal).quit = true;
    shared.bell.notify_one();
    if let Some(thread) = thread
        && thread.thread().id() != std::thread::current().id()
    {
        // The thread aborts the process when it panics, so there is no error to pass on.
        let _ = thread.join();
    }
}

/// A broken heap that the thread has found cannot be reported to any caller, and the mutators would
/// wait for ever: so the process ends.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

fn run(heap: &Weak<Inner<Concurrent>>, shared: &Shared) {
    let _abort = AbortOnPanic;
    while wait_for_work(shared) {
        loop {
            let Some(inner) = heap.upgrade() else { return };
            if !stint(&inner, shared) {
                break;
            }
        }
    }
}

/// Sleeps until there is work. False when the thread must end.
fn wait_for_work(shared: &Shared) -> bool {
    let mut signal = lock(&shared.signal);
    loop {
        if signal.quit {
            return false;
        }
        if std::mem::take(&mut signal.wanted) {
            return true;
        }
        signal = shared
            .bell
            .wait(signal)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
    }
}

/// Does a piece of the cycle. False when there is nothing to do.
fn stint(inner: &Inner<Concurrent>, shared: &Shared) -> bool {
    let warmed = warm(inner);
    let state = inner.lock_beside();
    match (state.collector.phase, state.collector.requested) {
        (Phase::Idle, None) => return warmed,
        (Phase::Idle, Some(cause)) => {
            drop(state);
            inner.stop_the_world(false, |world| {
                if world.collector().phase == Phase::Idle {
                    cycle::begin(world, cause);
                }
            });
        }
        (Phase::Mark, _) => {
            drop(state);
            if mark(inner, shared) {
                inner.stop_the_world(false, |world| {
                    if world.collector().phase == Phase::Mark {
                        cycle::remark(world, cycle::REMARK_BUDGET);
                    }
                });
            }
        }
        (Phase::Sweep, _) => sweep(inner, state, shared),
    }
    true
}

/// Gives some memory pages before a mutator comes to it. False when there is no need.
fn warm(inner: &Inner<Concurrent>) -> bool {
    let Some(extent) = inner.lock_beside().collector.next_to_warm() else {
        return false;
    };
    // SAFETY: the extent lies in the heap's reservation, and the heap is held meanwhile.
    unsafe { memory::populate(extent.start, extent.bytes) };
    true
}

/// Marks for a while. True when no work is left but what the mutators' buffers and the roots hold.
fn mark(inner: &Inner<Concurrent>, shared: &Shared) -> bool {
    let work = &mut *lock(&shared.work);
    // The phase may have changed before the work was ours. Then the work set is empty, and nothing
    // is touched below; who stops the world next will see.
    let (started, cpu) = (Instant::now(), thread_cpu_time());
    let mut done = false;
    // SAFETY: nothing is freed while there is work to mark; when the world stops, `stop` is set
    // before anyone else can have the work.
    let mut marker = unsafe { Marker::new(&inner.shapes, &mut work.found) };
    while !inner.stop.load(Ordering::SeqCst) && started.elapsed() < STINT {
        if !work.set.advance(&mut marker, cycle::STRIDE) {
            continue;
        }
        work.set.absorb(&mut lock(&shared.greys));
        if work.set.is_empty() && marker.settle(&mut work.set) {
            done = true;
            break;
        }
    }
    work.cpu += thread_cpu_time().saturating_sub(cpu);
    done
}

/// Sweeps some blocks, or ends the cycle when none is left.
fn sweep(inner: &Inner<Concurrent>, mut state: MutexGuard<'_, State<Concurrent>>, shared: &Shared) {
    let cpu = thread_cpu_time();
    let mut work = lock(&shared.work);
    if !state.collector.space.has_unswept() {
        let usage = state.usage();
        let State {
            collector, stats, ..
        } = &mut *state;
        cycle::end_if_swept(collector, &mut work, stats, usage);
        drop(state);
        inner.announce_progress();
        return;
    }
    let sense = state.collector.sense;
    state.collector.space.take_unswept(BATCH, &mut work.blocks);
    state.collector.in_flight = work.blocks.len();
    drop(state);
    for block in &mut work.blocks {
        if inner.stop.load(Ordering::SeqCst) {
            break;
        }
        // SAFETY: S was complete before blocks were declared unswept, and nobody walks the heap
        // before they have the work.
        unsafe { block.sweep(|word| object::is_marked(word, sense)) };
    }
    work.cpu += thread_cpu_time().saturating_sub(cpu);
    drop(work);
    let mut state = inner.lock_beside();
    if state.collector.take_blocks_back(&mut lock(&shared.work)) {
        drop(state);
        inner.announce_progress();
    }
}
