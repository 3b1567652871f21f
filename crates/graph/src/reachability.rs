//! Which nodes are dead: the question that every collector answers.

use std::collections::BTreeSet;

use crate::{ArcName, Observe, RootName, Trace, Transform};

/// The nodes to which a path leads from the roots, over strong arcs and live ephemeron entries.
pub fn reachable<M: Observe + ?Sized>(memory: &M) -> BTreeSet<M::Node> {
    Trace::of(memory).to_set()
}

/// The allocated nodes to which no path leads from the roots.
pub fn dead<M: Observe + ?Sized>(memory: &M) -> BTreeSet<M::Node> {
    let reached = Trace::of(memory);
    let mut dead = BTreeSet::new();
    memory.nodes(&mut |node| {
        if !reached.contains(node) {
            dead.insert(node);
        }
    });
    dead
}

/// The reachable nodes that would be dead if `node` were not there, `node` included.
///
/// This is the definition. [`Dominators`](crate::Dominators) has the sizes of these sets for all
/// nodes at once.
pub fn retained<M: Observe + ?Sized>(memory: &M, node: M::Node) -> BTreeSet<M::Node> {
    let rest = Trace::without(memory, node);
    let reached = Trace::of(memory);
    reached.nodes().filter(|&n| !rest.contains(n)).collect()
}

/// The collector of the specification: collects all that is dead, and says what that was.
pub fn collect_garbage<M: Transform + ?Sized>(
    memory: &mut M,
) -> Result<BTreeSet<M::Node>, M::Error> {
    let dead = dead(memory);
    let nodes: Vec<M::Node> = dead.iter().copied().collect();
    memory.collect(&nodes)?;
    Ok(dead)
}

/// Something that refers to a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Referrer<N> {
    /// A root.
    Root(RootName),
    /// A strong arc of a node.
    Arc {
        /// The node that has the arc.
        holder: N,
        /// The name of the arc.
        arc: ArcName,
    },
    /// An ephemeron entry whose value the node is.
    Value {
        /// The node that has the entry.
        holder: N,
        /// The name of the entry.
        arc: ArcName,
        /// The key of the entry.
        key: N,
    },
}

/// All that refers to `node` and can keep it alive: the roots first, then the arcs of all nodes,
/// dead ones included, in the order of the observers.
pub fn referrers<M: Observe + ?Sized>(memory: &M, node: M::Node) -> Vec<Referrer<M::Node>> {
    let mut referrers = Vec::new();
    memory.roots(&mut |name, target| {
        if target == node {
            referrers.push(Referrer::Root(name));
        }
    });
    memory.nodes(&mut |holder| {
        memory.arcs(holder, &mut |arc, target| {
            if target == node {
                referrers.push(Referrer::Arc { holder, arc });
            }
        });
        memory.ephemerons(holder, &mut |arc, key, value| {
            if value == node {
                referrers.push(Referrer::Value { holder, arc, key });
            }
        });
    });
    referrers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Shape};

    #[test]
    fn a_chain_of_entries_is_followed_to_its_end() {
        // Entry i has key i and value i + 1, listed backwards: the naive way needs n rounds.
        let mut model = Model::new();
        let n = 50;
        let table = model
            .allocate(&Shape::new("Table").with_ephemerons(n))
            .unwrap();
        let nodes: Vec<_> = (0..=n)
            .map(|_| model.allocate(&Shape::new("Object")).unwrap())
            .collect();
        for i in 0..n {
            model
                .store_ephemeron(table, n - 1 - i, Some((nodes[i], nodes[i + 1])))
                .unwrap();
        }
        model.add_root("table".into(), table).unwrap();
        assert_eq!(reachable(&model), BTreeSet::from([table]));
        model.add_root("key".into(), nodes[0]).unwrap();
        assert_eq!(dead(&model), BTreeSet::new());
        assert_eq!(Trace::of(&model).depth(nodes[n]), Some(n));
    }

    #[test]
    fn every_kind_of_referrer_is_found_dead_ones_too() {
        let mut model = Model::new();
        let shape = Shape::new("Object").with_slots(2).with_ephemerons(1);
        let [a, b, c] = [(); 3].map(|()| model.allocate(&shape).unwrap());
        model.add_root("r".into(), a).unwrap();
        model.store(b, 0, Some(a)).unwrap();
        model.store(b, 1, Some(a)).unwrap();
        model.store_ephemeron(c, 0, Some((b, a))).unwrap();
        let arc = |holder, i: usize| Referrer::Arc {
            holder,
            arc: i.into(),
        };
        let value = Referrer::Value {
            holder: c,
            arc: 0.into(),
            key: b,
        };
        assert_eq!(
            referrers(&model, a),
            [Referrer::Root("r".into()), arc(b, 0), arc(b, 1), value]
        );
        assert_eq!(referrers(&model, c), []);
    }

    #[test]
    fn what_a_key_retains_includes_its_values() {
        let mut model = Model::new();
        let shape = Shape::new("Object").with_ephemerons(1);
        let [table, key, value] = [(); 3].map(|()| model.allocate(&shape).unwrap());
        model.add_root("table".into(), table).unwrap();
        model.add_root("key".into(), key).unwrap();
        model.store_ephemeron(table, 0, Some((key, value))).unwrap();
        assert_eq!(retained(&model, key), BTreeSet::from([key, value]));
        assert_eq!(retained(&model, table), BTreeSet::from([table, value]));
    }
}
