//! Sessions: a thread's access to the heap.
//!
//! The rule of the whole layer in one sentence: what may collect takes the session by `&mut`, all
//! else by `&`.

use super::error::{AccessError, Error, Reason, Refusal};
use super::field::{Data, Key};
use super::gc::Gc;
use super::registers::Registers;
use super::scope::{Scope, Truncate};
use crate::collector::Collector;
use crate::heap::Heap;
use crate::mutator::{Core, Mutator};
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, Shape, ShapeId, ShapeTable};
use std::cell::RefCell;
use std::fmt;

/// A thread's access to the heap. Not `Send`: a session belongs to the thread that made it.
///
/// ```compile_fail,E0277
/// # use liveoak_heap::{collectors::MarkSweep, config::HeapConfig, heap::Heap};
/// # let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default()).unwrap();
/// let mut session = heap.session().unwrap();
/// std::thread::spawn(move || session.collect()); // error: cannot be sent between threads
/// ```
///
/// A thread with a session must come to a safepoint now and then (an allocation,
/// [`Session::safepoint`]), and go through [`Session::blocking`] when it waits: other threads that
/// need a collection wait for it.
pub struct Session<C: Collector> {
    mutator: Mutator<C>,
    /// The heap's number, at hand for the checks; as it stands, and as it stands in a key.
    number: u32,
    key: Key,
}

