//! MMTk's plans (`--plan GenImmix`, …) through the smallest binding that is fair to them: one mutator, a shadow stack
//! of roots, the bump pointer and the generational barrier's test inlined as MMTk's porting guide advises, and
//! whole-program optimisation. Options are MMTk's defaults but for those in [`start`].

mod binding;
mod heap;
mod object;
mod world;

use bench_programs::command::{Command, Program};
use bench_programs::raw;
use heap::{Collecting, Copying, FreeList, Generational, Immix};
use mmtk::{MMTK, MMTKBuilder, memory_manager};

const DEFAULT_HEAP: usize = 256 << 20;
/// Total CPU time is what is compared, and a second worker costs more of it than it saves.
const WORKERS: &str = "1";

/// The nursery of the generational plans, the best of those tried (2 to 128 MiB, and the default, half the heap):
/// trees want it large, a large live heap wants its full collections rare.
fn nursery(program: Program, heap: usize) -> usize {
    match program {
        Program::LargeLiveHeap => 32 << 20,
        _ => heap / 4,
    }
}

fn main() {
    let command = Command::from_args();
    let plan = command.plan.as_deref().unwrap_or("GenImmix");
    let heap = command.heap.unwrap_or(DEFAULT_HEAP);
    let program = command.program;
    let mmtk = start(plan, heap, nursery(program, heap));
    let mut report = match plan {
        "GenImmix" | "GenCopy" => raw::run(&mut Collecting::<Generational>::new(mmtk), program),
        "SemiSpace" => raw::run(&mut Collecting::<Copying>::new(mmtk), program),
        "Immix" => raw::run(&mut Collecting::<Immix>::new(mmtk), program),
        "MarkSweep" => raw::run(&mut Collecting::<FreeList>::new(mmtk), program),
        other => panic!("no fast path for plan {other}"),
    };
    let note = format!(
        "heap {} MB, {WORKERS} worker, {} collections",
        heap / 1_000_000,
        world::WORLD.collections()
    );
    report.text("note", &note);
    report.finish()
}

fn start(plan: &str, heap: usize, nursery: usize) -> &'static MMTK<binding::Vm> {
    let mut builder = MMTKBuilder::new_no_env_vars();
    let trigger = format!("FixedHeapSize:{heap}");
    let nursery = format!("Fixed:{nursery}");
    for (option, value) in [
        ("plan", plan),
        ("gc_trigger", &trigger),
        ("threads", WORKERS),
        ("nursery", &nursery),
        ("transparent_hugepages", "true"),
        ("no_finalizer", "true"),
        ("no_reference_types", "true"),
    ] {
        assert!(builder.set_option(option, value), "{option}={value}");
    }
    let mmtk: &'static MMTK<binding::Vm> = Box::leak(memory_manager::mmtk_init(&builder));
    binding::publish(mmtk);
    mmtk
}
