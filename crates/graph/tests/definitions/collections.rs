//! The transformers against their postconditions, and the collector of the specification.

use std::collections::{BTreeMap, BTreeSet};

use liveoak_graph::{
    ArcName, Model, NodeId, Observe, RootName, Shape, Transform, collect_garbage, dead, isomorphic,
    isomorphic_by, same_size, snapshot, well_formed,
};
use proptest::prelude::*;

use crate::brute_force;
use crate::random::plans;

/// All that can be observed of a memory.
#[derive(Clone, Debug, Default, PartialEq)]
struct Observations {
    roots: BTreeMap<RootName, NodeId>,
    nodes: BTreeMap<NodeId, (String, u64)>,
    arcs: BTreeMap<(NodeId, ArcName), NodeId>,
    weak_arcs: BTreeMap<(NodeId, ArcName), NodeId>,
    ephemerons: BTreeMap<(NodeId, ArcName), (NodeId, NodeId)>,
}

fn observe(memory: &Model) -> Observations {
    let mut seen = Observations::default();
    memory.roots(&mut |name, node| {
        seen.roots.insert(name, node);
    });
    for node in brute_force::nodes(memory) {
        let looks = (memory.class(node).to_string(), memory.size(node));
        seen.nodes.insert(node, looks);
        memory.arcs(node, &mut |arc, to| {
            seen.arcs.insert((node, arc), to);
        });
        memory.weak_arcs(node, &mut |arc, to| {
            seen.weak_arcs.insert((node, arc), to);
        });
        memory.ephemerons(node, &mut |arc, key, value| {
            seen.ephemerons.insert((node, arc), (key, value));
        });
    }
    seen
}

/// The map after one key has been filled or emptied.
fn overridden<K: Ord, V>(mut map: BTreeMap<K, V>, key: K, value: Option<V>) -> BTreeMap<K, V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
    map
}

proptest! {
    #[test]
    fn mutators_do_what_they_say_and_nothing_else(
        plan in plans(),
        (node, slot, target, value) in (0..99usize, 0..3usize, prop::option::of(0..99usize), 0..99usize),
    ) {
        let (memory, nodes) = plan.build();
        let node = nodes[node % nodes.len()];
        let target = target.map(|index| nodes[index % nodes.len()]);
        let value = nodes[value % nodes.len()];
        let key = (node, ArcName::Element(slot));
        let before = observe(&memory);

        let mut after = memory.clone();
        after.store(node, slot, target).unwrap();
        let arcs = overridden(before.arcs.clone(), key.clone(), target);
        prop_assert_eq!(observe(&after), Observations { arcs, ..before.clone() });

        let mut after = memory.clone();
        after.store_weak(node, slot, target).unwrap();
        let weak_arcs = overridden(before.weak_arcs.clone(), key.clone(), target);
        prop_assert_eq!(observe(&after), Observations { weak_arcs, ..before.clone() });

        let mut after = memory.clone();
        let entry = target.map(|key| (key, value));
        after.store_ephemeron(node, slot, entry).unwrap();
        let ephemerons = overridden(before.ephemerons.clone(), key, entry);
        prop_assert_eq!(observe(&after), Observations { ephemerons, ..before.clone() });

        let mut after = memory.clone();
        let name = RootName::indexed("root", slot);
        after.add_root(name.clone(), node).unwrap();
        let roots = overridden(before.roots.clone(), name.clone(), Some(node));
        prop_assert_eq!(observe(&after), Observations { roots, ..before.clone() });
        after.remove_root(&name).unwrap();
        let roots = overridden(before.roots.clone(), name, None);
        prop_assert_eq!(observe(&after), Observations { roots, ..before.clone() });

        let mut after = memory.clone();
        let fresh = after.allocate(&Shape::new("Fresh").with_slots(1)).unwrap();
        prop_assert!(!before.nodes.contains_key(&fresh));
        let looks = Some((String::from("Fresh"), 16));
        let all = overridden(before.nodes.clone(), fresh, looks);
        prop_assert_eq!(observe(&after), Observations { nodes: all, ..before });
    }

    #[test]
    fn collecting_some_dead_nodes_leaves_the_rest(plan in plans(), choice in any::<u16>()) {
        let (mut memory, nodes) = plan.build();
        let live = brute_force::live(&memory);
        let chosen = |node: &&NodeId| choice >> node.index() & 1 == 1;
        let doomed: Vec<NodeId> = nodes.iter().filter(chosen).copied().collect();
        let before = observe(&memory);

        if doomed.iter().any(|node| live.contains(node)) {
            prop_assert!(memory.collect(&doomed).is_err());
            prop_assert_eq!(observe(&memory), before);
            return Ok(());
        }
        memory.collect(&doomed).unwrap();
        let stays = |node: &NodeId| !doomed.contains(node);
        let mut expected = before;
        expected.nodes.retain(|node, _| stays(node));
        expected.arcs.retain(|(node, _), to| stays(node) && stays(to));
        expected.weak_arcs.retain(|(node, _), to| stays(node) && stays(to));
        expected.ephemerons.retain(|(node, _), (k, v)| stays(node) && stays(k) && stays(v));
        prop_assert_eq!(observe(&memory), expected);
    }

    #[test]
    fn a_full_collection_is_invisible_and_complete(plan in plans()) {
        let (mut memory, nodes) = plan.build();
        let before = snapshot(&memory).unwrap().model;
        let live = brute_force::live(&memory);
        let collected = collect_garbage(&mut memory).unwrap();

        prop_assert_eq!(collected, &BTreeSet::from_iter(nodes) - &live);
        prop_assert_eq!(brute_force::nodes(&memory), live);
        prop_assert_eq!(dead(&memory), BTreeSet::new());
        prop_assert_eq!(well_formed(&memory), Ok(()));
        let same = isomorphic_by(&before, &memory, same_size(&before, &memory));
        prop_assert!(same.is_ok(), "{:?}", same);
    }

    #[test]
    fn a_snapshot_is_the_whole_memory(plan in plans()) {
        let (memory, nodes) = plan.build();
        let copy = snapshot(&memory).unwrap();
        // Ids are given out in the order of the nodes, so that the copy looks the same.
        prop_assert_eq!(observe(&copy.model), observe(&memory));
        prop_assert!(nodes.iter().all(|node| copy.ids[node] == *node));
        prop_assert!(isomorphic(&memory, &copy.model).is_ok());
    }
}
