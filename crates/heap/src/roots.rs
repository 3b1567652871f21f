//! Roots: where tracing begins.
//!
//! A mutator has a stack of references of its own ([`RootStack`]), and may own a further source of
//! roots, the frames of a virtual machine ([`Roots`]). The heap has global handles ([`Globals`]).

use crate::reference::Ref;

/// A source of roots that a mutator owns: the frames of a virtual machine, say.
pub trait Roots: Send {
    /// Calls `visit` with every root. A moving collector changes what it is given; a root that is
    /// not visited is not kept.
    fn trace(&mut self, visit: &mut dyn FnMut(&mut Ref));

    /// The name of the `index`-th root, in the order of [`Roots::trace`], for paths and reports.
    fn name(&self, index: usize) -> String {
        format!("frame root {index}")
    }
}

impl Roots for () {
    fn trace(&mut self, _: &mut dyn FnMut(&mut Ref)) {}
}

impl Roots for Vec<Ref> {
    fn trace(&mut self, visit: &mut dyn FnMut(&mut Ref)) {
        self.iter_mut().for_each(visit);
    }
}

/// A mutator's stack of roots.
#[derive(Default, Debug)]
pub struct RootStack {
    slots: Vec<Ref>,
}

impl RootStack {
    /// Pushes a root and returns its index.
    #[inline(always)]
    pub fn push(&mut self, reference: Ref) -> usize {
        self.slots.push(reference);
        self.slots.len() - 1
    }

    /// Pops the last root; null when there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> Ref {
        self.slots.pop().unwrap_or(Ref::NULL)
    }

    /// The root at `index`; null when there is none.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Ref {
        self.slots.get(index).copied().unwrap_or(Ref::NULL)
    }

    /// Overwrites the root at `index`; false when there is none.
    #[inline(always)]
    pub fn set(&mut self, index: usize, reference: Ref) -> bool {
        match self.slots.get_mut(index) {
            Some(slot) => {
                *slot = reference;
                true
            }
            None => false,
        }
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Drops all roots from index `length` on.
    #[inline(always)]
    pub fn truncate(&mut self, length: usize) {
        self.slots.truncate(length);
    }

    /// All roots, oldest first.
    pub fn as_slice(&self) -> &[Ref] {
        &self.slots
    }

    /// All roots, oldest first, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [Ref] {
        &mut self.slots
    }
}

/// Names a global handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct GlobalId(pub(crate) u32);

/// The global handles of a heap.
#[derive(Default, Debug)]
pub struct Globals {
    slots: Vec<Option<Ref>>,
    free: Vec<u32>,
}

impl Globals {
    pub(crate) fn insert(&mut self, reference: Ref) -> GlobalId {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(reference);
                GlobalId(index)
            }
            None => {
                self.slots.push(Some(reference));
                GlobalId(self.slots.len() as u32 - 1)
            }
        }
    }

    pub(crate) fn remove(&mut self, id: GlobalId) {
        if self
            .slots
            .get_mut(id.0 as usize)
            .and_then(Option::take)
            .is_some()
        {
            self.free.push(id.0);
        }
    }

    pub(crate) fn get(&self, id: GlobalId) -> Option<Ref> {
        self.slots.get(id.0 as usize).copied().flatten()
    }

    pub(crate) fn set(&mut self, id: GlobalId, reference: Ref) {
        if let Some(Some(slot)) = self.slots.get_mut(id.0 as usize) {
            *slot = reference;
        }
    }

    pub(crate) fn each(&mut self, mut visit: impl FnMut(GlobalId, &mut Ref)) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if let Some(reference) = slot {
                visit(GlobalId(index as u32), reference);
            }
        }
    }
}
