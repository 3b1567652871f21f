//! Runs a program on a real heap and on the oracle, in step.

use super::catalogue::{self, Entry, Identity, Slot};
use super::operation::{Class, Length, Operation, Program, Room, Setting};
use super::oracle::{Number, Oracle, Value};
use crate::collector::Collector;
use crate::config::{HeapConfig, IncrementalSettings};
use crate::error::{AllocError, HeapError};
use crate::heap::Heap;
use crate::mutator::Mutator;
use crate::object;
use crate::observe::Observed;
use crate::reference::Ref;
use crate::roots::GlobalId;
use crate::shape::Kind;
use crate::weak::{GuardianId, Guardians};
use liveoak_graph::{
    ArcName, Isomorphism, Model, Name, NodeId, Observe, RootName, Trace, isomorphic_by,
};
use std::collections::{BTreeMap, VecDeque};

/// Roots on the stack; beyond that, new ones replace old ones.
const STACK: usize = 40;
const FRAME: usize = 4;
const GLOBALS: usize = 8;
const GUARDIANS: usize = 3;

/// What became of a program.
#[derive(Debug)]
pub struct Outcome {
    /// What the program saw of choices that are the collector's: each with the operation.
    pub decisions: Vec<(usize, Decision)>,
    /// The heap at the end, after a full collection.
    pub survivors: Model,
}

/// A choice of the collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// An allocation failed.
    OutOfMemory,
    /// A weak slot had been cleared when it was read.
    Cleared,
    /// A guardian handed an object over.
    Polled(u32),
    /// A guardian had nothing.
    Nothing,
    /// Stands in a guardian's queue at the end.
    Queued(u32),
}

/// Runs `program` with collector `C`; says what went wrong, and where.
pub fn run<C: Collector>(program: &Program) -> Result<Outcome, String> {
    let mut machine = Machine::<C>::new(program.setting)?;
    for (step, &operation) in program.operations.iter().enumerate() {
        machine.step = step;
        machine
            .run(operation)
            .and_then(|()| machine.look_at_guardians())
            .map_err(|problem| format!("at {step}: {operation:?}: {problem}"))?;
    }
    machine.step = program.operations.len();
    machine
        .finish()
        .map_err(|problem| format!("at the end: {problem}"))
}

struct Machine<C: Collector> {
    heap: Heap<C>,
    /// None only within [`Operation::Renew`].
    mutator: Option<Mutator<C, Vec<Ref>>>,
    entries: Vec<Entry>,
    globals: Vec<GlobalId>,
    guardians: Vec<GuardianId>,
    oracle: Oracle,
    setting: Setting,
    decisions: Vec<(usize, Decision)>,
    step: usize,
}

fn config(setting: Setting) -> HeapConfig {
    let (max_bytes, initial_bytes) = match setting.room {
        Room::Tiny => (12 * (32 << 10), 64 << 10),
        Room::Small => (4 << 20, 256 << 10),
        Room::Ample => (128 << 20, 512 << 10),
    };
    let stride = usize::from(setting.stride);
    HeapConfig {
        max_bytes,
        initial_bytes,
        growth: 1.5,
        nursery_bytes: 32 << 10,
        huge_pages: false,
        sanity: true,
        incremental: IncrementalSettings {
            mark_num: stride,
            sweep_num: stride,
            free_num: 0,
        },
        records: 8,
    }
}

/// The heap of that setting, or the smallest that the collector can work with.
fn make_heap<C: Collector>(setting: Setting) -> Result<Heap<C>, HeapError> {
    let mut config = config(setting);
    match Heap::new(config.clone()) {
        Err(HeapError::LimitTooSmall { least, .. }) => {
            config.max_bytes = least;
            Heap::new(config)
        }
        made => made,
    }
}

