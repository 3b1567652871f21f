//! The machine of the incremental collector: its state, and its operations as the seed names them.
//!
//! Sun, Sun, Zhang, Tang, Nygard and Lampl, "Specification and Verification of Garbage Collector by
//! Java Modeling Language", §III and §IV. The names in the text are the paper's:
//!
//! | paper | here |
//! |---|---|
//! | `pointerSet`, `freeList` | [`Machine::space`]: cells in use, and runs of free cells |
//! | `stack` | [`Machine::stack`], with [`Machine::arrays`] for arrays that are scanned in part |
//! | `phase` | [`Machine::phase`] |
//! | `sweepCur`, START, END | [`Machine::sweep_cur`], [`Machine::range`] |
//! | `numMark`, `numSwept`, `numfree` | fields and methods of the same names |
//! | MARKNUM, SWEEPNUM, FREENUM | [`Machine::thresholds`] |
//! | `markField` (Figure 3) | [`Machine::mark_field`] |
//! | `mark` (Figure 4) | [`Machine::mark`]; with an empty stack [`Machine::mark_roots`] and [`Machine::start_sweeping`] |
//! | `sweep` (Figure 5) | [`Machine::sweep`] |
//! | `startMarking` (Figure 6) | [`Machine::start_marking`] |
//! | `allocate` (Figure 7) | [`Machine::cell`] and [`Machine::large`]; the colour: [`Local::colour`] |
//! | `djikstraStore` (Figure 8) | [`Local::dijkstra_store`] |
//!
//! Between any two operations:
//! - **colours**: an object is white if its mark bit is clear, grey if it is set and the object is
//!   on the stack, black if it is set and the object is not on the stack;
//! - **Idle**: everything is white and the stack is empty;
//! - **Mark**: `sweepCur = START`; no strong slot of a black object leads to a white one;
//! - **Sweep**: the stack is empty; everything below `sweepCur` is white and not dead by this cycle;
//!   from `sweepCur` on, white is dead and black is not.
//!
//! Where this departs from the paper: objects have any number of fields and many sizes, so the free
//! list is one list of runs for each size of cell; an array of more than [`SEGMENT`] references is
//! visited in segments, each of which counts as an object; the roots are stacks that have no
//! barrier, so they are marked again when the stack is empty, and sweeping begins only when that
//! found nothing white.

use super::local::Local;
use crate::config::IncrementalSettings;
use crate::header::{Header, MARK};
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, ShapeTable};
use crate::space::cells::{CellSpace, Swept};
use crate::space::cursor::SweepCursor;
use crate::space::size_class::SizeClass;
use crate::space::{BLOCK_BYTES, Extent};
use crate::stats::Amount;
use crate::weak::Fate;

/// References of an array that are visited at a time.
pub const SEGMENT: usize = 128;

/// References that a step of marking follows at most, for each object that it may visit: objects
/// with many references must not make it long.
pub const REFERENCES_PER_MARK: usize = 8;

/// Bytes of free memory that are counted as one free object.
pub const FREE_OBJECT_BYTES: usize = 32;

/// What the collector is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// Looking for what can be reached.
    Mark,
    /// Freeing what was not reached.
    Sweep,
}

/// The colour of an object; see the [module text](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// Not reached.
    White,
    /// Reached; what it refers to has not all been marked.
    Grey,
    /// Reached, and all that it refers to is marked.
    Black,
}

/// An array of which the references from `from` on have not been marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The array, which is grey.
    pub array: Ref,
    /// The first index to look at next.
    pub from: u32,
}

/// The state of the collector; see the [module text](self).
#[derive(Debug)]
pub struct Machine {
    space: CellSpace,
    extent: Extent,
    phase: Phase,
    stack: Vec<Ref>,
    arrays: Vec<Segment>,
    cursor: SweepCursor,
    num_mark: usize,
    num_swept: usize,
    /// Bytes of cells and of blocks of large objects in use.
    used: usize,
    /// MARKNUM, SWEEPNUM and FREENUM.
    pub(super) thresholds: IncrementalSettings,
    /// Objects with weak slots or ephemerons that were visited in this cycle.
    specials: Vec<Ref>,
    /// Visited in this cycle.
    marked: Amount,
    /// Freed in this cycle.
    freed: Amount,
}

