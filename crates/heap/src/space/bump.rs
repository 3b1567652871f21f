//! A range that is filled from its start: allocation adds to a cursor.
//!
//! Mutators get *chunks* of the range and bump through them without the lock. What a chunk has left
//! when it is given back becomes free memory with a header, so that the range can be walked; if the
//! chunk is the last one, the range shrinks instead.
//!
//! Invariant, while no mutator holds a chunk: `start..top` is objects and free headers without gaps,
//! and everything from `touched` on is as the operating system gave it.

use super::Extent;
use crate::header::Header;
use crate::memory::{HUGE_PAGE, Reservation};
use crate::object;
use crate::shape::ShapeTable;

/// A part of a bump space that belongs to one mutator.
#[derive(Debug, Default)]
pub struct Chunk {
    cursor: usize,
    end: usize,
}

impl Chunk {
    /// Memory for an object, if the chunk has it.
    #[inline(always)]
    pub fn take(&mut self, bytes: usize) -> Option<usize> {
        let address = self.cursor;
        let next = address + bytes;
        if next > self.end {
            return None;
        }
        self.cursor = next;
        Some(address)
    }
}

/// The space itself. Not thread-safe: it stands behind the heap's lock.
#[derive(Debug)]
pub struct BumpSpace {
    extent: Extent,
    /// Everything below has been given out.
    top: usize,
    /// Bytes below `top` that are free memory.
    unused: usize,
    /// Nothing from here on has been touched since it was last given back.
    touched: usize,
}

impl BumpSpace {
    /// An empty space over `extent`.
    pub fn new(extent: Extent) -> BumpSpace {
        BumpSpace {
            extent,
            top: extent.start,
            unused: 0,
            touched: extent.start,
        }
    }

    /// Its address range.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// One past the last byte given out.
    pub fn top(&self) -> usize {
        self.top
    }

    /// Bytes given out, free memory between objects included.
    pub fn occupied(&self) -> usize {
        self.top - self.extent.start
    }

    /// Bytes of objects.
    pub fn used(&self) -> usize {
        self.occupied() - self.unused
    }

    /// Bytes that the operating system has given.
    pub fn touched(&self) -> usize {
        self.touched - self.extent.start
    }

    /// Gives `chunk`, which has been retired, `bytes` more of the range, all zero; false when there
    /// is no room.
    pub fn refill(&mut self, chunk: &mut Chunk, bytes: usize) -> bool {
        debug_assert_eq!(chunk.cursor, chunk.end, "the chunk was retired");
        if bytes > self.extent.end() - self.top {
            return false;
        }
        chunk.cursor = self.top;
        // A chunk at a time, so that what was cleared is still in the cache when it is used.
        // SAFETY: nothing lives above `top`, and the range goes on for so many bytes.
        unsafe { std::ptr::write_bytes(self.top as *mut u8, 0, bytes) };
        self.top += bytes;
        self.touched = self.touched.max(self.top);
        chunk.end = self.top;
        true
    }

    /// Takes back what `chunk` has left.
    pub fn retire(&mut self, chunk: &mut Chunk) {
        let left = chunk.end - chunk.cursor;
        if chunk.end == self.top {
            self.top = chunk.cursor;
        } else if left > 0 {
            // SAFETY: the rest of the chunk is free, and belongs to this mutator.
            unsafe { object::set_header(chunk.cursor, Header::free(left as u32)) };
            self.unused += left;
        }
        *chunk = Chunk::default();
    }

    /// Sets where the space ends, after its contents have been moved; `unused` bytes of it are free
    /// memory.
    pub fn set_top(&mut self, top: usize, unused: usize) {
        debug_assert!(self.extent.contains(top) || top == self.extent.end());
        if cfg!(debug_assertions) && top < self.top {
            // SAFETY: nothing lives from the new top on.
            unsafe { std::ptr::write_bytes(top as *mut u8, 0xDB, self.top - top) };
        }
        self.top = top;
        self.unused = unused;
        self.touched = self.touched.max(top);
    }

