//! `large-live-heap` with `Gc`.
//!
//! The table is one object. A store into it would by default make the collector scan all of it again (a backward
//! barrier); the forward barrier marks the new entry instead, and is the better one for a large array.

use crate::long_list::{cell, sum};
use crate::pauses::Pauses;
use bench_programs::large_live_heap::*;
use bench_programs::latency::Latencies;
use bench_programs::{clock, report::Report};
use gc_arena::barrier::{Write, field};
use gc_arena::lock::Lock;
use gc_arena::{Arena, Collect, Gc, Mutation, Rootable};
use std::cell::Cell;

#[derive(Collect)]
#[collect(require_static)]
struct Leaf {
    number: Cell<u64>,
}

#[derive(Collect)]
#[collect(no_drop)]
struct Entry<'gc> {
    key: u64,
    value: Lock<Gc<'gc, Leaf>>,
    next: Link<'gc>,
}

type Link<'gc> = Option<Gc<'gc, Entry<'gc>>>;
type Table<'gc> = Gc<'gc, Box<[Lock<Link<'gc>>]>>;
type Heap = Arena<Rootable![Table<'_>]>;

fn leaf<'gc>(mc: &Mutation<'gc>, number: u64) -> Gc<'gc, Leaf> {
    let number = Cell::new(number);
    Gc::new(mc, Leaf { number })
}

fn insert<'gc>(mc: &Mutation<'gc>, table: Table<'gc>, n: u64) {
    let key = key(n);
    let value = Lock::new(leaf(mc, n));
    let head = &Gc::as_ref(table)[bucket(key)];
    let next = head.get();
    let entry = Gc::new(mc, Entry { key, value, next });
    mc.forward_barrier(Some(Gc::erase(table)), Gc::erase(entry));
    // SAFETY: the forward barrier was triggered with the table and the entry that is stored into it.
    let head = unsafe { Write::assume(head) };
    head.unlock().set(Some(entry));
}

#[inline(always)]
fn find<'gc>(table: Table<'gc>, n: u64) -> Gc<'gc, Entry<'gc>> {
    let key = key(n);
    let mut link = table[bucket(key)].get();
    loop {
        let entry = link.expect("every key is in the table");
        if entry.key == key {
            return entry;
        }
        link = entry.next;
    }
}

#[inline(always)]
fn set_value<'gc>(mc: &Mutation<'gc>, entry: Gc<'gc, Entry<'gc>>, value: Gc<'gc, Leaf>) {
    field!(Gc::write(mc, entry), Entry, value)
        .unlock()
        .set(value);
}

#[inline(always)]
fn operate<'gc>(mc: &Mutation<'gc>, table: Table<'gc>, operation: Operation, op: u64) -> u64 {
    match operation {
        Operation::Update(n) => {
            let number = &find(table, n).value.get().as_ref().number;
            number.set(number.get().wrapping_add(op));
            number.get()
        }
        Operation::Swap(a, b) => {
            let (a, b) = (find(table, a), find(table, b));
            let (value_a, value_b) = (a.value.get(), b.value.get());
            set_value(mc, a, value_b);
            set_value(mc, b, value_a);
            0
        }
        Operation::Replace(n) => {
            let entry = find(table, n);
            set_value(mc, entry, leaf(mc, op));
            0
        }
        Operation::List(start) => {
            let list = (0..LIST_LENGTH).fold(None, |list, k| cell(mc, start.wrapping_add(k), list));
            sum(list)
        }
    }
}

fn observe(table: Table<'_>) -> Observed {
    let mut observed = Observed::default();
    for head in table.iter().step_by(CHECKED_STRIDE) {
        let mut link = head.get();
        while let Some(entry) = link {
            observed.entry(entry.key, entry.value.get().number.get());
            link = entry.next;
        }
    }
    observed
}

pub(crate) fn run(pauses: &mut Pauses) -> Report {
    let mut heap = Heap::new(|mc| Gc::new(mc, (0..BUCKETS).map(|_| Lock::new(None)).collect()));
    pauses.pace(&heap);
    for first in (0..ENTRIES).step_by(BATCH as usize) {
        heap.mutate(|mc, &table| {
            (first..ENTRIES.min(first + BATCH)).for_each(|n| insert(mc, table, n));
        });
        pauses.collect_debt(&mut heap);
    }
    let setup = clock::process_cpu();

    let mut latencies = Latencies::default();
    let mut operations = Operations::default();
    let mut accumulated = 0u64;
    for batch in 0..BATCHES {
        latencies.batch(|| {
            heap.mutate(|mc, &table| {
                for op in batch * BATCH..(batch + 1) * BATCH {
                    let seen = operate(mc, table, operations.draw(), op);
                    accumulated = accumulated.wrapping_add(seen);
                }
            });
            pauses.collect_debt(&mut heap);
        });
    }

    let observed = heap.mutate(|_, &table| observe(table));
    let mut report = Report::new(&observed.checksum(accumulated));
    report.number("setup_cpu_ms", setup.as_secs_f64() * 1e3);
    latencies.report(&mut report);
    std::mem::forget(heap);
    report
}
