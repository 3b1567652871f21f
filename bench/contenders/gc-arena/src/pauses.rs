//! The collector's work, which happens in calls of `collect_debt`: each is a pause.

use bench_programs::clock;
use bench_programs::latency::micros;
use bench_programs::report::Report;
use gc_arena::{Arena, Collect, Rootable};
use std::time::Duration;

/// The longest pause so far, in CPU time of the thread.
#[derive(Default)]
pub(crate) struct Pauses(Duration);

impl Pauses {
    /// Lets the collector do the work that is due.
    pub(crate) fn collect_debt<R>(&mut self, arena: &mut Arena<R>)
    where
        R: for<'a> Rootable<'a>,
        for<'a> <R as Rootable<'a>>::Root: Collect<'a>,
    {
        if arena.metrics().allocation_debt() <= 0.0 {
            return;
        }
        let begin = clock::thread_cpu();
        arena.collect_debt();
        self.0 = self.0.max(clock::thread_cpu() - begin);
    }

    /// Reports the longest.
    pub(crate) fn report(&self, report: &mut Report) {
        report.number("max_pause_us", micros(self.0));
    }
}
