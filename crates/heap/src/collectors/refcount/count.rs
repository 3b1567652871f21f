//! Counts and colours, as they stand in an object's header.
//!
//! The mark byte of the header is the count. A count of 255 and more sticks at 255 there, and what
//! exceeds 255 stands in a table beside the heap; few objects have so many referrers, so the table
//! is small. Counts are exact either way.
//!
//! The two colour bits belong to trial deletion (see [`super::cycles`]). Outside of a cycle
//! collection an object is black, or purple: perhaps the root of a dead cycle.

use crate::header::{COLOUR_SHIFT, Header};
use crate::object;
use crate::reference::Ref;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The bits of the header that are the count.
const COUNT: u64 = 0xff;

/// The colours of Bacon and Rajan. Green (cannot be on a cycle) is not a colour here but a question
/// to the shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(super) enum Colour {
    /// In use, as far as is known.
    Black = 0,
    /// Being looked at: the counts of what it refers to are without its references.
    Gray = 1,
    /// Member of a dead cycle.
    White = 2,
    /// Has lost a reference, and lives on: possible root of a dead cycle.
    Purple = 3,
}

const COLOUR: u64 = 3 << COLOUR_SHIFT;

/// True when the object has that colour.
#[inline(always)]
pub(super) const fn is(word: Header, colour: Colour) -> bool {
    word.0 & COLOUR == (colour as u64) << COLOUR_SHIFT
}

/// The header in another colour.
#[inline(always)]
pub(super) const fn painted(word: Header, colour: Colour) -> Header {
    Header(word.0 & !COLOUR | (colour as u64) << COLOUR_SHIFT)
}

/// True when the count is not zero.
#[inline(always)]
pub(super) const fn is_counted(word: Header) -> bool {
    word.0 & COUNT != 0
}

/// The header with a count of one more; the count must not be 255.
#[inline(always)]
pub(super) const fn with_first(word: Header) -> Header {
    Header(word.0 | 1)
}

/// What exceeds 255, by object.
#[derive(Default, Debug)]
pub(super) struct Counts {
    rest: HashMap<Ref, u32, BuildHasherDefault<Scramble>>,
}

impl Counts {
    /// The header with one more; what does not fit into it is noted.
    #[inline(always)]
    pub(super) fn up(&mut self, reference: Ref, word: Header) -> Header {
        if word.0 & COUNT == COUNT {
            self.up_beyond(reference);
            return word;
        }
        Header(word.0 + 1)
    }

    /// The header with one less. The count must not be zero.
    #[inline(always)]
    pub(super) fn down(&mut self, reference: Ref, word: Header) -> Header {
        debug_assert!(is_counted(word), "count of {reference:?} would be negative");
        if word.0 & COUNT == COUNT && self.down_beyond(reference) {
            return word;
        }
        Header(word.0 - 1)
    }

    #[cold]
    #[inline(never)]
    fn up_beyond(&mut self, reference: Ref) {
        *self.rest.entry(reference).or_insert(0) += 1;
    }

    /// Takes one off what exceeds 255; false when nothing does.
    #[cold]
    #[inline(never)]
    fn down_beyond(&mut self, reference: Ref) -> bool {
        let Some(rest) = self.rest.get_mut(&reference) else {
            return false;
        };
        *rest -= 1;
        if *rest == 0 {
            self.rest.remove(&reference);
        }
        true
    }

    /// Adds one to the count of an object, in memory.
    ///
    /// # Safety
    /// `reference` is an object of the heap, and the world is stopped.
    #[inline(always)]
    pub(super) unsafe fn increment(&mut self, reference: Ref) {
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(reference.address());
            object::set_header(reference.address(), self.up(reference, word));
        }
    }

    /// The whole count of an object whose header is `word`.
    pub(super) fn total(&self, reference: Ref, word: Header) -> u64 {
        match word.0 & COUNT {
            COUNT => COUNT + u64::from(self.rest.get(&reference).copied().unwrap_or(0)),
            count => count,
        }
    }

    /// Forgets what exceeds 255, of all objects.
    pub(super) fn clear(&mut self) {
        self.rest.clear();
    }

    /// Objects with a count above 255.
    pub(super) fn beyond(&self) -> impl Iterator<Item = Ref> + '_ {
        self.rest.keys().copied()
    }
}

/// A hash for references: they are distinct already, and need only be spread.
#[derive(Default)]
pub(super) struct Scramble(u64);

impl Hasher for Scramble {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0 ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_beyond_the_byte_are_exact() {
        let mut counts = Counts::default();
        let object = Ref::from_address(1 << 30);
        let mut word = painted(Header::new(7, 42), Colour::Purple);
        for n in 0..1000 {
            assert_eq!(counts.total(object, word), n);
            word = counts.up(object, word);
        }
        assert_eq!(counts.beyond().collect::<Vec<_>>(), [object]);
        for n in (0..1000).rev() {
            word = counts.down(object, word);
            assert_eq!(counts.total(object, word), n);
        }
        assert_eq!(counts.beyond().count(), 0);
        assert_eq!(word, painted(Header::new(7, 42), Colour::Purple));
    }

    #[test]
    fn colours_do_not_touch_the_rest() {
        let word = Header(u64::MAX);
        for colour in [Colour::Black, Colour::Gray, Colour::White, Colour::Purple] {
            assert!(is(painted(word, colour), colour));
            assert_eq!(painted(painted(word, colour), Colour::Purple), word);
        }
    }
}
