//! How two memories differ, in words that lead to the place.

use std::fmt;

use crate::{ArcName, Name, RootName};

/// The first difference between two memories, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {mismatch}")]
pub struct Difference {
    /// The way that leads to it, in both memories.
    pub at: Route,
    /// What is different there.
    pub mismatch: Box<Mismatch>,
}

/// How two nodes differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Only one memory has the root.
    #[error("the {lacking} memory has no root {root}")]
    Root {
        /// The name of the root.
        root: RootName,
        /// The memory that lacks it.
        lacking: Side,
    },
    /// Only one of the nodes has the arc. Weak arcs to dead nodes and entries with a dead key do
    /// not count.
    #[error("the {lacking} node has no {kind} {arc}")]
    Arc {
        /// The name of the arc.
        arc: ArcName,
        /// What kind of arc it is.
        kind: ArcKind,
        /// The memory that lacks it.
        lacking: Side,
    },
    /// The nodes have different classes.
    #[error("the left node is of class {left}, the right one of class {right}")]
    Class {
        /// The class of the left node.
        left: Name,
        /// The class of the right node.
        right: Name,
    },
    /// One of the nodes was met before, with another partner: one memory shares what the other
    /// has twice.
    #[error("left {left} meets right {right}, but the {met} one has met {partner} before")]
    Sharing {
        /// The left node.
        left: String,
        /// The right node.
        right: String,
        /// Which of the two was met before.
        met: Side,
        /// Its partner then.
        partner: String,
    },
    /// The caller found that the nodes do not agree.
    #[error("{0}")]
    Contents(String),
}

/// One of the two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first argument.
    Left,
    /// The second argument.
    Right,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Left => "left",
            Side::Right => "right",
        })
    }
}

/// The kinds of arcs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArcKind {
    /// A strong arc.
    Strong,
    /// A weak arc to a reachable node.
    Weak,
    /// An ephemeron entry with a reachable key.
    Ephemeron,
}

impl fmt::Display for ArcKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArcKind::Strong => "arc",
            ArcKind::Weak => "weak arc",
            ArcKind::Ephemeron => "ephemeron entry",
        })
    }
}

/// The names on the way to a pair of nodes: `root stack[0] .next .item [3]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The root; nothing if the roots themselves are compared.
    pub root: Option<RootName>,
    /// The arcs, strong or weak, or the entries with their keys or values.
    pub arcs: Vec<ArcName>,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// How many arcs are shown at either end of a long route.
        const SHOWN: usize = 8;
        let Some(root) = &self.root else {
            return f.write_str("at the roots");
        };
        write!(f, "at root {root}")?;
        let hidden = self.arcs.len().saturating_sub(2 * SHOWN);
        for (i, arc) in self.arcs.iter().enumerate() {
            if hidden > 0 && i == SHOWN {
                write!(f, " ({hidden} more)")?;
            }
            if i < SHOWN || i >= SHOWN + hidden {
                write!(f, " {arc}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_route_is_shortened() {
        let route = Route {
            root: Some("r".into()),
            arcs: (0..1000).map(ArcName::Element).collect(),
        };
        assert_eq!(
            route.to_string(),
            "at root r [0] [1] [2] [3] [4] [5] [6] [7] (984 more) \
             [992] [993] [994] [995] [996] [997] [998] [999]"
        );
    }
}
