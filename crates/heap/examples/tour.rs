//! A tour of the safe layer: define shapes, allocate, root, read and write, collect, iterate, weak
//! references, guardians, ephemerons, roots on another thread.
//!
//! `cargo run -p liveoak-heap --example tour [collector]`

#![forbid(unsafe_code)]

use liveoak_heap::collector::Collector;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::kind::{CollectorKind, Program};
use liveoak_heap::safe::{Error, Immediate};
use liveoak_heap::shape::ShapeSpec;

fn main() -> Result<(), Error> {
    let name = std::env::args().nth(1);
    let kind: CollectorKind = name.as_deref().unwrap_or("generational").parse()?;
    println!("on {kind}:");
    kind.run(Tour)
}

struct Tour;

impl Program for Tour {
    type Output = Result<(), Error>;

    fn run<C: Collector>(self) -> Result<(), Error> {
        let heap: Heap<C> = Heap::new(HeapConfig::default().with_max_bytes(64 << 20))?;
        lists(&heap)?;
        weakness(&heap)?;
        threads(&heap)?;
        let stats = heap.stats();
        println!("{} objects allocated", stats.allocated().objects);
        Ok(())
    }
}

/// A shape, objects of it, and what survives a collection.
fn lists<C: Collector>(heap: &Heap<C>) -> Result<(), Error> {
    let cell = heap.define(ShapeSpec::fixed("Cell").reference("next").word("number"))?;
    let next = heap.ref_field(&cell, "next")?;
    let number = heap.data_field::<u64>(&cell, "number")?;
    let text = heap.define(ShapeSpec::bytes("Text"))?;
    let vector = heap.define(ShapeSpec::references("Vector"))?;

    let mut session = heap.session()?;
    session.scope(|scope| {
        let list = scope.null();
        for i in 0..1000 {
            // A scope of its own for each turn, so that its handles do not pile up.
            scope.nested(|turn| {
                let new = turn.allocate(&cell)?;
                turn.set(new, next, list)?;
                turn.object(new)?.write(number, i)?;
                turn.assign(list, turn.value(new)).map_err(Error::from)
            })?;
        }
        let words = scope.allocate_data(&text, b"live oak")?;
        let pair = scope.allocate_array(&vector, 2)?;
        let elements = scope.object(pair)?;
        elements.set_element(0, scope.value(words))?;
        elements.set_element(1, Immediate::truncated(42))?;

        scope.collect();

        let mut sum = 0;
        let mut at = scope.value(list).object();
        while let Some(cell) = at {
            sum += cell.read(number)?;
            at = cell.follow(next)?;
        }
        let words = scope.object(words)?.to_vec::<u8>()?;
        println!("  sum {sum}, text {:?}", String::from_utf8_lossy(&words));

        let mut objects = 0;
        scope.each_object(|_| objects += 1);
        println!("  {objects} objects are alive");
        Ok::<(), Error>(())
    })?;
    for population in session.census() {
        println!("  left: {} of {}", population.objects, population.name);
    }
    Ok(())
}

/// A weak reference, a guardian, an ephemeron.
fn weakness<C: Collector>(heap: &Heap<C>) -> Result<(), Error> {
    let file = heap.define(ShapeSpec::fixed("File").word("descriptor"))?;
    let descriptor = heap.data_field::<u64>(&file, "descriptor")?;
    let weak = heap.define(ShapeSpec::fixed("Weak").weak("target"))?;
    let target = heap.ref_field(&weak, "target")?;
    let entry = heap.define(ShapeSpec::fixed("Entry").ephemeron())?;
    let key = heap.ref_field(&entry, "key")?;
    let value = heap.ref_field(&entry, "value")?;
    let guardian = heap.guardian();

    heap.session()?.scope(|scope| {
        let cell = scope.allocate(&weak)?;
        let table = scope.allocate(&entry)?;
        scope.nested(|inner| {
            let open = inner.allocate(&file)?;
            inner.object(open)?.write(descriptor, 7)?;
            inner.set(cell, target, open)?;
            guardian.watch(inner.object(open)?)?;
            let note = inner.allocate(&file)?;
            inner.set(table, key, open)?;
            inner.set(table, value, note)?;
            Ok::<(), Error>(())
        })?; // nothing but the weak cell and the ephemeron knows the file any more
        scope.collect();
        let gone = scope.object(cell)?.follow(target)?.is_none();
        println!("  the weak reference is null: {gone}");
        while let Some(file) = guardian.next(scope)? {
            println!("  closing file {}", file.read(descriptor)?);
        }
        scope.collect(); // now it is gone for good, and the ephemeron lets its value go
        let empty = scope.object(table)?.follow(value)?.is_none();
        println!("  the ephemeron is empty: {empty}");
        Ok(())
    })
}

/// An object shared by two threads.
fn threads<C: Collector>(heap: &Heap<C>) -> Result<(), Error> {
    let counter = heap.define(ShapeSpec::fixed("Counter").word("value"))?;
    let value = heap.data_field::<u64>(&counter, "value")?;
    let mut session = heap.session()?;
    let root = session.allocate(&counter)?.root();
    let worker = std::thread::spawn({
        let (heap, root) = (heap.clone(), root.clone());
        move || -> Result<(), Error> {
            let mut session = heap.session()?;
            for _ in 0..100_000 {
                session.allocate(&counter)?; // garbage: its collections stop the other thread
                let counter = root.get(&session)?;
                counter.write(value, counter.read(value)? + 1)?;
            }
            Ok(())
        }
    });
    // Waiting goes through `blocking`, so that the worker can collect meanwhile.
    match session.blocking(|| worker.join()) {
        Ok(result) => result?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    println!("  counted to {}", root.get(&session)?.read(value)?);
    Ok(())
}
