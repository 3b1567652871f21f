//! The cell space: objects that stay where they are.
//!
//! Small objects live in blocks of equal cells, large ones in runs of whole blocks. A mutator
//! allocates by bumping through a *run* of free cells, so that allocation from recycled memory is
//! as short as from fresh memory. A free run has a free header with its extent in bytes, and a link
//! to the next run of its block; what lies behind the first two words of a run is never read.
//!
//! Invariants (while no cache holds runs):
//! - every block of cells can be walked: each cell begins with the header of an object, or of a
//!   free run that says how far to skip;
//! - a block stands in exactly one place: the pool, `unswept` of its class, `partial` of its class,
//!   in a cache, or nowhere (full);
//! - a block in `partial` has been swept since the last marking, and its `first_run` is a free run.

mod freeing;

use super::pool::{BlockIndex, Pool};
use super::size_class::{self, SizeClass};
use super::{BLOCK_BYTES, Extent};
use crate::header::Header;
use crate::object;
use crate::shape::ShapeTable;

/// What a block is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Free,
    /// Cells; true when it waits for the sweeper.
    Cells {
        class: SizeClass,
        unswept: bool,
    },
    /// First block of a large object.
    LargeHead {
        blocks: u32,
    },
    LargeTail,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BlockMeta {
    pub(super) usage: Use,
    /// First free run, or 0. Meaningful for blocks in `partial`.
    pub(super) first_run: usize,
}

/// What a sweep did.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Objects freed.
    pub objects: u64,
    /// Their bytes (cells, or whole large objects).
    pub bytes: u64,
}

impl std::ops::AddAssign for Swept {
    fn add_assign(&mut self, other: Swept) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// A mutator's runs, one per size class.
#[derive(Debug)]
pub struct Cache {
    cursor: [usize; size_class::COUNT],
    end: [usize; size_class::COUNT],
    /// Next run of the same block, or 0.
    next: [usize; size_class::COUNT],
    /// Bytes of the runs taken since [`Cache::take_tally`].
    tally: usize,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            cursor: [0; size_class::COUNT],
            end: [0; size_class::COUNT],
            next: [0; size_class::COUNT],
            tally: 0,
        }
    }
}

impl Cache {
    /// A cell of `class`, if the current run has one.
    #[inline(always)]
    pub fn take(&mut self, class: SizeClass) -> Option<usize> {
        let class_index = class.0 as usize;
        let cell = self.cursor[class_index];
        let next = cell + class.cell();
        if next > self.end[class_index] {
            return None;
        }
        self.cursor[class_index] = next;
        Some(cell)
    }

    /// Goes on to the next run of the same block.
    pub fn advance(&mut self, class: SizeClass) -> bool {
        let run = self.next[class.0 as usize];
        if run == 0 {
            return false;
        }
        // SAFETY: `next` links free runs of a block that this cache owns.
        unsafe { self.start_run(class, run) };
        true
    }

    /// # Safety
    /// `run` is a free run of a block of `class` that this cache owns.
    unsafe fn start_run(&mut self, class: SizeClass, run: usize) {
        let class = class.0 as usize;
        // SAFETY: promised by the caller.
        unsafe {
            let bytes = object::header(run).aux() as usize;
            self.cursor[class] = run;
            self.end[class] = run + bytes;
            self.next[class] = run_link(run);
            self.tally += bytes;
        }
    }

    /// Bytes of the runs taken since the last call.
    pub fn take_tally(&mut self) -> usize {
        std::mem::take(&mut self.tally)
    }

    /// Bytes taken and not yet used.
    pub fn unused(&self) -> usize {
        (0..size_class::COUNT)
            .map(|class| self.end[class] - self.cursor[class])
            .sum()
    }

    /// True when some run of this cache lies in `start..end`.
    pub fn has_run_in(&self, start: usize, end: usize) -> bool {
        (0..size_class::COUNT).any(|c| {
            self.cursor[c] < self.end[c] && self.cursor[c] >= start && self.cursor[c] < end
                || self.next[c] >= start && self.next[c] < end
        })
    }
}

pub(super) unsafe fn run_link(run: usize) -> usize {
    // SAFETY: the caller passes a free run, whose second word is its link.
    unsafe { *((run + 8) as *const usize) }
}

