//! Roots: handles that live as long as the program wants, on any thread.
//!
//! A [`Root`] keeps its object alive, and its heap. It is `'static`, can be stored anywhere, and can
//! be sent to another thread, which reads it through a session of its own. Each operation takes the
//! heap's lock: hold what is used often in a register or a local instead.
//!
//! Invariant: a raw reference in a global handle leaves the heap's lock only towards a session that
//! is running, so that it stays valid until that session's next safepoint.

use super::error::AccessError;
use super::gc::Gc;
use super::session::Session;
use crate::collector::Collector;
use crate::heap::Heap;
use crate::reference::Ref;
use crate::roots::GlobalId;
use std::fmt;

/// A global handle. See the [module text](self).
pub struct Root<C: Collector> {
    heap: Heap<C>,
    id: GlobalId,
}

impl<C: Collector> Root<C> {
    pub(super) fn new(object: Gc<'_, C>) -> Root<C> {
        let heap = object.session().heap();
        let id = heap.inner.lock().globals.insert(object.reference());
        Root { heap, id }
    }

    /// The object.
    pub fn get<'a>(&self, session: &'a Session<C>) -> Result<Gc<'a, C>, AccessError> {
        self.check(session)?;
        // Bound by itself: the lock is not held any more when the error, if any, is made.
        let reference = self.reference();
        if !reference.is_object() {
            return Err(AccessError::not_an_object("null"));
        }
        // SAFETY: read from a root of the session's heap, while the session runs.
        Ok(unsafe { Gc::new(session, reference) })
    }

    /// Leads it to another object of the same heap.
    pub fn set(&self, object: Gc<'_, C>) -> Result<(), AccessError> {
        self.check(object.session())?;
        let mut state = self.heap.inner.lock();
        state.globals.set(self.id, object.reference());
        Ok(())
    }

    /// The heap.
    pub fn heap(&self) -> &Heap<C> {
        &self.heap
    }

    fn reference(&self) -> Ref {
        let state = self.heap.inner.lock();
        state.globals.get(self.id).unwrap_or(Ref::NULL)
    }

    fn check(&self, session: &Session<C>) -> Result<(), AccessError> {
        if self.heap.inner.number == session.number() {
            return Ok(());
        }
        Err(AccessError::wrong_heap("root"))
    }
}

/// A second handle to the same object.
impl<C: Collector> Clone for Root<C> {
    fn clone(&self) -> Root<C> {
        // Both steps under one lock: this thread need not have a session, so that a collection
        // could move the object between them.
        let mut state = self.heap.inner.lock();
        let reference = state.globals.get(self.id).unwrap_or(Ref::NULL);
        let id = state.globals.insert(reference);
        drop(state);
        Root {
            heap: self.heap.clone(),
            id,
        }
    }
}

impl<C: Collector> Drop for Root<C> {
    fn drop(&mut self) {
        self.heap.inner.lock().globals.remove(self.id);
    }
}

impl<C: Collector> fmt::Debug for Root<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root {}", self.id.0)
    }
}
