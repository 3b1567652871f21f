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

/// A complete tree of `depth`, children first. Uses the stack of roots from index `top` on.
#[inline]
pub fn make_tree<C: Collector>(
    mutator: &mut Mutator<C>,
    node: &Shape,
    depth: i32,
    top: usize,
) -> Result<Ref, AllocError> {
    if depth <= 0 {
        return mutator.allocate(node);
    }
    make_inner(mutator, node, depth, top)
}

/// A tree that is more than a leaf: apart, so that leaves can be made in line.
fn make_inner<C: Collector>(
    mutator: &mut Mutator<C>,
    node: &Shape,
    depth: i32,
    top: usize,
) -> Result<Ref, AllocError> {
    let left = make_tree(mutator, node, depth - 1, top)?;
    // SAFETY: the stack is at least as high as the caller said; the references were read or
    // allocated since the last safepoint.
    unsafe {
        mutator.stack().put(top, left);
        let right = make_tree(mutator, node, depth - 1, top + 1)?;
        let left = mutator.stack().at(top);
        mutator.allocate_with(node, [left, right])
    }
}

/// Gives the node at stack index `at`, the last one, complete subtrees of `depth` levels, parents
/// first.
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
        // SAFETY: the child was allocated and the parent read since the last safepoint.
        unsafe {
            let parent = mutator.stack().at(at);
            mutator.write(parent, slot, child);
        }
    }
    for slot in [LEFT, RIGHT] {
        // SAFETY: as above; the stack reaches to `at`.
        unsafe {
            let parent = mutator.stack().at(at);
            let child = mutator.read(parent, slot);
            mutator.stack().put(at + 1, child);
        }
        populate(mutator, node, depth - 1, at + 1)?;
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