pub(super) unsafe fn write_run(run: usize, bytes: usize, next: usize) {
    // SAFETY: the caller passes free memory of at least 16 bytes.
    unsafe {
        object::set_header(run, Header::free(bytes as u32));
        *((run + 8) as *mut usize) = next;
    }
}

/// A block that was taken out of the space to be swept.
#[derive(Debug)]
pub struct InFlight {
    block: BlockIndex,
    class: SizeClass,
    start: usize,
    swept: Option<SweptCells>,
}

impl InFlight {
    /// Sweeps the block, if it has not been swept.
    ///
    /// # Safety
    /// Objects for which `live` is false are dead, and nobody walks the heap meanwhile.
    pub unsafe fn sweep(&mut self, live: impl Fn(Header) -> bool) {
        if self.swept.is_none() {
            // SAFETY: the block was in no list, and nobody else has it.
            self.swept = Some(unsafe { sweep_cells(self.start, self.class, live) });
        }
    }
}

/// What sweeping found in a block of cells.
#[derive(Clone, Copy, Debug)]
struct SweptCells {
    freed: Swept,
    /// First free run, or 0.
    first_run: usize,
    /// Nothing lives here.
    is_empty: bool,
}

/// Sweeps the block of `class` at `start`: dead objects join the free runs.
///
/// # Safety
/// The block can be walked, nobody else uses it meanwhile except to read or mark live objects, and
/// objects for which `live` is false are dead.
unsafe fn sweep_cells(start: usize, class: SizeClass, live: impl Fn(Header) -> bool) -> SweptCells {
    let cell = class.cell();
    let end = start + class.cells_per_block() * cell;
    let mut freed = 0;
    // Runs are found in ascending order; `last_link` is where the address of the next goes.
    let (mut first_run, mut previous, mut run) = (0, 0, 0);
    let mut at = start;
    // SAFETY: the block can be walked, and dead cells may be overwritten.
    unsafe {
        let mut close = |run: usize, at: usize| {
            write_run(run, at - run, 0);
            if previous == 0 {
                first_run = run;
            } else {
                *((previous + 8) as *mut usize) = run;
            }
            previous = run;
        };
        while at < end {
            let word = object::header(at);
            if word.is_free() {
                if run == 0 {
                    run = at;
                }
                debug_assert!(word.aux() as usize >= cell);
                at += word.aux() as usize;
            } else if live(word) {
                if run != 0 {
                    close(run, at);
                    run = 0;
                }
                at += cell;
            } else {
                if run == 0 {
                    run = at;
                }
                freed += 1;
                object::poison(at, cell);
                at += cell;
            }
        }
        if run != 0 && run != start {
            close(run, end);
        }
    }
    // The run was never interrupted when it begins with the block: nothing lives here.
    SweptCells {
        freed: Swept {
            objects: freed,
            bytes: freed * cell as u64,
        },
        first_run,
        is_empty: run == start,
    }
}

/// The space itself. Not thread-safe: it stands behind the heap's lock.
#[derive(Debug)]
pub struct CellSpace {
    pub(super) pool: Pool,
    pub(super) meta: Vec<BlockMeta>,
    pub(super) partial: Vec<Vec<BlockIndex>>,
    unswept: Vec<Vec<BlockIndex>>,
    pub(super) large: Vec<BlockIndex>,
    unswept_blocks: usize,
}

impl CellSpace {
    /// A space over `extent`, of which at most `limit` bytes may be in use.
    pub fn new(extent: Extent, limit: usize) -> CellSpace {
        let blocks = (extent.bytes / BLOCK_BYTES) as u32;
        CellSpace {
            pool: Pool::new(extent.start, blocks, (limit / BLOCK_BYTES) as u32),
            meta: Vec::new(),
            partial: vec![Vec::new(); size_class::COUNT],
            unswept: vec![Vec::new(); size_class::COUNT],
            large: Vec::new(),
            unswept_blocks: 0,
        }
    }

    /// Bytes of the blocks in use.
    pub fn committed(&self) -> usize {
        self.pool.used() as usize * BLOCK_BYTES
    }

