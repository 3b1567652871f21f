//! Guardians: finalizers that run when the program says so.
//!
//! An object that is put under a [`Guardian`] and then dies is not freed: the guardian hands it
//! back, alive again, and the program cleans up after it at a time of its own choosing, on its own
//! thread (Dybvig, Bruggeman and Eby, "Guardians in a generation-based garbage collector", PLDI
//! 1993). A second death is final, unless the object is put under the guardian again.

use super::error::AccessError;
use super::gc::Gc;
use super::session::Session;
use crate::collector::Collector;
use crate::heap::Heap;
use crate::weak::GuardianId;
use std::fmt;

/// Hands back objects that have died. Made by [`Heap::guardian`]; may be shared between threads.
/// When it is dropped, it forgets whom it watches.
pub struct Guardian<C: Collector> {
    heap: Heap<C>,
    id: GuardianId,
}

impl<C: Collector> Heap<C> {
    /// A new guardian.
    pub fn guardian(&self) -> Guardian<C> {
        let id = self.inner.lock().guardians.create();
        Guardian {
            heap: self.clone(),
            id,
        }
    }
}

impl<C: Collector> Guardian<C> {
    /// Watches over `object`: hands it back when it has died. May be asked several times, and then
    /// hands it back as often.
    pub fn watch(&self, object: Gc<'_, C>) -> Result<(), AccessError> {
        self.check(object.session())?;
        let mut state = self.heap.inner.lock();
        state.collector.watch(object.reference());
        state.guardians.watch(self.id, object.reference());
        Ok(())
    }

    /// The next object that has died, brought back to life.
    pub fn next<'a>(&self, session: &'a Session<C>) -> Result<Option<Gc<'a, C>>, AccessError> {
        self.check(session)?;
        let dead = self.heap.inner.lock().guardians.take(self.id);
        // SAFETY: it was a root of the session's heap until now, and the session runs.
        Ok(dead.map(|object| unsafe { Gc::new(session, object) }))
    }

    fn check(&self, session: &Session<C>) -> Result<(), AccessError> {
        if self.heap.inner.number == session.number() {
            return Ok(());
        }
        Err(AccessError::wrong_heap("guardian"))
    }
}

impl<C: Collector> Drop for Guardian<C> {
    fn drop(&mut self) {
        self.heap.inner.lock().guardians.close(self.id);
    }
}

impl<C: Collector> fmt::Debug for Guardian<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guardian {}", self.id.0)
    }
}
