//! Borrowed references: what a program works with between two safepoints.
//!
//! A [`Gc`] borrows its [`Session`]. Whatever may collect (allocation, a safepoint, a blocking call)
//! takes the session by `&mut`, which ends all such borrows: the compiler refuses a program that
//! holds a `Gc` across it. So a `Gc` needs no rooting, no count, and no check that it is alive.
//!
//! Invariant: a `Gc` leads to an object of its session's heap that was reachable, or was allocated,
//! since the session's last safepoint.
//!
//! Stores do not allocate; they go through `&self`. The barrier writes to the session's own part of
//! the collector, which nobody else touches: a session belongs to one thread, and no operation on
//! it calls back.

use super::error::{AccessError, Refusal};
use super::field::{Data, DataField, Key, RefField, Token, describe, wrong_kind};
use super::root::Root;
use super::session::Session;
use super::value::Value;
use crate::collector::Collector;
use crate::header::{HEADER_BYTES, Header};
use crate::object;
use crate::reference::Ref;
use crate::shape::{Form, Kind, Shape, ShapeId, ShapeInfo};
use std::fmt;
use std::hash::{Hash, Hasher};

/// A reference to an object, valid as long as the session is borrowed. See the
/// [module text](self). It stays on its thread:
///
/// ```compile_fail,E0277
/// # use liveoak_heap::{collectors::MarkSweep, config::HeapConfig, heap::Heap, shape::ShapeSpec};
/// # let heap: Heap<MarkSweep> = Heap::new(HeapConfig::default()).unwrap();
/// # let pair = heap.define(ShapeSpec::fixed("Pair").reference("head")).unwrap();
/// # let mut session = heap.session().unwrap();
/// let gc = session.allocate(&pair).unwrap();
/// std::thread::scope(|threads| {
///     threads.spawn(move || gc.shape()); // error: cannot be shared between threads
/// });
/// ```
pub struct Gc<'a, C: Collector> {
    session: &'a Session<C>,
    reference: Ref,
}

impl<'a, C: Collector> Gc<'a, C> {
    /// # Safety
    /// `reference` is an object of the session's heap, valid until its next safepoint.
    #[inline(always)]
    pub(super) unsafe fn new(session: &'a Session<C>, reference: Ref) -> Gc<'a, C> {
        debug_assert!(reference.is_object());
        Gc { session, reference }
    }

    #[inline(always)]
    pub(super) fn session(self) -> &'a Session<C> {
        self.session
    }

    #[inline(always)]
    pub(super) fn reference(self) -> Ref {
        self.reference
    }

    #[inline(always)]
    pub(super) fn address(self) -> usize {
        self.reference.address()
    }

    #[inline(always)]
    pub(super) fn header(self) -> Header {
        // SAFETY: the invariant of `Gc`.
        unsafe { object::header(self.address()) }
    }

