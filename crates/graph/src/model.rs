//! The plainest memory there is: maps from names to nodes. Collectors are compared with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::{ArcName, Name, Observe, Path, RootName, Shape, Slots, Trace, Transform};

/// A node of a [`Model`]. Ids are dense from 0 and never used again, so that a stale id is an
/// error and not another node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// The how-manieth allocation of its model made this node, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Why a [`Model`] refused a transformer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The node was never allocated, or it has been collected.
    #[error("there is no node {0:?}: it was never allocated or has been collected")]
    NoSuchNode(NodeId),
    /// The node has fewer slots of that kind.
    #[error("node {node:?} has {count} {kind}, numbered from 0: there is no number {slot}")]
    NoSuchSlot {
        /// The node.
        node: NodeId,
        /// What kind of slots were counted.
        kind: SlotKind,
        /// How many of them the node has.
        count: usize,
        /// The number that was asked for.
        slot: usize,
    },
    /// No root has that name.
    #[error("there is no root {0}")]
    NoSuchRoot(RootName),
    /// A node that was to be collected is not dead; here is the reason.
    #[error("only dead nodes may be collected, but there is a path to {target:?}:\n{0}", target = .0.target())]
    Reachable(Box<Path<NodeId>>),
    /// Every id has been given out.
    #[error("the model has allocated as many nodes as it has names for")]
    OutOfNames,
}

/// The kinds of slots that a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Slots for strong arcs.
    Strong,
    /// Slots for weak arcs.
    Weak,
    /// Slots for ephemeron entries.
    Ephemeron,
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SlotKind::Strong => "strong slots",
            SlotKind::Weak => "weak slots",
            SlotKind::Ephemeron => "ephemeron entries",
        })
    }
}

/// A memory as a value: clone it, compare it, transform it.
///
/// Invariant: every node that a root, an arc, a weak arc or an entry mentions is allocated
/// ([`well_formed`](crate::well_formed) holds of every model).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    roots: BTreeMap<RootName, NodeId>,
    cells: BTreeMap<NodeId, Cell>,
    allocated: u32,
}

/// What a model knows of one node. Only filled slots are stored: a node may have as many empty
/// slots as it likes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cell {
    shape: Shape,
    payload: Option<u64>,
    strong: BTreeMap<usize, NodeId>,
    weak: BTreeMap<usize, NodeId>,
    entries: BTreeMap<usize, (NodeId, NodeId)>,
}

impl Model {
    /// A memory without nodes and roots.
    pub fn new() -> Self {
        Model::default()
    }

    /// How many nodes are allocated.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether no node is allocated.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Whether `node` is allocated.
    pub fn contains(&self, node: NodeId) -> bool {
        self.cells.contains_key(&node)
    }

    /// The shape that `node` was allocated with.
    pub fn shape(&self, node: NodeId) -> Option<&Shape> {
        self.cells.get(&node).map(|cell| &cell.shape)
    }

    /// Where the root `name` leads.
    pub fn root(&self, name: &RootName) -> Option<NodeId> {
        self.roots.get(name).copied()
    }

    /// What the strong slot number `slot` of `node` holds.
    pub fn slot(&self, node: NodeId, slot: usize) -> Option<NodeId> {
        self.cells.get(&node)?.strong.get(&slot).copied()
    }

    /// What the weak slot number `slot` of `node` holds.
    pub fn weak_slot(&self, node: NodeId, slot: usize) -> Option<NodeId> {
        self.cells.get(&node)?.weak.get(&slot).copied()
    }

    /// The key and the value in the ephemeron entry number `slot` of `node`.
    pub fn ephemeron(&self, node: NodeId, slot: usize) -> Option<(NodeId, NodeId)> {
        self.cells.get(&node)?.entries.get(&slot).copied()
    }

    /// The number that [`set_payload`](Model::set_payload) left with `node`.
    pub fn payload(&self, node: NodeId) -> Option<u64> {
        self.cells.get(&node)?.payload
    }

    /// Leaves a number with `node`: its contents other than arcs, or its name in another memory.
    pub fn set_payload(&mut self, node: NodeId, payload: Option<u64>) -> Result<(), ModelError> {
        self.cell_mut(node)?.payload = payload;
        Ok(())
    }

    fn cell_mut(&mut self, node: NodeId) -> Result<&mut Cell, ModelError> {
        self.cells
            .get_mut(&node)
            .ok_or(ModelError::NoSuchNode(node))
    }

    fn check_node(&self, node: NodeId) -> Result<(), ModelError> {
        match self.contains(node) {
            true => Ok(()),
            false => Err(ModelError::NoSuchNode(node)),
        }
    }

