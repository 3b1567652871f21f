//! Weak references, ephemerons and guardians: what happens to them once everything that is
//! strongly reachable has been found.
//!
//! One hook carries all of it: "stop when fully traced". A collector traces from its roots, then
//! calls [`process`] with a [`Fate`], its answer to "did this object survive, and where is it
//! now?". The order is the one that Java and Scheme agree on:
//!
//! 1. ephemerons whose key survived keep their value, until nothing changes;
//! 2. weak slots whose target did not survive become null;
//! 3. guarded objects that did not survive are brought back and put into their guardian's queue,
//!    with all that they reach (ephemerons again);
//! 4. phantom slots whose target did not survive become null;
//! 5. ephemerons whose key did not survive lose key and value.
//!
//! Invariant: after [`process`], no slot of any kind of a surviving object leads to an object that
//! did not survive.

use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use std::collections::{HashMap, VecDeque};

/// A collector's answer about objects, during one collection.
pub trait Fate {
    /// The object's place after this collection, or `None` if it has not survived so far.
    ///
    /// # Safety
    /// `reference` was an object of the heap when this collection began.
    unsafe fn survivor(&mut self, reference: Ref) -> Option<Ref>;

    /// Makes the object in `reference` survive, and returns its place. What it reaches is traced
    /// by the next [`Fate::drain`].
    ///
    /// # Safety
    /// As for [`Fate::survivor`].
    unsafe fn keep(&mut self, reference: Ref) -> Ref;

    /// Traces all that was kept, until nothing is left.
    ///
    /// # Safety
    /// The world is stopped.
    unsafe fn drain(&mut self);

    /// Takes the surviving objects of special shape that were met since the last call, at their
    /// new places.
    fn take_specials(&mut self) -> Vec<Ref>;

    /// Asks to be told when the object `key`, which has not survived so far, is found to survive.
    /// False when this collector cannot tell: then all such keys are looked at again in rounds,
    /// which is quadratic for long chains of ephemerons.
    ///
    /// # Safety
    /// As for [`Fate::survivor`].
    unsafe fn watch(&mut self, _key: Ref) -> bool {
        false
    }

    /// Takes the keys of [`Fate::watch`] (as they were given) that have been found to survive.
    fn take_found(&mut self) -> Vec<Ref> {
        Vec::new()
    }
}

/// Names a guardian of a heap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct GuardianId(pub(crate) u32);

/// All guardians of a heap: who is watched, and who has been found dead.
#[derive(Default, Debug)]
pub struct Guardians {
    /// Objects watched, each with its guardian. Not roots.
    pub(crate) watched: Vec<(Ref, GuardianId)>,
    /// Objects that were found dead, by guardian. Roots, until they are taken.
    pub(crate) queues: Vec<VecDeque<Ref>>,
}

impl Guardians {
    pub(crate) fn create(&mut self) -> GuardianId {
        self.queues.push(VecDeque::new());
        GuardianId(self.queues.len() as u32 - 1)
    }

    pub(crate) fn watch(&mut self, guardian: GuardianId, object: Ref) {
        self.watched.push((object, guardian));
    }

    pub(crate) fn take(&mut self, guardian: GuardianId) -> Option<Ref> {
        self.queues.get_mut(guardian.0 as usize)?.pop_front()
    }

    /// Forgets whom `guardian` watches and what it has found; its number is not used again.
    pub(crate) fn close(&mut self, guardian: GuardianId) {
        self.watched.retain(|&(_, of)| of != guardian);
        if let Some(queue) = self.queues.get_mut(guardian.0 as usize) {
            *queue = VecDeque::new();
        }
    }

    pub(crate) fn each_root(&mut self, mut visit: impl FnMut(&mut Ref)) {
        for queue in &mut self.queues {
            queue.iter_mut().for_each(&mut visit);
        }
    }
}

/// What weak processing did, for the statistics and for an embedder's reference queues.
#[derive(Default, Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Objects in which a weak or phantom slot was cleared.
    pub cleared: Vec<Ref>,
    /// Guarded objects that were brought back.
    pub resurrected: usize,
}

/// Weak processing; see the [module text](self).
///
/// # Safety
/// The world is stopped, and `fate` has traced everything reachable from the roots.
pub unsafe fn process<F: Fate>(
    shapes: &ShapeTable,
    guardians: &mut Guardians,
    fate: &mut F,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut ephemerons = Pending::default();
    // SAFETY: passed on from the caller, here and below.
    unsafe {
        let before = settle(shapes, fate, &mut ephemerons);
        for &special in &before {
            clear_dead(shapes, fate, special, Strength::Weak, &mut outcome);
        }
        outcome.resurrected = resurrect(guardians, fate);
        let after = settle(shapes, fate, &mut ephemerons);
        for &special in &after {
            clear_dead(shapes, fate, special, Strength::Weak, &mut outcome);
        }
        for &special in before.iter().chain(&after) {
            clear_dead(shapes, fate, special, Strength::Phantom, &mut outcome);
        }
        for ephemeron in ephemerons.into_rest() {
            let (key, value) = ephemeron_slots(shapes, ephemeron);
            object::store(key, Ref::NULL);
            object::store(value, Ref::NULL);
        }
    }
    outcome
}

