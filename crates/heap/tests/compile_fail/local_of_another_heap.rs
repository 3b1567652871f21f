//! A local cannot be used with the scope of another heap.
use liveoak_heap::collectors::Generational;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::safe::Error;
use liveoak_heap::shape::ShapeSpec;

fn main() -> Result<(), Error> {
    let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let pair = heap.define(ShapeSpec::fixed("Pair").reference("head"))?;
    let mut session = heap.session()?;
    let other: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let mut session2 = other.session()?;
    session.scope(|scope| {
        let local = scope.allocate(&pair)?;
        session2.scope(|scope2| scope2.object(local).map(|_| ()))?;
        Ok(())
    })
}