    /// The most that [`CellSpace::committed`] may be.
    pub fn limit(&self) -> usize {
        self.pool.limit() as usize * BLOCK_BYTES
    }

    /// The free blocks.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// True when blocks wait for the sweeper.
    pub fn has_unswept(&self) -> bool {
        self.unswept_blocks > 0
    }

    fn take_blocks(&mut self, count: u32) -> Option<BlockIndex> {
        let block = self.pool.take(count)?;
        let end = (block.0 + count) as usize;
        if self.meta.len() < end {
            let empty = BlockMeta {
                usage: Use::Free,
                first_run: 0,
            };
            self.meta.resize(end, empty);
        }
        Some(block)
    }

    /// Gives `cache` a run of `class` from a swept block, if there is one.
    ///
    /// # Safety
    /// The cache's run of this class is used up ([`Cache::advance`] said no).
    pub unsafe fn refill_from_partial(&mut self, cache: &mut Cache, class: SizeClass) -> bool {
        let Some(block) = self.partial[class.0 as usize].pop() else {
            return false;
        };
        let run = self.meta[block.0 as usize].first_run;
        // SAFETY: a block in `partial` has a first run, and now belongs to the cache.
        unsafe { cache.start_run(class, run) };
        true
    }

    /// Gives `cache` a fresh block of `class`, if the limit allows one.
    ///
    /// # Safety
    /// As for [`CellSpace::refill_from_partial`].
    pub unsafe fn refill_from_pool(&mut self, cache: &mut Cache, class: SizeClass) -> bool {
        let Some(block) = self.take_blocks(1) else {
            return false;
        };
        self.meta[block.0 as usize].usage = Use::Cells {
            class,
            unswept: false,
        };
        let start = self.pool.address(block);
        // SAFETY: the block is free and now belongs to the cache.
        unsafe {
            write_run(start, class.cells_per_block() * class.cell(), 0);
            cache.start_run(class, start);
        }
        true
    }

