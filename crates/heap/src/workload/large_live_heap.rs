//! A hash table of five million entries that lives through the program, and a mutator that touches
//! it at random.

use super::WorkloadError;
use crate::collector::Collector;
use crate::error::AllocError;
use crate::heap::Heap;
use crate::mutator::Mutator;
use crate::reference::Ref;
use crate::shape::{Shape, ShapeSpec};
use crate::stats::{Elapsed, Stats, Timer, process_cpu_time};
use std::time::Duration;

/// Operations in a batch.
const BATCH: u64 = 256;
/// There is a batch for so many objects of the table.
const OBJECTS_PER_BATCH: u64 = 250;

/// Objects of the table in the benchmark: half of them entries, half leaves.
pub const OBJECTS: u64 = 10_000_000;

/// How large the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Entries, each with a leaf.
    pub entries: u64,
    /// Logarithm of the number of buckets.
    pub bucket_bits: u32,
}

impl Size {
    /// A table of about so many objects: eight for a bucket, more or less, as in the benchmark.
    pub fn of(objects: u64) -> Size {
        Size {
            // `pick` multiplies 32 bits by this.
            entries: (objects / 2).clamp(1, u64::from(u32::MAX)),
            bucket_bits: (objects / 8).max(2).ilog2().min(28),
        }
    }
}

const KEY: usize = 0;
const VALUE: usize = 2;
const NEXT: usize = 3;
const NUMBER: usize = 0;
const CELL_NEXT: usize = 2;

/// What was seen.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The checksum.
    pub checksum: String,
    /// CPU time of the process until the table was built.
    pub setup_cpu: Duration,
    /// The longest batch, by CPU time of the thread and by the wall clock (each by itself).
    pub max: Elapsed,
    /// The 99.9th percentile, likewise.
    pub p999: Elapsed,
    /// The statistics after the last batch, without the full collection that follows it.
    pub stats: Stats,
    /// Bytes of the live objects at the end, headers included.
    pub live_bytes: usize,
    /// What the full collection marked, and the CPU time of it; none if the collector does not mark.
    pub marking: Option<(u64, Duration)>,
}

/// A bijection that scatters: the finaliser of SplitMix64.
pub(super) fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The table on a heap.
pub struct Table<'a, C: Collector> {
    mutator: &'a mut Mutator<C>,
    entry: Shape,
    leaf: Shape,
    cell: Shape,
    /// Stack index of the table.
    table: usize,
    size: Size,
    state: u64,
}

