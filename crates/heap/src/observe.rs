//! The heap as a rooted graph: what [`liveoak_graph`] answers questions about.
//!
//! [`Mutator::observe`](crate::mutator::Mutator::observe) stops the world and shows it as an
//! [`Observed`], which is an [`Observe`]: so the shortest path to an object, the dead set,
//! dominators, retained sizes and histograms are those of the specification, computed over real
//! memory.
//!
//! A node is a [`Ref`]. Observers are total (a reference that leads to no object has no arcs), so
//! the view begins with a list of all objects, and looks a reference up in it before it follows it.
//! That also cuts the arcs of dead objects that lead to memory freed before them.
//!
//! How slots become arcs:
//! - a strong reference is an arc, a weak or phantom one a weak arc, named by the field or by the
//!   index of the element; null and immediates are no arcs;
//! - an ephemeron with key and value is an entry, named by its value's field; without a key its
//!   value is an ordinary arc, and without a value its key is a weak arc.

use crate::collector::Collector;
use crate::header::{HEADER_BYTES, Header};
use crate::heap::World;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Kind, ShapeId, ShapeInfo, ShapeTable};
use liveoak_graph::{ArcName, Name, Observe, RootName};
use std::collections::HashMap;

/// A stopped world, seen as a graph. See the [module text](self).
pub struct Observed<'w> {
    shapes: &'w ShapeTable,
    names: HashMap<u16, ShapeNames>,
    roots: Vec<(RootName, Ref)>,
    /// All objects that have not been freed, sorted.
    objects: Vec<Ref>,
}

/// The names that a shape gives, made once: an observer hands them out for every arc.
struct ShapeNames {
    class: Name,
    fields: Box<[ArcName]>,
}

impl ShapeNames {
    fn of(info: &ShapeInfo) -> ShapeNames {
        let field = |name: &String| ArcName::Field(Name::from(name.clone()));
        ShapeNames {
            class: Name::from(info.name.clone()),
            fields: info.fields.iter().map(|f| field(&f.name)).collect(),
        }
    }
}

impl<'w> Observed<'w> {
    /// The view of `world`, which stays stopped as long as the view exists.
    pub fn new<C: Collector>(world: &'w mut World<'_, C>) -> Observed<'w> {
        let shapes = world.shapes();
        let mut objects = Vec::new();
        // SAFETY: the world is stopped and the locals are retired.
        unsafe {
            world.collector().each_object(shapes, &mut |address, _| {
                objects.push(Ref::from_address(address))
            });
        }
        objects.sort_unstable();
        let mut roots = Vec::new();
        world.each_named_root(&mut |name, root| {
            if root.is_object() {
                roots.push((RootName::new(name), root));
            }
        });
        let ids = (1..shapes.len()).map(|id| id as u16);
        let names = ids.filter_map(|id| Some((id, ShapeNames::of(shapes.info(ShapeId(id))?))));
        Observed {
            shapes,
            names: names.collect(),
            roots,
            objects,
        }
    }

    /// How many objects there are, dead ones included.
    pub fn object_count(&self) -> usize {
        self.objects.len()
    }

    /// True when `reference` leads to an object that has not been freed.
    pub fn is_object(&self, reference: Ref) -> bool {
        self.objects.binary_search(&reference).is_ok()
    }

    /// The header of an object; none when there is no such object.
    pub fn header(&self, node: Ref) -> Option<Header> {
        // SAFETY: the object is there, and the world is stopped.
        self.is_object(node)
            .then(|| unsafe { object::header(node.address()) })
    }

    /// The description of an object's shape.
    pub fn shape_info(&self, node: Ref) -> Option<&'w ShapeInfo> {
        self.shapes.info(ShapeId(self.header(node)?.shape()))
    }

    /// The slots of an object in the order of their addresses: its kind, its name and what it holds.
    fn slots(&self, node: Ref, visit: &mut dyn FnMut(Kind, ArcName, Ref)) {
        let (Some(word), Some(info)) = (self.header(node), self.shape_info(node)) else {
            return;
        };
        if info.element == Some(Kind::Reference) {
            for index in 0..word.aux() as usize {
                let slot = object::slot_address(node.address(), index);
                // SAFETY: the object is there, with this slot, and the world is stopped.
                let held = unsafe { object::load(slot) };
                visit(Kind::Reference, ArcName::Element(index), held);
            }
        }
        let Some(names) = self.names.get(&word.shape()) else {
            return;
        };
        for (field, name) in info.fields.iter().zip(&names.fields) {
            if field.kind.is_reference() {
                // SAFETY: as above.
                let held = unsafe { object::load(node.address() + field.offset as usize) };
                visit(field.kind, name.clone(), held);
            }
        }
    }

    /// Name, key and value of an ephemeron, filled or not.
    fn entry(&self, node: Ref) -> Option<Entry> {
        // Most shapes have none: do not walk their slots.
        self.shape_info(node)?.ephemeron?;
        let (mut key, mut value) = (None, None);
        self.slots(node, &mut |kind, name, held| match kind {
            Kind::Key => key = Some((name, held)),
            Kind::Value => value = Some((name, held)),
            _ => {}
        });
        let (key, value) = key.zip(value)?;
        Some(Entry { key, value })
    }
}

