//! The pool: which blocks of an address range are free.
//!
//! Blocks are given out singly (for cells) or in runs (for large objects), always from the lowest
//! address that fits, so that the used part of the range stays together.
//!
//! Invariant: `free` holds disjoint, non-adjacent runs below `fresh`; everything from `fresh` on has
//! never been given out.

use super::BLOCK_BYTES;
use crate::memory::Reservation;
use std::collections::BTreeMap;

/// Index of a block in its range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockIndex(pub u32);

/// The free blocks of a range.
#[derive(Debug)]
pub struct Pool {
    base: usize,
    blocks: u32,
    fresh: u32,
    free: BTreeMap<u32, u32>,
    free_blocks: u32,
    /// Blocks that may be out at the same time.
    limit: u32,
}

impl Pool {
    /// A pool over `blocks` blocks from `base` on, of which at most `limit` may be in use.
    pub fn new(base: usize, blocks: u32, limit: u32) -> Pool {
        Pool {
            base,
            blocks,
            fresh: 0,
            free: BTreeMap::new(),
            free_blocks: 0,
            limit: limit.min(blocks),
        }
    }

    /// Blocks given out at present.
    pub fn used(&self) -> u32 {
        self.fresh - self.free_blocks
    }

    /// Blocks that may be in use at the same time.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// One past the highest block ever given out.
    pub fn high_water(&self) -> u32 {
        self.fresh
    }

    /// The address of a block.
    #[inline(always)]
    pub fn address(&self, block: BlockIndex) -> usize {
        self.base + block.0 as usize * BLOCK_BYTES
    }

    /// The block that `address` lies in.
    #[inline(always)]
    pub fn block_of(&self, address: usize) -> BlockIndex {
        debug_assert!(address >= self.base);
        BlockIndex(((address - self.base) / BLOCK_BYTES) as u32)
    }

    /// Takes `count` adjacent blocks.
    pub fn take(&mut self, count: u32) -> Option<BlockIndex> {
        if self.used() + count > self.limit {
            return None;
        }
        let found = self.free.iter().find(|&(_, &length)| length >= count);
        if let Some((&start, &length)) = found {
            self.free.remove(&start);
            if length > count {
                self.free.insert(start + count, length - count);
            }
            self.free_blocks -= count;
            return Some(BlockIndex(start));
        }
        // A free run that ends at the fresh part can be lengthened.
        let (start, have) = match self.free.last_key_value() {
            Some((&start, &length)) if start + length == self.fresh => (start, length),
            _ => (self.fresh, 0),
        };
        if start + count > self.blocks {
            return None;
        }
        if have > 0 {
            self.free.remove(&start);
            self.free_blocks -= have;
        }
        self.fresh = start + count;
        Some(BlockIndex(start))
    }

    /// Gives blocks back.
    pub fn give(&mut self, block: BlockIndex, count: u32) {
        let (mut start, mut length) = (block.0, count);
        if let Some((&before, &len)) = self.free.range(..start).next_back()
            && before + len == start
        {
            self.free.remove(&before);
            start = before;
            length += len;
        }
        if let Some(&after) = self.free.get(&(start + length)) {
            self.free.remove(&(start + length));
            length += after;
        }
        self.free.insert(start, length);
        self.free_blocks += count;
    }

    /// Gives the memory of free blocks back to the operating system, except `keep` blocks.
    pub fn release(&self, reservation: &Reservation, keep: u32) {
        let mut spare = self.free_blocks.saturating_sub(keep);
        // From the top down: the low blocks are the next to be used.
        for (&start, &length) in self.free.iter().rev() {
            if spare == 0 {
                return;
            }
            let count = length.min(spare);
            let first = self.base + (start + length - count) as usize * BLOCK_BYTES;
            // SAFETY: the blocks are free, so nothing in them is used.
            unsafe { reservation.release(first, first + count as usize * BLOCK_BYTES) };
            spare -= count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a plain set of block numbers: what is out never overlaps, and what fits is found.
        #[test]
        fn agrees_with_a_set(ops in proptest::collection::vec((any::<bool>(), 1u32..5, any::<prop::sample::Index>()), 1..200)) {
            let mut pool = Pool::new(1 << 30, 40, 30);
            let mut out: Vec<(u32, u32)> = Vec::new();
            let mut used: BTreeSet<u32> = BTreeSet::new();
            for (take, count, pick) in ops {
                if take {
                    let fits = used.len() as u32 + count <= 30
                        && (0..=40 - count).any(|s| (s..s + count).all(|b| !used.contains(&b)));
                    match pool.take(count) {
                        Some(start) => {
                            for b in start.0..start.0 + count {
                                prop_assert!(used.insert(b));
                            }
                            out.push((start.0, count));
                        }
                        None => prop_assert!(!fits),
                    }
                } else if !out.is_empty() {
                    let (start, count) = out.swap_remove(pick.index(out.len()));
                    for b in start..start + count {
                        used.remove(&b);
                    }
                    pool.give(BlockIndex(start), count);
                }
                prop_assert_eq!(pool.used() as usize, used.len());
            }
        }
    }
}
