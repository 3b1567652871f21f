//! GCBench: Boehm's version of the program by Ellis and Kovac.

use super::WorkloadError;
use super::trees::{count, make_tree, populate, spine};
use crate::collector::Collector;
use crate::heap::Heap;
use crate::shape::{Kind, ShapeSpec};

/// The depth of the stretch tree in the benchmark.
pub const STRETCH: i32 = 18;
/// How much flatter the long-lived tree is than the stretch tree.
const LONG_LIVED_LESS: i32 = 2;
const ARRAY: u32 = 500_000;

fn size(depth: i32) -> u64 {
    (1 << (depth + 1)) - 1
}

/// Runs it with a stretch tree of depth `stretch` (the benchmark's is [`STRETCH`]; a smaller one makes everything but
/// the array smaller), and gives the checksum.
pub fn run<C: Collector>(heap: &Heap<C>, stretch: i32) -> Result<String, WorkloadError> {
    let long_lived_depth = stretch - LONG_LIVED_LESS;
    let node = ShapeSpec::fixed("Node")
        .reference("left")
        .reference("right")
        .with("i", Kind::Data(4))
        .with("j", Kind::Data(4));
    let node = heap.define(node)?;
    let doubles = heap.define(ShapeSpec::words("double[]"))?;
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let (mut trees, mut depths) = (0, 0);

    let tree = make_tree(mutator, &node, stretch, 0)?;
    depths += spine(mutator, tree);

    mutator.stack().truncate(0);
    let root = mutator.allocate(&node)?;
    let long_lived = mutator.stack().push(root);
    populate(mutator, &node, long_lived_depth, long_lived)?;

    mutator.stack().truncate(1);
    let array = mutator.allocate_array(&doubles, ARRAY)?;
    let array = mutator.stack().push(array);
    for i in 0..ARRAY / 2 {
        let object = mutator.stack().get(array);
        // SAFETY: the array was read from its root just now, and has that many words.
        unsafe { mutator.write_word(object, i as usize * 2, (1.0 / f64::from(i)).to_bits()) };
    }

    for depth in (4..=long_lived_depth).step_by(2) {
        let iterations = 2 * size(stretch) / size(depth);
        for _ in 0..iterations {
            let tree = mutator.allocate(&node)?;
            let at = mutator.stack().push(tree);
            populate(mutator, &node, depth, at)?;
            let tree = mutator.stack().get(at);
            depths += spine(mutator, tree);
            mutator.stack().truncate(at);
        }
        for _ in 0..iterations {
            let tree = make_tree(mutator, &node, depth, 2)?;
            depths += spine(mutator, tree);
        }
        trees += 2 * iterations;
    }

    let tree = mutator.stack().get(long_lived);
    let live = count(mutator, tree);
    let object = mutator.stack().get(array);
    let mut sum = 0.0;
    for i in 1..ARRAY / 2 {
        // SAFETY: as above.
        sum += f64::from_bits(unsafe { mutator.read_word(object, i as usize * 2) });
    }
    let bits = f64::to_bits(sum);
    Ok(format!(
        "gcbench trees={trees} spine={depths} live={live} array={bits:016x}"
    ))
}
