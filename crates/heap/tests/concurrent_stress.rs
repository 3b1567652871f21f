//! Several mutators change a shared graph at random while the concurrent collector works.
//!
//! The graph: a table of lists, shared by all threads, and some nodes that only one thread has, on
//! its stack. Every node carries a number and its check value. Threads move nodes between lists (the moves that
//! lose objects when the barrier is wrong), put new ones in, drop some, and check every node that
//! they meet: a node that was freed and used again would give itself away. A lock for each shared
//! list keeps the *program* correct; the collector knows nothing of it.

use liveoak_heap::collectors::Concurrent;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::mutator::Mutator;
use liveoak_heap::reference::Ref;
use liveoak_heap::roots::GlobalId;
use liveoak_heap::shape::{Shape, ShapeSpec};
use liveoak_heap::stats::CollectionKind;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

const LISTS: usize = 64;
/// Mutators that each thread makes, one after the other.
const ROUNDS: u64 = 5;
/// Nodes that a thread has only on its stack.
const POCKET: usize = 100;
const LINK: usize = 0;
/// A second reference, to any node of the same list or to none.
const ASIDE: usize = 1;
const NUMBER: usize = 2;
const CHECK: usize = 4;

fn check_of(number: u64) -> u64 {
    (number ^ 0x5851_F42D_4C95_7F2D).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

struct Shared {
    heap: Heap<Concurrent>,
    node: Shape,
    table: GlobalId,
    locks: Vec<Mutex<()>>,
    /// Sum of the numbers of all nodes in the table.
    sum: AtomicI64,
    next: AtomicU64,
}

struct Worker {
    shared: Arc<Shared>,
    mutator: Mutator<Concurrent>,
    random: u64,
}

impl Worker {
    fn random(&mut self, below: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.random >> 33) as usize) % below
    }

    /// Takes the lock of a list; a thread that waits may be stopped by the collector.
    fn locked<T>(&mut self, list: usize, body: impl FnOnce(&mut Worker, Ref) -> T) -> T {
        let shared = Arc::clone(&self.shared);
        let guard = loop {
            match shared.locks[list].try_lock() {
                Ok(guard) => break guard,
                Err(TryLockError::WouldBlock) => {
                    self.mutator.safepoint();
                    std::thread::yield_now();
                }
                Err(TryLockError::Poisoned(_)) => panic!("another worker has failed"),
            }
        };
        let table = self.mutator.global(shared.table).unwrap();
        let value = body(self, table);
        drop(guard);
        value
    }

    /// The number of a node, after a check that it is one.
    fn number(&self, node: Ref) -> u64 {
        // SAFETY: the callers have read `node` since their last safepoint.
        unsafe {
            assert_eq!(self.mutator.header(node).shape(), self.shared.node.id().0);
            let number = self.mutator.read_word(node, NUMBER);
            assert_eq!(
                self.mutator.read_word(node, CHECK),
                check_of(number),
                "{node:?}"
            );
            number
        }
    }

    fn push_new(&mut self, list: usize) {
        let new = self.mutator.allocate(&self.shared.node).unwrap();
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        // SAFETY: here and below, references were read since the last safepoint.
        unsafe {
            self.mutator.write_word(new, NUMBER, number);
            self.mutator.write_word(new, CHECK, check_of(number));
        }
        self.push(list, new);
    }

    fn push(&mut self, list: usize, node: Ref) {
        let root = self.mutator.stack().push(node);
        self.locked(list, |this, table| {
            let node = this.mutator.stack().get(root);
            let number = this.number(node);
            this.shared.sum.fetch_add(number as i64, Ordering::Relaxed);
            // SAFETY: as above.
            unsafe {
                let rest = this.mutator.read(table, list);
                this.mutator.write(node, LINK, rest);
                this.mutator.write(node, ASIDE, rest);
                this.mutator.write(table, list, node);
            }
        });
        self.mutator.stack().truncate(root);
    }

    fn pop(&mut self, list: usize) -> Ref {
        self.locked(list, |this, table| {
            // SAFETY: as above.
            unsafe {
                let node = this.mutator.read(table, list);
                if node.is_object() {
                    let number = this.number(node);
                    this.shared.sum.fetch_sub(number as i64, Ordering::Relaxed);
                    let rest = this.mutator.read(node, LINK);
                    this.mutator.write(table, list, rest);
                    this.mutator.write(node, LINK, Ref::NULL);
                    this.mutator.write(node, ASIDE, Ref::NULL);
                }
                node
            }
        })
    }

    /// Reverses a list in place: every link is overwritten, and the only reference to the rest is
    /// for a while in a register.
    fn reverse(&mut self, list: usize) {
        self.locked(list, |this, table| {
            // SAFETY: as above; no safepoint in between.
            unsafe {
                let mut at = this.mutator.read(table, list);
                let mut reversed = Ref::NULL;
                this.mutator.write(table, list, Ref::NULL);
                while at.is_object() {
                    this.number(at);
                    let next = this.mutator.read(at, LINK);
                    this.mutator.write(at, LINK, reversed);
                    this.mutator.write(at, ASIDE, reversed);
                    reversed = at;
                    at = next;
                }
                this.mutator.write(table, list, reversed);
            }
        });
    }

    fn sum_of(&mut self, list: usize) -> u64 {
        self.locked(list, |this, table| {
            let mut sum = 0u64;
            // SAFETY: as above; no safepoint in between.
            unsafe {
                let mut at = this.mutator.read(table, list);
                while at.is_object() {
                    sum = sum.wrapping_add(this.number(at));
                    let aside = this.mutator.read(at, ASIDE);
                    at = this.mutator.read(at, LINK);
                    assert_eq!(aside, at);
                }
            }
            sum
        })
    }

    fn run(&mut self, operations: usize, prefill: usize) {
        for _ in 0..POCKET {
            self.mutator.stack().push(Ref::NULL);
        }
        for n in 0..LISTS * prefill {
            self.push_new(n % LISTS);
        }
        for _ in 0..operations {
            let list = self.random(LISTS);
            match self.random(8) {
                0..3 => self.push_new(list),
                3..5 => {
                    // Into the pocket, where nothing but a root leads to it; what was there before
                    // goes to some list.
                    let node = self.pop(list);
                    let place = self.random(POCKET);
                    let old = self.mutator.stack().get(place);
                    self.mutator.stack().set(place, node);
                    let other = self.random(LISTS);
                    if old.is_object() {
                        self.push(other, old);
                    }
                }
                5 => {
                    // Dropped: garbage from now on.
                    self.pop(list);
                    self.pop(list);
                    self.pop(list);
                }
                6 => self.reverse(list),
                _ => {
                    self.sum_of(list);
                    let root = self.mutator.stack().len();
                    for _ in 0..20 {
                        let garbage = self.mutator.allocate(&self.shared.node).unwrap();
                        self.mutator.stack().push(garbage);
                    }
                    self.mutator.stack().truncate(root);
                }
            }
        }
    }
}

