//! Whether two memories look the same to the program that uses them.
//!
//! The reachable parts of two memories are isomorphic iff there is a one-to-one map between their
//! nodes that respects roots, arcs (with their names) and classes. A mutator can tell two nodes
//! apart only by the paths that lead to them, so a collector may move nodes as it likes: the memory
//! before the collection and the memory after it must be isomorphic, and that is all.
//!
//! Names make this easy, unlike isomorphism of graphs in general. Roots of the same name must
//! correspond, and then the targets of arcs of the same name: one walk through both memories in
//! step either finds the only possible map or the first place where there is none. It takes linear
//! time, plus the sorting of the arcs of those nodes whose arcs the memories show in different
//! orders.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::{ArcKind, ArcName, Difference, Mismatch, Observe, RootName, Route, Side, Trace};

/// The map that makes the reachable parts of two memories correspond.
#[derive(Clone, Debug)]
pub struct Isomorphism<A, B> {
    pairs: Vec<(A, B)>,
    /// Both maps hold exactly `pairs`, hence are inverse to each other.
    right_of: HashMap<A, B>,
    left_of: HashMap<B, A>,
}

impl<A: Copy + Eq + Hash, B: Copy + Eq + Hash> Isomorphism<A, B> {
    fn new() -> Self {
        Isomorphism {
            pairs: Vec::new(),
            right_of: HashMap::new(),
            left_of: HashMap::new(),
        }
    }

    /// The node of the right memory that corresponds to `left`.
    pub fn right_of(&self, left: A) -> Option<B> {
        self.right_of.get(&left).copied()
    }

    /// The node of the left memory that corresponds to `right`.
    pub fn left_of(&self, right: B) -> Option<A> {
        self.left_of.get(&right).copied()
    }

    /// The corresponding nodes.
    pub fn pairs(&self) -> &[(A, B)] {
        &self.pairs
    }
}

/// Compares the reachable parts of two memories: roots, arcs and classes.
pub fn isomorphic<A: Observe + ?Sized, B: Observe + ?Sized>(
    left: &A,
    right: &B,
) -> Result<Isomorphism<A::Node, B::Node>, Difference> {
    isomorphic_by(left, right, |_, _| Ok(()))
}

/// Compares the reachable parts of two memories: roots, arcs and classes, and whatever else
/// `agree` compares of two nodes that correspond. Its error says how they differ.
pub fn isomorphic_by<A: Observe + ?Sized, B: Observe + ?Sized>(
    left: &A,
    right: &B,
    agree: impl FnMut(A::Node, B::Node) -> Result<(), String>,
) -> Result<Isomorphism<A::Node, B::Node>, Difference> {
    Comparison {
        left: Reachable::of(left),
        right: Reachable::of(right),
        agree,
        found: Isomorphism::new(),
        ways: Vec::new(),
        worklist: VecDeque::new(),
    }
    .run()
}

/// For [`isomorphic_by`]: nodes agree if they have the same size.
pub fn same_size<A: Observe + ?Sized, B: Observe + ?Sized>(
    left: &A,
    right: &B,
) -> impl Fn(A::Node, B::Node) -> Result<(), String> {
    |a, b| match (left.size(a), right.size(b)) {
        (a, b) if a == b => Ok(()),
        (a, b) => Err(format!("the left node has {a} bytes, the right one {b}")),
    }
}

/// A memory, seen from its roots.
struct Reachable<'m, M: Observe + ?Sized> {
    memory: &'m M,
    trace: Trace<M::Node>,
}

/// Named things of one memory, to be matched with those of the other.
type Named<K, T> = Vec<(K, T)>;

/// Things of the same name from both memories.
type Paired<K, T, U> = Vec<(K, T, U)>;

impl<'m, M: Observe + ?Sized> Reachable<'m, M> {
    fn of(memory: &'m M) -> Self {
        Reachable {
            memory,
            trace: Trace::of(memory),
        }
    }

    fn roots(&self) -> Named<RootName, M::Node> {
        let mut roots = Vec::new();
        self.memory
            .roots(&mut |name, node| roots.push((name, node)));
        roots
    }

    fn arcs(&self, node: M::Node) -> Named<ArcName, M::Node> {
        let mut arcs = Vec::new();
        let mut visit = |name, target| arcs.push((name, target));
        self.memory.arcs(node, &mut visit);
        arcs
    }

