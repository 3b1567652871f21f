//! The reachable part of a memory, breadth first, with the reason why each node is in it.
//!
//! The specification (D. Pavlovic, P. Pepper and D. R. Smith, *Formal derivation of concurrent
//! garbage collectors*, MPC 2010): the live nodes are the least fixpoint of `F(S) = roots ∪
//! sucs(S)`. Here `sucs(S)` holds the targets of strong arcs out of `S`, and the values of entries
//! whose holder and key are both in `S`. The depth of a node is the number of the round of the
//! Kleene iteration `F({}), F(F({})), …` in which it appears, counted from 0, where the roots are.
//! The trace finds set and depths in time linear in the size of the memory, with a worklist instead
//! of rounds.

use std::collections::{BTreeSet, HashMap};

use crate::{ArcName, Observe, Path, Place, RootName, Step};

/// The nodes reachable in a memory, each with its depth and a path.
///
/// It is a picture of the memory as it was when the trace was made.
#[derive(Clone, Debug)]
pub struct Trace<N> {
    /// In the order of discovery, so that depths never decrease.
    reached: Vec<Reached<N>>,
    position: HashMap<N, usize>,
}

#[derive(Clone, Debug)]
struct Reached<N> {
    node: N,
    depth: usize,
    why: Why<N>,
}

/// Why a node is reachable. The position of the holder is smaller than that of the node, and so is
/// that of the key: reasons are never circular.
#[derive(Clone, Debug)]
enum Why<N> {
    Root(RootName),
    Start,
    Arc {
        holder: usize,
        name: ArcName,
        key: Option<N>,
    },
}

impl<N: Copy + Eq + std::hash::Hash> Trace<N> {
    /// What is reachable from the roots.
    pub fn of<M: Observe<Node = N> + ?Sized>(memory: &M) -> Self {
        Trace::from_roots(memory, None)
    }

    /// What would be reachable from the roots if `removed` were not there.
    pub fn without<M: Observe<Node = N> + ?Sized>(memory: &M, removed: N) -> Self {
        Trace::from_roots(memory, Some(removed))
    }

    /// What would be reachable if `start` were the only root.
    pub fn from_node<M: Observe<Node = N> + ?Sized>(memory: &M, start: N) -> Self {
        let mut walk = Walk::new(None);
        walk.reach(start, 0, || Why::Start);
        walk.finish(memory)
    }

    fn from_roots<M: Observe<Node = N> + ?Sized>(memory: &M, removed: Option<N>) -> Self {
        let mut walk = Walk::new(removed);
        memory.roots(&mut |name, node| walk.reach(node, 0, || Why::Root(name)));
        walk.finish(memory)
    }

    /// Whether `node` was reached.
    pub fn contains(&self, node: N) -> bool {
        self.position.contains_key(&node)
    }

    /// How many nodes were reached.
    pub fn len(&self) -> usize {
        self.reached.len()
    }

    /// Whether nothing was reached.
    pub fn is_empty(&self) -> bool {
        self.reached.is_empty()
    }

    /// The nodes in the order in which they were reached: nearest first.
    pub fn nodes(&self) -> impl Iterator<Item = N> {
        self.reached.iter().map(|reached| reached.node)
    }

    /// The same nodes as a set.
    pub fn to_set(&self) -> BTreeSet<N>
    where
        N: Ord,
    {
        self.nodes().collect()
    }

    /// The round in which `node` was reached. Without ephemerons that is the length of the
    /// shortest path; the value of an entry is one further away than its holder *and* its key.
    pub fn depth(&self, node: N) -> Option<usize> {
        Some(self.at(node)?.depth)
    }

