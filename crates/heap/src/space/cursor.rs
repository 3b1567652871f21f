//! Sweeping a cell space in the order of addresses, a few cells at a time.
//!
//! The sweep of an incremental collector can stop after any cell, and the program runs on. A
//! [`SweepCursor`] remembers where it stopped. What is marked loses its mark, what is not marked is
//! freed: after the sweep nothing is marked.
//!
//! Invariants, while a sweep is under way:
//! - below the cursor nothing is marked;
//! - a block of cells that was there when the sweep began (it is `unswept`) stands in no list until
//!   the cursor has passed its end, so that nothing is allocated in it and its free runs can be
//!   joined;
//! - a block taken from the pool since then, and ahead of the cursor, holds marked objects only. It
//!   may stand in `partial` or in a cache; its free runs are left alone;
//! - wherever the cursor stops, every block can be walked.

use super::cells::{CellSpace, Swept, Use, run_link, write_run};
use super::pool::BlockIndex;
use super::size_class::{self, SizeClass};
use super::{BLOCK_BYTES, Extent};
use crate::header::{Header, MARK};
use crate::object;

/// Bytes of cells that one visit of a sweep pays for; see [`CellSpace::sweep_on`].
pub const BYTES_PER_VISIT: usize = 128;

/// Where a sweep in address order stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepCursor {
    /// Everything below this address has been swept.
    pub at: usize,
    /// In an unswept block: its first free run so far, or 0.
    first_run: usize,
    /// The last free run that is finished, or 0; the next is linked behind it.
    last_run: usize,
    /// The free run that ends at `at` and may grow, or 0.
    open_run: usize,
}

impl SweepCursor {
    /// A cursor at the start of a block or of the space.
    pub const fn starting_at(at: usize) -> SweepCursor {
        SweepCursor {
            at,
            first_run: 0,
            last_run: 0,
            open_run: 0,
        }
    }

    /// Ends the open run at `at` and links it behind the one before.
    ///
    /// # Safety
    /// The open run is free memory of the block being swept.
    unsafe fn close_run(&mut self, at: usize) {
        let run = std::mem::take(&mut self.open_run);
        if run == 0 {
            return;
        }
        // SAFETY: promised by the caller; the last run is one that was closed here.
        unsafe {
            write_run(run, at - run, 0);
            if self.last_run == 0 {
                self.first_run = run;
            } else {
                *((self.last_run + 8) as *mut usize) = run;
            }
        }
        self.last_run = run;
    }
}

impl CellSpace {
    /// The range that a sweep goes through: START and END of the seed. It grows with the heap.
    pub fn swept_range(&self) -> Extent {
        let start = self.pool.address(BlockIndex(0));
        Extent {
            start,
            bytes: self.pool.high_water() as usize * BLOCK_BYTES,
        }
    }

    /// After marking: all blocks of cells wait for the sweeper, none can be allocated from. The
    /// caches must have been retired. Returns a cursor at the start.
    pub fn begin_cursor_sweep(&mut self) -> SweepCursor {
        for list in &mut self.partial {
            list.clear();
        }
        // This sweep finds large objects by their address.
        self.large.clear();
        for meta in &mut self.meta {
            if let Use::Cells { unswept, .. } = &mut meta.usage {
                *unswept = true;
            }
        }
        SweepCursor::starting_at(self.swept_range().start)
    }

    /// Sweeps on from `cursor`, visiting at most `budget` objects, free runs and free blocks, and at
    /// most [`BYTES_PER_VISIT`] bytes of cells for each. Returns how many it visited: none only at
    /// the end of the range.
    ///
    /// A large object counts as freed with the bytes of its blocks.
    ///
    /// # Safety
    /// The caches have been retired, no mutator runs, and of the objects from the cursor on those
    /// that are not marked are dead.
    pub unsafe fn sweep_on(
        &mut self,
        cursor: &mut SweepCursor,
        budget: usize,
        swept: &mut Swept,
    ) -> usize {
        let (mut visited, mut spent) = (0, 0);
        while spent < budget && cursor.at < self.swept_range().end() {
            let block = self.pool.block_of(cursor.at);
            // SAFETY: passed on from the caller.
            unsafe {
                match self.meta[block.0 as usize].usage {
                    Use::Free | Use::LargeTail => {
                        visited += 1;
                        spent += 1;
                        cursor.at += BLOCK_BYTES;
                    }
                    Use::LargeHead { blocks } => {
                        visited += 1;
                        spent += 1;
                        self.sweep_large_at(block, blocks, swept);
                        cursor.at += blocks as usize * BLOCK_BYTES;
                    }
                    Use::Cells {
                        class,
                        unswept: true,
                    } => {
                        let share = (budget - spent).div_ceil(price(class));
                        let cells = self.sweep_cells(cursor, block, class, share, swept);
                        visited += cells;
                        spent += cells * price(class);
                    }
                    Use::Cells { class, .. } => {
                        let share = (budget - spent).div_ceil(price(class));
                        let cells = self.whiten_cells(cursor, block, class, share);
                        visited += cells;
                        spent += cells * price(class);
                    }
                }
            }
        }
        visited
    }

