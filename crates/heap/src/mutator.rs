//! Mutators: the raw layer. One per thread.
//!
//! This is what a virtual machine builds on. References are plain values ([`Ref`]); whoever holds
//! one across a safepoint without rooting it holds a dangling reference, so everything that
//! follows a reference is `unsafe`, with this contract:
//!
//! > A `Ref` passed in is null, an immediate, or was read from a root or a slot of this heap since
//! > the last safepoint of this mutator.
//!
//! Safepoints are: every allocation, [`Mutator::safepoint`], [`Mutator::collect`],
//! [`Mutator::step`] and [`Mutator::blocking`]. Debug builds check what can be checked (that the
//! reference leads to an object and not to free memory, that a slot is in range and of the right
//! kind). The safe layer over this one is [`crate::safe`].
//!
//! ```
//! use liveoak_heap::collectors::MarkSweep;
//! use liveoak_heap::config::HeapConfig;
//! use liveoak_heap::heap::Heap;
//! use liveoak_heap::shape::ShapeSpec;
//!
//! let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default())?;
//! let pair = heap.define(ShapeSpec::fixed("Pair").reference("first").reference("second"))?;
//! let mut mutator = heap.mutator();
//!
//! let first = mutator.allocate(&pair)?;
//! let root = mutator.stack().push(first); // rooted before the next allocation
//! let second = mutator.allocate(&pair)?;
//! let first = mutator.stack().get(root); // read again: it may have moved
//! // SAFETY: both were read or allocated since the last safepoint.
//! unsafe { mutator.write(first, 1, second) };
//! mutator.collect();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::collector::{Collector, Effort, Refill, Request, Work};
use crate::error::AllocError;
use crate::header::{HEADER_BYTES, Header};
use crate::heap::{Heap, Inner, World};
use crate::object;
use crate::reference::Ref;
use crate::roots::{GlobalId, RootStack, Roots};
use crate::shape::{Form, Kind, Shape};
use crate::space::size_class::{SMALLEST, SizeClass};
use crate::stats::Cause;
use crate::weak::GuardianId;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a mutator has in common with the heap.
pub(crate) struct Core<C: Collector> {
    pub(crate) local: C::Local,
    pub(crate) stack: RootStack,
    /// Objects allocated since this was last asked for.
    allocated: u64,
}

impl<C: Collector> Core<C> {
    pub(crate) fn take_allocated(&mut self) -> u64 {
        std::mem::take(&mut self.allocated)
    }

    /// # Safety
    /// `address` is memory for an object with this header, its slots initialised.
    #[inline(always)]
    unsafe fn born(&mut self, address: usize, header: Header) -> Ref {
        self.allocated += 1;
        let header = C::birth(&self.local, address, header);
        // SAFETY: promised by the caller.
        unsafe { object::set_header(address, header) };
        Ref::from_address(address)
    }
}

/// A thread's access to the heap; see the [module text](self). Not `Send`: it belongs to the thread
/// that made it.
pub struct Mutator<C: Collector, R: Roots + 'static = ()> {
    // The core and the roots live in boxes of their own, since the registry points to them: a
    // `Box` field would claim to be the only pointer.
    core: NonNull<Core<C>>,
    roots: NonNull<R>,
    inner: Arc<Inner<C>>,
    owned: PhantomData<(Box<Core<C>>, Box<R>)>,
}

impl<C: Collector, R: Roots> Mutator<C, R> {
    pub(crate) fn attach(heap: &Heap<C>, roots: R) -> Mutator<C, R> {
        let inner = Arc::clone(&heap.inner);
        let roots = NonNull::from(Box::leak(Box::new(roots)));
        let core = inner.register(roots, |collector| {
            let local = collector.attach();
            let stack = RootStack::default();
            let core = Box::new(Core {
                local,
                stack,
                allocated: 0,
            });
            NonNull::from(Box::leak(core))
        });
        Mutator {
            core,
            roots,
            inner,
            owned: PhantomData,
        }
    }

    #[inline(always)]
    fn core(&self) -> &Core<C> {
        // SAFETY: the core lives as long as the mutator, and the collector touches it only while
        // this thread is inside a safepoint.
        unsafe { self.core.as_ref() }
    }

    #[inline(always)]
    fn core_mut(&mut self) -> &mut Core<C> {
        // SAFETY: as above; `&mut self` keeps other users of this mutator out.
        unsafe { self.core.as_mut() }
    }

