//! Random programs, run on this collector and on mark-sweep: after each full collection both heaps
//! must hold the same objects, with the same references.
//!
//! Neither collector moves objects, so an object is named by a number that the driver notes for its
//! address. Mark-sweep collects only when told; reference counting may run as many epochs in between
//! as it likes, since what they free is not reachable and what is watched they do not free.

use super::*;
use crate::collector::Collector;
use crate::collectors::MarkSweep;
use crate::weak::GuardianId;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

const ROOTS: usize = 6;

#[derive(Clone, Copy, Debug)]
enum Name {
    Pair,
    Leaf,
    Short,
    Long,
    Weak,
    Ephemeron,
}

const STRONG: &[Name] = &[Name::Pair, Name::Leaf, Name::Short, Name::Long];
const ALL: &[Name] = &[
    Name::Pair,
    Name::Leaf,
    Name::Short,
    Name::Long,
    Name::Weak,
    Name::Ephemeron,
];

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// A new object of the shape into a root.
    New { shape: Name, root: usize },
    /// Many new objects, dropped at once: an epoch will come.
    Litter,
    /// A slot of one root's object gets another root's reference, or null.
    Write { to: usize, slot: usize, from: usize },
    /// A root gets what is in a slot of a root's object.
    Read { from: usize, slot: usize, to: usize },
    /// A root is dropped.
    Drop { root: usize },
    /// A root's object is guarded.
    Guard { root: usize },
    /// The guardian is asked.
    Take { root: usize },
    /// An epoch, where there are such.
    Epoch,
    /// A full collection, and a comparison.
    Collect,
}

/// Operations on objects of these shapes, with guardians at that weight.
fn operation(shapes: &'static [Name], guardians: u32) -> impl Strategy<Value = Operation> {
    let root = || 0..ROOTS;
    let shape = proptest::sample::select(shapes);
    prop_oneof![
        6 => (shape, root()).prop_map(|(shape, root)| Operation::New { shape, root }),
        12 => (root(), 0..40usize, 0..=ROOTS)
            .prop_map(|(to, slot, from)| Operation::Write { to, slot, from }),
        5 => (root(), 0..40usize, root())
            .prop_map(|(from, slot, to)| Operation::Read { from, slot, to }),
        3 => root().prop_map(|root| Operation::Drop { root }),
        guardians => root().prop_map(|root| Operation::Guard { root }),
        guardians => root().prop_map(|root| Operation::Take { root }),
        1 => Just(Operation::Litter),
        3 => Just(Operation::Epoch),
        1 => Just(Operation::Collect),
    ]
}

/// All objects of a heap: number, and the numbers in the slots that are not null.
type Snapshot = BTreeMap<usize, Vec<(usize, usize)>>;

struct Driver<C: Collector> {
    mutator: Mutator<C>,
    shapes: Vec<Shape>,
    guardian: GuardianId,
    names: HashMap<Ref, usize>,
    next_name: usize,
}

impl<C: Collector> Driver<C> {
    fn new() -> Driver<C> {
        // The nursery is the least there can be, for many epochs.
        let heap: Heap<C> = Heap::new(config().with_nursery_bytes(1)).unwrap();
        let specs = [
            ShapeSpec::fixed("Pair").reference("a").reference("b"),
            ShapeSpec::fixed("Leaf").word("data"),
            ShapeSpec::references("Short"),
            ShapeSpec::references("Long"),
            ShapeSpec::fixed("Weak")
                .weak("w")
                .reference("s")
                .with("p", Kind::Phantom),
            ShapeSpec::fixed("Ephemeron").ephemeron().reference("s"),
        ];
        let shapes = specs.map(|spec| heap.define(spec).unwrap()).to_vec();
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut mutator = unsafe { heap.mutator() };
        for _ in 0..=ROOTS {
            mutator.stack().push(Ref::NULL);
        }
        let guardian = mutator.create_guardian();
        Driver {
            mutator,
            shapes,
            guardian,
            names: HashMap::new(),
            next_name: 0,
        }
    }

