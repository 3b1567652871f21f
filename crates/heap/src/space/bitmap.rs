//! The mark bitmap of a compacting collector, which tells where each object will be.
//!
//! After Kermany and Petrank, "The Compressor: concurrent, incremental, and parallel compaction"
//! (PLDI 2006): there is one bit per word of the heap, and marking an object sets the bits of *all*
//! its words. When marking is done, the new address of a word is a matter of counting: the number
//! of bits set before it is the number of live words that will stand below it. The counts up to each
//! *line* of 64 words are kept in a table, and the rest is one population count. So no forwarding
//! reference is stored anywhere, and headers stay as they are.
//!
//! A prefix of the heap may be declared *settled*: its objects stay where they are, whatever gaps
//! there are between them.
//!
//! Invariant: between collections all bits are zero.

use super::Extent;
use crate::reference::Ref;

const WORD_BYTES: usize = 8;
/// Words of a line: the bits of one word of the bitmap.
const LINE_WORDS: usize = 64;
/// Bytes of a line.
pub const LINE_BYTES: usize = LINE_WORDS * WORD_BYTES;

/// See the [module text](self).
#[derive(Default, Debug)]
pub struct Bitmap {
    base: usize,
    bits: Vec<u64>,
    /// For each line from the first unsettled one on: the reference to where its first live word
    /// goes, as bits.
    places: Vec<u32>,
}

impl Bitmap {
    /// A bitmap for `extent`, all zero.
    pub fn new(extent: Extent) -> Bitmap {
        let lines = extent.bytes.div_ceil(LINE_BYTES);
        Bitmap {
            base: extent.start,
            // Zeroed memory costs nothing until it is touched.
            bits: vec![0; lines],
            places: vec![0; lines],
        }
    }

    /// Line of an address, and the number of its word in the line.
    #[inline(always)]
    fn locate(&self, address: usize) -> (usize, u32) {
        let word = (address - self.base) / WORD_BYTES;
        (word / LINE_WORDS, (word % LINE_WORDS) as u32)
    }

    /// The address of word `word` of line `line`.
    #[inline(always)]
    fn address(&self, line: usize, word: u32) -> usize {
        self.base + line * LINE_BYTES + word as usize * WORD_BYTES
    }

    #[inline(always)]
    fn line(&self, line: usize) -> u64 {
        debug_assert!(line < self.bits.len());
        // SAFETY: the callers promise that the address lies in the extent, which has this line.
        unsafe { *self.bits.get_unchecked(line) }
    }

    #[inline(always)]
    fn line_mut(&mut self, line: usize) -> &mut u64 {
        debug_assert!(line < self.bits.len());
        // SAFETY: as above.
        unsafe { self.bits.get_unchecked_mut(line) }
    }

    /// Where the bit of `address` stands, to be fetched ahead of its use.
    #[inline(always)]
    pub fn bit_address(&self, address: usize) -> usize {
        let (line, _) = self.locate(address);
        self.bits.as_ptr().wrapping_add(line) as usize
    }

    /// True when the word at `address` is live.
    ///
    /// # Safety
    /// `address` lies in the extent.
    #[inline(always)]
    pub unsafe fn is_marked(&self, address: usize) -> bool {
        let (line, word) = self.locate(address);
        self.line(line) >> word & 1 == 1
    }

    /// Marks all words of an object.
    ///
    /// # Safety
    /// `address..address + bytes` lies in the extent.
    #[inline(always)]
    pub unsafe fn mark(&mut self, address: usize, bytes: usize) {
        let (line, word) = self.locate(address);
        let words = bytes / WORD_BYTES;
        let end = word as usize + words;
        if end <= LINE_WORDS {
            *self.line_mut(line) |= (u64::MAX >> (LINE_WORDS - words)) << word;
        } else {
            self.mark_across(line, word, end);
        }
    }

    /// Marks from word `word` of `line` on, to the `end`th word counted from the start of `line`.
    fn mark_across(&mut self, line: usize, word: u32, end: usize) {
        *self.line_mut(line) |= u64::MAX << word;
        let last = line + end / LINE_WORDS;
        for between in line + 1..last {
            *self.line_mut(between) = u64::MAX;
        }
        let rest = end % LINE_WORDS;
        if rest > 0 {
            *self.line_mut(last) |= u64::MAX >> (LINE_WORDS - rest);
        }
    }

    /// The address of the first live word in `from..end`, or `end`.
    ///
    /// # Safety
    /// The range lies in the extent.
    #[inline(always)]
    pub unsafe fn next_marked(&self, from: usize, end: usize) -> usize {
        if from >= end {
            return end;
        }
        let (mut line, word) = self.locate(from);
        let last = self.locate(end - WORD_BYTES).0;
        let mut bits = self.line(line) & u64::MAX << word;
        while bits == 0 {
            if line == last {
                return end;
            }
            line += 1;
            bits = self.line(line);
        }
        self.address(line, bits.trailing_zeros())
    }

