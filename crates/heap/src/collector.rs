//! What a collector is: the interface between the heap and the family of collectors.
//!
//! A collector is a type. The heap, its mutators and a virtual machine above them are generic over
//! it, so that allocation and barrier are inlined and nothing is dispatched at run time. To choose
//! by name at run time, see [`crate::kind`].

use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::header::Header;
use crate::heap::World;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use crate::space::size_class::SizeClass;
use crate::stats::Cause;

/// Memory wanted for one object.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Bytes of the object with its header, a multiple of 8.
    pub bytes: usize,
    /// Its size class, or [`SizeClass::LARGE`].
    pub class: SizeClass,
}

/// How hard a collector should try to find memory. Each level comes after the one before has
/// failed, with a collection in between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Effort {
    /// The first attempt: within the thresholds.
    Normal,
    /// After an ordinary collection: up to the limit.
    Limit,
    /// After a full collection: anything left.
    Last,
}

/// The answer of [`Collector::refill`].
#[derive(Clone, Copy, Debug)]
pub enum Refill {
    /// Here is the memory (contents undefined).
    Ready(usize),
    /// The world must stop first, for this reason.
    Pause(Cause),
    /// The world must stop for one step of the collector, which is then asked again, with the same
    /// effort. Who answers this must come nearer to another answer with each step.
    Step(Cause),
    /// A collector that works beside the mutators is about to free memory: wait, parked, until
    /// [`Collector::progress`] is no longer this number, and ask again.
    Wait(u64),
}

/// Why the world was stopped, and what is asked of the collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A mutator found no memory: do what this collector does then (a minor collection, a step).
    Allocation(Effort, Cause),
    /// Collect everything that is dead now.
    Full(Cause),
    /// One step of a collector that works in steps; others collect as for an allocation.
    Step,
}

impl Work {
    /// The cause, for the record.
    pub fn cause(self) -> Cause {
        match self {
            Work::Allocation(_, cause) | Work::Full(cause) => cause,
            Work::Step => Cause::Explicit,
        }
    }
}

/// A garbage collector.
///
/// # Safety
/// An implementation frees no object that is reachable from the roots, and after each of its
/// operations every reference in a root or a reachable slot leads to the object that it led to
/// before (at its new place, if it moved). The heap's safe layer relies on it.
pub unsafe trait Collector: Sized + Send + 'static {
    /// The name by which it is chosen.
    const NAME: &'static str;
    /// True when objects change their place.
    const MOVES: bool;
    /// True when the memory that [`Collector::allocate`] gives is zero already.
    const ZEROED: bool = false;
    /// What each mutator holds: its part of the allocator and of the barrier.
    type Local: Send;

    /// A collector with its memory.
    fn new(config: &HeapConfig) -> Result<Self, HeapError>;

    /// The part of a new mutator.
    fn attach(&mut self) -> Self::Local;

    /// Takes back what `local` holds of the heap, so that the heap can be walked. Called when the
    /// world stops and when a mutator ends.
    fn retire(&mut self, local: &mut Self::Local);

    /// Memory for an object, without the lock: the fast path. Zero if [`Collector::ZEROED`].
    fn allocate(local: &mut Self::Local, request: Request) -> Option<usize>;

    /// Memory for an object when the fast path has none; the heap is locked. Its contents are
    /// undefined.
    fn refill(
        &mut self,
        shapes: &ShapeTable,
        local: &mut Self::Local,
        request: Request,
        effort: Effort,
    ) -> Refill;

    /// The header of a new object at `address`: colours it as the phase demands.
    #[inline(always)]
    fn birth(_local: &Self::Local, _address: usize, header: Header) -> Header {
        header
    }

    /// The barrier of a store into an object that was allocated just now and has not been seen by
    /// the collector since: by default none.
    ///
    /// # Safety
    /// `value` is null, an immediate, or an object of this heap.
    #[inline(always)]
    unsafe fn initialise(_local: &mut Self::Local, _value: Ref) {}

    /// Stores `value` into the slot at address `slot` of `object`, with the write barrier.
    ///
    /// # Safety
    /// `slot` is a reference slot of `object`, which is an object of this heap, and `value` is
    /// null, an immediate, or an object of this heap.
    unsafe fn store(
        local: &mut Self::Local,
        shapes: &ShapeTable,
        object: usize,
        slot: usize,
        value: Ref,
    );

    /// Collects, with the world stopped and all locals retired.
    fn collect(world: &mut World<'_, Self>, work: Work);

    /// Says that `object` is now the target of a weak slot, an ephemeron's key, or guarded.
    fn watch(&mut self, _object: Ref) {}

    /// Calls `visit` with every object that has not been freed, dead ones included. Locals have
    /// been retired.
    ///
    /// # Safety
    /// No mutator runs meanwhile.
    unsafe fn each_object(&self, shapes: &ShapeTable, visit: &mut dyn FnMut(usize, Header));

    /// True when an object that has not been freed begins at `address`. For verification.
    fn is_object_start(&self, shapes: &ShapeTable, address: usize) -> bool;

    /// Bytes in use: what survived the last collection and what was allocated since.
    fn used(&self) -> usize;

    /// Bytes taken from the operating system for objects.
    fn committed(&self) -> usize;

    /// The largest object that could ever be allocated.
    fn largest(&self) -> usize;

    /// Checks the collector's own invariants; for the sanity switch. The world is stopped.
    fn verify(&self, _shapes: &ShapeTable) -> Result<(), String> {
        Ok(())
    }

    /// Called once when the heap is made: a concurrent collector starts its thread here.
    fn start(_heap: &crate::heap::Heap<Self>) -> Result<(), HeapError> {
        Ok(())
    }

    /// Called when the last handle of the heap is dropped, before the memory goes.
    fn shutdown(&mut self) {}

    /// Called when the world has just stopped, before the locals are retired: a concurrent
    /// collector stops its own thread here, so that the heap can be walked.
    fn stopped(&mut self) {}

    /// Changes whenever a mutator that was told to [wait](Refill::Wait) should ask again.
    fn progress(&self) -> u64 {
        0
    }
}
