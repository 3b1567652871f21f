//! Binary trees, as in the Computer Language Benchmarks Game.

use super::WorkloadError;
use super::trees::{count, make_tree};
use crate::collector::Collector;
use crate::heap::Heap;
use crate::shape::ShapeSpec;
use std::fmt::Write;

/// Runs it for trees up to `depth`, and gives the checksum.
pub fn run<C: Collector>(heap: &Heap<C>, depth: i32) -> Result<String, WorkloadError> {
    let node = heap.define(
        ShapeSpec::fixed("Node")
            .reference("left")
            .reference("right"),
    )?;
    // SAFETY: the contract of the raw layer is kept throughout.
    let mutator = &mut unsafe { heap.mutator() };
    let stretch = make_tree(mutator, &node, depth + 1, 0)?;
    let mut checksum = format!("binary-trees {depth} stretch={}", count(mutator, stretch));
    let long_lived = make_tree(mutator, &node, depth, 0)?;
    mutator.stack().truncate(0);
    let long_lived = mutator.stack().push(long_lived);
    for d in (4..=depth).step_by(2) {
        let iterations = 1u64 << (depth - d + 4);
        let mut check = 0;
        for _ in 0..iterations {
            let tree = make_tree(mutator, &node, d, 1)?;
            check += count(mutator, tree);
        }
        let _ = write!(checksum, " {d}={iterations}:{check}");
    }
    let tree = mutator.stack().get(long_lived);
    let _ = write!(checksum, " long={}", count(mutator, tree));
    Ok(checksum)
}
