//! The invariants, checked with the world stopped: for the sanity switch.

use super::{Concurrent, Phase};
use crate::lock;
use crate::object;
use crate::reference::Ref;
use crate::shape::ShapeTable;
use std::collections::HashSet;

impl Concurrent {
    pub(super) fn check(&self, shapes: &ShapeTable) -> Result<(), String> {
        if self.in_flight != 0 {
            return Err(format!("{} blocks are in flight", self.in_flight));
        }
        match self.phase {
            Phase::Idle => self.verify_swept(),
            Phase::Mark => self.verify_work_set(shapes),
            Phase::Sweep => Ok(()),
        }
    }

    /// Between cycles nothing is unmarked.
    fn verify_swept(&self) -> Result<(), String> {
        let mut problem = Ok(());
        // SAFETY: verification runs with the world stopped.
        unsafe {
            self.space.each_object(|address, word| {
                if !object::is_marked(word, self.sense) {
                    problem = Err(format!("object at {address:#x} is unmarked between cycles"));
                }
            });
        }
        problem
    }

    /// The invariant of the work set: every successor of S is in S or in some piece of WS.
    fn verify_work_set(&self, shapes: &ShapeTable) -> Result<(), String> {
        if self.space.has_unswept() {
            return Err("a block waits to be swept while marking".to_string());
        }
        let work = lock(&self.shared.work);
        let mut grey: HashSet<Ref> = work.set.iter().collect();
        grey.extend(lock(&self.shared.greys).iter());
        let rests = &work.found.segments;
        let mut problem = Ok(());
        // SAFETY: verification runs with the world stopped; nothing is freed while marking.
        unsafe {
            self.space.each_object(|address, word| {
                if !object::is_marked(word, self.sense) {
                    return;
                }
                object::each_strong_slot(shapes, address, word, |slot| {
                    let target = object::load(slot);
                    let in_rest = || {
                        rests.iter().any(|rest| {
                            let from = object::slot_address(address, rest.from as usize);
                            rest.array.address() == address && slot >= from
                        })
                    };
                    if target.is_object()
                        && !object::is_marked(object::header(target.address()), self.sense)
                        && !grey.contains(&target)
                        && !in_rest()
                    {
                        problem = Err(format!(
                            "{target:?} is a successor of the marked object at {address:#x}, and neither marked nor in the work set"
                        ));
                    }
                });
            });
        }
        problem
    }
}