impl<C: Collector> Machine<C> {
    fn new(setting: Setting) -> Result<Machine<C>, String> {
        let words = |error: HeapError| error.to_string();
        let heap: Heap<C> = make_heap(setting).map_err(words)?;
        let entries = catalogue::define(&heap).map_err(words)?;
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut mutator = unsafe { heap.mutator_with(vec![Ref::NULL; FRAME]) };
        let guardians = (0..GUARDIANS).map(|_| mutator.create_guardian()).collect();
        let oracle = Oracle::new(FRAME, GUARDIANS);
        Ok(Machine {
            heap,
            mutator: Some(mutator),
            entries,
            globals: Vec::new(),
            guardians,
            oracle,
            setting,
            decisions: Vec::new(),
            step: 0,
        })
    }

    fn mutator(&mut self) -> &mut Mutator<C, Vec<Ref>> {
        self.mutator
            .as_mut()
            .expect("there is a mutator between operations")
    }

    fn decide(&mut self, decision: Decision) {
        self.decisions.push((self.step, decision));
    }

    fn run(&mut self, operation: Operation) -> Result<(), String> {
        match operation {
            Operation::New { shape, length } => {
                let entry = shape.index();
                let length = self.entries[entry].length(length);
                self.allocate(entry, length).map(drop)
            }
            Operation::Garbage {
                shape,
                length,
                count,
            } => self.garbage(shape, length, count),
            Operation::List { length } => self.list(length),
            Operation::Store {
                holder,
                slot,
                value,
            } => {
                let value = self.at(value);
                self.strong(holder, slot, |machine, at, object, slot| {
                    machine.write(at, object, slot, value);
                });
                Ok(())
            }
            Operation::Clear { holder, slot } => {
                self.strong(holder, slot, |machine, at, object, slot| {
                    let null = (Ref::NULL, Value::NULL);
                    machine.write(at, object, slot, null);
                });
                Ok(())
            }
            Operation::Immediate {
                holder,
                slot,
                number,
            } => {
                self.strong(holder, slot, |machine, at, object, slot| {
                    let immediate = Ref::immediate(number.into());
                    let value = (immediate, Value::Bits(immediate.to_bits()));
                    machine.write(at, object, slot, value);
                });
                Ok(())
            }
            Operation::Weak {
                holder,
                slot,
                value,
            } => {
                let value = self.at(value);
                if let Some((at, object)) = self.find(holder, |entry, _| !entry.weak.is_empty()) {
                    let slots = &self.entry(object).weak;
                    let slot = slots[slot as usize % slots.len()];
                    self.write(at, object, slot, value);
                }
                Ok(())
            }
            Operation::Ephemeron { holder, key, value } => {
                let (key, value) = (self.at(key), self.at(value));
                if let Some((at, object)) = self.find(holder, |entry, _| entry.ephemeron.is_some())
                    && let Some((key_slot, value_slot)) = self.entry(object).ephemeron
                {
                    self.write(at, object, key_slot, key);
                    self.write(at, object, value_slot, value);
                }
                Ok(())
            }
            Operation::Word {
                holder,
                slot,
                number,
            } => {
                self.word(holder, slot, number);
                Ok(())
            }
            Operation::Load { holder, slot } => self.load(holder, slot),
            Operation::Copy { from } => {
                let value = self.at(from);
                self.push(value);
                Ok(())
            }
            Operation::Move { from, to } => {
                let value = self.at(from);
                self.set(to, value);
                Ok(())
            }
            Operation::Drop { at } => {
                self.set(at, (Ref::NULL, Value::NULL));
                Ok(())
            }
            Operation::Truncate { keep } => {
                let keep = keep as usize % (STACK + 1);
                self.mutator().stack().truncate(keep);
                self.oracle.stack.truncate(keep);
                Ok(())
            }
            Operation::Frame { at, from } => {
                let (reference, value) = self.at(from);
                let at = at as usize % FRAME;
                self.mutator().roots()[at] = reference;
                self.oracle.frame[at] = value;
                Ok(())
            }
            Operation::Global { from } => {
                let (reference, value) = self.at(from);
                if self.globals.len() < GLOBALS {
                    let id = self.mutator().create_global(reference);
                    self.globals.push(id);
                    self.oracle.globals.insert(id.0, value);
                }
                Ok(())
            }
            Operation::SetGlobal { global, from } => {
                let (reference, value) = self.at(from);
                if let Some(id) = self.pick_global(global) {
                    self.mutator().set_global(id, reference);
                    self.oracle.globals.insert(id.0, value);
                }
                Ok(())
            }
            Operation::GetGlobal { global } => {
                if let Some(id) = self.pick_global(global) {
                    let reference = self.mutator().global(id).unwrap_or(Ref::NULL);
                    let value = self.oracle.globals[&id.0];
                    self.push((reference, value));
                }
                Ok(())
            }
            Operation::DropGlobal { global } => {
                if let Some(id) = self.pick_global(global) {
                    self.globals.retain(|&other| other != id);
                    self.mutator().drop_global(id);
                    self.oracle.globals.remove(&id.0);
                }
                Ok(())
            }
            Operation::Guard { guardian, target } => {
                self.guard(guardian, target);
                Ok(())
            }
            Operation::Poll { guardian } => self.poll(guardian),
            Operation::Step { count } => {
                for _ in 0..=count % 8 {
                    self.mutator().step();
                }
                Ok(())
            }
            Operation::Collect => self.collect(),
            Operation::Compare => self.compare(false).map(drop),
            Operation::Renew => {
                self.renew();
                Ok(())
            }
        }
    }