    fn check_slot(&self, node: NodeId, kind: SlotKind, slot: usize) -> Result<(), ModelError> {
        let shape = self.shape(node).ok_or(ModelError::NoSuchNode(node))?;
        let count = match kind {
            SlotKind::Strong => shape.slots(),
            SlotKind::Weak => shape.weak_slots(),
            SlotKind::Ephemeron => shape.ephemerons(),
        }
        .count();
        match slot < count {
            true => Ok(()),
            false => Err(ModelError::NoSuchSlot {
                node,
                kind,
                count,
                slot,
            }),
        }
    }
}

impl Observe for Model {
    type Node = NodeId;

    fn roots(&self, visit: &mut dyn FnMut(RootName, NodeId)) {
        for (name, &node) in &self.roots {
            visit(name.clone(), node);
        }
    }

    fn nodes(&self, visit: &mut dyn FnMut(NodeId)) {
        for &node in self.cells.keys() {
            visit(node);
        }
    }

    fn arcs(&self, node: NodeId, visit: &mut dyn FnMut(ArcName, NodeId)) {
        let Some(cell) = self.cells.get(&node) else {
            return;
        };
        for (name, &target) in filled(cell.shape.slots(), &cell.strong) {
            visit(name, target);
        }
    }

    fn class(&self, node: NodeId) -> Name {
        const NO_NODE: Name = Name::from_static("(no node)");
        self.shape(node)
            .map_or(NO_NODE, |shape| shape.class().clone())
    }

    fn size(&self, node: NodeId) -> u64 {
        self.shape(node).map_or(0, Shape::size)
    }

    fn weak_arcs(&self, node: NodeId, visit: &mut dyn FnMut(ArcName, NodeId)) {
        let Some(cell) = self.cells.get(&node) else {
            return;
        };
        for (name, &target) in filled(cell.shape.weak_slots(), &cell.weak) {
            visit(name, target);
        }
    }

    fn ephemerons(&self, node: NodeId, visit: &mut dyn FnMut(ArcName, NodeId, NodeId)) {
        let Some(cell) = self.cells.get(&node) else {
            return;
        };
        for (name, &(key, value)) in filled(cell.shape.ephemerons(), &cell.entries) {
            visit(name, key, value);
        }
    }

    fn describe(&self, node: NodeId) -> String {
        format!("{}{node:?}", self.class(node))
    }
}

/// The filled slots with their names.
fn filled<'a, T>(
    slots: &'a Slots,
    contents: &'a BTreeMap<usize, T>,
) -> impl Iterator<Item = (ArcName, &'a T)> {
    contents
        .iter()
        .filter_map(|(&slot, content)| Some((slots.name(slot)?, content)))
}

/// Fills or empties one slot.
fn put<T>(slots: &mut BTreeMap<usize, T>, slot: usize, content: Option<T>) {
    match content {
        Some(content) => slots.insert(slot, content),
        None => slots.remove(&slot),
    };
}

impl Transform for Model {
    type Error = ModelError;

    fn allocate(&mut self, shape: &Shape) -> Result<NodeId, ModelError> {
        let node = NodeId(self.allocated);
        self.allocated = self
            .allocated
            .checked_add(1)
            .ok_or(ModelError::OutOfNames)?;
        self.cells.insert(
            node,
            Cell {
                shape: shape.clone(),
                payload: None,
                strong: BTreeMap::new(),
                weak: BTreeMap::new(),
                entries: BTreeMap::new(),
            },
        );
        Ok(node)
    }

    fn store(
        &mut self,
        node: NodeId,
        slot: usize,
        target: Option<NodeId>,
    ) -> Result<(), ModelError> {
        self.check_slot(node, SlotKind::Strong, slot)?;
        target.map_or(Ok(()), |target| self.check_node(target))?;
        put(&mut self.cell_mut(node)?.strong, slot, target);
        Ok(())
    }

    fn store_weak(
        &mut self,
        node: NodeId,
        slot: usize,
        target: Option<NodeId>,
    ) -> Result<(), ModelError> {
        self.check_slot(node, SlotKind::Weak, slot)?;
        target.map_or(Ok(()), |target| self.check_node(target))?;
        put(&mut self.cell_mut(node)?.weak, slot, target);
        Ok(())
    }

    fn store_ephemeron(
        &mut self,
        node: NodeId,
        slot: usize,
        entry: Option<(NodeId, NodeId)>,
    ) -> Result<(), ModelError> {
        self.check_slot(node, SlotKind::Ephemeron, slot)?;
        if let Some((key, value)) = entry {
            self.check_node(key)?;
            self.check_node(value)?;
        }
        put(&mut self.cell_mut(node)?.entries, slot, entry);
        Ok(())
    }

    fn add_root(&mut self, name: RootName, node: NodeId) -> Result<(), ModelError> {
        self.check_node(node)?;
        self.roots.insert(name, node);
        Ok(())
    }

