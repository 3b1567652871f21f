//! Spaces: who gives out which part of the heap's address range.

pub mod cells;
pub mod cursor;
pub mod marked;
pub mod pool;
pub mod size_class;

use crate::header::Header;
use crate::object;
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
