//! The benchmark programs, on the raw layer, for any collector (feature `workloads`).
//!
//! What each program does, down to its checksum, is specified in `bench/PROGRAMS.md`, so that the same program on
//! another memory manager can be compared with it. They live here because they are written as a virtual machine would
//! be, on the raw layer: a crate that forbids unsafe code cannot contain them. They print nothing.
//!
//! | module | asks |
//! |---|---|
//! | [`gcbench`], [`binary_trees`] | how fast do small objects come and go? |
//! | [`large_live_heap`] | how long does a program with much live data wait? |
//! | [`long_list`] | does dying in depth cost stack? |
//! | [`scaling`] | how does the cost of a collection grow with the heap? |

pub mod binary_trees;
pub mod gcbench;
pub mod large_live_heap;
pub mod long_list;
pub mod scaling;
pub mod trees;

use crate::error::{AllocError, HeapError};
use thiserror::Error;

/// A program could not be run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// The heap could not be made, or a shape could not be defined.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// An allocation failed.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

#[cfg(test)]
mod tests;
