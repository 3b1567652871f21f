//! Spaces: who gives out which part of the heap's address range.

pub mod bitmap;
pub mod bump;
pub mod cells;
pub mod cursor;
pub mod large;
pub mod marked;
pub mod nursery;
pub mod pool;
pub mod size_class;

use crate::header::Header;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;

/// Bytes of a block, the unit in which the range is divided.
pub const BLOCK_BYTES: usize = 32 << 10;

/// A part of the address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub start: usize,
    /// Its length.
    pub bytes: usize,
}

impl Extent {
    /// One past the last address.
    pub const fn end(&self) -> usize {
        self.start + self.bytes
    }

    /// True when `address` lies in it.
    #[inline(always)]
    pub const fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.bytes
    }
}

/// A part of the address range in the terms of references: whether a reference leads into it is one
/// comparison, null and immediates included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefRange {
    start: u32,
    /// In units of 8 bytes.
    length: u32,
}

impl RefRange {
    /// The references to `start..end`.
    pub fn new(start: usize, end: usize) -> RefRange {
        RefRange {
            start: (start >> 2) as u32,
            length: ((end - start) >> 3) as u32,
        }
    }

    /// True for a reference to an object in the range.
    #[inline(always)]
    pub const fn contains(&self, reference: Ref) -> bool {
        // References are even and immediates odd: the rotation makes an odd difference huge.
        reference.to_bits().wrapping_sub(self.start).rotate_right(1) < self.length
    }
}

/// Calls `visit` with every object of a bump-allocated range.
///
/// # Safety
/// The range is filled with objects and free headers, and no mutator runs.
pub unsafe fn walk(
    shapes: &ShapeTable,
    start: usize,
    end: usize,
    visit: &mut dyn FnMut(usize, Header),
) {
    let mut at = start;
    while at < end {
        // SAFETY: promised by the caller.
        unsafe {
            let word = object::header(at);
            if !word.is_free() {
                visit(at, word);
            }
            at += object::bytes(shapes, word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_references_and_nothing_else() {
        let range = RefRange::new(1 << 30, (1 << 30) + 64);
        for (address, inside) in [
            ((1 << 30) - 8, false),
            (1 << 30, true),
            ((1 << 30) + 56, true),
            ((1 << 30) + 64, false),
        ] {
            let reference = Ref::from_address(address);
            assert_eq!(range.contains(reference), inside);
            assert!(!range.contains(Ref::from_bits(reference.to_bits() | 1)));
        }
        assert!(!range.contains(Ref::NULL));
        let empty = RefRange::new(1 << 30, 1 << 30);
        assert!(!empty.contains(Ref::from_address(1 << 30)));
    }
}
