//! The protocol of the concurrent collector under loom, which tries the interleavings of a few
//! threads, and the stale reads that the memory model allows.
//!
//! The barrier and the work set are the collector's own ([`protocol`]); around them stands a small
//! world: four nodes with one slot each, two mutators, one collector. A mutator's registers, buffer
//! and colour of birth stand behind a lock that it holds between two safepoints: stopping the world
//! is to take all of these locks. The orderings of slots and marks are those of the real heap.
//!
//! The test is worth something only if it can fail, so each rule of the protocol is broken once, and
//! the same programs must then lose an object.

use liveoak_heap::collectors::concurrent::protocol::{Barrier, Node, Tracer, WorkSet};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// How often a thread may be interrupted where it need not be. More can be tried with
/// `LOOM_MAX_PREEMPTIONS=3 cargo test -p liveoak-heap --test protocol_loom` (ten times as long).
const PREEMPTIONS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Id(usize);

const NULL: Id = Id(usize::MAX);
/// Two nodes that both mutators have in a register from the beginning.
const X: Id = Id(0);
const Y: Id = Id(1);
/// The node that is passed around; only `Y` leads to it.
const Z: Id = Id(2);
/// Free at the beginning.
const FREE: Id = Id(3);
const NODES: usize = 4;

impl Node for Id {
    fn is_node(self) -> bool {
        self != NULL
    }
}

/// The rule that is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    Correct,
    /// Stores do not shade.
    NoBarrier,
    /// The derivation's guard, x ∈ S ∧ y ∉ S, tested before the store.
    GuardBeforeStore,
    /// The guard tested after the store, without a fence in between.
    GuardAfterStore,
    /// Roots are read at the beginning only.
    NoSecondLook,
    /// New nodes are born outside S.
    WhiteBirth,
}

struct Memory {
    slots: [AtomicUsize; NODES],
    marks: [AtomicBool; NODES],
    allocated: [AtomicBool; NODES],
    freed: [AtomicBool; NODES],
    /// The common pile.
    greys: Mutex<Vec<Id>>,
    mutators: [Mutex<Registers>; 2],
    /// See [`Memory::turn`].
    turns: AtomicUsize,
}

/// What a mutator has.
struct Registers {
    barrier: Barrier<Id>,
    roots: Vec<Id>,
    birth: bool,
    variant: Variant,
}

impl Memory {
    fn new(variant: Variant) -> Memory {
        let registers = || {
            Mutex::new(Registers {
                // So small that the buffer is handed over while the mutators run.
                barrier: Barrier::new(false, 1),
                roots: vec![X, Y],
                birth: false,
                variant,
            })
        };
        Memory {
            slots: [NULL, Z, NULL, NULL].map(|id| AtomicUsize::new(id.0)),
            marks: std::array::from_fn(|_| AtomicBool::new(false)),
            allocated: std::array::from_fn(|id| AtomicBool::new(id != FREE.0)),
            freed: std::array::from_fn(|_| AtomicBool::new(false)),
            greys: Mutex::new(Vec::new()),
            mutators: [registers(), registers()],
            turns: AtomicUsize::new(0),
        }
    }

    /// Loom tries another order of two accesses only if the earlier one was the last access to that
    /// location; it would not see that the marker's load could also come before "load, store" of a
    /// mutator. So everybody touches one more location before each access to a slot. It is relaxed:
    /// it orders nothing.
    fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    fn load(&self, id: Id) -> Id {
        self.turn();
        Id(self.slots[id.0].load(Ordering::Acquire))
    }

    fn is_marked(&self, id: Id) -> bool {
        self.marks[id.0].load(Ordering::Relaxed)
    }

    fn hand_over(&self, greys: &mut Vec<Id>) {
        greys.retain(|&id| !self.is_marked(id));
        if !greys.is_empty() {
            self.greys.lock().unwrap().append(greys);
        }
    }
}

impl Registers {
    fn store(&mut self, memory: &Memory, object: Id, value: Id) {
        let full = |greys: &mut Vec<Id>| memory.hand_over(greys);
        let store = |value: Id| {
            memory.turn();
            memory.slots[object.0].store(value.0, Ordering::Release);
        };
        match self.variant {
            Variant::NoBarrier => store(value),
            Variant::GuardBeforeStore => {
                if value.is_node() && memory.is_marked(object) && !memory.is_marked(value) {
                    self.barrier.shade(value, full);
                }
                store(value);
            }
            Variant::GuardAfterStore => {
                store(value);
                if value.is_node() && memory.is_marked(object) && !memory.is_marked(value) {
                    self.barrier.shade(value, full);
                }
            }
            _ => self.barrier.store(value, full, store),
        }
    }

    fn allocate(&mut self, memory: &Memory, initial: Id) -> Id {
        let full = |greys: &mut Vec<Id>| memory.hand_over(greys);
        self.barrier.shade(initial, full);
        memory.slots[FREE.0].store(initial.0, Ordering::Relaxed);
        let birth = self.birth && self.variant != Variant::WhiteBirth;
        memory.marks[FREE.0].store(birth, Ordering::Relaxed);
        memory.allocated[FREE.0].store(true, Ordering::Release);
        FREE
    }
}

