//! Shapes: what the slots of an object are.
//!
//! A shape is defined once per heap and then named by every object that has it. A fixed shape is a
//! row of fields, laid out in the order in which they are declared, each aligned to its size; a
//! subclass extends its parent's row, so a field keeps its offset. An array shape is elements of
//! one kind, with the length in the header.
//!
//! The *slot* of a field is its offset behind the header in units of four bytes, the size of a
//! reference: slot `i` of a fixed shape and element `i` of an array of references stand at the same
//! place.

use crate::error::HeapError;
use crate::header::{HEADER_BYTES, Header};
use crate::space::size_class::{self, SizeClass};
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Index of a shape in its heap; 0 is free memory and names no shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ShapeId(pub u16);

/// What a field or element holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A reference that keeps its target alive.
    Reference,
    /// A reference that is set to null when nothing else keeps its target alive, before guardians
    /// bring anything back.
    Weak,
    /// A reference that is set to null when its target is gone for good, guardians included.
    Phantom,
    /// The key of an ephemeron.
    Key,
    /// The value of an ephemeron: kept alive while both the ephemeron and its key are alive.
    Value,
    /// Raw data of 1, 2, 4 or 8 bytes.
    Data(u8),
}

impl Kind {
    /// Bytes of a field of this kind.
    pub const fn bytes(self) -> usize {
        match self {
            Kind::Data(bytes) => bytes as usize,
            _ => 4,
        }
    }

    /// True when the collector has to look at it.
    pub const fn is_reference(self) -> bool {
        !matches!(self, Kind::Data(_))
    }
}

/// One field of a fixed shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name, for paths and reports.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Bytes from the header's address to the field.
    pub offset: u32,
}

impl Field {
    /// The field's slot number, for the slot-based operations.
    pub const fn slot(&self) -> usize {
        (self.offset as usize - HEADER_BYTES) / 4
    }
}

/// A shape being described; made real by `Heap::define`.
///
/// ```
/// use liveoak_heap::shape::ShapeSpec;
/// let node = ShapeSpec::fixed("Node").reference("left").reference("right").word("key");
/// assert_eq!(node.field("key").unwrap().offset, 16);
/// ```
#[derive(Clone, Debug)]
pub struct ShapeSpec {
    name: String,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Fixed { fields: Vec<Field>, end: usize },
    Array { element: Kind },
}

impl ShapeSpec {
    /// A shape with no fields yet.
    pub fn fixed(name: impl Into<String>) -> ShapeSpec {
        ShapeSpec {
            name: name.into(),
            body: Body::Fixed {
                fields: Vec::new(),
                end: HEADER_BYTES,
            },
        }
    }

    /// A shape that begins with all fields of `parent`, at the same offsets.
    pub fn extending(name: impl Into<String>, parent: &ShapeInfo) -> ShapeSpec {
        let end = parent
            .fields
            .last()
            .map_or(HEADER_BYTES, |f| f.offset as usize + f.kind.bytes());
        ShapeSpec {
            name: name.into(),
            body: Body::Fixed {
                fields: parent.fields.clone(),
                end,
            },
        }
    }

    /// An array of references.
    pub fn references(name: impl Into<String>) -> ShapeSpec {
        ShapeSpec::array(name, Kind::Reference)
    }

    /// An array of bytes.
    pub fn bytes(name: impl Into<String>) -> ShapeSpec {
        ShapeSpec::array(name, Kind::Data(1))
    }

    /// An array of 8-byte words.
    pub fn words(name: impl Into<String>) -> ShapeSpec {
        ShapeSpec::array(name, Kind::Data(8))
    }

    /// An array of elements of `element`, which is a strong reference or data.
    pub fn array(name: impl Into<String>, element: Kind) -> ShapeSpec {
        ShapeSpec {
            name: name.into(),
            body: Body::Array { element },
        }
    }

    /// Adds a field.
    pub fn with(mut self, name: impl Into<String>, kind: Kind) -> ShapeSpec {
        if let Body::Fixed { fields, end } = &mut self.body {
            let bytes = kind.bytes().max(1);
            let offset = end.next_multiple_of(bytes);
            fields.push(Field {
                name: name.into(),
                kind,
                offset: offset as u32,
            });
            *end = offset + bytes;
        }
        self
    }