fn stress(threads: u64, operations: usize, prefill: usize, config: HeapConfig) -> Heap<Concurrent> {
    let heap: Heap<Concurrent> = Heap::new(config).unwrap();
    let node = ShapeSpec::fixed("Node")
        .reference("link")
        .reference("aside")
        .word("number")
        .word("check");
    let node = heap.define(node).unwrap();
    let array = heap.define(ShapeSpec::references("Table")).unwrap();
    let table = {
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut mutator = unsafe { heap.mutator() };
        let table = mutator.allocate_array(&array, LISTS as u32).unwrap();
        mutator.create_global(table)
    };
    let shared = Arc::new(Shared {
        heap: heap.clone(),
        node,
        table,
        locks: (0..LISTS).map(|_| Mutex::new(())).collect(),
        sum: AtomicI64::new(0),
        next: AtomicU64::new(1),
    });
    let workers: Vec<_> = (0..threads)
        .map(|number| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                // Mutators come and go in the middle of cycles, too.
                for round in 0..ROUNDS {
                    let mut worker = Worker {
                        shared: Arc::clone(&shared),
                        // SAFETY: the contract of the raw layer is kept throughout.
                        mutator: unsafe { shared.heap.mutator() },
                        random: number * 7919 + round * 104_729 + 17,
                    };
                    worker.run(operations / ROUNDS as usize, prefill / ROUNDS as usize);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("a worker has failed");
    }
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = unsafe { heap.mutator() };
    let expected = shared.sum.load(Ordering::Relaxed);
    let mut last = Worker {
        shared,
        mutator,
        random: 1,
    };
    let sum = |last: &mut Worker| (0..LISTS).fold(0, |sum, list| sum + last.sum_of(list) as i64);
    assert_eq!(sum(&mut last), expected);
    last.mutator.collect();
    assert_eq!(sum(&mut last), expected, "after a full collection");
    heap
}

#[test]
fn nothing_is_lost_while_everything_moves() {
    let mut config = HeapConfig::default()
        .with_max_bytes(32 << 20)
        .with_initial_bytes(256 << 10);
    // Cycles follow each other closely, so that most stores fall into one.
    config.growth = 1.05;
    let heap = stress(4, 30_000, 400, config);
    let stats = heap.stats();
    let cycles = stats.totals_of(CollectionKind::Concurrent).collections;
    assert!(cycles > 3, "only {cycles} cycles ran beside the mutators");
}

#[test]
fn nothing_is_lost_with_the_sanity_check_at_every_handshake() {
    let mut config = HeapConfig::default()
        .with_max_bytes(4 << 20)
        .with_initial_bytes(64 << 10)
        .with_sanity(true);
    config.growth = 1.1;
    stress(3, 6_000, 20, config);
}

#[test]
fn nothing_is_lost_when_memory_is_always_short() {
    let config = HeapConfig::default()
        .with_max_bytes(640 << 10)
        .with_initial_bytes(64 << 10);
    stress(3, 20_000, 20, config);
}
