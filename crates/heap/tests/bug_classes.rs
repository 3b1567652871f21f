//! The bugs that other collectors have had, each as a test with its story, on every collector.
//!
//! The random programs of `collectors_agree.rs` find such bugs by chance; here each has its
//! shortest program, so that a failure says what is wrong by its name.

use liveoak_heap::collector::Collector;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::kind::{CollectorKind, Program};
use liveoak_heap::mutator::Mutator;
use liveoak_heap::reference::Ref;
use liveoak_heap::roots::Roots;
use liveoak_heap::shape::{Kind, Shape, ShapeSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Each function becomes a test that runs it on every collector.
macro_rules! on_every_collector {
    ($($(#[$story:meta])* fn $name:ident<$collector:ident>() $body:block)+) => {$(
        $(#[$story])*
        #[test]
        fn $name() {
            struct Run;
            impl Program for Run {
                type Output = ();
                fn run<$collector: Collector>(self) $body
            }
            for &kind in CollectorKind::ALL {
                println!("{kind}");
                kind.run(Run);
            }
        }
    )+};
}

/// A heap with a few shapes, and one mutator.
struct Bench<C: Collector> {
    heap: Heap<C>,
    mutator: Mutator<C, Vec<Ref>>,
    cell: Shape,
    array: Shape,
    bytes: Shape,
    wide: Shape,
    holder: Shape,
    ephemeron: Shape,
}

/// Slot of `next` in a cell, and of its word.
const NEXT: usize = 0;
const STAMP: usize = 2;
/// Slots of a holder.
const WEAK: usize = 0;
const PHANTOM: usize = 1;
const STRONG: usize = 2;
/// Slots of an ephemeron.
const KEY: usize = 0;
const VALUE: usize = 1;

fn small() -> HeapConfig {
    HeapConfig {
        huge_pages: false,
        growth: 1.5,
        ..HeapConfig::default()
            .with_max_bytes(16 << 20)
            .with_initial_bytes(256 << 10)
            .with_nursery_bytes(32 << 10)
            .with_sanity(true)
    }
}

impl<C: Collector> Bench<C> {
    fn new(config: HeapConfig) -> Bench<C> {
        let heap: Heap<C> = Heap::new(config).unwrap();
        let define = |spec| heap.define(spec).unwrap();
        let wide = (0..100).fold(ShapeSpec::fixed("Wide"), |s, i| {
            s.reference(format!("r{i}"))
        });
        let holder = ShapeSpec::fixed("Holder").weak("weak");
        let holder = holder.with("phantom", Kind::Phantom).reference("strong");
        Bench {
            cell: define(ShapeSpec::fixed("Cell").reference("next").word("stamp")),
            array: define(ShapeSpec::references("Array")),
            bytes: define(ShapeSpec::bytes("Bytes")),
            wide: define(wide),
            holder: define(holder),
            ephemeron: define(ShapeSpec::fixed("Ephemeron").ephemeron()),
            // SAFETY: the contract of the raw layer is kept throughout.
            mutator: unsafe { heap.mutator_with(Vec::new()) },
            heap,
        }
    }

    /// A new cell, on the stack: its position.
    fn push_cell(&mut self, stamp: u64) -> usize {
        let cell = self.mutator.allocate(&self.cell).unwrap();
        // SAFETY: allocated just now.
        unsafe { self.mutator.write_word(cell, STAMP, stamp) };
        self.mutator.stack().push(cell)
    }

    fn push(&mut self, shape: Shape) -> usize {
        let object = self.mutator.allocate(&shape).unwrap();
        self.mutator.stack().push(object)
    }

    fn push_array(&mut self, shape: Shape, length: u32) -> usize {
        let object = self.mutator.allocate_array(&shape, length).unwrap();
        self.mutator.stack().push(object)
    }

    fn root(&self, at: usize) -> Ref {
        self.mutator.stack_ref().get(at)
    }

    /// Stores root `value` into a slot of root `object`.
    fn store(&mut self, object: usize, slot: usize, value: usize) {
        let (object, value) = (self.root(object), self.root(value));
        // SAFETY: both are roots.
        unsafe { self.mutator.write(object, slot, value) };
    }

    fn store_weak(&mut self, object: usize, slot: usize, value: usize) {
        let (object, value) = (self.root(object), self.root(value));
        // SAFETY: both are roots.
        unsafe { self.mutator.write_weak(object, slot, value) };
    }

    fn load(&self, object: usize, slot: usize) -> Ref {
        // SAFETY: the object is a root.
        unsafe { self.mutator.read(self.root(object), slot) }
    }

    /// The word of a cell that was read just now.
    fn stamp(&self, cell: Ref) -> u64 {
        assert!(cell.is_object(), "{cell:?}");
        // SAFETY: read from a root or slot since the last safepoint.
        unsafe {
            assert_eq!(self.mutator.header(cell).shape(), self.cell.id().0);
            self.mutator.read_word(cell, STAMP)
        }
    }

    fn drop_root(&mut self, at: usize) {
        self.mutator.stack().set(at, Ref::NULL);
    }

    /// Garbage, a step, garbage: whatever is unprotected is overwritten now.
    fn disturb(&mut self) {
        for _ in 0..3 {
            for _ in 0..800 {
                let garbage = self.mutator.allocate(&self.cell).unwrap();
                // SAFETY: allocated just now.
                unsafe { self.mutator.write_word(garbage, STAMP, 0xdead) };
            }
            self.mutator.step();
        }
    }

    fn objects(&mut self) -> usize {
        self.mutator.observe(|memory| memory.object_count())
    }
}

on_every_collector! {
    /// Missed write barrier: an object that has survived a collection gets the only reference to a
    /// new one, in every kind of slot that there is. A generational collector that does not see the
    /// store loses it at the next minor collection.
    fn a_new_object_held_only_by_an_old_one<C>() {
        let mut bench = Bench::<C>::new(small());
        let (cell, array, wide) = (bench.push_cell(0), bench.array, bench.wide);
        let short = bench.push_array(array, 10);
        let long = bench.push_array(array, 5000);
        let wide = bench.push(wide);
        let holder = bench.push(bench.holder);
        let ephemeron = bench.push(bench.ephemeron);
        let key = bench.push_cell(7);
        bench.store_weak(ephemeron, KEY, key);
        bench.mutator.collect();
        let places = [(cell, NEXT), (short, 9), (long, 4999), (wide, 99), (holder, STRONG), (ephemeron, VALUE)];
        for round in 0..4 {
            for (i, &(object, slot)) in places.iter().enumerate() {
                let new = bench.push_cell(round * 100 + i as u64);
                if slot == VALUE && object == ephemeron {
                    bench.store_weak(object, slot, new);
                } else {
                    bench.store(object, slot, new);
                }
                bench.mutator.stack().truncate(new);
            }
            bench.disturb();
            for (i, &(object, slot)) in places.iter().enumerate() {
                assert_eq!(bench.stamp(bench.load(object, slot)), round * 100 + i as u64);
            }
            if round == 2 {
                bench.mutator.collect();
            }
        }
    }

    /// The same in the other direction of time: while marking is under way, the last reference to
    /// an object is moved from where the marker has not been to where it has, step by step.
    fn an_object_hidden_behind_the_marker<C>() {
        let mut config = small();
        config.incremental.mark_num = 3;
        config.incremental.sweep_num = 3;
        let mut bench = Bench::<C>::new(config);
        let array = bench.push_array(bench.array, 200);
        for i in 0..200 {
            let cell = bench.push_cell(i);
            bench.store(array, i as usize, cell);
            bench.mutator.stack().truncate(cell);
        }
        let spare = bench.push_array(bench.array, 200);
        let order = |i: usize| i * 77 % 200;
        for round in 0..6 {
            let (from, to) = if round % 2 == 0 { (array, spare) } else { (spare, array) };
            for i in 0..200 {
                let moved = bench.load(from, order(i));
                let at = bench.mutator.stack().push(moved);
                bench.store(to, 199 - order(i), at);
                let null = bench.mutator.stack().push(Ref::NULL);
                bench.store(from, order(i), null);
                bench.mutator.stack().truncate(at);
                if i % 3 == 0 {
                    bench.mutator.step();
                }
                if i % 16 == 0 {
                    for _ in 0..50 {
                        bench.mutator.allocate(&bench.cell).unwrap();
                    }
                }
            }
        }
        for i in 0..200 {
            assert_eq!(bench.stamp(bench.load(array, i)), i as u64);
        }
        bench.mutator.collect();
        assert_eq!(bench.objects(), 202);
    }

    /// Missed root: every kind of root once as the only one.
    fn every_kind_of_root_keeps_its_object<C>() {
        let mut bench = Bench::<C>::new(small());
        let stack = bench.push_cell(1);
        for (i, stamp) in [2, 3].into_iter().enumerate() {
            let at = bench.push_cell(stamp);
            let cell = bench.root(at);
            bench.mutator.roots().push(cell);
            assert_eq!(bench.mutator.roots().len(), i + 1);
            bench.mutator.stack().truncate(at);
        }
        let at = bench.push_cell(4);
        let cell = bench.root(at);
        let global = bench.mutator.create_global(cell);
        bench.mutator.stack().truncate(at);
        let guardian = bench.mutator.create_guardian();
        let at = bench.push_cell(5);
        let cell = bench.root(at);
        bench.mutator.guard(guardian, cell);
        bench.mutator.stack().truncate(at);
        for _ in 0..3 {
            bench.mutator.collect();
            bench.disturb();
        }
        assert_eq!(bench.stamp(bench.root(stack)), 1);
        let frame = bench.mutator.roots().clone();
        assert_eq!([bench.stamp(frame[0]), bench.stamp(frame[1])], [2, 3]);
        assert_eq!(bench.stamp(bench.mutator.global(global).unwrap()), 4);
        let queued = bench.mutator.next_dead(guardian).unwrap();
        assert_eq!(bench.stamp(queued), 5);
        bench.mutator.collect();
        assert_eq!(bench.objects(), 4);
    }

    /// Objects in which a weak slot was cleared are roots until they are asked for.
    fn cleared_references_are_kept_until_they_are_taken<C>() {
        let mut bench = Bench::<C>::new(small());
        bench.heap.remember_cleared();
        let holder = bench.push(bench.holder);
        let target = bench.push_cell(1);
        bench.store_weak(holder, WEAK, target);
        bench.mutator.stack().truncate(target);
        bench.mutator.collect();
        bench.mutator.stack().truncate(holder);
        bench.disturb();
        bench.mutator.collect();
        assert_eq!(bench.objects(), 1);
        let cleared = bench.heap.take_cleared();
        assert_eq!(cleared.len(), 1);
        // SAFETY: taken since the last safepoint.
        assert!(unsafe { bench.mutator.read(cleared[0], WEAK) }.is_null());
        bench.mutator.collect();
        assert_eq!(bench.objects(), 0);
    }

    /// White allocation while marking: an object that is made between two steps and hung on what
    /// the marker has passed already. One crate of the survey lost it in 24 of 25 runs.
    fn objects_born_while_marking<C>() {
        let mut config = small();
        config.incremental.mark_num = 2;
        config.incremental.sweep_num = 2;
        let mut bench = Bench::<C>::new(config);
        let array = bench.push_array(bench.array, 400);
        bench.mutator.collect();
        for i in 0..400 {
            bench.mutator.step();
            let cell = bench.push_cell(i);
            let next = bench.push_cell(1000 + i);
            bench.store(cell, NEXT, next);
            bench.store(array, i as usize, cell);
            bench.mutator.stack().truncate(cell);
        }
        bench.disturb();
        for i in 0..400 {
            let cell = bench.load(array, i);
            assert_eq!(bench.stamp(cell), i as u64);
            // SAFETY: read just now.
            let next = unsafe { bench.mutator.read(cell, NEXT) };
            assert_eq!(bench.stamp(next), 1000 + i as u64);
        }
        bench.mutator.collect();
        assert_eq!(bench.objects(), 801);
    }

    /// Stale mark, log and forwarding bits: what has survived n collections must survive the next,
    /// and what dies after n must be found dead, whatever the parity of n.
    fn bits_of_earlier_collections_mean_nothing<C>() {
        let mut bench = Bench::<C>::new(small());
        for dies_after in 0..6 {
            let cells: Vec<usize> = (0..50).map(|i| bench.push_cell(i)).collect();
            let array = bench.push_array(bench.array, 3000);
            for &cell in &cells {
                bench.store(array, cell, cell);
            }
            bench.mutator.stack().truncate(0);
            let array = bench.mutator.stack().push(Ref::NULL);
            assert_eq!(array, 0);
            bench.mutator.collect();
            assert_eq!(bench.objects(), 0);
            // The survivors of this round.
            let list = bench.push_cell(0);
            for i in 1..100 {
                let cell = bench.push_cell(i);
                bench.store(cell, NEXT, list);
                let cell = bench.root(cell);
                bench.mutator.stack().set(list, cell);
                bench.mutator.stack().truncate(list + 1);
            }
            for _ in 0..dies_after {
                bench.mutator.collect();
                assert_eq!(bench.objects(), 100);
                bench.mutator.step();
            }
            let mut at = bench.root(list);
            for i in (0..100).rev() {
                assert_eq!(bench.stamp(at), i);
                // SAFETY: read just now.
                at = unsafe { bench.mutator.read(at, NEXT) };
            }
            bench.mutator.stack().truncate(0);
        }
        bench.mutator.collect();
        assert_eq!(bench.objects(), 0);
    }

    /// Sweep races: allocation from blocks that are being swept, in all sizes, between steps; new
    /// objects must not be swept, and swept cells must come back zeroed.
    fn allocation_while_sweeping<C>() {
        let mut bench = Bench::<C>::new(small());
        let lengths = [0u32, 3, 20, 90, 400, 1500, 2500];
        let keep = bench.push_array(bench.array, 70);
        for round in 0..30u32 {
            for i in 0..210 {
                let length = lengths[i as usize % lengths.len()];
                let bytes = bench.mutator.allocate_array(&bench.bytes, length * 4).unwrap();
                let words = (length / 2) as usize;
                // SAFETY: allocated just now, with that many words.
                unsafe {
                    for word in 0..words {
                        assert_eq!(bench.mutator.read_word(bytes, word * 2), 0, "recycled memory is not zero");
                        bench.mutator.write_word(bytes, word * 2, u64::from(round * 1000 + i));
                    }
                }
                if i % 3 == 0 {
                    let at = bench.mutator.stack().push(bytes);
                    bench.store(keep, i as usize / 3, at);
                    bench.mutator.stack().truncate(at);
                }
                if i % 10 == 0 {
                    bench.mutator.step();
                }
            }
            for i in (0..210).step_by(3) {
                let bytes = bench.load(keep, i as usize / 3);
                // SAFETY: read just now.
                unsafe {
                    let words = bench.mutator.length(bytes) as usize / 8;
                    for word in 0..words {
                        assert_eq!(bench.mutator.read_word(bytes, word * 2), u64::from(round * 1000 + i));
                    }
                }
            }
            if round % 4 == 0 {
                bench.mutator.collect();
                assert_eq!(bench.objects(), 71);
            }
        }
    }

    /// Large objects take special paths everywhere: around the limit (8 KiB, 32 KiB blocks), with
    /// references to small ones and back, freed and allocated again.
    fn large_objects<C>() {
        let mut bench = Bench::<C>::new(small());
        for round in 0..5u64 {
            for length in [2045, 2046, 2047, 4096, 8189, 8190, 8191, 20000, 100_000u32] {
                let array = bench.push_array(bench.array, length);
                for slot in [0, 1, length as usize / 2, length as usize - 1] {
                    assert!(bench.load(array, slot).is_null());
                }
                let cell = bench.push_cell(round);
                bench.store(array, length as usize - 1, cell);
                bench.store(cell, NEXT, array);
                bench.mutator.stack().truncate(cell);
                bench.mutator.step();
                let cell = bench.load(array, length as usize - 1);
                assert_eq!(bench.stamp(cell), round);
                // SAFETY: read just now.
                assert_eq!(unsafe { bench.mutator.read(cell, NEXT) }, bench.root(array));
                if length % 2 == 0 {
                    bench.mutator.stack().truncate(array);
                }
            }
            bench.mutator.collect();
            assert_eq!(bench.objects(), 2 * bench.mutator.stack_ref().len());
            bench.mutator.stack().truncate(0);
        }
        bench.mutator.collect();
        assert_eq!(bench.objects(), 0);
    }

    /// A large object that would have fitted into what is left of the nursery: the generational
    /// fast path once put it there, and evacuation had no cell for it.
    fn a_large_object_that_fits_into_the_nursery<C>() {
        let mut bench = Bench::<C>::new(small());
        bench.push_cell(1);
        let large = bench.push_array(bench.array, 2500);
        let cell = bench.push_cell(2);
        bench.store(large, 2499, cell);
        bench.mutator.stack().truncate(cell);
        bench.disturb();
        bench.mutator.collect();
        assert_eq!(bench.stamp(bench.load(large, 2499)), 2);
    }

    /// What a mutator has written is not forgotten when it ends: the generational collector once
    /// dropped the remembered set with its mutator.
    fn what_a_mutator_wrote_before_it_ended<C>() {
        let mut bench = Bench::<C>::new(small());
        let old = bench.push_cell(1);
        bench.mutator.collect();
        let cell = bench.root(old);
        let global = bench.mutator.create_global(cell);
        let (heap, shape) = (bench.heap.clone(), bench.cell);
        let other = std::thread::spawn(move || {
            // SAFETY: the contract of the raw layer is kept throughout.
            let mut mutator = unsafe { heap.mutator() };
            let new = mutator.allocate(&shape).unwrap();
            let old = mutator.global(global).unwrap();
            // SAFETY: both are of since the last safepoint.
            unsafe {
                mutator.write_word(new, STAMP, 2);
                mutator.write(old, NEXT, new);
            }
        });
        bench.mutator.blocking(|| other.join().unwrap());
        bench.disturb();
        assert_eq!(bench.stamp(bench.load(old, NEXT)), 2);
    }

    /// Resurrection: a guarded object that died comes back whole, with all that it reaches. Weak
    /// slots have forgotten it, phantom slots have not; it can be guarded again and dies again; and
    /// it is handed over once for each time that it was registered.
    fn resurrection<C>() {
        let mut bench = Bench::<C>::new(small());
        let guardian = bench.mutator.create_guardian();
        let holder = bench.push(bench.holder);
        let cell = bench.push_cell(1);
        let next = bench.push_cell(2);
        bench.store(cell, NEXT, next);
        bench.store_weak(holder, WEAK, cell);
        bench.store_weak(holder, PHANTOM, cell);
        for _ in 0..2 {
            let object = bench.root(cell);
            bench.mutator.guard(guardian, object);
        }
        bench.mutator.stack().truncate(cell);
        for life in 0..3 {
            bench.mutator.collect();
            bench.disturb();
            let back = bench.mutator.next_dead(guardian).expect("it has died");
            assert_eq!(bench.stamp(back), 1);
            let again = bench.mutator.next_dead(guardian);
            assert_eq!(again, (life == 0).then_some(back));
            assert!(bench.mutator.next_dead(guardian).is_none());
            let at = bench.mutator.stack().push(back);
            assert_eq!(bench.stamp(bench.load(at, NEXT)), 2);
            assert!(bench.load(holder, WEAK).is_null());
            assert_eq!(bench.load(holder, PHANTOM), bench.root(at));
            bench.mutator.collect();
            assert!(bench.mutator.next_dead(guardian).is_none());
            let object = bench.root(at);
            bench.mutator.guard(guardian, object);
            bench.mutator.stack().truncate(at);
        }
        bench.mutator.collect();
        assert!(bench.mutator.next_dead(guardian).is_some());
        bench.mutator.collect();
        assert!(bench.load(holder, PHANTOM).is_null());
        assert_eq!(bench.objects(), 1);
    }

    /// A guarded cycle, and a guarded object that only another one leads to: nobody is freed while
    /// in a queue, and everybody is handed over in the end.
    fn guarded_objects_that_lead_to_each_other<C>() {
        let mut bench = Bench::<C>::new(small());
        let guardian = bench.mutator.create_guardian();
        let cells: Vec<usize> = (0..10).map(|i| bench.push_cell(i)).collect();
        for (i, &cell) in cells.iter().enumerate() {
            bench.store(cell, NEXT, cells[(i + 1) % 10]);
            let object = bench.root(cell);
            bench.mutator.guard(guardian, object);
        }
        bench.mutator.stack().truncate(0);
        let mut seen = [false; 10];
        for _ in 0..10 {
            bench.mutator.collect();
            bench.disturb();
            while let Some(back) = bench.mutator.next_dead(guardian) {
                let stamp = bench.stamp(back);
                assert!(!std::mem::replace(&mut seen[stamp as usize], true));
                // SAFETY: handed over just now.
                let next = unsafe { bench.mutator.read(back, NEXT) };
                assert_eq!(bench.stamp(next), (stamp + 1) % 10);
            }
        }
        assert_eq!(seen, [true; 10]);
        bench.mutator.collect();
        assert_eq!(bench.objects(), 0);
    }

    /// A chain of ephemerons, each of which keeps the key of the next alive, in the worst order.
    fn a_chain_of_ephemerons<C>() {
        const LENGTH: usize = 300;
        let mut bench = Bench::<C>::new(small());
        let table = bench.push_array(bench.array, LENGTH as u32);
        let mut key = bench.push_cell(0);
        let first = key;
        for i in 0..LENGTH {
            let value = bench.push_cell(i as u64 + 1);
            let ephemeron = bench.push(bench.ephemeron);
            bench.store_weak(ephemeron, KEY, key);
            bench.store_weak(ephemeron, VALUE, value);
            bench.store(table, LENGTH - 1 - i, ephemeron);
            key = value;
        }
        bench.mutator.stack().truncate(first + 1);
        bench.mutator.collect();
        assert_eq!(bench.objects(), 2 + 2 * LENGTH);
        bench.drop_root(first);
        bench.mutator.collect();
        assert_eq!(bench.objects(), 1 + LENGTH);
        let at = bench.load(table, 5);
        // SAFETY: read just now.
        unsafe {
            assert!(bench.mutator.read(at, KEY).is_null());
            assert!(bench.mutator.read(at, VALUE).is_null());
        }
    }

    /// Recursion in mark or drop: a list of a million cells is marked, walked and dropped.
    fn a_list_of_a_million<C>() {
        const LENGTH: u64 = 1_000_000;
        let config = small().with_max_bytes(256 << 20).with_initial_bytes(8 << 20).with_sanity(false);
        let mut bench = Bench::<C>::new(config.with_nursery_bytes(1 << 20));
        let list = bench.push_cell(0);
        for i in 1..LENGTH {
            let cell = bench.mutator.allocate(&bench.cell).unwrap();
            let rest = bench.root(list);
            // SAFETY: allocated or read since the last safepoint.
            unsafe {
                bench.mutator.write(cell, NEXT, rest);
                bench.mutator.write_word(cell, STAMP, i);
            }
            bench.mutator.stack().set(list, cell);
        }
        bench.mutator.collect();
        let (mut at, mut expected) = (bench.root(list), LENGTH);
        while at.is_object() {
            expected -= 1;
            assert_eq!(bench.stamp(at), expected);
            // SAFETY: read just now.
            at = unsafe { bench.mutator.read(at, NEXT) };
        }
        assert_eq!(expected, 0);
        bench.drop_root(list);
        bench.mutator.collect();
        assert_eq!(bench.objects(), 0);
    }

    /// The same in width: an array of a million, each element an object of its own.
    fn an_array_of_a_million<C>() {
        const LENGTH: usize = 1_000_000;
        let config = small().with_max_bytes(256 << 20).with_initial_bytes(8 << 20).with_sanity(false);
        let mut bench = Bench::<C>::new(config.with_nursery_bytes(1 << 20));
        let array = bench.push_array(bench.array, LENGTH as u32);
        for i in 0..LENGTH {
            let cell = bench.push_cell(i as u64);
            bench.store(array, i, cell);
            bench.mutator.stack().truncate(cell);
        }
        bench.mutator.collect();
        assert_eq!(bench.objects(), LENGTH + 1);
        for i in (0..LENGTH).step_by(997) {
            assert_eq!(bench.stamp(bench.load(array, i)), i as u64);
        }
        bench.drop_root(array);
        bench.mutator.collect();
        assert_eq!(bench.objects(), 0);
    }

    /// Re-entrancy: whoever empties a guardian's queue allocates, collects and guards meanwhile.
    fn finalizing_while_collecting<C>() {
        let mut bench = Bench::<C>::new(small());
        let guardian = bench.mutator.create_guardian();
        let (mut made, mut handed_over) = (0, 0);
        for _ in 0..5 {
            let cell = bench.push_cell(made);
            let object = bench.root(cell);
            bench.mutator.guard(guardian, object);
            bench.mutator.stack().truncate(cell);
            made += 1;
        }
        while handed_over < made {
            bench.mutator.collect();
            while let Some(back) = bench.mutator.next_dead(guardian) {
                let at = bench.mutator.stack().push(back);
                handed_over += 1;
                bench.disturb();
                assert!(bench.stamp(bench.root(at)) < made);
                if made < 40 {
                    let cell = bench.push_cell(made);
                    let object = bench.root(cell);
                    bench.mutator.guard(guardian, object);
                    made += 1;
                    bench.mutator.collect();
                }
                bench.mutator.stack().truncate(at);
            }
        }
        assert_eq!(made, handed_over);
        bench.mutator.collect();
        assert_eq!(bench.objects(), 0);
    }

    /// Two heaps of a thread do not meddle with each other: one is used while the other is stopped.
    fn a_heap_within_a_heap<C>() {
        let mut outer = Bench::<C>::new(small());
        let mut inner = Bench::<C>::new(small());
        let (a, b) = (outer.push_cell(1), inner.push_cell(2));
        outer.mutator.observe(|memory| {
            assert_eq!(memory.object_count(), 1);
            inner.disturb();
            inner.mutator.collect();
        });
        outer.mutator.collect();
        assert_eq!((outer.stamp(outer.root(a)), inner.stamp(inner.root(b))), (1, 2));
    }

    /// A panic while the world is stopped, and one in a blocking call, are seen as panics. They once
    /// left the world stopped for good, and a mutator counted as parked that was none.
    fn panics_do_not_stop_the_world_for_good<C>() {
        let mut bench = Bench::<C>::new(small());
        let cell = bench.push_cell(1);
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            bench.mutator.inspect(|_| panic!("expected in this test"));
        }));
        assert!(stopped.is_err());
        let blocked = catch_unwind(AssertUnwindSafe(|| {
            bench.mutator.blocking(|| panic!("expected in this test"));
        }));
        assert!(blocked.is_err());
        // Now another thread collects while this one runs: it has to wait for this one.
        let (running, seen) = (AtomicBool::new(true), AtomicBool::new(false));
        let (running, seen) = (&running, &seen);
        let heap = bench.heap.clone();
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                // SAFETY: the contract of the raw layer is kept throughout.
                let mut mutator = unsafe { heap.mutator() };
                seen.store(true, Ordering::SeqCst);
                mutator.inspect(|_| assert!(!running.load(Ordering::SeqCst), "the world did not stop"));
            });
            while !seen.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            for _ in 0..1000 {
                std::thread::yield_now();
                assert_eq!(bench.stamp(bench.root(cell)), 1);
            }
            running.store(false, Ordering::SeqCst);
            bench.mutator.blocking(|| other.join().unwrap());
        });
        bench.mutator.collect();
        assert_eq!(bench.objects(), 1);
    }

    /// Pacing: a program whose live size does not change collects neither never nor always, and its
    /// memory stays in proportion to what lives.
    fn constant_live_size<C>() {
        const LIVE: usize = 1 << 20;
        const ALLOCATED: usize = 64 << 20;
        let config = small().with_max_bytes(64 << 20).with_initial_bytes(512 << 10).with_sanity(false);
        let mut bench = Bench::<C>::new(config.with_nursery_bytes(256 << 10));
        let cells = LIVE / 24;
        let array = bench.push_array(bench.array, cells as u32);
        let mut peak = 0;
        for i in 0..ALLOCATED / 24 {
            let cell = bench.push_cell(i as u64);
            bench.store(array, i * 7919 % cells, cell);
            bench.mutator.stack().truncate(cell);
            if i % 4096 == 0 {
                peak = peak.max(bench.heap.committed());
            }
        }
        let collections = bench.heap.stats().totals().collections;
        assert!((4..=4096).contains(&collections), "{collections} collections");
        assert!(peak <= 12 * LIVE, "{peak} bytes for {LIVE} live ones");
    }

    /// Out of memory is an error that leaves everything as it was; when references are dropped, it
    /// goes on.
    fn out_of_memory_and_back<C>() {
        // Checked once a round, below: a collector that works in steps would check at each of them.
        let config = small().with_max_bytes(2 << 20).with_sanity(false);
        let mut bench = Bench::<C>::new(config);
        for round in 0..3 {
            let list = bench.push_cell(0);
            let mut length = 1;
            let error = loop {
                let cell = match bench.mutator.allocate(&bench.cell) {
                    Ok(cell) => cell,
                    Err(error) => break error,
                };
                let rest = bench.root(list);
                // SAFETY: allocated or read since the last safepoint.
                unsafe {
                    bench.mutator.write(cell, NEXT, rest);
                    bench.mutator.write_word(cell, STAMP, length);
                }
                bench.mutator.stack().set(list, cell);
                length += 1;
            };
            assert!(!error.is_too_large(), "{error}");
            // At least a quarter of the limit was of use, whatever the collector keeps in reserve.
            assert!(length * 24 > 512 << 10, "round {round}: out of memory at {length} cells");
            assert!(bench.mutator.allocate_array(&bench.bytes, 4 << 20).is_err());
            let mut at = bench.root(list);
            while at.is_object() {
                length -= 1;
                assert_eq!(bench.stamp(at), length);
                // SAFETY: read just now.
                at = unsafe { bench.mutator.read(at, NEXT) };
            }
            assert_eq!(length, 0);
            bench.mutator.inspect(liveoak_heap::verify::verify).unwrap();
            bench.mutator.stack().truncate(0);
        }
        let too_large = bench.mutator.allocate_array(&bench.bytes, u32::MAX);
        assert!(too_large.unwrap_err().is_too_large());
    }
}

