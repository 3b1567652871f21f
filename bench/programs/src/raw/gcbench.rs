//! `gcbench` over raw references. The node's two 32-bit integers are one word.

use super::trees::{LEFT, RIGHT, count, make_tree};
use super::{RawHeap, Ref};
use crate::gcbench::*;

pub(super) fn run<H: RawHeap>(heap: &mut H) -> Observed {
    let mut observed = Observed::default();
    observed.spine += bottom_up(heap, STRETCH_DEPTH);

    let long_lived = new_node(heap);
    let long_lived = heap.root(long_lived);
    populate(heap, LONG_LIVED_DEPTH, &long_lived);

    let array = heap.word_array(ARRAY_LENGTH);
    let array = heap.root(array);
    for i in 0..ARRAY_USED {
        let value = 1.0 / i as f64;
        // SAFETY: the array is rooted and longer than `i`.
        unsafe { *heap.word(heap.rooted(&array), 0, i) = value.to_bits() };
    }

    for depth in DEPTHS {
        let trees = iterations(depth);
        for _ in 0..trees {
            observed.spine += top_down(heap, depth);
        }
        for _ in 0..trees {
            observed.spine += bottom_up(heap, depth);
        }
        observed.trees += 2 * trees;
    }

    let array = heap.unroot(array);
    for i in 1..ARRAY_USED {
        // SAFETY: rooted until now, nothing allocated since; the array is long enough.
        observed.sum += f64::from_bits(unsafe { *heap.word(array, 0, i) });
    }
    let long_lived = heap.unroot(long_lived);
    // SAFETY: as above.
    observed.live = unsafe { count(heap, long_lived) };
    observed
}

#[inline(always)]
fn new_node<H: RawHeap>(heap: &mut H) -> Ref {
    heap.allocate([Ref::NULL, Ref::NULL], [0])
}

fn bottom_up<H: RawHeap>(heap: &mut H, depth: u32) -> u64 {
    let begin = heap.begin_temporary();
    let tree = make_tree::<H, 1>(heap, depth);
    let length = spine(heap, tree);
    heap.end_temporary(begin);
    length
}

fn top_down<H: RawHeap>(heap: &mut H, depth: u32) -> u64 {
    let begin = heap.begin_temporary();
    let tree = new_node(heap);
    let tree = heap.root(tree);
    populate(heap, depth, &tree);
    let tree = heap.unroot(tree);
    let length = spine(heap, tree);
    heap.end_temporary(begin);
    length
}

/// Builds a tree top-down, under a rooted node.
fn populate<H: RawHeap>(heap: &mut H, depth: u32, node: &H::Root) {
    if depth == 0 {
        return;
    }
    for side in [LEFT, RIGHT] {
        let child = new_node(heap);
        // SAFETY: the node is rooted and has two references; the child is new.
        unsafe { heap.store(heap.rooted(node), side, child) };
    }
    for side in [LEFT, RIGHT] {
        // SAFETY: the node is rooted and has two references.
        let child = unsafe { heap.load(heap.rooted(node), side) };
        let child = heap.root(child);
        populate(heap, depth - 1, &child);
        heap.unroot(child);
    }
}

fn spine<H: RawHeap>(heap: &H, mut node: Ref) -> u64 {
    let mut length = 0;
    while !node.is_null() {
        length += 1;
        // SAFETY: the tree is live: nothing is allocated here.
        node = unsafe { heap.load(node, LEFT) };
    }
    length
}
