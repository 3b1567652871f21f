//! Weak slots, ephemerons and guardians: decided by the backup trace, kept by counting.

use super::*;

#[test]
fn weak_and_phantom_slots_are_cleared_when_the_target_dies() {
    let mut f = Fixture::new();
    let holder = f.allocate(f.weak);
    let holder = f.push(holder);
    let target = f.rooted_pair();
    let (h, t) = (f.get(holder), f.get(target));
    f.write_weak(h, 1, t);
    f.write_weak(h, 2, t);
    f.collect();
    assert_eq!((f.read(h, 1), f.read(h, 2)), (t, t));
    f.mutator.stack().truncate(target);
    f.epoch();
    assert_eq!(
        f.read(h, 1),
        t,
        "counting does not free what a weak slot holds"
    );
    f.collect();
    assert_eq!((f.read(h, 1), f.read(h, 2)), (Ref::NULL, Ref::NULL));
    assert_eq!(f.objects(), 1);
}

#[test]
fn a_weak_slot_may_bring_its_target_back() {
    let mut f = Fixture::new();
    let holder = f.allocate(f.weak);
    f.push(holder);
    let target = f.pair();
    f.write_weak(holder, 1, target);
    f.epoch();
    f.epoch();
    let target = f.read(holder, 1);
    f.write(holder, 0, target);
    f.collect();
    assert_eq!(f.read(holder, 1), target);
    assert_eq!(f.objects(), 2);
    assert_eq!(f.count(target), 2, "the strong slot, and being watched");
}

#[test]
fn nothing_is_watched_when_nothing_weak_is_left() {
    let mut f = Fixture::new();
    let holder = f.allocate(f.weak);
    let root = f.push(holder);
    let target = f.rooted_pair();
    let t = f.get(target);
    f.write_weak(holder, 1, t);
    f.collect();
    assert_eq!(f.count(t), 2);
    f.mutator.stack().set(root, Ref::NULL);
    f.collect();
    assert_eq!(f.count(t), 1, "the holder is gone");
    // From here on counting decides again.
    f.mutator.stack().truncate(0);
    f.epoch();
    assert_eq!(f.objects(), 0);
}

#[test]
fn weak_targets_on_a_cycle() {
    let mut f = Fixture::new();
    let holder = f.allocate(f.weak);
    f.push(holder);
    let a = f.rooted_pair();
    let b = f.pair();
    let x = f.get(a);
    f.write(x, 0, b);
    f.write(b, 0, x);
    f.write_weak(holder, 1, b);
    f.collect();
    assert_eq!(f.read(holder, 1), b);
    f.mutator.stack().truncate(a);
    f.collect();
    assert_eq!(f.read(holder, 1), Ref::NULL);
    assert_eq!(f.objects(), 1);
}

#[test]
fn an_ephemeron_keeps_its_value_as_long_as_its_key() {
    let mut f = Fixture::new();
    let ephemeron = f.allocate(f.ephemeron);
    let e = f.push(ephemeron);
    let key = f.rooted_pair();
    let value = f.pair();
    let (e, k) = (f.get(e), f.get(key));
    // The value refers to its key, which a weak table of pairs would never let go.
    f.write(value, 0, k);
    f.write_weak(e, 0, k);
    f.write_weak(e, 1, value);
    f.epoch();
    f.collect();
    assert_eq!((f.read(e, 0), f.read(e, 1)), (k, value));
    assert_eq!(f.objects(), 3);
    f.mutator.stack().truncate(key);
    f.collect();
    assert_eq!((f.read(e, 0), f.read(e, 1)), (Ref::NULL, Ref::NULL));
    assert_eq!(f.objects(), 1);
}

#[test]
fn guardians_hand_the_dead_back() {
    let mut f = Fixture::new();
    let guardian = f.mutator.create_guardian();
    let holder = f.allocate(f.weak);
    f.push(holder);
    let a = f.rooted_pair();
    let child = f.pair();
    let x = f.get(a);
    f.write(x, 0, child);
    f.write_weak(holder, 1, x);
    f.write_weak(holder, 2, x);
    f.mutator.guard(guardian, x);
    f.collect();
    assert_eq!(f.mutator.next_dead(guardian), None);
    f.mutator.stack().truncate(a);
    f.epoch();
    f.collect();
    // The weak slot is cleared before, the phantom one only when it is gone for good.
    assert_eq!((f.read(holder, 1), f.read(holder, 2)), (Ref::NULL, x));
    assert_eq!(f.mutator.next_dead(guardian), Some(x));
    assert_eq!(f.read(x, 0), child);
    assert_eq!(f.mutator.next_dead(guardian), None);
    f.collect();
    assert_eq!(f.read(holder, 2), Ref::NULL);
    assert_eq!(f.objects(), 1);
}

#[test]
fn one_who_is_guarded_and_brought_back_lives_on() {
    let mut f = Fixture::new();
    let guardian = f.mutator.create_guardian();
    let x = f.pair();
    f.mutator.guard(guardian, x);
    f.collect();
    let x = f.mutator.next_dead(guardian).unwrap();
    let root = f.push(x);
    f.collect();
    assert_eq!(f.count(x), 1);
    f.mutator.stack().truncate(root);
    f.epoch();
    assert_eq!(f.objects(), 0);
}

#[test]
fn cleared_holders_are_remembered_and_are_roots() {
    let mut f = Fixture::new();
    f.heap.remember_cleared();
    let holder = f.allocate(f.weak);
    let root = f.push(holder);
    let target = f.pair();
    f.write_weak(holder, 1, target);
    f.collect();
    f.mutator.stack().truncate(root);
    f.collect();
    assert_eq!(f.objects(), 1, "the list keeps it");
    assert_eq!(f.heap.take_cleared(), [holder]);
    f.collect();
    assert_eq!(f.objects(), 0);
}

#[test]
fn what_weak_slots_drop_is_collected_before_memory_runs_out() {
    let mut f = Fixture::with(config().with_max_bytes(2 << 20));
    let holder = f.allocate(f.weak);
    let root = f.push(holder);
    for _ in 0..200_000 {
        let target = f.pair();
        let holder = f.get(root);
        f.write_weak(holder, 1, target);
    }
    f.collect();
    assert_eq!(f.objects(), 1);
}
