//! Scopes and locals: handles that survive a collection.
//!
//! A [`Local`] is the index of a root of the session, so a moving collector keeps it right. It
//! belongs to a [`Scope`], by lifetime: it can be used in that scope and in those within it, and not
//! after its end. What may collect takes the scope by `&mut`; a local, unlike a
//! [`Gc`], does not borrow it, and so can be held across.
//!
//! A scope is a closure rather than a guard value: it always ends, also by a panic, and in the
//! right order. The lifetime `'s` of a scope is chosen anew for each call, so the locals of one
//! scope are of a type that no scope of another heap or thread accepts. Soundness does not hang on
//! it: an index beyond the stack of roots reads as null.

use super::error::{AccessError, Error};
use super::field::RefField;
use super::gc::Gc;
use super::session::Session;
use super::value::Value;
use crate::collector::Collector;
use crate::mutator::Core;
use crate::reference::Ref;
use crate::shape::Shape;
use std::marker::PhantomData;
use std::ops::Deref;

/// A handle of a scope: holds a value across collections. See the [module text](self).
#[derive(Clone, Copy, Debug)]
pub struct Local<'s> {
    index: usize,
    /// Not `Send`: the index means something to one session only.
    scope: PhantomData<(&'s (), *const ())>,
}

impl Local<'_> {
    #[inline(always)]
    fn new(index: usize) -> Self {
        Local {
            index,
            scope: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn index(self) -> usize {
        self.index
    }
}

/// Makes a type that mentions it invariant in `'a`.
type Invariant<'a> = fn(&'a ()) -> &'a ();

/// A scope for handles, within the scope `'outer`. Everything of a [`Session`] that does not
/// collect can be used through it as well.
#[repr(transparent)]
pub struct Scope<'s, 'outer: 's, C: Collector> {
    session: Session<C>,
    brand: PhantomData<(Invariant<'s>, Invariant<'outer>)>,
}

impl<C: Collector> Deref for Scope<'_, '_, C> {
    type Target = Session<C>;

    #[inline(always)]
    fn deref(&self) -> &Session<C> {
        &self.session
    }
}

