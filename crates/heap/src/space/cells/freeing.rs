//! Freeing one object at a time: what a counting collector asks of the cell space.
//!
//! A tracing collector learns of all deaths at once and sweeps. A counting one learns of them one by
//! one: the cell becomes a free run of its own at once, linked into the run list of its block, and
//! the block is swept (so that neighbouring runs join) when that pays. When to do what is the
//! collector's business; these are the steps.
//!
//! Invariant, for a collector that uses nothing else to refill and to sweep: while no cache holds
//! runs of a block of cells, `first_run` heads the list of *all* its free runs, whether the block
//! stands in `partial` or not.

use super::*;

impl CellSpace {
    /// Gives `cache` the runs of a block from `partial`, and says which block.
    ///
    /// # Safety
    /// As for [`CellSpace::refill_from_partial`].
    pub unsafe fn take_partial(
        &mut self,
        cache: &mut Cache,
        class: SizeClass,
    ) -> Option<BlockIndex> {
        let block = self.partial[class.0 as usize].pop()?;
        let run = std::mem::take(&mut self.meta[block.0 as usize].first_run);
        // SAFETY: a block in `partial` has a first run, and now belongs to the cache.
        unsafe { cache.start_run(class, run) };
        Some(block)
    }

    /// Gives `cache` a fresh block, and says which.
    ///
    /// # Safety
    /// As for [`CellSpace::refill_from_pool`].
    pub unsafe fn take_fresh(&mut self, cache: &mut Cache, class: SizeClass) -> Option<BlockIndex> {
        // SAFETY: passed on from the caller.
        let found = unsafe { self.refill_from_pool(cache, class) };
        found.then(|| self.pool.block_of(cache.cursor[class.0 as usize]))
    }

    /// The size class of a block of cells; none for other blocks.
    pub fn class_of(&self, block: BlockIndex) -> Option<SizeClass> {
        match self.meta.get(block.0 as usize)?.usage {
            Use::Cells { class, .. } => Some(class),
            _ => None,
        }
    }

    /// Frees one object: a cell becomes a free run of its own, a large object gives its blocks
    /// back. After large objects, [`CellSpace::forget_freed_large`] must follow. True when the
    /// object was a cell.
    ///
    /// # Safety
    /// An object of this space begins at `address`; it is dead, and no cache has runs in its block.
    pub unsafe fn free(&mut self, address: usize) -> bool {
        let block = self.pool.block_of(address);
        let meta = &mut self.meta[block.0 as usize];
        match meta.usage {
            Use::Cells { class, .. } => {
                // SAFETY: the cell is dead.
                unsafe {
                    write_run(address, class.cell(), meta.first_run);
                    object::poison(address, class.cell());
                }
                meta.first_run = address;
                true
            }
            Use::LargeHead { blocks } => {
                // SAFETY: the object is dead. Who still holds a reference sees free memory.
                unsafe {
                    object::set_header(address, Header::free(0));
                    object::poison(address, blocks as usize * BLOCK_BYTES);
                }
                self.free_large_blocks(block);
                false
            }
            Use::Free | Use::LargeTail => {
                debug_assert!(false, "no object begins at {address:#x}");
                false
            }
        }
    }

    /// Takes large objects that were freed one by one off the list of large objects. Nothing may
    /// have been allocated since.
    pub fn forget_freed_large(&mut self) {
        let meta = &self.meta;
        self.large
            .retain(|head| matches!(meta[head.0 as usize].usage, Use::LargeHead { .. }));
    }

    /// Takes the blocks chosen off the lists of blocks with room.
    pub fn withdraw(&mut self, chosen: impl Fn(BlockIndex) -> bool) {
        for list in &mut self.partial {
            list.retain(|&block| !chosen(block));
        }
    }

    /// Puts a block into the list of blocks with room; false when it has none. It must not stand
    /// there already.
    pub fn list(&mut self, block: BlockIndex) -> bool {
        match self.meta[block.0 as usize] {
            BlockMeta {
                usage: Use::Cells { class, .. },
                first_run,
            } if first_run != 0 => {
                self.partial[class.0 as usize].push(block);
                true
            }
            _ => false,
        }
    }