    /// Gives memory beyond the first `keep` bytes back to the operating system.
    pub fn trim(&mut self, reservation: &Reservation, keep: usize) {
        let keep = keep.max(self.occupied()).next_multiple_of(HUGE_PAGE);
        let end = self.extent.start + keep;
        if end < self.touched {
            // SAFETY: nothing lives above `top`.
            unsafe { reservation.release(end, self.touched) };
            self.touched = end;
        }
    }

    /// Calls `visit` with every object.
    ///
    /// # Safety
    /// No mutator runs, and the chunks have been retired.
    pub unsafe fn each_object(&self, shapes: &ShapeTable, visit: &mut dyn FnMut(usize, Header)) {
        // SAFETY: promised by the caller.
        unsafe { super::walk(shapes, self.extent.start, self.top, visit) }
    }

    /// True when an object begins at `address`. For verification: it walks the range.
    pub fn is_object_start(&self, shapes: &ShapeTable, address: usize) -> bool {
        if address < self.extent.start || address >= self.top {
            return false;
        }
        let mut found = false;
        // SAFETY: retired chunks end with a free header.
        unsafe { self.each_object(shapes, &mut |at, _| found |= at == address) };
        found
    }

    /// The invariant, checked: the walk ends exactly at `top`, and finds `used` bytes of objects.
    ///
    /// # Safety
    /// As for [`BumpSpace::each_object`].
    pub unsafe fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        let (mut at, mut used) = (self.extent.start, 0);
        while at < self.top {
            // SAFETY: promised by the caller.
            let (word, bytes) = unsafe {
                let word = object::header(at);
                (word, object::bytes(shapes, word))
            };
            if bytes == 0 || bytes % 8 != 0 {
                return Err(format!(
                    "{at:#x} begins with {word:?}, which is no object and no free memory"
                ));
            }
            if !word.is_free() {
                used += bytes;
            }
            at += bytes;
        }
        if at != self.top {
            return Err(format!("the walk ends at {at:#x}, not at {:#x}", self.top));
        }
        if used != self.used() {
            return Err(format!(
                "{used} bytes of objects were found and {} counted",
                self.used()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> (Reservation, BumpSpace) {
        let reservation = Reservation::new(HUGE_PAGE, false).unwrap();
        let extent = Extent {
            start: reservation.start(),
            bytes: 64 << 10,
        };
        (reservation, BumpSpace::new(extent))
    }

    #[test]
    fn the_last_chunk_gives_its_rest_back() {
        let (_reservation, mut space) = space();
        let mut chunk = Chunk::default();
        assert!(space.refill(&mut chunk, 4096));
        let first = chunk.take(24).unwrap();
        space.retire(&mut chunk);
        assert_eq!(space.occupied(), 24);
        assert_eq!(chunk.take(8), None);
        assert!(space.refill(&mut chunk, 4096));
        assert_eq!(chunk.take(24), Some(first + 24));
    }

    #[test]
    fn the_rest_of_an_inner_chunk_becomes_free_memory() {
        let (_reservation, mut space) = space();
        let shapes = ShapeTable::new(0);
        let (mut a, mut b) = (Chunk::default(), Chunk::default());
        assert!(space.refill(&mut a, 1024));
        assert!(space.refill(&mut b, 1024));
        space.retire(&mut a);
        space.retire(&mut b);
        assert_eq!((space.occupied(), space.used()), (1024, 0));
        // SAFETY: no chunk is out.
        unsafe {
            space.verify(&shapes).unwrap();
            space.each_object(&shapes, &mut |_, _| panic!("there are no objects"));
        }
    }

    #[test]
    fn no_more_than_the_extent_is_given_out() {
        let (_reservation, mut space) = space();
        let mut chunk = Chunk::default();
        assert!(!space.refill(&mut chunk, (64 << 10) + 8));
        assert!(space.refill(&mut chunk, 64 << 10));
        assert_eq!(chunk.take((64 << 10) + 8), None);
        assert!(chunk.take(64 << 10).is_some());
    }
}
