//! Cycles: found when dead, left alone when not.

use super::*;

/// Makes the cycle `a -> b -> a`, `a` being the root's object.
fn two_cycle(f: &mut Fixture) -> usize {
    let (a, b) = (f.rooted_pair(), f.rooted_pair());
    let (x, y) = (f.get(a), f.get(b));
    f.write(x, 0, y);
    f.write(y, 0, x);
    f.mutator.stack().truncate(b);
    a
}

#[test]
fn new_cycles_cost_nothing() {
    let mut f = Fixture::new();
    let a = two_cycle(&mut f);
    f.mutator.stack().truncate(a);
    f.epoch();
    assert_eq!(f.objects(), 0);
    assert_eq!(f.collections(CollectionKind::Cycles), 0);
}

#[test]
fn a_counted_cycle_dies_with_its_last_root() {
    let mut f = Fixture::new();
    let a = two_cycle(&mut f);
    f.collect();
    assert_eq!(f.objects(), 2);
    f.mutator.stack().truncate(a);
    f.collect();
    assert_eq!(f.objects(), 0);
}

#[test]
fn an_object_that_refers_to_itself_dies() {
    let mut f = Fixture::new();
    let a = f.rooted_pair();
    let x = f.get(a);
    f.write(x, 0, x);
    f.write(x, 1, x);
    f.epoch();
    assert_eq!(f.count(x), 3);
    f.mutator.stack().truncate(a);
    f.collect();
    assert_eq!(f.objects(), 0);
}

#[test]
fn a_cycle_hanging_off_a_live_object_lives() {
    let mut f = Fixture::new();
    let anchor = f.rooted_pair();
    let cycle = two_cycle(&mut f);
    let (x, y) = (f.get(anchor), f.get(cycle));
    f.write(x, 1, y);
    f.mutator.stack().truncate(cycle);
    f.collect();
    assert_eq!(f.objects(), 3);
    // A candidate, since it lost its root; tried and found alive, its counts restored.
    let partner = f.read(y, 0);
    assert_eq!((f.count(y), f.count(partner)), (2, 1));
    f.write(x, 1, Ref::NULL);
    f.collect();
    assert_eq!(f.objects(), 1);
}

#[test]
fn a_dead_cycle_lets_go_of_what_it_held() {
    let mut f = Fixture::new();
    let (held, other) = (f.rooted_pair(), f.rooted_pair());
    let cycle = two_cycle(&mut f);
    let (x, y, z) = (f.get(held), f.get(other), f.get(cycle));
    f.write(z, 1, x);
    let partner = f.read(z, 0);
    f.write(partner, 1, y);
    f.mutator.stack().set(other, Ref::NULL);
    f.epoch();
    assert_eq!((f.count(x), f.count(y)), (2, 1));
    f.mutator.stack().truncate(cycle);
    f.collect();
    assert_eq!(f.count(x), 1);
    assert_eq!(f.objects(), 1, "the cycle and what only it held are gone");
}

#[test]
fn a_chain_of_cycles_goes_at_once() {
    let mut f = Fixture::new();
    let first = two_cycle(&mut f);
    for _ in 0..50 {
        let next = two_cycle(&mut f);
        let (x, y) = (f.get(first), f.get(next));
        let partner = f.read(y, 0);
        f.write(partner, 1, x);
        f.mutator.stack().set(first, y);
        f.mutator.stack().truncate(next);
        f.epoch();
    }
    f.collect();
    assert_eq!(f.objects(), 102);
    f.mutator.stack().truncate(first);
    f.collect();
    assert_eq!(f.objects(), 0);
    assert_eq!(
        f.collections(CollectionKind::Full),
        0,
        "trial deletion sufficed"
    );
}

#[test]
fn a_new_inner_reference_does_not_hide_a_dead_cycle() {
    // In one epoch a cycle loses its last outer reference and gains an inner one: no count falls.
    let mut f = Fixture::new();
    let anchor = f.rooted_pair();
    let cycle = two_cycle(&mut f);
    let (x, y) = (f.get(anchor), f.get(cycle));
    f.write(x, 0, y);
    f.mutator.stack().truncate(cycle);
    f.collect();
    let partner = f.read(y, 0);
    f.write(partner, 1, y);
    f.write(x, 0, Ref::NULL);
    f.collect();
    assert_eq!(f.objects(), 1);
}

