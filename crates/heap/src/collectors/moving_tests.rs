//! Tests that every collector which moves all objects must pass.

use super::{MarkCompact, MarkSweep, Semispace};
use crate::collector::Collector;
use crate::config::HeapConfig;
use crate::error::{AllocError, HeapError};
use crate::heap::Heap;
use crate::mutator::Mutator;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Kind, Shape, ShapeSpec};
use crate::space::BLOCK_BYTES;
use proptest::prelude::*;

/// Instantiates a generic test for each collector.
macro_rules! for_each_collector {
    ($($test:ident),+ $(,)?) => {
        mod semispace {
            $(#[test] fn $test() { super::$test::<super::Semispace>(); })+
        }
        mod mark_compact {
            $(#[test] fn $test() { super::$test::<super::MarkCompact>(); })+
        }
    };
}

for_each_collector!(
    every_kind_of_reference_follows_its_object,
    a_full_heap_is_an_error_and_recovers,
    limits_are_checked,
    large_objects_are_kept_and_freed,
    a_large_object_may_take_the_whole_heap,
    threads_share_the_heap,
    a_deep_list_survives,
    memory_is_given_back,
    survivors_are_counted,
    agrees_with_mark_sweep,
);

fn config() -> HeapConfig {
    HeapConfig::default()
        .with_max_bytes(16 << 20)
        .with_initial_bytes(256 << 10)
        .with_sanity(true)
}

/// A node with a number and two references.
const NUMBER: usize = 0;
const LEFT: usize = 2;
const RIGHT: usize = 3;

fn node<C: Collector>(heap: &Heap<C>) -> Shape {
    let spec = ShapeSpec::fixed("Node").word("number");
    heap.define(spec.reference("left").reference("right"))
        .unwrap()
}

fn numbered<C: Collector>(mutator: &mut Mutator<C>, node: &Shape, number: u64) -> Ref {
    let object = mutator.allocate(node).unwrap();
    // SAFETY: allocated just now.
    unsafe { mutator.write_word(object, NUMBER, number) };
    object
}

fn number<C: Collector>(mutator: &Mutator<C>, object: Ref) -> u64 {
    // SAFETY: the tests pass references that they have just read from a root.
    unsafe { mutator.read_word(object, NUMBER) }
}

fn every_kind_of_reference_follows_its_object<C: Collector>() {
    let heap: Heap<C> = Heap::new(config()).unwrap();
    let node = node(&heap);
    let array = heap.define(ShapeSpec::references("Array")).unwrap();
    let watcher = ShapeSpec::fixed("Watcher")
        .weak("weak")
        .with("phantom", Kind::Phantom)
        .ephemeron()
        .reference("strong");
    let watcher = heap.define(watcher).unwrap();
    let (weak, phantom, key, value, strong) = (0, 1, 2, 3, 4);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let guardian = mutator.create_guardian();
    // Garbage before everything, so that compaction has to move it.
    for i in 0..1000 {
        numbered(mutator, &node, i);
    }
    let small = mutator.allocate_array(&array, 20).unwrap();
    let small = mutator.stack().push(small);
    let large = mutator.allocate_array(&array, 30_000).unwrap();
    let large = mutator.stack().push(large);
    let special = mutator.allocate(&watcher).unwrap();
    let special = mutator.stack().push(special);
    let doomed = mutator.allocate(&watcher).unwrap();
    let doomed = mutator.stack().push(doomed);
    let global = numbered(mutator, &node, 1);
    let global = mutator.create_global(global);
    // SAFETY: in this block every reference is read again after each allocation.
    unsafe {
        for i in 0..20 {
            let object = numbered(mutator, &node, 100 + i);
            let small = mutator.stack().get(small);
            mutator.write(small, i as usize, object);
            numbered(mutator, &node, 0);
        }
        for i in 0..300 {
            let object = numbered(mutator, &node, 1000 + i);
            let large = mutator.stack().get(large);
            mutator.write(large, i as usize * 100, object);
            numbered(mutator, &node, 0);
        }
        let targets = mutator.stack().get(small);
        let target = |slot| mutator.read(targets, slot);
        let (t0, t1, t2, t3) = (target(0), target(1), target(2), target(3));
        let special_now = mutator.stack().get(special);
        mutator.write_weak(special_now, weak, t0);
        mutator.write_weak(special_now, phantom, t1);
        mutator.write_weak(special_now, key, t2);
        mutator.write(special_now, strong, t3);
        let only_value = numbered(mutator, &node, 77);
        let special_now = mutator.stack().get(special);
        mutator.write_weak(special_now, value, only_value);
        // The doomed watcher's targets are reachable from it alone.
        for (slot, n) in [(weak, 50), (phantom, 51), (key, 52), (value, 53)] {
            let object = numbered(mutator, &node, n);
            let doomed = mutator.stack().get(doomed);
            mutator.write_weak(doomed, slot, object);
        }
        let alive = mutator.stack().get(small);
        let alive = mutator.read(alive, 5);
        mutator.guard(guardian, alive);
        let dead = numbered(mutator, &node, 99);
        mutator.guard(guardian, dead);
        for round in 0..4 {
            if round % 2 == 0 {
                mutator.collect();
            } else {
                mutator.step();
            }
            for _ in 0..500 {
                numbered(mutator, &node, 0);
            }
            let targets = mutator.stack().get(small);
            for i in 0..20 {
                let object = mutator.read(targets, i);
                assert_eq!(number(mutator, object), 100 + i as u64);
            }
            let many = mutator.stack().get(large);
            for i in 0..300 {
                let object = mutator.read(many, i * 100);
                assert_eq!(number(mutator, object), 1000 + i as u64);
                assert!(mutator.read(many, i * 100 + 1).is_null());
            }
            let special = mutator.stack().get(special);
            assert_eq!(mutator.read(special, weak), mutator.read(targets, 0));
            assert_eq!(mutator.read(special, phantom), mutator.read(targets, 1));
            assert_eq!(mutator.read(special, key), mutator.read(targets, 2));
            assert_eq!(mutator.read(special, strong), mutator.read(targets, 3));
            let kept = mutator.read(special, value);
            assert_eq!(number(mutator, kept), 77);
            let doomed = mutator.stack().get(doomed);
            for slot in [weak, phantom, key, value] {
                assert!(mutator.read(doomed, slot).is_null());
            }
            let global = mutator.global(global).unwrap();
            assert_eq!(number(mutator, global), 1);
        }
        let dead = mutator.next_dead(guardian).unwrap();
        assert_eq!(number(mutator, dead), 99);
        assert_eq!(mutator.next_dead(guardian), None);
        // The object that was alive is still watched, at its new place.
        let targets = mutator.stack().get(small);
        mutator.write(targets, 5, Ref::NULL);
        mutator.collect();
        mutator.collect();
        let dead = mutator.next_dead(guardian).unwrap();
        assert_eq!(number(mutator, dead), 105);
    }
}

/// Fills the heap with a list until there is no more room.
fn fill<C: Collector>(mutator: &mut Mutator<C>, node: &Shape) -> (u64, AllocError) {
    let head = mutator.stack().push(Ref::NULL);
    let mut length = 0;
    loop {
        match mutator.allocate(node) {
            Ok(object) => {
                let next = mutator.stack().get(head);
                // SAFETY: read and allocated just now.
                unsafe {
                    mutator.write_word(object, NUMBER, length);
                    mutator.write(object, LEFT, next);
                }
                mutator.stack().set(head, object);
                length += 1;
            }
            Err(error) => return (length, error),
        }
    }
}

fn a_full_heap_is_an_error_and_recovers<C: Collector>() {
    let limit = 1 << 20;
    let config = config().with_max_bytes(limit);
    let heap: Heap<C> = Heap::new(config).unwrap();
    let node = node(&heap);
    let words = heap.define(ShapeSpec::words("Words")).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let mut lengths = Vec::new();
    for _ in 0..3 {
        let (length, error) = fill(mutator, &node);
        assert!(!error.is_too_large(), "{error}");
        let large = mutator.allocate_array(&words, 10_000);
        assert!(!large.unwrap_err().is_too_large());
        let mut at = mutator.stack().get(0);
        for expected in (0..length).rev() {
            assert_eq!(number(mutator, at), expected);
            // SAFETY: nothing is allocated meanwhile.
            at = unsafe { mutator.read(at, LEFT) };
        }
        assert!(at.is_null());
        lengths.push(length);
        mutator.stack().truncate(0);
        mutator.allocate_array(&words, 10_000).unwrap();
    }
    assert!(
        lengths[0] as usize * 24 > limit / 2 - BLOCK_BYTES,
        "{lengths:?}"
    );
    assert!(lengths.iter().all(|&l| l == lengths[0]), "{lengths:?}");
}

fn limits_are_checked<C: Collector>() {
    let small = Heap::<C>::new(config().with_max_bytes(BLOCK_BYTES));
    assert!(matches!(small, Err(HeapError::LimitTooSmall { .. })));
    let heap: Heap<C> = Heap::new(config().with_max_bytes(256 << 10)).unwrap();
    let words = heap.define(ShapeSpec::words("Words")).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    for length in [40_000, 1 << 30, u32::MAX] {
        let result = mutator.allocate_array(&words, length);
        assert!(result.unwrap_err().is_too_large());
    }
    mutator.allocate_array(&words, 20_000).unwrap();
}

fn a_large_object_may_take_the_whole_heap<C: Collector>() {
    let limit = 64 * BLOCK_BYTES;
    let heap: Heap<C> = Heap::new(config().with_max_bytes(limit)).unwrap();
    let node = node(&heap);
    let bytes = heap.define(ShapeSpec::bytes("Bytes")).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    // The halves have been used to their limit before.
    fill(mutator, &node);
    mutator.stack().truncate(0);
    let largest = limit as u32 - 8;
    let all = mutator.allocate_array(&bytes, largest).unwrap();
    mutator.stack().push(all);
    assert!(heap.committed() <= limit + 2 * crate::memory::HUGE_PAGE);
    let more = mutator.allocate(&node);
    assert!(!more.unwrap_err().is_too_large());
    mutator.stack().truncate(0);
    mutator.allocate(&node).unwrap();
    let over = mutator.allocate_array(&bytes, largest + 1);
    assert!(over.unwrap_err().is_too_large());
}

fn large_objects_are_kept_and_freed<C: Collector>() {
    let heap: Heap<C> = Heap::new(config()).unwrap();
    let node = node(&heap);
    let array = heap.define(ShapeSpec::references("Array")).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    // A chain of large arrays, each with a small object of its own.
    let head = mutator.stack().push(Ref::NULL);
    for i in 0..20u64 {
        let large = mutator.allocate_array(&array, 10_000).unwrap();
        let root = mutator.stack().push(large);
        let small = numbered(mutator, &node, i);
        let large = mutator.stack().get(root);
        mutator.stack().truncate(root);
        let next = mutator.stack().get(head);
        // SAFETY: read since the last allocation.
        unsafe {
            mutator.write(large, 0, next);
            mutator.write(large, 9_999, small);
        }
        mutator.stack().set(head, large);
    }
    mutator.collect();
    let mut at = mutator.stack().get(head);
    for i in (0..20).rev() {
        // SAFETY: nothing is allocated meanwhile.
        unsafe {
            let small = mutator.read(at, 9_999);
            assert_eq!(number(mutator, small), i);
            at = mutator.read(at, 0);
        }
    }
    let before = heap.used();
    // SAFETY: read just now.
    unsafe {
        let first = mutator.stack().get(head);
        let second = mutator.read(first, 0);
        mutator.write(second, 0, Ref::NULL);
    }
    mutator.collect();
    assert_eq!(before - heap.used(), 18 * (40_008 + 24));
    mutator.stack().truncate(0);
    mutator.collect();
    assert_eq!(heap.used(), 0);
}

fn threads_share_the_heap<C: Collector>() {
    let heap: Heap<C> = Heap::new(config()).unwrap();
    let node = node(&heap);
    let array = heap.define(ShapeSpec::references("Array")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let heap = heap.clone();
            scope.spawn(move || {
                // SAFETY: the contract of the raw layer is kept throughout.
                let mutator = &mut unsafe { heap.mutator() };
                let table = mutator.allocate_array(&array, 100).unwrap();
                let table = mutator.stack().push(table);
                for i in 0..40_000u64 {
                    let object = numbered(mutator, &node, thread << 32 | i);
                    let table = mutator.stack().get(table);
                    let slot = (i % 100) as usize;
                    // SAFETY: read and allocated since the last safepoint.
                    unsafe {
                        let old = mutator.read(table, slot);
                        if !old.is_null() {
                            assert_eq!(number(mutator, old), thread << 32 | (i - 100));
                        }
                        mutator.write(table, slot, object);
                    }
                    if i % 10_000 == thread {
                        mutator.collect();
                    }
                    if i % 8000 == 0 {
                        mutator.blocking(std::thread::yield_now);
                    }
                }
            });
        }
    });
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    mutator.collect();
    assert_eq!(heap.used(), 0);
}

