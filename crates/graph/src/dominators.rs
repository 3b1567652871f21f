//! Who keeps whom alive: the dominator tree and retained sizes.
//!
//! `d` dominates `n` iff every path from the roots to `n` passes through `d`: were `d` not there,
//! `n` would be dead. The roots themselves are the children of one vertex that stands for all of
//! them.
//!
//! T. Lengauer and R. E. Tarjan, *A fast algorithm for finding dominators in a flowgraph*, TOPLAS
//! 1979: the simple version, O(m log n), with path compression as a loop. It never degenerates, as
//! simpler algorithms do on deep graphs with many back arcs.
//!
//! An ephemeron entry counts as an arc from its holder to its value if the key is reachable: a
//! value is charged to the table that holds it. Its liveness depends on the key as well, so that
//! "would be dead without" is no tree any more; the tree is then an approximation from below, and
//! [`retained`](crate::retained) is exact.

use std::collections::HashMap;

use crate::{Observe, Trace};

/// The dominator tree of the reachable part of a memory.
#[derive(Clone, Debug)]
pub struct Dominators<N> {
    /// Everything is indexed by the number of a node in a depth-first walk. Number 0 stands for
    /// all roots together, number `i + 1` is `nodes[i]`.
    nodes: Vec<N>,
    number: HashMap<N, usize>,
    /// `idom[i] < i` for `i > 0`, and `idom[0] = 0`.
    idom: Vec<usize>,
    children: Vec<Vec<usize>>,
    retained: Vec<u64>,
}

/// A vertex of the dominator tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dominator<N> {
    /// All roots together: no single node dominates.
    Roots,
    /// A node.
    Node(N),
}

impl<N: Copy + Eq + std::hash::Hash> Dominators<N> {
    /// The dominator tree of `memory` as it is now.
    pub fn of<M: Observe<Node = N> + ?Sized>(memory: &M) -> Self {
        let trace = Trace::of(memory);
        let graph = Rows::successors(memory, &trace);
        let walk = DepthFirst::of(&graph);
        let idom = immediate_dominators(&walk, &walk.predecessors(&graph));

        let reached: Vec<N> = trace.nodes().collect();
        let nodes: Vec<N> = walk
            .vertices
            .iter()
            .skip(1)
            .map(|&v| reached[v - 1])
            .collect();
        let mut retained: Vec<u64> = std::iter::once(0)
            .chain(nodes.iter().map(|&node| memory.size(node)))
            .collect();
        let mut children = vec![Vec::new(); idom.len()];
        for i in 1..idom.len() {
            children[idom[i]].push(i);
        }
        // Dominators have smaller numbers, so that a node is complete when its turn comes.
        for i in (1..idom.len()).rev() {
            retained[idom[i]] = retained[idom[i]].saturating_add(retained[i]);
        }
        Dominators {
            number: nodes.iter().zip(1..).map(|(&n, i)| (n, i)).collect(),
            nodes,
            idom,
            children,
            retained,
        }
    }

    /// The closest dominator of `node` other than itself; nothing if `node` is dead.
    pub fn immediate_dominator(&self, node: N) -> Option<Dominator<N>> {
        let &number = self.number.get(&node)?;
        Some(self.vertex(self.idom[number]))
    }

    /// Whether every path from the roots to `node` passes through `dominator`. A reachable node
    /// dominates itself; dead nodes neither dominate nor are dominated.
    pub fn dominates(&self, dominator: N, node: N) -> bool {
        let (Some(&dominator), Some(&node)) = (self.number.get(&dominator), self.number.get(&node))
        else {
            return false;
        };
        let mut ancestor = node;
        while ancestor > dominator {
            ancestor = self.idom[ancestor];
        }
        ancestor == dominator
    }

    /// The nodes whose immediate dominator `parent` is.
    pub fn children(&self, parent: Dominator<N>) -> impl Iterator<Item = N> {
        let children = self.number(parent).map_or(&[][..], |i| &self.children[i]);
        children.iter().map(|&child| self.nodes[child - 1])
    }

    /// The bytes of `dominator` and of all that it dominates: what a collection would win if it
    /// were not there. Of [`Dominator::Roots`] it is the size of the reachable memory; of a dead
    /// node it is 0.
    pub fn retained_size(&self, dominator: Dominator<N>) -> u64 {
        self.number(dominator).map_or(0, |i| self.retained[i])
    }

    /// The reachable nodes, each after all of its dominators.
    pub fn nodes(&self) -> impl Iterator<Item = N> {
        self.nodes.iter().copied()
    }

