//! Latency of the batches, by the thread's CPU time and by the wall clock.

use crate::clock;
use crate::large_live_heap::BATCHES;
use crate::report::Report;
use std::time::Duration;

/// The recorded latencies; memory for all batches is taken beforehand.
#[derive(Debug)]
pub struct Latencies {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
}

impl Default for Latencies {
    fn default() -> Self {
        let room = BATCHES as usize;
        Self {
            cpu: Vec::with_capacity(room),
            wall: Vec::with_capacity(room),
        }
    }
}

impl Latencies {
    /// Runs one batch and records how long it took.
    #[inline]
    pub fn batch<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let wall = clock::wall();
        let cpu = clock::thread_cpu();
        let result = work();
        self.cpu.push(clock::thread_cpu() - cpu);
        self.wall.push(clock::wall() - wall);
        result
    }

    /// Writes maximum and 99.9th percentile into the report.
    pub fn report(mut self, report: &mut Report) {
        for (times, max, p999) in [
            (&mut self.cpu, "max_latency_us", "p999_latency_us"),
            (
                &mut self.wall,
                "max_latency_wall_us",
                "p999_latency_wall_us",
            ),
        ] {
            times.sort_unstable();
            let Some(&last) = times.last() else { continue };
            report.number(max, micros(last));
            report.number(p999, micros(times[times.len() * 999 / 1000]));
        }
    }
}

/// Microseconds, with fraction.
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
