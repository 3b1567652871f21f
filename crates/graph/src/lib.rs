//! The specification of garbage collection, executable.
//!
//! Memory is a rooted graph: nodes, arcs between them, and roots. A node is dead iff no path leads
//! to it from the roots. This crate says so in traits, and answers the questions that follow from
//! it in the plainest way that is still fast enough for millions of nodes. It is what every clever
//! collector is tested against, so it is small and pure, recursion-free, and does not panic.
//!
//! | question | answer |
//! |---|---|
//! | What is a memory? | [`Observe`] (its observers), [`Transform`] (its transformers), with [`Name`], [`RootName`], [`ArcName`], [`Shape`] |
//! | Is there one to play with? | [`Model`]; [`snapshot`] makes one of any memory |
//! | Does it make sense? | [`well_formed`] |
//! | What is dead? | [`reachable`], [`dead`], [`collect_garbage`] |
//! | Why is this not dead? | [`shortest_path`], [`shortest_path_between`], [`referrers`], [`Trace`] |
//! | What does it cost? | [`histogram`], [`retained`], [`Dominators`] |
//! | Did the collector do the right thing? | [`isomorphic`], [`isomorphic_by`] |
//!
//! ```
//! use liveoak_graph::{Model, RootName, Shape, Transform, collect_garbage, dead, isomorphic};
//! use liveoak_graph::{shortest_path, snapshot};
//!
//! let mut memory = Model::new();
//! let tree = Shape::new("Tree").with_slots(["left", "right"]);
//! let top = memory.allocate(&tree)?;
//! let leaf = memory.allocate(&tree)?;
//! let lost = memory.allocate(&tree)?;
//! memory.add_root(RootName::indexed("stack", 0), top)?;
//! memory.store(top, 0, Some(leaf))?;
//! memory.store(lost, 1, Some(leaf))?;
//!
//! assert!(dead(&memory).contains(&lost));
//! assert_eq!(
//!     shortest_path(&memory, leaf).unwrap().to_string(),
//!     "root stack[0] -> Tree#0\n  .left -> Tree#1"
//! );
//!
//! // A collection is right iff the program cannot see it, and complete iff nothing dead is left.
//! let before = snapshot(&memory)?.model;
//! collect_garbage(&mut memory)?;
//! assert!(isomorphic(&before, &memory).is_ok());
//! assert!(dead(&memory).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod difference;
mod dominators;
mod histogram;
mod isomorphism;
mod memory;
mod model;
mod name;
mod path;
mod reachability;
mod shape;
mod snapshot;
mod trace;
mod well_formed;

pub use difference::{ArcKind, Difference, Mismatch, Route, Side};
pub use dominators::{Dominator, Dominators};
pub use histogram::{Histogram, Tally, histogram};
pub use isomorphism::{Isomorphism, isomorphic, isomorphic_by, same_size};
pub use memory::{Observe, Transform};
pub use model::{Model, ModelError, NodeId, SlotKind};
pub use name::{ArcName, Name, RootName};
pub use path::{Path, Place, Step, shortest_path, shortest_path_between};
pub use reachability::{Referrer, collect_garbage, dead, reachable, referrers, retained};
pub use shape::{Shape, Slots};
pub use snapshot::{Snapshot, SnapshotError, snapshot};
pub use trace::Trace;
pub use well_formed::{Fault, well_formed};