    fn remove_root(&mut self, name: &RootName) -> Result<(), ModelError> {
        match self.roots.remove(name) {
            Some(_) => Ok(()),
            None => Err(ModelError::NoSuchRoot(name.clone())),
        }
    }

    fn collect(&mut self, dead: &[NodeId]) -> Result<(), ModelError> {
        let reached = Trace::of(self);
        for &node in dead {
            self.check_node(node)?;
            if let Some(path) = reached.path(self, node) {
                return Err(ModelError::Reachable(Box::new(path)));
            }
        }
        let dead: BTreeSet<NodeId> = dead.iter().copied().collect();
        self.cells.retain(|node, _| !dead.contains(node));
        for cell in self.cells.values_mut() {
            cell.strong.retain(|_, target| !dead.contains(target));
            cell.weak.retain(|_, target| !dead.contains(target));
            cell.entries
                .retain(|_, (key, value)| !dead.contains(key) && !dead.contains(value));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{collect_garbage, dead};

    fn pair() -> Shape {
        Shape::new("Pair").with_slots(["car", "cdr"])
    }

    #[test]
    fn refuses_what_does_not_exist_and_changes_nothing() {
        let mut model = Model::new();
        let a = model.allocate(&pair()).unwrap();
        let gone = model.allocate(&pair()).unwrap();
        model.collect(&[gone]).unwrap();
        let before = model.clone();

        assert_eq!(
            model.store(gone, 0, None),
            Err(ModelError::NoSuchNode(gone))
        );
        assert_eq!(
            model.store(a, 0, Some(gone)),
            Err(ModelError::NoSuchNode(gone))
        );
        assert_eq!(
            model
                .store_ephemeron(a, 0, Some((a, a)))
                .unwrap_err()
                .to_string(),
            "node #0 has 0 ephemeron entries, numbered from 0: there is no number 0"
        );
        assert_eq!(
            model.store(a, 2, None).unwrap_err().to_string(),
            "node #0 has 2 strong slots, numbered from 0: there is no number 2"
        );
        assert_eq!(
            model.remove_root(&"global 7".into()),
            Err(ModelError::NoSuchRoot("global 7".into()))
        );
        assert!(model.add_root("r".into(), gone).is_err());
        assert!(model.collect(&[a, gone]).is_err());
        assert_eq!(model, before);
    }

    #[test]
    fn ids_are_not_used_again() {
        let mut model = Model::new();
        let first = model.allocate(&pair()).unwrap();
        model.collect(&[first]).unwrap();
        assert_ne!(model.allocate(&pair()).unwrap(), first);
    }

    #[test]
    fn refuses_to_collect_a_reachable_node_and_says_why() {
        let mut model = Model::new();
        let a = model.allocate(&pair()).unwrap();
        let b = model.allocate(&pair()).unwrap();
        model.store(a, 1, Some(b)).unwrap();
        model.add_root(RootName::indexed("stack", 0), a).unwrap();
        assert_eq!(
            model.collect(&[b]).unwrap_err().to_string(),
            "only dead nodes may be collected, but there is a path to #1:\n\
             root stack[0] -> Pair#0\n  .cdr -> Pair#1"
        );
    }

    #[test]
    fn a_collection_clears_weak_arcs_and_entries() {
        let mut model = Model::new();
        let table = Shape::new("Table").with_weak_slots(1).with_ephemerons(2);
        let table = model.allocate(&table).unwrap();
        let [key, value, other] = [(); 3].map(|()| model.allocate(&pair()).unwrap());
        model.add_root("table".into(), table).unwrap();
        model.store_weak(table, 0, Some(key)).unwrap();
        model.store_ephemeron(table, 0, Some((key, value))).unwrap();
        model
            .store_ephemeron(table, 1, Some((table, other)))
            .unwrap();
        // A value that refers to its own key does not keep the entry alive.
        model.store(value, 0, Some(key)).unwrap();

        assert_eq!(dead(&model), BTreeSet::from([key, value]));
        assert_eq!(
            collect_garbage(&mut model),
            Ok(BTreeSet::from([key, value]))
        );
        assert_eq!(model.weak_slot(table, 0), None);
        assert_eq!(model.ephemeron(table, 0), None);
        assert_eq!(model.ephemeron(table, 1), Some((table, other)));
    }

    #[test]
    fn any_number_of_slots_is_fine() {
        let mut model = Model::new();
        let vast = Shape::new("Vast")
            .with_slots(usize::MAX)
            .with_ephemerons(usize::MAX);
        let node = model.allocate(&vast).unwrap();
        model.store(node, usize::MAX - 1, Some(node)).unwrap();
        assert_eq!(model.slot(node, usize::MAX - 1), Some(node));
        assert_eq!(model.size(node), u64::MAX);
    }
}