impl<'a, C: Collector> Table<'a, C> {
    /// Builds the table.
    pub fn build(
        heap: &Heap<C>,
        mutator: &'a mut Mutator<C>,
        size: Size,
    ) -> Result<Table<'a, C>, WorkloadError> {
        let entry = ShapeSpec::fixed("Entry")
            .word("key")
            .reference("value")
            .reference("next");
        let entry = heap.define(entry)?;
        let leaf = heap.define(ShapeSpec::fixed("Leaf").word("number"))?;
        let cell = heap.define(ShapeSpec::fixed("Cell").word("number").reference("next"))?;
        let buckets = heap.define(ShapeSpec::references("Entry[]"))?;
        let table = mutator.allocate_array(&buckets, 1 << size.bucket_bits)?;
        let table = mutator.stack().push(table);
        let state = 0x4C69_7665_6F61_6B21;
        let mut this = Table {
            mutator,
            entry,
            leaf,
            cell,
            table,
            size,
            state,
        };
        for n in 0..size.entries {
            this.insert(n)?;
        }
        Ok(this)
    }

    /// The mutator.
    pub fn mutator(&mut self) -> &mut Mutator<C> {
        self.mutator
    }

    fn bucket(&self, key: u64) -> usize {
        (key >> (64 - self.size.bucket_bits)) as usize
    }

    fn insert(&mut self, n: u64) -> Result<(), AllocError> {
        let leaf = self.mutator.allocate(&self.leaf)?;
        // SAFETY: here and below, every reference was read from a root or allocated since the last
        // safepoint, and the slots are those of the shapes.
        unsafe { self.mutator.write_word(leaf, NUMBER, n) };
        let root = self.mutator.stack().push(leaf);
        let entry = self.mutator.allocate(&self.entry)?;
        let leaf = self.mutator.stack().get(root);
        self.mutator.stack().truncate(root);
        let table = self.mutator.stack().get(self.table);
        let key = mix(n);
        let bucket = self.bucket(key);
        // SAFETY: as above.
        unsafe {
            self.mutator.write_word(entry, KEY, key);
            self.mutator.write(entry, VALUE, leaf);
            let head = self.mutator.read(table, bucket);
            self.mutator.write(entry, NEXT, head);
            self.mutator.write(table, bucket, entry);
        }
        Ok(())
    }

    #[inline]
    fn find(&mut self, n: u64) -> Ref {
        let key = mix(n);
        let table = self.mutator.stack().get(self.table);
        // SAFETY: as in `insert`; nothing is allocated here, and the key is in the table.
        unsafe {
            let mut entry = self.mutator.read(table, self.bucket(key));
            while self.mutator.read_word(entry, KEY) != key {
                entry = self.mutator.read(entry, NEXT);
            }
            entry
        }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    fn pick(&mut self) -> u64 {
        ((self.random() >> 32) * self.size.entries) >> 32
    }

    fn operation(&mut self, op: u64, acc: &mut u64) -> Result<(), AllocError> {
        match self.random() >> 62 {
            0 => {
                let n = self.pick();
                let entry = self.find(n);
                // SAFETY: as in `insert`, in all four.
                unsafe {
                    let leaf = self.mutator.read(entry, VALUE);
                    let number = self.mutator.read_word(leaf, NUMBER).wrapping_add(op);
                    self.mutator.write_word(leaf, NUMBER, number);
                    *acc = acc.wrapping_add(number);
                }
            }
            1 => {
                let n = self.pick();
                let a = self.find(n);
                let n = self.pick();
                let b = self.find(n);
                // SAFETY: as above.
                unsafe {
                    let (x, y) = (self.mutator.read(a, VALUE), self.mutator.read(b, VALUE));
                    self.mutator.write(a, VALUE, y);
                    self.mutator.write(b, VALUE, x);
                }
            }
            2 => {
                let n = self.pick();
                let entry = self.find(n);
                let root = self.mutator.stack().push(entry);
                let leaf = self.mutator.allocate(&self.leaf)?;
                let entry = self.mutator.stack().get(root);
                self.mutator.stack().truncate(root);
                // SAFETY: as above.
                unsafe {
                    self.mutator.write_word(leaf, NUMBER, op);
                    self.mutator.write(entry, VALUE, leaf);
                }
            }
            _ => {
                let s = self.random();
                let head = self.mutator.stack().push(Ref::NULL);
                for k in 0..16 {
                    let cell = self.mutator.allocate(&self.cell)?;
                    let next = self.mutator.stack().get(head);
                    // SAFETY: as above.
                    unsafe {
                        self.mutator.write_word(cell, NUMBER, s.wrapping_add(k));
                        self.mutator.write(cell, CELL_NEXT, next);
                    }
                    self.mutator.stack().set(head, cell);
                }
                let mut cell = self.mutator.stack().pop();
                while !cell.is_null() {
                    // SAFETY: as above.
                    unsafe {
                        *acc = acc.wrapping_add(self.mutator.read_word(cell, NUMBER));
                        cell = self.mutator.read(cell, CELL_NEXT);
                    }
                }
            }
        }
        Ok(())
    }

    fn hash(&mut self, acc: u64) -> u64 {
        const PRIME: u64 = 0x100_0000_01B3;
        let mut h = 0u64;
        let table = self.mutator.stack().get(self.table);
        for bucket in (0..1usize << self.size.bucket_bits).step_by(16) {
            // SAFETY: as above.
            unsafe {
                let mut entry = self.mutator.read(table, bucket);
                while !entry.is_null() {
                    h = (h ^ self.mutator.read_word(entry, KEY)).wrapping_mul(PRIME);
                    let leaf = self.mutator.read(entry, VALUE);
                    h = (h ^ self.mutator.read_word(leaf, NUMBER)).wrapping_mul(PRIME);
                    entry = self.mutator.read(entry, NEXT);
                }
            }
        }
        (h ^ acc).wrapping_mul(PRIME)
    }
}

/// Builds a table of `objects` (the benchmark's is [`OBJECTS`]), runs the operations, and collects at the end.
pub fn run<C: Collector>(heap: &Heap<C>, objects: u64) -> Result<Outcome, WorkloadError> {
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let batches = (objects / OBJECTS_PER_BATCH).max(1) as usize;
    let mut latencies = vec![Elapsed::default(); batches];
    let mut table = Table::build(heap, mutator, Size::of(objects))?;
    let setup_cpu = process_cpu_time();
    let mut acc = 0;
    let mut op = 0;
    for latency in &mut latencies {
        let timer = Timer::start();
        for _ in 0..BATCH {
            table.operation(op, &mut acc)?;
            op += 1;
        }
        *latency = timer.stop();
    }
    let checksum = format!("large-live-heap {:016x}", table.hash(acc));
    let stats = heap.stats();
    mutator.collect();
    Ok(Outcome {
        checksum,
        setup_cpu,
        max: quantile(&latencies, batches - 1),
        p999: quantile(&latencies, batches * 999 / 1000),
        live_bytes: heap.used(),
        marking: marking(&stats, &heap.stats()),
        stats,
    })
}

/// The element with this index of the sorted latencies, by each clock.
fn quantile(latencies: &[Elapsed], index: usize) -> Elapsed {
    let by = |clock: fn(&Elapsed) -> Duration| {
        let mut all: Vec<Duration> = latencies.iter().map(clock).collect();
        all.sort_unstable();
        all[index]
    };
    Elapsed {
        wall: by(|e| e.wall),
        cpu: by(|e| e.cpu),
    }
}

/// What the last full trace between two moments marked, and how long that took; a cycle that was under way at the first
/// may have ended too. None if it copied instead. A collector that does not time its marking apart from the rest is
/// charged with the whole collection.
fn marking(before: &Stats, after: &Stats) -> Option<(u64, Duration)> {
    let finished = after.totals().collections - before.totals().collections;
    let mut latest = after.history().rev().take(finished as usize);
    let last = latest.find(|collection| collection.marked.objects > 0)?;
    if !last.marking.is_zero() {
        // Who marks and then slides counts what it slid as copied.
        let objects = last.marked.objects + last.copied.objects;
        return Some((objects, last.marking));
    }
    (last.copied.objects == 0).then_some((last.marked.objects, last.elapsed.cpu))
}