#[test]
fn a_cyclic_list_of_a_million_dies() {
    let body = || {
        let mut f = Fixture::with(large_config());
        f.mutator
            .inspect(|world| world.collector().patience = f64::INFINITY);
        let head = f.list(1);
        let last = f.get(head);
        let last = f.push(last);
        // Lengthen the list, and close it.
        for _ in 0..1_000_000 {
            let cell = f.pair();
            let next = f.get(head);
            f.write(cell, 1, next);
            f.mutator.stack().set(head, cell);
        }
        let (first, end) = (f.get(head), f.get(last));
        f.write(end, 1, first);
        f.collect();
        assert_eq!(f.objects(), 1_000_001);
        f.mutator.stack().truncate(head);
        f.collect();
        assert_eq!(f.objects(), 0);
        assert_eq!(f.collections(CollectionKind::Full), 0);
    };
    let thread = std::thread::Builder::new().stack_size(128 << 10);
    thread.spawn(body).unwrap().join().unwrap();
}

#[test]
fn candidates_that_lead_everywhere_are_settled_by_tracing() {
    let mut f = Fixture::with(large_config());
    let root = f.list(20_000);
    f.epoch();
    // The old head loses its root and is held by the new one: a candidate that leads to everything.
    let (head, next) = (f.pair(), f.get(root));
    f.write(head, 1, next);
    f.mutator.stack().set(root, head);
    f.collect();
    assert_eq!(f.collections(CollectionKind::Full), 1);
    assert_eq!(f.objects(), 20_001);
    assert_eq!(f.count(next), 1, "counts are right again");
    f.mutator.stack().truncate(root);
    f.epoch();
    assert_eq!(f.objects(), 0);
}

#[test]
fn dead_cycles_do_not_fill_the_heap() {
    let mut f = Fixture::with(config().with_max_bytes(1 << 20));
    for round in 0..2000 {
        let root = two_cycle(&mut f);
        let x = f.get(root);
        for _ in 0..20 {
            let y = f.pair();
            f.write(y, 0, x);
            f.write(x, 1, y);
        }
        // Counted before it dies, so that only trial deletion can find it.
        if round % 50 == 0 {
            f.epoch();
        }
        f.mutator.stack().truncate(root);
    }
    f.collect();
    assert_eq!(f.objects(), 0);
}

#[test]
fn objects_that_die_in_the_buffer_are_freed() {
    let mut f = Fixture::new();
    // 3000 pairs with two referrers each lose one (candidates), then the other.
    let shape = f.array;
    let arrays: Vec<usize> = (0..2)
        .map(|_| {
            let array = f.mutator.allocate_array(&shape, 3000).unwrap();
            f.push(array)
        })
        .collect();
    for slot in 0..3000 {
        let pair = f.pair();
        for &array in &arrays {
            let array = f.get(array);
            f.write(array, slot, pair);
        }
    }
    f.epoch();
    for &array in &arrays {
        let array = f.get(array);
        for slot in 0..3000 {
            f.write(array, slot, Ref::NULL);
        }
        f.epoch();
    }
    assert_eq!(f.objects(), 2);
    let buffered = f
        .mutator
        .inspect(|world| world.collector().candidates.len());
    assert_eq!(buffered, 0, "the buffer was purged");
    let committed = f.heap.committed();
    assert!(committed <= 4 << 15, "{committed} bytes for two arrays");
}

#[test]
fn many_candidates_are_settled_by_tracing() {
    let mut f = Fixture::new();
    let shape = f.array;
    let array = f.mutator.allocate_array(&shape, 5000).unwrap();
    let root = f.push(array);
    for slot in 0..5000 {
        let pair = f.pair();
        let array = f.get(root);
        f.write(pair, 0, pair);
        f.write(array, slot, pair);
    }
    f.epoch();
    let array = f.get(root);
    for slot in 0..4000 {
        f.write(array, slot, Ref::NULL);
    }
    f.collect();
    assert_eq!(f.collections(CollectionKind::Full), 1);
    assert_eq!(f.objects(), 1001);
    let survivor = f.read(array, 4500);
    assert_eq!(f.count(survivor), 2);
}
