//! The invariants, checked: counts equal in-degrees.
//!
//! Independent of how the counts came about: it walks all objects, adds up who refers to whom as of
//! the last epoch (for what was logged since, the log says what was there), and compares.

use super::RefCount;
use super::count::{self, Colour};
use super::log::SlotRef;
use crate::header::{BUFFERED, Header, LOGGED, NEW, WATCHED};
use crate::object;
use crate::reference::Ref;
use crate::shape::{Kind, ShapeTable};
use std::collections::{HashMap, HashSet};

/// Checks all invariants; the first problem is described in words.
pub(super) fn verify(this: &RefCount, shapes: &ShapeTable) -> Result<(), String> {
    let objects = all_objects(this);
    let degrees = in_degrees(this, shapes, &objects);
    let watched: HashSet<Ref> = this.watched.iter().copied().collect();
    let buffered: HashSet<Ref> = this.candidates.as_slice().iter().copied().collect();
    if buffered.len() != this.candidates.len() {
        return Err("an object is twice in the buffer of candidates".into());
    }
    for (&object, &word) in &objects {
        let problem = |text: &str| Err(format!("{object:?} ({word:?}) {text}"));
        if word.has(NEW) {
            if !word.has(LOGGED) || count::is_counted(word) {
                return problem("is new, and counted or not logged");
            }
            if !this.blocks.has_young() {
                return problem("is new, but no block is young");
            }
        } else {
            let (count, degree) = (
                this.counts.total(object, word),
                degrees.get(&object).copied().unwrap_or(0),
            );
            if count != degree {
                return problem(&format!("has count {count} and in-degree {degree}"));
            }
            if count == 0 && !word.has(BUFFERED) {
                return problem("has no count, and was not freed");
            }
        }
        if word.has(WATCHED) != watched.contains(&object) {
            return problem("is watched according to one and not the other");
        }
        if word.has(BUFFERED) != buffered.contains(&object) {
            return problem("is buffered according to one and not the other");
        }
        if count::is(word, Colour::Gray) || count::is(word, Colour::White) {
            return problem("has a colour of trial deletion");
        }
        if count::is(word, Colour::Purple) && !word.has(BUFFERED) {
            return problem("is purple, and not buffered");
        }
        check_weak_targets(shapes, object, word)?;
    }
    if let Some(gone) = this.counts.beyond().find(|o| !objects.contains_key(o)) {
        return Err(format!("{gone:?} has a large count, and was freed"));
    }
    check_log(this, shapes, &objects)?;
    check_blocks(this, &objects)
}

fn all_objects(this: &RefCount) -> HashMap<Ref, Header> {
    let mut objects = HashMap::new();
    // SAFETY: verification runs with the world stopped and the locals retired.
    unsafe {
        this.space.each_object(|address, word| {
            objects.insert(Ref::from_address(address), word);
        });
    }
    objects
}

/// Who is referred to how often, by counted objects as of the last epoch, by roots, by being watched.
fn in_degrees(
    this: &RefCount,
    shapes: &ShapeTable,
    objects: &HashMap<Ref, Header>,
) -> HashMap<Ref, u64> {
    let mut degrees = HashMap::new();
    let mut add = |target: Ref| {
        if target.is_object() {
            *degrees.entry(target).or_insert(0) += 1;
        }
    };
    for (&object, &word) in objects {
        if word.has(NEW) || word.has(LOGGED) || !count::is_counted(word) {
            continue;
        }
        // SAFETY: the object is there.
        unsafe {
            object::each_strong_slot(shapes, object.address(), word, |slot| {
                if !this.logged.has(slot) {
                    add(object::load(slot));
                }
            });
        }
    }
    this.log.values.iter().copied().for_each(&mut add);
    this.log.slots.iter().for_each(|&(_, old)| add(old));
    this.roots.iter().copied().for_each(&mut add);
    this.watched[..this.pinned]
        .iter()
        .copied()
        .for_each(&mut add);
    degrees
}

/// What a slot that is not strong refers to must be watched: counting would free it unnoticed.
fn check_weak_targets(shapes: &ShapeTable, object: Ref, word: Header) -> Result<(), String> {
    if !word.has(NEW) && !count::is_counted(word) {
        return Ok(());
    }
    let mut unwatched = None;
    // SAFETY: the object is there, and so is what it refers to.
    unsafe {
        object::each_reference_slot(shapes, object.address(), word, |kind, slot| {
            let target = object::load(slot);
            if kind != Kind::Reference
                && target.is_object()
                && !object::header(target.address()).has(WATCHED)
            {
                unwatched = Some((kind, target));
            }
        });
    }
    match unwatched {
        Some((kind, target)) => Err(format!(
            "{target:?} is in a {kind:?} slot of {object:?} and not watched: was it stored with \
             `write` instead of `write_weak`?"
        )),
        None => Ok(()),
    }
}

fn check_blocks(this: &RefCount, objects: &HashMap<Ref, Header>) -> Result<(), String> {
    let pool = this.space.pool();
    let mut live: HashMap<_, usize> = HashMap::new();
    let mut counted = 0;
    for (object, word) in objects.iter().filter(|(_, word)| !word.has(NEW)) {
        counted += u64::from(count::is_counted(*word));
        *live.entry(pool.block_of(object.address())).or_default() += 1;
    }
    if counted != this.counted.objects {
        let known = this.counted.objects;
        return Err(format!("{counted} objects are counted, {known} are known"));
    }
    for (block, _) in this.space.cell_blocks() {
        let (found, known) = (
            live.get(&block).copied().unwrap_or(0),
            this.blocks.live(block),
        );
        if found != known {
            return Err(format!(
                "{found} counted objects in {block:?}, {known} known"
            ));
        }
    }
    Ok(())
}

/// What says that it was logged must be in the log, once.
fn check_log(
    this: &RefCount,
    shapes: &ShapeTable,
    objects: &HashMap<Ref, Header>,
) -> Result<(), String> {
    let slots: HashSet<SlotRef> = this.log.slots.iter().map(|s| s.0).collect();
    let whole: HashSet<Ref> = this.log.objects.iter().copied().collect();
    if slots.len() != this.log.slots.len() || whole.len() != this.log.objects.len() {
        return Err("something was logged twice".into());
    }
    let mut flags = 0;
    for (&object, &word) in objects.iter().filter(|(_, word)| !word.has(NEW)) {
        if word.has(LOGGED) != whole.contains(&object) {
            return Err(format!("{object:?} is logged according to one only"));
        }
        // SAFETY: the object is there.
        unsafe {
            object::each_strong_slot(shapes, object.address(), word, |slot| {
                flags += usize::from(this.logged.has(slot));
            });
        }
    }
    if flags != slots.len() {
        let known = slots.len();
        return Err(format!(
            "{flags} slots say that they are logged, {known} are"
        ));
    }
    Ok(())
}
