//! Trees over raw references, with any number of words beside the two references; and `binary-trees`.

use super::{RawHeap, Ref};
use crate::binary_trees::{Observed, schedule};

/// Slot of the left child.
pub(super) const LEFT: usize = 0;
/// Slot of the right child.
pub(super) const RIGHT: usize = 1;

/// Builds a tree bottom-up; its nodes have `W` zero words.
#[inline]
pub(super) fn make_tree<H: RawHeap, const W: usize>(heap: &mut H, depth: u32) -> Ref {
    if depth == 0 {
        return heap.allocate([Ref::NULL, Ref::NULL], [0; W]);
    }
    make_inner::<H, W>(heap, depth)
}

/// A tree that is more than a leaf: apart, so that leaves can be made in line.
fn make_inner<H: RawHeap, const W: usize>(heap: &mut H, depth: u32) -> Ref {
    let left = make_tree::<H, W>(heap, depth - 1);
    let left = heap.root(left);
    let right = make_tree::<H, W>(heap, depth - 1);
    let left = heap.unroot(left);
    heap.allocate([left, right], [0; W])
}

/// Counts the nodes of a tree.
///
/// # Safety
///
/// `node` is null or a live node.
pub(super) unsafe fn count<H: RawHeap>(heap: &H, node: Ref) -> u64 {
    if node.is_null() {
        return 0;
    }
    // SAFETY: a node has two references; its children are live as it is.
    unsafe { 1 + count(heap, heap.load(node, LEFT)) + count(heap, heap.load(node, RIGHT)) }
}

/// `binary-trees`.
pub(super) fn run<H: RawHeap>(heap: &mut H, depth: u32) -> String {
    let stretch = counted(heap, depth + 1);
    let mut observed = Observed::new(depth, stretch);
    let long_lived = make_tree::<H, 0>(heap, depth);
    let long_lived = heap.root(long_lived);
    for (d, trees) in schedule(depth) {
        let check = (0..trees).map(|_| counted(heap, d)).sum();
        observed.depth(d, trees, check);
    }
    let long_lived = heap.unroot(long_lived);
    // SAFETY: it was rooted until now, and nothing was allocated since.
    observed.checksum(unsafe { count(heap, long_lived) })
}

fn counted<H: RawHeap>(heap: &mut H, depth: u32) -> u64 {
    let begin = heap.begin_temporary();
    let tree = make_tree::<H, 0>(heap, depth);
    // SAFETY: counting allocates nothing, so the new tree stays live.
    let nodes = unsafe { count(heap, tree) };
    heap.end_temporary(begin);
    nodes
}