    fn weak_arcs(&self, node: M::Node) -> Named<ArcName, M::Node> {
        let mut arcs = Vec::new();
        self.memory.weak_arcs(node, &mut |name, target| {
            if self.trace.contains(target) {
                arcs.push((name, target));
            }
        });
        arcs
    }

    fn ephemerons(&self, node: M::Node) -> Named<ArcName, (M::Node, M::Node)> {
        let mut entries = Vec::new();
        self.memory.ephemerons(node, &mut |name, key, value| {
            if self.trace.contains(key) {
                entries.push((name, (key, value)));
            }
        });
        entries
    }
}

/// The walk through both memories in step, breadth first.
struct Comparison<'m, A: Observe + ?Sized, B: Observe + ?Sized, F> {
    left: Reachable<'m, A>,
    right: Reachable<'m, B>,
    agree: F,
    found: Isomorphism<A::Node, B::Node>,
    /// How each pair of `found` was met.
    ways: Vec<Way>,
    /// The pairs still to be compared, by their positions in `found`.
    worklist: VecDeque<usize>,
}

/// The last reference of a route.
#[derive(Clone)]
enum Way {
    Root(RootName),
    Arc { from: usize, arc: ArcName },
}

impl<A, B, F> Comparison<'_, A, B, F>
where
    A: Observe + ?Sized,
    B: Observe + ?Sized,
    F: FnMut(A::Node, B::Node) -> Result<(), String>,
{
    fn run(mut self) -> Result<Isomorphism<A::Node, B::Node>, Difference> {
        let roots = pair_up(self.left.roots(), self.right.roots());
        let roots = roots.map_err(|(root, lacking)| Difference {
            at: Route::default(),
            mismatch: Mismatch::Root { root, lacking }.into(),
        })?;
        for (name, a, b) in roots {
            self.meet(a, b, Way::Root(name))?;
        }
        while let Some(pair) = self.worklist.pop_front() {
            self.compare(pair)?;
        }
        Ok(self.found)
    }

    /// Notes that `a` and `b` must correspond.
    fn meet(&mut self, a: A::Node, b: B::Node, way: Way) -> Result<(), Difference> {
        let partners = (self.found.right_of(a), self.found.left_of(b));
        let (met, partner) = match partners {
            (None, None) => {
                self.worklist.push_back(self.found.pairs.len());
                self.found.pairs.push((a, b));
                self.found.right_of.insert(a, b);
                self.found.left_of.insert(b, a);
                self.ways.push(way);
                return Ok(());
            }
            (Some(partner), _) if partner == b => return Ok(()),
            (Some(partner), _) => (Side::Left, self.right.memory.describe(partner)),
            (None, Some(partner)) => (Side::Right, self.left.memory.describe(partner)),
        };
        Err(Difference {
            at: self.route(&way),
            mismatch: Mismatch::Sharing {
                left: self.left.memory.describe(a),
                right: self.right.memory.describe(b),
                met,
                partner,
            }
            .into(),
        })
    }

    /// Compares the nodes of a pair, and lets the nodes that they lead to meet.
    fn compare(&mut self, pair: usize) -> Result<(), Difference> {
        let (a, b) = self.found.pairs[pair];
        let (left, right) = (self.left.memory.class(a), self.right.memory.class(b));
        if left != right {
            return Err(self.difference(pair, Mismatch::Class { left, right }));
        }
        if let Err(words) = (self.agree)(a, b) {
            return Err(self.difference(pair, Mismatch::Contents(words)));
        }
        let (left, right) = (self.left.arcs(a), self.right.arcs(b));
        for (arc, a, b) in self.pair_arcs(pair, ArcKind::Strong, left, right)? {
            self.meet(a, b, Way::Arc { from: pair, arc })?;
        }
        let (left, right) = (self.left.weak_arcs(a), self.right.weak_arcs(b));
        for (arc, a, b) in self.pair_arcs(pair, ArcKind::Weak, left, right)? {
            self.meet(a, b, Way::Arc { from: pair, arc })?;
        }
        let (left, right) = (self.left.ephemerons(a), self.right.ephemerons(b));
        for (arc, a, b) in self.pair_arcs(pair, ArcKind::Ephemeron, left, right)? {
            let way = Way::Arc { from: pair, arc };
            self.meet(a.0, b.0, way.clone())?;
            self.meet(a.1, b.1, way)?;
        }
        Ok(())
    }

    fn pair_arcs<T, U>(
        &self,
        pair: usize,
        kind: ArcKind,
        left: Named<ArcName, T>,
        right: Named<ArcName, U>,
    ) -> Result<Paired<ArcName, T, U>, Difference> {
        pair_up(left, right).map_err(|(arc, lacking)| {
            let mismatch = Mismatch::Arc { arc, kind, lacking };
            self.difference(pair, mismatch)
        })
    }

    fn difference(&self, pair: usize, mismatch: Mismatch) -> Difference {
        Difference {
            at: self.route(&self.ways[pair]),
            mismatch: mismatch.into(),
        }
    }

    /// The names from a root to the end of `way`. A pair was met from an earlier one, so the way
    /// back ends.
    fn route<'a>(&'a self, mut way: &'a Way) -> Route {
        let mut arcs = Vec::new();
        loop {
            match way {
                Way::Root(root) => {
                    arcs.reverse();
                    return Route {
                        root: Some(root.clone()),
                        arcs,
                    };
                }
                Way::Arc { from, arc } => {
                    arcs.push(arc.clone());
                    way = &self.ways[*from];
                }
            }
        }
    }
}

