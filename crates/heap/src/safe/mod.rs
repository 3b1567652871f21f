//! The safe layer: a heap for a language implementation without a line of `unsafe`.
//!
//! Nothing that a caller of this module does corrupts memory, and no reference dangles. What the
//! compiler can rule out is ruled out by lifetimes; the rest is checked when it is done, with one or
//! two predictable branches, and refused with a typed error.
//!
//! # The one rule
//!
//! A collection may move or free objects, so a reference must not be held across it unless the
//! collector knows of it. Hence: **what may collect takes the [`Session`] by `&mut`, everything else
//! by `&`**, and a [`Gc`] borrows the session. The compiler does the rest.
//!
//! ```
//! use liveoak_heap::collectors::Generational;
//! use liveoak_heap::config::HeapConfig;
//! use liveoak_heap::heap::Heap;
//! use liveoak_heap::shape::ShapeSpec;
//!
//! let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
//!
//! // A shape, and tokens for its fields.
//! let pair = heap.define(ShapeSpec::fixed("Pair").reference("head").reference("tail").word("n"))?;
//! let tail = heap.ref_field(&pair, "tail")?;
//! let n = heap.data_field::<u64>(&pair, "n")?;
//!
//! let mut session = heap.session()?;
//! let sum = session.scope(|scope| {
//!     // A list of ten. The locals are roots: they hold across the allocations.
//!     let list = scope.null();
//!     for i in 0..10 {
//!         let new = scope.allocate(&pair)?;
//!         let new = scope.object(new)?; // from here to the next allocation: a plain reference
//!         new.write(n, i)?;
//!         new.set(tail, scope.value(list))?; // through the write barrier
//!         scope.assign(list, new)?;
//!     }
//!     scope.collect();
//!
//!     // Walking needs no roots, since nothing here can collect.
//!     let mut sum = 0;
//!     let mut next = scope.value(list).object();
//!     while let Some(pair) = next {
//!         sum += pair.read(n)?;
//!         next = pair.follow(tail)?;
//!     }
//!     Ok::<u64, liveoak_heap::safe::Error>(sum)
//! })?;
//! assert_eq!(sum, 45);
//! # Ok::<(), liveoak_heap::safe::Error>(())
//! ```
//!
//! Holding a [`Gc`] across an allocation does not compile:
//!
//! ```compile_fail,E0502
//! # use liveoak_heap::{collectors::Generational, config::HeapConfig, heap::Heap, shape::ShapeSpec};
//! # let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
//! # let pair = heap.define(ShapeSpec::fixed("Pair").reference("head"))?;
//! # let mut session = heap.session()?;
//! # session.scope(|scope| {
//! let first = scope.allocate(&pair)?;
//! let first = scope.object(first)?;
//! scope.allocate(&pair)?; // may collect
//! first.shape();          // error: `first` still borrows the scope
//! # Ok::<(), liveoak_heap::safe::Error>(()) })?;
//! # Ok::<(), liveoak_heap::safe::Error>(())
//! ```
//!
//! # Three ways to hold on
//!
//! | | what it is | lives | costs |
//! |---|---|---|---|
//! | [`Gc`] | a borrowed reference | until the session may collect | nothing |
//! | [`Local`], in a [`Scope`] | a root with a lifetime | as long as its scope | an index |
//! | a register, in [`Registers`] | a root with a number | until it is popped | an index, checked |
//! | [`Root`] | a global handle, on any thread | until it is dropped | the heap's lock |
//!
//! Programs written by hand use scopes. A virtual machine, whose frames are not Rust's, uses
//! registers:
//!
//! ```
//! # use liveoak_heap::{collectors::MarkSweep, config::HeapConfig, heap::Heap, shape::ShapeSpec};
//! use liveoak_heap::safe::{Immediate, Value};
//! # let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default())?;
//! let cons = heap.define(ShapeSpec::fixed("Cons").reference("car").reference("cdr"))?;
//! let (car, cdr) = (heap.ref_field(&cons, "car")?, heap.ref_field(&cons, "cdr")?);
//! let mut session = heap.session()?;
//!
//! let registers = session.registers();
//! let frame = registers.reserve(3);
//! registers.set(frame, Immediate::truncated(7))?; // r0 = 7
//! let pair = registers.allocate_with(&cons, [frame, frame + 1])?.push(); // (cons r0 r1)
//! registers.copy(frame + 2, pair)?; // r2 = that
//! registers.load(frame, frame + 2, car)?; // r0 = (car r2)
//! registers.store(frame + 2, cdr, frame + 2)?; // (set-cdr! r2 r2)
//! assert_eq!(registers.get(frame)?, Value::Immediate(Immediate::truncated(7)));
//! registers.truncate(frame); // the frame returns
//!
//! // Whatever the bytecode says, the answer is an error and not a crash.
//! assert!(registers.load(0, 99, car).is_err());
//! # Ok::<(), liveoak_heap::safe::Error>(())
//! ```
//!
//! # Threads
//!
//! Each thread has a session of its own. A [`Root`] carries an object from one to another:
//!
//! ```
//! # use liveoak_heap::{collectors::MarkSweep, config::HeapConfig, heap::Heap, shape::ShapeSpec};
//! # let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default())?;
//! let counter = heap.define(ShapeSpec::fixed("Counter").word("value"))?;
//! let value = heap.data_field::<u64>(&counter, "value")?;
//! let mut session = heap.session()?;
//! let root = session.allocate(&counter)?.root();
//!
//! let other = std::thread::spawn({
//!     let (heap, root) = (heap.clone(), root.clone());
//!     move || -> Result<(), liveoak_heap::safe::Error> {
//!         let session = heap.session()?;
//!         root.get(&session)?.write(value, 42)?;
//!         Ok(())
//!     }
//! });
//! // Who waits goes through `blocking`, so that the other can collect meanwhile.
//! session.blocking(|| other.join().unwrap())?;
//! assert_eq!(root.get(&session)?.read(value)?, 42);
//! # Ok::<(), liveoak_heap::safe::Error>(())
//! ```
//!
//! Threads that share objects see each other's stores as relaxed atomics (data) and release/acquire
//! (references): a race gives an old or a new value, never a broken one.
//!
//! # Weak references, ephemerons, guardians
//!
//! Weak slots are fields, and read like others; they become null when nothing else keeps their
//! target. A [`Guardian`] hands back the objects that have died.
//!
//! ```
//! # use liveoak_heap::{collectors::Generational, config::HeapConfig, heap::Heap, shape::ShapeSpec};
//! # let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
//! let file = heap.define(ShapeSpec::fixed("File").word("descriptor"))?;
//! let descriptor = heap.data_field::<u64>(&file, "descriptor")?;
//! let weak = heap.define(ShapeSpec::fixed("WeakFile").weak("target"))?;
//! let target = heap.ref_field(&weak, "target")?;
//! let mut session = heap.session()?;
//! let guardian = heap.guardian();
//!
//! let cell = session.scope(|scope| {
//!     let open = scope.allocate(&file)?;
//!     scope.object(open)?.write(descriptor, 3)?;
//!     guardian.watch(scope.object(open)?)?;
//!     let cell = scope.allocate(&weak)?;
//!     scope.set(cell, target, open)?;
//!     assert!(scope.object(cell)?.follow(target)?.is_some());
//!     Ok::<_, liveoak_heap::safe::Error>(scope.object(cell)?.root())
//! })?; // `open` ends here
//!
//! session.collect();
//! assert!(cell.get(&session)?.follow(target)?.is_none());
//! let lost = guardian.next(&session)?.expect("the file died");
//! assert_eq!(lost.read(descriptor)?, 3); // and can be closed
//! # Ok::<(), liveoak_heap::safe::Error>(())
//! ```
//!
//! An ephemeron keeps its value only while its key lives, even if the value refers to the key:
//!
//! ```
//! # use liveoak_heap::{collectors::Generational, config::HeapConfig, heap::Heap, shape::ShapeSpec};
//! # let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
//! let cell = heap.define(ShapeSpec::fixed("Cell").reference("to"))?;
//! let to = heap.ref_field(&cell, "to")?;
//! let entry = heap.define(ShapeSpec::fixed("Entry").ephemeron())?;
//! let (key, value) = (heap.ref_field(&entry, "key")?, heap.ref_field(&entry, "value")?);
//! let mut session = heap.session()?;
//! session.scope(|scope| {
//!     let table = scope.allocate(&entry)?;
//!     scope.nested(|inner| {
//!         let (k, v) = (inner.allocate(&cell)?, inner.allocate(&cell)?);
//!         inner.set(v, to, k)?; // the value refers to its key
//!         inner.set(table, key, k)?;
//!         inner.set(table, value, v)?;
//!         inner.collect();
//!         assert!(inner.object(table)?.follow(value)?.is_some());
//!         Ok::<(), liveoak_heap::safe::Error>(())
//!     })?; // the key dies, and with it the value
//!     scope.collect();
//!     assert!(scope.object(table)?.follow(value)?.is_none());
//!     Ok::<(), liveoak_heap::safe::Error>(())
//! })?;
//! # Ok::<(), liveoak_heap::safe::Error>(())
//! ```
//!
//! # Looking around
//!
//! [`Session::each_object`] visits every live object, [`Session::census`] counts them by shape, and
//! [`Heap::stats`](crate::heap::Heap::stats) tells what the collector did.
//!
//! # Why it is sound
//!
//! - *A reference cannot be forged.* A `Gc` is made only here: from a root, a slot, an allocation.
//!   Raw references ([`Ref`](crate::reference::Ref)) do not come in.
//! - *A reference cannot go stale.* Objects move or die only at a safepoint of this thread's
//!   session, which takes it by `&mut`; a session does not leave its thread.
//! - *A slot is what the object's shape says*, checked against the header of the object at hand, not
//!   against what the caller believes.
//! - *Heaps do not mix.* A local's lifetime is of its scope; a `Gc` knows its session; fields, shapes
//!   and roots carry the number of their heap.
//! - *No callback runs inside the heap.* Closures of the caller run when the world runs; a panic in
//!   one unwinds like any other, and ends scopes on its way. Leaking anything (`mem::forget`) leaks
//!   memory, and at worst leaves other threads waiting for a session that never comes to a safepoint.
//! - *Data races are atomics.* No `&[u8]` into the heap is handed out.

pub mod array;
pub mod error;
pub mod field;
pub mod gc;
pub mod guardian;
pub mod registers;
pub mod root;
pub mod scope;
pub mod session;
pub mod survey;
#[cfg(test)]
mod tests;
pub mod value;

pub use error::{AccessError, Error, Reason, Refusal};
pub use field::{Data, DataField, RefField};
pub use gc::Gc;
pub use guardian::Guardian;
pub use registers::Registers;
pub use root::Root;
pub use scope::{Local, Scope};
pub use session::Session;
pub use survey::Population;
pub use value::{Immediate, Value};
