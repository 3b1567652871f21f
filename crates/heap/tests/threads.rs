//! Several mutators at once, on every collector, with the sanity check after each collection.
//!
//! Shared structures are touched under a discipline without locks: a word of the heap that several
//! threads may write is written by one thread only, and readers take what they find.

use liveoak_heap::collector::Collector;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::kind::{CollectorKind, Program};
use liveoak_heap::reference::Ref;
use liveoak_heap::shape::{Shape, ShapeSpec};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn config() -> HeapConfig {
    HeapConfig {
        huge_pages: false,
        growth: 1.5,
        ..HeapConfig::default()
            .with_max_bytes(32 << 20)
            .with_initial_bytes(256 << 10)
            .with_nursery_bytes(64 << 10)
            .with_sanity(true)
    }
}

fn on_every_collector<P: Program<Output = ()> + Copy>(program: P) {
    for &kind in CollectorKind::ALL {
        println!("{kind}");
        kind.run(program);
    }
}

/// A cell of a list: `next`, and the word that says which thread made it and when.
fn cell<C: Collector>(heap: &Heap<C>) -> Shape {
    heap.define(ShapeSpec::fixed("Cell").reference("next").word("stamp"))
        .unwrap()
}

const STAMP: usize = 2;

/// Each thread builds lists in its element of one shared array, and reads the lists of the others
/// while they change: every cell that can be read must be whole.
#[derive(Clone, Copy)]
struct SharedArray;

impl Program for SharedArray {
    type Output = ();

    fn run<C: Collector>(self) {
        const THREADS: usize = 4;
        const ROUNDS: u64 = 300;
        let heap: Heap<C> = Heap::new(config()).unwrap();
        let cell = cell(&heap);
        let array = heap.define(ShapeSpec::references("Array")).unwrap();
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut main = unsafe { heap.mutator() };
        let shared = main.allocate_array(&array, THREADS as u32).unwrap();
        let shared = main.create_global(shared);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|me| {
                    let heap = heap.clone();
                    scope.spawn(move || {
                        // SAFETY: the contract of the raw layer is kept throughout.
                        let mut mutator = unsafe { heap.mutator() };
                        for round in 0..ROUNDS {
                            let base = mutator.stack().push(Ref::NULL);
                            for i in 0..20 {
                                let new = mutator.allocate(&cell).unwrap();
                                let rest = mutator.stack().get(base);
                                // SAFETY: allocated or read from a root since the last safepoint.
                                unsafe {
                                    mutator.write(new, 0, rest);
                                    mutator.write_word(new, STAMP, stamp(me, round, i));
                                }
                                mutator.stack().set(base, new);
                            }
                            let list = mutator.stack().pop();
                            let array = mutator.global(shared).unwrap();
                            // SAFETY: as above. Only this thread writes the element.
                            unsafe { mutator.write(array, me, list) };
                            // SAFETY: no safepoint within.
                            unsafe {
                                for other in 0..THREADS {
                                    let mut at = mutator.read(array, other);
                                    let mut expected = 20;
                                    while at.is_object() {
                                        expected -= 1;
                                        let found = mutator.read_word(at, STAMP);
                                        assert_eq!(found >> 32, other as u64);
                                        assert_eq!(found & 0xff, expected, "{found:#x}");
                                        at = mutator.read(at, 0);
                                    }
                                    assert!(expected == 0 || expected == 20);
                                }
                            }
                            if round % 50 == me as u64 {
                                mutator.collect();
                            } else if round % 7 == 0 {
                                mutator.step();
                            } else {
                                mutator.safepoint();
                            }
                        }
                    })
                })
                .collect();
            // All of them end before one that failed is reported: they need this mutator parked.
            let ended: Vec<_> =
                main.blocking(|| workers.into_iter().map(|worker| worker.join()).collect());
            ended.into_iter().for_each(|result| result.unwrap());
        });
        main.collect();
        assert_eq!(
            main.observe(|memory| memory.object_count()),
            1 + THREADS * 20
        );
    }
}

fn stamp(thread: usize, round: u64, index: u64) -> u64 {
    (thread as u64) << 32 | round << 8 | index
}

#[test]
fn threads_share_an_array() {
    on_every_collector(SharedArray);
}

/// Threads begin and end all the time, each handing what it made to the next through a global
/// handle, while another thread does nothing but collect.
#[derive(Clone, Copy)]
struct Relay;

impl Program for Relay {
    type Output = ();

