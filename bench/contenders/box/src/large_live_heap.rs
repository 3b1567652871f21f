//! `large-live-heap` with `Box`.

use crate::long_list::List;
use bench_programs::large_live_heap::*;
use bench_programs::latency::Latencies;
use bench_programs::{clock, report::Report};

struct Leaf {
    number: u64,
}

struct Entry {
    key: u64,
    value: Box<Leaf>,
    next: Option<Box<Entry>>,
}

struct Table(Box<[Option<Box<Entry>>]>);

impl Table {
    fn new() -> Self {
        Self((0..BUCKETS).map(|_| None).collect())
    }

    fn insert(&mut self, n: u64) {
        let key = key(n);
        let head = &mut self.0[bucket(key)];
        let value = Box::new(Leaf { number: n });
        let next = head.take();
        *head = Some(Box::new(Entry { key, value, next }));
    }

    #[inline(always)]
    fn find(&mut self, n: u64) -> &mut Entry {
        let key = key(n);
        let mut entry = &mut self.0[bucket(key)];
        loop {
            let found = entry.as_deref_mut().expect("every key is in the table");
            if found.key == key {
                return found;
            }
            entry = &mut found.next;
        }
    }

    #[inline(always)]
    fn swap(&mut self, a: u64, b: u64) {
        let a = &raw mut self.find(a).value;
        let b = &raw mut self.find(b).value;
        // SAFETY: both point into entries of the table, which neither moved nor freed anything in between; `swap`
        // allows them to be the same.
        unsafe { std::ptr::swap(a, b) };
    }

    #[inline(always)]
    fn operate(&mut self, operation: Operation, op: u64) -> u64 {
        match operation {
            Operation::Update(n) => {
                let leaf = &mut self.find(n).value;
                leaf.number = leaf.number.wrapping_add(op);
                leaf.number
            }
            Operation::Swap(a, b) => {
                self.swap(a, b);
                0
            }
            #[expect(
                clippy::replace_box,
                reason = "a new leaf is what the program asks for"
            )]
            Operation::Replace(n) => {
                self.find(n).value = Box::new(Leaf { number: op });
                0
            }
            Operation::List(start) => {
                let mut list = List::default();
                (0..LIST_LENGTH).for_each(|k| list.push(start.wrapping_add(k)));
                list.sum()
            }
        }
    }

    fn observe(&self) -> Observed {
        let mut observed = Observed::default();
        for head in self.0.iter().step_by(CHECKED_STRIDE) {
            let mut entry = head;
            while let Some(e) = entry {
                observed.entry(e.key, e.value.number);
                entry = &e.next;
            }
        }
        observed
    }
}

pub(crate) fn run() -> Report {
    let mut table = Table::new();
    (0..ENTRIES).for_each(|n| table.insert(n));
    let setup = clock::process_cpu();

    let mut latencies = Latencies::default();
    let mut operations = Operations::default();
    let mut accumulated = 0u64;
    for batch in 0..BATCHES {
        latencies.batch(|| {
            for op in batch * BATCH..(batch + 1) * BATCH {
                accumulated = accumulated.wrapping_add(table.operate(operations.draw(), op));
            }
        });
    }

    let mut report = Report::new(&table.observe().checksum(accumulated));
    report.number("setup_cpu_ms", setup.as_secs_f64() * 1e3);
    latencies.report(&mut report);
    std::mem::forget(table);
    report
}