    /// The heap.
    pub fn heap(&self) -> Heap<C> {
        Heap {
            inner: Arc::clone(&self.inner),
        }
    }

    /// The number that tells this heap from the others of the process.
    #[inline(always)]
    pub(crate) fn heap_number(&self) -> u32 {
        self.inner.number
    }

    /// The core, for the safe layer, which writes to it through a shared reference: nothing that it
    /// does there calls back, so no two of its accesses overlap.
    #[inline(always)]
    pub(crate) fn core_pointer(&self) -> NonNull<Core<C>> {
        self.core
    }

    /// What the mutators of the heap share.
    #[inline(always)]
    pub(crate) fn inner(&self) -> &Arc<Inner<C>> {
        &self.inner
    }

    /// The shapes of the heap.
    #[inline(always)]
    pub fn shapes(&self) -> &crate::shape::ShapeTable {
        &self.inner.shapes
    }

    /// The stack of roots.
    #[inline(always)]
    pub fn stack(&mut self) -> &mut RootStack {
        &mut self.core_mut().stack
    }

    /// The stack of roots, to be read.
    #[inline(always)]
    pub fn stack_ref(&self) -> &RootStack {
        &self.core().stack
    }

    /// The further source of roots.
    #[inline(always)]
    pub fn roots(&mut self) -> &mut R {
        // SAFETY: as for `core_mut`.
        unsafe { self.roots.as_mut() }
    }

    /// Allocates an object of a fixed shape; references are null, data zero.
    ///
    /// Debug assertion: the shape is fixed and belongs to this heap.
    #[inline(always)]
    pub fn allocate(&mut self, shape: &Shape) -> Result<Ref, AllocError> {
        // SAFETY: there are no references to be kept or stored.
        unsafe { self.allocate_with(shape, []) }
    }

    /// Allocates an object of a fixed shape whose first slots are the references `initial`; all
    /// that follows is zero. If a collection is necessary, `initial` are roots meanwhile.
    ///
    /// Debug assertion: as for [`Mutator::allocate`], and the first slots are strong references.
    ///
    /// # Safety
    /// The contract of the [module](self), for `initial`; the first slots of the shape are strong
    /// references.
    #[inline(always)]
    pub unsafe fn allocate_with<const N: usize>(
        &mut self,
        shape: &Shape,
        initial: [Ref; N],
    ) -> Result<Ref, AllocError> {
        self.check_fixed(shape, N);
        let request = Request {
            bytes: shape.bytes as usize,
            class: shape.class,
        };
        let core = self.core_mut();
        let Some(address) = C::allocate(&mut core.local, request) else {
            return self.allocate_slowly(shape, initial);
        };
        // SAFETY: the memory is ours, of the size asked for, and not yet visible to anyone.
        unsafe {
            if !C::ZEROED {
                clear_small(address + HEADER_BYTES, request.bytes - HEADER_BYTES);
            }
            for (slot, value) in initial.into_iter().enumerate() {
                C::initialise(&mut core.local, value);
                object::store(object::slot_address(address, slot), value);
            }
            Ok(core.born(address, shape.header))
        }
    }

    /// The slow path of [`Mutator::allocate_with`]: with `initial` on the stack of roots.
    #[cold]
    #[inline(never)]
    fn allocate_slowly<const N: usize>(
        &mut self,
        shape: &Shape,
        initial: [Ref; N],
    ) -> Result<Ref, AllocError> {
        let base = self.core().stack.len();
        for value in initial {
            self.stack().push(value);
        }
        let request = Request {
            bytes: shape.bytes as usize,
            class: shape.class,
        };
        let memory = self.memory_slowly(request);
        let core = self.core_mut();
        let initial: [Ref; N] = std::array::from_fn(|i| core.stack.get(base + i));
        core.stack.truncate(base);
        let address = memory?;
        let inner: *const Inner<C> = Arc::as_ptr(&self.inner);
        let core = self.core_mut();
        // SAFETY: as for `allocate_with`; the references were just read from their roots.
        unsafe {
            let payload = (address + HEADER_BYTES) as *mut u8;
            std::ptr::write_bytes(payload, 0, request.bytes - HEADER_BYTES);
            let new = core.born(address, shape.header);
            for (slot, value) in initial.into_iter().enumerate() {
                // With the whole barrier: a large object may be born old.
                let slot = object::slot_address(address, slot);
                C::store(&mut core.local, &(*inner).shapes, address, slot, value);
            }
            Ok(new)
        }
    }

