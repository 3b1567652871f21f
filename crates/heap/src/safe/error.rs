//! What a safe caller can do wrong, as values. Every message says what to do next.
//!
//! The errors are made in cold functions out of line, and are one or two words, so that a result
//! comes back in registers: the checks before an access cost a compare and a branch that is not
//! taken.

use crate::error::{AllocError, HeapError};
use crate::shape::ShapeId;
use thiserror::Error;

/// An access was refused; [`AccessError::refusal`] tells why. Nothing was read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct AccessError(Box<Refusal>);

impl AccessError {
    /// Why it was refused.
    pub fn refusal(&self) -> &Refusal {
        &self.0
    }
}

impl From<Refusal> for AccessError {
    #[cold]
    #[inline(never)]
    fn from(refusal: Refusal) -> AccessError {
        AccessError(Box::new(refusal))
    }
}

/// Why an access was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Something of one heap was used with another.
    #[error("this {what} belongs to another heap; use it with a session of the heap that made it")]
    WrongHeap {
        /// What it was: a reference, a shape, a field, a root, a guardian.
        what: &'static str,
    },
    /// There is no shape of this index.
    #[error("the heap has no shape number {index}; shapes are made by Heap::define")]
    NoSuchShape {
        /// The index.
        index: u16,
    },
    /// The object is not of the field's shape, nor of one that extends it.
    #[error(
        "a field of {expected} was used on an object of shape {found}; test with Gc::is first, or read it by slot number"
    )]
    WrongShape {
        /// The shape that the field belongs to.
        expected: Box<str>,
        /// The shape of the object.
        found: Box<str>,
    },
    /// The shape has no field of this name.
    #[error("shape {shape} has no field {field:?}; its fields are {known}")]
    NoSuchField {
        /// The shape.
        shape: Box<str>,
        /// The name asked for.
        field: Box<str>,
        /// The names that there are.
        known: Box<str>,
    },
    /// The field, slot or element holds something else.
    #[error("{place} of {shape} holds {found}, not {wanted}")]
    WrongKind {
        /// The shape.
        shape: Box<str>,
        /// Which field or slot.
        place: Box<str>,
        /// What it holds.
        found: Box<str>,
        /// What was asked for.
        wanted: Box<str>,
    },
    /// A slot or element beyond the end of the object.
    #[error("index {index} is out of range: this {shape} has {length}")]
    OutOfRange {
        /// The shape.
        shape: Box<str>,
        /// The first index that is not there.
        index: usize,
        /// How many there are.
        length: usize,
    },
    /// More initial references than the shape has fields for them.
    #[error("{given} initial references for {shape}, which has {fields} fields for strong ones")]
    TooManyInitial {
        /// The shape.
        shape: Box<str>,
        /// References given.
        given: usize,
        /// Fields there are.
        fields: usize,
    },
    /// A fixed shape where an array was needed, or the other way round.
    #[error(
        "shape {shape} {}", if *.is_array { "is an array: allocate it with a length" } else { "is not an array: allocate it without a length" }
    )]
    NotThatForm {
        /// The shape.
        shape: Box<str>,
        /// Whether it is an array.
        is_array: bool,
    },
    /// An object was needed, and there was null or an immediate.
    #[error("expected an object, found {found}; look at the Value first")]
    NotAnObject {
        /// "null", or "an immediate".
        found: &'static str,
    },
    /// There is no register of this index.
    #[error("register {index} does not exist: there are {length}; push or reserve registers first")]
    NoSuchRegister {
        /// The index.
        index: usize,
        /// How many there are.
        length: usize,
    },
}

/// Anything that can go wrong in the safe layer; [`Error::reason`] tells what.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct Error(Box<Reason>);

impl Error {
    /// What went wrong.
    pub fn reason(&self) -> &Reason {
        &self.0
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Reason {
    /// An access was refused.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// There is no memory.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// A heap could not be made, or a shape not defined.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// This thread has a session of this heap already, which could never be stopped while the
    /// second one runs.
    #[error(
        "this thread already has a session of this heap; pass it on by reference, or drop it first"
    )]
    SecondSession,
}

/// From anything that is a reason, or a refusal.
macro_rules! reasons {
    ($($from:ty),+) => {$(
        impl From<$from> for Error {
            #[cold]
            #[inline(never)]
            fn from(reason: $from) -> Error {
                Error(Box::new(reason.into()))
            }
        }
    )+};
}

reasons!(Reason, AccessError, AllocError, HeapError);

impl From<Refusal> for Error {
    #[cold]
    #[inline(never)]
    fn from(refusal: Refusal) -> Error {
        AccessError::from(refusal).into()
    }
}

impl AccessError {
    #[cold]
    #[inline(never)]
    pub(super) fn wrong_heap(what: &'static str) -> AccessError {
        Refusal::WrongHeap { what }.into()
    }

    #[cold]
    #[inline(never)]
    pub(super) fn not_an_object(found: &'static str) -> AccessError {
        Refusal::NotAnObject { found }.into()
    }

    #[cold]
    #[inline(never)]
    pub(super) fn no_such_shape(id: ShapeId) -> AccessError {
        Refusal::NoSuchShape { index: id.0 }.into()
    }
}

const _: () = assert!(size_of::<Result<u64, AccessError>>() == 16);
const _: () = assert!(size_of::<Result<usize, Error>>() == 16);
