//! What the concurrent collector does, seen from a program.

use super::{Concurrent, Phase};
use crate::collector::{Collector, Effort, Refill, Request};
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::header::USER_FLAG_0;
use crate::heap::Heap;
use crate::mutator::Mutator;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Shape, ShapeSpec};
use crate::space::size_class::SizeClass;
use crate::stats::{Cause, CollectionKind};
use std::sync::atomic::Ordering;

fn heap(bytes: usize) -> Heap<Concurrent> {
    let config = HeapConfig::default()
        .with_max_bytes(bytes)
        .with_initial_bytes(bytes / 8)
        .with_sanity(true);
    Heap::new(config).unwrap()
}

fn pair(heap: &Heap<Concurrent>) -> Shape {
    let pair = ShapeSpec::fixed("Pair")
        .reference("first")
        .reference("second");
    heap.define(pair).unwrap()
}

fn objects(mutator: &mut Mutator<Concurrent>) -> usize {
    mutator.inspect(|world| {
        let shapes = world.shapes();
        let mut count = 0;
        // SAFETY: the world is stopped.
        unsafe {
            world
                .collector()
                .each_object(shapes, &mut |_, _| count += 1)
        };
        count
    })
}

/// Pushes a list of `length` pairs, linked by their first slot.
fn push_list(mutator: &mut Mutator<Concurrent>, pair: &Shape, length: usize) -> usize {
    let list = mutator.stack().push(Ref::NULL);
    for _ in 0..length {
        let new = mutator.allocate(pair).unwrap();
        let rest = mutator.stack().get(list);
        // SAFETY: both were read since the last safepoint.
        unsafe { mutator.write(new, 0, rest) };
        mutator.stack().set(list, new);
    }
    list
}

fn length(mutator: &Mutator<Concurrent>, mut list: Ref) -> usize {
    let mut length = 0;
    while list.is_object() {
        length += 1;
        // SAFETY: read from a root, and no safepoint since.
        list = unsafe { mutator.read(list, 0) };
    }
    length
}