    #[cold]
    pub(super) fn info(self) -> &'a ShapeInfo {
        object::special(self.session.shapes(), self.header())
    }

    /// The index of its shape.
    #[inline(always)]
    pub fn shape(self) -> ShapeId {
        ShapeId(self.header().shape())
    }

    /// The name of its shape.
    pub fn shape_name(self) -> &'a str {
        &self.info().name
    }

    /// True when it is of exactly this shape.
    #[inline(always)]
    pub fn is(self, shape: &Shape) -> bool {
        self.key() == Key::new(shape.heap, shape.id().0)
    }

    /// The length of an array; none for other shapes.
    #[inline(always)]
    pub fn length(self) -> Option<u32> {
        let word = self.header();
        match self.session.shapes().layout(word.shape()).form {
            Form::References | Form::Data => Some(word.aux()),
            _ => None,
        }
    }

    /// Its bytes, with the header.
    pub fn bytes(self) -> usize {
        // SAFETY: the invariant of `Gc`.
        unsafe { object::bytes(self.session.shapes(), self.header()) }
    }

    /// What a reference field holds.
    #[inline(always)]
    pub fn get(self, field: RefField) -> Result<Value<'a, C>, AccessError> {
        let reference = self.load(field)?;
        // SAFETY: read from a slot of this heap since the last safepoint.
        Ok(unsafe { Value::new(self.session, reference) })
    }

    /// The object that a reference field leads to; none for null and for immediates.
    #[inline(always)]
    pub fn follow(self, field: RefField) -> Result<Option<Gc<'a, C>>, AccessError> {
        let reference = self.load(field)?;
        if !reference.is_object() {
            return Ok(None);
        }
        // SAFETY: read from a slot of this heap since the last safepoint.
        Ok(Some(unsafe { Gc::new(self.session, reference) }))
    }

    #[inline(always)]
    pub(super) fn load(self, field: RefField) -> Result<Ref, AccessError> {
        self.check(field.token)?;
        // SAFETY: the object has a reference at this offset.
        Ok(unsafe { object::load(self.address() + field.token.offset as usize) })
    }

    /// Writes a reference field, through the barrier.
    #[inline(always)]
    pub fn set<'v>(self, field: RefField, value: impl Into<Value<'v, C>>) -> Result<(), AccessError>
    where
        C: 'v,
    {
        let value = value.into().reference(self.session)?;
        self.store(field, value)
    }

    /// `value` is of this heap and valid.
    #[inline(always)]
    pub(super) fn store(self, field: RefField, value: Ref) -> Result<(), AccessError> {
        self.check(field.token)?;
        let address = self.address() + field.token.offset as usize;
        // SAFETY: the object has a reference at this offset, of the kind that the token says.
        unsafe { self.store_at(address, field.token.watched, value) };
        Ok(())
    }

    /// # Safety
    /// `slot` is the address of a reference slot of this object, which is not a strong one iff
    /// `watched`; `value` is null, an immediate, or a valid object of this heap.
    #[inline(always)]
    pub(super) unsafe fn store_at(self, slot: usize, watched: bool, value: Ref) {
        if watched {
            self.session.watch(value);
        }
        // SAFETY: promised by the caller.
        unsafe { self.session.store(self.address(), slot, value) };
    }

    /// Reads a field of data.
    #[inline(always)]
    pub fn read<T: Data>(self, field: DataField<T>) -> Result<T, AccessError> {
        self.check(field.token)?;
        // SAFETY: the object has data of this width at this offset.
        Ok(unsafe { T::load(self.address() + field.token.offset as usize) })
    }

    /// Writes a field of data.
    #[inline(always)]
    pub fn write<T: Data>(self, field: DataField<T>, value: T) -> Result<(), AccessError> {
        self.check(field.token)?;
        // SAFETY: the object has data of this width at this offset.
        unsafe { value.store(self.address() + field.token.offset as usize) };
        Ok(())
    }

    #[inline(always)]
    fn key(self) -> Key {
        self.session.key().with_shape(self.header().shape())
    }

    /// The object has the token's field.
    #[inline(always)]
    fn check(self, token: Token) -> Result<(), AccessError> {
        token.check(self.session.shapes(), self.key())
    }

    /// What the slot of this number holds: for a fixed shape, the field at offset `4 * slot` behind
    /// the header; for an array of references, the element. Works for any shape that has a
    /// reference there.
    #[inline(always)]
    pub fn slot(self, slot: usize) -> Result<Value<'a, C>, AccessError> {
        let reference = self.load_slot(slot)?;
        // SAFETY: read from a slot of this heap since the last safepoint.
        Ok(unsafe { Value::new(self.session, reference) })
    }

    #[inline(always)]
    pub(super) fn load_slot(self, slot: usize) -> Result<Ref, AccessError> {
        self.check_slot(slot)?;
        // SAFETY: the slot was found to be a reference slot of this object.
        Ok(unsafe { object::load(object::slot_address(self.address(), slot)) })
    }

    /// Writes the slot of this number, through the barrier.
    #[inline(always)]
    pub fn set_slot<'v>(
        self,
        slot: usize,
        value: impl Into<Value<'v, C>>,
    ) -> Result<(), AccessError>
    where
        C: 'v,
    {
        let value = value.into().reference(self.session)?;
        self.store_slot(slot, value)
    }

    /// `value` is of this heap and valid.
    #[inline(always)]
    pub(super) fn store_slot(self, slot: usize, value: Ref) -> Result<(), AccessError> {
        let watched = self.check_slot(slot)?;
        let address = object::slot_address(self.address(), slot);
        // SAFETY: the slot was found to be a reference slot of this object, and of which kind.
        unsafe { self.store_at(address, watched, value) };
        Ok(())
    }

    /// The object has a reference in that slot; true when it is not a strong one.
    #[inline(always)]
    fn check_slot(self, slot: usize) -> Result<bool, AccessError> {
        let word = self.header();
        let layout = self.session.shapes().layout(word.shape());
        let is_strong = match layout.form {
            Form::Fixed => slot < 64 && layout.map >> slot & 1 == 1,
            Form::References => slot < word.aux() as usize,
            _ => false,
        };
        if is_strong {
            return Ok(false);
        }
        self.check_special_slot(slot)
    }

    #[cold]
    #[inline(never)]
    fn check_special_slot(self, slot: usize) -> Result<bool, AccessError> {
        let info = self.info();
        let kind = kind_at(info, slot);
        match kind {
            Some(kind) if kind.is_reference() => Ok(kind != Kind::Reference),
            _ => Err(self.bad_slot(slot, kind, "a reference")),
        }
    }

    /// Reads the data that begins at the slot of this number; slower than through a field.
    pub fn read_slot<T: Data>(self, slot: usize) -> Result<T, AccessError> {
        self.check_data_slot::<T>(slot)?;
        // SAFETY: the slot was found to be data of this width.
        Ok(unsafe { T::load(object::slot_address(self.address(), slot)) })
    }

    /// Writes the data that begins at the slot of this number; slower than through a field.
    pub fn write_slot<T: Data>(self, slot: usize, value: T) -> Result<(), AccessError> {
        self.check_data_slot::<T>(slot)?;
        // SAFETY: the slot was found to be data of this width.
        unsafe { value.store(object::slot_address(self.address(), slot)) };
        Ok(())
    }

    fn check_data_slot<T: Data>(self, slot: usize) -> Result<(), AccessError> {
        let kind = kind_at(self.info(), slot);
        let wanted = Kind::Data(T::BYTES);
        if kind == Some(wanted) {
            return Ok(());
        }
        Err(self.bad_slot(slot, kind, &describe(Some(wanted))))
    }

    #[cold]
    fn bad_slot(self, slot: usize, found: Option<Kind>, wanted: &str) -> AccessError {
        let info = self.info();
        let length = match self.length() {
            Some(length) if info.element.is_some_and(Kind::is_reference) => length as usize,
            _ => (self.bytes() - HEADER_BYTES) / 4,
        };
        if slot >= length {
            return Refusal::OutOfRange {
                shape: info.name.as_str().into(),
                index: slot,
                length,
            }
            .into();
        }
        let found = found.or(info.element);
        wrong_kind(info, &format!("slot {slot}"), found, wanted)
    }

    /// Calls `visit` with slot number and value of every reference slot that is not null.
    pub fn each_reference(self, mut visit: impl FnMut(usize, Value<'a, C>)) {
        let (shapes, word, address) = (self.session.shapes(), self.header(), self.address());
        // SAFETY: the invariant of `Gc`; what is read from its slots is valid. `visit` cannot
        // collect: the session is borrowed.
        unsafe {
            object::each_reference_slot(shapes, address, word, |_, slot| {
                let reference = object::load(slot);
                if !reference.is_null() {
                    let number = (slot - address - HEADER_BYTES) / 4;
                    visit(number, Value::new(self.session, reference));
                }
            });
        }
    }

    /// A global handle to the object.
    pub fn root(self) -> Root<C> {
        Root::new(self)
    }

    /// Pushes the object as a new register, and returns the register's index. See
    /// [`Registers`](super::Registers).
    #[inline(always)]
    pub fn push(self) -> usize {
        self.session.push_reference(self.reference)
    }
}

/// The kind of the field that begins at a slot of a fixed shape.
fn kind_at(info: &ShapeInfo, slot: usize) -> Option<Kind> {
    let offset = slot.checked_mul(4)?.checked_add(HEADER_BYTES)?;
    let at = info
        .fields
        .binary_search_by_key(&offset, |f| f.offset as usize);
    at.ok().map(|index| info.fields[index].kind)
}

impl<C: Collector> Clone for Gc<'_, C> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Collector> Copy for Gc<'_, C> {}

/// Identity: the same object.
impl<C: Collector> PartialEq for Gc<'_, C> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.reference == other.reference
    }
}

impl<C: Collector> Eq for Gc<'_, C> {}

/// By identity; as a moving collector changes it, it means nothing after the next safepoint.
impl<C: Collector> Hash for Gc<'_, C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reference.hash(state);
    }
}

impl<C: Collector> fmt::Debug for Gc<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.shape_name(), self.reference)
    }
}
