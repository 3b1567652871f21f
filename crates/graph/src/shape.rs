//! What a node looks like when it is allocated: its class, its size and its slots.

use std::sync::Arc;

use crate::{ArcName, Name};

/// The bytes of a header, and of a slot, in the default size of a [`Shape`].
const WORD: u64 = 8;

/// The slots of one kind that a node has, numbered from 0, each with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots(Naming);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Naming {
    Elements(usize),
    Named(Arc<[ArcName]>),
}

impl Slots {
    /// How many slots there are.
    pub fn count(&self) -> usize {
        match &self.0 {
            Naming::Elements(count) => *count,
            Naming::Named(names) => names.len(),
        }
    }

    /// The name of the slot number `slot`, if there is one.
    pub fn name(&self, slot: usize) -> Option<ArcName> {
        match &self.0 {
            Naming::Elements(count) => (slot < *count).then_some(ArcName::Element(slot)),
            Naming::Named(names) => names.get(slot).cloned(),
        }
    }
}

/// So many slots, named by their numbers.
impl From<usize> for Slots {
    fn from(count: usize) -> Self {
        Slots(Naming::Elements(count))
    }
}

/// One slot for each field.
impl<const N: usize> From<[&'static str; N]> for Slots {
    fn from(fields: [&'static str; N]) -> Self {
        Slots(Naming::Named(
            fields.into_iter().map(ArcName::from).collect(),
        ))
    }
}

/// One slot for each name.
impl From<Vec<ArcName>> for Slots {
    fn from(names: Vec<ArcName>) -> Self {
        Slots(Naming::Named(names.into()))
    }
}

/// What [`Transform::allocate`](crate::Transform::allocate) is asked for. Cheap to copy.
///
/// ```
/// use liveoak_graph::Shape;
///
/// let tree = Shape::new("Tree").with_slots(["left", "right"]);
/// let table = Shape::new("Table").with_ephemerons(16).with_size(512);
/// assert_eq!((tree.slots().count(), tree.size()), (2, 24));
/// assert_eq!((table.ephemerons().count(), table.size()), (16, 512));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    class: Name,
    slots: Slots,
    weak_slots: Slots,
    ephemerons: Slots,
    size: Option<u64>,
}

impl Shape {
    /// A node of class `class` without any slots.
    pub fn new(class: impl Into<Name>) -> Self {
        Shape {
            class: class.into(),
            slots: Slots::from(0),
            weak_slots: Slots::from(0),
            ephemerons: Slots::from(0),
            size: None,
        }
    }

    /// The same with these strong slots.
    pub fn with_slots(self, slots: impl Into<Slots>) -> Self {
        Shape {
            slots: slots.into(),
            ..self
        }
    }

    /// The same with these weak slots.
    pub fn with_weak_slots(self, slots: impl Into<Slots>) -> Self {
        Shape {
            weak_slots: slots.into(),
            ..self
        }
    }

    /// The same with room for these ephemeron entries.
    pub fn with_ephemerons(self, entries: impl Into<Slots>) -> Self {
        Shape {
            ephemerons: entries.into(),
            ..self
        }
    }

    /// The same with a size of so many bytes.
    pub fn with_size(self, bytes: u64) -> Self {
        Shape {
            size: Some(bytes),
            ..self
        }
    }

    /// The class of the node.
    pub fn class(&self) -> &Name {
        &self.class
    }

    /// The strong slots.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The weak slots.
    pub fn weak_slots(&self) -> &Slots {
        &self.weak_slots
    }

    /// The ephemeron entries.
    pub fn ephemerons(&self) -> &Slots {
        &self.ephemerons
    }

    /// The size in bytes: as given, or else one word for a header and one for each reference.
    pub fn size(&self) -> u64 {
        let words = || {
            let count = |slots: &Slots| u64::try_from(slots.count()).unwrap_or(u64::MAX);
            count(&self.slots)
                .saturating_add(count(&self.weak_slots))
                .saturating_add(count(&self.ephemerons).saturating_mul(2))
                .saturating_add(1)
        };
        self.size.unwrap_or_else(|| words().saturating_mul(WORD))
    }
}