    /// The debug assertion of allocations of fixed shapes.
    #[inline(always)]
    fn check_fixed(&self, shape: &Shape, initial: usize) {
        debug_assert!(
            shape.heap == self.inner.number,
            "the shape belongs to another heap"
        );
        debug_assert!(!shape.is_array(), "an array needs a length: allocate_array");
        if cfg!(debug_assertions) && initial > 0 {
            let info = self.inner.shapes.info(shape.id());
            let fields = info.map_or(&[][..], |info| &info.fields);
            let strong = (0..initial).all(|slot| {
                fields
                    .iter()
                    .any(|f| f.kind == Kind::Reference && f.slot() == slot)
            });
            assert!(
                strong,
                "the first {initial} slots are not all strong references"
            );
        }
    }

    /// Allocates an array; references are null, data zero.
    ///
    /// Debug assertion: the shape is an array and belongs to this heap.
    #[inline]
    pub fn allocate_array(&mut self, shape: &Shape, length: u32) -> Result<Ref, AllocError> {
        debug_assert!(
            shape.heap == self.inner.number,
            "the shape belongs to another heap"
        );
        debug_assert!(shape.is_array(), "not an array shape");
        let bytes = shape.array_bytes(length).max(SMALLEST as u64);
        if bytes > crate::reference::ADDRESS_LIMIT as u64 {
            return Err(AllocError::too_large(bytes));
        }
        let bytes = bytes as usize;
        let class = SizeClass::of(bytes);
        let request = Request { bytes, class };
        let fast = C::allocate(&mut self.core_mut().local, request);
        let cleared = C::ZEROED && fast.is_some();
        let address = match fast {
            Some(address) => address,
            None => self.memory_slowly(request)?,
        };
        // SAFETY: as for `allocate_with`.
        unsafe {
            if !cleared {
                std::ptr::write_bytes((address + HEADER_BYTES) as *mut u8, 0, bytes - HEADER_BYTES);
            }
            Ok(self.core_mut().born(address, shape.header.with_aux(length)))
        }
    }

    #[cold]
    #[inline(never)]
    fn memory_slowly(&mut self, request: Request) -> Result<usize, AllocError> {
        for effort in [Effort::Normal, Effort::Limit, Effort::Last] {
            loop {
                let mut state = self.inner.lock_running();
                if request.bytes > state.collector.largest() {
                    return Err(AllocError::too_large(request.bytes as u64));
                }
                // SAFETY: as for `core_mut`; the collector is a different object.
                let local = unsafe { &mut (*self.core.as_ptr()).local };
                match state
                    .collector
                    .refill(&self.inner.shapes, local, request, effort)
                {
                    Refill::Ready(address) => return Ok(address),
                    Refill::Wait(seen) => {
                        state.stats.stall();
                        drop(state);
                        self.inner.wait_for_progress(seen);
                    }
                    Refill::Step(cause) => {
                        drop(state);
                        self.inner.collect(Work::Allocation(effort, cause));
                    }
                    Refill::Pause(cause) => {
                        state.stats.stall();
                        drop(state);
                        let work = match effort {
                            Effort::Last => break,
                            Effort::Limit => Work::Full(Cause::OutOfMemory),
                            Effort::Normal => Work::Allocation(effort, cause),
                        };
                        if self.inner.collect(work) {
                            break;
                        }
                    }
                }
            }
        }
        Err(AllocError::out_of_memory(request.bytes))
    }

    /// Reads the reference in `slot`.
    ///
    /// Debug assertion: the slot is a reference slot of the object.
    ///
    /// # Safety
    /// The contract of the [module](self); `object` is an object, with a reference in that slot.
    #[inline(always)]
    pub unsafe fn read(&self, object: Ref, slot: usize) -> Ref {
        // SAFETY: passed on from the caller.
        unsafe {
            self.check_slot(object, slot);
            object::load(object::slot_address(object.address(), slot))
        }
    }