struct Entry {
    key: (ArcName, Ref),
    value: (ArcName, Ref),
}

impl Observe for Observed<'_> {
    type Node = Ref;

    fn roots(&self, visit: &mut dyn FnMut(RootName, Ref)) {
        for (name, root) in &self.roots {
            visit(name.clone(), *root);
        }
    }

    fn nodes(&self, visit: &mut dyn FnMut(Ref)) {
        self.objects.iter().copied().for_each(visit);
    }

    fn arcs(&self, node: Ref, visit: &mut dyn FnMut(ArcName, Ref)) {
        self.slots(node, &mut |kind, name, held| {
            if kind == Kind::Reference && self.is_object(held) {
                visit(name, held);
            }
        });
        if let Some(Entry { key, value }) = self.entry(node)
            && !key.1.is_object()
            && self.is_object(value.1)
        {
            visit(value.0, value.1);
        }
    }

    fn class(&self, node: Ref) -> Name {
        const NO_OBJECT: Name = Name::from_static("(no object)");
        let names = self
            .header(node)
            .and_then(|word| self.names.get(&word.shape()));
        names.map_or(NO_OBJECT, |names| names.class.clone())
    }

    fn size(&self, node: Ref) -> u64 {
        // SAFETY: the object is there.
        self.header(node)
            .map_or(0, |word| unsafe { object::bytes(self.shapes, word) } as u64)
    }

    fn weak_arcs(&self, node: Ref, visit: &mut dyn FnMut(ArcName, Ref)) {
        let Some(info) = self.shape_info(node) else {
            return;
        };
        if info.weak.is_empty() && info.phantom.is_empty() && info.ephemeron.is_none() {
            return;
        }
        self.slots(node, &mut |kind, name, held| {
            if matches!(kind, Kind::Weak | Kind::Phantom) && self.is_object(held) {
                visit(name, held);
            }
        });
        if let Some(Entry { key, value }) = self.entry(node)
            && !value.1.is_object()
            && self.is_object(key.1)
        {
            visit(key.0, key.1);
        }
    }

    fn ephemerons(&self, node: Ref, visit: &mut dyn FnMut(ArcName, Ref, Ref)) {
        if let Some(Entry { key, value }) = self.entry(node)
            && self.is_object(key.1)
            && self.is_object(value.1)
        {
            visit(value.0, key.1, value.1);
        }
    }

    fn describe(&self, node: Ref) -> String {
        match self.header(node) {
            Some(word) if self.shape_info(node).is_some_and(|i| i.element.is_some()) => {
                format!("{}[{}] {node:?}", self.class(node), word.aux())
            }
            _ => format!("{} {node:?}", self.class(node)),
        }
    }
}

/// Reads of data, for comparisons.
impl Observed<'_> {
    /// The bytes of an object behind its header, as 8-byte words: data and references alike.
    pub fn words(&self, node: Ref) -> impl Iterator<Item = u64> + '_ {
        let count = (self.size(node) as usize / 8).saturating_sub(HEADER_BYTES / 8);
        // SAFETY: the words lie within the object, which is there, and the world is stopped.
        (0..count).map(move |i| unsafe { *((node.address() + HEADER_BYTES + i * 8) as *const u64) })
    }
}