    /// Adds a strong reference.
    pub fn reference(self, name: impl Into<String>) -> ShapeSpec {
        self.with(name, Kind::Reference)
    }

    /// Adds a weak reference.
    pub fn weak(self, name: impl Into<String>) -> ShapeSpec {
        self.with(name, Kind::Weak)
    }

    /// Adds an 8-byte word of data.
    pub fn word(self, name: impl Into<String>) -> ShapeSpec {
        self.with(name, Kind::Data(8))
    }

    /// Makes it an ephemeron: adds a key and a value.
    pub fn ephemeron(self) -> ShapeSpec {
        self.with("key", Kind::Key).with("value", Kind::Value)
    }

    /// The field of that name, as it will be laid out.
    pub fn field(&self, name: &str) -> Option<&Field> {
        match &self.body {
            Body::Fixed { fields, .. } => fields.iter().find(|f| f.name == name),
            Body::Array { .. } => None,
        }
    }

    fn check(&self) -> Result<(), HeapError> {
        let bad = |reason: &str| {
            Err(HeapError::BadShape {
                name: self.name.clone(),
                reason: reason.to_string(),
            })
        };
        match &self.body {
            Body::Array { element } => match element {
                Kind::Reference | Kind::Data(1 | 2 | 4 | 8) => Ok(()),
                Kind::Data(_) => bad("elements are of 1, 2, 4 or 8 bytes"),
                _ => bad(
                    "an array holds strong references or data; put weak slots into a fixed shape",
                ),
            },
            Body::Fixed { fields, end } => {
                if fields
                    .iter()
                    .any(|f| matches!(f.kind, Kind::Data(n) if ![1, 2, 4, 8].contains(&n)))
                {
                    return bad("fields of data are of 1, 2, 4 or 8 bytes");
                }
                if *end > MAX_FIXED_BYTES {
                    return bad("a fixed shape has at most 32 KiB of fields; use an array");
                }
                let keys = fields.iter().filter(|f| f.kind == Kind::Key).count();
                let values = fields.iter().filter(|f| f.kind == Kind::Value).count();
                match (keys, values) {
                    (0, 0) | (1, 1) => Ok(()),
                    _ => bad("an ephemeron has exactly one key and one value"),
                }
            }
        }
    }
}

/// The most that the fields of a fixed shape may take.
pub const MAX_FIXED_BYTES: usize = 32 << 10;

/// A defined shape, with everything that a report or an embedder wants to know.
#[derive(Debug)]
pub struct ShapeInfo {
    /// Its index.
    pub id: ShapeId,
    /// Its name.
    pub name: String,
    /// The fields of a fixed shape; empty for arrays.
    pub fields: Vec<Field>,
    /// What an array holds; none for fixed shapes.
    pub element: Option<Kind>,
    /// Offsets of the strong references, for shapes whose map does not fit into 64 bits.
    pub(crate) strong: Box<[u32]>,
    /// Offsets of weak references.
    pub(crate) weak: Box<[u32]>,
    /// Offsets of phantom references.
    pub(crate) phantom: Box<[u32]>,
    /// Offsets of an ephemeron's key and value.
    pub(crate) ephemeron: Option<(u32, u32)>,
}

/// The form of an object, as the tracers switch on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Form {
    /// Free memory.
    Free = 0,
    /// Fixed, all references strong and within the first 64 slots: `map` has them.
    Fixed = 1,
    /// An array of references.
    References = 2,
    /// An array of data.
    Data = 3,
    /// Fixed, with weak slots, an ephemeron, or more than 64 slots: ask the [`ShapeInfo`].
    Special = 4,
}

/// What a tracer needs of a shape, in 16 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Layout {
    /// Bit `i`: slot `i` is a strong reference ([`Form::Fixed`] only).
    pub map: u64,
    /// Bytes of a fixed object with its header, a multiple of 8.
    pub bytes: u32,
    /// How to find the references.
    pub form: Form,
    /// Size class of a fixed object.
    pub class: SizeClass,
    /// Logarithm of the element's bytes.
    pub shift: u8,
}

/// A shape as the allocator wants it: everything precomputed, by value.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The header of a new object (for arrays: with length 0).
    pub(crate) header: Header,
    /// Bytes of a fixed object.
    pub(crate) bytes: u32,
    /// Number of the heap that it belongs to.
    pub(crate) heap: u32,
    pub(crate) class: SizeClass,
    pub(crate) form: Form,
    pub(crate) shift: u8,
    /// How many slots from the first on are strong references (fixed shapes, at most 64).
    pub(crate) leading: u8,
}

