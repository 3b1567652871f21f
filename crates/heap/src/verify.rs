//! Sanity: an independent, slow look at the whole heap.
//!
//! It shares nothing with the collectors but the walk over objects: it collects the starts of all
//! objects, and then follows every reference from the roots. What must hold:
//! - every root and every slot of a reachable object is null, an immediate, or the start of an
//!   object that has not been freed;
//! - every reachable object has a defined shape, and is not forwarded;
//! - the collector's own invariants ([`Collector::verify`]).

use crate::collector::Collector;
use crate::header::{FORWARDED, Header};
use crate::heap::World;
use crate::object;
use crate::reference::Ref;
use crate::shape::Kind;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Where a reference was found; put into words only when it is wrong.
enum Source {
    Root(String),
    Slot(Kind, Ref, usize),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Root(name) => f.write_str(name),
            Source::Slot(kind, object, offset) => write!(f, "{kind:?} at {object:?}+{offset}"),
        }
    }
}

/// Looks at the whole heap; the first problem is described in words.
pub fn verify<C: Collector>(world: &mut World<'_, C>) -> Result<(), String> {
    let shapes = world.shapes();
    let mut starts: HashMap<usize, Header> = HashMap::new();
    // SAFETY: the world is stopped and the locals are retired.
    unsafe {
        world.collector().each_object(shapes, &mut |address, word| {
            starts.insert(address, word);
        });
    }
    let mut seen: HashSet<Ref> = HashSet::new();
    let mut todo: Vec<(Ref, Source)> = Vec::new();
    world.each_named_root(&mut |name, root| todo.push((root, Source::Root(name))));
    while let Some((reference, from)) = todo.pop() {
        if !reference.is_object() || !seen.insert(reference) {
            continue;
        }
        let Some(&word) = starts.get(&reference.address()) else {
            return Err(format!(
                "{from} leads to {reference:?}, where no object begins"
            ));
        };
        if shapes.info(crate::shape::ShapeId(word.shape())).is_none() {
            return Err(format!(
                "{reference:?} (from {from}) has no shape: {word:?}"
            ));
        }
        if C::MOVES && word.has(FORWARDED) {
            return Err(format!("{reference:?} (from {from}) is still forwarded"));
        }
        // SAFETY: the object is there, as was just checked.
        unsafe {
            object::each_reference_slot(shapes, reference.address(), word, |kind, slot| {
                let target = object::load(slot);
                if target.is_object() && !seen.contains(&target) {
                    let offset = slot - reference.address();
                    todo.push((target, Source::Slot(kind, reference, offset)));
                }
            });
        }
    }
    world.collector().verify(shapes)
}