fn a_deep_list_survives<C: Collector>() {
    let config = config().with_max_bytes(128 << 20).with_sanity(false);
    let heap: Heap<C> = Heap::new(config).unwrap();
    let node = node(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let head = mutator.stack().push(Ref::NULL);
    let length = 1_000_000;
    for i in 0..length {
        let object = numbered(mutator, &node, i);
        let next = mutator.stack().get(head);
        // SAFETY: read and allocated just now.
        unsafe { mutator.write(object, RIGHT, next) };
        mutator.stack().set(head, object);
    }
    mutator.collect();
    assert_eq!(heap.used() as u64, length * 24);
    let mut at = mutator.stack().get(head);
    for i in (0..length).rev() {
        assert_eq!(number(mutator, at), i);
        // SAFETY: nothing is allocated meanwhile.
        at = unsafe { mutator.read(at, RIGHT) };
    }
    mutator.stack().truncate(0);
    mutator.collect();
    assert_eq!(heap.used(), 0);
}

fn memory_is_given_back<C: Collector>() {
    let config = config().with_max_bytes(64 << 20).with_sanity(false);
    let heap: Heap<C> = Heap::new(config).unwrap();
    let node = node(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    fill(mutator, &node);
    assert!(heap.committed() > 48 << 20);
    assert!(heap.committed() <= 64 << 20);
    mutator.stack().truncate(0);
    mutator.collect();
    assert!(heap.committed() <= 2 * crate::memory::HUGE_PAGE);
}

fn survivors_are_counted<C: Collector>() {
    let heap: Heap<C> = Heap::new(config()).unwrap();
    let node = node(&heap);
    let array = heap.define(ShapeSpec::references("Array")).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let large = mutator.allocate_array(&array, 10_000).unwrap();
    mutator.stack().push(large);
    for i in 0..100 {
        let object = numbered(mutator, &node, i);
        if i % 4 == 0 {
            mutator.stack().push(object);
        }
    }
    mutator.collect();
    let stats = heap.stats();
    let record = stats.history().last().expect("one collection");
    assert_eq!(record.before.objects, 101);
    assert_eq!(record.after.objects, 26);
    assert_eq!(record.freed.objects, 75);
    assert_eq!(record.freed.bytes, 75 * 24);
    assert_eq!(record.after.bytes, 25 * 24 + 40_008);
}

/// An operation on a machine of eight root slots.
#[derive(Clone, Debug)]
enum Op {
    Node {
        to: usize,
    },
    Array {
        to: usize,
        length: u32,
    },
    Watcher {
        to: usize,
        weak: usize,
        key: usize,
        value: usize,
    },
    Store {
        object: usize,
        slot: usize,
        value: usize,
    },
    Load {
        object: usize,
        slot: usize,
        to: usize,
    },
    Clear {
        root: usize,
    },
    Garbage {
        count: usize,
    },
    Step,
    Collect,
}

const ROOTS: usize = 8;

fn op() -> impl Strategy<Value = Op> {
    let root = || 0..ROOTS;
    prop_oneof![
        8 => root().prop_map(|to| Op::Node { to }),
        2 => (root(), prop_oneof![0u32..80, 2000u32..5000]).prop_map(|(to, length)| Op::Array { to, length }),
        2 => (root(), root(), root(), root())
            .prop_map(|(to, weak, key, value)| Op::Watcher { to, weak, key, value }),
        10 => (root(), any::<usize>(), root()).prop_map(|(object, slot, value)| Op::Store { object, slot, value }),
        3 => (root(), any::<usize>(), root()).prop_map(|(object, slot, to)| Op::Load { object, slot, to }),
        3 => root().prop_map(|root| Op::Clear { root }),
        2 => (0usize..300).prop_map(|count| Op::Garbage { count }),
        1 => Just(Op::Step),
        1 => Just(Op::Collect),
    ]
}

/// Runs the operations, and gives the graph that the roots reach after each full collection, with
/// objects numbered in the order of a walk.
fn run<C: Collector>(ops: &[Op]) -> Vec<Vec<(u64, Vec<usize>)>> {
    let config = HeapConfig::default()
        .with_max_bytes(8 << 20)
        .with_initial_bytes(64 << 10)
        .with_sanity(true);
    let heap: Heap<C> = Heap::new(config).unwrap();
    let node = node(&heap);
    let array = heap.define(ShapeSpec::references("Array")).unwrap();
    let watcher = ShapeSpec::fixed("Watcher").word("number").weak("weak");
    let watcher = watcher.ephemeron().reference("strong");
    let watcher = heap.define(watcher).unwrap();
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    for _ in 0..ROOTS {
        mutator.stack().push(Ref::NULL);
    }
    let mut graphs = Vec::new();
    for (n, op) in ops.iter().chain([&Op::Collect]).enumerate() {
        match *op {
            Op::Node { to } => {
                let object = numbered(mutator, &node, n as u64);
                mutator.stack().set(to, object);
            }
            Op::Array { to, length } => {
                let object = mutator.allocate_array(&array, length).unwrap();
                mutator.stack().set(to, object);
            }
            Op::Watcher {
                to,
                weak,
                key,
                value,
            } => {
                let object = numbered(mutator, &watcher, n as u64);
                for (slot, root) in [(2, weak), (3, key), (4, value)] {
                    let target = mutator.stack().get(root);
                    // SAFETY: allocated and read since the last safepoint; the slots are weak.
                    unsafe { mutator.write_weak(object, slot, target) };
                }
                mutator.stack().set(to, object);
            }
            Op::Store {
                object,
                slot,
                value,
            } => {
                let (object, value) = (mutator.stack().get(object), mutator.stack().get(value));
                if let Some(slot) = strong_slot(mutator, object, slot) {
                    // SAFETY: both were read from roots just now.
                    unsafe { mutator.write(object, slot, value) };
                }
            }
            Op::Load { object, slot, to } => {
                let object = mutator.stack().get(object);
                if let Some(slot) = strong_slot(mutator, object, slot) {
                    // SAFETY: read from a root just now.
                    let value = unsafe { mutator.read(object, slot) };
                    mutator.stack().set(to, value);
                }
            }
            Op::Clear { root } => {
                mutator.stack().set(root, Ref::NULL);
            }
            Op::Garbage { count } => {
                for _ in 0..count {
                    mutator.allocate(&node).unwrap();
                }
            }
            Op::Step => mutator.step(),
            Op::Collect => {
                mutator.collect();
                graphs.push(graph(mutator));
            }
        }
    }
    graphs
}

/// Some slot of `object` that holds a strong reference, if it has any.
fn strong_slot<C: Collector>(mutator: &Mutator<C>, object: Ref, pick: usize) -> Option<usize> {
    let mut slots = Vec::new();
    if object.is_object() {
        let address = object.address();
        // SAFETY: the caller has just read the object from a root.
        unsafe {
            let word = object::header(address);
            object::each_strong_slot(mutator.shapes(), address, word, |slot| {
                slots.push((slot - address - 8) / 4)
            });
        }
    }
    (!slots.is_empty()).then(|| slots[pick % slots.len()])
}

/// Everything that the roots reach, weak slots included: contents and targets, numbered in the
/// order of the walk.
fn graph<C: Collector>(mutator: &mut Mutator<C>) -> Vec<(u64, Vec<usize>)> {
    let mut order: Vec<Ref> = Vec::new();
    let mut numbers = std::collections::HashMap::new();
    let mut visit = |reference: Ref, order: &mut Vec<Ref>| {
        if !reference.is_object() {
            return 0;
        }
        *numbers.entry(reference).or_insert_with(|| {
            order.push(reference);
            order.len()
        })
    };
    let roots: Vec<Ref> = mutator.stack().as_slice().to_vec();
    let mut result = vec![(0, roots.iter().map(|&r| visit(r, &mut order)).collect())];
    let mut next = 0;
    while next < order.len() {
        let address = order[next].address();
        // SAFETY: nothing is allocated while the graph is walked.
        unsafe {
            let word = object::header(address);
            let info = object::special(mutator.shapes(), word);
            let content = if info.element.is_some() {
                u64::from(word.aux())
            } else {
                mutator.read_word(order[next], NUMBER)
            };
            let mut targets = Vec::new();
            object::each_reference_slot(mutator.shapes(), address, word, |_, slot| {
                targets.push(visit(object::load(slot), &mut order))
            });
            result.push((content, targets));
        }
        next += 1;
    }
    result
}

fn agrees_with_mark_sweep<C: Collector>() {
    let config = ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(ops in prop::collection::vec(op(), 1..400))| {
        prop_assert_eq!(run::<C>(&ops), run::<MarkSweep>(&ops));
    });
}

/// The numbers of all nodes in the order of their addresses, and the gaps between them.
fn numbers_in_place(mutator: &mut Mutator<MarkCompact>) -> (Vec<u64>, usize) {
    mutator.inspect(|world| {
        let shapes = world.shapes();
        let (mut numbers, mut gaps, mut end) = (Vec::new(), 0, None);
        // SAFETY: the world is stopped, and every object is a node.
        unsafe {
            world.collector().each_object(shapes, &mut |address, word| {
                gaps += address - end.unwrap_or(address);
                end = Some(address + object::bytes(shapes, word));
                numbers.push(*((address + 8) as *const u64));
            });
        }
        (numbers, gaps)
    })
}

#[test]
fn compaction_keeps_the_order() {
    for keep in [2u64, 7, 50] {
        let heap: Heap<MarkCompact> = Heap::new(config()).unwrap();
        let node = node(&heap);
        // SAFETY: the contract of the raw layer is kept throughout.
        let mutator = &mut unsafe { heap.mutator() };
        let mut random = keep;
        let mut next = 0;
        for round in 0..8 {
            for _ in 0..2000 {
                let object = numbered(mutator, &node, next);
                next += 1;
                mutator.stack().push(object);
            }
            // Drop one in `keep`, and turn the roots round: the order of tracing must not matter.
            let roots = mutator.stack().as_mut_slice();
            for root in roots.iter_mut() {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                if (random >> 33) % keep == 0 {
                    *root = Ref::NULL;
                }
            }
            roots.reverse();
            let mut live: Vec<u64> = Vec::new();
            for i in 0..mutator.stack().len() {
                let root = mutator.stack().get(i);
                if !root.is_null() {
                    live.push(number(mutator, root));
                }
            }
            live.sort_unstable();
            if round % 2 == 0 {
                mutator.collect();
                assert_eq!(numbers_in_place(mutator), (live, 0));
            } else {
                mutator.step();
                let (numbers, gaps) = numbers_in_place(mutator);
                assert_eq!(numbers, live);
                assert!(gaps * 10 <= heap.used() + gaps);
            }
        }
    }
}

#[test]
fn what_is_settled_stays() {
    let heap: Heap<MarkCompact> = Heap::new(config()).unwrap();
    let node = node(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    for i in 0..3000 {
        let object = numbered(mutator, &node, i);
        mutator.stack().push(object);
    }
    mutator.collect();
    let before = mutator.stack().as_slice().to_vec();
    for i in (0..3000).step_by(100) {
        mutator.stack().set(i, Ref::NULL);
    }
    mutator.step();
    for (i, &old) in before.iter().enumerate().take(2900) {
        let now = mutator.stack().get(i);
        assert!(now == old || i % 100 == 0);
    }
    let (_, gaps) = numbers_in_place(mutator);
    assert!(gaps > 0);
    mutator.collect();
    let (_, gaps) = numbers_in_place(mutator);
    assert_eq!(gaps, 0);
}

#[test]
fn copies_lie_near_what_led_to_them() {
    let heap: Heap<Semispace> = Heap::new(config()).unwrap();
    let node = node(&heap);
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    // Many lists, allocated in turns. Copying follows as many at a time as its queue has places.
    const LISTS: u64 = 200;
    for _ in 0..LISTS {
        mutator.stack().push(Ref::NULL);
    }
    for i in 0..LISTS * 20 {
        let object = numbered(mutator, &node, i);
        let head = (i % LISTS) as usize;
        let next = mutator.stack().get(head);
        // SAFETY: read and allocated just now.
        unsafe { mutator.write(object, LEFT, next) };
        mutator.stack().set(head, object);
    }
    let near = |mutator: &mut Mutator<Semispace>| {
        let mut near = 0;
        for head in 0..LISTS as usize {
            let mut at = mutator.stack().get(head);
            while !at.is_null() {
                // SAFETY: nothing is allocated meanwhile.
                let next = unsafe { mutator.read(at, LEFT) };
                if at.address().abs_diff(next.address()) <= 24 * crate::copy::QUEUE {
                    near += 1;
                }
                at = next;
            }
        }
        near
    };
    assert_eq!(near(mutator), 0);
    mutator.collect();
    assert!(near(mutator) > LISTS * 17);
}