    fn finish(mut self) -> Result<Outcome, String> {
        self.collect()?;
        let queued: Vec<Number> = self.oracle.queues.iter().flatten().copied().collect();
        for number in queued {
            self.decide(Decision::Queued(number.0));
        }
        let survivors = self.mutator().observe(|memory| {
            liveoak_graph::snapshot(memory)
                .map(|snapshot| snapshot.model)
                .map_err(|error| error.to_string())
        })?;
        Ok(Outcome {
            decisions: self.decisions,
            survivors,
        })
    }
}

/// Roots and slots.
impl<C: Collector> Machine<C> {
    /// What stands on the stack at a position, in the heap and in the model.
    fn at(&mut self, position: u8) -> (Ref, Value) {
        let length = self.oracle.stack.len();
        if length == 0 {
            return (Ref::NULL, Value::NULL);
        }
        let index = position as usize % length;
        let reference = self.mutator().stack().get(index);
        (reference, self.oracle.stack[index])
    }

    fn set(&mut self, position: u8, (reference, value): (Ref, Value)) {
        let length = self.oracle.stack.len();
        if length > 0 {
            let index = position as usize % length;
            self.mutator().stack().set(index, reference);
            self.oracle.stack[index] = value;
        }
    }

    fn push(&mut self, (reference, value): (Ref, Value)) {
        if self.oracle.stack.len() < STACK {
            self.mutator().stack().push(reference);
            self.oracle.stack.push(value);
        } else {
            let victim = (self.step % STACK) as u8;
            self.set(victim, (reference, value));
        }
    }

    fn pick_global(&self, global: u8) -> Option<GlobalId> {
        let index = (global as usize).checked_rem(self.globals.len())?;
        Some(self.globals[index])
    }

    fn entry(&self, object: Number) -> &Entry {
        &self.entries[self.oracle.object(object).entry]
    }

    /// The first object on the stack from `position` on that is `wanted`, by shape and length.
    fn find(
        &mut self,
        position: u8,
        wanted: impl Fn(&Entry, u32) -> bool,
    ) -> Option<(Ref, Number)> {
        let length = self.oracle.stack.len();
        (0..length).find_map(|i| {
            let index = (position as usize + i) % length;
            let Value::Object(number) = self.oracle.stack[index] else {
                return None;
            };
            let object = self.oracle.object(number);
            wanted(&self.entries[object.entry], object.length)
                .then(|| (self.mutator().stack().get(index), number))
        })
    }

    fn strong(&mut self, holder: u8, slot: u16, then: impl FnOnce(&mut Self, Ref, Number, Slot)) {
        let found = self.find(holder, |entry, length| entry.strong_count(length) > 0);
        if let Some((at, object)) = found {
            let entry = self.entry(object);
            let count = entry.strong_count(self.oracle.object(object).length);
            let slot = entry.strong_slot(slot as usize % count);
            then(self, at, object, slot);
        }
    }