impl<'s, 'outer: 's, C: Collector> Scope<'s, 'outer, C> {
    #[inline(always)]
    pub(super) fn of(session: &mut Session<C>) -> &mut Scope<'s, 'outer, C> {
        // SAFETY: a scope is a session, by `repr(transparent)`.
        unsafe { &mut *(session as *mut Session<C> as *mut Scope<'s, 'outer, C>) }
    }

    /// Runs `body` with a scope of its own; its handles end with it.
    #[inline(always)]
    pub fn nested<T>(&mut self, body: impl for<'i> FnOnce(&mut Scope<'i, 's, C>) -> T) -> T {
        let _truncate = Truncate::new(&self.session);
        body(Scope::of(&mut self.session))
    }

    /// Runs `body` with a scope of its own; the handle that it returns becomes one of this scope,
    /// all others end.
    #[inline(always)]
    pub fn escaping<E>(
        &mut self,
        body: impl for<'i> FnOnce(&mut Scope<'i, 's, C>) -> Result<Local<'i>, E>,
    ) -> Result<Local<'s>, E> {
        let truncate = Truncate::new(&self.session);
        let index = body(Scope::of(&mut self.session))?.index();
        let value = self.session.root_at(index);
        let length = truncate.length;
        std::mem::forget(truncate);
        // SAFETY: the stack is used by this thread alone while it runs. It is not lower than it was:
        // within a scope, only inner scopes drop roots, and only their own.
        unsafe { (*self.session.core()).stack.put(length, value) };
        Ok(Local::new(length))
    }

    #[inline(always)]
    fn push(&self, reference: Ref) -> Local<'s> {
        Local::new(self.session.push_reference(reference))
    }

    /// A new handle for `value`.
    #[inline(always)]
    pub fn local<'v>(&self, value: impl Into<Value<'v, C>>) -> Result<Local<'s>, AccessError>
    where
        C: 'v,
    {
        let reference = value.into().reference(&self.session)?;
        Ok(self.push(reference))
    }

    /// A new handle that holds null.
    #[inline(always)]
    pub fn null(&self) -> Local<'s> {
        self.push(Ref::NULL)
    }

    /// What a handle holds.
    #[inline(always)]
    pub fn value(&self, local: Local<'s>) -> Value<'_, C> {
        let reference = self.session.root_at(local.index());
        // SAFETY: read from a root of the session.
        unsafe { Value::new(&self.session, reference) }
    }

    /// The object that a handle holds.
    #[inline(always)]
    pub fn object(&self, local: Local<'s>) -> Result<Gc<'_, C>, AccessError> {
        self.value(local).expect_object()
    }

    /// Lets a handle hold another value.
    #[inline(always)]
    pub fn assign<'v>(
        &self,
        local: Local<'s>,
        value: impl Into<Value<'v, C>>,
    ) -> Result<(), AccessError>
    where
        C: 'v,
    {
        let reference = value.into().reference(&self.session)?;
        // SAFETY: the stack is used by this thread alone while it runs; no reference into it
        // outlives an operation.
        unsafe { (*self.session.core()).stack.set(local.index(), reference) };
        Ok(())
    }

    /// A new handle for what a field of an object holds.
    #[inline(always)]
    pub fn get(&self, object: Local<'s>, field: RefField) -> Result<Local<'s>, AccessError> {
        let reference = self.object(object)?.load(field)?;
        Ok(self.push(reference))
    }

    /// Writes what `value` holds into a field of an object, through the barrier.
    #[inline(always)]
    pub fn set(
        &self,
        object: Local<'s>,
        field: RefField,
        value: Local<'s>,
    ) -> Result<(), AccessError> {
        let reference = self.session.root_at(value.index());
        self.object(object)?.store(field, reference)
    }

    /// Allocates an object of a fixed shape; references are null, data zero.
    #[inline(always)]
    pub fn allocate(&mut self, shape: &Shape) -> Result<Local<'s>, Error> {
        let index = self.session.allocate(shape)?.push();
        Ok(Local::new(index))
    }

    /// Allocates an object of a fixed shape whose first strong reference fields, in the order of
    /// their declaration, hold these values.
    #[inline(always)]
    pub fn allocate_with<const N: usize>(
        &mut self,
        shape: &Shape,
        initial: [Local<'s>; N],
    ) -> Result<Local<'s>, Error> {
        let initial = initial.map(Local::index);
        let index = self.session.allocate_from_roots(shape, initial)?.push();
        Ok(Local::new(index))
    }

    /// Allocates an array; references are null, data zero.
    #[inline]
    pub fn allocate_array(&mut self, shape: &Shape, length: u32) -> Result<Local<'s>, Error> {
        let index = self.session.allocate_array(shape, length)?.push();
        Ok(Local::new(index))
    }

    /// Allocates an array of data with these elements.
    pub fn allocate_data<T: super::Data>(
        &mut self,
        shape: &Shape,
        elements: &[T],
    ) -> Result<Local<'s>, Error> {
        let index = self.session.allocate_data(shape, elements)?.push();
        Ok(Local::new(index))
    }

    /// See [`Session::safepoint`].
    #[inline(always)]
    pub fn safepoint(&mut self) {
        self.session.safepoint();
    }

    /// See [`Session::blocking`].
    pub fn blocking<T>(&mut self, body: impl FnOnce() -> T) -> T {
        self.session.blocking(body)
    }

    /// See [`Session::collect`].
    pub fn collect(&mut self) {
        self.session.collect();
    }

    /// See [`Session::step`].
    pub fn step(&mut self) {
        self.session.step();
    }

    /// See [`Session::each_object`].
    pub fn each_object(&mut self, visit: impl for<'v> FnMut(Gc<'v, C>)) {
        self.session.each_object(visit);
    }
}

/// Cuts the stack of roots back to the length that it had, also when a panic passes.
pub(super) struct Truncate<C: Collector> {
    core: *mut Core<C>,
    length: usize,
}

impl<C: Collector> Truncate<C> {
    #[inline(always)]
    pub(super) fn new(session: &Session<C>) -> Truncate<C> {
        Truncate {
            core: session.core(),
            length: session.depth(),
        }
    }
}

impl<C: Collector> Drop for Truncate<C> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the session, and with it the core, is borrowed by the scope's closure and lives
        // longer than this guard, which is local to `scope`, `nested` or `escaping`.
        unsafe { (*self.core).stack.truncate(self.length) };
    }
}
