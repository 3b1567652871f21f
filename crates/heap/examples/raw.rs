//! The same tour on the raw layer, as a virtual machine that manages its own roots would write it.
//! Every `unsafe` rests on one contract: a reference was read or allocated since the last safepoint.
//!
//! `cargo run -p liveoak-heap --example raw`

use liveoak_heap::collector::Collector;
use liveoak_heap::collectors::Generational;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::reference::Ref;
use liveoak_heap::shape::ShapeSpec;

/// Slots, in units of four bytes behind the header.
const NEXT: usize = 0;
const NUMBER: usize = 2;
const TARGET: usize = 0;
const KEY: usize = 0;
const VALUE: usize = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let cell = heap.define(ShapeSpec::fixed("Cell").reference("next").word("number"))?;
    let weak = heap.define(ShapeSpec::fixed("Weak").weak("target"))?;
    let entry = heap.define(ShapeSpec::fixed("Entry").ephemeron())?;
    let mut mutator = heap.mutator();

    // Allocate and root. The stack of roots is updated when objects move.
    let list = mutator.stack().push(Ref::NULL);
    for n in 0..1000 {
        let new = mutator.allocate(&cell)?; // a safepoint: older references are invalid from here
        let old = mutator.stack().get(list);
        // SAFETY: `new` was allocated and `old` read since the last safepoint.
        unsafe {
            mutator.write(new, NEXT, old); // through the write barrier
            mutator.write_word(new, NUMBER, n);
        }
        mutator.stack().set(list, new);
    }
    mutator.collect();

    // Walk. Nothing here is a safepoint.
    let (mut sum, mut at) = (0, mutator.stack().get(list));
    while !at.is_null() {
        // SAFETY: read from a root or a slot since the last safepoint.
        unsafe {
            sum += mutator.read_word(at, NUMBER);
            at = mutator.read(at, NEXT);
        }
    }
    println!("sum {sum}");

    // Iterate over all objects, with the world stopped.
    let objects = mutator.inspect(|world| {
        let shapes = world.shapes();
        let mut objects = 0;
        // SAFETY: the world is stopped.
        unsafe {
            Collector::each_object(world.collector(), shapes, &mut |_, _| objects += 1);
        }
        objects
    });
    println!("{objects} objects");

    // Weak reference, guardian, ephemeron.
    let weak = mutator.allocate(&weak)?;
    let weak = mutator.stack().push(weak);
    let entry = mutator.allocate(&entry)?;
    let entry = mutator.stack().push(entry);
    let guardian = mutator.create_guardian();
    let dying = mutator.allocate(&cell)?;
    let (weak_cell, table) = (mutator.stack().get(weak), mutator.stack().get(entry));
    // SAFETY: all three were allocated or read since the last safepoint.
    unsafe {
        mutator.write_word(dying, NUMBER, 7);
        mutator.write_weak(weak_cell, TARGET, dying);
        mutator.write_weak(table, KEY, dying);
        mutator.write_weak(table, VALUE, dying);
    }
    mutator.guard(guardian, dying);
    mutator.collect();
    let weak_cell = mutator.stack().get(weak);
    // SAFETY: read from its root just now.
    let target = unsafe { mutator.read(weak_cell, TARGET) };
    println!("the weak reference is null: {}", target.is_null());
    while let Some(dead) = mutator.next_dead(guardian) {
        // SAFETY: handed over since the last safepoint.
        println!("finalizing {}", unsafe { mutator.read_word(dead, NUMBER) });
    }
    mutator.collect();
    let table = mutator.stack().get(entry);
    // SAFETY: read from its root just now.
    let value = unsafe { mutator.read(table, VALUE) };
    println!("the ephemeron is empty: {}", value.is_null());

    // A global handle lives outside every stack.
    let head = mutator.stack().get(list);
    let global = mutator.create_global(head);
    mutator.stack().truncate(0);
    mutator.collect();
    println!(
        "kept by the global handle: {:?}",
        mutator.global(global).is_some()
    );
    mutator.drop_global(global);
    Ok(())
}
