//! Which program to run, on which layer of the heap.
//!
//! The programs on the raw layer are in [`liveoak_heap::workload`]; those on the safe layer are here, because no unsafe
//! code is needed for them.

mod safe_trees;

use crate::bench::measurement::{Measurement, Quantity};
use crate::failure::Failure;
use clap::ValueEnum;
use liveoak_heap::collector::Collector;
use liveoak_heap::heap::Heap;
use liveoak_heap::stats::Stats;
use liveoak_heap::workload::{
    WorkloadError, binary_trees, gcbench, large_live_heap, long_list, scaling,
};
use std::fmt;

/// A program of `bench/PROGRAMS.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// Boehm's GCBench: trees of several depths, one of them long-lived, and a large array
    #[value(name = "gcbench")]
    GcBench,
    /// The Benchmarks Game's program: trees that come and go
    BinaryTrees,
    /// A hash table of five million entries, touched at random: latency of batches of operations
    LargeLiveHeap,
    /// A list of ten million cells that dies at once
    LongList,
    /// The cost of a full and of a minor collection with so many live objects
    Scaling,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Program {
    /// The name by which it is chosen.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::GcBench => "gcbench",
            Program::BinaryTrees => "binary-trees",
            Program::LargeLiveHeap => "large-live-heap",
            Program::LongList => "long-list",
            Program::Scaling => "scaling",
        }
    }

    /// Its `--depth` if it has one and none is given.
    pub(crate) fn default_depth(self) -> Option<u8> {
        match self {
            Program::GcBench => Some(gcbench::STRETCH as u8),
            Program::BinaryTrees => Some(16),
            _ => None,
        }
    }

    /// Its `--objects` if it has them and none are given.
    pub(crate) fn default_objects(self) -> Option<u64> {
        match self {
            Program::LargeLiveHeap => Some(large_live_heap::OBJECTS),
            Program::LongList => Some(10_000_000),
            Program::Scaling => Some(1_000_000),
            _ => None,
        }
    }

    /// The limit of the heap if none is given.
    pub(crate) fn heap_bytes(self, depth: u8) -> usize {
        match self {
            Program::BinaryTrees if depth >= 20 => 512 << 20,
            Program::GcBench | Program::BinaryTrees => 256 << 20,
            Program::LargeLiveHeap => 531_000_000,
            Program::LongList | Program::Scaling => 1 << 30,
        }
    }

    /// True when there is a version of it on this layer.
    pub(crate) fn is_written_on(self, api: Api) -> bool {
        match api {
            Api::Raw => true,
            Api::Safe => matches!(self, Program::GcBench | Program::BinaryTrees),
        }
    }
}

/// A layer of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// The raw layer, as a virtual machine uses it
    Raw,
    /// The safe layer, in which a reference cannot dangle
    Safe,
}

impl Api {
    /// The name by which it is chosen.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Api::Raw => "raw",
            Api::Safe => "safe",
        }
    }
}

/// A program with all that it needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) api: Api,
    /// For the programs that build trees.
    pub(crate) depth: u8,
    /// For those that ask for a number of objects.
    pub(crate) objects: u64,
}

/// What a program says about itself.
pub(crate) struct Outcome {
    pub(crate) checksum: String,
    /// The statistics of the heap when the measured part was over.
    pub(crate) stats: Stats,
    /// What only this program measures.
    pub(crate) measurements: Vec<Measurement>,
}

/// Runs the program on `heap`.
pub(crate) fn run<C: Collector>(heap: &Heap<C>, job: Job) -> Result<Outcome, Failure> {
    match job.api {
        Api::Raw => run_raw(heap, job).map_err(|error| Failure::of_workload(error, heap)),
        Api::Safe => run_safe(heap, job),
    }
}

fn run_safe<C: Collector>(heap: &Heap<C>, job: Job) -> Result<Outcome, Failure> {
    let depth = i32::from(job.depth);
    let checksum = match job.program {
        Program::GcBench => safe_trees::gcbench(heap, depth),
        Program::BinaryTrees => safe_trees::binary_trees(heap, depth),
        program => return Err(Failure::NoSafeVersion { program }),
    };
    Ok(Outcome {
        checksum: checksum.map_err(|error| Failure::of_safe(error, heap))?,
        stats: heap.stats(),
        measurements: Vec::new(),
    })
}

fn run_raw<C: Collector>(heap: &Heap<C>, job: Job) -> Result<Outcome, WorkloadError> {
    let depth = i32::from(job.depth);
    let checksum = match job.program {
        Program::GcBench => gcbench::run(heap, depth)?,
        Program::BinaryTrees => binary_trees::run(heap, depth)?,
        Program::LongList => long_list::run(heap, job.objects)?,
        Program::LargeLiveHeap => return Ok(latency(large_live_heap::run(heap, job.objects)?)),
        Program::Scaling => return Ok(growth(heap, scaling::run(heap, job.objects)?)),
    };
    Ok(Outcome {
        checksum,
        stats: heap.stats(),
        measurements: Vec::new(),
    })
}

fn latency(outcome: large_live_heap::Outcome) -> Outcome {
    let large_live_heap::Outcome { max, p999, .. } = outcome;
    let mut measurements = vec![
        Measurement::new(
            "max_latency_us",
            "longest batch, CPU",
            Quantity::Micros(max.cpu),
        ),
        Measurement::new(
            "p999_latency_us",
            "99.9 % of batches, CPU",
            Quantity::Micros(p999.cpu),
        ),
        Measurement::new(
            "max_latency_wall_us",
            "longest batch, wall",
            Quantity::Micros(max.wall),
        ),
        Measurement::new(
            "p999_latency_wall_us",
            "99.9 % of batches, wall",
            Quantity::Micros(p999.wall),
        ),
        Measurement::new(
            "setup_cpu_ms",
            "set-up, CPU",
            Quantity::Millis(outcome.setup_cpu),
        ),
        Measurement::new(
            "live_bytes",
            "live at the end",
            Quantity::Bytes(outcome.live_bytes as u64),
        ),
        Measurement::new(
            "alloc_stalls",
            "allocations that waited",
            Quantity::Count(outcome.stats.stalls()),
        ),
    ];
    if let Some((objects, cpu)) = outcome.marking {
        measurements.extend([
            Measurement::new("mark_cpu_ms", "last marking, CPU", Quantity::Millis(cpu)),
            Measurement::new(
                "marked_objects",
                "objects marked by it",
                Quantity::Count(objects),
            ),
        ]);
    }
    Outcome {
        checksum: outcome.checksum,
        stats: outcome.stats,
        measurements,
    }
}

fn growth<C: Collector>(heap: &Heap<C>, outcome: scaling::Outcome) -> Outcome {
    let full = Measurement::new(
        "full_gc_cpu_us",
        "full collection, CPU",
        Quantity::Micros(outcome.full),
    );
    let minor = outcome.minor.map(|cpu| {
        Measurement::new(
            "minor_gc_cpu_us",
            "minor collection, CPU",
            Quantity::Micros(cpu),
        )
    });
    Outcome {
        checksum: outcome.checksum,
        stats: heap.stats(),
        measurements: std::iter::once(full).chain(minor).collect(),
    }
}
