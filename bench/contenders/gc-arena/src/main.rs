//! The `gc-arena` crate, used as its documentation shows: branded `Gc` pointers inside `mutate`, and `collect_debt`
//! between mutations, with the default pacing or (`--plan stop-the-world`) with the crate's other one. A temporary tree, or a batch of operations, is one mutation; the
//! collector can only work between two of them.

mod large_live_heap;
mod long_list;
mod pauses;
mod trees;

use bench_programs::command::{Command, Program};
use bench_programs::report::Report;
use gc_arena::metrics::Pacing;
use pauses::Pauses;

fn main() {
    let command = Command::from_args();
    let (pacing, note) = match command.plan.as_deref() {
        None => (Pacing::DEFAULT, "default pacing, no heap limit"),
        Some("stop-the-world") => (Pacing::STOP_THE_WORLD, "stops the world, no heap limit"),
        Some(other) => panic!("no plan {other}"),
    };
    let mut pauses = Pauses::new(pacing);
    let mut report = match command.program {
        Program::GcBench => Report::new(&trees::gcbench(&mut pauses).checksum()),
        Program::BinaryTrees(depth) => Report::new(&trees::binary_trees(depth, &mut pauses)),
        Program::LargeLiveHeap => large_live_heap::run(&mut pauses),
        Program::LongList(objects) => Report::new(&long_list::run(objects, &mut pauses)),
    };
    pauses.report(&mut report);
    report.text("note", note);
    report.finish()
}