impl Machine {
    /// An idle machine with an empty heap over `extent`, of which `limit` bytes may be used.
    pub fn new(extent: Extent, limit: usize, thresholds: IncrementalSettings) -> Machine {
        Machine {
            space: CellSpace::new(extent, limit),
            extent,
            phase: Phase::Idle,
            stack: Vec::new(),
            arrays: Vec::new(),
            cursor: SweepCursor::starting_at(extent.start),
            num_mark: 0,
            num_swept: 0,
            used: 0,
            thresholds,
            specials: Vec::new(),
            marked: Amount::default(),
            freed: Amount::default(),
        }
    }

    /// The memory.
    pub fn space(&self) -> &CellSpace {
        &self.space
    }

    /// What the machine is doing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The mark stack. The arrays that are visited in part stand beside it: [`Machine::arrays`].
    pub fn stack(&self) -> &[Ref] {
        &self.stack
    }

    /// The part of the mark stack that holds arrays visited in part.
    pub fn arrays(&self) -> &[Segment] {
        &self.arrays
    }

    /// How many grey objects there are.
    pub fn stack_count(&self) -> usize {
        self.stack.len() + self.arrays.len()
    }

    /// START and END.
    pub fn range(&self) -> Extent {
        self.space.swept_range()
    }

    /// Everything below this address has been swept in this cycle.
    pub fn sweep_cur(&self) -> usize {
        self.cursor.at
    }

    /// Objects visited by the last [`Machine::mark`].
    pub fn num_mark(&self) -> usize {
        self.num_mark
    }

    /// Objects and free runs visited by the last [`Machine::sweep`].
    pub fn num_swept(&self) -> usize {
        self.num_swept
    }

    /// MARKNUM, SWEEPNUM and FREENUM as they are in force.
    pub fn thresholds(&self) -> IncrementalSettings {
        self.thresholds
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Free objects. There are cells of many sizes, and memory that has not been made into cells
    /// yet: [`FREE_OBJECT_BYTES`] of it count as one object.
    pub fn num_free(&self) -> usize {
        self.space.limit().saturating_sub(self.used) / FREE_OBJECT_BYTES
    }

    /// What was visited since marking began.
    pub fn marked(&self) -> Amount {
        self.marked
    }

    /// What was freed since marking began.
    pub fn freed(&self) -> Amount {
        self.freed
    }

    /// The colour of an object. Slow: looks through the stack.
    ///
    /// # Safety
    /// `object` is an object of this heap.
    pub unsafe fn colour(&self, object: Ref) -> Colour {
        // SAFETY: promised by the caller.
        if !unsafe { object::header(object.address()) }.has(MARK) {
            Colour::White
        } else if self.stack.contains(&object) || self.arrays.iter().any(|s| s.array == object) {
            Colour::Grey
        } else {
            Colour::Black
        }
    }

    /// True for a reference into the address space of this machine; false for null and immediates.
    #[inline(always)]
    fn manages(&self, p: Ref) -> bool {
        p.is_object() && self.extent.contains(p.address())
    }

    /// Makes a white object grey: sets its mark and pushes it. Anything else stays as it is. True
    /// when it was white.
    ///
    /// # Safety
    /// `p` is null, an immediate, outside this heap, or an object; no mutator runs.
    #[inline(always)]
    pub unsafe fn mark_field(&mut self, p: Ref) -> bool {
        if !self.manages(p) {
            return false;
        }
        let address = p.address();
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(address);
            debug_assert!(!word.is_free(), "{p:?} is reachable and free");
            if word.has(MARK) {
                return false;
            }
            object::set_header(address, Header(word.0 | MARK));
        }
        self.stack.push(p);
        true
    }

    /// Begins a cycle: the cursor at START, and the roots grey. The caller has found that the free
    /// objects are fewer than FREENUM, or has been asked for a step.
    ///
    /// # Safety
    /// The machine is idle, no mutator runs, and `roots` are objects, null or immediates.
    pub unsafe fn start_marking(&mut self, roots: &[Ref]) {
        debug_assert_eq!(self.phase, Phase::Idle);
        debug_assert!(self.stack_count() == 0 && self.specials.is_empty());
        self.cursor = SweepCursor::starting_at(self.range().start);
        self.phase = Phase::Mark;
        self.marked = Amount::default();
        self.freed = Amount::default();
        // SAFETY: passed on from the caller.
        unsafe { self.mark_roots(roots) };
    }

    /// Makes the white among the roots grey.
    ///
    /// # Safety
    /// The phase is Mark, no mutator runs, and `roots` are objects, null or immediates.
    pub unsafe fn mark_roots(&mut self, roots: &[Ref]) {
        debug_assert_eq!(self.phase, Phase::Mark);
        for &root in roots {
            // SAFETY: promised by the caller.
            unsafe { self.mark_field(root) };
        }
    }

