//! Fields: tokens for one field of one shape, made once and then used on many objects.
//!
//! A token carries the number of its heap and the index of its shape in one word. An access
//! compares that word with the heap's number and the shape in the object's header, together: one
//! compare, one branch. Only when they differ does it look closer, since the object's shape may
//! *extend* the field's: then the object has the same field, by name, kind and offset, at the same
//! place of its row. (A shape that has the same row without being declared as an extension is
//! accepted as well: what matters for soundness is the layout of the actual object.)

use super::error::{AccessError, Refusal};
use crate::collector::Collector;
use crate::heap::Heap;
use crate::shape::{Field, Kind, Shape, ShapeId, ShapeInfo, ShapeTable};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Heap number and shape index in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key(u64);

impl Key {
    #[inline(always)]
    pub(super) const fn new(heap: u32, shape: u16) -> Key {
        Key((heap as u64) << 16 | shape as u64)
    }

    /// The key of another shape of the same heap, when this one is for shape 0.
    #[inline(always)]
    pub(super) const fn with_shape(self, shape: u16) -> Key {
        Key(self.0 | shape as u64)
    }

    const fn heap(self) -> u32 {
        (self.0 >> 16) as u32
    }

    const fn shape(self) -> ShapeId {
        ShapeId(self.0 as u16)
    }
}

/// What both kinds of token know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Token {
    pub(super) key: Key,
    /// Bytes from the header's address to the field.
    pub(super) offset: u32,
    /// Position in the row of fields.
    index: u16,
    /// A reference whose target the collector wants to know of: any but a strong one.
    pub(super) watched: bool,
}

impl Token {
    /// An object whose heap and shape are `key` has this field.
    #[inline(always)]
    pub(super) fn check(self, shapes: &ShapeTable, key: Key) -> Result<(), AccessError> {
        if key == self.key {
            return Ok(());
        }
        // Single words as arguments: a token passed whole would go through memory.
        Token::check_extended(self.key, self.index, shapes, key)
    }

    /// The slower part of the check; see the [module text](self).
    #[inline(never)]
    fn check_extended(
        expected: Key,
        index: u16,
        shapes: &ShapeTable,
        found: Key,
    ) -> Result<(), AccessError> {
        if expected.heap() != found.heap() {
            return Err(AccessError::wrong_heap("field"));
        }
        let of = |id: ShapeId| {
            shapes
                .info(id)
                .ok_or_else(|| AccessError::no_such_shape(id))
        };
        let (expected, found) = (of(expected.shape())?, of(found.shape())?);
        let index = index as usize;
        let fields = expected.fields.get(index).zip(found.fields.get(index));
        if fields.is_some_and(|(a, b)| a == b) {
            return Ok(());
        }
        Err(Refusal::WrongShape {
            expected: expected.name.as_str().into(),
            found: found.name.as_str().into(),
        }
        .into())
    }
}

/// A field that holds a reference of any kind: strong, weak, phantom, or an ephemeron's key or
/// value. Made by [`Heap::ref_field`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RefField {
    pub(super) token: Token,
}

/// A field that holds a number. Made by [`Heap::data_field`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DataField<T: Data> {
    pub(super) token: Token,
    of: PhantomData<T>,
}

impl<T: Data> Clone for DataField<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Data> Copy for DataField<T> {}

impl<C: Collector> Heap<C> {
    /// The token of a reference field.
    pub fn ref_field(&self, shape: &Shape, name: &str) -> Result<RefField, AccessError> {
        let (token, field, info) = self.token(shape, name)?;
        if !field.kind.is_reference() {
            return Err(wrong_kind(
                info,
                field.name.as_str(),
                Some(field.kind),
                "a reference",
            ));
        }
        Ok(RefField { token })
    }

    /// The token of a field of data, which must be as wide as `T`.
    pub fn data_field<T: Data>(
        &self,
        shape: &Shape,
        name: &str,
    ) -> Result<DataField<T>, AccessError> {
        let (token, field, info) = self.token(shape, name)?;
        if field.kind != Kind::Data(T::BYTES) {
            let wanted = describe(Some(Kind::Data(T::BYTES)));
            return Err(wrong_kind(
                info,
                field.name.as_str(),
                Some(field.kind),
                &wanted,
            ));
        }
        Ok(DataField {
            token,
            of: PhantomData,
        })
    }