    unsafe fn sweep_large_at(&mut self, head: BlockIndex, blocks: u32, swept: &mut Swept) {
        let address = self.pool.address(head);
        // SAFETY: a large head is the header of an object.
        let word = unsafe { object::header(address) };
        if word.has(MARK) {
            // SAFETY: as above, and no mutator runs.
            unsafe { object::set_header(address, unmarked(word)) };
            return;
        }
        let bytes = blocks as usize * BLOCK_BYTES;
        swept.objects += 1;
        swept.bytes += bytes as u64;
        // SAFETY: the object is dead, and the blocks are its own.
        unsafe { object::poison(address, bytes) };
        self.free_large_blocks(head);
    }

    /// Sweeps cells of an unswept block; when its end is reached, the block goes to `partial` or
    /// back to the pool.
    unsafe fn sweep_cells(
        &mut self,
        cursor: &mut SweepCursor,
        block: BlockIndex,
        class: SizeClass,
        budget: usize,
        swept: &mut Swept,
    ) -> usize {
        let cell = class.cell();
        let start = self.pool.address(block);
        let end = start + class.cells_per_block() * cell;
        let (mut visited, mut freed) = (0, 0);
        let mut at = cursor.at;
        // SAFETY: the block can be walked from the cursor on, and dead cells may be overwritten.
        unsafe {
            while at < end && visited < budget {
                visited += 1;
                let word = object::header(at);
                if word.has(MARK) {
                    object::set_header(at, unmarked(word));
                    cursor.close_run(at);
                    at += cell;
                    continue;
                }
                if cursor.open_run == 0 {
                    cursor.open_run = at;
                }
                if word.is_free() {
                    debug_assert!(word.aux() as usize >= cell);
                    at += word.aux() as usize;
                } else {
                    freed += 1;
                    object::poison(at, cell);
                    at += cell;
                }
            }
            swept.objects += freed;
            swept.bytes += freed * cell as u64;
            cursor.at = at;
            if at < end {
                // The program runs before this block is finished: it must be walkable.
                if cursor.open_run != 0 {
                    write_run(cursor.open_run, at - cursor.open_run, 0);
                }
            } else {
                self.finish_block(cursor, block, class, end);
            }
        }
        visited
    }

    unsafe fn finish_block(
        &mut self,
        cursor: &mut SweepCursor,
        block: BlockIndex,
        class: SizeClass,
        end: usize,
    ) {
        let start = self.pool.address(block);
        let meta = &mut self.meta[block.0 as usize];
        if cursor.open_run == start {
            // The run was never interrupted: nothing lives here.
            meta.usage = Use::Free;
            meta.first_run = 0;
            self.pool.give(block, 1);
        } else {
            // SAFETY: the open run is free memory of this block.
            unsafe { cursor.close_run(end) };
            meta.usage = Use::Cells {
                class,
                unswept: false,
            };
            meta.first_run = cursor.first_run;
            if cursor.first_run != 0 {
                self.partial[class.0 as usize].push(block);
            }
        }
        *cursor = SweepCursor::starting_at(start + BLOCK_BYTES);
    }

    /// Takes the marks from objects in a block that was taken from the pool during this sweep.
    unsafe fn whiten_cells(
        &mut self,
        cursor: &mut SweepCursor,
        block: BlockIndex,
        class: SizeClass,
        budget: usize,
    ) -> usize {
        let start = self.pool.address(block);
        let end = start + class.cells_per_block() * class.cell();
        let mut visited = 0;
        // SAFETY: the block can be walked, and no mutator runs.
        unsafe {
            while cursor.at < end && visited < budget {
                visited += 1;
                let word = object::header(cursor.at);
                if word.is_free() {
                    cursor.at += word.aux() as usize;
                    continue;
                }
                debug_assert!(word.has(MARK), "born ahead of the cursor and not marked");
                object::set_header(cursor.at, unmarked(word));
                cursor.at += class.cell();
            }
        }
        if cursor.at >= end {
            *cursor = SweepCursor::starting_at(start + BLOCK_BYTES);
        }
        visited
    }

    /// Calls `visit` with address and header of every free run that waits to be allocated from.
    /// For verification. The caches must have been retired.
    ///
    /// # Safety
    /// No mutator runs meanwhile.
    pub unsafe fn each_free_run(&self, mut visit: impl FnMut(usize, Header)) {
        for class in 0..size_class::COUNT {
            for block in &self.partial[class] {
                let mut run = self.meta[block.0 as usize].first_run;
                while run != 0 {
                    // SAFETY: a block in `partial` has a chain of free runs.
                    unsafe {
                        visit(run, object::header(run));
                        run = run_link(run);
                    }
                }
            }
        }
    }
}

/// What the visit of a cell costs: large cells are far apart, and each is a wait for memory.
const fn price(class: SizeClass) -> usize {
    class.cell().div_ceil(BYTES_PER_VISIT)
}

