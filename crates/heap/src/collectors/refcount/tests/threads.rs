//! Several mutators that store into the same objects.

use super::*;
use crate::collectors::refcount::log::{LocalLog, Log};

#[test]
fn mutators_share_objects() {
    let mut f = Fixture::with(config().with_max_bytes(16 << 20).with_nursery_bytes(1));
    let shape = f.array;
    // A pair and a short array are logged as a whole, a long array slot by slot.
    let shared = [4, 64].map(|length| {
        let array = f.mutator.allocate_array(&shape, length).unwrap();
        f.mutator.create_global(array)
    });
    let pair = f.pair();
    let pair_id = f.mutator.create_global(pair);
    let shape = f.pair;
    let heap = f.heap.clone();
    let body = |seed: u64| {
        let heap = heap.clone();
        move || {
            let mut mutator = heap.mutator();
            let mut state = seed;
            for _ in 0..30_000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let bits = state >> 33;
                let new = mutator.allocate(&shape).unwrap();
                // No safepoint from here to the end of the round.
                let (object, slots) = match bits % 3 {
                    0 => (mutator.global(pair_id).unwrap(), 2),
                    1 => (mutator.global(shared[0]).unwrap(), 4),
                    _ => (mutator.global(shared[1]).unwrap(), 64),
                };
                let slot = (bits / 3 % slots) as usize;
                // SAFETY: read since the last safepoint.
                unsafe {
                    let old = mutator.read(object, slot);
                    if bits & 1 << 20 == 0 {
                        mutator.write(new, 0, old);
                    }
                    mutator.write(object, slot, new);
                    // Cut chains short, in an object that others may be writing too.
                    if old.is_object() {
                        mutator.write(old, 0, Ref::NULL);
                        mutator.write(old, 1, new);
                    }
                }
            }
        }
    };
    let threads: Vec<_> = (1..=3).map(|seed| std::thread::spawn(body(seed))).collect();
    f.mutator.blocking(|| {
        for thread in threads {
            thread.join().unwrap();
        }
    });
    f.collect();
    f.mutator.drop_global(pair_id);
    shared.into_iter().for_each(|id| f.mutator.drop_global(id));
    f.collect();
    assert_eq!(f.objects(), 0);
}

#[test]
fn what_a_mutator_logged_outlives_it() {
    let mut f = Fixture::new();
    let pair = f.pair();
    let id = f.mutator.create_global(pair);
    let (heap, shape) = (f.heap.clone(), f.pair);
    f.epoch();
    f.mutator.blocking(move || {
        let other = move || {
            let mut mutator = heap.mutator();
            let new = mutator.allocate(&shape).unwrap();
            let pair = mutator.global(id).unwrap();
            // SAFETY: both were read since the last safepoint.
            unsafe { mutator.write(pair, 0, new) };
        };
        std::thread::spawn(other).join().unwrap();
    });
    f.epoch();
    assert_eq!(f.objects(), 2);
    let new = f.read(pair, 0);
    assert_eq!(f.count(new), 1);
}

#[test]
fn what_two_mutators_logged_is_put_together() {
    let mut f = Fixture::new();
    let shape = f.array;
    let array = f.mutator.allocate_array(&shape, 100).unwrap();
    f.push(array);
    let roots: Vec<Ref> = (0..2)
        .map(|_| {
            let pair = f.pair();
            f.push(pair);
            pair
        })
        .collect();
    f.epoch();
    let shape = f.pair;
    let mut other = f.heap.mutator();
    let mine = f.pair();
    let theirs = other.allocate(&shape).unwrap();
    f.write(array, 50, mine);
    f.write(roots[0], 0, mine);
    // SAFETY: the references were read since the last safepoint of that mutator.
    unsafe {
        other.write(array, 60, theirs);
        other.write(roots[1], 0, theirs);
    }
    // The other one is parked meanwhile.
    other.blocking(|| f.epoch());
    other.blocking(|| assert_eq!((f.count(mine), f.count(theirs)), (2, 2)));
    drop(other);
    for (object, slot) in [(array, 50), (array, 60), (roots[0], 0), (roots[1], 0)] {
        f.write(object, slot, Ref::NULL);
    }
    f.epoch();
    assert_eq!(f.objects(), 3);
}

#[test]
fn who_comes_second_logs_nothing() {
    // Two mutators saw the header before either had set the flag.
    let mut f = Fixture::with(config().with_sanity(false));
    let shape = f.array;
    let array = f.mutator.allocate_array(&shape, 100).unwrap();
    f.push(array);
    let pair = f.rooted_pair();
    let pair = f.get(pair);
    f.epoch();
    let logged = f
        .mutator
        .inspect(|world| std::sync::Arc::clone(&world.collector().logged));
    let mut logs = [(); 2].map(|()| LocalLog {
        log: Log::default(),
        logged: std::sync::Arc::clone(&logged),
    });
    for object in [array, pair] {
        // SAFETY: the object is there, and has that slot.
        unsafe {
            let word = f.mutator.header(object);
            let slot = object::slot_address(object.address(), 1);
            for log in &mut logs {
                log.note(f.mutator.shapes(), object.address(), word, slot);
            }
        }
    }
    let lengths = logs.map(|log| (log.log.objects.len(), log.log.values.len(), log.log.len()));
    assert_eq!(lengths, [(1, 2, 3), (0, 0, 0)]);
}