    fn run<C: Collector>(self) {
        const GENERATIONS: u64 = 100;
        let heap: Heap<C> = Heap::new(config()).unwrap();
        let cell = cell(&heap);
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut main = unsafe { heap.mutator() };
        let baton = main.create_global(Ref::NULL);
        let over = AtomicBool::new(false);
        let over = &over;
        std::thread::scope(|scope| {
            let collected = heap.clone();
            let collecting = scope.spawn(move || {
                // SAFETY: the contract of the raw layer is kept throughout.
                let mut mutator = unsafe { collected.mutator() };
                while !over.load(Ordering::Relaxed) {
                    mutator.step();
                    mutator.collect();
                    mutator.blocking(std::thread::yield_now);
                }
            });
            for generation in 0..GENERATIONS {
                let heap = heap.clone();
                let runner = scope.spawn(move || {
                    // SAFETY: the contract of the raw layer is kept throughout.
                    let mut mutator = unsafe { heap.mutator() };
                    for i in 0..50 {
                        // Old cells are written to by a mutator that ends right afterwards.
                        let new = mutator.allocate(&cell).unwrap();
                        let rest = mutator.global(baton).unwrap();
                        // SAFETY: allocated or read from a root since the last safepoint.
                        unsafe {
                            mutator.write(new, 0, rest);
                            mutator.write_word(new, STAMP, generation * 50 + i);
                        }
                        mutator.set_global(baton, new);
                    }
                    let fresh = mutator.allocate(&cell).unwrap();
                    let head = mutator.global(baton).unwrap();
                    // SAFETY: as above. The fresh cell stands between the first and the second.
                    unsafe {
                        let second = mutator.read(head, 0);
                        mutator.write_word(fresh, STAMP, u64::MAX);
                        mutator.write(fresh, 0, second);
                        mutator.write(head, 0, fresh);
                    }
                });
                main.blocking(|| runner.join().unwrap());
            }
            over.store(true, Ordering::Relaxed);
            // The last collection needs this mutator parked.
            main.blocking(|| collecting.join().unwrap());
        });
        main.collect();
        let mut at = main.global(baton).unwrap();
        let mut expected = GENERATIONS * 50;
        let mut extra = 0;
        // SAFETY: no safepoint within.
        unsafe {
            while at.is_object() {
                match main.read_word(at, STAMP) {
                    u64::MAX => extra += 1,
                    found => {
                        expected -= 1;
                        assert_eq!(found, expected);
                    }
                }
                at = main.read(at, 0);
            }
        }
        assert_eq!((expected, extra), (0, GENERATIONS));
        let count = main.observe(|memory| memory.object_count());
        assert_eq!(count as u64, GENERATIONS * 51);
    }
}

#[test]
fn threads_begin_and_end_while_others_collect() {
    on_every_collector(Relay);
}

/// Threads that sit in `blocking` do not hold the world up, and what they root stays.
#[derive(Clone, Copy)]
struct Sleepers;

impl Program for Sleepers {
    type Output = ();

    fn run<C: Collector>(self) {
        let heap: Heap<C> = Heap::new(config()).unwrap();
        let cell = cell(&heap);
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut main = unsafe { heap.mutator() };
        let turns = AtomicU64::new(0);
        let turns = &turns;
        std::thread::scope(|scope| {
            let sleepers: Vec<_> = (0..3)
                .map(|me| {
                    let heap = heap.clone();
                    scope.spawn(move || {
                        // SAFETY: the contract of the raw layer is kept throughout.
                        let mut mutator = unsafe { heap.mutator() };
                        for round in 0..10u64 {
                            let mine = mutator.allocate(&cell).unwrap();
                            // SAFETY: allocated since the last safepoint.
                            unsafe { mutator.write_word(mine, STAMP, me * 100 + round) };
                            mutator.stack().push(mine);
                            let then = turns.load(Ordering::Relaxed);
                            mutator.blocking(|| {
                                while turns.load(Ordering::Relaxed) < then + 2 {
                                    std::thread::yield_now();
                                }
                            });
                            for (i, &root) in mutator.stack_ref().as_slice().iter().enumerate() {
                                // SAFETY: a root, read since the last safepoint.
                                let found = unsafe { mutator.read_word(root, STAMP) };
                                assert_eq!(found, me * 100 + i as u64);
                            }
                        }
                    })
                })
                .collect();
            while sleepers.iter().any(|sleeper| !sleeper.is_finished()) {
                for _ in 0..200 {
                    main.allocate(&cell).unwrap();
                }
                main.collect();
                turns.fetch_add(1, Ordering::Relaxed);
                main.blocking(std::thread::yield_now);
            }
        });
    }
}

#[test]
fn blocked_threads_do_not_hold_the_world_up() {
    on_every_collector(Sleepers);
}
