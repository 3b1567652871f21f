//! Programs that change the graph while the machine works on it.

use super::super::{Incremental, Phase};
use super::{Lab, NUMBER, config};
use crate::config::{HeapConfig, IncrementalSettings};
use crate::heap::Heap;
use crate::reference::Ref;
use crate::shape::ShapeSpec;
use crate::stats::CollectionKind;
use std::collections::HashSet;

/// Steps that a cycle over a handful of objects takes at most, with some to spare for the next one.
const CYCLE: usize = 12;

/// Runs `program` with its operations at every combination of places among the steps of a cycle:
/// `places[i]` steps have been done when operation `i` runs.
fn at_all_places(operations: usize, mut program: impl FnMut(&[usize])) {
    let mut places = vec![0; operations];
    loop {
        program(&places);
        // The next non-decreasing sequence.
        let Some(i) = (0..operations).rev().find(|&i| places[i] < CYCLE) else {
            return;
        };
        let next = places[i] + 1;
        places[i..].fill(next);
    }
}

/// Steps until `place` steps have been done in all.
fn step_to(lab: &mut Lab, done: &mut usize, place: usize) {
    while *done < place {
        lab.mutator.step();
        *done += 1;
    }
}

/// The only reference to an object moves from one parent to the other, in four operations, at all
/// places of a cycle: load, store, clear, drop the root. The classic lost object.
#[test]
fn a_reference_that_moves_is_never_lost() {
    for from_first in [true, false] {
        at_all_places(4, |places| {
            let mut lab = Lab::new(config());
            let a = lab.root(1);
            let b = lab.root(2);
            let (from, to) = if from_first { (a, b) } else { (b, a) };
            let moved = lab.node(3);
            let below = lab.node(4);
            lab.write(from, 0, moved);
            lab.write(moved, 1, below);
            let mut done = 0;
            step_to(&mut lab, &mut done, places[0]);
            let index = lab.mutator.stack().push(moved);
            step_to(&mut lab, &mut done, places[1]);
            lab.write(to, 1, moved);
            step_to(&mut lab, &mut done, places[2]);
            lab.write(from, 0, Ref::NULL);
            step_to(&mut lab, &mut done, places[3]);
            lab.mutator.stack().truncate(index);
            lab.step_until(Phase::Idle);
            assert_eq!((lab.number(moved), lab.number(below)), (3, 4), "{places:?}");
            lab.mutator.collect();
            assert_eq!((lab.number(moved), lab.number(below)), (3, 4), "{places:?}");
        });
    }
}

/// The only reference to an object moves to the stack of roots, which has no barrier.
#[test]
fn a_reference_that_moves_to_the_roots_is_never_lost() {
    at_all_places(2, |places| {
        let mut lab = Lab::new(config());
        let root = lab.root(1);
        let parent = lab.node(2);
        let moved = lab.node(3);
        lab.write(root, 0, parent);
        lab.write(parent, 1, moved);
        let mut done = 0;
        step_to(&mut lab, &mut done, places[0]);
        lab.mutator.stack().push(moved);
        step_to(&mut lab, &mut done, places[1]);
        lab.write(parent, 1, Ref::NULL);
        lab.step_until(Phase::Idle);
        assert_eq!(lab.number(moved), 3, "{places:?}");
    });
}

/// An object is born, gets a child that was hidden, and is linked: at all places of a cycle.
#[test]
fn objects_born_during_a_cycle_survive_it() {
    at_all_places(4, |places| {
        let mut lab = Lab::new(config());
        let root = lab.root(1);
        let child = lab.node(2);
        lab.write(root, 0, child);
        let mut done = 0;
        step_to(&mut lab, &mut done, places[0]);
        let born = lab.node(3);
        let index = lab.mutator.stack().push(born);
        step_to(&mut lab, &mut done, places[1]);
        lab.write(born, 0, child);
        step_to(&mut lab, &mut done, places[2]);
        lab.write(root, 0, Ref::NULL);
        lab.write(root, 1, born);
        step_to(&mut lab, &mut done, places[3]);
        lab.mutator.stack().truncate(index);
        lab.step_until(Phase::Idle);
        assert_eq!((lab.number(born), lab.number(child)), (3, 2), "{places:?}");
        let objects = lab.machine(|m| m.used()) / 24;
        assert_eq!(objects, 3, "{places:?}");
    });
}

