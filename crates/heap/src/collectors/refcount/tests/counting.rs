//! Counts, the log, and the memory that comes back.

use super::*;
use crate::space::BLOCK_BYTES;

#[test]
fn new_objects_die_uncounted() {
    let mut f = Fixture::new();
    let root = f.rooted_pair();
    for _ in 0..1000 {
        let dead = f.pair();
        let kept = f.get(root);
        f.write(dead, 0, kept);
    }
    f.epoch();
    let kept = f.get(root);
    assert_eq!(f.count(kept), 1, "only the root counts");
    assert_eq!(f.objects(), 1);
}

#[test]
fn counts_follow_stores_and_roots() {
    let mut f = Fixture::new();
    let (a, b) = (f.rooted_pair(), f.rooted_pair());
    let (x, y) = (f.get(a), f.get(b));
    f.write(x, 0, y);
    f.write(x, 1, y);
    f.epoch();
    assert_eq!((f.count(x), f.count(y)), (1, 3));
    f.mutator.stack().pop();
    f.epoch();
    assert_eq!((f.count(x), f.count(y)), (1, 2));
    f.write(x, 0, Ref::NULL);
    f.write(x, 1, Ref::immediate(7));
    assert_eq!(
        f.count(y),
        2,
        "between epochs the count is that of the last"
    );
    f.epoch();
    assert_eq!(f.objects(), 1);
}

#[test]
fn stores_between_epochs_coalesce() {
    let mut f = Fixture::new();
    let root = f.rooted_pair();
    let first = f.pair();
    let object = f.get(root);
    f.write(object, 0, first);
    f.epoch();
    for _ in 0..1000 {
        let next = f.pair();
        let object = f.get(root);
        f.write(object, 0, next);
        f.write(object, 1, next);
    }
    let logged = f.mutator.inspect(|world| {
        let log = &world.collector().log;
        (log.objects.len(), log.values.len(), log.slots.len())
    });
    assert_eq!(logged, (1, 2, 0), "one object with its two old values");
    f.epoch();
    assert_eq!(f.objects(), 2);
    let last = f.read(object, 0);
    assert_eq!(f.count(last), 2);
}

#[test]
fn a_store_into_a_large_array_logs_a_slot() {
    let mut f = Fixture::new();
    let shape = f.array;
    let array = f.mutator.allocate_array(&shape, 1_000_000).unwrap();
    f.push(array);
    f.epoch();
    for _ in 0..100 {
        let element = f.pair();
        f.write(array, 777_777, element);
        f.write(array, 3, element);
    }
    let logged = f.mutator.inspect(|world| world.collector().log.len());
    assert_eq!(logged, 2);
    f.epoch();
    assert_eq!(f.objects(), 2);
    let element = f.read(array, 3);
    assert_eq!(f.count(element), 2);
    // The slots can be logged again.
    f.write(array, 3, Ref::NULL);
    f.write(array, 777_777, Ref::NULL);
    f.epoch();
    assert_eq!(f.objects(), 1);
}

#[test]
fn arrays_of_every_length_keep_their_elements() {
    let mut f = Fixture::new();
    for length in [0, 1, 15, 16, 17, 100, 2046, 2047, 5000] {
        let shape = f.array;
        let array = f.mutator.allocate_array(&shape, length).unwrap();
        let root = f.push(array);
        for round in 0..3 {
            for slot in (0..length as usize).step_by(7) {
                let element = f.pair();
                let array = f.get(root);
                f.write(array, slot, element);
            }
            f.epoch();
            assert_eq!(
                f.objects(),
                1 + (length as usize).div_ceil(7),
                "length {length} round {round}"
            );
        }
        f.mutator.stack().truncate(root);
        f.epoch();
        assert_eq!(f.objects(), 0);
    }
}

#[test]
fn a_thousand_referrers_are_counted_exactly() {
    let mut f = Fixture::new();
    let popular = f.allocate(f.leaf);
    let root = f.push(popular);
    let shape = f.array;
    let array = f.mutator.allocate_array(&shape, 1000).unwrap();
    f.push(array);
    let popular = f.get(root);
    for slot in 0..1000 {
        f.write(array, slot, popular);
    }
    f.epoch();
    assert_eq!(f.count(popular), 1001);
    for slot in 0..900 {
        f.write(array, slot, Ref::NULL);
    }
    f.epoch();
    assert_eq!(f.count(popular), 101);
    for slot in 900..1000 {
        f.write(array, slot, Ref::NULL);
    }
    f.mutator.stack().set(root, Ref::NULL);
    f.epoch();
    assert_eq!(f.objects(), 1);
}

#[test]
fn a_long_list_is_freed_without_recursion() {
    let body = || {
        let mut f = Fixture::with(large_config());
        let root = f.list(3_000_000);
        f.epoch();
        assert_eq!(f.objects(), 3_000_000);
        f.mutator.stack().truncate(root);
        f.epoch();
        assert_eq!(f.objects(), 0);
        f.collect();
        assert_eq!(f.heap.committed(), 0, "all blocks are back");
        assert_eq!(f.heap.used(), 0);
    };
    // A recursive release would need far more stack than this.
    let thread = std::thread::Builder::new().stack_size(128 << 10);
    thread.spawn(body).unwrap().join().unwrap();
}

