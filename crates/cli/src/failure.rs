//! Why a command failed, and with which exit code.

use crate::workload::Program;
use liveoak_heap::collector::Collector;
use liveoak_heap::error::{AllocError, HeapError};
use liveoak_heap::heap::Heap;
use liveoak_heap::safe;
use liveoak_heap::workload::WorkloadError;
use liveoak_report::units;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use thiserror::Error;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The heap could not be made.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// Memory did not suffice.
    #[error("{error} ({} of {} are in use)", units::bytes(*used), units::bytes(*limit))]
    Memory {
        /// What the heap said.
        error: AllocError,
        /// Bytes in use.
        used: u64,
        /// The limit of the heap.
        limit: u64,
    },
    /// The safe layer refused something: a fault of the program.
    #[error(transparent)]
    Refused(safe::Error),
    /// A program that the safe layer does not have.
    #[error("{program} is written on the raw layer only; leave out --api safe")]
    NoSafeVersion {
        /// The program.
        program: Program,
    },
    /// A flag that makes no sense here.
    #[error("{flag} {reason}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// Why, and what to do.
        reason: String,
    },
    /// Standard output could not be written.
    #[error("could not write to standard output: {0}")]
    Output(#[source] io::Error),
    /// The log could not be written.
    #[error("could not write the log {}: {source}", path.display())]
    Log {
        /// Where to.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A process of a comparison could not be started.
    #[error("could not start {}: {source}", program.display())]
    Start {
        /// What should have been started.
        program: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Some rows of a comparison have no numbers.
    #[error("{failed} of {runs} runs failed; the table says why")]
    Comparison {
        /// How many.
        failed: usize,
        /// Of how many.
        runs: usize,
    },
}

impl Failure {
    /// What a program says, with what is known of its heap.
    pub(crate) fn of_workload<C: Collector>(error: WorkloadError, heap: &Heap<C>) -> Failure {
        match error {
            WorkloadError::Heap(error) => Failure::Heap(error),
            WorkloadError::Alloc(error) => Failure::Memory {
                error,
                used: heap.used() as u64,
                limit: heap.config().max_bytes as u64,
            },
        }
    }

    /// What the safe layer says, with what is known of its heap.
    pub(crate) fn of_safe<C: Collector>(error: safe::Error, heap: &Heap<C>) -> Failure {
        match error.reason() {
            safe::Reason::Heap(error) => Failure::Heap(error.clone()),
            safe::Reason::Alloc(error) => Failure::of_workload((*error).into(), heap),
            _ => Failure::Refused(error),
        }
    }

    /// The process's exit code: 2 when other flags would have helped, 1 otherwise.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Flag { .. } | Failure::NoSafeVersion { .. } => ExitCode::from(2),
            Failure::Heap(
                HeapError::LimitTooSmall { .. }
                | HeapError::LimitTooLarge { .. }
                | HeapError::BadSetting { .. }
                | HeapError::UnknownCollector { .. },
            ) => ExitCode::from(2),
            _ => ExitCode::from(1),
        }
    }

    /// True when standard output was closed by its reader.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
