//! Size classes: the sizes of cell that small objects are rounded up to.
//!
//! Steps of 8 bytes up to 64 and four steps per doubling after that, so that rounding wastes
//! at most a fifth and usually much less.

use super::BLOCK_BYTES;

/// Bytes of the smallest cell: a free cell holds a header and a link.
pub const SMALLEST: usize = 16;
/// Bytes of the largest cell; larger objects get blocks of their own.
pub const LARGEST: usize = 8192;
/// How many classes there are.
pub const COUNT: usize = 35;

/// A size class, or [`SizeClass::LARGE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(transparent)]
pub struct SizeClass(pub u8);

const CELLS: [u32; COUNT] = cells();
const BY_WORDS: [u8; LARGEST / 8 + 1] = by_words();

const fn cells() -> [u32; COUNT] {
    let mut cells = [0; COUNT];
    let mut size = SMALLEST as u32;
    let mut i = 0;
    while i < COUNT {
        cells[i] = size;
        let step = if size < 64 {
            8
        } else {
            1 << (31 - size.leading_zeros() - 2)
        };
        size += step;
        i += 1;
    }
    cells
}

const fn by_words() -> [u8; LARGEST / 8 + 1] {
    let mut table = [0; LARGEST / 8 + 1];
    let mut class = 0;
    let mut words = 0;
    while words < table.len() {
        if words as u32 * 8 > CELLS[class] {
            class += 1;
        }
        table[words] = class as u8;
        words += 1;
    }
    table
}

impl SizeClass {
    /// Not small: an object of whole blocks, or one whose size is not fixed.
    pub const LARGE: SizeClass = SizeClass(COUNT as u8);

    /// The class of an object of `bytes` with its header.
    #[inline(always)]
    pub const fn of(bytes: usize) -> SizeClass {
        if bytes > LARGEST {
            return SizeClass::LARGE;
        }
        SizeClass(BY_WORDS[bytes.div_ceil(8)])
    }

    /// Bytes of a cell.
    #[inline(always)]
    pub const fn cell(self) -> usize {
        CELLS[self.0 as usize] as usize
    }

    /// True for [`SizeClass::LARGE`].
    #[inline(always)]
    pub const fn is_large(self) -> bool {
        self.0 >= COUNT as u8
    }

    /// Cells that fit into a block.
    pub const fn cells_per_block(self) -> usize {
        BLOCK_BYTES / self.cell()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_cell_that_holds_it() {
        assert_eq!(CELLS[COUNT - 1] as usize, LARGEST);
        for bytes in 1..=LARGEST {
            let class = SizeClass::of(bytes);
            assert!(class.cell() >= bytes);
            assert!(class.0 == 0 || SizeClass(class.0 - 1).cell() < bytes);
            assert!(class.cell().is_multiple_of(8));
        }
        assert!(SizeClass::of(LARGEST + 1).is_large());
    }
}
