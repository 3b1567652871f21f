//! A borrowed reference does not survive a safepoint, nor a blocking call.
use liveoak_heap::collectors::Generational;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::safe::Error;
use liveoak_heap::shape::ShapeSpec;

fn main() -> Result<(), Error> {
    let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let pair = heap.define(ShapeSpec::fixed("Pair").reference("head"))?;
    let mut session = heap.session()?;
    let registers = session.registers();
    registers.reserve(1);
    let value = registers.get(0)?;
    registers.safepoint();
    let _ = value.is_null();
    let value = registers.get(0)?;
    registers.blocking(|| ());
    let _ = value.is_null();
    Ok(())
}
