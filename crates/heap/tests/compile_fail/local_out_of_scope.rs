//! A local does not leave its scope.
use liveoak_heap::collectors::Generational;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::safe::Error;
use liveoak_heap::shape::ShapeSpec;

fn main() -> Result<(), Error> {
    let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let pair = heap.define(ShapeSpec::fixed("Pair").reference("head"))?;
    let mut session = heap.session()?;
    session.scope(|scope| {
        let local = scope.nested(|inner| inner.allocate(&pair))?;
        scope.object(local)?;
        Ok(())
    })
}