thread_local! {
    /// Numbers of the heaps of which this thread has a session.
    static SESSIONS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

impl<C: Collector> Heap<C> {
    /// A session for the calling thread, which must not have one of this heap already: the thread
    /// could not come to a safepoint for both.
    pub fn session(&self) -> Result<Session<C>, Error> {
        let number = self.inner.number;
        let is_first = SESSIONS.try_with(|sessions| {
            let mut sessions = sessions.borrow_mut();
            let is_first = !sessions.contains(&number);
            if is_first {
                sessions.push(number);
            }
            is_first
        });
        // A thread whose list is gone is ending, and has dropped what sessions it had.
        if is_first == Ok(false) {
            return Err(Reason::SecondSession.into());
        }
        let mutator = self.mutator();
        debug_assert_eq!(mutator.heap_number(), number);
        Ok(Session {
            mutator,
            number,
            key: Key::new(number, 0),
        })
    }
}

impl<C: Collector> Drop for Session<C> {
    fn drop(&mut self) {
        // Fails only when the thread ends and its list is gone already.
        let _ = SESSIONS.try_with(|sessions| {
            if let Ok(mut sessions) = sessions.try_borrow_mut() {
                sessions.retain(|&number| number != self.number);
            }
        });
    }
}

impl<C: Collector> Session<C> {
    /// The heap.
    pub fn heap(&self) -> Heap<C> {
        self.mutator.heap()
    }

    /// The shapes of the heap.
    #[inline(always)]
    pub fn shapes(&self) -> &ShapeTable {
        self.mutator.shapes()
    }

    /// The shape of this index.
    pub fn shape(&self, id: ShapeId) -> Result<Shape, AccessError> {
        let shape = self.shapes().shape(id);
        shape.ok_or_else(|| AccessError::no_such_shape(id))
    }

    /// The heap's number.
    #[inline(always)]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The heap's number as the key of shape 0.
    #[inline(always)]
    pub(super) fn key(&self) -> Key {
        self.key
    }

    #[inline(always)]
    pub(super) fn core(&self) -> *mut Core<C> {
        self.mutator.core_pointer().as_ptr()
    }

    pub(super) fn mutator_mut(&mut self) -> &mut Mutator<C> {
        &mut self.mutator
    }

    /// Stores with the barrier.
    ///
    /// # Safety
    /// `slot` is the address of a reference slot of `object`, a valid object of this heap; `value`
    /// is null, an immediate, or a valid object of this heap.
    #[inline(always)]
    pub(super) unsafe fn store(&self, object: usize, slot: usize, value: Ref) {
        // SAFETY: promised by the caller. The local part is used by this thread alone while it runs,
        // and the barrier does not call back.
        unsafe {
            let local = &mut (*self.core()).local;
            C::store(local, self.shapes(), object, slot, value);
        }
    }

    /// Tells the collector that `target` is going to be the target of a weak slot.
    #[cold]
    pub(super) fn watch(&self, target: Ref) {
        if target.is_object() {
            self.mutator.inner().lock().collector.watch(target);
        }
    }

    #[inline(always)]
    pub(super) fn push_reference(&self, reference: Ref) -> usize {
        // SAFETY: the stack is used by this thread alone while it runs; no reference into it
        // outlives an operation.
        unsafe { (*self.core()).stack.push(reference) }
    }

    /// The root at `index`; null when there is none.
    #[inline(always)]
    pub(super) fn root_at(&self, index: usize) -> Ref {
        // SAFETY: as for `push_reference`.
        unsafe { (*self.core()).stack.get(index) }
    }

    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        // SAFETY: as for `push_reference`.
        unsafe { (*self.core()).stack.len() }
    }

    /// Allocates an object of a fixed shape; references are null, data zero.
    #[inline(always)]
    pub fn allocate(&mut self, shape: &Shape) -> Result<Gc<'_, C>, Error> {
        self.check_shape(shape, false)?;
        let reference = self.mutator.allocate(shape)?;
        // SAFETY: allocated just now.
        Ok(unsafe { Gc::new(self, reference) })
    }

    /// Allocates an array; references are null, data zero.
    #[inline]
    pub fn allocate_array(&mut self, shape: &Shape, length: u32) -> Result<Gc<'_, C>, Error> {
        self.check_shape(shape, true)?;
        let reference = self.mutator.allocate_array(shape, length)?;
        // SAFETY: allocated just now.
        Ok(unsafe { Gc::new(self, reference) })
    }

    /// Allocates an array of data with these elements.
    pub fn allocate_data<T: Data>(
        &mut self,
        shape: &Shape,
        elements: &[T],
    ) -> Result<Gc<'_, C>, Error> {
        // A length beyond 32 bits is beyond every heap; the allocation says so.
        let length = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        let array = self.allocate_array(shape, length)?;
        array.copy_from(0, elements)?;
        Ok(array)
    }

    /// Allocates an object of a fixed shape whose first strong reference fields, in the order of
    /// their declaration, are the roots at these indices.
    #[inline(always)]
    pub(super) fn allocate_from_roots<const N: usize>(
        &mut self,
        shape: &Shape,
        initial: [usize; N],
    ) -> Result<Gc<'_, C>, Error> {
        self.check_shape(shape, false)?;
        if (shape.leading as usize) < N {
            return self.allocate_from_roots_slowly(shape, &initial);
        }
        let initial = initial.map(|index| self.root_at(index));
        // SAFETY: the references were read from roots just now, and the shape begins with that many
        // strong references.
        let reference = unsafe { self.mutator.allocate_with(shape, initial) }?;
        // SAFETY: allocated just now.
        Ok(unsafe { Gc::new(self, reference) })
    }

    /// The same for shapes whose first slots are not all strong references.
    #[inline(never)]
    fn allocate_from_roots_slowly(
        &mut self,
        shape: &Shape,
        initial: &[usize],
    ) -> Result<Gc<'_, C>, Error> {
        let fields = match self.shapes().info(shape.id()) {
            Some(info) if info.strong.len() >= initial.len() => info.strong.clone(),
            Some(info) => {
                return Err(Refusal::TooManyInitial {
                    shape: info.name.as_str().into(),
                    given: initial.len(),
                    fields: info.strong.len(),
                }
                .into());
            }
            None => return Err(AccessError::no_such_shape(shape.id()).into()),
        };
        let new = self.allocate(shape)?;
        for (&offset, &index) in fields.iter().zip(initial) {
            let value = new.session().root_at(index);
            // SAFETY: the shape has a strong reference at this offset, and the value is a root.
            unsafe { new.store_at(new.address() + offset as usize, false, value) };
        }
        Ok(new)
    }

    /// The shape is one of this heap, and an array or not.
    #[inline(always)]
    fn check_shape(&self, shape: &Shape, is_array: bool) -> Result<(), AccessError> {
        if shape.heap == self.number && shape.is_array() == is_array {
            return Ok(());
        }
        Err(self.bad_shape(shape))
    }

    #[cold]
    #[inline(never)]
    fn bad_shape(&self, shape: &Shape) -> AccessError {
        if shape.heap != self.number {
            return AccessError::wrong_heap("shape");
        }
        let name = self
            .shapes()
            .info(shape.id())
            .map(|info| info.name.as_str());
        Refusal::NotThatForm {
            shape: name.unwrap_or_default().into(),
            is_array: matches!(shape.form, Form::References | Form::Data),
        }
        .into()
    }

    /// Runs `body` with a scope for handles; all handles of the scope end with it. See
    /// [`Scope`].
    #[inline(always)]
    pub fn scope<T>(&mut self, body: impl for<'s> FnOnce(&mut Scope<'s, 'static, C>) -> T) -> T {
        let _truncate = Truncate::new(self);
        body(Scope::of(self))
    }

    /// The roots of this session as a file of registers. See [`Registers`].
    #[inline(always)]
    pub fn registers(&mut self) -> &mut Registers<C> {
        Registers::of(self)
    }

    /// A point at which the world may stop. Call it in long loops that do not allocate.
    #[inline(always)]
    pub fn safepoint(&mut self) {
        self.mutator.safepoint();
    }

    /// Runs `body` while other threads may collect: for everything that waits (locks, channels,
    /// input).
    pub fn blocking<T>(&mut self, body: impl FnOnce() -> T) -> T {
        self.mutator.blocking(body)
    }

    /// Collects everything that is dead now.
    pub fn collect(&mut self) {
        self.mutator.collect();
    }

    /// Lets the collector do what it would do when memory runs out: a minor collection, a step.
    pub fn step(&mut self) {
        self.mutator.step();
    }

    /// The objects in which a weak slot was cleared since the last call, if
    /// [`Heap::remember_cleared`] was called: the ground of reference queues.
    pub fn take_cleared(&self) -> Vec<Gc<'_, C>> {
        let cleared = self.heap().take_cleared();
        // SAFETY: they were roots of this heap until now, and this session runs.
        let gc = |reference: Ref| unsafe { Gc::new(self, reference) };
        cleared.into_iter().map(gc).collect()
    }
}

impl<C: Collector> fmt::Debug for Session<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("collector", &C::NAME)
            .field("heap", &self.number)
            .field("registers", &self.depth())
            .finish()
    }
}

/// Compile-time check that slots can be read as they are written here.
const _: () = assert!(size_of::<Ref>() == 4 && object::slot_address(0, 1) == 12);