/// What a mutator does between two safepoints.
type Section = fn(&Memory, &mut Registers);
type Program = [&'static [Section]; 2];

/// One moves Z from Y to X, the other takes it out of X into a register.
const MOVE_AND_TAKE: Program = [
    &[|memory, registers| {
        let value = memory.load(Y);
        registers.store(memory, X, value);
        registers.store(memory, Y, NULL);
    }],
    &[|memory, registers| {
        let value = memory.load(X);
        registers.roots.push(value);
        registers.store(memory, X, NULL);
    }],
];

/// Both move Z, in opposite directions.
const SWAP: Program = [
    &[|memory, registers| {
        let value = memory.load(Y);
        registers.store(memory, X, value);
        registers.store(memory, Y, NULL);
    }],
    &[|memory, registers| {
        let value = memory.load(X);
        if value.is_node() {
            registers.store(memory, Y, value);
            registers.store(memory, X, NULL);
        }
    }],
];

/// One takes Z into a register, the other puts a new node with Z in it in its place.
const TAKE_AND_ALLOCATE: Program = [
    &[|memory, registers| {
        let value = memory.load(Y);
        registers.roots.push(value);
        registers.store(memory, Y, NULL);
    }],
    &[|memory, registers| {
        let value = memory.load(Y);
        let new = registers.allocate(memory, value);
        registers.store(memory, X, new);
        registers.store(memory, Y, NULL);
    }],
];

const PROGRAMS: [Program; 3] = [MOVE_AND_TAKE, SWAP, TAKE_AND_ALLOCATE];

struct Marker<'a>(&'a Memory);

impl Tracer for Marker<'_> {
    type Node = Id;
    fn trace(&mut self, node: Id, found: &mut Vec<Id>) {
        if self.0.is_marked(node) {
            return;
        }
        self.0.marks[node.0].store(true, Ordering::Relaxed);
        let successor = self.0.load(node);
        if successor.is_node() {
            found.push(successor);
        }
    }
}

/// A cycle: the shape of `cycle.rs` and `thread.rs`.
fn collect(memory: &Memory, variant: Variant) {
    let mut work = WorkSet::default();
    let mut marker = Marker(memory);
    with_world_stopped(memory, |all| {
        for registers in all {
            registers.barrier.set_marking(true);
            registers.birth = true;
            registers.roots.iter().for_each(|&root| work.push(root));
        }
    });
    loop {
        while !work.advance(&mut marker, 1) {}
        work.absorb(&mut memory.greys.lock().unwrap());
        if !work.is_empty() {
            continue;
        }
        let complete = with_world_stopped(memory, |all| {
            for registers in all.iter_mut() {
                work.absorb(&mut registers.barrier.take());
                if variant != Variant::NoSecondLook {
                    registers.roots.iter().for_each(|&root| work.push(root));
                }
            }
            work.absorb(&mut memory.greys.lock().unwrap());
            // The budget of the pause: what does not fit goes on beside the mutators.
            let complete = work.advance(&mut marker, 8);
            if complete {
                for registers in all {
                    registers.barrier.set_marking(false);
                }
            }
            complete
        });
        if complete {
            break;
        }
    }
    for id in 0..NODES {
        if memory.allocated[id].load(Ordering::Acquire) && !memory.is_marked(Id(id)) {
            memory.freed[id].store(true, Ordering::Relaxed);
        }
    }
}

fn with_world_stopped<T>(memory: &Memory, body: impl FnOnce(&mut [&mut Registers]) -> T) -> T {
    let mut first = memory.mutators[0].lock().unwrap();
    let mut second = memory.mutators[1].lock().unwrap();
    body(&mut [&mut first, &mut second])
}

fn run_once(program: Program, variant: Variant) {
    let memory = Arc::new(Memory::new(variant));
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                for section in program[number] {
                    section(&memory, &mut memory.mutators[number].lock().unwrap());
                }
            })
        })
        .collect();
    collect(&memory, variant);
    for thread in threads {
        thread.join().unwrap();
    }
    let mut todo: Vec<Id> = Vec::new();
    with_world_stopped(&memory, |all| {
        all.iter()
            .for_each(|registers| todo.extend(&registers.roots))
    });
    let mut seen = [false; NODES];
    while let Some(id) = todo.pop() {
        if id.is_node() && !std::mem::replace(&mut seen[id.0], true) {
            assert!(
                !memory.freed[id.0].load(Ordering::Relaxed),
                "{id:?} is reachable and was freed"
            );
            todo.push(memory.load(id));
        }
    }
}

/// True when some interleaving loses an object.
fn loses_an_object(program: Program, variant: Variant) -> bool {
    // In a thread of its own: a model that was left by a panic is left behind with it.
    let explored = std::thread::spawn(move || {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(PREEMPTIONS);
        builder.check(move || run_once(program, variant));
    });
    match explored.join() {
        Ok(()) => false,
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            assert!(
                message.contains("is reachable and was freed"),
                "the model itself failed: {message}"
            );
            true
        }
    }
}

#[test]
fn the_protocol_loses_nothing() {
    for program in PROGRAMS {
        assert!(!loses_an_object(program, Variant::Correct));
    }
}

#[test]
fn without_the_barrier_an_object_is_lost() {
    assert!(
        PROGRAMS
            .iter()
            .any(|&p| loses_an_object(p, Variant::NoBarrier))
    );
}

#[test]
fn with_the_guard_before_the_store_an_object_is_lost() {
    assert!(
        PROGRAMS
            .iter()
            .any(|&p| loses_an_object(p, Variant::GuardBeforeStore))
    );
}

#[test]
fn with_a_guard_after_the_store_and_no_fence_an_object_is_lost() {
    assert!(
        PROGRAMS
            .iter()
            .any(|&p| loses_an_object(p, Variant::GuardAfterStore))
    );
}

#[test]
fn without_the_second_look_at_the_roots_an_object_is_lost() {
    assert!(
        PROGRAMS
            .iter()
            .any(|&p| loses_an_object(p, Variant::NoSecondLook))
    );
}

#[test]
fn with_white_birth_an_object_is_lost() {
    assert!(
        PROGRAMS
            .iter()
            .any(|&p| loses_an_object(p, Variant::WhiteBirth))
    );
}