#[test]
fn a_full_collection_keeps_exactly_what_is_reachable() {
    let heap = heap(4 << 20);
    let pair = pair(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let kept = push_list(mutator, &pair, 1000);
    let dropped = push_list(mutator, &pair, 3000);
    assert_eq!(objects(mutator), 4000);
    mutator.stack().truncate(dropped);
    mutator.collect();
    assert_eq!(objects(mutator), 1000);
    let list = mutator.stack().get(kept);
    assert_eq!(length(mutator, list), 1000);
    assert_eq!(heap.used(), 1000 * 16);
}

#[test]
fn a_full_collection_in_the_middle_of_a_cycle_still_collects_everything() {
    for steps in 1..20 {
        let heap = heap(4 << 20);
        let pair = pair(&heap);
        // SAFETY: the contract of the raw layer is kept throughout.
        let mutator = &mut unsafe { heap.mutator() };
        push_list(mutator, &pair, 5000);
        for _ in 0..steps {
            mutator.step();
        }
        // Dead now, but marked by the cycle under way, or born during it.
        push_list(mutator, &pair, 100);
        mutator.stack().truncate(0);
        mutator.collect();
        assert_eq!(objects(mutator), 0);
    }
}

#[test]
fn steps_end_a_cycle() {
    let heap = heap(4 << 20);
    let pair = pair(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    push_list(mutator, &pair, 3000);
    mutator.stack().truncate(0);
    push_list(mutator, &pair, 1000);
    let mut steps = 0;
    while heap
        .stats()
        .totals_of(CollectionKind::Concurrent)
        .collections
        == 0
    {
        mutator.step();
        steps += 1;
        assert!(steps < 1000, "the cycle does not end");
    }
    assert_eq!(objects(mutator), 1000);
    let stats = heap.stats();
    let record = stats.history().next().unwrap();
    assert_eq!(record.marked.objects, 1000);
    assert_eq!(record.freed.objects, 3000);
    assert!(record.pauses().count() >= 2, "initial mark and remark");
}

#[test]
fn a_reference_that_is_only_on_the_stack_survives_a_cycle() {
    // Loaded from the heap and unlinked there after the first look at the roots: without the
    // second look it would be lost.
    let heap = heap(4 << 20);
    let pair = pair(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let list = push_list(mutator, &pair, 2000);
    mutator.step();
    let head = mutator.stack().get(list);
    // SAFETY: read from a root, and no safepoint in between.
    let rest = unsafe {
        let rest = mutator.read(head, 0);
        mutator.write(head, 0, Ref::NULL);
        rest
    };
    mutator.stack().push(rest);
    for _ in 0..50 {
        mutator.step();
    }
    let rest = mutator.stack().get(list + 1);
    assert_eq!(length(mutator, rest), 1999);
}

#[test]
fn garbage_without_end_fits_into_a_small_heap() {
    let heap = heap(1 << 20);
    let pair = pair(&heap);
    let bytes = heap.define(ShapeSpec::bytes("bytes")).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let kept = push_list(mutator, &pair, 5000);
    for n in 0..300_000u32 {
        if n % 1000 == 0 {
            mutator.allocate_array(&bytes, 40_000).unwrap();
        }
        mutator.allocate(&pair).unwrap();
    }
    let list = mutator.stack().get(kept);
    assert_eq!(length(mutator, list), 5000);
    let collections = heap.stats().totals().collections;
    assert!(collections > 2, "{collections} collections");
}

#[test]
fn out_of_memory_is_an_error_and_the_heap_goes_on() {
    let heap = heap(1 << 20);
    let pair = pair(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let list = mutator.stack().push(Ref::NULL);
    let error = loop {
        match mutator.allocate(&pair) {
            Ok(new) => {
                let rest = mutator.stack().get(list);
                // SAFETY: both were read since the last safepoint.
                unsafe { mutator.write(new, 0, rest) };
                mutator.stack().set(list, new);
            }
            Err(error) => break error,
        }
    };
    assert!(!error.is_too_large());
    let head = mutator.stack().get(list);
    let count = length(mutator, head);
    assert!(count * 16 > 900 << 10, "only {count} pairs fitted");
    mutator.stack().truncate(0);
    push_list(mutator, &pair, 1000);
}

#[test]
fn an_allocation_waits_for_the_cycle_under_way_and_then_for_one_more() {
    // A collector without its thread, so that nothing happens but what is done here.
    let config = HeapConfig::default().with_max_bytes(256 << 10);
    let mut collector = Concurrent::new(&config).unwrap();
    let shapes = crate::shape::ShapeTable::new(0);
    let mut local = collector.attach();
    let request = Request {
        bytes: 16,
        class: SizeClass::of(16),
    };
    let mut refill =
        |collector: &mut Concurrent, effort| collector.refill(&shapes, &mut local, request, effort);
    // The fast path would use up each run first; here each refill takes a block.
    let mut blocks = 0;
    let seen = loop {
        match refill(&mut collector, Effort::Normal) {
            Refill::Ready(_) => blocks += 1,
            Refill::Wait(seen) => break seen,
            _ => panic!("the world was stopped before the collector was asked"),
        }
    };
    assert_eq!(blocks, 8);
    assert_eq!(seen, collector.progress());
    assert!(collector.requested.is_some(), "a cycle was asked for");
    // A cycle was marked meanwhile, and has found nothing.
    collector.marked_cycles += 1;
    assert!(matches!(
        refill(&mut collector, Effort::Normal),
        Refill::Pause(Cause::AllocationFailure)
    ));
    assert!(matches!(
        refill(&mut collector, Effort::Limit),
        Refill::Pause(Cause::AllocationFailure)
    ));
    // Asked in the middle of marking, it waits for a cycle that begins afterwards.
    collector.phase = Phase::Mark;
    for waits in [true, true, false] {
        let answer = refill(&mut collector, Effort::Normal);
        assert_eq!(matches!(answer, Refill::Wait(_)), waits);
        collector.marked_cycles += 1;
    }
}

#[test]
fn an_explicit_collection_gives_memory_back() {
    let heap = heap(32 << 20);
    let pair = pair(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    push_list(mutator, &pair, 1 << 20);
    assert!(heap.committed() >= 16 << 20);
    mutator.stack().truncate(0);
    mutator.collect();
    assert_eq!(heap.committed(), 0);
    assert_eq!(heap.used(), 0);
    push_list(mutator, &pair, 1000);
}

#[test]
fn large_arrays_are_marked_whole() {
    let heap = heap(8 << 20);
    let pair = pair(&heap);
    let array = heap.define(ShapeSpec::references("array")).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let large = mutator.allocate_array(&array, 10_000).unwrap();
    let large = mutator.stack().push(large);
    for slot in 0..10_000 {
        let new = mutator.allocate(&pair).unwrap();
        let array = mutator.stack().get(large);
        // SAFETY: both were read since the last safepoint.
        unsafe { mutator.write(array, slot, new) };
    }
    for _ in 0..100 {
        mutator.step();
    }
    mutator.collect();
    assert_eq!(objects(mutator), 10_001);
    mutator.stack().truncate(0);
    mutator.collect();
    assert_eq!(objects(mutator), 0);
}

#[test]
fn weak_references_ephemerons_and_guardians_are_decided_at_the_end_of_a_cycle() {
    let heap = heap(4 << 20);
    let pair = pair(&heap);
    let weak = heap
        .define(ShapeSpec::fixed("Weak").weak("target"))
        .unwrap();
    let ephemeron = heap
        .define(ShapeSpec::fixed("Ephemeron").ephemeron())
        .unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let guardian = mutator.create_guardian();
    let target = mutator.allocate(&pair).unwrap();
    let target = mutator.stack().push(target);
    let reference = mutator.allocate(&weak).unwrap();
    let reference = mutator.stack().push(reference);
    let entry = mutator.allocate(&ephemeron).unwrap();
    let entry = mutator.stack().push(entry);
    let value = mutator.allocate(&pair).unwrap();
    let get = |mutator: &mut Mutator<Concurrent>, root| mutator.stack().get(root);
    let (t, r, e) = (
        get(mutator, target),
        get(mutator, reference),
        get(mutator, entry),
    );
    // SAFETY: all were read since the last safepoint.
    unsafe {
        mutator.write_weak(r, 0, t);
        mutator.write_weak(e, 0, t);
        mutator.write_weak(e, 1, value);
    }
    mutator.guard(guardian, t);
    // Cycles by steps, then a full one: with the key alive the value stays.
    for _ in 0..20 {
        mutator.step();
    }
    mutator.collect();
    assert_eq!(objects(mutator), 4);
    assert_eq!(mutator.next_dead(guardian), None);

    mutator.stack().set(target, Ref::NULL);
    mutator.collect();
    let (r, e) = (get(mutator, reference), get(mutator, entry));
    let back = mutator.next_dead(guardian).unwrap();
    // SAFETY: read from roots since the last safepoint.
    unsafe {
        assert!(mutator.read(r, 0).is_null(), "the weak slot was cleared");
        assert_eq!(
            mutator.read(e, 0),
            back,
            "the guardian brought the key back"
        );
        assert!(mutator.read(e, 1).is_object(), "and so the value");
    }
    mutator.collect();
    assert_eq!(objects(mutator), 2);
    let e = get(mutator, entry);
    // SAFETY: as above.
    assert!(unsafe { mutator.read(e, 0).is_null() && mutator.read(e, 1).is_null() });
}

#[test]
fn chains_of_ephemerons_are_followed_beside_the_mutators() {
    let heap = heap(4 << 20);
    let pair = pair(&heap);
    let ephemeron = heap
        .define(ShapeSpec::fixed("Ephemeron").ephemeron())
        .unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    // Each value is the key of the next; a list holds the ephemerons, so that they are found in
    // the worst order.
    let first = mutator.allocate(&pair).unwrap();
    let key = mutator.stack().push(first);
    mutator.stack().push(first);
    let list = mutator.stack().push(Ref::NULL);
    for _ in 0..1000 {
        let value = mutator.allocate(&pair).unwrap();
        let root = mutator.stack().push(value);
        let entry = mutator.allocate(&ephemeron).unwrap();
        let entry_root = mutator.stack().push(entry);
        let holder = mutator.allocate(&pair).unwrap();
        let rest = mutator.stack().get(list);
        let entry = mutator.stack().get(entry_root);
        let value = mutator.stack().get(root);
        let old = mutator.stack().get(key);
        // SAFETY: all were read since the last safepoint.
        unsafe {
            mutator.write_weak(entry, 0, old);
            mutator.write_weak(entry, 1, value);
            mutator.write(holder, 0, rest);
            mutator.write(holder, 1, entry);
        }
        mutator.stack().set(list, holder);
        mutator.stack().set(key, value);
        mutator.stack().truncate(root);
    }
    mutator.stack().set(key, Ref::NULL);
    while heap
        .stats()
        .totals_of(CollectionKind::Concurrent)
        .collections
        < 3
    {
        mutator.step();
    }
    assert_eq!(objects(mutator), 3001);
}

#[test]
fn marking_does_not_lose_an_embedders_flags() {
    let heap = heap(8 << 20);
    let pair = pair(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let list = push_list(mutator, &pair, 20_000);
    for round in 0..20 {
        if round % 4 == 0 {
            mutator.step();
        }
        let mut at = mutator.stack().get(list);
        while at.is_object() {
            // SAFETY: read from a root; no safepoint in this loop.
            unsafe {
                let cell = object::header_cell(at.address());
                let before = cell.fetch_xor(USER_FLAG_0, Ordering::Relaxed);
                assert_eq!(before & USER_FLAG_0 != 0, round % 2 == 1);
                at = mutator.read(at, 0);
            }
        }
        mutator.safepoint();
    }
}

#[test]
fn heaps_come_and_go_in_the_middle_of_cycles() {
    for n in 0..200 {
        let heap = heap(2 << 20);
        let pair = pair(&heap);
        // SAFETY: the contract of the raw layer is kept throughout.
        let mutator = &mut unsafe { heap.mutator() };
        push_list(mutator, &pair, 100 + n * 50);
        mutator.step();
    }
    if cfg!(target_os = "linux") {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let ours = threads
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .filter(|name| name.starts_with("liveoak-concurr"))
            .count();
        // Other tests of this process have heaps of their own meanwhile.
        assert!(ours < 60, "{ours} threads were left behind");
    }
}

#[test]
fn a_limit_below_one_block_is_refused() {
    let config = HeapConfig::default().with_max_bytes(1000);
    let refused = Heap::<Concurrent>::new(config).err();
    assert!(matches!(refused, Some(HeapError::LimitTooSmall { .. })));
}
