//! The outer scope cannot be used while an inner one lives: roots are dropped in order.
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
        scope.nested(|inner| {
            inner.allocate(&pair)?;
            scope.allocate(&pair)?;
            Ok(())
        })
    })
}
