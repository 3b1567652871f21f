//! What must hold of every memory before it makes sense to ask it anything else.
//!
//! A collector that frees a live node, or forgets to clear a weak arc, breaks this first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use crate::{ArcName, Observe, RootName};

/// The first thing that is wrong with a memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault<N: Debug> {
    /// The observer of nodes showed a node twice.
    #[error("node {0:?} is listed twice among the nodes")]
    RepeatedNode(N),
    /// Two roots have the same name.
    #[error("there are two roots {0}")]
    RepeatedRoot(RootName),
    /// A root leads to something that is not allocated.
    #[error("root {0} leads to {1:?}, which is not allocated")]
    DanglingRoot(RootName, N),
    /// A strong arc leads to something that is not allocated.
    #[error("arc {arc} of node {holder:?} leads to {target:?}, which is not allocated")]
    DanglingArc {
        /// The node that has the arc.
        holder: N,
        /// The name of the arc.
        arc: ArcName,
        /// Where it leads.
        target: N,
    },
    /// A weak arc leads to something that is not allocated.
    #[error("weak arc {arc} of node {holder:?} leads to {target:?}, which is not allocated")]
    DanglingWeakArc {
        /// The node that has the arc.
        holder: N,
        /// The name of the arc.
        arc: ArcName,
        /// Where it leads.
        target: N,
    },
    /// The key or the value of an entry is not allocated.
    #[error("ephemeron entry {arc} of node {holder:?} holds {target:?}, which is not allocated")]
    DanglingEphemeron {
        /// The node that has the entry.
        holder: N,
        /// The name of the entry.
        arc: ArcName,
        /// The key or value in question.
        target: N,
    },
}

/// Whether nodes are listed once, roots have different names, and every root, arc, weak arc, key
/// and value of an allocated node, dead or not, is an allocated node.
pub fn well_formed<M: Observe + ?Sized>(memory: &M) -> Result<(), Fault<M::Node>> {
    let mut nodes = BTreeSet::new();
    let mut fault = First(None);
    memory.nodes(&mut |node| {
        let fresh = nodes.insert(node);
        fault.unless(fresh, || Fault::RepeatedNode(node));
    });
    let mut roots = BTreeMap::new();
    memory.roots(&mut |name, node| {
        let fresh = roots.insert(name.clone(), node).is_none();
        fault.unless(fresh, || Fault::RepeatedRoot(name.clone()));
        fault.unless(nodes.contains(&node), || Fault::DanglingRoot(name, node));
    });
    for &holder in &nodes {
        memory.arcs(holder, &mut |arc, target| {
            fault.unless(nodes.contains(&target), || Fault::DanglingArc {
                holder,
                arc,
                target,
            });
        });
        memory.weak_arcs(holder, &mut |arc, target| {
            fault.unless(nodes.contains(&target), || Fault::DanglingWeakArc {
                holder,
                arc,
                target,
            });
        });
        memory.ephemerons(holder, &mut |arc, key, value| {
            for target in [key, value] {
                fault.unless(nodes.contains(&target), || Fault::DanglingEphemeron {
                    holder,
                    arc: arc.clone(),
                    target,
                });
            }
        });
    }
    fault.0.map_or(Ok(()), Err)
}

/// Keeps the first fault that it is told of.
struct First<N: Debug>(Option<Fault<N>>);

impl<N: Debug> First<N> {
    fn unless(&mut self, fine: bool, fault: impl FnOnce() -> Fault<N>) {
        if !fine && self.0.is_none() {
            self.0 = Some(fault());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    /// A memory that shows whatever it is told to.
    #[derive(Default)]
    struct Fake {
        nodes: Vec<u8>,
        roots: Vec<u8>,
        arcs: Vec<u8>,
        weak: Vec<u8>,
        entries: Vec<(u8, u8)>,
    }

    impl Observe for Fake {
        type Node = u8;
        fn roots(&self, visit: &mut dyn FnMut(RootName, u8)) {
            self.roots.iter().for_each(|&node| visit("r".into(), node));
        }
        fn nodes(&self, visit: &mut dyn FnMut(u8)) {
            self.nodes.iter().for_each(|&node| visit(node));
        }
        fn arcs(&self, _: u8, visit: &mut dyn FnMut(ArcName, u8)) {
            self.arcs.iter().for_each(|&node| visit("a".into(), node));
        }
        fn class(&self, _: u8) -> Name {
            "Fake".into()
        }
        fn size(&self, _: u8) -> u64 {
            1
        }
        fn weak_arcs(&self, _: u8, visit: &mut dyn FnMut(ArcName, u8)) {
            self.weak.iter().for_each(|&node| visit("w".into(), node));
        }
        fn ephemerons(&self, _: u8, visit: &mut dyn FnMut(ArcName, u8, u8)) {
            let mut visit = |&(key, value): &(u8, u8)| visit("e".into(), key, value);
            self.entries.iter().for_each(&mut visit);
        }
    }

    #[test]
    fn every_fault_is_found_and_named() {
        let fake = |change: fn(&mut Fake)| {
            let mut fake = Fake {
                nodes: vec![1, 2],
                roots: vec![1],
                arcs: vec![2],
                weak: vec![1],
                entries: vec![(1, 2)],
            };
            change(&mut fake);
            well_formed(&fake).map_err(|fault| fault.to_string())
        };
        let wrong = |text: &str| Err(text.to_owned());
        assert_eq!(fake(|_| ()), Ok(()));
        assert_eq!(
            fake(|f| f.nodes.push(1)),
            wrong("node 1 is listed twice among the nodes")
        );
        assert_eq!(fake(|f| f.roots.push(2)), wrong("there are two roots r"));
        assert_eq!(
            fake(|f| f.roots = vec![3]),
            wrong("root r leads to 3, which is not allocated")
        );
        assert_eq!(
            fake(|f| f.arcs.push(4)),
            wrong("arc .a of node 1 leads to 4, which is not allocated")
        );
        assert_eq!(
            fake(|f| f.weak.push(5)),
            wrong("weak arc .w of node 1 leads to 5, which is not allocated")
        );
        assert_eq!(
            fake(|f| f.entries.push((1, 6))),
            wrong("ephemeron entry .e of node 1 holds 6, which is not allocated")
        );
    }
}