impl Shape {
    /// Its index in the heap.
    pub const fn id(&self) -> ShapeId {
        ShapeId(self.header.shape())
    }

    /// True for arrays.
    pub const fn is_array(&self) -> bool {
        matches!(self.form, Form::References | Form::Data)
    }

    /// Bytes of an array of `length`, with its header.
    #[inline(always)]
    pub(crate) const fn array_bytes(&self, length: u32) -> u64 {
        (HEADER_BYTES as u64 + ((length as u64) << self.shift)).next_multiple_of(8)
    }
}

const CAPACITY: usize = 1 << 16;

/// The shapes of one heap. Append-only: readers take no lock.
pub struct ShapeTable {
    layouts: Box<[UnsafeCell<Layout>]>,
    infos: Box<[AtomicPtr<ShapeInfo>]>,
    count: AtomicU32,
    defining: Mutex<()>,
    heap: u32,
}

// SAFETY: a layout is written once, under the lock, before its id is published through `count`
// (release); it is read only by those who have the id.
unsafe impl Sync for ShapeTable {}
// SAFETY: the table owns everything in it.
unsafe impl Send for ShapeTable {}

impl ShapeTable {
    pub(crate) fn new(heap: u32) -> ShapeTable {
        ShapeTable {
            // SAFETY: all zeroes is a valid layout (`Form::Free`), and zeroed memory costs nothing
            // until it is touched.
            layouts: unsafe { Box::new_zeroed_slice(CAPACITY).assume_init() },
            // SAFETY: all zeroes is the null pointer.
            infos: unsafe { Box::new_zeroed_slice(CAPACITY).assume_init() },
            count: AtomicU32::new(1),
            defining: Mutex::new(()),
            heap,
        }
    }

    pub(crate) fn define(&self, spec: ShapeSpec) -> Result<Shape, HeapError> {
        spec.check()?;
        let _guard = crate::lock(&self.defining);
        let index = self.count.load(Ordering::Relaxed) as usize;
        if index >= CAPACITY {
            return Err(HeapError::TooManyShapes);
        }
        let id = ShapeId(index as u16);
        let (layout, info) = lay_out(id, spec);
        let shape = Shape {
            header: Header::new(id.0, 0),
            bytes: layout.bytes,
            heap: self.heap,
            class: layout.class,
            form: layout.form,
            shift: layout.shift,
            leading: layout.map.trailing_ones() as u8,
        };
        // SAFETY: the entry is not published yet, and the lock keeps other writers out.
        unsafe { *self.layouts[index].get() = layout };
        self.infos[index].store(Box::into_raw(Box::new(info)), Ordering::Release);
        self.count.store(index as u32 + 1, Ordering::Release);
        Ok(shape)
    }

    /// The layout of the shape with index `id`; that of free memory when there is none.
    #[inline(always)]
    pub fn layout(&self, id: u16) -> &Layout {
        debug_assert!((id as usize) < self.len());
        // SAFETY: the table has an entry for every u16, and entries are not written once published.
        unsafe { &*self.layouts.get_unchecked(id as usize).get() }
    }

    /// Everything about the shape with index `id`.
    pub fn info(&self, id: ShapeId) -> Option<&ShapeInfo> {
        let info = self.infos[id.0 as usize].load(Ordering::Acquire);
        // SAFETY: a non-null pointer was made by `define` from a box, and lives as long as the table.
        unsafe { info.as_ref() }
    }

    /// The shape with index `id`, ready for allocation.
    pub fn shape(&self, id: ShapeId) -> Option<Shape> {
        let info = self.info(id)?;
        let layout = self.layout(info.id.0);
        Some(Shape {
            header: Header::new(id.0, 0),
            bytes: layout.bytes,
            heap: self.heap,
            class: layout.class,
            form: layout.form,
            shift: layout.shift,
            leading: layout.map.trailing_ones() as u8,
        })
    }

    /// One more than the largest index in use.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire) as usize
    }
}

