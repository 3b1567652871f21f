//! Trees, as both tree programs build them, on the raw layer.

use crate::collector::Collector;
use crate::error::AllocError;
use crate::mutator::Mutator;
use crate::reference::Ref;
use crate::shape::Shape;

/// Slot of the left subtree.
pub const LEFT: usize = 0;
/// Slot of the right subtree.
pub const RIGHT: usize = 1;

/// A complete tree of `depth`, children first.
pub fn make_tree<C: Collector>(
    mutator: &mut Mutator<C>,
    node: &Shape,
    depth: i32,
) -> Result<Ref, AllocError> {
    if depth <= 0 {
        return mutator.allocate(node);
    }
    let left = make_tree(mutator, node, depth - 1)?;
    let at = mutator.stack().push(left);
    let right = make_tree(mutator, node, depth - 1)?;
    mutator.stack().push(right);
    let tree = mutator.allocate_with(node, [at, at + 1]);
    mutator.stack().truncate(at);
    tree
}

/// Gives the node at stack index `at` complete subtrees of `depth` levels, parents first.
pub fn populate<C: Collector>(
    mutator: &mut Mutator<C>,
    node: &Shape,
    depth: i32,
    at: usize,
) -> Result<(), AllocError> {
    if depth <= 0 {
        return Ok(());
    }
    for slot in [LEFT, RIGHT] {
        let child = mutator.allocate(node)?;
        let parent = mutator.stack().get(at);
        // SAFETY: the child was allocated and the parent read since the last safepoint.
        unsafe { mutator.write(parent, slot, child) };
    }
    for slot in [LEFT, RIGHT] {
        let parent = mutator.stack().get(at);
        // SAFETY: as above.
        let child = unsafe { mutator.read(parent, slot) };
        let child = mutator.stack().push(child);
        populate(mutator, node, depth - 1, child)?;
        mutator.stack().truncate(child);
    }
    Ok(())
}

/// Nodes on the path to the left.
pub fn spine<C: Collector>(mutator: &Mutator<C>, tree: Ref) -> u64 {
    let mut nodes = 0;
    let mut at = tree;
    while !at.is_null() {
        nodes += 1;
        // SAFETY: nothing is allocated while the tree is walked.
        at = unsafe { mutator.read(at, LEFT) };
    }
    nodes
}

/// Nodes of the tree. The trees are complete, so recursion goes no deeper than they do.
pub fn count<C: Collector>(mutator: &Mutator<C>, tree: Ref) -> u64 {
    if tree.is_null() {
        return 0;
    }
    // SAFETY: nothing is allocated while the tree is walked.
    let (left, right) = unsafe { (mutator.read(tree, LEFT), mutator.read(tree, RIGHT)) };
    1 + count(mutator, left) + count(mutator, right)
}
