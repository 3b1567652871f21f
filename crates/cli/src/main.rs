//! The `liveoak` command.
mod workload;
use liveoak_heap::collector::Collector;
use liveoak_heap::collectors::*;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;

fn go<C: Collector>(args: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let mut config = HeapConfig::default().with_max_bytes(args[3].parse::<usize>()? << 20);
    if let Some(n) = args.get(4) {
        config.nursery_bytes = n.parse::<usize>()? << 10;
    }
    let heap: Heap<C> = Heap::new(config)?;
    match args[2].as_str() {
        "gcbench" => println!("{}", workload::gcbench::run(&heap)?),
        "bt16" => println!("{}", workload::binary_trees::run(&heap, 16)?),
        "bt20" => println!("{}", workload::binary_trees::run(&heap, 20)?),
        "list" => println!("{}", workload::long_list::run(&heap, 10_000_000)?),
        _ => {
            let m = &mut heap.mutator();
            println!("{:?}", workload::large_live_heap::run(&heap, m)?);
            m.collect();
        }
    }
    println!("{}", liveoak_report::statistics::text(&heap.stats()));
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args[1].as_str() {
        "mark-sweep" => go::<MarkSweep>(&args).unwrap(),
        "concurrent" => go::<Concurrent>(&args).unwrap(),
        "generational" => go::<Generational>(&args).unwrap(),
        _ => panic!(),
    }
}
