//! The machine's invariants, checked object by object: for the sanity switch and for contracts.

use super::machine::{Machine, Phase};
use crate::header::MARK;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use std::collections::HashSet;

impl Machine {
    /// Checks the invariants of the [machine](super::machine), object by object.
    pub fn verify(&self, shapes: &ShapeTable) -> Result<(), String> {
        let mut objects = HashSet::new();
        let mut problems = Vec::new();
        let grey: HashSet<Ref> = (self.stack().iter().copied())
            .chain(self.arrays().iter().map(|segment| segment.array))
            .collect();
        // SAFETY: verification runs with the world stopped.
        unsafe {
            self.space().each_object(|address, word| {
                if !self.awaits_sweep(address, word) {
                    objects.insert(Ref::from_address(address));
                }
            });
            for &p in &grey {
                if !objects.contains(&p) || !object::header(p.address()).has(MARK) {
                    problems.push(format!("{p:?} is on the stack and not marked"));
                }
            }
            if self.phase() != Phase::Mark && !grey.is_empty() {
                problems.push(format!("{} grey objects in {:?}", grey.len(), self.phase()));
            }
            for &p in &objects {
                let word = object::header(p.address());
                let marked = word.has(MARK);
                let may_be_marked = match self.phase() {
                    Phase::Idle => false,
                    Phase::Mark => true,
                    Phase::Sweep => p.address() >= self.sweep_cur(),
                };
                if marked && !may_be_marked {
                    problems.push(format!("{p:?} is marked in {:?}", self.phase()));
                }
                object::each_reference_slot(shapes, p.address(), word, |kind, slot| {
                    let target = object::load(slot);
                    if target.is_object() && !objects.contains(&target) {
                        problems.push(format!("{kind:?} of {p:?} leads to free {target:?}"));
                    }
                });
                if self.phase() == Phase::Mark && marked && !grey.contains(&p) {
                    object::each_strong_slot(shapes, p.address(), word, |slot| {
                        let target = object::load(slot);
                        if target.is_object() && !object::header(target.address()).has(MARK) {
                            problems.push(format!("black {p:?} leads to white {target:?}"));
                        }
                    });
                }
            }
            self.space().each_free_run(|run, word| {
                if !word.is_free() || word.has(MARK) {
                    problems.push(format!("the free run at {run:#x} holds {word:?}"));
                }
            });
        }
        problems.into_iter().next().map_or(Ok(()), Err)
    }
}
