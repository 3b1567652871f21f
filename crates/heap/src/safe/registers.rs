//! Registers: the roots of a session as the register file, or stack, of a virtual machine.
//!
//! Every register is a root, and holds only what this layer has put there. So whatever index a
//! virtual machine computes, right or wrong, the worst that happens is an error or a wrong value.
//! An index needs no lifetime: it can stand in bytecode.
//!
//! What may collect (allocation) is a method of [`Session`], to which registers dereference; its
//! result goes to a register with [`Gc::push`] or [`Registers::set`] right after.

use super::error::{AccessError, Error, Refusal};
use super::field::RefField;
use super::gc::Gc;
use super::session::Session;
use super::value::Value;
use crate::collector::Collector;
use crate::reference::Ref;
use crate::roots::RootStack;
use crate::shape::Shape;
use std::ops::{Deref, DerefMut, Range};

/// The roots of a session by index. See the [module text](self).
#[repr(transparent)]
pub struct Registers<C: Collector> {
    session: Session<C>,
}

impl<C: Collector> Deref for Registers<C> {
    type Target = Session<C>;

    #[inline(always)]
    fn deref(&self) -> &Session<C> {
        &self.session
    }
}

impl<C: Collector> DerefMut for Registers<C> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Session<C> {
        &mut self.session
    }
}

impl<C: Collector> Registers<C> {
    #[inline(always)]
    pub(super) fn of(session: &mut Session<C>) -> &mut Registers<C> {
        // SAFETY: registers are a session, by `repr(transparent)`.
        unsafe { &mut *(session as *mut Session<C> as *mut Registers<C>) }
    }

    /// Calls `body` with the stack of roots.
    #[inline(always)]
    fn stack<T>(&self, body: impl FnOnce(&mut RootStack) -> T) -> T {
        // SAFETY: the stack is used by this thread alone while it runs, and every `body` of this
        // file is a single operation on it that does not call back.
        body(unsafe { &mut (*self.session.core()).stack })
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.session.depth()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `count` registers that hold null, and returns the index of the first: a frame.
    #[inline]
    pub fn reserve(&self, count: usize) -> usize {
        self.stack(|stack| {
            let first = stack.len();
            for _ in 0..count {
                stack.push(Ref::NULL);
            }
            first
        })
    }

    /// Drops all registers from index `length` on.
    #[inline(always)]
    pub fn truncate(&self, length: usize) {
        self.stack(|stack| stack.truncate(length));
    }

    /// Adds a register that holds `value`, and returns its index.
    #[inline(always)]
    pub fn push<'v>(&self, value: impl Into<Value<'v, C>>) -> Result<usize, AccessError>
    where
        C: 'v,
    {
        let reference = value.into().reference(&self.session)?;
        Ok(self.session.push_reference(reference))
    }

