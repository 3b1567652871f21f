//! Lists with `Gc`; a mutation for every [`CHUNK`] cells.

use crate::pauses::Pauses;
use bench_programs::long_list::{AFTER, checksum};
use gc_arena::{Arena, Collect, Gc, Mutation, Rootable};

const CHUNK: u64 = 1000;

/// A list, maybe empty.
pub(crate) type List<'gc> = Option<Gc<'gc, Cell<'gc>>>;

/// A cell of a list.
#[derive(Collect)]
#[collect(no_drop)]
pub(crate) struct Cell<'gc> {
    number: u64,
    next: List<'gc>,
}

/// A new cell.
#[inline(always)]
pub(crate) fn cell<'gc>(mc: &Mutation<'gc>, number: u64, next: List<'gc>) -> List<'gc> {
    Some(Gc::new(mc, Cell { number, next }))
}

/// The sum of all numbers.
pub(crate) fn sum(list: List<'_>) -> u64 {
    std::iter::successors(list, |cell| cell.next).fold(0, |sum, cell| sum.wrapping_add(cell.number))
}

pub(crate) fn run(objects: u64, pauses: &mut Pauses) -> String {
    let mut arena = Arena::<Rootable![List<'_>]>::new(|_| None);
    pauses.pace(&arena);
    for first in (0..objects).step_by(CHUNK as usize) {
        arena.mutate_root(|mc, root| {
            for k in first..objects.min(first + CHUNK) {
                *root = cell(mc, k, *root);
            }
        });
        pauses.collect_debt(&mut arena);
    }
    let mut total = arena.mutate_root(|_, root| sum(root.take()));
    arena.finish_cycle();
    arena.finish_cycle();
    for first in (0..AFTER).step_by(CHUNK as usize) {
        total = arena.mutate(|mc, _| {
            (first..first + CHUNK)
                .fold(total, |total, k| total.wrapping_add(sum(cell(mc, k, None))))
        });
        pauses.collect_debt(&mut arena);
    }
    std::mem::forget(arena);
    checksum(objects, total)
}