/// One crate of the survey allocated white while marking, and freed what it had just allocated.
#[test]
fn objects_allocated_while_marking_are_not_freed() {
    let mut lab = Lab::new(config());
    let mut parent = lab.root(0);
    lab.mutator.step();
    assert_eq!(lab.phase(), Phase::Mark);
    lab.mutator.step(); // the root is black
    let first = parent;
    for i in 1..50 {
        let child = lab.node(i);
        lab.write(parent, 0, child);
        parent = child;
    }
    lab.step_until(Phase::Idle);
    let mut node = first;
    for i in 0..50 {
        assert_eq!(lab.number(node), i);
        // SAFETY: the list is reachable from the root.
        node = unsafe { lab.mutator.read(node, 0) };
    }
}

#[test]
fn a_full_collection_at_any_place_leaves_nothing_dead() {
    for place in 0..2 * CYCLE {
        let mut lab = Lab::new(config());
        let root = lab.root(1);
        let dead = lab.node(2);
        lab.write(root, 0, dead);
        step_to(&mut lab, &mut 0, place);
        lab.node(3);
        lab.write(root, 0, Ref::NULL);
        lab.mutator.collect();
        assert_eq!(lab.phase(), Phase::Idle);
        assert_eq!(lab.machine(|m| m.used()), 24, "after {place} steps");
        assert!(lab.exists(root) && !lab.exists(dead));
    }
}

#[test]
fn weak_references_are_decided_at_the_end_of_marking() {
    for place in 0..CYCLE {
        let mut lab = Lab::new(config());
        let weak = lab.heap.define(ShapeSpec::fixed("Weak").weak("target"));
        let holder = lab.mutator.allocate(&weak.unwrap()).unwrap();
        lab.mutator.stack().push(holder);
        let target = lab.root(5);
        // SAFETY: both were allocated since the last safepoint, or are rooted.
        unsafe { lab.mutator.write_weak(holder, 0, target) };
        step_to(&mut lab, &mut 0, place);
        lab.mutator.stack().truncate(1);
        // SAFETY: the holder is rooted.
        let read = unsafe { lab.mutator.read(holder, 0) };
        if place % 2 == 0 {
            // Taken back to life through the weak slot, with no barrier: the roots are marked again.
            lab.mutator.stack().push(read);
            lab.step_until(Phase::Idle);
            // SAFETY: as above.
            let again = unsafe { lab.mutator.read(holder, 0) };
            assert_eq!(again, read);
            if !read.is_null() {
                assert_eq!(lab.number(read), 5);
            }
        } else {
            lab.mutator.collect();
            // SAFETY: as above.
            assert!(unsafe { lab.mutator.read(holder, 0) }.is_null());
        }
    }
}

#[test]
fn weak_objects_born_while_marking_do_not_dangle() {
    let mut lab = Lab::new(config());
    let weak = lab.heap.define(ShapeSpec::fixed("Weak").weak("target"));
    let weak = weak.unwrap();
    let holder_of_target = lab.root(1);
    let target = lab.node(2);
    lab.write(holder_of_target, 0, target);
    lab.mutator.step();
    let holder = lab.mutator.allocate(&weak).unwrap();
    lab.mutator.stack().push(holder);
    // SAFETY: both are reachable.
    unsafe { lab.mutator.write_weak(holder, 0, target) };
    lab.write(holder_of_target, 0, Ref::NULL);
    lab.step_until(Phase::Idle);
    lab.mutator.collect();
    // SAFETY: the holder is rooted.
    assert!(unsafe { lab.mutator.read(holder, 0) }.is_null());
}

#[test]
fn ephemerons_and_guardians_work_in_steps() {
    let mut lab = Lab::new(config());
    let ephemeron = lab.heap.define(ShapeSpec::fixed("Ephemeron").ephemeron());
    let table = lab.mutator.allocate(&ephemeron.unwrap()).unwrap();
    lab.mutator.stack().push(table);
    let key = lab.root(1);
    let value = lab.node(2);
    lab.write(value, 0, key); // the value leads to its own key
    let guarded = lab.node(3);
    // SAFETY: nothing was freed since they were allocated.
    unsafe {
        lab.mutator.write_weak(table, 0, key);
        lab.mutator.write_weak(table, 1, value);
    }
    let guardian = lab.mutator.create_guardian();
    lab.mutator.guard(guardian, guarded);
    lab.step_until(Phase::Mark);
    lab.step_until(Phase::Idle);
    assert_eq!(lab.number(value), 2);
    assert_eq!(lab.mutator.next_dead(guardian), Some(guarded));
    assert_eq!(lab.number(guarded), 3);
    lab.mutator.stack().truncate(1);
    lab.step_until(Phase::Mark);
    lab.step_until(Phase::Idle);
    // SAFETY: the ephemeron is rooted.
    unsafe {
        assert!(lab.mutator.read(table, 0).is_null());
        assert!(lab.mutator.read(table, 1).is_null());
    }
    assert!(!lab.exists(key) && !lab.exists(value));
    assert!(!lab.exists(guarded), "given out once, then dropped");
}

