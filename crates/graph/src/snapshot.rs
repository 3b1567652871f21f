//! A copy of any memory as a [`Model`], to be compared with what becomes of it.

use std::collections::BTreeMap;

use crate::{ArcName, Fault, Model, ModelError, NodeId, Observe, Shape, Transform, well_formed};

/// A memory as it was.
#[derive(Clone, Debug)]
pub struct Snapshot<N> {
    /// The copy: the same graph, dead nodes, weak arcs and ephemerons included.
    pub model: Model,
    /// The node of the copy for each node of the memory, by the name that it had then.
    pub ids: BTreeMap<N, NodeId>,
}

/// Why there is no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError<N: std::fmt::Debug> {
    /// The memory is not well formed.
    #[error(transparent)]
    Fault(#[from] Fault<N>),
    /// The model cannot hold it.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Copies `memory`, which must be [`well_formed`].
pub fn snapshot<M: Observe + ?Sized>(
    memory: &M,
) -> Result<Snapshot<M::Node>, SnapshotError<M::Node>> {
    well_formed(memory)?;
    let mut outlines = Vec::new();
    memory.nodes(&mut |node| outlines.push(Outline::of(memory, node)));

    let mut model = Model::new();
    let mut ids = BTreeMap::new();
    for outline in &outlines {
        ids.insert(outline.node, model.allocate(&outline.shape)?);
    }
    // The memory is well formed, so that every node has an id and nothing is left out.
    let id = |node: &M::Node| ids.get(node).copied();
    for outline in &outlines {
        let Some(holder) = id(&outline.node) else {
            continue;
        };
        for (slot, target) in outline.strong.iter().enumerate() {
            model.store(holder, slot, id(target))?;
        }
        for (slot, target) in outline.weak.iter().enumerate() {
            model.store_weak(holder, slot, id(target))?;
        }
        for (slot, (key, value)) in outline.entries.iter().enumerate() {
            model.store_ephemeron(holder, slot, id(key).zip(id(value)))?;
        }
    }
    let mut roots = Vec::new();
    memory.roots(&mut |name, node| roots.push((name, node)));
    for (name, node) in roots {
        if let Some(node) = id(&node) {
            model.add_root(name, node)?;
        }
    }
    Ok(Snapshot { model, ids })
}

/// A node of the memory, with a shape that has just the slots that are filled.
struct Outline<N> {
    node: N,
    shape: Shape,
    strong: Vec<N>,
    weak: Vec<N>,
    entries: Vec<(N, N)>,
}

impl<N: Copy> Outline<N> {
    fn of<M: Observe<Node = N> + ?Sized>(memory: &M, node: N) -> Self {
        let (mut strong_names, mut strong) = (Vec::<ArcName>::new(), Vec::new());
        memory.arcs(node, &mut |name, target| {
            strong_names.push(name);
            strong.push(target);
        });
        let (mut weak_names, mut weak) = (Vec::<ArcName>::new(), Vec::new());
        memory.weak_arcs(node, &mut |name, target| {
            weak_names.push(name);
            weak.push(target);
        });
        let (mut entry_names, mut entries) = (Vec::<ArcName>::new(), Vec::new());
        memory.ephemerons(node, &mut |name, key, value| {
            entry_names.push(name);
            entries.push((key, value));
        });
        Outline {
            node,
            shape: Shape::new(memory.class(node))
                .with_slots(strong_names)
                .with_weak_slots(weak_names)
                .with_ephemerons(entry_names)
                .with_size(memory.size(node)),
            strong,
            weak,
            entries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RootName, dead, isomorphic_by, same_size};

    #[test]
    fn a_snapshot_does_not_change_with_the_memory() {
        let mut model = Model::new();
        let shape = Shape::new("Pair").with_slots(["car", "cdr"]);
        let [a, b, lost] = [(); 3].map(|()| model.allocate(&shape).unwrap());
        let root = RootName::new("r");
        model.add_root(root.clone(), a).unwrap();
        model.store(a, 1, Some(b)).unwrap();

        let then = snapshot(&model).unwrap();
        assert_eq!(dead(&then.model), [then.ids[&lost]].into());
        let same = |now: &Model| isomorphic_by(&then.model, now, same_size(&then.model, now));
        assert!(same(&model).is_ok());
        model.store(a, 1, None).unwrap();
        assert!(same(&model).is_err());
    }
}