    /// Sweeps one block of cells that stands in no list: dead cells and the free runs beside them
    /// become one. The block stands in no list afterwards, unless it was empty: then it is back in
    /// the pool.
    ///
    /// # Safety
    /// No cache has runs in the block, and objects for which `live` is false are dead.
    pub unsafe fn sweep_one(&mut self, block: BlockIndex, live: impl Fn(Header) -> bool) -> Swept {
        // SAFETY: passed on from the caller.
        let swept = unsafe { self.sweep_block(block, live) };
        if let BlockMeta {
            usage: Use::Cells { class, .. },
            first_run,
        } = self.meta[block.0 as usize]
            && first_run != 0
        {
            // `sweep_block` has put it at the end of the list.
            let popped = self.partial[class.0 as usize].pop();
            debug_assert_eq!(popped, Some(block));
        }
        swept
    }

    /// Gives a block of cells back to the pool without looking at it.
    ///
    /// # Safety
    /// Nothing in the block is alive, it stands in no list, and no cache has runs in it.
    pub unsafe fn free_block(&mut self, block: BlockIndex) {
        let meta = &mut self.meta[block.0 as usize];
        let Use::Cells { class, .. } = meta.usage else {
            debug_assert!(false, "only blocks of cells are freed this way");
            return;
        };
        meta.usage = Use::Free;
        meta.first_run = 0;
        if cfg!(debug_assertions) {
            let start = self.pool.address(block);
            for cell in (0..class.cells_per_block()).map(|i| start + i * class.cell()) {
                // SAFETY: nothing in the block is alive.
                unsafe {
                    write_run(cell, class.cell(), 0);
                    object::poison(cell, class.cell());
                }
            }
        }
        self.pool.give(block, 1);
    }

    /// Every block of cells, with its class.
    pub fn cell_blocks(&self) -> impl Iterator<Item = (BlockIndex, SizeClass)> + '_ {
        self.meta
            .iter()
            .enumerate()
            .filter_map(|(index, meta)| match meta.usage {
                Use::Cells { class, .. } => Some((BlockIndex(index as u32), class)),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Reservation;

    /// A space with one full block of 24-byte cells.
    fn full_block() -> (CellSpace, Reservation, Vec<usize>, SizeClass) {
        let reservation = Reservation::new(1 << 20, false).unwrap();
        let extent = Extent {
            start: reservation.start(),
            bytes: 1 << 20,
        };
        let mut space = CellSpace::new(extent, 1 << 20);
        let mut cache = Cache::default();
        let class = SizeClass::of(24);
        // SAFETY: the cache is empty.
        unsafe { space.take_fresh(&mut cache, class) }.unwrap();
        let mut cells = Vec::new();
        while let Some(cell) = cache.take(class) {
            // SAFETY: the cell was given out just now.
            unsafe { object::set_header(cell, Header::new(1, 0)) };
            cells.push(cell);
        }
        space.retire(&mut cache);
        (space, reservation, cells, class)
    }

    #[test]
    fn freed_cells_are_runs_that_a_sweep_joins() {
        let (mut space, _reservation, cells, class) = full_block();
        assert_eq!(cells.len(), class.cells_per_block());
        let block = space.pool().block_of(cells[0]);
        let mut cache = Cache::default();
        // SAFETY: the cells are of this space, and nobody uses them.
        unsafe {
            assert!(
                space.take_partial(&mut cache, class).is_none(),
                "full blocks are in no list"
            );
            for &cell in &cells[10..13] {
                assert!(space.free(cell));
            }
            assert!(!space.is_object_start(cells[11]) && space.is_object_start(cells[13]));
            space.sweep_one(block, |_| true);
            assert!(space.list(block));
            assert_eq!(space.take_partial(&mut cache, class), Some(block));
            for &cell in &cells[10..13] {
                assert_eq!(cache.take(class), Some(cell), "one run of three cells");
            }
            assert!(cache.take(class).is_none() && !cache.advance(class));
        }
    }

    #[test]
    fn an_empty_block_goes_back() {
        let (mut space, _reservation, cells, _) = full_block();
        let block = space.pool().block_of(cells[0]);
        assert_eq!(space.committed(), BLOCK_BYTES);
        // SAFETY: nobody uses the cells.
        unsafe { space.free_block(block) };
        assert_eq!(space.committed(), 0);
        assert!(!space.is_object_start(cells[0]));
    }

    #[test]
    fn large_objects_give_their_blocks_back() {
        let (mut space, _reservation, _, _) = full_block();
        let large = space.allocate_large(3 * BLOCK_BYTES).unwrap();
        assert_eq!(space.committed(), 4 * BLOCK_BYTES);
        // SAFETY: nobody uses the object.
        let was_cell = unsafe {
            object::set_header(large, Header::new(1, 0));
            space.free(large)
        };
        space.forget_freed_large();
        assert!(!was_cell);
        assert_eq!(space.committed(), BLOCK_BYTES);
        assert_eq!(space.large.len(), 0);
    }
}
