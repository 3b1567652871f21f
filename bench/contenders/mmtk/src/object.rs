//! An object: one header word, its references, its words. The low byte of the header belongs to MMTk (forwarding
//! bits); above it stand the number of references (28 bits) and of words (28 bits).

use mmtk::util::copy::{CopySemantics, GCWorkerCopyContext};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::{
    ObjectModel, VMGlobalLogBitSpec, VMLocalForwardingBitsSpec, VMLocalForwardingPointerSpec,
    VMLocalLOSMarkNurserySpec, VMLocalMarkBitSpec,
};

use crate::binding::Vm;

const REFS_SHIFT: u32 = 8;
const WORDS_SHIFT: u32 = 36;
const COUNT_MASK: u64 = (1 << 28) - 1;
const ALIGNMENT: usize = 8;

/// The header of an object with so many references and words.
pub(crate) const fn header(refs: usize, words: usize) -> u64 {
    ((refs as u64) << REFS_SHIFT) | ((words as u64) << WORDS_SHIFT)
}

/// Bytes of an object with so many references and words.
pub(crate) const fn bytes(refs: usize, words: usize) -> usize {
    8 * (1 + refs + words)
}

fn read_header(object: ObjectReference) -> u64 {
    // SAFETY: an object begins with its header.
    unsafe { object.to_raw_address().load::<u64>() }
}

/// The addresses of an object's references.
pub(crate) fn slots(object: ObjectReference) -> impl Iterator<Item = Address> {
    let refs = (read_header(object) >> REFS_SHIFT) & COUNT_MASK;
    let first = object.to_raw_address() + 8usize;
    (0..refs as usize).map(move |slot| first + 8 * slot)
}

fn size(object: ObjectReference) -> usize {
    let header = read_header(object);
    let refs = (header >> REFS_SHIFT) & COUNT_MASK;
    let words = (header >> WORDS_SHIFT) & COUNT_MASK;
    bytes(refs as usize, words as usize)
}

/// The object model.
pub(crate) struct Model;

impl ObjectModel<Vm> for Model {
    const GLOBAL_LOG_BIT_SPEC: VMGlobalLogBitSpec = VMGlobalLogBitSpec::side_first();
    const LOCAL_FORWARDING_POINTER_SPEC: VMLocalForwardingPointerSpec =
        VMLocalForwardingPointerSpec::in_header(0);
    const LOCAL_FORWARDING_BITS_SPEC: VMLocalForwardingBitsSpec =
        VMLocalForwardingBitsSpec::in_header(0);
    const LOCAL_MARK_BIT_SPEC: VMLocalMarkBitSpec = VMLocalMarkBitSpec::side_first();
    const LOCAL_LOS_MARK_NURSERY_SPEC: VMLocalLOSMarkNurserySpec =
        VMLocalLOSMarkNurserySpec::side_after(Self::LOCAL_MARK_BIT_SPEC.as_spec());
    const UNIFIED_OBJECT_REFERENCE_ADDRESS: bool = true;
    const OBJECT_REF_OFFSET_LOWER_BOUND: isize = 0;

    fn copy(
        from: ObjectReference,
        semantics: CopySemantics,
        context: &mut GCWorkerCopyContext<Vm>,
    ) -> ObjectReference {
        let bytes = size(from);
        let to = context.alloc_copy(from, bytes, ALIGNMENT, 0, semantics);
        // SAFETY: the new place has room for the object, and is not the old one; it is not null.
        let copied = unsafe {
            let source = from.to_raw_address().to_ptr::<u64>();
            std::ptr::copy_nonoverlapping(source, to.to_mut_ptr::<u64>(), bytes / 8);
            ObjectReference::from_raw_address_unchecked(to)
        };
        context.post_copy(copied, bytes, semantics);
        copied
    }

    fn copy_to(from: ObjectReference, to: ObjectReference, _region: Address) -> Address {
        let bytes = size(from);
        // SAFETY: the plan vouches for room at the new place, which may overlap the old one.
        unsafe {
            let source = from.to_raw_address().to_ptr::<u64>();
            std::ptr::copy(source, to.to_raw_address().to_mut_ptr::<u64>(), bytes / 8);
        }
        to.to_raw_address() + bytes
    }

    fn get_reference_when_copied_to(_from: ObjectReference, to: Address) -> ObjectReference {
        // SAFETY: the plan copies to no null address.
        unsafe { ObjectReference::from_raw_address_unchecked(to) }
    }

    fn get_current_size(object: ObjectReference) -> usize {
        size(object)
    }

    fn get_size_when_copied(object: ObjectReference) -> usize {
        size(object)
    }

    fn get_align_when_copied(_object: ObjectReference) -> usize {
        ALIGNMENT
    }

    fn get_align_offset_when_copied(_object: ObjectReference) -> usize {
        0
    }

    fn get_type_descriptor(_object: ObjectReference) -> &'static [i8] {
        unreachable!("objects have no type descriptors")
    }

    fn ref_to_object_start(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    fn ref_to_header(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    fn dump_object(object: ObjectReference) {
        eprintln!("{object}: header {:016x}", read_header(object));
    }
}