/// A frame whose roots are looked at by name in reports.
struct Frames(Vec<Ref>);

impl Roots for Frames {
    fn trace(&mut self, visit: &mut dyn FnMut(&mut Ref)) {
        self.0.iter_mut().for_each(visit);
    }

    fn name(&self, index: usize) -> String {
        format!("local {}", ["x", "y"][index])
    }
}

on_every_collector! {
    /// The path to an object begins with the name that the frame gives its root.
    fn roots_are_called_by_their_names<C>() {
        let heap: Heap<C> = Heap::new(small()).unwrap();
        let cell = heap.define(ShapeSpec::fixed("Cell").reference("next")).unwrap();
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut mutator = unsafe { heap.mutator_with(Frames(Vec::new())) };
        for _ in 0..2 {
            let root = mutator.allocate(&cell).unwrap();
            mutator.roots().0.push(root);
        }
        let new = mutator.allocate(&cell).unwrap();
        let y = mutator.roots().0[1];
        // SAFETY: both are of since the last safepoint.
        unsafe { mutator.write(y, 0, new) };
        mutator.collect();
        let y = mutator.roots().0[1];
        // SAFETY: read just now.
        let new = unsafe { mutator.read(y, 0) };
        let path = mutator.observe(|memory| {
            liveoak_graph::shortest_path(memory, new).map(|path| path.to_string())
        });
        let path = path.expect("it is alive");
        assert!(path.starts_with("root mutator 0 local y -> Cell @"), "{path}");
        assert!(path.contains("\n  .next -> Cell @"), "{path}");
    }
}