    /// Removes the last register and returns what it held; none when there is none.
    #[inline(always)]
    pub fn pop(&self) -> Option<Value<'_, C>> {
        let reference = self.stack(|stack| (!stack.is_empty()).then(|| stack.pop()))?;
        // SAFETY: read from a root of the session since its last safepoint.
        Some(unsafe { Value::new(&self.session, reference) })
    }

    #[inline(always)]
    fn reference(&self, index: usize) -> Result<Ref, AccessError> {
        let found = self.stack(|stack| stack.as_slice().get(index).copied());
        found.ok_or_else(|| self.no_such(index))
    }

    #[inline(always)]
    fn set_reference(&self, index: usize, reference: Ref) -> Result<(), AccessError> {
        if self.stack(|stack| stack.set(index, reference)) {
            return Ok(());
        }
        Err(self.no_such(index))
    }

    #[cold]
    #[inline(never)]
    fn no_such(&self, index: usize) -> AccessError {
        Refusal::NoSuchRegister {
            index,
            length: self.len(),
        }
        .into()
    }

    /// What a register holds.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Result<Value<'_, C>, AccessError> {
        let reference = self.reference(index)?;
        // SAFETY: read from a root of the session.
        Ok(unsafe { Value::new(&self.session, reference) })
    }

    /// The object that a register holds.
    #[inline(always)]
    pub fn object(&self, index: usize) -> Result<Gc<'_, C>, AccessError> {
        self.get(index)?.expect_object()
    }

    /// Writes a register.
    #[inline(always)]
    pub fn set<'v>(&self, index: usize, value: impl Into<Value<'v, C>>) -> Result<(), AccessError>
    where
        C: 'v,
    {
        let reference = value.into().reference(&self.session)?;
        self.set_reference(index, reference)
    }

    /// Copies a register.
    #[inline(always)]
    pub fn copy(&self, target: usize, source: usize) -> Result<(), AccessError> {
        self.set_reference(target, self.reference(source)?)
    }

    /// `target = object.field`
    #[inline(always)]
    pub fn load(&self, target: usize, object: usize, field: RefField) -> Result<(), AccessError> {
        let reference = self.object(object)?.load(field)?;
        self.set_reference(target, reference)
    }

    /// `object.field = source`
    #[inline(always)]
    pub fn store(&self, object: usize, field: RefField, source: usize) -> Result<(), AccessError> {
        let reference = self.reference(source)?;
        self.object(object)?.store(field, reference)
    }

    /// `target = object[slot]`, for any object that has a reference in that slot.
    #[inline(always)]
    pub fn load_slot(&self, target: usize, object: usize, slot: usize) -> Result<(), AccessError> {
        let reference = self.object(object)?.load_slot(slot)?;
        self.set_reference(target, reference)
    }

    /// `object[slot] = source`, for any object that has a reference in that slot.
    #[inline(always)]
    pub fn store_slot(&self, object: usize, slot: usize, source: usize) -> Result<(), AccessError> {
        let reference = self.reference(source)?;
        self.object(object)?.store_slot(slot, reference)
    }

    /// Allocates an object of a fixed shape whose first strong reference fields, in the order of
    /// their declaration, hold what these registers hold.
    #[inline(always)]
    pub fn allocate_with<const N: usize>(
        &mut self,
        shape: &Shape,
        initial: [usize; N],
    ) -> Result<Gc<'_, C>, Error> {
        let length = self.len();
        if let Some(&index) = initial.iter().find(|&&index| index >= length) {
            return Err(self.no_such(index).into());
        }
        self.session.allocate_from_roots(shape, initial)
    }

    /// Allocates an object of a fixed shape whose first strong reference fields hold what the last
    /// `N` registers hold, and removes these registers: the instruction of a stack machine. When
    /// there is no memory, the registers stay.
    #[inline(always)]
    pub fn allocate_popping<const N: usize>(&mut self, shape: &Shape) -> Result<Gc<'_, C>, Error> {
        let Some(first) = self.len().checked_sub(N) else {
            return Err(self.no_such(N - 1).into());
        };
        let initial = std::array::from_fn(|index| first + index);
        let new = self.session.allocate_from_roots::<N>(shape, initial)?;
        // SAFETY: as in `stack`.
        unsafe { (*new.session().core()).stack.truncate(first) };
        Ok(new)
    }

    /// Allocates an array of references whose elements are what a range of registers holds.
    pub fn allocate_array_with(
        &mut self,
        shape: &Shape,
        elements: Range<usize>,
    ) -> Result<Gc<'_, C>, Error> {
        if elements.end > self.len() {
            return Err(self.no_such(elements.end - 1).into());
        }
        // A length beyond 32 bits is beyond every heap; the allocation says so.
        let length = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        let array = self.session.allocate_array(shape, length)?;
        for (element, register) in elements.enumerate() {
            let value = array.session().root_at(register);
            array.store_slot(element, value)?;
        }
        Ok(array)
    }
}