#[test]
fn running_out_of_memory_is_an_error_and_the_heap_survives() {
    for (mark_num, free_num) in [(1, 0), (1, 10), (64, usize::MAX), (usize::MAX, 0)] {
        let mut config = HeapConfig::default().with_max_bytes(256 << 10);
        config.incremental.mark_num = mark_num;
        config.incremental.free_num = free_num;
        let mut lab = Lab::new(config);
        let mut count = 0;
        let error = loop {
            match lab.mutator.allocate(&lab.node) {
                Ok(node) => {
                    // SAFETY: both were read or allocated since the last safepoint.
                    unsafe {
                        let last = lab.mutator.stack().get(0);
                        lab.mutator.write(node, 0, last);
                        lab.mutator.write_word(node, NUMBER, count);
                    }
                    if count == 0 {
                        lab.mutator.stack().push(node);
                    }
                    lab.mutator.stack().set(0, node);
                    count += 1;
                }
                Err(error) => break error,
            }
        };
        assert!(!error.is_too_large());
        assert_eq!(count, 8 * (32768 / 24), "every cell was used");
        let mut node = lab.mutator.stack().get(0);
        for i in (0..count).rev() {
            assert_eq!(lab.number(node), i);
            // SAFETY: the list is reachable from the root.
            node = unsafe { lab.mutator.read(node, 0) };
        }
        lab.mutator.stack().truncate(0);
        lab.node(0);
        let bytes = lab.heap.define(ShapeSpec::bytes("Bytes")).unwrap();
        assert!(lab.mutator.allocate_array(&bytes, 200 << 10).is_ok());
        let too_large = lab.mutator.allocate_array(&bytes, 1 << 20).unwrap_err();
        assert!(too_large.is_too_large());
    }
}

#[test]
fn a_cycle_that_begins_late_still_ends_in_time() {
    // Garbage only, and a machine that starts when almost nothing is left: no full collection.
    for mark_num in [1, 100] {
        let mut config = HeapConfig::default().with_max_bytes(1 << 20);
        config.incremental = IncrementalSettings {
            mark_num,
            sweep_num: 100,
            free_num: 10,
        };
        let mut lab = Lab::new(config);
        for i in 0..1000 {
            lab.root(i);
        }
        for i in 0..300_000 {
            lab.node(i);
        }
        let stats = lab.heap.stats();
        assert_eq!(stats.totals_of(CollectionKind::Full).collections, 0);
        assert!(stats.totals_of(CollectionKind::Incremental).collections > 3);
        for i in 0..1000 {
            let node = lab.mutator.stack().get(i);
            assert_eq!(lab.number(node), i as u64);
        }
    }
}

#[test]
fn a_cycle_is_one_record_with_a_pause_for_each_step() {
    let mut lab = Lab::new(config());
    lab.root(1);
    lab.node(2);
    lab.mutator.step();
    let mut steps = 1;
    while lab.phase() != Phase::Idle {
        lab.mutator.step();
        steps += 1;
    }
    let stats = lab.heap.stats();
    let record = stats.history().next_back().unwrap();
    assert_eq!(record.kind, CollectionKind::Incremental);
    assert_eq!(record.pauses().count(), steps);
    assert_eq!((record.marked.objects, record.freed.objects), (1, 1));
    assert_eq!(record.after.objects, 1);
    assert_eq!(stats.pauses().count(), steps);
    lab.mutator.step();
    lab.mutator.collect();
    let stats = lab.heap.stats();
    let kinds: Vec<_> = stats.history().map(|record| record.kind).collect();
    use CollectionKind::{Full, Incremental};
    assert_eq!(kinds, [Incremental, Incremental, Full]);
}

#[test]
fn memory_is_counted_exactly() {
    let mut lab = Lab::new(config());
    let bytes = lab.heap.define(ShapeSpec::bytes("Bytes")).unwrap();
    for round in 0..20 {
        lab.mutator.stack().truncate(0);
        for i in 0..50 {
            lab.root(i);
            let small = lab.mutator.allocate_array(&bytes, 100).unwrap();
            lab.mutator.stack().push(small);
            lab.mutator.step();
        }
        if round % 3 == 0 {
            let large = lab.mutator.allocate_array(&bytes, 100 << 10).unwrap();
            lab.mutator.stack().push(large);
        }
        lab.mutator.collect();
        let large = if round % 3 == 0 { 4 * (32 << 10) } else { 0 };
        assert_eq!(lab.machine(|m| m.used()), 50 * (24 + 112) + large);
    }
}

/// A plain model: nodes with two slots, and a set of roots.
struct Model {
    slots: Vec<[Option<usize>; 2]>,
    addresses: Vec<Ref>,
    roots: Vec<Option<usize>>,
}

