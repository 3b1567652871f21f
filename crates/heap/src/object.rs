//! Objects in memory: reading headers, finding references, measuring.
//!
//! Everything here takes addresses and trusts them. The invariant that makes these functions safe
//! to call is the same throughout: `object` is the address of an object header in a heap whose
//! shape table is `shapes`, and that object has not been freed.
//!
//! Headers and slots are accessed as relaxed or acquire/release atomics, since mutator threads and
//! a concurrent collector may touch the same object; on common hardware this costs nothing.

use crate::header::{FORWARDED, HEADER_BYTES, Header, MARK};
use crate::reference::Ref;
use crate::shape::{Form, Kind, ShapeId, ShapeInfo, ShapeTable};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The header word at `object`.
///
/// # Safety
/// `object` is the address of an object header, or of the header of free memory.
#[inline(always)]
pub unsafe fn header(object: usize) -> Header {
    // SAFETY: promised by the caller; headers are aligned to 8.
    Header(unsafe { (*(object as *const AtomicU64)).load(Ordering::Relaxed) })
}

/// The header word itself, for atomic updates.
///
/// # Safety
/// As for [`header`]; the result must not outlive the object.
#[inline(always)]
pub unsafe fn header_cell<'a>(object: usize) -> &'a AtomicU64 {
    // SAFETY: promised by the caller.
    unsafe { &*(object as *const AtomicU64) }
}

/// Overwrites the header word at `object`.
///
/// # Safety
/// `object` is 8-aligned memory of the heap, and nobody else writes this header meanwhile.
#[inline(always)]
pub unsafe fn set_header(object: usize, header: Header) {
    // SAFETY: promised by the caller.
    unsafe { (*(object as *const AtomicU64)).store(header.0, Ordering::Relaxed) }
}

/// The address of slot `slot` of `object`.
#[inline(always)]
pub const fn slot_address(object: usize, slot: usize) -> usize {
    object + HEADER_BYTES + slot * 4
}

/// The reference in the slot at `address`.
///
/// # Safety
/// `address` is a reference slot of an object.
#[inline(always)]
pub unsafe fn load(address: usize) -> Ref {
    // SAFETY: promised by the caller. Acquire pairs with `store`: who sees a reference sees the
    // object that it leads to.
    Ref::from_bits(unsafe { (*(address as *const AtomicU32)).load(Ordering::Acquire) })
}

/// Overwrites the slot at `address`, with no barrier.
///
/// # Safety
/// `address` is a reference slot of an object, and the collector in use needs no barrier here.
#[inline(always)]
pub unsafe fn store(address: usize, value: Ref) {
    // SAFETY: promised by the caller.
    unsafe { (*(address as *const AtomicU32)).store(value.to_bits(), Ordering::Release) }
}

/// Bytes of the object with its header, a multiple of 8 (not rounded up to its cell).
///
/// # Safety
/// As for [`header`], and `word` is the header's value.
#[inline(always)]
pub unsafe fn bytes(shapes: &ShapeTable, word: Header) -> usize {
    let layout = shapes.layout(word.shape());
    if layout.form == Form::Fixed || layout.form == Form::Special {
        return layout.bytes as usize;
    }
    if layout.form == Form::Free {
        return word.aux() as usize;
    }
    let raw = HEADER_BYTES + ((word.aux() as usize) << layout.shift);
    raw.next_multiple_of(8)
        .max(crate::space::size_class::SMALLEST)
}

/// Calls `visit` with the address of every strong reference slot of `object`. True when the shape
/// is special: the caller must hand the object to weak processing.
///
/// # Safety
/// `object` is an object of a heap with these shapes, and `word` is its header.
#[inline(always)]
pub unsafe fn each_strong_slot(
    shapes: &ShapeTable,
    object: usize,
    word: Header,
    mut visit: impl FnMut(usize),
) -> bool {
    let layout = shapes.layout(word.shape());
    // One likely case after the other; a jump through a table would wait for the layout.
    if layout.form == Form::Fixed {
        let mut map = layout.map;
        while map != 0 {
            visit(slot_address(object, map.trailing_zeros() as usize));
            map &= map - 1;
        }
        return false;
    }
    if layout.form == Form::References {
        for slot in 0..word.aux() as usize {
            visit(slot_address(object, slot));
        }
        return false;
    }
    if layout.form == Form::Special {
        each_special_slot(shapes, object, word, &mut visit);
        return true;
    }
    false
}

/// Copies the words of an object. Small ones in line, by pieces that may overlap each other.
///
/// # Safety
/// The ranges are memory of the heap, 8-aligned, and do not overlap; `bytes` is a multiple of 8,
/// and not zero.
#[inline(always)]
pub unsafe fn copy(from: usize, to: usize, bytes: usize) {
    type Pair = [u64; 2];
    // SAFETY: promised by the caller; every piece lies within the object.
    unsafe {
        if bytes <= 16 {
            let first = *(from as *const u64);
            let last = *((from + bytes - 8) as *const u64);
            *(to as *mut u64) = first;
            *((to + bytes - 8) as *mut u64) = last;
        } else if bytes <= 32 {
            let first = *(from as *const Pair);
            let last = *((from + bytes - 16) as *const Pair);
            *(to as *mut Pair) = first;
            *((to + bytes - 16) as *mut Pair) = last;
        } else {
            std::ptr::copy_nonoverlapping(from as *const u64, to as *mut u64, bytes / 8);
        }
    }
}

#[cold]
fn each_special_slot(
    shapes: &ShapeTable,
    object: usize,
    word: Header,
    visit: &mut dyn FnMut(usize),
) {
    for &offset in &special(shapes, word).strong {
        visit(object + offset as usize);
    }
}

/// The description of the shape of an object whose header is `word`.
pub fn special(shapes: &ShapeTable, word: Header) -> &ShapeInfo {
    shapes
        .info(ShapeId(word.shape()))
        .expect("an object's header names a defined shape")
}

/// Calls `visit` with kind and address of every slot that holds any kind of reference.
///
/// # Safety
/// As for [`each_strong_slot`].
pub unsafe fn each_reference_slot(
    shapes: &ShapeTable,
    object: usize,
    word: Header,
    mut visit: impl FnMut(Kind, usize),
) {
    // SAFETY: promised by the caller.
    let is_special =
        unsafe { each_strong_slot(shapes, object, word, |slot| visit(Kind::Reference, slot)) };
    if is_special {
        let info = special(shapes, word);
        for field in &info.fields {
            if field.kind.is_reference() && field.kind != Kind::Reference {
                visit(field.kind, object + field.offset as usize);
            }
        }
    }
}

/// True when the mark bit of `word` equals `sense`.
#[inline(always)]
pub const fn is_marked(word: Header, sense: u64) -> bool {
    word.0 & MARK == sense
}

/// A header as it should be for a copy at another place: not forwarded.
#[inline(always)]
pub const fn without_forwarding(word: Header) -> Header {
    Header(word.0 & !FORWARDED)
}

/// Overwrites everything behind the header and the link of a freed cell, so that a use after free
/// is seen at once. Debug builds only.
///
/// # Safety
/// The memory is free and belongs to the heap.
#[inline(always)]
pub unsafe fn poison(address: usize, bytes: usize) {
    if cfg!(debug_assertions) && bytes > 16 {
        // SAFETY: promised by the caller.
        unsafe { std::ptr::write_bytes((address + 16) as *mut u8, 0xDB, bytes - 16) }
    }
}

/// Asks the processor to fetch the line at `address`; never faults.
#[inline(always)]
pub fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: a prefetch has no effect but on the cache, whatever the address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                address as *const i8,
            )
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = address;
    }
}
