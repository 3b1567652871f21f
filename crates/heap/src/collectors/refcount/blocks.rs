//! What is known of each block: how much lives in it, and whether it has new objects.
//!
//! Deaths are scattered over the blocks, and a block is worth allocating from, and worth sweeping,
//! only if much of it is free: a sweep costs what the block holds, and should be paid for by the
//! cells that it brings. So a block is *listed* (offered to the allocator) when at least an eighth of
//! it is free, and swept when it is offered for the first time and after each further eighth that
//! died. The rest of the free memory is not lost: before an allocation fails, all is listed.
//!
//! A block whose last object died goes back without being looked at. That is the usual fate of the
//! blocks that were filled since the last epoch, so new objects that die cost nothing.
//!
//! Invariants, between epochs:
//! - `live` is the number of objects in the block that are counted, or dead and waiting in the
//!   buffer of candidates;
//! - a block that had free cells given to a mutator since the last epoch is young;
//! - a block that is not young stands in the space's list of blocks with room iff it is `LISTED`.

use crate::header::NEW;
use crate::space::cells::CellSpace;
use crate::space::pool::BlockIndex;
use crate::space::size_class::SizeClass;

/// Given to a mutator since the last epoch.
const YOUNG: u8 = 1;
/// Stands in `touched`.
const TOUCHED: u8 = 2;
/// Stands in the space's list of blocks with room; for young blocks, stood there.
const LISTED: u8 = 4;
/// Is to be swept in this epoch.
const SWEEP: u8 = 8;

#[derive(Clone, Copy, Default, Debug)]
struct Block {
    live: u16,
    /// Cells freed one by one since the last sweep.
    freed: u16,
    flags: u8,
}

/// See the [module text](self).
#[derive(Default, Debug)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    young: Vec<BlockIndex>,
    /// Blocks in which something was freed in this epoch.
    touched: Vec<BlockIndex>,
    /// Large objects allocated since the last epoch.
    pub(super) young_large: Vec<usize>,
}

/// The part of a block that makes it worth its while: an eighth, or a cell.
fn portion(class: SizeClass) -> usize {
    (class.cells_per_block() / 8).max(1)
}

impl Blocks {
    fn at(&mut self, block: BlockIndex) -> &mut Block {
        let index = block.0 as usize;
        if index >= self.blocks.len() {
            self.blocks.resize(index + 1, Block::default());
        }
        &mut self.blocks[index]
    }

    /// A mutator got free cells of this block.
    pub(super) fn give(&mut self, block: BlockIndex) {
        let state = self.at(block);
        if state.flags & YOUNG == 0 {
            state.flags |= YOUNG;
            self.young.push(block);
        }
    }

    /// An object in this block is counted for the first time.
    #[inline(always)]
    pub(super) fn adopt(&mut self, block: BlockIndex) {
        self.at(block).live += 1;
    }

    /// A cell of this block was freed.
    #[inline(always)]
    pub(super) fn release(&mut self, block: BlockIndex) {
        let state = self.at(block);
        state.live -= 1;
        state.freed += 1;
        if state.flags & TOUCHED == 0 {
            state.flags |= TOUCHED;
            self.touched.push(block);
        }
    }

    /// Objects in the block that are counted.
    pub(super) fn live(&self, block: BlockIndex) -> usize {
        self.blocks
            .get(block.0 as usize)
            .map_or(0, |state| state.live as usize)
    }

    /// True when there may be objects that were allocated since the last epoch.
    pub(super) fn has_young(&self) -> bool {
        !self.young.is_empty() || !self.young_large.is_empty()
    }

    /// The end of an epoch: what is still new is dead. Sweeps the young blocks, and the old ones
    /// where it pays.
    ///
    /// # Safety
    /// Every live object has been counted, and the caches have been retired.
    pub(super) unsafe fn settle(&mut self, space: &mut CellSpace) {
        let mut sweep = std::mem::take(&mut self.young);
        for block in &sweep {
            self.at(*block).flags |= SWEEP;
        }
        for block in std::mem::take(&mut self.touched) {
            let Some(class) = space.class_of(block) else {
                self.at(block).flags &= !TOUCHED;
                continue;
            };
            let state = self.at(block);
            state.flags &= !TOUCHED;
            let room = class.cells_per_block() - state.live as usize;
            let pays = if state.flags & LISTED == 0 {
                room >= portion(class)
            } else {
                state.freed as usize >= portion(class)
            };
            if (pays || state.live == 0) && state.flags & SWEEP == 0 {
                state.flags |= SWEEP;
                sweep.push(block);
            }
        }
        let blocks = &self.blocks;
        space.withdraw(|block| {
            blocks
                .get(block.0 as usize)
                .is_some_and(|state| state.flags & SWEEP != 0)
        });
        for &block in &sweep {
            // SAFETY: passed on from the caller.
            unsafe { self.sweep(space, block) };
        }
        sweep.clear();
        self.young = sweep;
        let large = std::mem::take(&mut self.young_large);
        // SAFETY: new objects that were not counted are dead.
        unsafe {
            for &address in &large {
                if crate::object::header(address).has(NEW) {
                    space.free(address);
                }
            }
        }
        self.young_large = large;
        self.young_large.clear();
    }

    /// # Safety
    /// As for [`Blocks::settle`]; the block stands in no list.
    unsafe fn sweep(&mut self, space: &mut CellSpace, block: BlockIndex) {
        let state = self.at(block);
        let live = state.live as usize;
        *state = Block {
            live: state.live,
            ..Block::default()
        };
        // SAFETY: what is new and was not counted is dead.
        unsafe {
            if live == 0 {
                space.free_block(block);
                return;
            }
            space.sweep_one(block, |word| !word.has(NEW));
        }
        let Some(class) = space.class_of(block) else {
            return;
        };
        if class.cells_per_block() - live >= portion(class) && space.list(block) {
            self.at(block).flags |= LISTED;
        }
    }

    /// Offers every block that has any room to the allocator: memory is short. No block is young.
    pub(super) fn list_all(&mut self, space: &mut CellSpace) {
        self.list_with(space, |_| 1);
    }

    /// Decides anew which blocks are listed, after a sweep of the whole space. No block is young.
    pub(super) fn list_again(&mut self, space: &mut CellSpace) {
        for state in &mut self.blocks {
            state.freed = 0;
        }
        self.list_with(space, portion);
    }

    fn list_with(&mut self, space: &mut CellSpace, least: impl Fn(SizeClass) -> usize) {
        debug_assert!(self.young.is_empty() && self.touched.is_empty());
        space.withdraw(|_| true);
        let all: Vec<_> = space.cell_blocks().collect();
        // From high to low, since the lists are taken from their end: low addresses first.
        for (block, class) in all.into_iter().rev() {
            let state = self.at(block);
            let room = class.cells_per_block() - state.live as usize;
            state.flags &= !LISTED;
            if room >= least(class) && space.list(block) {
                self.at(block).flags |= LISTED;
            }
        }
    }

    /// Forgets everything, before all objects are counted again.
    pub(super) fn clear(&mut self) {
        self.blocks.fill(Block::default());
        self.young.clear();
        self.touched.clear();
        self.young_large.clear();
    }
}
