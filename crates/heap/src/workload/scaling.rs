//! How the cost of a collection grows: a table of so many live objects, collected fully, and, where there is a nursery,
//! a few thousand young objects collected alone.

use super::WorkloadError;
use super::large_live_heap::{Size, Table};
use crate::collector::Collector;
use crate::error::AllocError;
use crate::heap::Heap;
use crate::mutator::Mutator;
use crate::shape::{Shape, ShapeSpec};
use crate::stats::{CollectionKind, process_cpu_time};
use std::time::Duration;

const REPETITIONS: usize = 5;
const YOUNG: usize = 10_000;
/// One young object in so many survives.
const SURVIVOR: usize = 100;

/// What was measured: medians of CPU time, all threads of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The checksum.
    pub checksum: String,
    /// A full collection with everything live.
    pub full: Duration,
    /// A collection of the young objects alone; none if the collector has no nursery.
    pub minor: Option<Duration>,
}

/// Runs it with `objects` live objects.
pub fn run<C: Collector>(heap: &Heap<C>, objects: u64) -> Result<Outcome, WorkloadError> {
    let cell = heap.define(ShapeSpec::fixed("Young").word("number").reference("next"))?;
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let mut table = Table::build(heap, mutator, Size::of(objects))?;
    let mutator = table.mutator();
    mutator.collect(); // whatever is young becomes old
    let full = (0..REPETITIONS).map(|_| timed(|| mutator.collect()));
    let full = median(full.collect());
    let minor = minor(heap, mutator, &cell)?;
    Ok(Outcome {
        checksum: format!("scaling {objects}"),
        full,
        minor,
    })
}

/// The median cost of a minor collection, if a step of this collector is one.
fn minor<C: Collector>(
    heap: &Heap<C>,
    mutator: &mut Mutator<C>,
    cell: &Shape,
) -> Result<Option<Duration>, AllocError> {
    let minors = || heap.stats().totals_of(CollectionKind::Minor).collections;
    let mut times = Vec::new();
    for _ in 0..REPETITIONS {
        let roots = mutator.stack().len();
        for n in 0..YOUNG {
            let young = mutator.allocate(cell)?;
            if n % SURVIVOR == 0 {
                mutator.stack().push(young);
            }
        }
        let before = minors();
        let time = timed(|| mutator.step());
        mutator.stack().truncate(roots);
        if minors() == before {
            return Ok(None);
        }
        times.push(time);
    }
    Ok(Some(median(times)))
}

fn timed(work: impl FnOnce()) -> Duration {
    let before = process_cpu_time();
    work();
    process_cpu_time().saturating_sub(before)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
