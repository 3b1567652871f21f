//! A list of a million nodes: deep enough to overflow the stack of anything that recurses along
//! arcs, and large enough to show anything that is not close to linear.

use liveoak_graph::{
    Dominator, Dominators, Model, NodeId, Observe, Shape, Trace, Transform, collect_garbage, dead,
    histogram, isomorphic, reachable, referrers, retained, shortest_path, shortest_path_between,
    snapshot, well_formed,
};

const LENGTH: usize = 1_000_000;

/// A doubly linked list with a root at its head. The arcs back make every suffix a cycle.
fn list() -> (Model, NodeId, NodeId) {
    let mut model = Model::new();
    let cell = Shape::new("Cell").with_slots(["next", "previous"]);
    let head = model.allocate(&cell).unwrap();
    model.add_root("list".into(), head).unwrap();
    let mut last = head;
    for _ in 1..LENGTH {
        let next = model.allocate(&cell).unwrap();
        model.store(last, 0, Some(next)).unwrap();
        model.store(next, 1, Some(last)).unwrap();
        last = next;
    }
    (model, head, last)
}

#[test]
fn paths_are_as_long_as_the_list() {
    let (model, head, last) = list();
    assert_eq!(reachable(&model).len(), LENGTH);
    let path = shortest_path(&model, last).unwrap();
    assert_eq!(path.length(), LENGTH - 1);
    assert_eq!(path.to_string().lines().count(), LENGTH);
    let back = shortest_path_between(&model, last, head).unwrap();
    assert_eq!(back.length(), LENGTH - 1);
    assert_eq!(referrers(&model, last).len(), 1);
    assert_eq!(well_formed(&model), Ok(()));
}

#[test]
fn every_cell_dominates_the_rest_of_the_list() {
    let (model, head, last) = list();
    let dominators = Dominators::of(&model);
    let total = LENGTH as u64 * model.size(head);
    assert_eq!(dominators.retained_size(Dominator::Node(head)), total);
    assert_eq!(
        dominators.retained_size(Dominator::Node(last)),
        model.size(last)
    );
    assert!(dominators.dominates(head, last) && !dominators.dominates(last, head));
    assert_eq!(retained(&model, head).len(), LENGTH);
    assert_eq!(histogram(&model, dominators.nodes()).total().bytes, total);
}

#[test]
fn the_list_is_compared_and_collected() {
    let (mut model, _, last) = list();
    let mut copy = snapshot(&model).unwrap().model;
    assert!(isomorphic(&model, &copy).is_ok());
    model.store(last, 0, Some(last)).unwrap();
    let difference = isomorphic(&model, &copy).unwrap_err();
    assert_eq!(difference.at.arcs.len(), LENGTH - 1);
    assert!(difference.to_string().len() < 500);

    copy.remove_root(&"list".into()).unwrap();
    assert_eq!(dead(&copy).len(), LENGTH);
    collect_garbage(&mut copy).unwrap();
    assert!(copy.is_empty());
}

#[test]
fn a_chain_of_entries_is_followed_to_its_end() {
    // Each entry waits for the value of the one before it.
    let mut model = Model::new();
    let table = Shape::new("Table").with_ephemerons(LENGTH);
    let table = model.allocate(&table).unwrap();
    let object = Shape::new("Object");
    let mut key = model.allocate(&object).unwrap();
    model.add_root("table".into(), table).unwrap();
    model.add_root("key".into(), key).unwrap();
    for slot in 0..LENGTH {
        let value = model.allocate(&object).unwrap();
        let entry = Some((key, value));
        model
            .store_ephemeron(table, LENGTH - 1 - slot, entry)
            .unwrap();
        key = value;
    }
    let trace = Trace::of(&model);
    assert_eq!(trace.depth(key), Some(LENGTH));
    assert_eq!(trace.path(&model, key).unwrap().length(), 1);
}
