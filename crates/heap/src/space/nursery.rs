//! The nursery: where objects are born, given out to mutators in chunks.
//!
//! How large should it be? While almost nothing survives, as small as the cache; when much
//! survives, larger, since what is still in use then may be dead by the time that it is full. So it
//! adapts: it doubles when more than a sixteenth of it survived, and halves when less than a
//! 256th did, twice in a row. A size set by the user stays as it is.
//!
//! Invariant: everything from the start to `cursor` is filled with objects, free headers, and the
//! chunks that mutators hold.

use super::{BLOCK_BYTES, Extent};
use crate::header::Header;
use crate::object;

/// The smallest that it adapts to: about the size of a core's own cache.
const LEAST: usize = 1 << 20;
/// What it begins with.
const FIRST: usize = 4 << 20;

/// See the [module text](self).
#[derive(Debug)]
pub struct Nursery {
    /// The most that it may ever take.
    extent: Extent,
    /// What it takes now.
    size: usize,
    /// Everything below has been given out.
    cursor: usize,
    /// Bytes given back unused by mutators since it was emptied.
    unused: usize,
    /// The highest that the cursor has been: memory that has been touched.
    touched: usize,
    adapts: bool,
    /// How often in a row almost nothing has survived.
    empty_in_a_row: u32,
}

impl Nursery {
    /// The most that a nursery takes of a heap of `max_bytes`, if the user set it to `wanted` (zero:
    /// nothing set).
    pub fn most(max_bytes: usize, wanted: usize) -> usize {
        let most = match wanted {
            0 => max_bytes / 3,
            wanted => wanted.min(max_bytes / 8),
        };
        most.max(BLOCK_BYTES) / BLOCK_BYTES * BLOCK_BYTES
    }

    /// A nursery in `extent`; `wanted` as for [`Nursery::most`].
    pub fn new(extent: Extent, wanted: usize) -> Nursery {
        let adapts = wanted == 0;
        let size = if adapts {
            extent.bytes.min(FIRST)
        } else {
            extent.bytes
        };
        Nursery {
            extent,
            size,
            cursor: extent.start,
            unused: 0,
            touched: extent.start,
            adapts,
            empty_in_a_row: 0,
        }
    }

    /// The addresses of young objects, whatever its size now.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// What it takes now.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of memory that have been touched and not given back.
    pub fn touched(&self) -> usize {
        self.touched - self.extent.start
    }

    /// Bytes of the objects in it (with what mutators hold and have not used).
    pub fn used(&self) -> usize {
        self.cursor - self.extent.start - self.unused
    }

    /// The part that has been given out.
    pub fn filled(&self) -> Extent {
        Extent {
            start: self.extent.start,
            bytes: self.cursor - self.extent.start,
        }
    }

    /// A chunk for objects of up to `bytes`, cleared.
    pub fn chunk(&mut self, bytes: usize) -> Option<Extent> {
        let start = self.cursor;
        let length = BLOCK_BYTES.min(self.extent.start + self.size - start);
        if length < bytes {
            return None;
        }
        self.cursor += length;
        self.touched = self.touched.max(self.cursor);
        // A chunk at a time, so that what was cleared is still in the cache when it is used.
        // SAFETY: this part of the nursery has not been given out since it was emptied.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, length) };
        Some(Extent {
            start,
            bytes: length,
        })
    }

    /// Takes the unused rest of a chunk back.
    ///
    /// # Safety
    /// `start..end` is the rest of a chunk that nobody uses any more.
    pub unsafe fn give_back(&mut self, start: usize, end: usize) {
        if start < end {
            // SAFETY: promised by the caller.
            unsafe { object::set_header(start, Header::free((end - start) as u32)) };
            self.unused += end - start;
        }
    }

    /// Empties it, after `survived` bytes have been copied elsewhere, and adapts its size to at
    /// most `room` bytes.
    pub fn empty(&mut self, survived: usize, room: usize) {
        let filled = self.filled();
        if cfg!(debug_assertions) {
            // SAFETY: nothing in the nursery is used any more.
            unsafe { std::ptr::write_bytes(filled.start as *mut u8, 0xDB, filled.bytes) };
        }
        self.cursor = self.extent.start;
        self.unused = 0;
        if self.adapts {
            self.adapt(survived, filled.bytes);
        }
        let room = (room / BLOCK_BYTES * BLOCK_BYTES).max(BLOCK_BYTES);
        self.size = self.size.min(room);
    }

    fn adapt(&mut self, survived: usize, filled: usize) {
        // A collection that was asked for tells nothing about how long objects live.
        if filled < self.size / 2 {
            return;
        }
        if survived > filled / 16 {
            self.empty_in_a_row = 0;
            self.size = (self.size * 2).min(self.extent.bytes);
        } else if survived < filled / 256 {
            self.empty_in_a_row += 1;
            if self.empty_in_a_row >= 2 {
                self.empty_in_a_row = 0;
                self.size = (self.size / 2).max(LEAST).min(self.extent.bytes);
            }
        } else {
            self.empty_in_a_row = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Reservation;

    fn nursery(reservation: &Reservation, wanted: usize) -> Nursery {
        let extent = Extent {
            start: reservation.start(),
            bytes: 32 << 20,
        };
        Nursery::new(extent, wanted)
    }

    fn fill(nursery: &mut Nursery) -> usize {
        while nursery.chunk(16).is_some() {}
        nursery.used()
    }

    #[test]
    fn it_grows_while_much_survives_and_shrinks_while_nothing_does() {
        let reservation = Reservation::new(32 << 20, false).unwrap();
        let mut nursery = nursery(&reservation, 0);
        let first = nursery.size();
        for _ in 0..10 {
            let filled = fill(&mut nursery);
            assert_eq!(filled, nursery.size());
            nursery.empty(filled / 2, usize::MAX);
        }
        assert_eq!(nursery.size(), 32 << 20);
        for _ in 0..40 {
            fill(&mut nursery);
            nursery.empty(0, usize::MAX);
        }
        assert!(nursery.size() < first);
        assert_eq!(nursery.size(), LEAST);
    }

    #[test]
    fn it_keeps_to_the_room_there_is_and_to_what_the_user_said() {
        let reservation = Reservation::new(32 << 20, false).unwrap();
        let mut adaptive = nursery(&reservation, 0);
        fill(&mut adaptive);
        adaptive.empty(1 << 20, 100_000);
        assert_eq!(adaptive.size(), 3 * BLOCK_BYTES);
        let mut fixed = nursery(&reservation, 32 << 20);
        let filled = fill(&mut fixed);
        fixed.empty(0, usize::MAX);
        fill(&mut fixed);
        fixed.empty(0, usize::MAX);
        assert_eq!(fixed.size(), filled);
    }
}
