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
///
/// It can be used as a stack, by [`push`](RootStack::push) and [`pop`](RootStack::pop), or as the
/// frames of a machine that keeps its own stack pointer in a register, by
/// [`put`](RootStack::put): then no operation waits for the length that the one before has
/// written to memory, which is what makes a push slow.
///
/// Invariant: all of `slots` is initialised; those below `length` are roots, the others are not
/// looked at.
#[derive(Debug)]
pub struct RootStack {
    slots: Box<[Ref]>,
    length: usize,
}

impl Default for RootStack {
    fn default() -> RootStack {
        RootStack {
            slots: vec![Ref::NULL; 64].into_boxed_slice(),
            length: 0,
        }
    }
}

impl RootStack {
    /// Pushes a root and returns its index.
    #[inline(always)]
    pub fn push(&mut self, reference: Ref) -> usize {
        let index = self.length;
        // SAFETY: the index is the length.
        unsafe { self.put(index, reference) };
        index
    }

    /// Makes `reference` the root at `index` and the last one: what lay above is dropped.
    ///
    /// # Safety
    /// `index` is at most [`len`](RootStack::len); debug builds assert it. (Beyond it lie
    /// references that were roots once, and would be roots again.)
    #[inline(always)]
    pub unsafe fn put(&mut self, index: usize, reference: Ref) {
        debug_assert!(index <= self.length, "a gap in the stack of roots");
        if index >= self.slots.len() {
            self.grow(index);
        }
        // SAFETY: `grow` has made room.
        unsafe { *self.slots.get_unchecked_mut(index) = reference };
        self.length = index + 1;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: usize) {
        let mut slots = std::mem::take(&mut self.slots).into_vec();
        slots.resize((index + 1).max(slots.len() * 2), Ref::NULL);
        self.slots = slots.into_boxed_slice();
    }

    /// Pops the last root; null when there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> Ref {
        match self.length.checked_sub(1) {
            Some(last) => {
                self.length = last;
                self.slots[last]
            }
            None => Ref::NULL,
        }
    }

    /// The root at `index`; null when there is none.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Ref {
        self.as_slice().get(index).copied().unwrap_or(Ref::NULL)
    }

    /// The root at `index`, unchecked but in debug builds.
    ///
    /// # Safety
    /// `index` is below [`len`](RootStack::len).
    #[inline(always)]
    pub unsafe fn at(&self, index: usize) -> Ref {
        debug_assert!(index < self.length);
        // SAFETY: promised by the caller, and the length is never beyond the slots.
        unsafe { *self.slots.get_unchecked(index) }
    }

    /// Overwrites the root at `index`; false when there is none.
    #[inline(always)]
    pub fn set(&mut self, index: usize, reference: Ref) -> bool {
        match self.as_mut_slice().get_mut(index) {
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
        self.length
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Drops all roots from index `length` on.
    #[inline(always)]
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// All roots, oldest first.
    #[inline(always)]
    pub fn as_slice(&self) -> &[Ref] {
        // SAFETY: the length is never beyond the slots.
        unsafe { self.slots.get_unchecked(..self.length) }
    }

    /// All roots, oldest first, to be changed in place.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [Ref] {
        // SAFETY: as above.
        unsafe { self.slots.get_unchecked_mut(..self.length) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_and_its_frames() {
        let mut stack = RootStack::default();
        for i in 0..1000 {
            assert_eq!(stack.push(Ref::immediate(i)), i as usize);
        }
        assert_eq!(stack.get(999), Ref::immediate(999));
        assert_eq!(stack.get(1000), Ref::NULL);
        // SAFETY: 10 is below the length.
        unsafe { stack.put(10, Ref::immediate(7)) };
        assert_eq!(stack.len(), 11);
        assert_eq!(stack.pop(), Ref::immediate(7));
        assert_eq!(stack.pop(), Ref::immediate(9));
        stack.truncate(3);
        assert!(stack.set(2, Ref::NULL) && !stack.set(3, Ref::NULL));
        assert_eq!(stack.as_slice().len(), 3);
        stack.truncate(0);
        assert!(stack.is_empty() && stack.pop().is_null());
    }
}