/// Pairs what has the same name; if a name occurs several times, in the order given. Or else the
/// first name, in the order of names, that one side lacks.
fn pair_up<K: Ord, T, U>(
    mut left: Named<K, T>,
    mut right: Named<K, U>,
) -> Result<Paired<K, T, U>, (K, Side)> {
    let same_names = |left: &Named<K, T>, right: &Named<K, U>| {
        left.len() == right.len() && left.iter().zip(right).all(|(l, r)| l.0 == r.0)
    };
    if !same_names(&left, &right) {
        left.sort_by(|l, r| l.0.cmp(&r.0));
        right.sort_by(|l, r| l.0.cmp(&r.0));
    }
    let mut pairs = Vec::with_capacity(left.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ok(pairs),
            (Some((l, _)), None) => return Err((l, Side::Right)),
            (None, Some((r, _))) => return Err((r, Side::Left)),
            (Some((l, a)), Some((r, b))) => match l.cmp(&r) {
                std::cmp::Ordering::Equal => pairs.push((l, a, b)),
                std::cmp::Ordering::Less => return Err((l, Side::Right)),
                std::cmp::Ordering::Greater => return Err((r, Side::Left)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, NodeId, Shape, Transform};

    fn tree() -> Shape {
        Shape::new("Tree").with_slots(["left", "right"])
    }

    /// `root r` leads to a tree with two children.
    fn fork() -> (Model, [NodeId; 3]) {
        let mut model = Model::new();
        let nodes = [(); 3].map(|()| model.allocate(&tree()).unwrap());
        model.store(nodes[0], 0, Some(nodes[1])).unwrap();
        model.store(nodes[0], 1, Some(nodes[2])).unwrap();
        model.add_root("r".into(), nodes[0]).unwrap();
        (model, nodes)
    }

    fn difference(left: &Model, right: &Model) -> String {
        isomorphic(left, right).unwrap_err().to_string()
    }

    #[test]
    fn dead_nodes_and_identities_do_not_matter() {
        let (left, [a, b, c]) = fork();
        let mut right = Model::new();
        right.allocate(&tree()).unwrap();
        let [z, y, x] = [(); 3].map(|()| right.allocate(&tree()).unwrap());
        right.store(x, 1, Some(z)).unwrap();
        right.store(x, 0, Some(y)).unwrap();
        right.add_root("r".into(), x).unwrap();
        let map = isomorphic(&left, &right).unwrap();
        assert_eq!(map.pairs(), [(a, x), (b, y), (c, z)]);
        assert_eq!((map.right_of(b), map.left_of(z)), (Some(y), Some(c)));
    }

    #[test]
    fn differences_say_where_and_what() {
        let (left, _) = fork();
        let change = |change: fn(&mut Model, [NodeId; 3])| {
            let (mut right, nodes) = fork();
            change(&mut right, nodes);
            difference(&left, &right)
        };
        assert_eq!(
            change(|m, _| m.remove_root(&"r".into()).unwrap()),
            "at the roots: the right memory has no root r"
        );
        assert_eq!(
            change(|m, [a, ..]| m.add_root("q".into(), a).unwrap()),
            "at the roots: the left memory has no root q"
        );
        assert_eq!(
            change(|m, [a, ..]| m.store(a, 0, None).unwrap()),
            "at root r: the right node has no arc .left"
        );
        assert_eq!(
            change(|m, [_, b, c]| m.store(b, 1, Some(c)).unwrap()),
            "at root r .left: the left node has no arc .right"
        );
        assert_eq!(
            change(|m, [a, b, _]| m.store(a, 1, Some(b)).unwrap()),
            "at root r .right: left Tree#2 meets right Tree#1, but the right one has met Tree#1 before"
        );
        assert_eq!(
            change(|m, [a, ..]| {
                let other = m.allocate(&Shape::new("Leaf")).unwrap();
                m.store(a, 1, Some(other)).unwrap();
            }),
            "at root r .right: the left node is of class Tree, the right one of class Leaf"
        );
    }

    #[test]
    fn sharing_matters_either_way() {
        let (apart, _) = fork();
        let (mut shared, [a, b, _]) = fork();
        shared.store(a, 1, Some(b)).unwrap();
        assert!(isomorphic(&apart, &shared).is_err());
        assert!(isomorphic(&shared, &apart).is_err());
    }

    #[test]
    fn contents_are_compared_if_asked_for() {
        let (left, _) = fork();
        let (mut right, [_, _, c]) = fork();
        right.set_payload(c, Some(7)).unwrap();
        assert!(isomorphic(&left, &right).is_ok());
        let difference = isomorphic_by(&left, &right, |a, b| {
            match (left.payload(a), right.payload(b)) {
                (l, r) if l == r => Ok(()),
                (l, r) => Err(format!("{l:?} is not {r:?}")),
            }
        });
        assert_eq!(
            difference.unwrap_err().to_string(),
            "at root r .right: None is not Some(7)"
        );
    }

    #[test]
    fn sizes_are_compared_if_asked_for() {
        let sized = |bytes| {
            let mut model = Model::new();
            let node = model.allocate(&Shape::new("Object").with_size(bytes));
            model.add_root("r".into(), node.unwrap()).unwrap();
            model
        };
        let (left, right) = (sized(8), sized(16));
        assert!(isomorphic(&left, &right).is_ok());
        assert_eq!(
            isomorphic_by(&left, &right, same_size(&left, &right))
                .unwrap_err()
                .to_string(),
            "at root r: the left node has 8 bytes, the right one 16"
        );
    }

    #[test]
    fn weak_arcs_and_entries_count_while_they_lead_somewhere() {
        let holder = Shape::new("Holder").with_weak_slots(1).with_ephemerons(1);
        let build = |filled: bool, rooted: bool| {
            let mut model = Model::new();
            let [a, key, value] = [(); 3].map(|()| model.allocate(&holder).unwrap());
            model.add_root("a".into(), a).unwrap();
            if filled {
                model.store_weak(a, 0, Some(key)).unwrap();
                model.store_ephemeron(a, 0, Some((key, value))).unwrap();
            }
            if rooted {
                model.add_root("key".into(), key).unwrap();
            }
            model
        };
        assert!(isomorphic(&build(true, false), &build(false, false)).is_ok());
        assert!(isomorphic(&build(true, true), &build(true, true)).is_ok());
        assert_eq!(
            difference(&build(true, true), &build(false, true)),
            "at root a: the right node has no weak arc [0]"
        );
    }

    #[test]
    fn repeated_names_are_paired_in_order() {
        let pairs = pair_up(
            vec![("x", 1), ("y", 2), ("x", 3)],
            vec![("y", 5), ("x", 4), ("x", 6)],
        );
        assert_eq!(pairs, Ok(vec![("x", 1, 4), ("x", 3, 6), ("y", 2, 5)]));
        assert_eq!(
            pair_up(vec![("x", 1)], vec![("x", 1), ("x", 2)]),
            Err(("x", Side::Left))
        );
    }
}
