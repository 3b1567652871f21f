//! The large-object space of the moving collectors: objects of whole blocks that stay where they
//! are.
//!
//! Copying a large object costs more than it gains, so it is marked and swept instead. The mark
//! stands in a table beside the objects, one byte per block: there are few of them, and their
//! headers stay as the mutator sees them.
//!
//! Invariant: between collections, no object is marked.

use super::pool::{BlockIndex, Pool};
use super::{BLOCK_BYTES, Extent};
use crate::header::Header;
use crate::memory::Reservation;
use crate::object;
use crate::reference::Ref;
use crate::stats::Amount;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BlockState {
    /// Free, or not the first block of its object.
    NoHead,
    Unmarked,
    Marked,
}

#[derive(Clone, Copy, Debug)]
struct Large {
    head: BlockIndex,
    bytes: usize,
}

impl Large {
    fn blocks(&self) -> u32 {
        self.bytes.div_ceil(BLOCK_BYTES) as u32
    }
}

/// The space itself. Not thread-safe: it stands behind the heap's lock.
#[derive(Debug)]
pub struct LargeSpace {
    pool: Pool,
    states: Vec<BlockState>,
    objects: Vec<Large>,
    used: usize,
}

impl Default for LargeSpace {
    /// A space of no blocks.
    fn default() -> LargeSpace {
        LargeSpace::new(Extent { start: 0, bytes: 0 })
    }
}

impl LargeSpace {
    /// An empty space over `extent`. How much of it may be in use is the owner's affair.
    pub fn new(extent: Extent) -> LargeSpace {
        let blocks = (extent.bytes / BLOCK_BYTES) as u32;
        LargeSpace {
            pool: Pool::new(extent.start, blocks, blocks),
            states: Vec::new(),
            objects: Vec::new(),
            used: 0,
        }
    }

    /// Bytes of the blocks in use.
    pub fn committed(&self) -> usize {
        self.pool.used() as usize * BLOCK_BYTES
    }

    /// Bytes of objects.
    pub fn used(&self) -> usize {
        self.used
    }

    /// What an object of `bytes` takes of the range.
    pub const fn footprint(bytes: usize) -> usize {
        bytes.next_multiple_of(BLOCK_BYTES)
    }

    /// Memory for an object of `bytes`; its contents are undefined.
    pub fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let blocks = bytes.div_ceil(BLOCK_BYTES) as u32;
        let head = self.pool.take(blocks)?;
        let end = (head.0 + blocks) as usize;
        if self.states.len() < end {
            self.states.resize(end, BlockState::NoHead);
        }
        self.states[head.0 as usize] = BlockState::Unmarked;
        self.objects.push(Large { head, bytes });
        self.used += bytes;
        Some(self.pool.address(head))
    }

    /// The block that `address` is the start of, if an object begins there.
    fn head(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.pool.address(BlockIndex(0)))?;
        let index = offset / BLOCK_BYTES;
        let begins = offset % BLOCK_BYTES == 0 && *self.states.get(index)? != BlockState::NoHead;
        begins.then_some(index)
    }

    /// True when an object begins at `address`.
    pub fn is_object_start(&self, address: usize) -> bool {
        self.head(address).is_some()
    }

    /// Marks the object; true when it was unmarked before. False for what is no object of this
    /// space.
    pub fn mark(&mut self, object: Ref) -> bool {
        let Some(index) = self.head(object.address()) else {
            return false;
        };
        std::mem::replace(&mut self.states[index], BlockState::Marked) == BlockState::Unmarked
    }

    /// True for an object of this space that is marked.
    pub fn is_marked(&self, object: Ref) -> bool {
        self.head(object.address())
            .is_some_and(|index| self.states[index] == BlockState::Marked)
    }

    /// Frees the objects that are not marked, and unmarks the others. Gives what is left.
    pub fn sweep(&mut self) -> Amount {
        let mut left = Amount::default();
        let (pool, states) = (&mut self.pool, &mut self.states);
        self.objects.retain(|large| {
            let state = &mut states[large.head.0 as usize];
            if *state == BlockState::Marked {
                *state = BlockState::Unmarked;
                left.objects += 1;
                left.bytes += large.bytes as u64;
                return true;
            }
            *state = BlockState::NoHead;
            // SAFETY: what is not marked is not reachable.
            unsafe { object::poison(pool.address(large.head), large.bytes) };
            pool.give(large.head, large.blocks());
            false
        });
        self.used = left.bytes as usize;
        left
    }

    /// Gives the memory of free blocks back to the operating system, except `keep` bytes.
    pub fn trim(&self, reservation: &Reservation, keep: usize) {
        self.pool.release(reservation, (keep / BLOCK_BYTES) as u32);
    }

    /// Calls `visit` with every object.
    ///
    /// # Safety
    /// No mutator runs.
    pub unsafe fn each_object(&self, visit: &mut dyn FnMut(usize, Header)) {
        for large in &self.objects {
            let address = self.pool.address(large.head);
            // SAFETY: an object begins there, and the mutator has written its header.
            visit(address, unsafe { object::header(address) });
        }
    }

    /// The invariant, checked.
    pub fn verify(&self) -> Result<(), String> {
        let heads = self.states.iter().filter(|s| **s != BlockState::NoHead);
        if heads.count() != self.objects.len() {
            return Err("the large objects and the table of their blocks disagree".to_string());
        }
        let used: usize = self.objects.iter().map(|large| large.bytes).sum();
        if used != self.used {
            return Err(format!(
                "large objects take {used} bytes, not {}",
                self.used
            ));
        }
        match self
            .objects
            .iter()
            .find(|l| self.states[l.head.0 as usize] != BlockState::Unmarked)
        {
            None => Ok(()),
            Some(large) => Err(format!(
                "the large object at {:#x} is marked between collections",
                self.pool.address(large.head)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_marked_goes() {
        let reservation = Reservation::new(8 * BLOCK_BYTES, false).unwrap();
        let mut space = LargeSpace::new(Extent {
            start: reservation.start(),
            bytes: 8 * BLOCK_BYTES,
        });
        let a = Ref::from_address(space.allocate(3 * BLOCK_BYTES - 8).unwrap());
        let b = Ref::from_address(space.allocate(2 * BLOCK_BYTES).unwrap());
        assert_eq!(space.allocate(4 * BLOCK_BYTES), None);
        assert!(space.mark(b) && !space.mark(b));
        assert!(!space.mark(Ref::from_address(b.address() + BLOCK_BYTES)));
        assert!(space.is_marked(b) && !space.is_marked(a));
        assert!(space.verify().is_err());
        let left = space.sweep();
        assert_eq!(left.bytes as usize, 2 * BLOCK_BYTES);
        assert!(space.is_object_start(b.address()) && !space.is_object_start(a.address()));
        assert_eq!(space.committed(), 2 * BLOCK_BYTES);
        space.verify().unwrap();
        assert!(space.allocate(3 * BLOCK_BYTES).is_some());
        assert!(space.allocate(3 * BLOCK_BYTES).is_some());
    }
}