    fn number(&self, vertex: Dominator<N>) -> Option<usize> {
        match vertex {
            Dominator::Roots => Some(0),
            Dominator::Node(node) => self.number.get(&node).copied(),
        }
    }

    fn vertex(&self, number: usize) -> Dominator<N> {
        match number.checked_sub(1) {
            None => Dominator::Roots,
            Some(index) => Dominator::Node(self.nodes[index]),
        }
    }
}

/// A graph in rows: the neighbours of vertex `v` are `targets[starts[v]..starts[v + 1]]`.
struct Rows {
    starts: Vec<usize>,
    targets: Vec<usize>,
}

impl Rows {
    /// The reachable graph. Vertex 0 stands for the roots, the nodes follow in the order of the
    /// trace; every vertex can be reached from vertex 0.
    fn successors<M: Observe + ?Sized>(memory: &M, trace: &Trace<M::Node>) -> Self {
        let mut starts = vec![0];
        let mut targets = Vec::new();
        // Whatever a reached node leads to is reached, so that every target has a position.
        let push = |targets: &mut Vec<usize>, node| {
            targets.extend(trace.position(node).map(|position| position + 1));
        };
        memory.roots(&mut |_, node| push(&mut targets, node));
        starts.push(targets.len());
        for node in trace.nodes() {
            trace.successors(memory, node, &mut |target| push(&mut targets, target));
            starts.push(targets.len());
        }
        Rows { starts, targets }
    }

    fn vertices(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, vertex: usize) -> &[usize] {
        &self.targets[self.starts[vertex]..self.starts[vertex + 1]]
    }
}

/// A depth-first walk from vertex 0. A *number* is the rank of a vertex in the walk.
struct DepthFirst {
    /// number → vertex
    vertices: Vec<usize>,
    /// vertex → number
    numbers: Vec<usize>,
    /// number → number of the parent in the walk, which is smaller
    parents: Vec<usize>,
}

const UNSEEN: usize = usize::MAX;

impl DepthFirst {
    fn of(graph: &Rows) -> Self {
        let mut walk = DepthFirst {
            vertices: vec![0],
            numbers: vec![UNSEEN; graph.vertices()],
            parents: vec![0],
        };
        walk.numbers[0] = 0;
        let mut stack = vec![(0, graph.row(0).iter())];
        while let Some((number, successors)) = stack.last_mut() {
            let parent = *number;
            let Some(&vertex) = successors.next() else {
                stack.pop();
                continue;
            };
            if walk.numbers[vertex] != UNSEEN {
                continue;
            }
            let number = walk.vertices.len();
            walk.numbers[vertex] = number;
            walk.vertices.push(vertex);
            walk.parents.push(parent);
            stack.push((number, graph.row(vertex).iter()));
        }
        walk
    }

    /// The arcs the other way round, by number.
    fn predecessors(&self, graph: &Rows) -> Rows {
        let arcs = || {
            self.vertices.iter().enumerate().flat_map(|(from, &v)| {
                let successors = graph.row(v).iter();
                successors.map(move |&to| (from, self.numbers[to]))
            })
        };
        // Counting sort by target: `starts[t + 1]` first counts the arcs into `t`, then is where
        // the next of them goes, and in the end where those of `t + 1` start.
        let mut starts = vec![0; self.vertices.len() + 2];
        for (_, to) in arcs() {
            starts[to + 2] += 1;
        }
        for t in 1..starts.len() {
            starts[t] += starts[t - 1];
        }
        let mut targets = vec![0; graph.targets.len()];
        for (from, to) in arcs() {
            targets[starts[to + 1]] = from;
            starts[to + 1] += 1;
        }
        starts.pop();
        Rows { starts, targets }
    }
}

/// Steps 2 to 4 of Lengauer and Tarjan. All indices are numbers of the walk.
fn immediate_dominators(walk: &DepthFirst, predecessors: &Rows) -> Vec<usize> {
    let n = walk.parents.len();
    let mut forest = Forest::new(n);
    let mut idom = vec![0; n];
    let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); n];
    for w in (1..n).rev() {
        for &v in predecessors.row(w) {
            let u = forest.eval(v);
            forest.semi[w] = forest.semi[w].min(forest.semi[u]);
        }
        buckets[forest.semi[w]].push(w);
        let parent = walk.parents[w];
        forest.link(parent, w);
        for v in std::mem::take(&mut buckets[parent]) {
            let u = forest.eval(v);
            // Either the dominator of `v`, or a vertex with the same dominator as `v`.
            idom[v] = match forest.semi[u] < forest.semi[v] {
                true => u,
                false => parent,
            };
        }
    }
    for w in 1..n {
        if idom[w] != forest.semi[w] {
            idom[w] = idom[idom[w]];
        }
    }
    idom
}

