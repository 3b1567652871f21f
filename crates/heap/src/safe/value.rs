//! Values: what a reference slot, a register or a local can hold.

use super::error::AccessError;
use super::gc::Gc;
use super::session::Session;
use crate::collector::Collector;
use crate::reference::Ref;
use std::fmt;

/// A small number that stands in a slot itself: 31 bits that the collectors never follow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Immediate(u32);

impl Immediate {
    /// The largest.
    pub const MAX: u32 = (1 << 31) - 1;

    /// The immediate `value`, if it fits into 31 bits.
    #[inline(always)]
    pub const fn new(value: u32) -> Option<Immediate> {
        if value <= Self::MAX {
            Some(Immediate(value))
        } else {
            None
        }
    }

    /// The immediate of the lower 31 bits of `value`.
    #[inline(always)]
    pub const fn truncated(value: u32) -> Immediate {
        Immediate(value & Self::MAX)
    }

    /// The immediate for a signed number, if it fits into 31 bits.
    #[inline(always)]
    pub const fn signed(value: i32) -> Option<Immediate> {
        if (value << 1) >> 1 == value {
            Some(Immediate(value as u32 & Self::MAX))
        } else {
            None
        }
    }

    /// The 31 bits.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The 31 bits as a signed number: the inverse of [`Immediate::signed`].
    #[inline(always)]
    pub const fn as_signed(self) -> i32 {
        (self.0 << 1) as i32 >> 1
    }
}

impl fmt::Debug for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "immediate {}", self.0)
    }
}

/// What a slot holds, valid until the session may collect: as long as it is borrowed.
pub enum Value<'a, C: Collector> {
    /// Nothing.
    Null,
    /// A small number.
    Immediate(Immediate),
    /// An object.
    Object(Gc<'a, C>),
}

impl<'a, C: Collector> Value<'a, C> {
    /// # Safety
    /// `reference` is null, an immediate, or an object of the session's heap that is valid until its
    /// next safepoint.
    #[inline(always)]
    pub(super) unsafe fn new(session: &'a Session<C>, reference: Ref) -> Value<'a, C> {
        if reference.is_object() {
            // SAFETY: passed on from the caller.
            Value::Object(unsafe { Gc::new(session, reference) })
        } else if let Some(bits) = reference.as_immediate() {
            Value::Immediate(Immediate(bits))
        } else {
            Value::Null
        }
    }

    /// The reference for a slot of `session`'s heap.
    #[inline(always)]
    pub(super) fn reference(self, session: &Session<C>) -> Result<Ref, AccessError> {
        match self {
            Value::Null => Ok(Ref::NULL),
            Value::Immediate(bits) => Ok(bits.into()),
            // A thread has one session of a heap, and it does not move while it is borrowed.
            Value::Object(gc) if std::ptr::eq(gc.session(), session) => Ok(gc.reference()),
            Value::Object(_) => Err(AccessError::wrong_heap("reference")),
        }
    }

    /// The object, if it is one.
    #[inline(always)]
    pub fn object(self) -> Option<Gc<'a, C>> {
        match self {
            Value::Object(gc) => Some(gc),
            _ => None,
        }
    }

    /// The object, or the error that says what it is instead.
    #[inline(always)]
    pub fn expect_object(self) -> Result<Gc<'a, C>, AccessError> {
        match self {
            Value::Object(gc) => Ok(gc),
            Value::Null => Err(AccessError::not_an_object("null")),
            Value::Immediate(_) => Err(AccessError::not_an_object("an immediate")),
        }
    }

    /// The immediate, if it is one.
    #[inline(always)]
    pub fn immediate(self) -> Option<Immediate> {
        match self {
            Value::Immediate(bits) => Some(bits),
            _ => None,
        }
    }

    /// True for null only.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        matches!(self, Value::Null)
    }
}

impl From<Immediate> for Ref {
    #[inline(always)]
    fn from(immediate: Immediate) -> Ref {
        Ref::immediate(immediate.0)
    }
}

impl<C: Collector> Clone for Value<'_, C> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Collector> Copy for Value<'_, C> {}

impl<C: Collector> PartialEq for Value<'_, C> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Immediate(a), Value::Immediate(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl<C: Collector> Eq for Value<'_, C> {}

impl<C: Collector> fmt::Debug for Value<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Immediate(bits) => bits.fmt(f),
            Value::Object(gc) => gc.fmt(f),
        }
    }
}

impl<'a, C: Collector> From<Gc<'a, C>> for Value<'a, C> {
    #[inline(always)]
    fn from(gc: Gc<'a, C>) -> Self {
        Value::Object(gc)
    }
}

impl<'a, C: Collector> From<Option<Gc<'a, C>>> for Value<'a, C> {
    #[inline(always)]
    fn from(gc: Option<Gc<'a, C>>) -> Self {
        gc.map_or(Value::Null, Value::Object)
    }
}

impl<C: Collector> From<Immediate> for Value<'_, C> {
    #[inline(always)]
    fn from(immediate: Immediate) -> Self {
        Value::Immediate(immediate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediates_have_31_bits() {
        assert_eq!(Immediate::new(1 << 31), None);
        assert_eq!(
            Immediate::new(Immediate::MAX).map(Immediate::get),
            Some(Immediate::MAX)
        );
        for n in [0, 1, -1, (1 << 30) - 1, -(1 << 30)] {
            assert_eq!(Immediate::signed(n).map(Immediate::as_signed), Some(n));
        }
        assert_eq!(Immediate::signed(1 << 30), None);
        assert_eq!(Immediate::signed(-(1 << 30) - 1), None);
        assert_eq!(Immediate::signed(i32::MIN), None);
    }
}
