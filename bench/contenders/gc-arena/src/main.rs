//! The `gc-arena` crate, used as its documentation shows: branded `Gc` pointers inside `mutate`, and `collect_debt`
//! between mutations, with the default pacing. A temporary tree, or a batch of operations, is one mutation; the
//! collector can only work between two of them.

mod large_live_heap;
mod long_list;
mod pauses;
mod trees;

use bench_programs::command::{Command, Program};
use bench_programs::report::Report;
use pauses::Pauses;

fn main() {
    let mut pauses = Pauses::default();
    let mut report = match Command::from_args().program {
        Program::GcBench => Report::new(&trees::gcbench(&mut pauses).checksum()),
        Program::BinaryTrees(depth) => Report::new(&trees::binary_trees(depth, &mut pauses)),
        Program::LargeLiveHeap => large_live_heap::run(&mut pauses),
        Program::LongList(objects) => Report::new(&long_list::run(objects, &mut pauses)),
    };
    pauses.report(&mut report);
    report.text("note", "default pacing, no heap limit");
    report.finish()
}