/// The forest of the vertices that have been linked to their parents in the walk.
struct Forest {
    ancestor: Vec<usize>,
    /// The vertex with the smallest semidominator on the compressed path up to the ancestor.
    label: Vec<usize>,
    semi: Vec<usize>,
    /// The path under compression, kept for its allocation.
    path: Vec<usize>,
}

/// The ancestor of the root of a tree of the forest.
const NONE: usize = usize::MAX;

impl Forest {
    fn new(n: usize) -> Self {
        Forest {
            ancestor: vec![NONE; n],
            label: (0..n).collect(),
            semi: (0..n).collect(),
            path: Vec::new(),
        }
    }

    fn link(&mut self, parent: usize, child: usize) {
        self.ancestor[child] = parent;
    }

    /// The vertex with the smallest semidominator on the path from `v` to the root of its tree,
    /// that root not counted unless it is `v`.
    fn eval(&mut self, v: usize) -> usize {
        if self.ancestor[v] != NONE {
            self.compress(v);
        }
        self.label[v]
    }

    /// Hangs every vertex between `v` and the root of its tree directly under that root.
    fn compress(&mut self, v: usize) {
        let mut below = v;
        while self.ancestor[self.ancestor[below]] != NONE {
            self.path.push(below);
            below = self.ancestor[below];
        }
        while let Some(vertex) = self.path.pop() {
            let ancestor = self.ancestor[vertex];
            if self.semi[self.label[ancestor]] < self.semi[self.label[vertex]] {
                self.label[vertex] = self.label[ancestor];
            }
            self.ancestor[vertex] = self.ancestor[ancestor];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, NodeId, Shape, Transform};

    fn memory(n: usize, roots: &[usize], arcs: &[(usize, usize)]) -> (Model, Vec<NodeId>) {
        let mut model = Model::new();
        let shape = Shape::new("Object").with_slots(n).with_size(1);
        let nodes: Vec<_> = (0..n).map(|_| model.allocate(&shape).unwrap()).collect();
        for &root in roots {
            let name = crate::RootName::indexed("root", root);
            model.add_root(name, nodes[root]).unwrap();
        }
        for &(from, to) in arcs {
            model.store(nodes[from], to, Some(nodes[to])).unwrap();
        }
        (model, nodes)
    }

    #[test]
    fn the_join_of_a_diamond_is_dominated_by_its_fork() {
        let (model, n) = memory(5, &[0], &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 0)]);
        let dominators = Dominators::of(&model);
        assert_eq!(dominators.immediate_dominator(n[0]), Some(Dominator::Roots));
        assert_eq!(
            dominators.immediate_dominator(n[3]),
            Some(Dominator::Node(n[0]))
        );
        assert_eq!(dominators.immediate_dominator(n[4]), None);
        assert_eq!(dominators.retained_size(Dominator::Node(n[0])), 4);
        assert_eq!(dominators.retained_size(Dominator::Node(n[1])), 1);
        assert_eq!(dominators.retained_size(Dominator::Node(n[4])), 0);
        assert_eq!(dominators.children(Dominator::Node(n[0])).count(), 3);
        assert!(dominators.dominates(n[0], n[3]) && !dominators.dominates(n[1], n[3]));
        assert!(!dominators.dominates(n[4], n[4]));
    }

    #[test]
    fn what_two_roots_share_has_no_dominator() {
        let (model, n) = memory(3, &[0, 1], &[(0, 2), (1, 2)]);
        let dominators = Dominators::of(&model);
        assert_eq!(dominators.immediate_dominator(n[2]), Some(Dominator::Roots));
        assert_eq!(dominators.children(Dominator::Roots).count(), 3);
        assert_eq!(dominators.retained_size(Dominator::Roots), 3);
    }

    #[test]
    fn nothing_dominates_nothing() {
        let dominators = Dominators::of(&Model::new());
        assert_eq!(dominators.nodes().count(), 0);
        assert_eq!(dominators.retained_size(Dominator::Roots), 0);
        assert_eq!(dominators.children(Dominator::Roots).count(), 0);
    }
}