    /// Visits grey objects until MARKNUM have been visited or none is left: each becomes black, and
    /// what it refers to grey if it was white. Stops earlier when [`REFERENCES_PER_MARK`] times
    /// MARKNUM references have been followed.
    ///
    /// Marking waits for memory, so a reference waits between its discovery and `mark_field` in a
    /// short queue while its header is being fetched (see [`crate::trace`]). The queue is empty
    /// between operations.
    ///
    /// # Safety
    /// The phase is Mark, no mutator runs, and every slot of a marked object holds an object of
    /// this heap, null or an immediate.
    pub unsafe fn mark(&mut self, shapes: &ShapeTable) {
        debug_assert_eq!(self.phase, Phase::Mark);
        self.num_mark = 0;
        let mut queue = Queue::default();
        let references = (self.thresholds.mark_num).saturating_mul(REFERENCES_PER_MARK);
        // SAFETY: passed on from the caller, in all of this.
        unsafe {
            while self.num_mark < self.thresholds.mark_num && queue.passed < references {
                if let Some(p) = self.stack.pop() {
                    self.visit(shapes, p, &mut queue);
                } else if queue.is_low()
                    && let Some(segment) = self.arrays.pop()
                {
                    self.visit_segment(segment, &mut queue);
                } else if let Some(p) = queue.pop() {
                    self.mark_field(p);
                } else {
                    break;
                }
            }
            while let Some(p) = queue.pop() {
                self.mark_field(p);
            }
        }
    }

    /// Lets `p` pass through the queue; what leaves it becomes grey.
    #[inline(always)]
    unsafe fn discover(&mut self, p: Ref, queue: &mut Queue) {
        if p.is_object() {
            object::prefetch(p.address());
            if let Some(arrived) = queue.push(p) {
                // SAFETY: passed on from the caller.
                unsafe { self.mark_field(arrived) };
            }
        }
    }

    #[inline(always)]
    unsafe fn visit(&mut self, shapes: &ShapeTable, p: Ref, queue: &mut Queue) {
        let address = p.address();
        self.num_mark += 1;
        self.marked.objects += 1;
        // SAFETY: what is on the stack is an object.
        unsafe {
            let word = object::header(address);
            self.marked.bytes += object::bytes(shapes, word) as u64;
            let length = word.aux() as usize;
            if length > SEGMENT && shapes.layout(word.shape()).form == Form::References {
                self.arrays.push(Segment { array: p, from: 0 });
                return;
            }
            let special = object::each_strong_slot(shapes, address, word, |slot| {
                self.discover(object::load(slot), queue);
            });
            if special {
                self.specials.push(p);
            }
        }
    }

    #[cold]
    unsafe fn visit_segment(&mut self, segment: Segment, queue: &mut Queue) {
        let address = segment.array.address();
        let from = segment.from as usize;
        self.num_mark += 1;
        // SAFETY: the array is marked, so it is an object, and the indices are below its length.
        unsafe {
            let length = object::header(address).aux() as usize;
            let to = length.min(from + SEGMENT);
            if to < length {
                self.arrays.push(Segment {
                    array: segment.array,
                    from: to as u32,
                });
            }
            for slot in from..to {
                self.discover(object::load(object::slot_address(address, slot)), queue);
            }
        }
    }

    /// Begins to sweep.
    ///
    /// # Safety
    /// The phase is Mark, the stack is empty, the roots were marked again and nothing was white, no
    /// mutator runs and all locals have been retired: what is white is dead.
    pub unsafe fn start_sweeping(&mut self) {
        debug_assert_eq!(self.phase, Phase::Mark);
        debug_assert!(self.stack_count() == 0 && self.specials.is_empty());
        self.cursor = self.space.begin_cursor_sweep();
        self.phase = Phase::Sweep;
    }

    /// Sweeps SWEEPNUM objects and free runs from the cursor on: black becomes white, white goes to
    /// the free list. At END the machine becomes idle. Returns what was freed.
    ///
    /// # Safety
    /// The phase is Sweep, no mutator runs, and all locals have been retired.
    pub unsafe fn sweep(&mut self) -> Amount {
        debug_assert_eq!(self.phase, Phase::Sweep);
        let mut swept = Swept::default();
        let budget = self.thresholds.sweep_num;
        // SAFETY: from the cursor on, white is dead.
        self.num_swept = unsafe { self.space.sweep_on(&mut self.cursor, budget, &mut swept) };
        self.used -= swept.bytes as usize;
        let freed = Amount {
            objects: swept.objects,
            bytes: swept.bytes,
        };
        self.freed += freed;
        if self.cursor.at >= self.range().end() {
            self.phase = Phase::Idle;
        }
        freed
    }