    /// The kind of a slot of a root's object; none when there is no such object or slot.
    fn slot_kind(&self, root: usize, slot: usize) -> Option<(Ref, usize, Kind)> {
        let object = self.mutator.stack_ref().get(root);
        if !object.is_object() {
            return None;
        }
        // SAFETY: the roots hold objects.
        let word = unsafe { self.mutator.header(object) };
        let mut slots = Vec::new();
        // SAFETY: as above.
        unsafe {
            object::each_reference_slot(
                self.mutator.shapes(),
                object.address(),
                word,
                |kind, at| slots.push(((at - object.address() - 8) / 4, kind)),
            );
        }
        let &(slot, kind) = slots.get(slot % slots.len().max(1))?;
        Some((object, slot, kind))
    }

    fn run(&mut self, operation: Operation) -> Option<(Snapshot, Vec<usize>)> {
        match operation {
            Operation::New { shape, root } => {
                let description = self.shapes[shape as usize];
                let object = match shape {
                    Name::Short => self.mutator.allocate_array(&description, 10),
                    Name::Long => self.mutator.allocate_array(&description, 40),
                    _ => self.mutator.allocate(&description),
                };
                let object = object.unwrap();
                self.names.insert(object, self.next_name);
                self.next_name += 1;
                self.mutator.stack().set(root, object);
            }
            Operation::Litter => {
                for _ in 0..700 {
                    let shape = self.shapes[0];
                    let object = self.mutator.allocate(&shape).unwrap();
                    self.names.remove(&object);
                }
            }
            Operation::Write { to, slot, from } => {
                let value = self.mutator.stack_ref().get(from);
                let (object, slot, kind) = self.slot_kind(to, slot)?;
                // SAFETY: both were read from roots just now.
                unsafe {
                    match kind {
                        Kind::Reference => self.mutator.write(object, slot, value),
                        _ => self.mutator.write_weak(object, slot, value),
                    }
                }
            }
            Operation::Read { from, slot, to } => {
                let (object, slot, _) = self.slot_kind(from, slot)?;
                // SAFETY: as above.
                let value = unsafe { self.mutator.read(object, slot) };
                self.mutator.stack().set(to, value);
            }
            Operation::Drop { root } => {
                self.mutator.stack().set(root, Ref::NULL);
            }
            Operation::Guard { root } => {
                let object = self.mutator.stack_ref().get(root);
                self.mutator.guard(self.guardian, object);
            }
            Operation::Take { root } => {
                if let Some(object) = self.mutator.next_dead(self.guardian) {
                    self.mutator.stack().set(root, object);
                }
            }
            Operation::Epoch => {
                if C::NAME == RefCount::NAME {
                    self.mutator.step();
                }
            }
            Operation::Collect => {
                self.mutator.collect();
                return Some(self.snapshot());
            }
        }
        None
    }

    fn snapshot(&mut self) -> (Snapshot, Vec<usize>) {
        let names = &self.names;
        self.mutator.inspect(|world| {
            let shapes = world.shapes();
            let mut snapshot = Snapshot::new();
            let collector = world.collector();
            // SAFETY: the world is stopped.
            unsafe {
                collector.each_object(shapes, &mut |address, word| {
                    let object = Ref::from_address(address);
                    let slots = snapshot
                        .entry(names.get(&object).copied().unwrap_or(usize::MAX))
                        .or_default();
                    object::each_reference_slot(shapes, address, word, |_, slot| {
                        let target = object::load(slot);
                        if target.is_object() {
                            slots.push((slot - address, names[&target]));
                        }
                    });
                });
            }
            let mut roots = Vec::new();
            world.each_root(|root| roots.push(names.get(root).copied().unwrap_or(usize::MAX)));
            (snapshot, roots)
        })
    }
}

fn compare(program: Vec<Operation>) -> Result<(), TestCaseError> {
    let mut counting = Driver::<RefCount>::new();
    let mut marking = Driver::<MarkSweep>::new();
    for operation in program.into_iter().chain([Operation::Collect]) {
        prop_assert_eq!(counting.run(operation), marking.run(operation));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing is ever watched: counting and trial deletion decide.
    #[test]
    fn trial_deletion_agrees_with_mark_sweep(
        program in proptest::collection::vec(operation(STRONG, 0), 1..300)
    ) {
        compare(program)?;
    }

    /// Weak slots, ephemerons and guardians: epochs by counting, full collections by tracing.
    #[test]
    fn the_backup_agrees_with_mark_sweep(
        program in proptest::collection::vec(operation(ALL, 1), 1..300)
    ) {
        compare(program)?;
    }
}
