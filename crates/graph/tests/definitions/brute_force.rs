//! Definitions, evaluated as they stand. They use the observers and nothing else of the crate.

use std::collections::{BTreeMap, BTreeSet};

use liveoak_graph::{Model, NodeId, Observe};

pub(crate) type Nodes = BTreeSet<NodeId>;

pub(crate) fn nodes(memory: &Model) -> Nodes {
    let mut nodes = Nodes::new();
    memory.nodes(&mut |node| assert!(nodes.insert(node)));
    nodes
}

pub(crate) fn roots(memory: &Model) -> Nodes {
    let mut roots = Nodes::new();
    memory.roots(&mut |_, node| {
        roots.insert(node);
    });
    roots
}

pub(crate) fn targets(memory: &Model, node: NodeId) -> Nodes {
    let mut targets = Nodes::new();
    memory.arcs(node, &mut |_, target| {
        targets.insert(target);
    });
    targets
}

/// `F(S) = roots ∪ sucs(S)`, in the memory without the node `removed`.
fn step(memory: &Model, removed: Option<NodeId>, set: &Nodes) -> Nodes {
    let mut next = roots(memory);
    for &node in set {
        next.extend(targets(memory, node));
        memory.ephemerons(node, &mut |_, key, value| {
            if set.contains(&key) {
                next.insert(value);
            }
        });
    }
    next.retain(|&node| Some(node) != removed);
    next
}

/// The Kleene iteration `F({}), F(F({})), …` up to the least fixpoint, which is the last.
pub(crate) fn rounds(memory: &Model, removed: Option<NodeId>) -> Vec<Nodes> {
    let mut rounds = vec![step(memory, removed, &Nodes::new())];
    loop {
        let last = &rounds[rounds.len() - 1];
        let next = step(memory, removed, last);
        if next == *last {
            return rounds;
        }
        rounds.push(next);
    }
}

pub(crate) fn live(memory: &Model) -> Nodes {
    rounds(memory, None).pop().unwrap()
}

pub(crate) fn live_without(memory: &Model, removed: NodeId) -> Nodes {
    rounds(memory, Some(removed)).pop().unwrap()
}

/// Floyd and Warshall: the lengths of the shortest paths over strong arcs.
pub(crate) fn distances(memory: &Model) -> BTreeMap<(NodeId, NodeId), usize> {
    let nodes = nodes(memory);
    let mut distances = BTreeMap::new();
    for &node in &nodes {
        for target in targets(memory, node) {
            distances.insert((node, target), 1);
        }
        distances.insert((node, node), 0);
    }
    for &via in &nodes {
        for &from in &nodes {
            for &to in &nodes {
                let legs = (distances.get(&(from, via)), distances.get(&(via, to)));
                let (Some(first), Some(second)) = legs else {
                    continue;
                };
                let through = first + second;
                let direct = distances.entry((from, to)).or_insert(through);
                *direct = through.min(*direct);
            }
        }
    }
    distances
}
