//! The heap that the programs see: the mutator's fast paths, one kind for each kind of allocator.
//!
//! Collections happen only inside the slow paths here. Before one the bump pointer is given back to MMTk and the
//! shadow stack published; after it the bump pointer is fetched again, and with it whatever the collection changed.

use crate::binding::{self, Vm, mutator_thread};
use crate::object::{Model, bytes, header};
use crate::world::WORLD;
use bench_programs::latency::micros;
use bench_programs::raw::{RawHeap, Ref};
use bench_programs::report::Report;
use mmtk::util::alloc::{Allocator, BumpAllocator, BumpPointer, FreeListAllocator, ImmixAllocator};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::ObjectModel;
use mmtk::vm::slot::SimpleSlot;
use mmtk::{AllocationSemantics, MMTK, Mutator, memory_manager};

const ALIGNMENT: usize = 8;
const STACK: usize = 1 << 16;

/// How a plan allocates small objects, and whether stores need a barrier.
pub(crate) trait Plan {
    /// The allocator of small objects.
    type Allocator: Allocator<Vm>;
    /// Does a store have to remember old objects?
    const BARRIER: bool;
    /// Does the allocator bump a pointer, which can be cached?
    const BUMPS: bool;
    /// The allocator's bump pointer, if it has one.
    fn bump(allocator: &mut Self::Allocator) -> Option<&mut BumpPointer>;
}

/// GenImmix and GenCopy: a copying nursery.
pub(crate) struct Generational;
/// SemiSpace.
pub(crate) struct Copying;
/// Immix.
pub(crate) struct Immix;
/// MarkSweep: free lists.
pub(crate) struct FreeList;

impl Plan for Generational {
    type Allocator = BumpAllocator<Vm>;
    const BARRIER: bool = true;
    const BUMPS: bool = true;
    fn bump(allocator: &mut Self::Allocator) -> Option<&mut BumpPointer> {
        Some(&mut allocator.bump_pointer)
    }
}

impl Plan for Copying {
    type Allocator = BumpAllocator<Vm>;
    const BARRIER: bool = false;
    const BUMPS: bool = true;
    fn bump(allocator: &mut Self::Allocator) -> Option<&mut BumpPointer> {
        Some(&mut allocator.bump_pointer)
    }
}

impl Plan for Immix {
    type Allocator = ImmixAllocator<Vm>;
    const BARRIER: bool = false;
    const BUMPS: bool = true;
    fn bump(allocator: &mut Self::Allocator) -> Option<&mut BumpPointer> {
        Some(&mut allocator.bump_pointer)
    }
}

impl Plan for FreeList {
    type Allocator = FreeListAllocator<Vm>;
    const BARRIER: bool = false;
    const BUMPS: bool = false;
    fn bump(_allocator: &mut Self::Allocator) -> Option<&mut BumpPointer> {
        None
    }
}

/// A heap under one of MMTk's plans.
pub(crate) struct Collecting<P: Plan> {
    fast: BumpPointer,
    roots: *mut usize,
    top: usize,
    /// Where the unlog bit of address 0 would be, one bit for eight bytes.
    unlog_bits: usize,
    mutator: *mut Mutator<Vm>,
    /// The mutator's allocator of small objects, resolved once.
    allocator: *mut P::Allocator,
    mmtk: &'static MMTK<Vm>,
}

impl<P: Plan> Collecting<P> {
    pub(crate) fn new(mmtk: &'static MMTK<Vm>) -> Self {
        let mutator = binding::bind(mmtk);
        // SAFETY: the mutator is bound, and the plan names the allocator of its default semantics.
        let allocator = unsafe {
            (*mutator).allocator_impl_mut_for_semantic::<P::Allocator>(AllocationSemantics::Default)
        };
        let unlog = Model::GLOBAL_LOG_BIT_SPEC.extract_side_spec();
        Self {
            fast: BumpPointer::default(),
            roots: Box::leak(vec![0; STACK].into_boxed_slice()).as_mut_ptr(),
            top: 0,
            unlog_bits: unlog.get_starting_address().as_usize(),
            mutator,
            allocator,
            mmtk,
        }
    }

    #[inline(always)]
    fn push(&mut self, object: Ref) -> usize {
        let index = self.top;
        assert!(index < STACK, "shadow stack overflow");
        // SAFETY: the stack has room.
        unsafe { *self.roots.add(index) = object.0 as usize };
        self.top = index + 1;
        index
    }

    #[inline(always)]
    fn pop(&mut self) -> Ref {
        self.top -= 1;
        // SAFETY: below the old top.
        Ref(unsafe { *self.roots.add(self.top) } as *mut u64)
    }

    #[inline(always)]
    fn allocator(&mut self) -> &mut P::Allocator {
        // SAFETY: it is a part of the mutator, which only this thread uses outside of collections.
        unsafe { &mut *self.allocator }
    }

