//! Dominators and retained sizes: what would be dead if a node were not there?

use liveoak_graph::{Dominator, Dominators, Model, NodeId, Observe, retained};
use proptest::prelude::*;

use crate::brute_force::{self, Nodes};
use crate::random::{plans, strong_plans};

proptest! {
    #[test]
    fn dominated_is_what_dies_without(plan in strong_plans()) {
        let (memory, nodes) = plan.build();
        let dominators = Dominators::of(&memory);
        for &dominator in &nodes {
            let dying = dying_without(&memory, dominator);
            for &node in &nodes {
                prop_assert_eq!(dominators.dominates(dominator, node), dying.contains(&node));
            }
        }
    }

    #[test]
    fn the_immediate_dominator_is_the_closest(plan in strong_plans()) {
        let (memory, nodes) = plan.build();
        let dominators = Dominators::of(&memory);
        let live = brute_force::live(&memory);
        for &node in &nodes {
            // The strict dominators form a chain. The closest has the fewest nodes dying with it.
            let closest = nodes
                .iter()
                .filter(|&&d| d != node && dying_without(&memory, d).contains(&node))
                .min_by_key(|&&d| dying_without(&memory, d).len());
            let expected = live.contains(&node).then_some(match closest {
                Some(&dominator) => Dominator::Node(dominator),
                None => Dominator::Roots,
            });
            prop_assert_eq!(dominators.immediate_dominator(node), expected);
        }
    }

    #[test]
    fn retained_size_is_the_size_of_what_dies_without(plan in strong_plans()) {
        let (memory, nodes) = plan.build();
        let dominators = Dominators::of(&memory);
        for node in nodes {
            let dying = dying_without(&memory, node);
            prop_assert_eq!(dominators.retained_size(Dominator::Node(node)), size(&memory, &dying));
        }
        let live = brute_force::live(&memory);
        prop_assert_eq!(dominators.retained_size(Dominator::Roots), size(&memory, &live));
    }

    #[test]
    fn retained_is_what_dies_without(plan in plans()) {
        let (memory, nodes) = plan.build();
        for node in nodes {
            prop_assert_eq!(retained(&memory, node), dying_without(&memory, node));
        }
    }

    #[test]
    fn with_ephemerons_the_tree_approximates_from_below(plan in plans()) {
        let (memory, nodes) = plan.build();
        let dominators = Dominators::of(&memory);
        for &dominator in &nodes {
            let dying = dying_without(&memory, dominator);
            let dominated = |node: &&NodeId| dominators.dominates(dominator, **node);
            prop_assert!(nodes.iter().filter(dominated).all(|node| dying.contains(node)));
            let retained = dominators.retained_size(Dominator::Node(dominator));
            prop_assert!(retained <= size(&memory, &dying));
        }
    }

    #[test]
    fn children_are_the_tree_downwards(plan in plans()) {
        let (memory, _) = plan.build();
        let dominators = Dominators::of(&memory);
        let mut seen = Nodes::new();
        let mut worklist = vec![Dominator::Roots];
        while let Some(parent) = worklist.pop() {
            for child in dominators.children(parent) {
                prop_assert_eq!(dominators.immediate_dominator(child), Some(parent));
                prop_assert!(seen.insert(child));
                worklist.push(Dominator::Node(child));
            }
        }
        prop_assert_eq!(&seen, &brute_force::live(&memory));
        prop_assert_eq!(dominators.nodes().collect::<Nodes>(), seen);
    }
}

fn dying_without(memory: &Model, node: NodeId) -> Nodes {
    &brute_force::live(memory) - &brute_force::live_without(memory, node)
}

fn size(memory: &Model, nodes: &Nodes) -> u64 {
    nodes.iter().map(|&node| memory.size(node)).sum()
}
