//! The programs for heaps with raw references: bump arena, Boehm, MMTk.
//!
//! The programs name what they hold across an allocation ([`RawHeap::root`]), store through the heap's barrier, and
//! leave the rest to the heap. For a heap that neither moves nor needs to be told of roots all of it compiles away.

mod gcbench;
mod large_live_heap;
mod lists;
mod trees;

use crate::command::Program;
use crate::report::Report;

/// A reference to an object of the heap, or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ref(pub *mut u64);

impl Ref {
    /// The reference to nothing.
    pub const NULL: Self = Self(std::ptr::null_mut());

    /// Is it the reference to nothing?
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A heap of objects that are `r` references followed by `w` words.
///
/// # Safety
///
/// An implementation keeps every object alive that can be reached from a root, returns from the allocating functions
/// objects with the given contents, and lays an object out as a header of [`RawHeap::HEADER`] words, its references,
/// its words.
pub unsafe trait RawHeap {
    /// Words before the first reference.
    const HEADER: usize;
    /// The token for a rooted reference.
    type Root;

    /// Allocates an object with this contents. The references need not be rooted by the caller.
    fn allocate<const R: usize, const W: usize>(&mut self, refs: [Ref; R], words: [u64; W]) -> Ref;
    /// Allocates an array of null references.
    fn reference_array(&mut self, length: usize) -> Ref;
    /// Allocates an array of zero words.
    fn word_array(&mut self, length: usize) -> Ref;
    /// Keeps an object alive, and knows where it is, until `unroot`. Roots are a stack.
    fn root(&mut self, object: Ref) -> Self::Root;
    /// Where the rooted object is now.
    fn rooted(&self, root: &Self::Root) -> Ref;
    /// Gives the newest root back.
    fn unroot(&mut self, root: Self::Root) -> Ref;
    /// Stores a reference, with the heap's write barrier.
    ///
    /// # Safety
    ///
    /// `object` is a live object with more than `slot` references, `value` is null or live.
    unsafe fn store(&mut self, object: Ref, slot: usize, value: Ref);
    /// A full collection, where there is such a thing.
    fn collect(&mut self);
    /// What the heap has to say about itself.
    fn report(&self, report: &mut Report);

    /// Begins a stretch of the program whose objects are all garbage at its end: a hint for region allocators, which
    /// a collector ignores.
    #[inline(always)]
    fn begin_temporary(&mut self) -> usize {
        0
    }

    /// Ends the stretch.
    #[inline(always)]
    fn end_temporary(&mut self, _begin: usize) {}

    /// Loads a reference.
    ///
    /// # Safety
    ///
    /// `object` is a live object with more than `slot` references.
    #[inline(always)]
    unsafe fn load(&self, object: Ref, slot: usize) -> Ref {
        // SAFETY: the caller vouches for the slot.
        Ref(unsafe { *object.0.add(Self::HEADER + slot) } as *mut u64)
    }

    /// The address of a word that is no reference, in an object with `refs` references.
    ///
    /// # Safety
    ///
    /// `object` is a live object with `refs` references and more than `word` words. The address is good until the
    /// next allocation.
    #[inline(always)]
    unsafe fn word(&self, object: Ref, refs: usize, word: usize) -> *mut u64 {
        // SAFETY: the caller vouches for the word.
        unsafe { object.0.add(Self::HEADER + refs + word) }
    }
}

/// Runs the program on the heap and reports.
pub fn run<H: RawHeap>(heap: &mut H, program: Program) -> Report {
    let mut report = match program {
        Program::GcBench => Report::new(&gcbench::run(heap).checksum()),
        Program::BinaryTrees(depth) => Report::new(&trees::run(heap, depth)),
        Program::LargeLiveHeap => large_live_heap::run(heap),
        Program::LongList(objects) => Report::new(&lists::run(heap, objects)),
    };
    heap.report(&mut report);
    report
}
