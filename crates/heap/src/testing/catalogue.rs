//! The shapes of the random programs: every form that the heap knows, small and large.
//!
//! Most objects carry a number, so that an object that comes out of a guardian's queue can be
//! recognised: a word `id`, or for arrays of references an immediate in element 0.

use super::operation::Length;
use crate::collector::Collector;
use crate::error::HeapError;
use crate::heap::Heap;
use crate::shape::{Kind, Shape, ShapeSpec};
use liveoak_graph::{ArcName, Name};

/// Where an object keeps its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Identity {
    Nowhere,
    /// In the 8 bytes at this slot.
    Word(usize),
    /// As an immediate in element 0.
    Element,
}

/// A reference slot: its number in the heap, its kind, and its position among the model's slots of
/// that kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    pub(super) number: usize,
    pub(super) kind: Kind,
    pub(super) position: usize,
}

pub(super) struct Entry {
    pub(super) shape: Shape,
    pub(super) element: Option<Kind>,
    pub(super) identity: Identity,
    /// Strong slots of a fixed shape.
    pub(super) strong: Vec<Slot>,
    /// Weak and phantom slots.
    pub(super) weak: Vec<Slot>,
    pub(super) ephemeron: Option<(Slot, Slot)>,
    /// Slots of the words of data of a fixed shape, `id` not among them.
    words: Vec<usize>,
    /// The shape of the model; for arrays, without its elements.
    model: liveoak_graph::Shape,
}

/// The names of the shapes, in the order in which [`define`] defines them.
pub(super) const NAMES: [&str; 13] = [
    "Pair",
    "Node",
    "Holder",
    "Ephemeron",
    "References",
    "Bytes",
    "Words",
    "Leaf",
    "Empty",
    "Mixed",
    "Wide",
    "Huge",
    "HugeHolder",
];

/// Lengths of arrays: none, few, around 64 slots, around the largest cell (8 KiB), and large ones.
pub(super) const LENGTHS: [u32; 16] = [
    0, 1, 2, 3, 5, 8, 16, 31, 64, 65, 300, 1023, 2046, 2047, 9000, 20000,
];

impl Entry {
    /// The length of an object of this shape; 0 for fixed shapes.
    pub(super) fn length(&self, wanted: Length) -> u32 {
        self.element.map_or(0, |_| wanted.elements())
    }

    /// Bytes of an object.
    pub(super) fn bytes(&self, length: u32) -> u64 {
        match self.element {
            None => u64::from(self.shape.bytes),
            Some(_) => self.shape.array_bytes(length).max(16),
        }
    }

    pub(super) fn strong_count(&self, length: u32) -> usize {
        match self.element {
            Some(Kind::Reference) => (length as usize).saturating_sub(1),
            Some(_) => 0,
            None => self.strong.len(),
        }
    }

    /// The strong slot number `index`, of [`Entry::strong_count`].
    pub(super) fn strong_slot(&self, index: usize) -> Slot {
        match self.element {
            // Element 0 is taken by the number.
            Some(_) => Slot {
                number: index + 1,
                kind: Kind::Reference,
                position: index + 1,
            },
            None => self.strong[index],
        }
    }

    pub(super) fn word_count(&self, length: u32) -> usize {
        match self.element {
            None => self.words.len(),
            Some(Kind::Data(bytes)) => (length as usize * bytes as usize / 8).saturating_sub(1),
            Some(_) => 0,
        }
    }

    /// The slot of the word number `index`, of [`Entry::word_count`].
    pub(super) fn word_slot(&self, index: usize) -> usize {
        match self.element {
            None => self.words[index],
            Some(_) => 2 * (index + 1),
        }
    }

    /// Where an object of this length keeps its number.
    pub(super) fn identity(&self, length: u32) -> Identity {
        match (self.identity, self.element) {
            (Identity::Element, _) if length == 0 => Identity::Nowhere,
            (Identity::Word(_), Some(kind)) if (length as usize) * kind.bytes() < 8 => {
                Identity::Nowhere
            }
            (identity, _) => identity,
        }
    }

    pub(super) fn model(&self, length: u32) -> liveoak_graph::Shape {
        let shape = self.model.clone().with_size(self.bytes(length));
        match self.element {
            Some(Kind::Reference) => shape.with_slots(length as usize),
            _ => shape,
        }
    }
}

