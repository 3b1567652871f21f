//! A local cannot be stored in a place that outlives its scope.
use liveoak_heap::collectors::Generational;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::safe::{Error, Local};
use liveoak_heap::shape::ShapeSpec;

fn main() -> Result<(), Error> {
    let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let pair = heap.define(ShapeSpec::fixed("Pair").reference("head"))?;
    let mut session = heap.session()?;
    let mut kept: Option<Local<'_>> = None;
    session.scope(|scope| {
        scope.nested(|inner| kept = inner.allocate(&pair).ok());
    });
    let _ = kept;
    Ok(())
}
