//! A mutator's part in the incremental collector: the colour of new objects, and the barrier.
//!
//! Mutators run between the operations of the machine, several at a time and without the lock. What
//! they must know of its state is copied into their [`Local`] with the world stopped.
//!
//! Invariant, while mutators run: `marking` and `black_from` are what [`Local::publish`] wrote after
//! the machine's last operation.

use super::machine::{Machine, Phase};
use crate::header::{Header, MARK};
use crate::object;
use crate::reference::Ref;
use crate::space::cells::Cache;
use std::sync::atomic::Ordering;

/// A mutator's part: its runs of free cells, and what it must know of the machine's state.
#[derive(Default, Debug)]
pub struct Local {
    pub(super) cache: Cache,
    /// Bytes of its runs that were unused when they were last counted.
    pub(super) unused: usize,
    /// Objects that this mutator made grey: they count as being on the stack, and are pushed there
    /// when the world stops.
    pub(super) grey: Vec<Ref>,
    /// True while the phase is Mark.
    marking: bool,
    /// New objects from this address on are black: `sweepCur` while the machine is not idle.
    black_from: usize,
}

impl Local {
    /// Takes over what the barrier and the allocation must know of the machine's state.
    pub fn publish(&mut self, machine: &Machine) {
        self.marking = machine.phase() == Phase::Mark;
        self.black_from = match machine.phase() {
            Phase::Idle => usize::MAX,
            Phase::Mark | Phase::Sweep => machine.sweep_cur(),
        };
    }

    /// The header of a new object at `address`, in its colour. While marking, `sweepCur` is START
    /// and it is black; while sweeping, it is black if the sweeper has yet to come there, so that
    /// it is not taken for dead, and white if the sweeper has passed, so that it is white when the
    /// next cycle begins.
    #[inline(always)]
    pub fn colour(&self, address: usize, header: Header) -> Header {
        Header(header.0 | (u64::from(address >= self.black_from) * MARK))
    }

    /// Stores `value` into the slot at address `slot`. While marking, `value` becomes grey if it is
    /// white, whatever the colour of the object that it is stored into: otherwise a black object
    /// might hold the only reference to it, and it would be freed.
    ///
    /// # Safety
    /// `slot` is a reference slot of an object, and `value` is null, an immediate or an object of
    /// this heap.
    #[inline(always)]
    pub unsafe fn dijkstra_store(&mut self, slot: usize, value: Ref) {
        // SAFETY: promised by the caller.
        unsafe {
            self.barrier(value);
            object::store(slot, value);
        }
    }

    /// The barrier without the store.
    ///
    /// # Safety
    /// `value` is null, an immediate or an object of this heap.
    #[inline(always)]
    pub unsafe fn barrier(&mut self, value: Ref) {
        if self.marking {
            // SAFETY: promised by the caller.
            unsafe { self.shade(value) };
        }
    }

    #[inline(never)]
    unsafe fn shade(&mut self, value: Ref) {
        if !value.is_object() {
            return;
        }
        // SAFETY: promised by the caller. Other mutators may shade the same object or write its
        // flags meanwhile: exactly one of them sees the bit clear, and no flag is lost.
        unsafe {
            let address = value.address();
            if object::header(address).has(MARK) {
                return;
            }
            let before = object::header_cell(address).fetch_or(MARK, Ordering::Relaxed);
            if !Header(before).has(MARK) {
                self.grey.push(value);
            }
        }
    }
}