#[test]
fn wide_and_mixed_shapes_are_counted() {
    let mut f = Fixture::new();
    let wide = (0..100).fold(ShapeSpec::fixed("Wide"), |s, i| {
        s.reference(format!("f{i}"))
    });
    let wide = f.heap.define(wide).unwrap();
    let object = f.allocate(wide);
    f.push(object);
    for _ in 0..3 {
        for slot in [0, 63, 64, 99] {
            let target = f.pair();
            f.write(object, slot, target);
            f.write(object, slot, target);
        }
        f.epoch();
        assert_eq!(f.objects(), 5);
    }
    let target = f.read(object, 99);
    assert_eq!(f.count(target), 1);
}

#[test]
fn scattered_deaths_give_memory_back() {
    let mut f = Fixture::with(config().with_max_bytes(8 << 20));
    let shape = f.array;
    let length = 100_000;
    let array = f.mutator.allocate_array(&shape, length).unwrap();
    let root = f.push(array);
    let mut state = 1u64;
    // Twenty times what the heap holds, replaced at random.
    for _ in 0..1_000_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let leaf = f.allocate(f.leaf);
        let array = f.get(root);
        f.write(array, (state >> 33) as usize % length as usize, leaf);
    }
    f.collect();
    assert!(f.objects() <= length as usize + 1);
    f.mutator.stack().truncate(root);
    f.collect();
    assert_eq!((f.objects(), f.heap.committed()), (0, 0));
}

#[test]
fn large_objects_come_and_go() {
    let mut f = Fixture::with(config().with_max_bytes(4 << 20));
    let shape = f.array;
    let root = f.push(Ref::NULL);
    for _ in 0..200 {
        // Each keeps the one before it, which loses the one before that.
        let array = f.mutator.allocate_array(&shape, 50_000).unwrap();
        let old = f.get(root);
        if old.is_object() {
            f.write(old, 0, Ref::NULL);
        }
        f.write(array, 0, old);
        f.mutator.stack().set(root, array);
    }
    f.collect();
    assert_eq!(f.objects(), 2);
    f.mutator.stack().truncate(root);
    // These die new.
    for _ in 0..200 {
        f.mutator.allocate_array(&shape, 50_000).unwrap();
    }
    f.epoch();
    f.collect();
    assert_eq!((f.objects(), f.heap.committed()), (0, 0));
}

#[test]
fn out_of_memory_is_an_error_and_passes() {
    let mut f = Fixture::with(config().with_max_bytes(8 * BLOCK_BYTES));
    let root = f.push(Ref::NULL);
    let mut cells = 0;
    let error = loop {
        let shape = f.pair;
        match f.mutator.allocate(&shape) {
            Ok(cell) => {
                let next = f.get(root);
                f.write(cell, 1, next);
                f.mutator.stack().set(root, cell);
                cells += 1;
            }
            Err(error) => break error,
        }
    };
    assert!(!error.is_too_large(), "{error}");
    assert_eq!(
        cells,
        8 * (BLOCK_BYTES / 16),
        "every cell of the heap was used"
    );
    f.mutator.stack().truncate(root);
    for _ in 0..3 * cells {
        f.pair();
    }
    let shape = f.array;
    let error = f.mutator.allocate_array(&shape, 1 << 30).unwrap_err();
    assert!(error.is_too_large(), "{error}");
    // Of another size class, and large: blocks must have come back.
    f.mutator.allocate_array(&shape, 40_000).unwrap();
}

#[test]
fn a_deep_stack_is_exchanged_root_by_root() {
    let mut f = Fixture::new();
    let x = f.pair();
    let x = f.push(x);
    for i in 0..500 {
        let reference = if i % 3 == 0 { f.get(x) } else { f.pair() };
        f.push(reference);
    }
    f.epoch();
    let object = f.get(x);
    assert_eq!(f.count(object), 168);
    f.mutator.stack().truncate(250);
    f.mutator.stack().set(100, Ref::NULL);
    f.epoch();
    assert_eq!(f.count(object), 83);
    f.mutator.stack().truncate(1);
    f.epoch();
    assert_eq!(f.count(object), 1);
    assert_eq!(f.objects(), 1);
}

#[test]
fn statistics_tell_epochs_from_cycles() {
    let mut f = Fixture::new();
    let root = f.rooted_pair();
    let object = f.get(root);
    f.write(object, 0, object);
    f.epoch();
    f.mutator.stack().truncate(root);
    f.epoch();
    assert_eq!(f.objects(), 1, "an epoch alone does not find a cycle");
    f.collect();
    assert_eq!(f.objects(), 0);
    let stats = f.heap.stats();
    let cycles = stats.totals_of(CollectionKind::Cycles);
    assert_eq!((cycles.collections, cycles.freed.objects), (1, 1));
    let epochs = stats.totals_of(CollectionKind::Epoch);
    assert_eq!((epochs.collections, epochs.freed.objects), (3, 0));
}
