//! What the native contenders share: the constants and checksums of the programs (`PROGRAMS.md` is the definition),
//! the command line, the line of JSON at the end, clocks, and the programs themselves for heaps with raw references.
//!
//! A contender with references of its own kind (`Box`, `gc-arena`) writes the loops again in its own idiom; whoever
//! has raw addresses implements [`raw::RawHeap`] and gets them from [`raw::run`].

pub mod binary_trees;
pub mod clock;
pub mod command;
pub mod gcbench;
pub mod large_live_heap;
pub mod latency;
pub mod long_list;
pub mod random;
pub mod raw;
pub mod report;
