//! Surveys: looking at every live object.
//!
//! A survey stops the world and finds, by plain tracing, what can be reached from the roots: through
//! strong references, and from an ephemeron to its value if the key is reached. It does not ask the
//! collector for its objects: those may include dead ones, which a safe program must not get hold
//! of, since the collector may free them at any time.
//!
//! The program's closure runs when the world runs again. It cannot allocate (the session is
//! borrowed), so this thread does not come to a safepoint, and what was found stays valid. A closure
//! that panics, or calls into the heap, does so as any other code would.

use super::gc::Gc;
use super::session::Session;
use crate::collector::Collector;
use crate::heap::World;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Kind, ShapeId, ShapeTable};
use std::collections::HashMap;

/// How many objects of a shape are alive, and how large they are together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    /// The shape.
    pub shape: ShapeId,
    /// Its name.
    pub name: String,
    /// Objects of this shape.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl<C: Collector> Session<C> {
    /// Calls `visit` with every live object, in no particular order.
    pub fn each_object(&mut self, mut visit: impl for<'v> FnMut(Gc<'v, C>)) {
        let found = self.mutator_mut().inspect(reachable);
        for reference in found {
            // SAFETY: it was reachable when the world ran again, and `visit` cannot reach a
            // safepoint of this session, which is borrowed.
            visit(unsafe { Gc::new(self, reference) });
        }
    }

    /// The live objects by shape, the largest population in bytes first.
    pub fn census(&mut self) -> Vec<Population> {
        let mut count: HashMap<ShapeId, (u64, u64)> = HashMap::new();
        self.each_object(|object| {
            let entry = count.entry(object.shape()).or_default();
            entry.0 += 1;
            entry.1 += object.bytes() as u64;
        });
        let mut census: Vec<Population> = count
            .into_iter()
            .map(|(shape, (objects, bytes))| Population {
                shape,
                name: self
                    .shapes()
                    .info(shape)
                    .map_or_else(String::new, |info| info.name.clone()),
                objects,
                bytes,
            })
            .collect();
        census.sort_by_key(|p| (std::cmp::Reverse(p.bytes), p.shape));
        census
    }
}

/// Every object that can be reached from the roots.
fn reachable<C: Collector>(world: &mut World<'_, C>) -> Vec<Ref> {
    let mut trace = Trace {
        shapes: world.shapes(),
        seen: Seen::default(),
        found: Vec::new(),
        ephemerons: Vec::new(),
    };
    world.each_root(|root| trace.meet(*root));
    trace.run();
    trace.found
}

struct Trace<'a> {
    shapes: &'a ShapeTable,
    seen: Seen,
    /// What was met, in that order; the list is its own queue.
    found: Vec<Ref>,
    /// Key and value of ephemerons whose key was not seen yet.
    ephemerons: Vec<(Ref, Ref)>,
}

impl Trace<'_> {
    fn meet(&mut self, reference: Ref) {
        if reference.is_object() && self.seen.insert(reference) {
            self.found.push(reference);
        }
    }

    fn run(&mut self) {
        let mut next = 0;
        loop {
            while let Some(&object) = self.found.get(next) {
                self.scan(object);
                next += 1;
            }
            let (ready, waiting) = std::mem::take(&mut self.ephemerons)
                .into_iter()
                .partition(|&(key, _)| !key.is_object() || self.seen.contains(key));
            self.ephemerons = waiting;
            let ready: Vec<(Ref, Ref)> = ready;
            if ready.is_empty() {
                return;
            }
            ready.into_iter().for_each(|(_, value)| self.meet(value));
        }
    }

    fn scan(&mut self, object: Ref) {
        let address = object.address();
        let (mut key, mut value) = (None, Ref::NULL);
        // SAFETY: the world is stopped, and the object is reachable.
        unsafe {
            let word = object::header(address);
            object::each_reference_slot(self.shapes, address, word, |kind, slot| {
                let target = object::load(slot);
                match kind {
                    Kind::Reference => self.meet(target),
                    Kind::Key => key = Some(target),
                    Kind::Value => value = target,
                    Kind::Weak | Kind::Phantom | Kind::Data(_) => {}
                }
            });
        }
        if let Some(key) = key {
            self.ephemerons.push((key, value));
        }
    }
}

/// A set of references: a bit for each 8 bytes of memory, in pages of a megabyte.
#[derive(Default)]
struct Seen {
    pages: HashMap<u32, Box<[u64; PAGE_WORDS]>>,
}

const PAGE_WORDS: usize = (1 << 20) / 8 / 64;

impl Seen {
    fn place(reference: Ref) -> (u32, usize, u64) {
        let unit = reference.address() >> 3;
        let (page, bit) = (unit >> 17, unit & ((1 << 17) - 1));
        (page as u32, bit / 64, 1 << (bit % 64))
    }

    /// True when it was not in the set.
    fn insert(&mut self, reference: Ref) -> bool {
        let (page, word, bit) = Seen::place(reference);
        let page = self.pages.entry(page);
        let word = &mut page.or_insert_with(|| Box::new([0; PAGE_WORDS]))[word];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, reference: Ref) -> bool {
        let (page, word, bit) = Seen::place(reference);
        self.pages.get(&page).is_some_and(|p| p[word] & bit != 0)
    }
}