    /// Counts the runs that a mutator has taken as used. Returns how many bytes it has allocated in
    /// its runs since the last count.
    pub fn count(&mut self, local: &mut Local) -> usize {
        let taken = local.cache.take_tally();
        self.used += taken;
        let unused = local.cache.unused();
        let allocated = taken + local.unused - unused;
        local.unused = unused;
        allocated
    }

    /// Takes back what a mutator holds: its free runs, and the objects that it made grey. Returns
    /// the same as [`Machine::count`].
    pub fn retire(&mut self, local: &mut Local) -> usize {
        let allocated = self.count(local);
        self.used -= std::mem::take(&mut local.unused);
        self.space.retire(&mut local.cache);
        debug_assert!(local.grey.is_empty() || self.phase == Phase::Mark);
        self.stack.append(&mut local.grey);
        allocated
    }

    /// A cell from the free list; none when there is none.
    pub fn cell(&mut self, local: &mut Local, class: SizeClass) -> Option<usize> {
        let cache = &mut local.cache;
        // SAFETY: the cache's run is used up when a mutator asks here.
        let found = unsafe {
            cache.advance(class)
                || self.space.refill_from_partial(cache, class)
                || self.space.refill_from_pool(cache, class)
        };
        if found { cache.take(class) } else { None }
    }

    /// Blocks for a large object; none when there are none.
    pub fn large(&mut self, bytes: usize) -> Option<usize> {
        let address = self.space.allocate_large(bytes)?;
        self.used += bytes.next_multiple_of(BLOCK_BYTES);
        Some(address)
    }

    /// True when `address` holds an object that this cycle has found dead and not freed yet.
    pub(super) fn awaits_sweep(&self, address: usize, word: Header) -> bool {
        self.phase == Phase::Sweep && address >= self.cursor.at && !word.has(MARK)
    }
}

/// References on their way to `mark_field`, first in, first out.
struct Queue {
    slots: [Ref; Queue::LENGTH],
    head: usize,
    count: usize,
    /// How many were ever pushed.
    passed: usize,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            slots: [Ref::NULL; Queue::LENGTH],
            head: 0,
            count: 0,
            passed: 0,
        }
    }
}

impl Queue {
    const LENGTH: usize = 32;

    /// True when so few are under way that the next visit might have to wait for memory.
    #[inline(always)]
    fn is_low(&self) -> bool {
        self.count < Queue::LENGTH / 2
    }

    /// Adds `p`; when the queue was full, its oldest reference leaves it.
    #[inline(always)]
    fn push(&mut self, p: Ref) -> Option<Ref> {
        self.passed += 1;
        if self.count == Queue::LENGTH {
            let oldest = std::mem::replace(&mut self.slots[self.head], p);
            self.head = (self.head + 1) % Queue::LENGTH;
            return Some(oldest);
        }
        self.slots[(self.head + self.count) % Queue::LENGTH] = p;
        self.count += 1;
        None
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Ref> {
        if self.count == 0 {
            return None;
        }
        let oldest = self.slots[self.head];
        self.head = (self.head + 1) % Queue::LENGTH;
        self.count -= 1;
        Some(oldest)
    }
}

/// The machine at the end of marking, as weak processing sees it.
pub(super) struct Marking<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) shapes: &'a ShapeTable,
}

impl Fate for Marking<'_> {
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref> {
        // SAFETY: promised by the caller; nothing is freed before marking ends.
        let word = unsafe { object::header(reference.address()) };
        word.has(MARK).then_some(reference)
    }

    unsafe fn keep(&mut self, reference: Ref) -> Ref {
        // SAFETY: promised by the caller.
        unsafe { self.machine.mark_field(reference) };
        reference
    }

    unsafe fn drain(&mut self) {
        while self.machine.stack_count() > 0 {
            // SAFETY: promised by the caller.
            unsafe { self.machine.mark(self.shapes) };
        }
    }

    fn take_specials(&mut self) -> Vec<Ref> {
        std::mem::take(&mut self.machine.specials)
    }
}
