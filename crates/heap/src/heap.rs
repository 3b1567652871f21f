//! The heap: shapes, roots, mutators, and the stopping of the world.
//!
//! One lock guards everything that is shared (the collector, the registry of mutators, the global
//! handles, the statistics). Mutators take it only when their fast path has run dry.
//!
//! **Safepoints.** A mutator runs until it reaches a safepoint: the slow path of an allocation,
//! [`Mutator::safepoint`](crate::mutator::Mutator::safepoint), or a blocking call. Who wants the
//! world to stop sets `stopping` under the lock and waits until all other mutators are parked; a
//! mutator that meets `stopping` parks and waits until it is false again. The invariant: while the
//! [`World`] exists, the lock is held, every mutator is parked (or is the one that stopped the
//! world), and all locals have been retired.

use crate::collector::{Collector, Work};
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::mutator::{Core, Mutator};
use crate::reference::Ref;
use crate::roots::{Globals, Roots};
use crate::shape::{Shape, ShapeId, ShapeInfo, ShapeSpec, ShapeTable};
use crate::stats::{Amount, Cause, Collection, CollectionKind, Elapsed, Stats, Timer, Usage};
use crate::weak::{Guardians, Outcome};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A garbage-collected heap with collector `C`. Handles are cheap to clone; the memory goes when
/// the last handle and the last mutator are gone.
pub struct Heap<C: Collector> {
    pub(crate) inner: Arc<Inner<C>>,
}

impl<C: Collector> Clone for Heap<C> {
    fn clone(&self) -> Heap<C> {
        Heap {
            inner: Arc::clone(&self.inner),
        }
    }
}

pub(crate) struct Inner<C: Collector> {
    /// Tells heaps of a process apart.
    pub(crate) number: u32,
    pub(crate) config: HeapConfig,
    pub(crate) shapes: ShapeTable,
    /// Mirror of `State::stopping`, for polling without the lock.
    pub(crate) stop: AtomicBool,
    state: Mutex<State<C>>,
    /// Signalled when a mutator parks, and when the world starts again.
    changed: Condvar,
}

pub(crate) struct State<C: Collector> {
    pub(crate) collector: C,
    mutators: Vec<Registered<C>>,
    parked: usize,
    stopping: bool,
    /// Counts how often the world has started again, so that a parked mutator can tell.
    restarts: u64,
    pub(crate) globals: Globals,
    pub(crate) guardians: Guardians,
    pub(crate) stats: Stats,
    /// Objects whose weak slots were cleared, when the embedder asked to be told.
    pub(crate) cleared: Option<Vec<Ref>>,
    /// Objects in use: those after the last collection, and those allocated since.
    objects: u64,
    /// Bytes in use when the world last started again, to tell what was allocated since.
    bytes_after: u64,
}

impl<C: Collector> State<C> {
    /// How full the heap is.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            objects: self.objects,
            bytes: self.collector.used() as u64,
            capacity: self.collector.committed() as u64,
        }
    }

    /// Counts what a mutator has allocated; its local has been retired.
    fn count_allocated(&mut self, objects: u64) {
        let used = self.collector.used() as u64;
        let bytes = used.saturating_sub(self.bytes_after);
        self.bytes_after = used;
        self.objects += objects;
        self.stats.allocate(Amount { objects, bytes });
    }
}

/// A mutator as the registry knows it.
struct Registered<C: Collector> {
    core: NonNull<Core<C>>,
    roots: NonNull<dyn Roots>,
}

// SAFETY: the pointers are used only while their mutator is parked or is the current thread.
unsafe impl<C: Collector> Send for Registered<C> {}

impl<C: Collector> Drop for Inner<C> {
    fn drop(&mut self) {
        let state = match self.state.get_mut() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        };
        state.collector.shutdown();
    }
}

static NEXT_HEAP: AtomicU32 = AtomicU32::new(1);