    /// Writes `value` into `slot`, through the barrier.
    ///
    /// Debug assertion: the slot is a reference slot of the object.
    ///
    /// # Safety
    /// The contract of the [module](self), for both references; `object` is an object, with a
    /// reference in that slot.
    #[inline(always)]
    pub unsafe fn write(&mut self, object: Ref, slot: usize, value: Ref) {
        // SAFETY: passed on from the caller.
        unsafe {
            self.check_slot(object, slot);
            let address = object.address();
            let slot = object::slot_address(address, slot);
            let inner: *const Inner<C> = Arc::as_ptr(&self.inner);
            C::store(
                &mut self.core_mut().local,
                &(*inner).shapes,
                address,
                slot,
                value,
            );
        }
    }

    /// Writes a weak slot, or an ephemeron's key or value.
    ///
    /// # Safety
    /// As for [`Mutator::write`].
    pub unsafe fn write_weak(&mut self, object: Ref, slot: usize, value: Ref) {
        if value.is_object() {
            self.inner.lock().collector.watch(value);
        }
        // SAFETY: passed on from the caller.
        unsafe { self.write(object, slot, value) };
    }

    /// Reads 8 bytes of data at a slot number (which is even for words).
    ///
    /// # Safety
    /// The contract of the [module](self); `object` has 8 bytes of data at that slot.
    #[inline(always)]
    pub unsafe fn read_word(&self, object: Ref, slot: usize) -> u64 {
        // SAFETY: passed on from the caller.
        unsafe {
            let address = object::slot_address(object.address(), slot);
            (*(address as *const std::sync::atomic::AtomicU64)).load(Ordering::Relaxed)
        }
    }

    /// Writes 8 bytes of data at a slot number (which is even for words).
    ///
    /// # Safety
    /// As for [`Mutator::read_word`].
    #[inline(always)]
    pub unsafe fn write_word(&mut self, object: Ref, slot: usize, value: u64) {
        // SAFETY: passed on from the caller.
        unsafe {
            let address = object::slot_address(object.address(), slot);
            (*(address as *const std::sync::atomic::AtomicU64)).store(value, Ordering::Relaxed)
        }
    }

    /// The header of an object.
    ///
    /// # Safety
    /// The contract of the [module](self); `object` is an object.
    #[inline(always)]
    pub unsafe fn header(&self, object: Ref) -> Header {
        // SAFETY: passed on from the caller.
        unsafe { object::header(object.address()) }
    }

    /// The shape index of an object, and the length if it is an array.
    ///
    /// # Safety
    /// The contract of the [module](self); `object` is an object.
    #[inline(always)]
    pub unsafe fn length(&self, object: Ref) -> u32 {
        // SAFETY: passed on from the caller.
        unsafe { object::header(object.address()) }.aux()
    }

    /// The debug assertion of slot accesses.
    #[inline(always)]
    unsafe fn check_slot(&self, object: Ref, slot: usize) {
        if cfg!(debug_assertions) {
            assert!(object.is_object(), "{object:?} is no object");
            // SAFETY: passed on from the caller.
            let word = unsafe { object::header(object.address()) };
            assert!(!word.is_free(), "{object:?} was freed");
            let layout = self.inner.shapes.layout(word.shape());
            let ok = match layout.form {
                Form::Fixed => slot < 64 && layout.map >> slot & 1 == 1,
                Form::References => slot < word.aux() as usize,
                Form::Special => object::special(&self.inner.shapes, word)
                    .fields
                    .iter()
                    .any(|f| f.kind.is_reference() && f.slot() == slot),
                Form::Data | Form::Free => false,
            };
            assert!(ok, "slot {slot} of {object:?} holds no reference");
        }
    }

    /// A point at which the world may stop. Call it in loops that do not allocate.
    #[inline(always)]
    pub fn safepoint(&mut self) {
        if self.inner.stop.load(Ordering::Relaxed) {
            drop(self.inner.lock_running());
        }
    }

    /// Collects everything that is dead now.
    pub fn collect(&mut self) {
        while !self.inner.collect(Work::Full(Cause::Explicit)) {}
    }

    /// Lets the collector do what it would do when an allocation runs out of memory: a minor
    /// collection, a step.
    pub fn step(&mut self) {
        self.inner.collect(Work::Step);
    }

    /// Runs `body`, which must not touch the heap, while the world may stop: for blocking calls.
    pub fn blocking<T>(&mut self, body: impl FnOnce() -> T) -> T {
        self.inner.blocking(body)
    }