    /// The path by which `node` was reached: a shortest one. `memory` is the memory of the trace,
    /// which is asked for classes and descriptions only.
    pub fn path<M: Observe<Node = N> + ?Sized>(&self, memory: &M, node: N) -> Option<Path<N>> {
        let mut reached = self.at(node)?;
        let mut steps = Vec::new();
        let root = loop {
            match &reached.why {
                Why::Root(name) => break Some(name.clone()),
                Why::Start => break None,
                Why::Arc { holder, name, key } => {
                    steps.push(Step {
                        arc: name.clone(),
                        key: key.map(|key| Place::of(memory, key)),
                        to: Place::of(memory, reached.node),
                    });
                    reached = self.reached.get(*holder)?;
                }
            }
        };
        steps.reverse();
        Some(Path {
            root,
            start: Place::of(memory, reached.node),
            steps,
        })
    }

    /// Where `node` stands in the order of [`nodes`](Trace::nodes).
    pub(crate) fn position(&self, node: N) -> Option<usize> {
        self.position.get(&node).copied()
    }

    fn at(&self, node: N) -> Option<&Reached<N>> {
        self.reached.get(self.position(node)?)
    }

    /// The targets of the arcs that keep alive out of the reached node `node`: its strong arcs, and
    /// its entries with a reached key.
    pub(crate) fn successors<M: Observe<Node = N> + ?Sized>(
        &self,
        memory: &M,
        node: N,
        visit: &mut dyn FnMut(N),
    ) {
        memory.arcs(node, &mut |_, target| visit(target));
        memory.ephemerons(node, &mut |_, key, value| {
            if self.contains(key) {
                visit(value);
            }
        });
    }
}

/// A trace in the making. The nodes before `next` have been scanned, the others are the worklist.
struct Walk<N> {
    trace: Trace<N>,
    next: usize,
    removed: Option<N>,
    /// The entries of scanned holders that wait for their key to be scanned.
    waiting: HashMap<N, Vec<Waiting<N>>>,
}

struct Waiting<N> {
    holder: usize,
    name: ArcName,
    value: N,
}

impl<N: Copy + Eq + std::hash::Hash> Walk<N> {
    fn new(removed: Option<N>) -> Self {
        Walk {
            trace: Trace {
                reached: Vec::new(),
                position: HashMap::new(),
            },
            next: 0,
            removed,
            waiting: HashMap::new(),
        }
    }

    fn finish<M: Observe<Node = N> + ?Sized>(mut self, memory: &M) -> Trace<N> {
        while let Some(&Reached { node, depth, .. }) = self.trace.reached.get(self.next) {
            self.scan(memory, node, depth + 1);
        }
        self.trace
    }

    /// Follows all that `node`, the next of the worklist, makes reachable.
    ///
    /// Nodes are scanned in the order of their depths. An entry is followed when the later of its
    /// holder and its key is scanned, which therefore has the greater depth of the two.
    fn scan<M: Observe<Node = N> + ?Sized>(&mut self, memory: &M, node: N, depth: usize) {
        let holder = self.next;
        self.next += 1;
        memory.arcs(node, &mut |name, target| {
            self.reach(target, depth, || Why::Arc {
                holder,
                name,
                key: None,
            });
        });
        memory.ephemerons(node, &mut |name, key, value| {
            let entry = Waiting {
                holder,
                name,
                value,
            };
            match self.is_scanned(key) {
                true => self.reach_value(key, entry, depth),
                false => self.waiting.entry(key).or_default().push(entry),
            }
        });
        for entry in self.waiting.remove(&node).unwrap_or_default() {
            self.reach_value(node, entry, depth);
        }
    }

    fn is_scanned(&self, node: N) -> bool {
        let position = self.trace.position.get(&node);
        position.is_some_and(|&position| position < self.next)
    }

    fn reach_value(&mut self, key: N, entry: Waiting<N>, depth: usize) {
        self.reach(entry.value, depth, || Why::Arc {
            holder: entry.holder,
            name: entry.name,
            key: Some(key),
        });
    }

    fn reach(&mut self, node: N, depth: usize, why: impl FnOnce() -> Why<N>) {
        if self.removed == Some(node) || self.trace.position.contains_key(&node) {
            return;
        }
        let position = self.trace.reached.len();
        self.trace.position.insert(node, position);
        self.trace.reached.push(Reached {
            node,
            depth,
            why: why(),
        });
    }
}