    /// The end of the longest prefix of `start..top` of whole lines of which at most one part in
    /// `waste` is dead; with `None`, nothing of it is.
    pub fn dense_prefix(&self, top: usize, waste: Option<u64>) -> usize {
        let lines = (top - self.base) / LINE_BYTES;
        let (mut end, mut live) = (0, 0u64);
        for line in 0..lines {
            let count = u64::from(self.bits[line].count_ones());
            live += count;
            let all = (line as u64 + 1) * LINE_WORDS as u64;
            let dead = all - live;
            match waste {
                None if dead > 0 => break,
                None => end = line + 1,
                // A line that is mostly dead is not worth settling, however dense the rest is.
                Some(part) if dead * part <= all && count >= LINE_WORDS as u64 / 2 => {
                    end = line + 1
                }
                Some(_) => {}
            }
        }
        self.address(end, 0)
    }

    /// Computes the new places of everything up to `top`, when what is below `settled` (the start
    /// of a line) stays. Gives the end of what is live.
    pub fn plan(&mut self, settled: usize, top: usize) -> usize {
        debug_assert_eq!((settled - self.base) % LINE_BYTES, 0);
        let first = (settled - self.base) / LINE_BYTES;
        let lines = (top - self.base).div_ceil(LINE_BYTES);
        let mut place = settled;
        for line in first..lines {
            self.places[line] = (place >> 2) as u32;
            place += self.bits[line].count_ones() as usize * WORD_BYTES;
        }
        place
    }

    /// The new place of an object that is not settled.
    ///
    /// # Safety
    /// The object is live, lies in the extent above what is settled, and [`Bitmap::plan`] has been
    /// called since marking.
    #[inline(always)]
    pub unsafe fn new_place(&self, object: Ref) -> Ref {
        let (line, word) = self.locate(object.address());
        let below = self.line(line) & !(u64::MAX << word);
        // SAFETY: there are as many places as lines.
        let place = unsafe { *self.places.get_unchecked(line) };
        // A word is two units of references.
        Ref::from_bits(place + below.count_ones() * 2)
    }

    /// Clears all bits up to `top`.
    pub fn clear(&mut self, top: usize) {
        let lines = (top - self.base).div_ceil(LINE_BYTES);
        self.bits[..lines].fill(0);
    }

    /// The invariant, checked: nothing below `top` is marked.
    pub fn is_clear(&self, top: usize) -> bool {
        let lines = (top - self.base).div_ceil(LINE_BYTES);
        self.bits[..lines].iter().all(|&bits| bits == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: usize = 1 << 30;

    /// Objects as (dead words before it, words of it), laid out from the base on.
    fn layout(objects: &[(usize, usize)]) -> (Bitmap, Vec<(usize, usize)>, usize) {
        let mut bitmap = Bitmap::new(Extent {
            start: BASE,
            bytes: 1 << 20,
        });
        let mut at = BASE;
        let mut placed = Vec::new();
        for &(gap, words) in objects {
            at += gap * 8;
            // SAFETY: the objects of the tests fit into the extent.
            unsafe { bitmap.mark(at, words * 8) };
            placed.push((at, words * 8));
            at += words * 8;
        }
        (bitmap, placed, at)
    }

    proptest! {
        /// Against the definition: an object's new place is the settled end plus all live bytes
        /// between; the walk finds exactly the objects marked.
        #[test]
        fn places_are_sums(
            objects in prop::collection::vec((prop_oneof![Just(0usize), 0usize..200], 1usize..300), 1..100),
            waste in prop_oneof![Just(None), Just(Some(20)), Just(Some(2))],
        ) {
            let (mut bitmap, placed, top) = layout(&objects);
            let settled = bitmap.dense_prefix(top, waste);
            let end = bitmap.plan(settled, top);
            let mut expected = settled;
            let mut at = BASE;
            for &(address, bytes) in &placed {
                // SAFETY: all addresses are those of marked objects.
                unsafe {
                    prop_assert_eq!(bitmap.next_marked(at, top), address);
                    prop_assert!(bitmap.is_marked(address) && bitmap.is_marked(address + bytes - 8));
                    if address >= settled {
                        prop_assert_eq!(bitmap.new_place(Ref::from_address(address)).address(), expected);
                        expected += bytes;
                    } else {
                        expected = expected.max(address + bytes);
                    }
                }
                at = address + bytes;
            }
            // SAFETY: within the extent.
            prop_assert_eq!(unsafe { bitmap.next_marked(at, top) }, top);
            prop_assert_eq!(end, expected);
            let dead: usize = objects.iter().map(|o| o.0 * 8).sum();
            if waste.is_none() {
                prop_assert_eq!(end, top - dead);
            }
            bitmap.clear(top);
            prop_assert!(bitmap.is_clear(top));
        }

        /// The prefix keeps its promise.
        #[test]
        fn the_prefix_is_dense(
            objects in prop::collection::vec((prop_oneof![4 => Just(0usize), 1 => 0usize..20], 1usize..300), 1..100),
            part in 2u64..50,
        ) {
            let (bitmap, _, top) = layout(&objects);
            let settled = bitmap.dense_prefix(top, Some(part));
            let live = (BASE..settled).step_by(8)
                // SAFETY: within the extent.
                .filter(|&at| unsafe { bitmap.is_marked(at) })
                .count() as u64 * 8;
            let all = (settled - BASE) as u64;
            prop_assert!((all - live) * part <= all);
            prop_assert!(bitmap.dense_prefix(top, None) <= settled);
        }
    }
}
