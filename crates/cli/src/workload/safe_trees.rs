//! GCBench and binary trees on the safe layer: the same programs, objects and checksums as on the
//! raw one, without a line of `unsafe`.

#![forbid(unsafe_code)]

use liveoak_heap::collector::Collector;
use liveoak_heap::heap::Heap;
use liveoak_heap::safe::{AccessError, Error, Gc, Local, RefField, Scope};
use liveoak_heap::shape::{Kind, Shape, ShapeSpec};
use std::fmt::Write;

/// The shape of a tree's nodes, and where its subtrees are.
#[derive(Clone, Copy)]
struct Node {
    shape: Shape,
    left: RefField,
    right: RefField,
}

impl Node {
    fn define<C: Collector>(heap: &Heap<C>, extra: &[&str]) -> Result<Node, Error> {
        let spec = ShapeSpec::fixed("Node")
            .reference("left")
            .reference("right");
        let spec = extra
            .iter()
            .fold(spec, |s, name| s.with(*name, Kind::Data(4)));
        let shape = heap.define(spec)?;
        Ok(Node {
            shape,
            left: heap.ref_field(&shape, "left")?,
            right: heap.ref_field(&shape, "right")?,
        })
    }
}

/// A complete tree of `depth`, children first.
fn make_tree<'s, C: Collector>(
    scope: &mut Scope<'s, '_, C>,
    node: &Node,
    depth: i32,
) -> Result<Local<'s>, Error> {
    if depth <= 0 {
        return scope.allocate(&node.shape);
    }
    scope.escaping(|inner| {
        let left = make_tree(inner, node, depth - 1)?;
        let right = make_tree(inner, node, depth - 1)?;
        inner.allocate_with(&node.shape, [left, right])
    })
}

/// Gives the node `at` complete subtrees of `depth` levels, parents first.
fn populate<'s, C: Collector>(
    scope: &mut Scope<'s, '_, C>,
    node: &Node,
    depth: i32,
    at: Local<'s>,
) -> Result<(), Error> {
    if depth <= 0 {
        return Ok(());
    }
    scope.nested(|inner| {
        let left = inner.allocate(&node.shape)?;
        inner.set(at, node.left, left)?;
        let right = inner.allocate(&node.shape)?;
        inner.set(at, node.right, right)?;
        populate(inner, node, depth - 1, left)?;
        populate(inner, node, depth - 1, right)
    })
}

/// Nodes on the path to the left.
fn spine<C: Collector>(tree: Gc<'_, C>, node: &Node) -> Result<u64, AccessError> {
    let mut nodes = 1;
    let mut at = tree;
    while let Some(next) = at.follow(node.left)? {
        nodes += 1;
        at = next;
    }
    Ok(nodes)
}

/// Nodes of the tree. The trees are complete, so recursion goes no deeper than they do.
fn count<C: Collector>(tree: Gc<'_, C>, node: &Node) -> Result<u64, AccessError> {
    let mut nodes = 1;
    if let Some(left) = tree.follow(node.left)? {
        nodes += count(left, node)?;
    }
    if let Some(right) = tree.follow(node.right)? {
        nodes += count(right, node)?;
    }
    Ok(nodes)
}

/// Runs binary trees up to `depth`, and gives the checksum.
pub(crate) fn binary_trees<C: Collector>(heap: &Heap<C>, depth: i32) -> Result<String, Error> {
    let node = Node::define(heap, &[])?;
    let check = |scope: &mut Scope<'_, '_, C>, depth: i32| -> Result<u64, Error> {
        scope.nested(|inner| {
            let tree = make_tree(inner, &node, depth)?;
            Ok(count(inner.object(tree)?, &node)?)
        })
    };
    heap.session()?.scope(|scope| {
        let stretch = check(scope, depth + 1)?;
        let mut checksum = format!("binary-trees {depth} stretch={stretch}");
        let long_lived = make_tree(scope, &node, depth)?;
        for d in (4..=depth).step_by(2) {
            let iterations = 1u64 << (depth - d + 4);
            let mut nodes = 0;
            for _ in 0..iterations {
                nodes += check(scope, d)?;
            }
            let _ = write!(checksum, " {d}={iterations}:{nodes}");
        }
        let long = count(scope.object(long_lived)?, &node)?;
        let _ = write!(checksum, " long={long}");
        Ok(checksum)
    })
}

/// How much flatter the long-lived tree is than the stretch tree.
const LONG_LIVED_LESS: i32 = 2;
const ARRAY: u32 = 500_000;

fn size(depth: i32) -> u64 {
    (1 << (depth + 1)) - 1
}

/// Runs GCBench with a stretch tree of depth `stretch`, and gives the checksum.
pub(crate) fn gcbench<C: Collector>(heap: &Heap<C>, stretch: i32) -> Result<String, Error> {
    let long_lived_depth = stretch - LONG_LIVED_LESS;
    let node = Node::define(heap, &["i", "j"])?;
    let doubles = heap.define(ShapeSpec::words("double[]"))?;
    let top_down = |scope: &mut Scope<'_, '_, C>, depth: i32| -> Result<u64, Error> {
        scope.nested(|inner| {
            let tree = inner.allocate(&node.shape)?;
            populate(inner, &node, depth, tree)?;
            Ok(spine(inner.object(tree)?, &node)?)
        })
    };
    let bottom_up = |scope: &mut Scope<'_, '_, C>, depth: i32| -> Result<u64, Error> {
        scope.nested(|inner| {
            let tree = make_tree(inner, &node, depth)?;
            Ok(spine(inner.object(tree)?, &node)?)
        })
    };
    heap.session()?.scope(|scope| {
        let (mut trees, mut depths) = (0, 0);
        depths += bottom_up(scope, stretch)?;

        let long_lived = scope.allocate(&node.shape)?;
        populate(scope, &node, long_lived_depth, long_lived)?;

        let array = scope.allocate_array(&doubles, ARRAY)?;
        let words = scope.object(array)?;
        for i in 0..ARRAY / 2 {
            words.write_at(i as usize, 1.0 / f64::from(i))?;
        }

        for depth in (4..=long_lived_depth).step_by(2) {
            let iterations = 2 * size(stretch) / size(depth);
            for _ in 0..iterations {
                depths += top_down(scope, depth)?;
            }
            for _ in 0..iterations {
                depths += bottom_up(scope, depth)?;
            }
            trees += 2 * iterations;
        }

        let live = count(scope.object(long_lived)?, &node)?;
        let words = scope.object(array)?;
        let mut sum = 0.0;
        for i in 1..ARRAY / 2 {
            sum += words.read_at::<f64>(i as usize)?;
        }
        let bits = f64::to_bits(sum);
        Ok(format!(
            "gcbench trees={trees} spine={depths} live={live} array={bits:016x}"
        ))
    })
}
