//! Tests of the reference-counting collector, with the sanity switch on: after every stop of the
//! world all counts are compared with in-degrees.

mod counting;
mod dead_cycles;
mod random_programs;
mod threads;
mod weak_structures;

use super::RefCount;
use crate::config::HeapConfig;
use crate::heap::Heap;
use crate::mutator::Mutator;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Kind, Shape, ShapeSpec};
use crate::stats::CollectionKind;

/// A heap with a few shapes and a mutator.
struct Fixture {
    heap: Heap<RefCount>,
    mutator: Mutator<RefCount>,
    /// Two references.
    pair: Shape,
    /// Nothing but data.
    leaf: Shape,
    /// Array of references.
    array: Shape,
    /// One strong slot, then a weak and a phantom one.
    weak: Shape,
    /// A key and a value.
    ephemeron: Shape,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::with(config())
    }

    fn with(config: HeapConfig) -> Fixture {
        let heap: Heap<RefCount> = Heap::new(config).unwrap();
        let pair = ShapeSpec::fixed("Pair")
            .reference("first")
            .reference("second");
        let weak = ShapeSpec::fixed("Weak")
            .reference("strong")
            .weak("weak")
            .with("phantom", Kind::Phantom);
        Fixture {
            pair: heap.define(pair).unwrap(),
            leaf: heap.define(ShapeSpec::fixed("Leaf").word("data")).unwrap(),
            array: heap.define(ShapeSpec::references("Array")).unwrap(),
            weak: heap.define(weak).unwrap(),
            ephemeron: heap
                .define(ShapeSpec::fixed("Ephemeron").ephemeron())
                .unwrap(),
            // SAFETY: the contract of the raw layer is kept throughout.
            mutator: unsafe { heap.mutator() },
            heap,
        }
    }

    fn allocate(&mut self, shape: Shape) -> Ref {
        self.mutator.allocate(&shape).unwrap()
    }

    fn pair(&mut self) -> Ref {
        self.allocate(self.pair)
    }

    /// A pair that is a root; gives its index.
    fn rooted_pair(&mut self) -> usize {
        let pair = self.pair();
        self.push(pair)
    }

    fn push(&mut self, reference: Ref) -> usize {
        self.mutator.stack().push(reference)
    }

    fn get(&self, root: usize) -> Ref {
        self.mutator.stack_ref().get(root)
    }

    fn write(&mut self, object: Ref, slot: usize, value: Ref) {
        // SAFETY: the tests pass references that were read since the last safepoint.
        unsafe { self.mutator.write(object, slot, value) }
    }

    fn write_weak(&mut self, object: Ref, slot: usize, value: Ref) {
        // SAFETY: as above.
        unsafe { self.mutator.write_weak(object, slot, value) }
    }

    fn read(&self, object: Ref, slot: usize) -> Ref {
        // SAFETY: as above.
        unsafe { self.mutator.read(object, slot) }
    }

    /// An epoch, and nothing else.
    fn epoch(&mut self) {
        self.mutator.step();
    }

    fn collect(&mut self) {
        self.mutator.collect();
    }

    /// Objects that have not been freed.
    fn objects(&mut self) -> usize {
        self.mutator.inspect(|world| {
            let shapes = world.shapes();
            let mut objects = 0;
            let collector = world.collector();
            // SAFETY: the world is stopped.
            unsafe {
                crate::collector::Collector::each_object(collector, shapes, &mut |_, _| {
                    objects += 1
                })
            };
            objects
        })
    }

    /// The count of an object.
    fn count(&mut self, reference: Ref) -> u64 {
        self.mutator.inspect(|world| {
            // SAFETY: the tests pass objects.
            let word = unsafe { object::header(reference.address()) };
            world.collector().counts.total(reference, word)
        })
    }

    /// How many collections of that kind there have been.
    fn collections(&self, kind: CollectionKind) -> u64 {
        self.heap.stats().totals_of(kind).collections
    }

    /// A list of `length` pairs, linked by their second slot, its head the last root; gives the root
    /// index.
    fn list(&mut self, length: usize) -> usize {
        let root = self.push(Ref::NULL);
        for _ in 0..length {
            let head = self.pair();
            let tail = self.get(root);
            self.write(head, 1, tail);
            self.mutator.stack().set(root, head);
        }
        root
    }
}

fn config() -> HeapConfig {
    HeapConfig::default()
        .with_max_bytes(64 << 20)
        .with_sanity(true)
}

/// For tests with so many objects that checking all counts after each epoch would take minutes.
fn large_config() -> HeapConfig {
    config().with_max_bytes(512 << 20).with_sanity(false)
}