impl<C: Collector> Heap<C> {
    /// A new, empty heap.
    pub fn new(config: HeapConfig) -> Result<Heap<C>, HeapError> {
        config.check()?;
        let collector = C::new(&config)?;
        let number = NEXT_HEAP.fetch_add(1, Ordering::Relaxed);
        let heap = Heap {
            inner: Arc::new(Inner {
                number,
                shapes: ShapeTable::new(number),
                stop: AtomicBool::new(false),
                state: Mutex::new(State {
                    collector,
                    mutators: Vec::new(),
                    parked: 0,
                    stopping: false,
                    restarts: 0,
                    globals: Globals::default(),
                    guardians: Guardians::default(),
                    stats: Stats::new(C::NAME).with_history(config.records),
                    cleared: None,
                    objects: 0,
                    bytes_after: 0,
                }),
                changed: Condvar::new(),
                config,
            }),
        };
        C::start(&heap)?;
        Ok(heap)
    }

    /// Defines a shape.
    pub fn define(&self, spec: ShapeSpec) -> Result<Shape, HeapError> {
        self.inner.shapes.define(spec)
    }

    /// The description of a shape, if there is one of this index.
    pub fn shape_info(&self, id: ShapeId) -> Option<&ShapeInfo> {
        self.inner.shapes.info(id)
    }

    /// The shape of this index, ready for allocation.
    pub fn shape(&self, id: ShapeId) -> Option<Shape> {
        self.inner.shapes.shape(id)
    }

    /// The shapes of this heap.
    pub fn shapes(&self) -> &ShapeTable {
        &self.inner.shapes
    }

    /// The settings.
    pub fn config(&self) -> &HeapConfig {
        &self.inner.config
    }

    /// A mutator for the calling thread, with no further roots: the entrance to the raw layer. For
    /// the safe one see [`Heap::session`].
    ///
    /// # Safety
    /// The caller keeps to the contract of [`crate::mutator`] in everything done with it: every
    /// reference put into a root, a slot, a global handle or a guardian was read from this heap
    /// since the mutator's last safepoint (or is null, or an immediate).
    pub unsafe fn mutator(&self) -> Mutator<C> {
        Mutator::attach(self, ())
    }