    /// Whatever may collect, between giving the bump pointer back and fetching it.
    fn collecting<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let fast = self.fast;
        if let Some(bump) = P::bump(self.allocator()) {
            *bump = fast;
        }
        binding::publish_roots(self.roots, self.top);
        let result = work(self);
        if let Some(bump) = P::bump(self.allocator()) {
            self.fast = *bump;
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn allocate_slowly(&mut self, bytes: usize, refs: &mut [Ref]) -> *mut u64 {
        for &object in refs.iter() {
            self.push(object);
        }
        let address = self.collecting(|heap| heap.allocator().alloc_slow(bytes, ALIGNMENT, 0));
        for object in refs.iter_mut().rev() {
            *object = self.pop();
        }
        assert!(!address.is_zero(), "out of memory");
        address.to_mut_ptr()
    }

    /// Free-list allocation has no fast path that is ours: any may collect.
    #[inline(always)]
    fn allocate_from_list(&mut self, bytes: usize, refs: &mut [Ref]) -> *mut u64 {
        for &object in refs.iter() {
            self.push(object);
        }
        binding::publish_roots(self.roots, self.top);
        let address = self.allocator().alloc(bytes, ALIGNMENT, 0);
        self.top -= refs.len();
        assert!(!address.is_zero(), "out of memory");
        address.to_mut_ptr()
    }

    /// A large object, zeroed.
    fn large(&mut self, refs: usize, words: usize) -> Ref {
        let bytes = bytes(refs, words);
        let semantics = AllocationSemantics::Los;
        let address = self.collecting(|heap| {
            // SAFETY: as in `allocator`.
            let mutator = unsafe { &mut *heap.mutator };
            memory_manager::alloc(mutator, bytes, ALIGNMENT, 0, semantics)
        });
        assert!(!address.is_zero(), "out of memory");
        let start = address.to_mut_ptr::<u64>();
        // SAFETY: the object is new, has this size, and is not null.
        unsafe {
            start.write_bytes(0, bytes / 8);
            start.write(header(refs, words));
            let object = ObjectReference::from_raw_address_unchecked(address);
            memory_manager::post_alloc(&mut *self.mutator, object, bytes, semantics);
        }
        Ref(start)
    }

    /// Is the object old, and not yet remembered?
    #[inline(always)]
    fn is_unlogged(&self, object: Ref) -> bool {
        let address = object.0 as usize;
        let byte = (self.unlog_bits + (address >> 6)) as *const u8;
        // SAFETY: MMTk maps the side metadata of every address that it gave out.
        (unsafe { *byte } >> ((address >> 3) & 7)) & 1 != 0
    }

    #[cold]
    #[inline(never)]
    fn remember(&mut self, object: Ref, slot: *mut u64, value: Ref) {
        let slot = SimpleSlot::from_address(Address::from_mut_ptr(slot));
        let target = ObjectReference::from_raw_address(Address::from_mut_ptr(value.0));
        // SAFETY: the object is not null; the mutator is ours, as in `allocator`.
        unsafe {
            let source =
                ObjectReference::from_raw_address_unchecked(Address::from_mut_ptr(object.0));
            let barrier = &mut (*self.mutator).barrier;
            barrier.object_reference_write_slow(source, slot, target);
        }
    }
}

// SAFETY: MMTk keeps alive what the shadow stack, published before every possible collection, reaches; objects passed
// to `allocate` are on it across the collection.
unsafe impl<P: Plan> RawHeap for Collecting<P> {
    const HEADER: usize = 1;
    type Root = usize;

    #[inline(always)]
    fn allocate<const R: usize, const W: usize>(
        &mut self,
        mut refs: [Ref; R],
        words: [u64; W],
    ) -> Ref {
        let bytes = const { bytes(R, W) };
        let cursor = self.fast.cursor + bytes;
        let object = if !P::BUMPS {
            self.allocate_from_list(bytes, &mut refs)
        } else if cursor <= self.fast.limit {
            let object = self.fast.cursor.to_mut_ptr();
            self.fast.cursor = cursor;
            object
        } else {
            self.allocate_slowly(bytes, &mut refs)
        };
        // SAFETY: the object has 1 + R + W words. Small objects need no `post_alloc` under these plans.
        unsafe {
            object.write(const { header(R, W) });
            object.add(1).cast::<[Ref; R]>().write(refs);
            object.add(1 + R).cast::<[u64; W]>().write(words);
        }
        Ref(object)
    }

    fn reference_array(&mut self, length: usize) -> Ref {
        self.large(length, 0)
    }

    fn word_array(&mut self, length: usize) -> Ref {
        self.large(0, length)
    }

    #[inline(always)]
    fn root(&mut self, object: Ref) -> usize {
        self.push(object)
    }

    #[inline(always)]
    fn rooted(&self, &root: &usize) -> Ref {
        // SAFETY: the root is below the top.
        Ref(unsafe { *self.roots.add(root) } as *mut u64)
    }

    #[inline(always)]
    fn unroot(&mut self, _root: usize) -> Ref {
        self.pop()
    }

    #[inline(always)]
    unsafe fn store(&mut self, object: Ref, slot: usize, value: Ref) {
        // SAFETY: the caller vouches for the slot.
        let slot = unsafe { object.0.add(1 + slot) };
        // SAFETY: as above.
        unsafe { slot.cast::<Ref>().write(value) };
        if P::BARRIER && self.is_unlogged(object) {
            self.remember(object, slot, value);
        }
    }

    fn collect(&mut self) {
        self.collecting(|heap| {
            heap.mmtk
                .handle_user_collection_request(mutator_thread(), true, true)
        });
    }

    fn report(&self, report: &mut Report) {
        report.number("max_pause_us", micros(WORLD.longest_pause()));
    }
}
