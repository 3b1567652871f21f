//! A list of many cells that dies all at once: does dying in depth cost stack?

use super::WorkloadError;
use crate::collector::Collector;
use crate::heap::Heap;
use crate::shape::ShapeSpec;

const NUMBER: usize = 0;
const NEXT: usize = 2;
const AFTERWARDS: u64 = 1_000_000;

/// Runs it with a list of `cells`, and gives the checksum.
pub fn run<C: Collector>(heap: &Heap<C>, cells: u64) -> Result<String, WorkloadError> {
    let cell = heap.define(ShapeSpec::fixed("Cell").word("number").reference("next"))?;
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let head = mutator.stack().push(Default::default());
    for k in 0..cells {
        let new = mutator.allocate(&cell)?;
        let old = mutator.stack().get(head);
        // SAFETY: both were read or allocated since the last safepoint.
        unsafe {
            mutator.write_word(new, NUMBER, k);
            mutator.write(new, NEXT, old);
        }
        mutator.stack().set(head, new);
    }
    let mut sum = 0u64;
    let mut at = mutator.stack().get(head);
    while !at.is_null() {
        // SAFETY: nothing is allocated while the list is walked.
        unsafe {
            sum = sum.wrapping_add(mutator.read_word(at, NUMBER));
            at = mutator.read(at, NEXT);
        }
    }
    mutator.stack().pop();
    mutator.collect();
    for k in 0..AFTERWARDS {
        let new = mutator.allocate(&cell)?;
        // SAFETY: allocated just now.
        unsafe {
            mutator.write_word(new, NUMBER, k);
            sum = sum.wrapping_add(mutator.read_word(new, NUMBER));
        }
    }
    Ok(format!("long-list {cells} sum={sum}"))
}
