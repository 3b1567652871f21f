//! Small random memories, dense enough that cycles, sharing and dead nodes are all common.

use liveoak_graph::{Model, NodeId, RootName, Shape, Transform};
use proptest::collection::vec;
use proptest::prelude::*;

/// Slots of each kind that every node has.
const SLOTS: usize = 3;

/// The plan of a memory: indices of nodes, taken modulo their number.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) sizes: Vec<u64>,
    pub(crate) roots: Vec<(usize, usize)>,
    pub(crate) arcs: Vec<(usize, usize, usize)>,
    pub(crate) weak: Vec<(usize, usize, usize)>,
    pub(crate) entries: Vec<(usize, usize, usize, usize)>,
}

/// Memories with every kind of arc.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let entries = vec((0..99usize, 0..SLOTS, 0..99usize, 0..99usize), 0..8);
    (strong_plans(), entries).prop_map(|(plan, entries)| Plan { entries, ..plan })
}

/// Memories without ephemerons.
pub(crate) fn strong_plans() -> impl Strategy<Value = Plan> {
    let sizes = vec(0..100u64, 1..10);
    let roots = vec((0..4usize, 0..99usize), 0..4);
    let arcs = vec((0..99usize, 0..SLOTS, 0..99usize), 0..20);
    let weak = vec((0..99usize, 0..SLOTS, 0..99usize), 0..4);
    (sizes, roots, arcs, weak).prop_map(|(sizes, roots, arcs, weak)| Plan {
        sizes,
        roots,
        arcs,
        weak,
        entries: Vec::new(),
    })
}

impl Plan {
    /// The memory, with its nodes allocated in the order of their indices.
    pub(crate) fn build(&self) -> (Model, Vec<NodeId>) {
        self.build_in_order(&Vec::from_iter(0..self.sizes.len()))
    }

    /// The memory, with its nodes allocated in the order of `order`, a permutation of the indices.
    /// The nodes that are returned are in the order of the indices.
    pub(crate) fn build_in_order(&self, order: &[usize]) -> (Model, Vec<NodeId>) {
        let mut model = Model::new();
        let mut allocated: Vec<(usize, NodeId)> = Vec::new();
        for &index in order {
            // Two classes, and sizes that mostly differ.
            let shape = Shape::new(["Even", "Odd"][(self.sizes[index] % 2) as usize])
                .with_slots(SLOTS)
                .with_weak_slots(SLOTS)
                .with_ephemerons(SLOTS)
                .with_size(self.sizes[index]);
            allocated.push((index, model.allocate(&shape).unwrap()));
        }
        allocated.sort();
        let nodes: Vec<NodeId> = allocated.into_iter().map(|(_, node)| node).collect();
        let node = |index: usize| nodes[index % nodes.len()];
        for &(name, target) in &self.roots {
            let name = RootName::indexed("root", name);
            model.add_root(name, node(target)).unwrap();
        }
        for &(from, slot, to) in &self.arcs {
            model.store(node(from), slot, Some(node(to))).unwrap();
        }
        for &(from, slot, to) in &self.weak {
            model.store_weak(node(from), slot, Some(node(to))).unwrap();
        }
        for &(from, slot, key, value) in &self.entries {
            let entry = Some((node(key), node(value)));
            model.store_ephemeron(node(from), slot, entry).unwrap();
        }
        (model, nodes)
    }
}