impl Model {
    fn reachable(&self) -> HashSet<usize> {
        let mut seen = HashSet::new();
        let mut todo: Vec<usize> = self.roots.iter().copied().flatten().collect();
        while let Some(node) = todo.pop() {
            if seen.insert(node) {
                todo.extend(self.slots[node].iter().copied().flatten());
            }
        }
        seen
    }
}

/// Random programs, with steps in between, against the model.
#[test]
fn random_programs_agree_with_a_model() {
    for seed in 0..60u64 {
        let mut settings = config();
        settings.incremental.mark_num = 1 + seed as usize % 3;
        settings.incremental.sweep_num = 1 + seed as usize % 5;
        let mut lab = Lab::new(settings);
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        };
        let mut model = Model {
            slots: Vec::new(),
            addresses: Vec::new(),
            roots: vec![None; 6],
        };
        for _ in 0..6 {
            lab.mutator.stack().push(Ref::NULL);
        }
        for _ in 0..400 {
            let root = random(6);
            match random(10) {
                0 | 1 => {
                    let node = lab.node(model.slots.len() as u64);
                    model.slots.push([None; 2]);
                    model.addresses.push(node);
                    model.roots[root] = Some(model.slots.len() - 1);
                    lab.mutator.stack().set(root, node);
                }
                2 | 3 => {
                    let (other, slot) = (random(6), random(2));
                    if let Some(parent) = model.roots[root] {
                        let value = model.roots[other];
                        model.slots[parent][slot] = value;
                        let value = value.map_or(Ref::NULL, |v| model.addresses[v]);
                        lab.write(model.addresses[parent], slot, value);
                    }
                }
                4 | 5 => {
                    let (other, slot) = (random(6), random(2));
                    if let Some(parent) = model.roots[other] {
                        model.roots[root] = model.slots[parent][slot];
                        // SAFETY: the parent is rooted.
                        let read = unsafe { lab.mutator.read(model.addresses[parent], slot) };
                        lab.mutator.stack().set(root, read);
                    }
                }
                6 => {
                    model.roots[root] = None;
                    lab.mutator.stack().set(root, Ref::NULL);
                }
                7 if random(20) == 0 => {
                    lab.mutator.collect();
                    let live = model.reachable();
                    assert_eq!(lab.machine(|m| m.used()), live.len() * 24);
                }
                _ => (0..random(6)).for_each(|_| lab.mutator.step()),
            }
            for &node in &model.reachable() {
                assert_eq!(lab.number(model.addresses[node]), node as u64);
            }
        }
    }
}

/// Several mutators pass nodes between their lists and a shared one while cycles go on.
#[test]
fn several_mutators_share_the_machine() {
    const LENGTH: u64 = 200;
    let mut config = HeapConfig::default().with_max_bytes(4 << 20);
    config.incremental = IncrementalSettings {
        mark_num: 50,
        sweep_num: 200,
        free_num: 100_000,
    };
    let heap: Heap<Incremental> = Heap::new(config).unwrap();
    let spec = ShapeSpec::fixed("Node").reference("next").word("number");
    let node = heap.define(spec).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let heap = heap.clone();
            scope.spawn(move || {
                let mut mutator = heap.mutator();
                let head = mutator.stack().push(Ref::NULL);
                for round in 0..60 {
                    mutator.stack().set(head, Ref::NULL);
                    for i in 0..LENGTH {
                        let cell = if i % 2 == 0 {
                            let next = mutator.stack().get(head);
                            // SAFETY: read just now.
                            unsafe { mutator.allocate_with(&node, [next]) }.unwrap()
                        } else {
                            let cell = mutator.allocate(&node).unwrap();
                            let next = mutator.stack().get(head);
                            // SAFETY: both were read or allocated since the last safepoint.
                            unsafe { mutator.write(cell, 0, next) };
                            cell
                        };
                        // SAFETY: as above.
                        unsafe { mutator.write_word(cell, 2, thread << 32 | i) };
                        mutator.stack().set(head, cell);
                        if (i + round) % 5 == 0 {
                            mutator.step();
                        }
                    }
                    let mut cell = mutator.stack().get(head);
                    for i in (0..LENGTH).rev() {
                        // SAFETY: the list is rooted, and nothing here is a safepoint.
                        unsafe {
                            assert_eq!(mutator.read_word(cell, 2), thread << 32 | i);
                            cell = mutator.read(cell, 0);
                        }
                    }
                }
            });
        }
    });
    assert!(heap.stats().totals().collections > 3);
    let mut mutator = heap.mutator();
    mutator.collect();
    assert_eq!(heap.used(), 0);
}
