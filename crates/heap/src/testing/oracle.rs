//! What the heap should be: a [`Model`] that makes the same steps.
//!
//! Most of what a collector does is determined, and must agree exactly. Some is left to it, and
//! there the oracle follows the heap after it has checked that the choice was allowed:
//! - *when* an object that is dead is found dead. Until a full collection, a weak slot may be
//!   cleared if its target is not strongly reachable, and a guardian may hand over what is not;
//! - what hangs from an object that a guardian handed over was dead and is alive again. Weak slots
//!   that lead there are *doubtful* once: cleared or not, as the collector found it before or after.

use super::catalogue::{Entry, Slot};
use crate::reference::Ref;
use crate::shape::Kind;
use liveoak_graph::{Model, NodeId, Observe, RootName, Trace, Transform, dead, shortest_path};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An object, by the order of allocation: the same number as in the model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Number(pub(super) u32);

/// What a slot or a root holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// Null or an immediate.
    Bits(u32),
    Object(Number),
}

impl Value {
    pub(super) const NULL: Value = Value::Bits(0);

    fn object(self) -> Option<Number> {
        match self {
            Value::Object(number) => Some(number),
            Value::Bits(_) => None,
        }
    }
}

pub(super) struct Object {
    pub(super) node: NodeId,
    /// Its shape's entry in the catalogue.
    pub(super) entry: usize,
    pub(super) length: u32,
    /// What its slots hold that is no object: data and immediates, where not zero.
    pub(super) bits: BTreeMap<usize, u32>,
    /// What its reference slots hold, of any kind.
    pub(super) held: BTreeMap<usize, Number>,
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) model: Model,
    objects: Vec<Object>,
    /// Objects with slots that are not strong.
    special: BTreeSet<Number>,
    pub(super) stack: Vec<Value>,
    pub(super) frame: Vec<Value>,
    pub(super) globals: BTreeMap<u32, Value>,
    pub(super) queues: Vec<VecDeque<Number>>,
    watched: Vec<(Number, usize)>,
    doubtful: BTreeSet<Number>,
}

impl Oracle {
    pub(super) fn new(frame: usize, guardians: usize) -> Oracle {
        Oracle {
            frame: vec![Value::NULL; frame],
            queues: vec![VecDeque::new(); guardians],
            ..Oracle::default()
        }
    }

    pub(super) fn object(&self, number: Number) -> &Object {
        &self.objects[number.0 as usize]
    }

    pub(super) fn number(&self, node: NodeId) -> Number {
        Number(node.index() as u32)
    }

    pub(super) fn allocate(&mut self, entries: &[Entry], entry: usize, length: u32) -> Number {
        let shape = &entries[entry];
        let node = self
            .model
            .allocate(&shape.model(length))
            .expect("a model has names enough for any program");
        let number = self.number(node);
        if !shape.weak.is_empty() || shape.ephemeron.is_some() {
            self.special.insert(number);
        }
        self.objects.push(Object {
            node,
            entry,
            length,
            bits: BTreeMap::new(),
            held: BTreeMap::new(),
        });
        number
    }

    /// What a reference slot holds.
    pub(super) fn read(&self, object: Number, slot: Slot) -> Value {
        let object = self.object(object);
        match object.held.get(&slot.number) {
            Some(&target) => Value::Object(target),
            None => Value::Bits(object.bits.get(&slot.number).copied().unwrap_or(0)),
        }
    }

    pub(super) fn set_bits(&mut self, object: Number, slot: usize, bits: u32) {
        let all = &mut self.objects[object.0 as usize].bits;
        match bits {
            0 => all.remove(&slot),
            bits => all.insert(slot, bits),
        };
    }

    pub(super) fn write(&mut self, entries: &[Entry], object: Number, slot: Slot, value: Value) {
        let held = &mut self.objects[object.0 as usize].held;
        match value {
            Value::Object(target) => {
                held.insert(slot.number, target);
                self.set_bits(object, slot.number, 0);
            }
            Value::Bits(bits) => {
                held.remove(&slot.number);
                self.set_bits(object, slot.number, bits);
            }
        }
        self.store(entries, object, slot, value);
    }

    /// Brings the model up to date with what a slot holds.
    fn store(&mut self, entries: &[Entry], object: Number, slot: Slot, value: Value) {
        let node = self.object(object).node;
        let target = value.object().map(|number| self.object(number).node);
        let done = match slot.kind {
            Kind::Reference => self.model.store(node, slot.position, target),
            Kind::Weak | Kind::Phantom => self.model.store_weak(node, slot.position, target),
            Kind::Key | Kind::Value => self.store_entry(entries, object),
            Kind::Data(_) => Ok(()),
        };
        done.expect("the model has the slots of the catalogue");
    }

