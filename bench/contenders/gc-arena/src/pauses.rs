//! The collector's work, which happens in calls of `collect_debt`: each is a pause.

use bench_programs::clock;
use bench_programs::latency::micros;
use bench_programs::report::Report;
use gc_arena::metrics::Pacing;
use gc_arena::{Arena, Collect, Rootable};
use std::time::Duration;

/// How the collector is paced, and its longest pause so far, in CPU time of the thread.
pub(crate) struct Pauses {
    pacing: Pacing,
    longest: Duration,
}

impl Pauses {
    /// Under this pacing.
    pub(crate) fn new(pacing: Pacing) -> Self {
        let longest = Duration::ZERO;
        Self { pacing, longest }
    }

    /// Gives a new arena its pacing.
    pub(crate) fn pace<R>(&self, arena: &Arena<R>)
    where
        R: for<'a> Rootable<'a>,
        for<'a> <R as Rootable<'a>>::Root: Collect<'a>,
    {
        arena.metrics().set_pacing(self.pacing);
    }

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
        self.longest = self.longest.max(clock::thread_cpu() - begin);
    }

    /// Reports the longest.
    pub(crate) fn report(&self, report: &mut Report) {
        report.number("max_pause_us", micros(self.longest));
    }
}
