//! References: 32 bits that name an object, or carry a small immediate value.
//!
//! The idea: every heap of the process lies in the lowest 16 GiB of the address space (see
//! [`crate::memory`]), and objects are aligned to 8 bytes. So `address >> 2` fits into 32 bits and
//! is even. That leaves all odd numbers free: an odd reference is an *immediate*, 31 bits that the
//! collectors never follow (a language implementer puts small integers, characters and the like
//! there). Decoding is one scaled addressing mode, with no base to load.
//!
//! Invariant: a `Ref` that is neither null nor immediate is the address of an object header of the
//! heap that made it, as long as that object is reachable from the roots *and* no moving collection
//! has run since. The raw layer leaves this to the caller; the safe layer enforces it.

use std::fmt;

/// The address space that references can name: 16 GiB.
pub const ADDRESS_LIMIT: usize = 1 << 34;

/// A reference to an object, null, or an immediate. See the [module text](self).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Ref(u32);

impl Ref {
    /// The reference to nothing.
    pub const NULL: Ref = Ref(0);

    /// The reference to the object whose header is at `address`.
    #[inline(always)]
    pub fn from_address(address: usize) -> Ref {
        debug_assert!(address.is_multiple_of(8) && address < ADDRESS_LIMIT);
        Ref((address >> 2) as u32)
    }

    /// An immediate value; the top bit of `value` is lost.
    #[inline(always)]
    pub const fn immediate(value: u32) -> Ref {
        Ref(value << 1 | 1)
    }

    /// The value of an immediate.
    #[inline(always)]
    pub const fn as_immediate(self) -> Option<u32> {
        if self.0 & 1 == 1 {
            Some(self.0 >> 1)
        } else {
            None
        }
    }

    /// True for null only.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// True for a reference that leads to an object: neither null nor immediate.
    #[inline(always)]
    pub const fn is_object(self) -> bool {
        self.0 != 0 && self.0 & 1 == 0
    }

    /// The address of the object's header. Meaningless unless [`Ref::is_object`].
    #[inline(always)]
    pub const fn address(self) -> usize {
        (self.0 as usize) << 2
    }

    /// The 32 bits as they stand in a slot.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The inverse of [`Ref::to_bits`].
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Ref {
        Ref(bits)
    }
}

impl fmt::Debug for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_immediate() {
            Some(value) => write!(f, "immediate {value}"),
            None if self.is_null() => f.write_str("null"),
            None => write!(f, "@{:#x}", self.address()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_immediates_do_not_meet() {
        let object = Ref::from_address(0x1_0000_0008);
        assert!(object.is_object());
        assert_eq!(object.address(), 0x1_0000_0008);
        assert_eq!(object.as_immediate(), None);
        let small = Ref::immediate(42);
        assert!(!small.is_object() && !small.is_null());
        assert_eq!(small.as_immediate(), Some(42));
        assert!(Ref::NULL.is_null() && !Ref::NULL.is_object());
    }

    #[test]
    fn the_last_address_fits() {
        let last = Ref::from_address(ADDRESS_LIMIT - 8);
        assert_eq!(last.address(), ADDRESS_LIMIT - 8);
    }
}