    /// Sweeps waiting blocks of `class` until one has room, and gives it to `cache`.
    ///
    /// # Safety
    /// As for [`CellSpace::refill_from_partial`]; objects for which `live` is false are dead.
    pub unsafe fn refill_by_sweeping(
        &mut self,
        cache: &mut Cache,
        class: SizeClass,
        live: impl Fn(Header) -> bool + Copy,
        swept: &mut Swept,
    ) -> bool {
        while let Some(block) = self.unswept[class.0 as usize].pop() {
            self.unswept_blocks -= 1;
            // SAFETY: passed on from the caller.
            unsafe {
                *swept += self.sweep_block(block, live);
                match self.meta[block.0 as usize] {
                    BlockMeta {
                        usage: Use::Cells { .. },
                        first_run,
                    } if first_run != 0 => {
                        // `sweep_block` has put it at the end of the list.
                        let popped = self.partial[class.0 as usize].pop();
                        debug_assert_eq!(popped, Some(block));
                        cache.start_run(class, first_run);
                        return true;
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// Takes the runs of `cache` back, so that all blocks can be walked.
    pub fn retire(&mut self, cache: &mut Cache) {
        for class in (0..size_class::COUNT).map(|c| SizeClass(c as u8)) {
            let i = class.0 as usize;
            let (cursor, end, next) = (cache.cursor[i], cache.end[i], cache.next[i]);
            let first = if cursor < end {
                // SAFETY: the rest of the run is free memory of a block that the cache owned.
                unsafe { write_run(cursor, end - cursor, next) };
                cursor
            } else {
                next
            };
            if first != 0 {
                let block = self.pool.block_of(first);
                self.meta[block.0 as usize].first_run = first;
                self.partial[i].push(block);
            }
        }
        let tally = cache.tally;
        *cache = Cache {
            tally,
            ..Cache::default()
        };
    }

    /// Memory for a large object of `bytes`; its contents are undefined.
    pub fn allocate_large(&mut self, bytes: usize) -> Option<usize> {
        let blocks = bytes.div_ceil(BLOCK_BYTES) as u32;
        let head = self.take_blocks(blocks)?;
        self.meta[head.0 as usize].usage = Use::LargeHead { blocks };
        for tail in head.0 + 1..head.0 + blocks {
            self.meta[tail as usize].usage = Use::LargeTail;
        }
        self.large.push(head);
        Some(self.pool.address(head))
    }

    /// True when the object at `address` has blocks of its own.
    #[inline]
    pub fn is_large(&self, address: usize) -> bool {
        let block = self.pool.block_of(address);
        matches!(self.meta[block.0 as usize].usage, Use::LargeHead { .. })
    }

    /// After marking: all blocks of cells wait for the sweeper. The caches must have been retired.
    pub fn schedule_sweep(&mut self) {
        debug_assert_eq!(self.unswept_blocks, 0, "the last sweep was finished");
        for list in &mut self.partial {
            list.clear();
        }
        // From high to low, since the lists are taken from their end: low addresses first.
        for index in (0..self.meta.len() as u32).rev() {
            if let Use::Cells { class, unswept } = &mut self.meta[index as usize].usage {
                *unswept = true;
                self.unswept[class.0 as usize].push(BlockIndex(index));
                self.unswept_blocks += 1;
            }
        }
    }

    /// Sweeps everything that still waits.
    ///
    /// # Safety
    /// Objects for which `live` is false are dead.
    pub unsafe fn finish_sweep(&mut self, live: impl Fn(Header) -> bool + Copy) -> Swept {
        let mut swept = Swept::default();
        for class in 0..size_class::COUNT {
            while let Some(block) = self.unswept[class].pop() {
                self.unswept_blocks -= 1;
                // SAFETY: passed on from the caller.
                swept += unsafe { self.sweep_block(block, live) };
            }
        }
        swept
    }

    /// Sweeps one waiting block, whichever. False when none waits.
    ///
    /// # Safety
    /// Objects for which `live` is false are dead.
    pub unsafe fn sweep_some(
        &mut self,
        live: impl Fn(Header) -> bool + Copy,
        swept: &mut Swept,
    ) -> bool {
        for class in 0..size_class::COUNT {
            if let Some(block) = self.unswept[class].pop() {
                self.unswept_blocks -= 1;
                // SAFETY: passed on from the caller.
                *swept += unsafe { self.sweep_block(block, live) };
                return true;
            }
        }
        false
    }

    /// Sweeps one block: dead objects join the free runs. A block with room goes to `partial`, one
    /// that is empty back to the pool.
    ///
    /// # Safety
    /// The block holds cells, no cache has runs in it, it stands in no list, and objects for which
    /// `live` is false are dead.
    unsafe fn sweep_block(&mut self, block: BlockIndex, live: impl Fn(Header) -> bool) -> Swept {
        let Use::Cells { class, .. } = self.meta[block.0 as usize].usage else {
            debug_assert!(false, "only blocks of cells are swept this way");
            return Swept::default();
        };
        // SAFETY: passed on from the caller.
        let swept = unsafe { sweep_cells(self.pool.address(block), class, live) };
        self.place_swept(block, class, swept)
    }

    /// Puts a block that was swept where it belongs now.
    fn place_swept(&mut self, block: BlockIndex, class: SizeClass, swept: SweptCells) -> Swept {
        let meta = &mut self.meta[block.0 as usize];
        if swept.is_empty {
            meta.usage = Use::Free;
            meta.first_run = 0;
            self.pool.give(block, 1);
        } else {
            meta.usage = Use::Cells {
                class,
                unswept: false,
            };
            meta.first_run = swept.first_run;
            if swept.first_run != 0 {
                self.partial[class.0 as usize].push(block);
            }
        }
        swept.freed
    }

    /// Sweeps at most `count` waiting blocks of `class`, until one has room. True when one has.
    ///
    /// # Safety
    /// Objects for which `live` is false are dead.
    pub unsafe fn sweep_some_of(
        &mut self,
        class: SizeClass,
        count: u32,
        live: impl Fn(Header) -> bool + Copy,
    ) -> bool {
        for _ in 0..count {
            let Some(block) = self.unswept[class.0 as usize].pop() else {
                break;
            };
            self.unswept_blocks -= 1;
            // SAFETY: passed on from the caller.
            unsafe { self.sweep_block(block, live) };
            if !self.partial[class.0 as usize].is_empty() {
                return true;
            }
        }
        false
    }

    /// Takes up to `count` waiting blocks out of the lists, to be swept without the heap's lock and
    /// then given [back](CellSpace::give_back). Meanwhile they stand in no list.
    pub fn take_unswept(&mut self, count: usize, batch: &mut Vec<InFlight>) {
        for class in (0..size_class::COUNT).map(|c| SizeClass(c as u8)) {
            while batch.len() < count {
                let Some(block) = self.unswept[class.0 as usize].pop() else {
                    break;
                };
                self.unswept_blocks -= 1;
                batch.push(InFlight {
                    block,
                    class,
                    start: self.pool.address(block),
                    swept: None,
                });
            }
        }
    }

    /// Takes a block back that was taken by [`CellSpace::take_unswept`], swept or not.
    pub fn give_back(&mut self, block: InFlight) -> Swept {
        match block.swept {
            Some(swept) => self.place_swept(block.block, block.class, swept),
            None => {
                self.unswept[block.class.0 as usize].push(block.block);
                self.unswept_blocks += 1;
                Swept::default()
            }
        }
    }

    /// Frees the large objects that are not live.
    ///
    /// # Safety
    /// Objects for which `live` is false are dead.
    pub unsafe fn sweep_large(
        &mut self,
        shapes: &ShapeTable,
        live: impl Fn(Header) -> bool,
    ) -> Swept {
        let mut swept = Swept::default();
        let heads = std::mem::take(&mut self.large);
        for head in heads {
            let address = self.pool.address(head);
            // SAFETY: a large head is the header of an object.
            let word = unsafe { object::header(address) };
            if live(word) {
                self.large.push(head);
                continue;
            }
            swept.objects += 1;
            // SAFETY: as above.
            swept.bytes += unsafe { object::bytes(shapes, word) } as u64;
            self.free_large_blocks(head);
        }
        swept
    }

    pub(super) fn free_large_blocks(&mut self, head: BlockIndex) {
        let Use::LargeHead { blocks } = self.meta[head.0 as usize].usage else {
            return;
        };
        for block in head.0..head.0 + blocks {
            self.meta[block as usize].usage = Use::Free;
        }
        self.pool.give(head, blocks);
    }

    /// Calls `visit` with every object, dead ones included unless they were swept. The caches must
    /// have been retired.
    ///
    /// # Safety
    /// No mutator runs meanwhile.
    pub unsafe fn each_object(&self, mut visit: impl FnMut(usize, Header)) {
        for (index, meta) in self.meta.iter().enumerate() {
            let start = self.pool.address(BlockIndex(index as u32));
            match meta.usage {
                Use::Free | Use::LargeTail => {}
                // SAFETY: a large head is the header of an object.
                Use::LargeHead { .. } => visit(start, unsafe { object::header(start) }),
                Use::Cells { class, .. } => {
                    let end = start + class.cells_per_block() * class.cell();
                    let mut at = start;
                    while at < end {
                        // SAFETY: the block can be walked.
                        let word = unsafe { object::header(at) };
                        if word.is_free() {
                            at += word.aux() as usize;
                        } else {
                            visit(at, word);
                            at += class.cell();
                        }
                    }
                }
            }
        }
    }

    /// True when `address` is where an object of this space may begin: the start of a cell in use
    /// or of a large object. For verification: it walks the block.
    pub fn is_object_start(&self, address: usize) -> bool {
        if address < self.pool.address(BlockIndex(0)) {
            return false;
        }
        let block = self.pool.block_of(address);
        let Some(meta) = self.meta.get(block.0 as usize) else {
            return false;
        };
        let start = self.pool.address(block);
        match meta.usage {
            Use::Free | Use::LargeTail => false,
            Use::LargeHead { .. } => address == start,
            Use::Cells { class, .. } => {
                let end = start + class.cells_per_block() * class.cell();
                let mut at = start;
                while at < end && at <= address {
                    // SAFETY: the block can be walked.
                    let word = unsafe { object::header(at) };
                    if at == address {
                        return !word.is_free();
                    }
                    at += if word.is_free() {
                        word.aux() as usize
                    } else {
                        class.cell()
                    };
                }
                false
            }
        }
    }
}
