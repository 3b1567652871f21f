//! `gcbench` and `binary-trees` with `Gc`. `Data` is what a node carries beside its children.

use crate::pauses::Pauses;
use bench_programs::{binary_trees, gcbench};
use gc_arena::lock::Lock;
use gc_arena::{Arena, Collect, Gc, Mutation, Rootable, Static, barrier::field};
use gcbench::*;

type Tree<'gc, Data> = Option<Gc<'gc, Node<'gc, Data>>>;

#[derive(Collect)]
#[collect(no_drop)]
struct Node<'gc, Data: 'static> {
    left: Lock<Tree<'gc, Data>>,
    right: Lock<Tree<'gc, Data>>,
    data: Data,
}

/// The two integers of GCBench's node.
#[derive(Collect, Default)]
#[collect(require_static)]
#[expect(dead_code, reason = "the programs store them and never read them")]
struct Integers {
    i: i32,
    j: i32,
}

#[inline(always)]
fn node<'gc, Data: Default + Collect<'gc>>(
    mc: &Mutation<'gc>,
    left: Tree<'gc, Data>,
    right: Tree<'gc, Data>,
) -> Gc<'gc, Node<'gc, Data>> {
    Gc::new(
        mc,
        Node {
            left: Lock::new(left),
            right: Lock::new(right),
            data: Data::default(),
        },
    )
}

fn make_tree<'gc, Data: Default + Collect<'gc>>(
    mc: &Mutation<'gc>,
    depth: u32,
) -> Gc<'gc, Node<'gc, Data>> {
    if depth == 0 {
        return node(mc, None, None);
    }
    let left = make_tree(mc, depth - 1);
    let right = make_tree(mc, depth - 1);
    node(mc, Some(left), Some(right))
}

fn populate<'gc, Data: Default + Collect<'gc>>(
    mc: &Mutation<'gc>,
    depth: u32,
    root: Gc<'gc, Node<'gc, Data>>,
) {
    if depth == 0 {
        return;
    }
    let (left, right) = (node(mc, None, None), node(mc, None, None));
    let write = Gc::write(mc, root);
    field!(write, Node, left).unlock().set(Some(left));
    field!(write, Node, right).unlock().set(Some(right));
    populate(mc, depth - 1, left);
    populate(mc, depth - 1, right);
}

fn spine<'gc, Data>(node: Gc<'gc, Node<'gc, Data>>) -> u64 {
    std::iter::successors(Some(node), |node| node.left.get()).count() as u64
}

fn count<Data>(node: Tree<'_, Data>) -> u64 {
    match node {
        None => 0,
        Some(node) => 1 + count(node.left.get()) + count(node.right.get()),
    }
}

/// The long-lived objects of `gcbench`.
#[derive(Collect)]
#[collect(no_drop)]
struct LongLived<'gc> {
    tree: Tree<'gc, Integers>,
    array: Option<Gc<'gc, Static<Box<[f64]>>>>,
}

pub(crate) fn gcbench(pauses: &mut Pauses) -> Observed {
    let mut observed = Observed::default();
    let mut arena = Arena::<Rootable![LongLived<'_>]>::new(|_| LongLived {
        tree: None,
        array: None,
    });
    pauses.pace(&arena);
    observed.spine += arena.mutate(|mc, _| spine(make_tree::<Integers>(mc, STRETCH_DEPTH)));
    pauses.collect_debt(&mut arena);

    arena.mutate_root(|mc, root| {
        let tree = node(mc, None, None);
        populate(mc, LONG_LIVED_DEPTH, tree);
        root.tree = Some(tree);
        let mut array = vec![0.0; ARRAY_LENGTH].into_boxed_slice();
        for (i, element) in array.iter_mut().take(ARRAY_USED).enumerate() {
            *element = 1.0 / i as f64;
        }
        root.array = Some(Gc::new(mc, Static(array)));
    });
    pauses.collect_debt(&mut arena);

    for depth in DEPTHS {
        let trees = iterations(depth);
        for _ in 0..trees {
            observed.spine += arena.mutate(|mc, _| {
                let tree = node::<Integers>(mc, None, None);
                populate(mc, depth, tree);
                spine(tree)
            });
            pauses.collect_debt(&mut arena);
        }
        for _ in 0..trees {
            observed.spine += arena.mutate(|mc, _| spine(make_tree::<Integers>(mc, depth)));
            pauses.collect_debt(&mut arena);
        }
        observed.trees += 2 * trees;
    }

    arena.mutate(|_, root| {
        let array = root.array.expect("allocated above");
        observed.sum = array[1..ARRAY_USED].iter().fold(0.0, |sum, x| sum + x);
        observed.live = count(root.tree);
    });
    std::mem::forget(arena);
    observed
}

type Trees = Arena<Rootable![Tree<'_, ()>]>;

pub(crate) fn binary_trees(depth: u32, pauses: &mut Pauses) -> String {
    let mut arena = Trees::new(|_| None);
    pauses.pace(&arena);
    let mut counted = |arena: &mut Trees, depth| {
        let nodes = arena.mutate(|mc, _| count(Some(make_tree::<()>(mc, depth))));
        pauses.collect_debt(arena);
        nodes
    };
    let stretch = counted(&mut arena, depth + 1);
    let mut observed = binary_trees::Observed::new(depth, stretch);
    arena.mutate_root(|mc, root| *root = Some(make_tree(mc, depth)));
    for (d, trees) in binary_trees::schedule(depth) {
        let check = (0..trees).map(|_| counted(&mut arena, d)).sum();
        observed.depth(d, trees, check);
    }
    let checksum = observed.checksum(arena.mutate(|_, root| count(*root)));
    std::mem::forget(arena);
    checksum
}
