//! Chains of ephemerons, each of whose values is the key of another: linear, whatever their order.

use liveoak_heap::collector::Collector;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::kind::{CollectorKind, Program};
use liveoak_heap::shape::ShapeSpec;

/// Ephemeron `i` has key `i` and value `i + 1`; the ephemerons stand in an array in the order of
/// `order`, and only key 0 is held. All keys must survive; without it, none.
struct Chain {
    length: u32,
    reversed: bool,
    held: bool,
}

impl Program for Chain {
    type Output = usize;

    fn run<C: Collector>(self) -> usize {
        let heap: Heap<C> = Heap::new(HeapConfig::default().with_max_bytes(256 << 20)).unwrap();
        let ephemeron = heap
            .define(ShapeSpec::fixed("Ephemeron").ephemeron())
            .unwrap();
        let key = heap.define(ShapeSpec::fixed("Key").word("number")).unwrap();
        let array = heap.define(ShapeSpec::references("Object[]")).unwrap();
        // SAFETY: the contract of the raw layer is kept throughout.
        let mut m = unsafe { heap.mutator() };
        let n = self.length;
        let keys = m.allocate_array(&array, n + 1).unwrap();
        let keys = m.stack().push(keys);
        let table = m.allocate_array(&array, n).unwrap();
        let table = m.stack().push(table);
        // SAFETY: here and below, references are read from roots after each allocation.
        unsafe {
            for i in 0..=n {
                let new = m.allocate(&key).unwrap();
                let keys = m.stack().get(keys);
                m.write(keys, i as usize, new);
            }
            for i in 0..n {
                let new = m.allocate(&ephemeron).unwrap();
                let (keys, table) = (m.stack().get(keys), m.stack().get(table));
                let (k, v) = (m.read(keys, i as usize), m.read(keys, i as usize + 1));
                m.write_weak(new, 0, k);
                m.write_weak(new, 1, v);
                let place = if self.reversed { n - 1 - i } else { i };
                m.write(table, place as usize, new);
            }
            let first = m.read(m.stack_ref().get(keys), 0);
            m.stack()
                .set(keys, if self.held { first } else { Default::default() });
            m.collect();
            let table = m.stack().get(table);
            (0..n as usize)
                .filter(|&i| {
                    let ephemeron = m.read(table, i);
                    !m.read(ephemeron, 0).is_null() && !m.read(ephemeron, 1).is_null()
                })
                .count()
        }
    }
}

#[test]
fn every_value_of_a_chain_is_kept_by_its_first_key() {
    for &kind in CollectorKind::ALL {
        for reversed in [false, true] {
            let length = 20_000;
            assert_eq!(
                kind.run(Chain {
                    length,
                    reversed,
                    held: true
                }),
                length as usize,
                "{kind}"
            );
            assert_eq!(
                kind.run(Chain {
                    length,
                    reversed,
                    held: false
                }),
                0,
                "{kind}"
            );
        }
    }
}