    fn write(&mut self, at: Ref, object: Number, slot: Slot, (reference, value): (Ref, Value)) {
        // SAFETY: both were read from the stack, with no safepoint since; the slot is of the shape.
        unsafe {
            match slot.kind {
                Kind::Reference => self.mutator().write(at, slot.number, reference),
                _ => self.mutator().write_weak(at, slot.number, reference),
            }
        }
        self.oracle.write(&self.entries, object, slot, value);
    }

    fn word(&mut self, holder: u8, slot: u16, number: u16) {
        let found = self.find(holder, |entry, length| entry.word_count(length) > 0);
        let Some((at, object)) = found else { return };
        let entry = self.entry(object);
        let count = entry.word_count(self.oracle.object(object).length);
        let slot = entry.word_slot(slot as usize % count);
        self.write_word(at, object, slot, u64::from(number) << 24 | 0xabcd);
    }

    fn write_word(&mut self, at: Ref, object: Number, slot: usize, word: u64) {
        // SAFETY: the object was read from the stack or allocated just now, and has a word there.
        unsafe { self.mutator().write_word(at, slot, word) };
        self.oracle.set_bits(object, slot, word as u32);
        self.oracle.set_bits(object, slot + 1, (word >> 32) as u32);
    }

    fn load(&mut self, holder: u8, slot: u16) -> Result<(), String> {
        let found = self.find(holder, |entry, length| {
            entry.strong_count(length) + entry.weak.len() > 0 || entry.ephemeron.is_some()
        });
        let Some((_, object)) = found else {
            return Ok(());
        };
        let entry = self.entry(object);
        let strong = entry.strong_count(self.oracle.object(object).length);
        let others = entry.weak.iter().copied();
        let others = others.chain(entry.ephemeron.into_iter().flat_map(|(k, v)| [k, v]));
        let others: Vec<Slot> = others.collect();
        // Half of the reads of a holder of weak slots go to those, however many strong ones it has.
        let index = slot as usize;
        let slot = if strong == 0 || !others.is_empty() && index.is_multiple_of(2) {
            others[index / 2 % others.len()]
        } else {
            entry.strong_slot(index % strong)
        };
        if slot.kind != Kind::Reference && self.setting.orderly {
            self.collect()?;
        }
        // A collection may have moved it.
        let found = self.find(holder, |entry, length| {
            entry.strong_count(length) + entry.weak.len() > 0 || entry.ephemeron.is_some()
        });
        let Some((at, object)) = found else {
            return Ok(());
        };
        // SAFETY: the object was read from the stack just now, and has this slot.
        let reference = unsafe { self.mutator().read(at, slot.number) };
        let mut value = self.oracle.read(object, slot);
        match value {
            Value::Object(_) if reference.is_null() => {
                self.oracle.cleared(&self.entries, object, slot)?;
                self.decide(Decision::Cleared);
                value = Value::NULL;
            }
            Value::Object(number) => self.recognise(reference, number)?,
            Value::Bits(bits) if bits != 0 && reference.is_null() && slot.kind == Kind::Value => {
                // An immediate value goes with its key.
                self.oracle.cleared(&self.entries, object, slot)?;
                self.decide(Decision::Cleared);
                value = Value::NULL;
            }
            Value::Bits(bits) if bits != reference.to_bits() => {
                return Err(format!(
                    "{slot:?} of {object:?} holds {reference:?} instead of {:?}",
                    Ref::from_bits(bits)
                ));
            }
            Value::Bits(_) => {}
        }
        self.push((reference, value));
        Ok(())
    }

    fn renew(&mut self) {
        let old = self.mutator();
        let roots: Vec<Ref> = old.stack_ref().as_slice().to_vec();
        let frame = old.roots().clone();
        let keep = |old: &mut Mutator<C, Vec<Ref>>, root: &Ref| old.create_global(*root);
        let stack: Vec<GlobalId> = roots.iter().map(|root| keep(old, root)).collect();
        let frame: Vec<GlobalId> = frame.iter().map(|root| keep(old, root)).collect();
        self.mutator = None;
        // SAFETY: the contract of the raw layer is kept throughout.
        self.mutator = Some(unsafe { self.heap.mutator_with(vec![Ref::NULL; FRAME]) });
        let new = self.mutator();
        for id in stack {
            let root = new.global(id).unwrap_or(Ref::NULL);
            new.stack().push(root);
            new.drop_global(id);
        }
        for (at, id) in frame.into_iter().enumerate() {
            let root = new.global(id).unwrap_or(Ref::NULL);
            new.roots()[at] = root;
            new.drop_global(id);
        }
    }
}

