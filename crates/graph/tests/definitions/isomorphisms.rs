//! Isomorphism: is there a one-to-one map that respects roots, arcs and classes?

use std::collections::{BTreeMap, BTreeSet};

use liveoak_graph::{ArcName, Model, NodeId, Observe, RootName, isomorphic};
use proptest::prelude::*;

use crate::brute_force;
use crate::random::{Plan, plans};

/// A permutation for every number of nodes that a plan can have.
fn shuffled(plan: Plan) -> impl Strategy<Value = (Plan, Vec<usize>)> {
    let order = Just(Vec::from_iter(0..plan.sizes.len())).prop_shuffle();
    (Just(plan), order)
}

/// Plans of a few nodes, so that all maps can be tried.
fn tiny_plans() -> impl Strategy<Value = Plan> {
    plans().prop_map(|mut plan| {
        plan.sizes.truncate(4);
        plan.arcs.truncate(6);
        plan.entries.truncate(2);
        plan
    })
}

/// A plan and another that differs from it in at most one arc, root or entry.
fn nearly_equal_plans() -> impl Strategy<Value = (Plan, Plan)> {
    let edits = (0..4usize, any::<prop::sample::Index>(), 0..4usize);
    (tiny_plans(), edits).prop_map(|(plan, (what, which, to))| {
        let mut other = plan.clone();
        match what {
            0 if !other.arcs.is_empty() => other.arcs[which.index(plan.arcs.len())].2 = to,
            1 if !other.roots.is_empty() => other.roots[which.index(plan.roots.len())].1 = to,
            2 if !other.entries.is_empty() => other.entries[which.index(plan.entries.len())].3 = to,
            3 if !other.weak.is_empty() => other.weak[which.index(plan.weak.len())].2 = to,
            _ => {}
        }
        (plan, other)
    })
}

proptest! {
    #[test]
    fn a_memory_laid_out_differently_is_the_same((plan, order) in plans().prop_flat_map(shuffled)) {
        let (left, left_nodes) = plan.build();
        let (right, right_nodes) = plan.build_in_order(&order);
        let map = isomorphic(&left, &right).unwrap();
        let live = brute_force::live(&left);
        prop_assert_eq!(map.pairs().len(), live.len());
        for (&a, &b) in left_nodes.iter().zip(&right_nodes) {
            let expected = live.contains(&a);
            prop_assert_eq!(map.right_of(a), expected.then_some(b));
            prop_assert_eq!(map.left_of(b), expected.then_some(a));
        }
    }

    #[test]
    fn isomorphic_iff_some_map_is_an_isomorphism((left, right) in nearly_equal_plans()) {
        let ((left, _), (right, _)) = (left.build(), right.build());
        let expected = some_map_is_an_isomorphism(&left, &right);
        prop_assert_eq!(isomorphic(&left, &right).is_ok(), expected);
        prop_assert_eq!(isomorphic(&right, &left).is_ok(), expected);
    }
}

/// The reachable part of a memory as a value, its nodes renamed.
type Picture = (
    BTreeSet<(RootName, usize)>,
    BTreeSet<(usize, String)>,
    BTreeSet<(&'static str, usize, ArcName, Vec<usize>)>,
);

fn picture(memory: &Model, names: &BTreeMap<NodeId, usize>) -> Picture {
    let (mut roots, mut classes, mut arcs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    memory.roots(&mut |name, node| {
        roots.insert((name, names[&node]));
    });
    for (&node, &name) in names {
        classes.insert((name, memory.class(node).to_string()));
        memory.arcs(node, &mut |arc, to| {
            arcs.insert(("strong", name, arc, vec![names[&to]]));
        });
        memory.weak_arcs(node, &mut |arc, to| {
            if let Some(&to) = names.get(&to) {
                arcs.insert(("weak", name, arc, vec![to]));
            }
        });
        memory.ephemerons(node, &mut |arc, key, value| {
            if let Some(&key) = names.get(&key) {
                arcs.insert(("entry", name, arc, vec![key, names[&value]]));
            }
        });
    }
    (roots, classes, arcs)
}

fn some_map_is_an_isomorphism(left: &Model, right: &Model) -> bool {
    let left_nodes = Vec::from_iter(brute_force::live(left));
    let right_nodes = Vec::from_iter(brute_force::live(right));
    if left_nodes.len() != right_nodes.len() {
        return false;
    }
    let left_picture = picture(left, &left_nodes.iter().copied().zip(0..).collect());
    permutations(left_nodes.len()).into_iter().any(|names| {
        let names = right_nodes.iter().copied().zip(names).collect();
        picture(right, &names) == left_picture
    })
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut permutations = vec![Vec::new()];
    for item in 0..n {
        permutations = permutations
            .into_iter()
            .flat_map(|shorter: Vec<usize>| {
                (0..=shorter.len()).map(move |at| {
                    let mut longer = shorter.clone();
                    longer.insert(at, item);
                    longer
                })
            })
            .collect();
    }
    permutations
}
