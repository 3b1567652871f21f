//! Reachability and shortest paths.

use liveoak_graph::{
    Model, NodeId, Observe, Path, Referrer, Trace, dead, reachable, referrers, shortest_path,
    shortest_path_between,
};
use proptest::prelude::*;

use crate::brute_force::{self, Nodes};
use crate::random::{plans, strong_plans};

proptest! {
    #[test]
    fn reachable_is_the_least_fixpoint(plan in plans()) {
        let (memory, nodes) = plan.build();
        let live = brute_force::live(&memory);
        prop_assert_eq!(&reachable(&memory), &live);
        let all = Nodes::from_iter(nodes);
        prop_assert_eq!(dead(&memory), &all - &live);
    }

    #[test]
    fn depth_is_the_round_of_the_iteration(plan in plans()) {
        let (memory, nodes) = plan.build();
        let rounds = brute_force::rounds(&memory, None);
        let trace = Trace::of(&memory);
        for node in nodes {
            let round = rounds.iter().position(|round| round.contains(&node));
            prop_assert_eq!(trace.depth(node), round);
        }
        let depths: Vec<_> = trace.nodes().map(|node| trace.depth(node)).collect();
        prop_assert!(depths.is_sorted());
    }

    #[test]
    fn reachable_is_the_transitive_closure(plan in strong_plans()) {
        let (memory, nodes) = plan.build();
        let distances = brute_force::distances(&memory);
        let roots = brute_force::roots(&memory);
        let led_to = |&to: &NodeId| roots.iter().any(|&root| distances.contains_key(&(root, to)));
        prop_assert_eq!(reachable(&memory), nodes.into_iter().filter(led_to).collect());
    }

    #[test]
    fn paths_from_the_roots_are_paths_and_shortest(plan in strong_plans()) {
        let (memory, nodes) = plan.build();
        let distances = brute_force::distances(&memory);
        let roots = brute_force::roots(&memory);
        for node in nodes {
            let shortest = roots.iter().filter_map(|&root| distances.get(&(root, node))).min();
            let path = shortest_path(&memory, node);
            prop_assert_eq!(path.as_ref().map(Path::length), shortest.copied());
            if let Some(path) = path {
                prop_assert_eq!(path.target(), node);
                check_path(&memory, &path)?;
            }
        }
    }

    #[test]
    fn paths_between_nodes_are_paths_and_shortest(plan in strong_plans()) {
        let (memory, nodes) = plan.build();
        let distances = brute_force::distances(&memory);
        for &from in &nodes {
            for &to in &nodes {
                let path = shortest_path_between(&memory, from, to);
                let shortest = distances.get(&(from, to)).copied();
                prop_assert_eq!(path.as_ref().map(Path::length), shortest);
                if let Some(path) = path {
                    prop_assert_eq!((path.start.node, path.target()), (from, to));
                    check_path(&memory, &path)?;
                }
            }
        }
    }

    #[test]
    fn paths_over_entries_are_paths_and_never_circular(plan in plans()) {
        let (memory, _) = plan.build();
        let trace = Trace::of(&memory);
        for node in trace.nodes() {
            let path = trace.path(&memory, node).unwrap();
            check_path(&memory, &path)?;
            for step in &path.steps {
                if let Some(key) = &step.key {
                    prop_assert!(trace.depth(key.node) < trace.depth(step.to.node));
                }
            }
        }
    }

    #[test]
    fn referrers_are_the_arcs_backwards(plan in plans()) {
        let (memory, nodes) = plan.build();
        for &node in &nodes {
            let mut expected = Vec::new();
            memory.roots(&mut |name, target| {
                expected.extend((target == node).then_some(Referrer::Root(name)));
            });
            for &holder in &nodes {
                memory.arcs(holder, &mut |arc, target| {
                    expected.extend((target == node).then_some(Referrer::Arc { holder, arc }));
                });
                memory.ephemerons(holder, &mut |arc, key, value| {
                    let referrer = Referrer::Value { holder, arc, key };
                    expected.extend((value == node).then_some(referrer));
                });
            }
            prop_assert_eq!(referrers(&memory, node), expected);
        }
    }
}

/// Every reference of the path is in the memory, under its name.
fn check_path(memory: &Model, path: &Path<NodeId>) -> Result<(), TestCaseError> {
    let mut here = path.start.node;
    if let Some(root) = &path.root {
        prop_assert_eq!(memory.root(root), Some(here));
    }
    for step in &path.steps {
        let mut found = false;
        match &step.key {
            None => memory.arcs(here, &mut |arc, target| {
                found |= (&arc, target) == (&step.arc, step.to.node);
            }),
            Some(place) => memory.ephemerons(here, &mut |arc, key, value| {
                found |= (&arc, key, value) == (&step.arc, place.node, step.to.node);
            }),
        }
        prop_assert!(found, "{:?} has no {}", here, step.arc);
        here = step.to.node;
    }
    Ok(())
}