/// Allocation and guardians.
impl<C: Collector> Machine<C> {
    fn allocate_raw(&mut self, entry: usize, length: u32) -> Result<Option<Ref>, String> {
        let shape = self.entries[entry].shape;
        let result = match shape.is_array() {
            true => self.mutator().allocate_array(&shape, length),
            false => self.mutator().allocate(&shape),
        };
        match result {
            Ok(reference) => Ok(Some(reference)),
            Err(error) => self.out_of_memory(error).map(|()| None),
        }
    }

    /// After a failed allocation, the heap is as before.
    fn out_of_memory(&mut self, error: AllocError) -> Result<(), String> {
        if self.setting.room == Room::Ample {
            return Err(error.to_string());
        }
        self.decide(Decision::OutOfMemory);
        self.look_at_guardians()?;
        self.compare(false).map(drop)
    }

    /// Allocates and pushes; false when there was no memory.
    fn allocate(&mut self, entry: usize, length: u32) -> Result<bool, String> {
        let Some(reference) = self.allocate_raw(entry, length)? else {
            return Ok(false);
        };
        let number = self.oracle.allocate(&self.entries, entry, length);
        match self.entries[entry].identity(length) {
            Identity::Nowhere => {}
            Identity::Word(slot) => self.write_word(reference, number, slot, number.0.into()),
            Identity::Element => {
                let slot = Slot {
                    number: 0,
                    kind: Kind::Reference,
                    position: 0,
                };
                let id = Ref::immediate(number.0);
                self.write(reference, number, slot, (id, Value::Bits(id.to_bits())));
            }
        }
        self.push((reference, Value::Object(number)));
        Ok(true)
    }

