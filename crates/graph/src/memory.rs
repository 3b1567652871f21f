//! Memory as a rooted graph, seen through observers and changed by transformers.
//!
//! A memory is not defined by how it is built but by what can be observed of it: its roots, its
//! nodes, the arcs of a node. A transformer is specified by its effect on the observers. In the
//! postconditions below a primed observer is the observation afterwards, `⊕` replaces what a map
//! says about a key, and **every observer that is not mentioned is unchanged**.

use std::fmt::Debug;
use std::hash::Hash;

use crate::{ArcName, Name, RootName, Shape};

/// The observers of a memory.
///
/// Observers are total: of a node that is not allocated they show nothing, and they never panic.
/// A memory that keeps its invariants is [`well_formed`](crate::well_formed).
///
/// Visitors are `dyn` so that a heap implements each observer once, without generic code, and so
/// that a memory can be a trait object. They may be called in any order; the same memory, observed
/// twice without a transformer in between, should use the same order twice, since that makes every
/// answer of this crate reproducible.
pub trait Observe {
    /// The identity of a node, as long as no transformer intervenes. A moving collector may give a
    /// node another one.
    type Node: Copy + Eq + Ord + Hash + Debug;

    /// The arcs into the graph from outside: stacks, globals, registers, handles. No two roots
    /// have the same name.
    fn roots(&self, visit: &mut dyn FnMut(RootName, Self::Node));

    /// Every allocated node once, dead ones included.
    fn nodes(&self, visit: &mut dyn FnMut(Self::Node));

    /// The strong arcs out of `node`. Empty slots are no arcs.
    fn arcs(&self, node: Self::Node, visit: &mut dyn FnMut(ArcName, Self::Node));

    /// What kind of thing `node` is, in the words of the program that allocated it.
    fn class(&self, node: Self::Node) -> Name;

    /// The bytes that `node` itself occupies.
    fn size(&self, node: Self::Node) -> u64;

    /// The arcs out of `node` that do not keep their target alive. A collection removes those
    /// whose target it collects.
    fn weak_arcs(&self, node: Self::Node, visit: &mut dyn FnMut(ArcName, Self::Node)) {
        let _ = (node, visit);
    }

    /// The ephemeron entries of `node`, as (name, key, value). If `node` and the key are both
    /// reachable then so is the value; the entry keeps nothing else alive, the key least of all. A
    /// collection removes the entries whose key it collects.
    fn ephemerons(&self, node: Self::Node, visit: &mut dyn FnMut(ArcName, Self::Node, Self::Node)) {
        let _ = (node, visit);
    }

    /// How reports call `node`.
    fn describe(&self, node: Self::Node) -> String {
        format!("{} {node:?}", self.class(node))
    }
}

/// The transformers of a memory: what a mutator and a collector can do to it.
///
/// A transformer that returns an error has changed nothing.
pub trait Transform: Observe {
    /// Why a transformer was refused.
    type Error: std::error::Error;

    /// Adds a node.
    ///
    /// `nodes' = nodes ∪ {n}` for an `n ∉ nodes`, which is returned. It has the shape's class and
    /// size and no arcs. It is dead until an arc or a root leads to it: a mutator roots it before
    /// it lets a collector run.
    fn allocate(&mut self, shape: &Shape) -> Result<Self::Node, Self::Error>;

    /// Fills or empties the strong slot number `slot` of `node`.
    ///
    /// `arcs'(node) = arcs(node) ⊕ {slot ↦ target}`, without the slot if there is no target.
    fn store(
        &mut self,
        node: Self::Node,
        slot: usize,
        target: Option<Self::Node>,
    ) -> Result<(), Self::Error>;

    /// Fills or empties the weak slot number `slot` of `node`.
    ///
    /// `weak_arcs'(node) = weak_arcs(node) ⊕ {slot ↦ target}`.
    fn store_weak(
        &mut self,
        node: Self::Node,
        slot: usize,
        target: Option<Self::Node>,
    ) -> Result<(), Self::Error>;

    /// Fills or empties the ephemeron entry number `slot` of `node` with a key and a value.
    ///
    /// `ephemerons'(node) = ephemerons(node) ⊕ {slot ↦ entry}`.
    fn store_ephemeron(
        &mut self,
        node: Self::Node,
        slot: usize,
        entry: Option<(Self::Node, Self::Node)>,
    ) -> Result<(), Self::Error>;

    /// Makes `name` a root that leads to `node`, wherever it led before.
    ///
    /// `roots' = roots ⊕ {name ↦ node}`.
    fn add_root(&mut self, name: RootName, node: Self::Node) -> Result<(), Self::Error>;

    /// Removes the root `name`.
    ///
    /// `roots' = roots` without `name`.
    fn remove_root(&mut self, name: &RootName) -> Result<(), Self::Error>;

    /// Collects dead nodes, not necessarily all of them.
    ///
    /// Precondition (safety): every node of `dead` is dead. Then `nodes' = nodes \ dead`, and
    /// `arcs`, `weak_arcs` and `ephemerons` are what remains of them between the nodes that remain.
    /// Hence the reachable part of the memory is as before, but for weak arcs and entries whose
    /// target or key is gone.
    fn collect(&mut self, dead: &[Self::Node]) -> Result<(), Self::Error>;
}
