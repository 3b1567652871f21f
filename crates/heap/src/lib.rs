//! Liveoak's heap: memory that a language implementation can embed, with a family of collectors.
//!
//! A [`Heap`](heap::Heap) has a collector, chosen by its type or by name ([`kind`]). Objects have [shapes](shape), which
//! say where their references are. A thread works on the heap through its [`Mutator`](mutator::Mutator).
//!
//! | to find | look in |
//! |---|---|
//! | a heap: making it, stopping it, looking at it | [`heap`], [`config`], [`error`] |
//! | objects and references | [`shape`], [`mod@reference`], [`header`], [`object`] |
//! | the safe layer, in which a reference cannot dangle: begin here | [`safe`] |
//! | allocation, reading, writing (the raw layer) | [`mutator`], [`roots`] |
//! | weak references, ephemerons, guardians | [`weak`] |
//! | the collectors | [`collectors`], [`kind`]; [`collector`] says what a collector is |
//! | what collectors are made of | [`memory`], [`space`], [`frontier`], [`trace`], [`copy`] |
//! | what a collector did, and how long it took | [`stats`], [`pauses`] |
//! | whether it did it right | [`verify`] |
//!
//! ```
//! use liveoak_heap::collectors::MarkSweep;
//! use liveoak_heap::config::HeapConfig;
//! use liveoak_heap::heap::Heap;
//! use liveoak_heap::shape::ShapeSpec;
//!
//! let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default())?;
//! let cell = heap.define(ShapeSpec::fixed("Cell").reference("next").word("number"))?;
//! // SAFETY: the contract of the raw layer is kept throughout.
//! let mut mutator = unsafe { heap.mutator() };
//! let kept = mutator.allocate(&cell)?;
//! mutator.stack().push(kept);
//! mutator.allocate(&cell)?; // not rooted: dead
//! mutator.collect();
//!
//! let stats = heap.stats();
//! let collection = stats.history().last().unwrap();
//! assert_eq!((collection.marked.objects, collection.freed.objects), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_op_in_unsafe_fn)]

pub mod collector;
pub mod collectors;
pub mod config;
pub mod copy;
pub mod error;
pub mod frontier;
pub mod header;
pub mod heap;
pub mod kind;
pub mod memory;
pub mod mutator;
pub mod object;
pub mod observe;
pub mod pauses;
pub mod reference;
pub mod roots;
pub mod safe;
pub mod shape;
pub mod space;
pub mod stats;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
pub mod trace;
pub mod verify;
pub mod weak;
#[cfg(any(feature = "workloads", test))]
pub mod workload;

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Takes a lock; a panic of another thread while it held the lock does not matter, since what the
/// locks of this crate guard is consistent between any two statements that can panic.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
