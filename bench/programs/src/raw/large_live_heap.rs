//! `large-live-heap` over raw references.

use super::lists::{cell, sum};
use super::{RawHeap, Ref};
use crate::clock;
use crate::large_live_heap::*;
use crate::latency::Latencies;
use crate::report::Report;

const VALUE: usize = 0;
const NEXT: usize = 1;
const ENTRY_REFS: usize = 2;
const KEY: usize = 0;

pub(super) fn run<H: RawHeap>(heap: &mut H) -> Report {
    let table = heap.reference_array(BUCKETS);
    let table = heap.root(table);
    for n in 0..ENTRIES {
        insert(heap, &table, n);
    }
    let setup = clock::process_cpu();

    let mut latencies = Latencies::default();
    let mut operations = Operations::default();
    let mut accumulated = 0u64;
    for batch in 0..BATCHES {
        latencies.batch(|| {
            for op in batch * BATCH..(batch + 1) * BATCH {
                let seen = operate(heap, &table, operations.draw(), op);
                accumulated = accumulated.wrapping_add(seen);
            }
        });
    }

    let table = heap.unroot(table);
    let mut report = Report::new(&observe(heap, table).checksum(accumulated));
    report.number("setup_cpu_ms", setup.as_secs_f64() * 1e3);
    latencies.report(&mut report);
    report
}

fn insert<H: RawHeap>(heap: &mut H, table: &H::Root, n: u64) {
    let key = key(n);
    let leaf = heap.allocate([], [n]);
    // SAFETY: the table is rooted and the bucket is one of its slots.
    let head = unsafe { heap.load(heap.rooted(table), bucket(key)) };
    let entry = heap.allocate([leaf, head], [key]);
    // SAFETY: as above; the entry is new.
    unsafe { heap.store(heap.rooted(table), bucket(key), entry) };
}

/// Does one operation and returns what it adds to the accumulated sum.
///
/// Entries come from `find`: they are live and have two references, the first to a leaf, which has one word. Only an
/// allocation may move them, and what is used after one is rooted.
#[inline(always)]
fn operate<H: RawHeap>(heap: &mut H, table: &H::Root, operation: Operation, op: u64) -> u64 {
    match operation {
        // SAFETY: nothing is allocated.
        Operation::Update(n) => unsafe {
            let leaf = heap.load(find(heap, table, n), VALUE);
            let number = heap.word(leaf, 0, 0);
            *number = (*number).wrapping_add(op);
            *number
        },
        // SAFETY: nothing is allocated.
        Operation::Swap(a, b) => unsafe {
            let (a, b) = (find(heap, table, a), find(heap, table, b));
            let (value_a, value_b) = (heap.load(a, VALUE), heap.load(b, VALUE));
            heap.store(a, VALUE, value_b);
            heap.store(b, VALUE, value_a);
            0
        },
        // SAFETY: the entry is rooted while the leaf is allocated.
        Operation::Replace(n) => unsafe {
            let entry = find(heap, table, n);
            let entry = heap.root(entry);
            let leaf = heap.allocate([], [op]);
            let entry = heap.unroot(entry);
            heap.store(entry, VALUE, leaf);
            0
        },
        Operation::List(start) => {
            let begin = heap.begin_temporary();
            let list =
                (0..LIST_LENGTH).fold(Ref::NULL, |list, k| cell(heap, start.wrapping_add(k), list));
            // SAFETY: the list is live; nothing is allocated while it is summed.
            let sum = unsafe { sum(heap, list) };
            heap.end_temporary(begin);
            sum
        }
    }
}

/// The n-th entry.
///
/// # Safety
///
/// `table` is the root of the table, with all its entries.
#[inline(always)]
unsafe fn find<H: RawHeap>(heap: &H, table: &H::Root, n: u64) -> Ref {
    let key = key(n);
    // SAFETY: the bucket is a slot of the table; the chain is live, and the entry is in it.
    unsafe {
        let mut entry = heap.load(heap.rooted(table), bucket(key));
        while *heap.word(entry, ENTRY_REFS, KEY) != key {
            entry = heap.load(entry, NEXT);
        }
        entry
    }
}

fn observe<H: RawHeap>(heap: &H, table: Ref) -> Observed {
    let mut observed = Observed::default();
    for b in (0..BUCKETS).step_by(CHECKED_STRIDE) {
        // SAFETY: the table was rooted until now and nothing is allocated here; so are its entries and leaves.
        unsafe {
            let mut entry = heap.load(table, b);
            while !entry.is_null() {
                let leaf = heap.load(entry, VALUE);
                observed.entry(*heap.word(entry, ENTRY_REFS, KEY), *heap.word(leaf, 0, 0));
                entry = heap.load(entry, NEXT);
            }
        }
    }
    observed
}
