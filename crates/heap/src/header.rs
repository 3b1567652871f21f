//! The header: one word before the slots of every object.
//!
//! ```text
//!  63            32 31        16 15      8 7       0
//! +----------------+------------+---------+---------+
//! |      aux       |  shape id  |  flags  |  mark   |
//! +----------------+------------+---------+---------+
//! ```
//!
//! - `mark`: written by the collector only (the concurrent collector by an atomic read-modify-write
//!   of the whole word, so that it does not lose a mutator's flag). Bit 0 is the mark bit, bit 1
//!   says "forwarded". The reference-counting collector keeps the count here.
//! - `flags`: see the constants below.
//! - `shape id`: index into the shape table; 0 is free memory, whose `aux` is its extent in bytes.
//! - `aux`: the length of an array; for other shapes 32 bits that belong to the embedder (an
//!   identity hash, a lock word); in a forwarded object, the new reference.

use crate::reference::Ref;

/// A header word, by value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Header(pub u64);

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;

/// Bit 0 of the mark byte.
pub const MARK: u64 = 1;
/// The object has moved; `aux` is its new reference.
pub const FORWARDED: u64 = 1 << 1;
/// Somebody wants to know what becomes of this object. For the tracing collectors: it is the key of
/// an ephemeron, and has not been reached so far in this collection. For reference counting: some
/// weak slot, ephemeron or guardian may name it.
pub const WATCHED: u64 = 1 << 8;
/// The reference-counting write barrier has logged this object in this epoch.
pub const LOGGED: u64 = 1 << 9;
/// Two bits for the colours of trial deletion.
pub const COLOUR_SHIFT: u32 = 10;
/// The object stands in the buffer of possible cycle roots.
pub const BUFFERED: u64 = 1 << 12;
/// Allocated since the last epoch, and not yet counted.
pub const NEW: u64 = 1 << 13;
/// The first of two flags that belong to the embedder.
pub const USER_FLAG_0: u64 = 1 << 14;
/// The second flag that belongs to the embedder.
pub const USER_FLAG_1: u64 = 1 << 15;

const SHAPE_SHIFT: u32 = 16;
const AUX_SHIFT: u32 = 32;

impl Header {
    /// The header of a new object.
    #[inline(always)]
    pub const fn new(shape: u16, aux: u32) -> Header {
        Header((shape as u64) << SHAPE_SHIFT | (aux as u64) << AUX_SHIFT)
    }

    /// The header of `bytes` of free memory.
    #[inline(always)]
    pub const fn free(bytes: u32) -> Header {
        Header::new(0, bytes)
    }

    /// Index into the shape table; 0 for free memory.
    #[inline(always)]
    pub const fn shape(self) -> u16 {
        (self.0 >> SHAPE_SHIFT) as u16
    }

    /// Array length, or the embedder's 32 bits.
    #[inline(always)]
    pub const fn aux(self) -> u32 {
        (self.0 >> AUX_SHIFT) as u32
    }

    /// The same header with another `aux`.
    #[inline(always)]
    pub const fn with_aux(self, aux: u32) -> Header {
        Header(self.0 & 0xffff_ffff | (aux as u64) << AUX_SHIFT)
    }

    /// True for free memory.
    #[inline(always)]
    pub const fn is_free(self) -> bool {
        self.shape() == 0
    }

    /// True when every bit of `bits` is set.
    #[inline(always)]
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    /// The new place of an object that a moving collector has copied.
    #[inline(always)]
    pub const fn forwarding(self) -> Option<Ref> {
        if self.has(FORWARDED) {
            Some(Ref::from_bits(self.aux()))
        } else {
            None
        }
    }

    /// The header that an object leaves behind at its old place.
    #[inline(always)]
    pub const fn forwarded_to(self, target: Ref) -> Header {
        Header(self.with_aux(target.to_bits()).0 | FORWARDED)
    }
}