    fn store_entry(
        &mut self,
        entries: &[Entry],
        object: Number,
    ) -> Result<(), liveoak_graph::ModelError> {
        let node = self.object(object).node;
        let shape = &entries[self.object(object).entry];
        let Some((key, value)) = shape.ephemeron else {
            return Ok(());
        };
        let target = |slot| {
            let number = self.read(object, slot).object()?;
            Some(self.object(number).node)
        };
        let (key, value) = (target(key), target(value));
        self.model.store_ephemeron(node, 0, key.zip(value))?;
        let plain_value = value.filter(|_| key.is_none());
        let weak_key = key.filter(|_| value.is_none());
        self.model.store(node, shape.strong.len(), plain_value)?;
        self.model.store_weak(node, shape.weak.len(), weak_key)
    }

    /// The root names are those that the heap gives.
    fn set_roots(&mut self) {
        let mut old = Vec::new();
        self.model.roots(&mut |name, _| old.push(name));
        for name in old {
            self.model.remove_root(&name).expect("it was there");
        }
        let stack = self.stack.iter().enumerate();
        let stack = stack.map(|(i, &value)| (RootName::indexed("mutator 0 stack", i), value));
        let frame = self.frame.iter().enumerate();
        let frame =
            frame.map(|(i, &value)| (RootName::new(format!("mutator 0 frame root {i}")), value));
        let globals = self.globals.iter();
        let globals = globals.map(|(i, &value)| (RootName::new(format!("global {i}")), value));
        let queues = self.queues.iter().flatten().enumerate();
        let queues = queues.map(|(i, &number)| {
            (
                RootName::indexed("guardian queue", i),
                Value::Object(number),
            )
        });
        let roots = stack.chain(frame).chain(globals).chain(queues);
        for (name, value) in roots {
            if let Value::Object(number) = value {
                let node = self.objects[number.0 as usize].node;
                self.model
                    .add_root(name, node)
                    .expect("a root is allocated");
            }
        }
    }

    pub(super) fn trace(&mut self) -> Trace<NodeId> {
        self.set_roots();
        Trace::of(&self.model)
    }

    fn path(&self, number: Number) -> String {
        match shortest_path(&self.model, self.object(number).node) {
            Some(path) => path.to_string(),
            None => "no path".to_string(),
        }
    }

    pub(super) fn guard(&mut self, number: Number, guardian: usize) {
        self.watched.push((number, guardian));
    }

