//! `gcbench` and `binary-trees` with `Box`. `Data` is what a node carries beside its children.

use bench_programs::{binary_trees, gcbench};
use gcbench::*;

struct Node<Data> {
    left: Option<Box<Node<Data>>>,
    right: Option<Box<Node<Data>>>,
    #[expect(dead_code, reason = "the programs store it and never read it")]
    data: Data,
}

/// The two integers of GCBench's node.
#[derive(Default)]
#[expect(dead_code, reason = "the programs store them and never read them")]
struct Integers {
    i: i32,
    j: i32,
}

type Tree<Data> = Option<Box<Node<Data>>>;

fn leaf<Data: Default>() -> Box<Node<Data>> {
    node(None, None)
}

#[inline(always)]
fn node<Data: Default>(left: Tree<Data>, right: Tree<Data>) -> Box<Node<Data>> {
    Box::new(Node {
        left,
        right,
        data: Data::default(),
    })
}

#[inline]
fn make_tree<Data: Default>(depth: u32) -> Box<Node<Data>> {
    if depth == 0 {
        return leaf();
    }
    make_inner(depth)
}

/// A tree that is more than a leaf: apart, so that leaves can be made in line.
fn make_inner<Data: Default>(depth: u32) -> Box<Node<Data>> {
    let left = make_tree(depth - 1);
    let right = make_tree(depth - 1);
    node(Some(left), Some(right))
}

fn populate<Data: Default>(depth: u32, node: &mut Node<Data>) {
    if depth == 0 {
        return;
    }
    node.left = Some(leaf());
    node.right = Some(leaf());
    for child in [&mut node.left, &mut node.right].into_iter().flatten() {
        populate(depth - 1, child);
    }
}

fn spine<Data>(node: &Node<Data>) -> u64 {
    std::iter::successors(Some(node), |node| node.left.as_deref()).count() as u64
}

fn count<Data>(node: &Tree<Data>) -> u64 {
    match node {
        None => 0,
        Some(node) => 1 + count(&node.left) + count(&node.right),
    }
}

pub(crate) fn gcbench() -> Observed {
    let mut observed = Observed::default();
    observed.spine += spine(&*make_tree::<Integers>(STRETCH_DEPTH));

    let mut long_lived = leaf::<Integers>();
    populate(LONG_LIVED_DEPTH, &mut long_lived);
    let mut array = vec![0.0; ARRAY_LENGTH].into_boxed_slice();
    for (i, element) in array.iter_mut().take(ARRAY_USED).enumerate() {
        *element = 1.0 / i as f64;
    }

    for depth in DEPTHS {
        let trees = iterations(depth);
        for _ in 0..trees {
            let mut tree = leaf::<Integers>();
            populate(depth, &mut tree);
            observed.spine += spine(&tree);
        }
        for _ in 0..trees {
            observed.spine += spine(&*make_tree::<Integers>(depth));
        }
        observed.trees += 2 * trees;
    }

    observed.sum = array[1..ARRAY_USED].iter().fold(0.0, |sum, x| sum + x);
    let long_lived = Some(long_lived);
    observed.live = count(&long_lived);
    std::mem::forget((long_lived, array));
    observed
}

pub(crate) fn binary_trees(depth: u32) -> String {
    let counted = |depth| count(&Some(make_tree::<()>(depth)));
    let mut observed = binary_trees::Observed::new(depth, counted(depth + 1));
    let long_lived = Some(make_tree::<()>(depth));
    for (d, trees) in binary_trees::schedule(depth) {
        observed.depth(d, trees, (0..trees).map(|_| counted(d)).sum());
    }
    let checksum = observed.checksum(count(&long_lived));
    std::mem::forget(long_lived);
    checksum
}