    /// A mutator that owns a further source of roots.
    ///
    /// # Safety
    /// As for [`Heap::mutator`]; and `roots` shows the collector all references that it holds, and
    /// keeps what the collector writes.
    pub unsafe fn mutator_with<R: Roots + 'static>(&self, roots: R) -> Mutator<C, R> {
        Mutator::attach(self, roots)
    }

    /// A copy of the statistics. What a mutator has allocated is counted when it ends and when the
    /// world stops.
    pub fn stats(&self) -> Stats {
        self.inner.lock().stats.clone()
    }

    /// Bytes taken from the operating system for objects.
    pub fn committed(&self) -> usize {
        self.inner.lock().collector.committed()
    }

    /// Bytes in use, as far as the collector knows without looking.
    pub fn used(&self) -> usize {
        self.inner.lock().collector.used()
    }

    /// From now on, objects whose weak slots are cleared are kept in a list until they are taken
    /// with [`Heap::take_cleared`] (they are roots meanwhile): the ground of reference queues.
    pub fn remember_cleared(&self) {
        self.inner.lock().cleared.get_or_insert_default();
    }

    /// Takes the objects in which a weak slot was cleared. The references are raw: they are valid
    /// until the next safepoint of the calling mutator.
    pub fn take_cleared(&self) -> Vec<Ref> {
        let mut state = self.inner.lock();
        state
            .cleared
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

impl<C: Collector> Inner<C> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<C>> {
        crate::lock(&self.state)
    }

    /// The lock, for a mutator that is running: parks first if the world is being stopped.
    pub(crate) fn lock_running(&self) -> MutexGuard<'_, State<C>> {
        let state = self.lock();
        if state.stopping {
            self.park(state)
        } else {
            state
        }
    }

    /// Waits as a parked mutator until the world runs again.
    fn park<'a>(&self, mut state: MutexGuard<'a, State<C>>) -> MutexGuard<'a, State<C>> {
        while state.stopping {
            state.parked += 1;
            self.changed.notify_all();
            let restarts = state.restarts;
            while state.stopping && state.restarts == restarts {
                state = wait(&self.changed, state);
            }
            state.parked -= 1;
        }
        state
    }

    /// Counts the calling mutator as parked while `body` runs without touching the heap.
    pub(crate) fn blocking<T>(&self, body: impl FnOnce() -> T) -> T {
        /// Counts the mutator as running again, also when `body` panics: a count that is too high
        /// would let the world stop without waiting for somebody else.
        struct Unpark<'a, C: Collector>(&'a Inner<C>);
        impl<C: Collector> Drop for Unpark<'_, C> {
            fn drop(&mut self) {
                let mut state = self.0.lock();
                while state.stopping {
                    state = wait(&self.0.changed, state);
                }
                state.parked -= 1;
            }
        }
        {
            let mut state = self.lock_running();
            state.parked += 1;
            self.changed.notify_all();
        }
        let _unpark = Unpark(self);
        body()
    }

    /// The lock, for a thread that is no mutator: waits while the world is stopped.
    pub(crate) fn lock_beside(&self) -> MutexGuard<'_, State<C>> {
        let mut state = self.lock();
        while state.stopping {
            state = wait(&self.changed, state);
        }
        state
    }

    /// Waits as a parked mutator until [`Collector::progress`] is no longer `seen`.
    pub(crate) fn wait_for_progress(&self, seen: u64) {
        let mut state = self.lock_running();
        state.parked += 1;
        self.changed.notify_all();
        while state.stopping || state.collector.progress() == seen {
            state = wait(&self.changed, state);
        }
        state.parked -= 1;
    }

    /// Wakes those who wait for progress.
    pub(crate) fn announce_progress(&self) {
        self.changed.notify_all();
    }

    /// Adds a mutator. Its core is made under the lock, so that no phase of the collector passes
    /// between its making and its registration.
    pub(crate) fn register(
        &self,
        roots: NonNull<dyn Roots>,
        make_core: impl FnOnce(&mut C) -> NonNull<Core<C>>,
    ) -> NonNull<Core<C>> {
        let mut state = self.lock();
        while state.stopping {
            state = wait(&self.changed, state);
        }
        let core = make_core(&mut state.collector);
        state.mutators.push(Registered { core, roots });
        core
    }

    /// Takes the mutator out of the registry and gives its memory back.
    pub(crate) fn unregister(&self, core: NonNull<Core<C>>) {
        let mut state = self.lock_running();
        state.mutators.retain(|m| m.core != core);
        // SAFETY: called by the mutator that owns the core.
        let core = unsafe { &mut *core.as_ptr() };
        let allocated = core.take_allocated();
        state.collector.retire(&mut core.local);
        state.count_allocated(allocated);
    }

    /// Stops the world and calls `body`. `running` tells whether the caller is a mutator itself.
    /// Gives `None`, without having called it, when another thread stopped the world first: then
    /// the caller should look again whether it is still necessary.
    pub(crate) fn stop_the_world<T>(
        &self,
        running: bool,
        body: impl FnOnce(&mut World<'_, C>) -> T,
    ) -> Option<T> {
        let mut state = self.lock();
        if state.stopping {
            if running {
                drop(self.park(state));
            } else {
                while state.stopping {
                    state = wait(&self.changed, state);
                }
            }
            return None;
        }
        let timer = Timer::start();
        state.stopping = true;
        self.stop.store(true, Ordering::SeqCst);
        while state.parked + usize::from(running) < state.mutators.len() {
            state = wait(&self.changed, state);
        }
        let mut stopped = Stopped { inner: self, state };
        let mut world = World::new(self, &mut stopped.state, timer);
        let result = body(&mut world);
        world.finish();
        Some(result)
    }

    /// Collects on behalf of a mutator. False when another thread did so first.
    pub(crate) fn collect(&self, work: Work) -> bool {
        self.stop_the_world(true, |world| C::collect(world, work))
            .is_some()
    }
}

