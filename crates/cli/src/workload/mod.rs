//! The benchmark programs, on Liveoak's heap, for any collector.
//!
//! What each program does, down to its checksum, is specified in `bench/PROGRAMS.md`.

pub mod binary_trees;
pub mod gcbench;
pub mod large_live_heap;
pub mod long_list;
pub mod trees;

use liveoak_heap::error::{AllocError, HeapError};
use thiserror::Error;

/// A program could not be run to its end.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// The heap could not be made.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// An allocation failed.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}