    fn token(&self, shape: &Shape, name: &str) -> Result<(Token, &Field, &ShapeInfo), AccessError> {
        if shape.heap != self.inner.number {
            return Err(AccessError::wrong_heap("shape"));
        }
        let id = shape.id();
        let info = self
            .shape_info(id)
            .ok_or_else(|| AccessError::no_such_shape(id))?;
        let Some(index) = info.fields.iter().position(|f| f.name == name) else {
            let known: Vec<&str> = info.fields.iter().map(|f| f.name.as_str()).collect();
            return Err(Refusal::NoSuchField {
                shape: info.name.as_str().into(),
                field: name.into(),
                known: known.join(", ").into(),
            }
            .into());
        };
        let field = &info.fields[index];
        let token = Token {
            key: Key::new(shape.heap, id.0),
            offset: field.offset,
            index: index as u16,
            watched: field.kind.is_reference() && field.kind != Kind::Reference,
        };
        Ok((token, field, info))
    }
}

/// The error for a field, slot or element that holds something else.
#[cold]
pub(super) fn wrong_kind(
    info: &ShapeInfo,
    place: &str,
    found: Option<Kind>,
    wanted: &str,
) -> AccessError {
    Refusal::WrongKind {
        shape: info.name.as_str().into(),
        place: place.into(),
        found: describe(found),
        wanted: wanted.into(),
    }
    .into()
}

pub(super) fn describe(kind: Option<Kind>) -> Box<str> {
    match kind {
        Some(Kind::Data(1)) => "1 byte of data".into(),
        Some(Kind::Data(bytes)) => format!("{bytes} bytes of data").into(),
        Some(Kind::Reference) => "a strong reference".into(),
        Some(Kind::Weak) => "a weak reference".into(),
        Some(Kind::Phantom) => "a phantom reference".into(),
        Some(Kind::Key | Kind::Value) => "part of an ephemeron".into(),
        None => "no field".into(),
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Numbers that a field or an array of data can hold. Accesses are single relaxed atomic
/// operations: threads that share an object see old or new values, never half of one.
pub trait Data: Copy + sealed::Sealed {
    #[doc(hidden)]
    const BYTES: u8;
    /// # Safety
    /// `address` is aligned data of this width in an object of a heap.
    #[doc(hidden)]
    unsafe fn load(address: usize) -> Self;
    /// # Safety
    /// As for `load`.
    #[doc(hidden)]
    unsafe fn store(self, address: usize);
}

macro_rules! data {
    ($($number:ty, $bits:ty, $cell:ty, $from:expr, $to:expr;)+) => {$(
        impl sealed::Sealed for $number {}
        impl Data for $number {
            const BYTES: u8 = size_of::<$number>() as u8;

            #[inline(always)]
            unsafe fn load(address: usize) -> $number {
                // SAFETY: promised by the caller.
                let bits: $bits = unsafe { (*(address as *const $cell)).load(Ordering::Relaxed) };
                $from(bits)
            }

            #[inline(always)]
            unsafe fn store(self, address: usize) {
                let bits: $bits = $to(self);
                // SAFETY: promised by the caller.
                unsafe { (*(address as *const $cell)).store(bits, Ordering::Relaxed) }
            }
        }
    )+};
}

data! {
    u8, u8, AtomicU8, std::convert::identity, std::convert::identity;
    i8, u8, AtomicU8, u8::cast_signed, i8::cast_unsigned;
    u16, u16, AtomicU16, std::convert::identity, std::convert::identity;
    i16, u16, AtomicU16, u16::cast_signed, i16::cast_unsigned;
    u32, u32, AtomicU32, std::convert::identity, std::convert::identity;
    i32, u32, AtomicU32, u32::cast_signed, i32::cast_unsigned;
    u64, u64, AtomicU64, std::convert::identity, std::convert::identity;
    i64, u64, AtomicU64, u64::cast_signed, i64::cast_unsigned;
    f32, u32, AtomicU32, f32::from_bits, f32::to_bits;
    f64, u64, AtomicU64, f64::from_bits, f64::to_bits;
}
