//! The programs with `Box`: what is forgotten is freed at once, by ownership. There is no collector.

mod large_live_heap;
mod long_list;
mod trees;

use bench_programs::command::{Command, Program};
use bench_programs::report::Report;

/// Runs the program of the command line; `note` names the allocator.
pub fn main(note: &str) {
    let mut report = match Command::from_args().program {
        Program::GcBench => Report::new(&trees::gcbench().checksum()),
        Program::BinaryTrees(depth) => Report::new(&trees::binary_trees(depth)),
        Program::LargeLiveHeap => large_live_heap::run(),
        Program::LongList(objects) => Report::new(&long_list::run(objects)),
    };
    report.text("note", note);
    report.finish()
}
