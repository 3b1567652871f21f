//! A borrowed reference does not leave the scope that it borrows.
use liveoak_heap::collectors::Generational;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::safe::Error;
use liveoak_heap::shape::ShapeSpec;

fn main() -> Result<(), Error> {
    let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let pair = heap.define(ShapeSpec::fixed("Pair").reference("head"))?;
    let mut session = heap.session()?;
    let gc = session.scope(|scope| {
        let local = scope.allocate(&pair).unwrap();
        scope.object(local).unwrap()
    });
    gc.shape();
    Ok(())
}