/// Defines the shapes in a heap; the shape with index `i` of the heap is entry `i - 1`.
pub(super) fn define<C: Collector>(heap: &Heap<C>) -> Result<Vec<Entry>, HeapError> {
    let many = |spec: ShapeSpec, count: usize| {
        (0..count).fold(spec, |spec, i| spec.reference(format!("r{i}")))
    };
    let specs = [
        ShapeSpec::fixed(NAMES[0])
            .reference("first")
            .reference("second"),
        ShapeSpec::fixed(NAMES[1])
            .reference("left")
            .reference("right")
            .word("id"),
        ShapeSpec::fixed(NAMES[2])
            .weak("weak")
            .word("id")
            .weak("other")
            .reference("strong")
            .with("phantom", Kind::Phantom),
        ShapeSpec::fixed(NAMES[3])
            .word("id")
            .ephemeron()
            .reference("next"),
        ShapeSpec::references(NAMES[4]),
        ShapeSpec::bytes(NAMES[5]),
        ShapeSpec::words(NAMES[6]),
        ShapeSpec::fixed(NAMES[7]).word("id").word("data"),
        ShapeSpec::fixed(NAMES[8]),
        ShapeSpec::fixed(NAMES[9])
            .with("byte", Kind::Data(1))
            .reference("a")
            .with("half", Kind::Data(2))
            .word("id")
            .reference("b")
            .word("data")
            .with("four", Kind::Data(4))
            .reference("c"),
        // More than 64 slots, so that the map of references does not fit into a word.
        many(ShapeSpec::fixed(NAMES[10]).word("id"), 100).word("data"),
        // Larger than the largest cell.
        many(ShapeSpec::fixed(NAMES[11]).word("id"), 2100).word("data"),
        many(
            ShapeSpec::fixed(NAMES[12])
                .word("id")
                .weak("weak")
                .ephemeron()
                .with("phantom", Kind::Phantom),
            2100,
        ),
    ];
    specs.into_iter().map(|spec| entry(heap, spec)).collect()
}

fn entry<C: Collector>(heap: &Heap<C>, spec: ShapeSpec) -> Result<Entry, HeapError> {
    let shape = heap.define(spec)?;
    let info = heap.shape_info(shape.id()).expect("defined just now");
    let fields = |wanted: &dyn Fn(Kind) -> bool| -> (Vec<Slot>, Vec<ArcName>) {
        let wanted = info.fields.iter().filter(|f| wanted(f.kind));
        let slots = wanted.clone().enumerate().map(|(position, field)| Slot {
            number: field.slot(),
            kind: field.kind,
            position,
        });
        let names = wanted.map(|f| ArcName::Field(Name::from(f.name.clone())));
        (slots.collect(), names.collect())
    };
    let (strong, mut strong_names) = fields(&|kind| kind == Kind::Reference);
    let (weak, mut weak_names) = fields(&|kind| matches!(kind, Kind::Weak | Kind::Phantom));
    let (key, key_name) = fields(&|kind| kind == Kind::Key);
    let (value, value_name) = fields(&|kind| kind == Kind::Value);
    // An ephemeron without a key has an ordinary value, one without a value has a weak key.
    strong_names.extend(value_name.clone());
    weak_names.extend(key_name);
    let words = info.fields.iter().filter(|f| f.kind == Kind::Data(8));
    let id = info.fields.iter().find(|f| f.name == "id");
    Ok(Entry {
        shape,
        element: info.element,
        identity: match (info.element, id) {
            (Some(Kind::Reference), _) => Identity::Element,
            (Some(_), _) => Identity::Word(0),
            (None, Some(field)) => Identity::Word(field.slot()),
            (None, None) => Identity::Nowhere,
        },
        strong,
        weak,
        ephemeron: key.first().copied().zip(value.first().copied()),
        words: words.filter(|f| f.name != "id").map(|f| f.slot()).collect(),
        model: liveoak_graph::Shape::new(info.name.clone())
            .with_slots(strong_names)
            .with_weak_slots(weak_names)
            .with_ephemerons(value_name),
    })
}