const fn unmarked(word: Header) -> Header {
    Header(word.0 & !MARK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Reservation;
    use crate::space::cells::Cache;

    fn space(blocks: usize) -> (Reservation, CellSpace) {
        let reservation = Reservation::new(blocks * BLOCK_BYTES, false).unwrap();
        let extent = Extent {
            start: reservation.start(),
            bytes: blocks * BLOCK_BYTES,
        };
        (reservation, CellSpace::new(extent, blocks * BLOCK_BYTES))
    }

    /// Fills `blocks` blocks with cells of `class`; every cell whose number `marks` is marked.
    fn fill(
        space: &mut CellSpace,
        class: SizeClass,
        blocks: usize,
        marks: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut cache = Cache::default();
        let mut cells = Vec::new();
        for n in 0..blocks * class.cells_per_block() {
            let cell = cache.take(class).unwrap_or_else(|| {
                // SAFETY: the cache's run is used up.
                assert!(unsafe { space.refill_from_pool(&mut cache, class) });
                cache.take(class).unwrap()
            });
            let mark = if marks(n) { MARK } else { 0 };
            // SAFETY: the cell is ours.
            unsafe { object::set_header(cell, Header(Header::new(1, 0).0 | mark)) };
            cells.push(cell);
        }
        space.retire(&mut cache);
        cells
    }

    #[test]
    fn a_sweep_can_stop_after_any_cell() {
        let class = SizeClass::of(1024);
        for budget in 1..=class.cells_per_block() + 1 {
            let (_memory, mut space) = space(4);
            let live = |n: usize| n % 7 < 3 || n.is_multiple_of(11);
            let cells = fill(&mut space, class, 2, live);
            let mut cursor = space.begin_cursor_sweep();
            let mut swept = Swept::default();
            loop {
                // SAFETY: nothing runs but this test; what is not marked is dead.
                let visited = unsafe { space.sweep_on(&mut cursor, budget, &mut swept) };
                for (n, &cell) in cells.iter().enumerate() {
                    // Freed cells may lie inside a longer run: ask the walk.
                    let there = space.is_object_start(cell);
                    assert_eq!(there, live(n) || cell >= cursor.at, "budget {budget}");
                    if there {
                        // SAFETY: the object is there.
                        let marked = unsafe { object::header(cell) }.has(MARK);
                        assert_eq!(marked, live(n) && cell >= cursor.at);
                    }
                }
                assert!(visited <= budget);
                if visited == 0 {
                    break;
                }
            }
            let dead = (0..cells.len()).filter(|&n| !live(n)).count() as u64;
            assert_eq!(swept.objects, dead);
            assert_eq!(swept.bytes, dead * class.cell() as u64);
            let mut free = 0;
            // SAFETY: nothing else runs.
            unsafe {
                space.each_free_run(|_, word| {
                    assert!(word.is_free() && !word.has(MARK));
                    free += word.aux() as u64;
                })
            };
            assert_eq!(free, swept.bytes, "every freed cell can be allocated again");
        }
    }

    #[test]
    fn empty_blocks_and_dead_large_objects_go_back_to_the_pool() {
        let class = SizeClass::of(64);
        let (_memory, mut space) = space(8);
        fill(&mut space, class, 2, |_| false);
        let dead = space.allocate_large(2 * BLOCK_BYTES).unwrap();
        let live = space.allocate_large(BLOCK_BYTES).unwrap();
        // SAFETY: both are ours.
        unsafe {
            object::set_header(dead, Header::new(1, 0));
            object::set_header(live, Header(Header::new(1, 0).0 | MARK));
        }
        let mut cursor = space.begin_cursor_sweep();
        let mut swept = Swept::default();
        // SAFETY: what is not marked is dead.
        unsafe { space.sweep_on(&mut cursor, usize::MAX, &mut swept) };
        assert_eq!(space.committed(), BLOCK_BYTES);
        assert!(space.is_object_start(live) && !space.is_object_start(dead));
        assert_eq!(cursor.at, space.swept_range().end());
    }

    #[test]
    fn blocks_taken_during_the_sweep_keep_their_free_runs() {
        let class = SizeClass::of(512);
        let (_memory, mut space) = space(4);
        fill(&mut space, class, 1, |_| true);
        let mut cursor = space.begin_cursor_sweep();
        let mut cache = Cache::default();
        // SAFETY: the cache is empty.
        assert!(unsafe { space.refill_from_pool(&mut cache, class) });
        let first = cache.take(class).unwrap();
        // SAFETY: the cell is ours; ahead of the cursor, so it is born marked.
        unsafe { object::set_header(first, Header(Header::new(1, 0).0 | MARK)) };
        space.retire(&mut cache);
        let mut swept = Swept::default();
        // SAFETY: what is not marked is dead.
        while unsafe { space.sweep_on(&mut cursor, 1, &mut swept) } > 0 {}
        assert_eq!(swept.objects, 0);
        // SAFETY: the object is there.
        assert!(!unsafe { object::header(first) }.has(MARK));
        // SAFETY: the cache is empty.
        assert!(unsafe { space.refill_from_partial(&mut cache, class) });
        assert_eq!(cache.take(class), Some(first + class.cell()));
        // SAFETY: as above.
        assert!(!unsafe { space.refill_from_partial(&mut Cache::default(), class) });
    }
}