impl Drop for ShapeTable {
    fn drop(&mut self) {
        // Entry 0 is free memory and has none.
        for info in &self.infos[1..] {
            let info = info.load(Ordering::Acquire);
            if info.is_null() {
                break;
            }
            // SAFETY: made by `Box::into_raw` in `define`, and dropped nowhere else.
            drop(unsafe { Box::from_raw(info) });
        }
    }
}

fn lay_out(id: ShapeId, spec: ShapeSpec) -> (Layout, ShapeInfo) {
    let mut info = ShapeInfo {
        id,
        name: spec.name,
        fields: Vec::new(),
        element: None,
        strong: Box::default(),
        weak: Box::default(),
        phantom: Box::default(),
        ephemeron: None,
    };
    match spec.body {
        Body::Array { element } => {
            info.element = Some(element);
            let layout = Layout {
                map: 0,
                bytes: 0,
                form: if element.is_reference() {
                    Form::References
                } else {
                    Form::Data
                },
                class: SizeClass::LARGE,
                shift: element.bytes().trailing_zeros() as u8,
            };
            (layout, info)
        }
        Body::Fixed { fields, end } => {
            let of = |kind: Kind| -> Box<[u32]> {
                fields
                    .iter()
                    .filter(|f| f.kind == kind)
                    .map(|f| f.offset)
                    .collect()
            };
            info.strong = of(Kind::Reference);
            info.weak = of(Kind::Weak);
            info.phantom = of(Kind::Phantom);
            info.ephemeron = of(Kind::Key)
                .first()
                .copied()
                .zip(of(Kind::Value).first().copied());
            let slot = |offset: u32| (offset as usize - HEADER_BYTES) / 4;
            let plain = info.weak.is_empty()
                && info.phantom.is_empty()
                && info.ephemeron.is_none()
                && info.strong.iter().all(|&offset| slot(offset) < 64);
            let map = if plain {
                info.strong
                    .iter()
                    .fold(0, |map, &offset| map | 1u64 << slot(offset))
            } else {
                0
            };
            info.fields = fields;
            let bytes = end.next_multiple_of(8).max(size_class::SMALLEST);
            let layout = Layout {
                map,
                bytes: bytes as u32,
                form: if plain { Form::Fixed } else { Form::Special },
                class: SizeClass::of(bytes),
                shift: 0,
            };
            (layout, info)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_aligned_and_inherited() {
        let table = ShapeTable::new(0);
        let base = ShapeSpec::fixed("Base")
            .reference("next")
            .with("flag", Kind::Data(1));
        let base = table.define(base).unwrap();
        let info = table.info(base.id()).unwrap();
        let derived = ShapeSpec::extending("Derived", info)
            .with("count", Kind::Data(4))
            .word("sum");
        assert_eq!(derived.field("next").unwrap().offset, 8);
        assert_eq!(derived.field("flag").unwrap().offset, 12);
        assert_eq!(derived.field("count").unwrap().offset, 16);
        assert_eq!(derived.field("sum").unwrap().offset, 24);
        let derived = table.define(derived).unwrap();
        assert_eq!(table.layout(derived.id().0).map, 1);
        assert_eq!(table.layout(derived.id().0).bytes, 32);
    }

    #[test]
    fn shapes_with_many_slots_or_weak_ones_are_special() {
        let table = ShapeTable::new(0);
        let mut wide = ShapeSpec::fixed("Wide");
        for i in 0..100 {
            wide = wide.reference(format!("f{i}"));
        }
        let wide = table.define(wide).unwrap();
        assert_eq!(table.layout(wide.id().0).form, Form::Special);
        assert_eq!(table.info(wide.id()).unwrap().strong.len(), 100);
        let weak = table
            .define(ShapeSpec::fixed("Weak").weak("target"))
            .unwrap();
        assert_eq!(table.layout(weak.id().0).form, Form::Special);
    }

    #[test]
    fn nonsense_is_refused() {
        let table = ShapeTable::new(0);
        for bad in [
            ShapeSpec::array("A", Kind::Weak),
            ShapeSpec::array("B", Kind::Data(3)),
            ShapeSpec::fixed("C").with("k", Kind::Key),
            (0..9000).fold(ShapeSpec::fixed("D"), |s, i| s.reference(format!("f{i}"))),
        ] {
            assert!(matches!(table.define(bad), Err(HeapError::BadShape { .. })));
        }
    }
}