    fn garbage(&mut self, shape: Class, length: Length, count: u8) -> Result<(), String> {
        let entry = shape.index();
        let length = self.entries[entry].length(length);
        // About as many bytes, whatever the size.
        let bytes = self.entries[entry].bytes(length);
        let most = (64 << 10) / bytes + 1;
        for _ in 0..=u64::from(count) % most.max(4) {
            if self.allocate_raw(entry, length)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Pairs, linked through their second slot.
    fn list(&mut self, length: u8) -> Result<(), String> {
        const PAIR: usize = 0;
        let top = match self.oracle.stack.len() {
            STACK.. => self.step % STACK,
            length => length,
        };
        self.push((Ref::NULL, Value::NULL));
        for _ in 0..=length {
            let Some(pair) = self.allocate_raw(PAIR, 0)? else {
                break;
            };
            let number = self.oracle.allocate(&self.entries, PAIR, 0);
            let rest = self.at(top as u8);
            let slot = self.entries[PAIR].strong_slot(1);
            self.write(pair, number, slot, rest);
            self.set(top as u8, (pair, Value::Object(number)));
        }
        Ok(())
    }

    fn guard(&mut self, guardian: u8, target: u8) {
        if self.setting.orderly {
            return;
        }
        let found = self.find(target, |entry, length| {
            entry.identity(length) != Identity::Nowhere
        });
        if let Some((reference, number)) = found {
            let guardian = guardian as usize % GUARDIANS;
            let id = self.guardians[guardian];
            self.mutator().guard(id, reference);
            self.oracle.guard(number, guardian);
        }
    }

    fn poll(&mut self, guardian: u8) -> Result<(), String> {
        if self.setting.orderly {
            return Ok(());
        }
        let guardian = guardian as usize % GUARDIANS;
        let id = self.guardians[guardian];
        let Some(reference) = self.mutator().next_dead(id) else {
            self.decide(Decision::Nothing);
            return match self.oracle.queues[guardian].front() {
                None => Ok(()),
                Some(lost) => Err(format!(
                    "the queue of guardian {guardian} has lost {lost:?}"
                )),
            };
        };
        if self.oracle.queues[guardian].is_empty() {
            // A collector that runs beside the program has put it there since the last operation.
            let mut queues: Vec<Vec<Number>> = self
                .oracle
                .queues
                .iter()
                .map(|queue| queue.iter().copied().collect())
                .collect();
            queues[guardian].push(self.identify(reference)?);
            self.oracle.accept(&self.entries, &queues)?;
        }
        let expected = self.oracle.queues[guardian].pop_front();
        let number = expected.ok_or("an empty queue gave an object")?;
        self.recognise(reference, number)?;
        self.decide(Decision::Polled(number.0));
        self.push((reference, Value::Object(number)));
        Ok(())
    }

    /// Follows what guardians have found dead since the last time.
    fn look_at_guardians(&mut self) -> Result<(), String> {
        let state = self.heap.inner.lock();
        follow_guardians(&mut self.oracle, &self.entries, &state.guardians)
    }

    fn identify(&self, reference: Ref) -> Result<Number, String> {
        identify(&self.entries, reference)
    }

    /// Checks that a reference leads to the object of that number.
    fn recognise(&self, reference: Ref, number: Number) -> Result<(), String> {
        match number_of(&self.entries, reference)? {
            Some(found) if found != number => Err(format!(
                "{reference:?} is {found:?} and should be {number:?}"
            )),
            _ => Ok(()),
        }
    }
}

fn follow_guardians(
    oracle: &mut Oracle,
    entries: &[Entry],
    guardians: &Guardians,
) -> Result<(), String> {
    let queues = &guardians.queues;
    if queues.iter().map(|queue| queue.len()).sum::<usize>() == oracle.queued() {
        return Ok(());
    }
    let numbers = |queue: &VecDeque<Ref>| queue.iter().map(|&r| identify(entries, r)).collect();
    let queues = queues.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
    oracle.accept(entries, &queues)
}

/// The number that an object carries.
fn identify(entries: &[Entry], reference: Ref) -> Result<Number, String> {
    number_of(entries, reference)?.ok_or_else(|| format!("{reference:?} should carry a number"))
}

fn number_of(entries: &[Entry], reference: Ref) -> Result<Option<Number>, String> {
    if !reference.is_object() {
        return Err(format!("{reference:?} should be an object"));
    }
    // SAFETY: the caller has it from a root or a slot, with no safepoint since.
    let word = unsafe { object::header(reference.address()) };
    let Some(entry) = (word.shape() as usize)
        .checked_sub(1)
        .and_then(|i| entries.get(i))
    else {
        return Err(format!("{reference:?} has no shape: {word:?}"));
    };
    let length = entry.element.map_or(0, |_| word.aux());
    let slot = |slot| object::slot_address(reference.address(), slot);
    Ok(match entry.identity(length) {
        Identity::Nowhere => None,
        // SAFETY: an object of this shape and length has its number there.
        Identity::Word(at) => Some(Number(unsafe { *(slot(at) as *const u64) } as u32)),
        // SAFETY: as above.
        Identity::Element => unsafe { object::load(slot(0)) }.as_immediate().map(Number),
    })
}

/// Comparison with the model.
impl<C: Collector> Machine<C> {
    fn collect(&mut self) -> Result<(), String> {
        self.mutator().collect();
        self.compare(true)
    }

    /// Compares the heap with the model; after a full collection, `complete`, exactly.
    fn compare(&mut self, complete: bool) -> Result<(), String> {
        let Machine {
            mutator,
            oracle,
            entries,
            decisions,
            step,
            ..
        } = self;
        let mutator = mutator.as_mut().expect("between operations");
        mutator.inspect(|world| {
            follow_guardians(oracle, entries, world.parts().2)?;
            if complete {
                oracle.collect(entries)?;
            }
            let reached = oracle.trace();
            let memory = Observed::new(world);
            let agree = |node: NodeId, reference: Ref| {
                same_contents(oracle, entries, &reached, &memory, node, reference)
            };
            let partners = isomorphic_by(&Strong(&oracle.model), &Strong(&memory), agree);
            let partners = partners.map_err(|difference| difference.to_string())?;
            for _ in 0..compare_weak(oracle, entries, &memory, &partners)? {
                decisions.push((*step, Decision::Cleared));
            }
            let (heap, model) = (memory.object_count(), oracle.model.len());
            if complete && heap != model {
                return Err(format!(
                    "after a full collection {heap} objects are left, of which {model} are alive:\n{}",
                    leftovers(&memory)
                ));
            }
            Ok(())
        })
    }
}

fn leftovers(memory: &Observed<'_>) -> String {
    let dead = liveoak_graph::dead(memory);
    let names: Vec<String> = dead.iter().take(10).map(|&n| memory.describe(n)).collect();
    format!("{} dead, among them {}", dead.len(), names.join(", "))
}

fn compare_weak(
    oracle: &mut Oracle,
    entries: &[Entry],
    memory: &Observed<'_>,
    partners: &Isomorphism<NodeId, Ref>,
) -> Result<usize, String> {
    let of: BTreeMap<Number, Ref> = partners
        .pairs()
        .iter()
        .map(|&(node, reference)| (oracle.number(node), reference))
        .collect();
    let partner = |number: Number| of.get(&number).copied();
    let held = |number: Number, slot: Slot| {
        let word = memory.words(partner(number)?).nth(slot.number / 2)?;
        Some(Ref::from_bits((word >> (slot.number % 2 * 32)) as u32))
    };
    oracle.compare_weak(entries, &held, &partner)
}

/// Everything but the targets of references: length, data, immediates, nulls.
fn same_contents(
    oracle: &Oracle,
    entries: &[Entry],
    reached: &Trace<NodeId>,
    memory: &Observed<'_>,
    node: NodeId,
    reference: Ref,
) -> Result<(), String> {
    let number = oracle.number(node);
    let object = oracle.object(number);
    let entry = &entries[object.entry];
    let (size, expected) = (memory.size(reference), entry.bytes(object.length));
    if size != expected {
        return Err(format!("{number:?} has {size} bytes instead of {expected}"));
    }
    let length = memory.header(reference).map_or(0, |word| word.aux());
    if entry.element.is_some() && length != object.length {
        return Err(format!(
            "{number:?} has length {length} instead of {}",
            object.length
        ));
    }
    // An ephemeron whose key is dead may have been cleared already, whatever its value.
    let doomed = entry.ephemeron.and_then(|(key, value)| {
        let key = oracle.object(*object.held.get(&key.number)?).node;
        (!reached.contains(key)).then_some(value.number)
    });
    for (index, word) in memory.words(reference).enumerate() {
        for (slot, found) in [
            (2 * index, word as u32),
            (2 * index + 1, (word >> 32) as u32),
        ] {
            if object.held.contains_key(&slot) {
                continue;
            }
            let expected = object.bits.get(&slot).copied().unwrap_or(0);
            if found == 0 && Some(slot) == doomed {
                continue;
            }
            if found != expected {
                return Err(format!(
                    "slot {slot} of {number:?} holds {found:#x} instead of {expected:#x}"
                ));
            }
        }
    }
    Ok(())
}

/// A memory without its weak arcs: they are compared apart.
struct Strong<'m, M>(&'m M);

impl<M: Observe> Observe for Strong<'_, M> {
    type Node = M::Node;

    fn roots(&self, visit: &mut dyn FnMut(RootName, M::Node)) {
        self.0.roots(visit);
    }

    fn nodes(&self, visit: &mut dyn FnMut(M::Node)) {
        self.0.nodes(visit);
    }

    fn arcs(&self, node: M::Node, visit: &mut dyn FnMut(ArcName, M::Node)) {
        self.0.arcs(node, visit);
    }

    fn class(&self, node: M::Node) -> Name {
        self.0.class(node)
    }

    fn size(&self, node: M::Node) -> u64 {
        self.0.size(node)
    }

    fn ephemerons(&self, node: M::Node, visit: &mut dyn FnMut(ArcName, M::Node, M::Node)) {
        self.0.ephemerons(node, visit);
    }

    fn describe(&self, node: M::Node) -> String {
        self.0.describe(node)
    }
}