/// Ephemerons whose key has not survived so far.
#[derive(Default)]
struct Pending {
    /// Those whose key is being watched, by key.
    by_key: HashMap<Ref, Vec<Ref>>,
    /// Those whose key must be asked about again.
    in_rounds: Vec<Ref>,
}

impl Pending {
    fn into_rest(self) -> impl Iterator<Item = Ref> {
        self.by_key.into_values().flatten().chain(self.in_rounds)
    }
}

/// Traces until nothing changes, ephemerons included. Returns the specials met; ephemerons whose
/// key is still dead are left in `pending`.
unsafe fn settle<F: Fate>(shapes: &ShapeTable, fate: &mut F, pending: &mut Pending) -> Vec<Ref> {
    let mut met = Vec::new();
    loop {
        let mut progress = false;
        // SAFETY: passed on from the caller; specials are surviving objects at their new places,
        // and the slots of an ephemeron hold objects of the heap.
        unsafe {
            fate.drain();
            let fresh = fate.take_specials();
            for &special in &fresh {
                let info = object::special(shapes, object::header(special.address()));
                if info.ephemeron.is_some() {
                    if keep_if_key_survived(shapes, fate, special) {
                        progress = true;
                    } else {
                        let key = object::load(ephemeron_slots(shapes, special).0);
                        if fate.watch(key) {
                            pending.by_key.entry(key).or_default().push(special);
                        } else {
                            pending.in_rounds.push(special);
                        }
                    }
                }
            }
            met.extend(fresh);
            for key in fate.take_found() {
                for ephemeron in pending.by_key.remove(&key).unwrap_or_default() {
                    progress |= keep_if_key_survived(shapes, fate, ephemeron);
                }
            }
            pending.in_rounds.retain(|&ephemeron| {
                let kept = keep_if_key_survived(shapes, fate, ephemeron);
                progress |= kept;
                !kept
            });
        }
        if !progress {
            return met;
        }
    }
}

/// Keeps the value of an ephemeron whose key has survived (or is no object, and cannot die).
unsafe fn keep_if_key_survived<F: Fate>(shapes: &ShapeTable, fate: &mut F, ephemeron: Ref) -> bool {
    // SAFETY: passed on from the caller.
    unsafe {
        let (key, value) = ephemeron_slots(shapes, ephemeron);
        let old = object::load(key);
        if old.is_object() {
            match fate.survivor(old) {
                Some(now) => object::store(key, now),
                None => return false,
            }
        }
        keep_slot(fate, value);
        true
    }
}

unsafe fn keep_slot<F: Fate>(fate: &mut F, slot: usize) {
    // SAFETY: passed on from the caller.
    unsafe {
        let old = object::load(slot);
        if old.is_object() {
            object::store(slot, fate.keep(old));
        }
    }
}

unsafe fn ephemeron_slots(shapes: &ShapeTable, ephemeron: Ref) -> (usize, usize) {
    let address = ephemeron.address();
    // SAFETY: the caller passes a surviving ephemeron.
    let info = object::special(shapes, unsafe { object::header(address) });
    let (key, value) = info.ephemeron.expect("an ephemeron has a key and a value");
    (address + key as usize, address + value as usize)
}

#[derive(Clone, Copy)]
enum Strength {
    Weak,
    Phantom,
}

unsafe fn clear_dead<F: Fate>(
    shapes: &ShapeTable,
    fate: &mut F,
    special: Ref,
    strength: Strength,
    outcome: &mut Outcome,
) {
    let address = special.address();
    // SAFETY: `special` is a surviving object, so its header and slots are there.
    unsafe {
        let info = object::special(shapes, object::header(address));
        let offsets = match strength {
            Strength::Weak => &info.weak,
            Strength::Phantom => &info.phantom,
        };
        for &offset in offsets {
            let slot = address + offset as usize;
            let old = object::load(slot);
            if !old.is_object() {
                continue;
            }
            match fate.survivor(old) {
                Some(now) => object::store(slot, now),
                None => {
                    object::store(slot, Ref::NULL);
                    if outcome.cleared.last() != Some(&special) {
                        outcome.cleared.push(special);
                    }
                }
            }
        }
    }
}

unsafe fn resurrect<F: Fate>(guardians: &mut Guardians, fate: &mut F) -> usize {
    // All verdicts first, so that a guarded object that is reachable only from another guarded one
    // is handed over too.
    let mut dead = Vec::new();
    guardians.watched.retain_mut(|(object, guardian)| {
        // SAFETY: watched objects were objects of the heap when this collection began.
        match unsafe { fate.survivor(*object) } {
            Some(now) => {
                *object = now;
                true
            }
            None => {
                dead.push((*object, *guardian));
                false
            }
        }
    });
    let count = dead.len();
    for (object, guardian) in dead {
        // SAFETY: as above.
        let now = unsafe { fate.keep(object) };
        guardians.queues[guardian.0 as usize].push_back(now);
    }
    count
}
