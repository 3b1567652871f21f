//! Lists over raw references; and `long-list`.

use super::{RawHeap, Ref};
use crate::long_list::{AFTER, checksum};

/// A cell: one reference, to the next; one word.
#[inline(always)]
pub(super) fn cell<H: RawHeap>(heap: &mut H, number: u64, next: Ref) -> Ref {
    heap.allocate([next], [number])
}

/// The sum of the numbers in a list.
///
/// # Safety
///
/// `list` is null or a live cell.
#[inline(always)]
pub(super) unsafe fn sum<H: RawHeap>(heap: &H, mut list: Ref) -> u64 {
    let mut sum = 0u64;
    while !list.is_null() {
        // SAFETY: the list is live, and a cell has one reference and one word.
        unsafe {
            sum = sum.wrapping_add(*heap.word(list, 1, 0));
            list = heap.load(list, 0);
        }
    }
    sum
}

/// `long-list`.
pub(super) fn run<H: RawHeap>(heap: &mut H, objects: u64) -> String {
    let mut total = counted(heap, objects);
    heap.collect();
    for k in 0..AFTER {
        let single = cell(heap, k, Ref::NULL);
        // SAFETY: the cell is new.
        total = total.wrapping_add(unsafe { sum(heap, single) });
    }
    checksum(objects, total)
}

/// Builds and sums the list; a function of its own, so that no stale copy of the head stays in the caller's frame.
#[inline(never)]
fn counted<H: RawHeap>(heap: &mut H, objects: u64) -> u64 {
    let list = (0..objects).fold(Ref::NULL, |list, k| cell(heap, k, list));
    // SAFETY: the list is live; nothing is allocated while it is summed.
    unsafe { sum(heap, list) }
}