/// While it lives, the world is stopped; also when the collector panics, so that no mutator waits
/// for ever.
struct Stopped<'a, C: Collector> {
    inner: &'a Inner<C>,
    state: MutexGuard<'a, State<C>>,
}

impl<C: Collector> Drop for Stopped<'_, C> {
    fn drop(&mut self) {
        self.state.stopping = false;
        self.state.restarts += 1;
        self.inner.stop.store(false, Ordering::SeqCst);
        self.inner.changed.notify_all();
    }
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    // A panic elsewhere does not break the invariants of the state: they hold between operations.
    condition
        .wait(guard)
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The heap with the world stopped: what a collector works on.
pub struct World<'a, C: Collector> {
    inner: &'a Inner<C>,
    state: &'a mut State<C>,
    record: Option<Collection>,
    timer: Timer,
    /// The time of this stop that has been charged to records already closed.
    charged: Elapsed,
}

impl<'a, C: Collector> World<'a, C> {
    fn new(inner: &'a Inner<C>, state: &'a mut State<C>, timer: Timer) -> World<'a, C> {
        let mut world = World {
            inner,
            state,
            record: None,
            timer,
            charged: Elapsed::default(),
        };
        world.state.collector.stopped();
        world.retire_all();
        world
    }

    fn retire_all(&mut self) {
        let mut allocated = 0;
        for mutator in &self.state.mutators {
            // SAFETY: the world is stopped, so nobody else uses the core.
            let core = unsafe { &mut *mutator.core.as_ptr() };
            allocated += core.take_allocated();
            self.state.collector.retire(&mut core.local);
        }
        self.state.count_allocated(allocated);
    }

    /// The collector.
    pub fn collector(&mut self) -> &mut C {
        &mut self.state.collector
    }

    /// The collector and the statistics together.
    pub fn collector_and_stats(&mut self) -> (&mut C, &mut Stats) {
        (&mut self.state.collector, &mut self.state.stats)
    }

    /// The collector and the shapes together.
    pub fn parts(&mut self) -> (&mut C, &'a ShapeTable, &mut Guardians) {
        (
            &mut self.state.collector,
            &self.inner.shapes,
            &mut self.state.guardians,
        )
    }

    /// The shapes.
    pub fn shapes(&self) -> &'a ShapeTable {
        &self.inner.shapes
    }

    /// The settings.
    pub fn config(&self) -> &'a HeapConfig {
        &self.inner.config
    }

    /// The statistics.
    pub fn stats(&mut self) -> &mut Stats {
        &mut self.state.stats
    }

    /// The stopwatch that was started when the world was told to stop.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Calls `visit` with every root. What it writes becomes the root.
    pub fn each_root(&mut self, mut visit: impl FnMut(&mut Ref)) {
        let State {
            mutators,
            globals,
            guardians,
            cleared,
            ..
        } = &mut *self.state;
        for mutator in mutators {
            // SAFETY: the world is stopped, so nobody else uses core and roots.
            unsafe {
                (*mutator.core.as_ptr())
                    .stack
                    .as_mut_slice()
                    .iter_mut()
                    .for_each(&mut visit);
                (*mutator.roots.as_ptr()).trace(&mut visit);
            }
        }
        globals.each(|_, root| visit(root));
        guardians.each_root(&mut visit);
        cleared.iter_mut().flatten().for_each(visit);
    }

    /// Calls `visit` with every root and its name.
    pub fn each_named_root(&mut self, visit: &mut dyn FnMut(String, Ref)) {
        let State {
            mutators,
            globals,
            guardians,
            cleared,
            ..
        } = &mut *self.state;
        for (thread, mutator) in mutators.iter().enumerate() {
            // SAFETY: the world is stopped, so nobody else uses core and roots.
            unsafe {
                for (i, root) in (*mutator.core.as_ptr()).stack.as_slice().iter().enumerate() {
                    visit(format!("mutator {thread} stack[{i}]"), *root);
                }
                let mut roots = Vec::new();
                (*mutator.roots.as_ptr()).trace(&mut |root| roots.push(*root));
                for (i, root) in roots.into_iter().enumerate() {
                    let name = (*mutator.roots.as_ptr()).name(i);
                    visit(format!("mutator {thread} {name}"), root);
                }
            }
        }
        globals.each(|id, root| visit(format!("global {}", id.0), *root));
        let mut index = 0;
        guardians.each_root(|root| {
            visit(format!("guardian queue[{index}]"), *root);
            index += 1;
        });
        for (i, root) in cleared.iter().flatten().enumerate() {
            visit(format!("cleared references[{i}]"), *root);
        }
    }

    /// Calls `visit` with the local part of every mutator.
    pub fn each_local(&mut self, mut visit: impl FnMut(&mut C, &mut C::Local)) {
        let State {
            mutators,
            collector,
            ..
        } = &mut *self.state;
        for mutator in mutators {
            // SAFETY: the world is stopped, so nobody else uses the core.
            visit(collector, unsafe { &mut (*mutator.core.as_ptr()).local });
        }
    }

    /// How full the heap is.
    pub fn usage(&self) -> Usage {
        self.state.usage()
    }

    /// Opens the record of a collection that begins and ends in this pause. The record is closed
    /// when the world starts again.
    pub fn begin(&mut self, kind: CollectionKind, cause: Cause) -> &mut Collection {
        self.close_record();
        let usage = self.usage();
        let record = self.state.stats.begin(kind, cause, usage);
        self.record.insert(record)
    }

    /// Counts what became of the objects of a collection: for those that mark, `freed` may still
    /// be waiting for the sweeper.
    pub fn tally(&mut self, marked: Amount, copied: Amount, freed: Amount) {
        self.state.objects = self.state.objects.saturating_sub(freed.objects);
        if let Some(record) = &mut self.record {
            record.marked += marked;
            record.copied += copied;
            record.freed += freed;
        }
    }

    /// Says how much CPU time of this collection went into marking.
    pub fn record_marking(&mut self, cpu: Duration) {
        if let Some(record) = &mut self.record {
            record.marking += cpu;
        }
    }

    /// Sets the number of objects in use, when a full trace has counted them.
    pub fn set_objects(&mut self, objects: u64) {
        self.state.objects = objects;
    }

    /// Passes the outcome of weak processing on to an embedder who wants to know.
    pub fn report_cleared(&mut self, outcome: Outcome) {
        if let Some(list) = &mut self.state.cleared {
            list.extend(outcome.cleared);
        }
    }

    /// When one stop holds two collections, each is charged with its own time.
    fn close_record(&mut self) {
        let total = self.timer.elapsed();
        if let Some(record) = self.record.take() {
            let usage = self.usage();
            let own = Elapsed {
                wall: total.wall.saturating_sub(self.charged.wall),
                cpu: total.cpu.saturating_sub(self.charged.cpu),
            };
            self.state.stats.finish_stopped(record, usage, own);
            self.charged = total;
        }
    }

    fn finish(mut self) {
        self.close_record();
        self.state.bytes_after = self.state.collector.used() as u64;
        if self.inner.config.sanity
            && let Err(problem) = crate::verify::verify(&mut self)
        {
            // The heap is broken: going on would corrupt the program's data.
            panic!(
                "sanity check after a {} collection failed: {problem}",
                C::NAME
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::MarkSweep;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A failed sanity check used to hang the program in the drop of its mutator.
    #[test]
    fn a_panic_while_the_world_is_stopped_lets_it_go_on() {
        let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default()).unwrap();
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut mutator = unsafe { heap.mutator() };
        let looked = catch_unwind(AssertUnwindSafe(|| {
            mutator.inspect(|_| -> () { panic!("on purpose") });
        }));
        assert!(looked.is_err());
        mutator.collect();
        assert_eq!(heap.stats().totals().collections, 1);
    }
}
