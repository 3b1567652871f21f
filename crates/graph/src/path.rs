//! Paths: the reason why a node is not dead.

use std::fmt;

use crate::{ArcName, Name, Observe, RootName, Trace};

/// A shortest path from a root, or from a node, to a node.
///
/// It prints one reference per line:
///
/// ```text
/// root stack[0] -> Tree#1
///   .left -> Table#2
///   [4] => Value#9 because of key Symbol#7
/// ```
///
/// The double arrow is an ephemeron entry: its holder keeps the value alive as long as something
/// else keeps the key alive. The path to a key never depends on the entry that it explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<N> {
    /// The root where the path begins; nothing if it begins at a node.
    pub root: Option<RootName>,
    /// The first node of the path.
    pub start: Place<N>,
    /// The arcs from there on.
    pub steps: Vec<Step<N>>,
}

/// One arc of a path, and the node that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<N> {
    /// The name of the arc, or of the ephemeron entry.
    pub arc: ArcName,
    /// The key, if the arc leads from the holder of an ephemeron entry to the value.
    pub key: Option<Place<N>>,
    /// The node that the arc leads to.
    pub to: Place<N>,
}

/// A node on a path, with what a report needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<N> {
    /// The node.
    pub node: N,
    /// Its class.
    pub class: Name,
    /// How its memory describes it.
    pub description: String,
}

impl<N: Copy> Place<N> {
    /// The place of `node` in `memory`.
    pub fn of<M: Observe<Node = N> + ?Sized>(memory: &M, node: N) -> Self {
        Place {
            node,
            class: memory.class(node),
            description: memory.describe(node),
        }
    }
}

impl<N: Copy> Path<N> {
    /// How many arcs the path has, the root not counted.
    pub fn length(&self) -> usize {
        self.steps.len()
    }

    /// The node that the path leads to.
    pub fn target(&self) -> N {
        self.steps.last().map_or(&self.start, |step| &step.to).node
    }

    /// The nodes on the path, from the first to the target.
    pub fn nodes(&self) -> impl Iterator<Item = N> {
        std::iter::once(self.start.node).chain(self.steps.iter().map(|step| step.to.node))
    }
}

impl<N> fmt::Display for Path<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Some(root) => write!(f, "root {root} -> {}", self.start)?,
            None => write!(f, "{}", self.start)?,
        }
        for Step { arc, key, to } in &self.steps {
            match key {
                None => write!(f, "\n  {arc} -> {to}")?,
                Some(key) => write!(f, "\n  {arc} => {to} because of key {key}")?,
            }
        }
        Ok(())
    }
}

impl<N> fmt::Display for Place<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

/// A shortest path from the roots to `node`, or nothing if `node` is dead.
///
/// For the paths to many nodes of one memory, make one [`Trace`] and ask it.
pub fn shortest_path<M: Observe + ?Sized>(memory: &M, node: M::Node) -> Option<Path<M::Node>> {
    Trace::of(memory).path(memory, node)
}

/// A shortest path from `from` to `to`: the path that there would be if `from` were the only root.
pub fn shortest_path_between<M: Observe + ?Sized>(
    memory: &M,
    from: M::Node,
    to: M::Node,
) -> Option<Path<M::Node>> {
    Trace::from_node(memory, from).path(memory, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, NodeId, Shape, Transform};

    /// Two roots, `table` and `list`; the list is long, and holds the key at its end.
    fn table_and_list() -> (Model, NodeId, NodeId, NodeId) {
        let mut model = Model::new();
        let table = Shape::new("Table").with_ephemerons(1);
        let cell = Shape::new("Cell").with_slots(["item", "next"]);
        let table = model.allocate(&table).unwrap();
        let [first, second, key, value] = [(); 4].map(|()| model.allocate(&cell).unwrap());
        model.add_root("table".into(), table).unwrap();
        model.add_root(RootName::indexed("list", 0), first).unwrap();
        model.store(first, 1, Some(second)).unwrap();
        model.store(second, 0, Some(key)).unwrap();
        model.store_ephemeron(table, 0, Some((key, value))).unwrap();
        (model, second, key, value)
    }

    #[test]
    fn prints_one_reference_per_line() {
        let (model, second, key, value) = table_and_list();
        assert_eq!(
            shortest_path(&model, key).unwrap().to_string(),
            "root list[0] -> Cell#1\n  .next -> Cell#2\n  .item -> Cell#3"
        );
        assert_eq!(
            shortest_path(&model, value).unwrap().to_string(),
            "root table -> Table#0\n  [0] => Cell#4 because of key Cell#3"
        );
        let between = shortest_path_between(&model, second, key).unwrap();
        assert_eq!(between.to_string(), "Cell#2\n  .item -> Cell#3");
        assert_eq!(shortest_path_between(&model, key, second), None);
    }

    #[test]
    fn no_value_explains_itself() {
        // The key now hangs from the value, and only the list keeps the value alive. The entry
        // would be the shorter path to the value, but it proves nothing.
        let (mut model, second, key, value) = table_and_list();
        model.store(second, 0, Some(value)).unwrap();
        model.store(value, 0, Some(key)).unwrap();
        let path = shortest_path(&model, value).unwrap();
        assert_eq!(path.length(), 2);
        assert_eq!(path.root, Some("list[0]".into()));
    }

    #[test]
    fn a_node_is_at_no_distance_from_itself() {
        let (model, _, key, _) = table_and_list();
        let path = shortest_path_between(&model, key, key).unwrap();
        assert_eq!((path.length(), path.target()), (0, key));
    }
}