    pub(super) fn queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Takes note of the guardians' queues as they are in the heap: what is new was dead.
    pub(super) fn accept(
        &mut self,
        entries: &[Entry],
        queues: &[Vec<Number>],
    ) -> Result<(), String> {
        let before = self.trace();
        let mut fresh = BTreeSet::new();
        for (guardian, now) in queues.iter().enumerate() {
            let known = self.queues[guardian].len();
            if now.len() < known || !self.queues[guardian].iter().eq(&now[..known]) {
                return Err(format!(
                    "the queue of guardian {guardian} was {:?} and is now {now:?}",
                    self.queues[guardian]
                ));
            }
            for &number in &now[known..] {
                let entry = (number, guardian);
                let Some(at) = self.watched.iter().position(|&w| w == entry) else {
                    return Err(format!(
                        "guardian {guardian} handed over {number:?}, which it was not asked for"
                    ));
                };
                self.watched.swap_remove(at);
                if before.contains(self.object(number).node) {
                    return Err(format!(
                        "guardian {guardian} handed over {number:?}, which is alive:\n{}",
                        self.path(number)
                    ));
                }
                self.queues[guardian].push_back(number);
                fresh.insert(number);
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let after = self.trace();
        for holder in self.special.clone() {
            let node = self.object(holder).node;
            if !before.contains(node) {
                continue;
            }
            for slot in entries[self.object(holder).entry].weak.clone() {
                // Weak slots are cleared before guardians bring their target back.
                if let Value::Object(target) = self.read(holder, slot)
                    && slot.kind == Kind::Weak
                    && fresh.contains(&target)
                {
                    self.write(entries, holder, slot, Value::NULL);
                }
            }
        }
        let back = after.nodes().filter(|&node| !before.contains(node));
        self.doubtful.extend(back.map(|n| Number(n.index() as u32)));
        Ok(())
    }

    /// The program read null where the model holds `target`: may it have been cleared?
    pub(super) fn cleared(
        &mut self,
        entries: &[Entry],
        holder: Number,
        slot: Slot,
    ) -> Result<(), String> {
        let reached = self.trace();
        // An ephemeron is cleared when its key is gone.
        let decisive = match (slot.kind, entries[self.object(holder).entry].ephemeron) {
            (Kind::Value, Some((key, _))) => self.read(holder, key),
            _ => self.read(holder, slot),
        };
        let Value::Object(target) = decisive else {
            return Err(format!("{slot:?} of {holder:?} was cleared without reason"));
        };
        let alive = reached.contains(self.object(target).node);
        let doubtful = slot.kind == Kind::Weak && self.doubtful.contains(&target);
        if slot.kind == Kind::Reference || alive && !doubtful {
            return Err(format!(
                "{slot:?} of {holder:?} was cleared, but {target:?} is alive:\n{}",
                self.path(target)
            ));
        }
        self.clear(entries, holder, slot);
        Ok(())
    }

    /// Clears a weak slot, or an ephemeron as a whole.
    fn clear(&mut self, entries: &[Entry], holder: Number, slot: Slot) {
        let ephemeron = entries[self.object(holder).entry].ephemeron;
        match (slot.kind, ephemeron) {
            (Kind::Key | Kind::Value, Some((key, value))) => {
                self.write(entries, holder, key, Value::NULL);
                self.write(entries, holder, value, Value::NULL);
            }
            _ => self.write(entries, holder, slot, Value::NULL),
        }
    }

    /// Weak slots of live objects against those of the heap. `heap` gives what a slot of the
    /// object holds there. Returns how many doubtful ones the collector has chosen to clear.
    pub(super) fn compare_weak(
        &mut self,
        entries: &[Entry],
        heap: &dyn Fn(Number, Slot) -> Option<Ref>,
        partner: &dyn Fn(Number) -> Option<Ref>,
    ) -> Result<usize, String> {
        let mut chosen = 0;
        let reached = self.trace();
        for holder in self.special.clone() {
            let shape = &entries[self.object(holder).entry];
            if !reached.contains(self.object(holder).node) {
                continue;
            }
            let key = shape.ephemeron.map(|(key, _)| key);
            for slot in shape.weak.iter().copied().chain(key) {
                let now = heap(holder, slot);
                let expected = match self.read(holder, slot) {
                    Value::Object(target) if reached.contains(self.object(target).node) => {
                        if now == Some(Ref::NULL)
                            && slot.kind == Kind::Weak
                            && self.doubtful.contains(&target)
                        {
                            self.clear(entries, holder, slot);
                            chosen += 1;
                            continue;
                        }
                        partner(target)
                    }
                    // A dead target: before a full collection, cleared or not yet.
                    Value::Object(_) => continue,
                    Value::Bits(bits) => Some(Ref::from_bits(bits)),
                };
                if now != expected {
                    return Err(format!(
                        "{slot:?} of {holder:?} holds {now:?} and should hold {expected:?}, which is {:?}",
                        self.read(holder, slot)
                    ));
                }
            }
        }
        self.doubtful.clear();
        Ok(chosen)
    }

    /// A full collection of the model, guardians excepted: those were [accepted](Oracle::accept),
    /// and must have handed over whatever was dead.
    pub(super) fn collect(&mut self, entries: &[Entry]) -> Result<(), String> {
        let reached = self.trace();
        for &(number, guardian) in &self.watched {
            if !reached.contains(self.object(number).node) {
                return Err(format!(
                    "{number:?} is dead, and guardian {guardian} has not handed it over"
                ));
            }
        }
        let gone: Vec<NodeId> = dead(&self.model).into_iter().collect();
        for holder in self.special.clone() {
            let object = self.object(holder);
            if !reached.contains(object.node) {
                self.special.remove(&holder);
                continue;
            }
            let shape = &entries[object.entry];
            let key = shape.ephemeron.map(|(key, _)| key);
            for slot in shape.weak.iter().copied().chain(key) {
                if let Value::Object(target) = self.read(holder, slot)
                    && !reached.contains(self.object(target).node)
                {
                    self.clear(entries, holder, slot);
                }
            }
        }
        self.model
            .collect(&gone)
            .map_err(|error| format!("the model: {error}"))
    }
}