    /// Stops the world and looks at it.
    pub fn inspect<T>(&mut self, mut look: impl FnMut(&mut World<'_, C>) -> T) -> T {
        loop {
            if let Some(value) = self.inner.stop_the_world(true, &mut look) {
                return value;
            }
        }
    }

    /// Stops the world and shows it as a graph, so that the answers of [`liveoak_graph`] can be had
    /// for it: the path that keeps an object alive, what is dead, dominators, retained sizes.
    ///
    /// ```
    /// use liveoak_graph::{dead, histogram, reachable, shortest_path};
    /// use liveoak_heap::collectors::MarkSweep;
    /// use liveoak_heap::config::HeapConfig;
    /// use liveoak_heap::heap::Heap;
    /// use liveoak_heap::shape::ShapeSpec;
    ///
    /// let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default())?;
    /// let tree = heap.define(ShapeSpec::fixed("Tree").reference("left").reference("right"))?;
    /// let table = heap.define(ShapeSpec::references("Table"))?;
    /// let mut mutator = heap.mutator();
    /// let table = mutator.allocate_array(&table, 4)?;
    /// mutator.stack().push(table);
    /// let top = mutator.allocate(&tree)?;
    /// let table = mutator.stack().get(0);
    /// // SAFETY: both were read or allocated since the last safepoint.
    /// unsafe { mutator.write(table, 3, top) };
    /// let leaf = mutator.allocate(&tree)?;
    /// // SAFETY: as above; `top` is read again, since an allocation is a safepoint.
    /// unsafe {
    ///     let top = mutator.read(mutator.stack_ref().get(0), 3);
    ///     mutator.write(top, 1, leaf);
    /// }
    /// mutator.allocate(&tree)?; // not kept
    ///
    /// mutator.observe(|memory| {
    ///     let path = shortest_path(memory, leaf).unwrap();
    ///     assert_eq!(path.steps[0].arc.to_string(), "[3]");
    ///     assert_eq!(path.steps[1].arc.to_string(), ".right");
    ///     assert_eq!(dead(memory).len(), 1);
    ///     let live = histogram(memory, reachable(memory));
    ///     assert_eq!(live.class("Tree").count, 2);
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn observe<T>(&mut self, mut look: impl FnMut(&crate::observe::Observed<'_>) -> T) -> T {
        self.inspect(|world| look(&crate::observe::Observed::new(world)))
    }

    /// Makes a global handle.
    pub fn create_global(&mut self, reference: Ref) -> GlobalId {
        self.inner.lock().globals.insert(reference)
    }

    /// The reference in a global handle.
    pub fn global(&self, id: GlobalId) -> Option<Ref> {
        self.inner.lock().globals.get(id)
    }

    /// Overwrites the reference in a global handle.
    pub fn set_global(&mut self, id: GlobalId, reference: Ref) {
        self.inner.lock().globals.set(id, reference);
    }

    /// Drops a global handle.
    pub fn drop_global(&mut self, id: GlobalId) {
        self.inner.lock().globals.remove(id);
    }

    /// Makes a guardian.
    pub fn create_guardian(&mut self) -> GuardianId {
        self.inner.lock().guardians.create()
    }

    /// Asks `guardian` to hand `object` back when it has died. May be asked several times.
    pub fn guard(&mut self, guardian: GuardianId, object: Ref) {
        if object.is_object() {
            let mut state = self.inner.lock();
            state.collector.watch(object);
            state.guardians.watch(guardian, object);
        }
    }

    /// The next object of `guardian` that has died, brought back to life.
    pub fn next_dead(&mut self, guardian: GuardianId) -> Option<Ref> {
        self.inner.lock().guardians.take(guardian)
    }
}

impl<C: Collector, R: Roots> Drop for Mutator<C, R> {
    fn drop(&mut self) {
        self.inner.unregister(self.core);
        // SAFETY: made by `Box::leak` in `attach`; the registry no longer knows them.
        unsafe {
            drop(Box::from_raw(self.core.as_ptr()));
            drop(Box::from_raw(self.roots.as_ptr()));
        }
    }
}

/// Zeroes a few words in line; a call to `memset` would take longer than the allocation.
///
/// # Safety
/// The memory is ours, 8-aligned, and `bytes` is a multiple of 8.
#[inline(always)]
unsafe fn clear_small(address: usize, bytes: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        if bytes <= 64 {
            let mut at = address;
            while at < address + bytes {
                *(at as *mut u64) = 0;
                at += 8;
            }
        } else {
            std::ptr::write_bytes(address as *mut u8, 0, bytes);
        }
    }
}
