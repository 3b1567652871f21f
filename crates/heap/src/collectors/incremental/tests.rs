//! Each operation against the text of the seed; whole programs in [`programs`].

mod programs;

use super::machine::{Colour, Machine, Phase, SEGMENT};
use super::{Incremental, thresholds};
use crate::config::{HeapConfig, IncrementalSettings};
use crate::heap::Heap;
use crate::mutator::Mutator;
use crate::object;
use crate::reference::Ref;
use crate::shape::{Shape, ShapeSpec};

/// A small heap whose machine moves one object at a time, and checks itself after each operation.
fn config() -> HeapConfig {
    let mut config = HeapConfig::default()
        .with_max_bytes(2 << 20)
        .with_sanity(true);
    config.huge_pages = false;
    config.incremental = IncrementalSettings {
        mark_num: 1,
        sweep_num: 1,
        free_num: 1,
    };
    config
}

struct Lab {
    heap: Heap<Incremental>,
    mutator: Mutator<Incremental>,
    /// Two references and a word.
    node: Shape,
}

const NUMBER: usize = 2;

impl Lab {
    fn new(config: HeapConfig) -> Lab {
        let heap = Heap::new(config).unwrap();
        let node = ShapeSpec::fixed("Node")
            .reference("a")
            .reference("b")
            .word("number");
        Lab {
            node: heap.define(node).unwrap(),
            mutator: heap.mutator(),
            heap,
        }
    }

    /// A node with a number, not rooted.
    fn node(&mut self, number: u64) -> Ref {
        let node = self.mutator.allocate(&self.node).unwrap();
        // SAFETY: allocated just now.
        unsafe { self.mutator.write_word(node, NUMBER, number) };
        node
    }

    /// A node with a number, on the stack of roots.
    fn root(&mut self, number: u64) -> Ref {
        let node = self.node(number);
        self.mutator.stack().push(node);
        node
    }

    fn write(&mut self, object: Ref, slot: usize, value: Ref) {
        // SAFETY: objects do not move, and the tests use only those that are reachable.
        unsafe { self.mutator.write(object, slot, value) }
    }

    fn number(&self, object: Ref) -> u64 {
        // SAFETY: as above.
        unsafe { self.mutator.read_word(object, NUMBER) }
    }

    fn machine<T>(&mut self, mut look: impl FnMut(&mut Machine) -> T) -> T {
        self.mutator
            .inspect(|world| look(&mut world.collector().machine))
    }

    fn phase(&mut self) -> Phase {
        self.machine(|machine| machine.phase())
    }

    fn colour(&mut self, object: Ref) -> Colour {
        // SAFETY: the tests ask only about objects that have not been freed.
        self.machine(|machine| unsafe { machine.colour(object) })
    }

    fn step_until(&mut self, phase: Phase) {
        let mut steps = 0;
        while self.phase() != phase {
            self.mutator.step();
            steps += 1;
            assert!(steps < 100_000, "{phase:?} is never reached");
        }
    }

    fn exists(&mut self, object: Ref) -> bool {
        let address = object.address();
        self.machine(|machine| machine.space().is_object_start(address))
    }
}

// Figure 3.
#[test]
fn mark_field_makes_white_grey_and_pushes() {
    let mut lab = Lab::new(config());
    let p = lab.root(1);
    let q = lab.root(2);
    lab.mutator.step();
    lab.machine(|machine| {
        // Both roots are grey already.
        let count = machine.stack_count();
        assert_eq!((machine.stack(), count), (&[p, q][..], 2));
        for nothing in [Ref::NULL, Ref::immediate(5), Ref::from_address(8), p] {
            // SAFETY: nulls, immediates and what lies outside are allowed.
            assert!(!unsafe { machine.mark_field(nothing) });
            assert_eq!(machine.stack_count(), count, "{nothing:?}");
        }
    });
    let r = lab.node(3);
    // Born black while marking; as if it were white:
    lab.machine(|machine| unsafe {
        // SAFETY: the object is there, and no mutator runs.
        let word = object::header(r.address());
        object::set_header(r.address(), crate::header::Header(word.0 & !1));
        assert_eq!(machine.colour(r), Colour::White);
        assert!(machine.mark_field(r));
        assert_eq!(machine.stack().last(), Some(&r));
        assert_eq!(machine.stack_count(), 3);
        assert_eq!(machine.colour(r), Colour::Grey);
    });
}

// Figure 4.
#[test]
fn mark_visits_at_most_marknum_objects() {
    for mark_num in [1, 2, 3, 7] {
        let mut settings = config();
        settings.incremental.mark_num = mark_num;
        let mut lab = Lab::new(settings);
        let mut all = vec![lab.root(0)];
        for i in 1..15 {
            let child = lab.node(i);
            let parent = all[(i as usize - 1) / 2];
            lab.write(parent, (i as usize - 1) % 2, child);
            all.push(child);
        }
        lab.mutator.step();
        let mut visited = 0;
        while lab.machine(|m| m.stack_count()) > 0 {
            let before = lab.machine(|m| (m.sweep_cur(), m.used(), m.num_free()));
            lab.mutator.step();
            let after = lab.machine(|m| (m.sweep_cur(), m.used(), m.num_free()));
            assert_eq!(before, after, "mark changes neither cursor nor free list");
            let step = lab.machine(|m| m.num_mark());
            assert!(step <= mark_num);
            visited += step;
            assert_eq!(lab.phase(), Phase::Mark);
            let black = all.clone().into_iter();
            let black = black.filter(|&p| lab.colour(p) == Colour::Black).count();
            assert_eq!(
                black, visited,
                "what was visited is black, and nothing else"
            );
        }
        assert_eq!(visited, 15);
        assert_eq!(lab.machine(|m| m.marked().objects), 15);
    }
}

#[test]
fn marking_ends_only_when_the_roots_lead_to_nothing_white() {
    let mut lab = Lab::new(config());
    let a = lab.root(1);
    let hidden = lab.node(2);
    lab.write(a, 0, hidden);
    lab.mutator.step();
    // A load and a clear have no barrier: `hidden` is now reachable from the stack of roots only.
    lab.mutator.stack().push(hidden);
    lab.write(a, 0, Ref::NULL);
    lab.mutator.step();
    assert_eq!(lab.machine(|m| m.stack_count()), 0);
    assert_eq!(lab.colour(hidden), Colour::White);
    lab.mutator.step();
    assert_eq!(lab.phase(), Phase::Mark);
    assert_eq!(lab.colour(hidden), Colour::Black);
    lab.mutator.step();
    assert_eq!(lab.phase(), Phase::Sweep);
    lab.step_until(Phase::Idle);
    assert_eq!(lab.number(hidden), 2);
}

// Figure 5.
#[test]
fn sweep_whitens_the_black_and_frees_the_white_up_to_the_cursor() {
    for sweep_num in [1, 2, 5] {
        let mut settings = config();
        settings.incremental.sweep_num = sweep_num;
        let mut lab = Lab::new(settings);
        let all: Vec<Ref> = (0..20).map(|i| lab.root(i)).collect();
        lab.mutator.stack().truncate(0);
        for &kept in all.iter().step_by(3) {
            lab.mutator.stack().push(kept);
        }
        lab.step_until(Phase::Sweep);
        let range = lab.machine(|m| m.range());
        let mut cursor = lab.machine(|m| m.sweep_cur());
        assert_eq!(cursor, range.start);
        let used = lab.machine(|m| m.used());
        while lab.phase() == Phase::Sweep {
            lab.mutator.step();
            let next = lab.machine(|m| m.sweep_cur());
            assert!(next >= cursor && next <= range.end());
            cursor = next;
            assert!(lab.machine(|m| m.num_swept()) <= sweep_num);
            for (i, &p) in all.iter().enumerate() {
                if p.address() >= cursor {
                    let expected = [Colour::White, Colour::Black][usize::from(i % 3 == 0)];
                    assert_eq!(lab.colour(p), expected);
                } else if i % 3 == 0 {
                    assert_eq!(lab.colour(p), Colour::White);
                    assert_eq!(lab.number(p), i as u64);
                } else {
                    assert!(!lab.exists(p));
                }
            }
        }
        assert_eq!(lab.phase(), Phase::Idle);
        assert_eq!(cursor, range.end());
        let (freed, cell) = (13, 24);
        assert_eq!(lab.machine(|m| m.freed().objects), freed);
        assert_eq!(lab.machine(|m| m.used()), used - freed as usize * cell);
    }
}

// Figure 6.
#[test]
fn marking_starts_when_free_objects_fall_under_freenum() {
    let free_num = 40_000;
    let mut settings = config();
    settings.sanity = false;
    settings.incremental.free_num = free_num;
    let mut lab = Lab::new(settings);
    let root = lab.root(7);
    assert!(lab.machine(|m| m.num_free()) > free_num);
    let mut allocated = 0;
    while lab.phase() == Phase::Idle {
        assert!(lab.machine(|m| m.num_free()) >= free_num - 1000);
        lab.node(0);
        allocated += 1;
        assert!(allocated < 100_000, "it never starts");
    }
    assert!(lab.machine(|m| m.num_free()) < free_num);
    assert_eq!(
        lab.machine(|m| m.sweep_cur()),
        lab.machine(|m| m.range().start)
    );
    assert_eq!(lab.phase(), Phase::Mark);
    assert_eq!(lab.colour(root), Colour::Grey);
}

// Figure 7.
#[test]
fn objects_are_born_black_where_the_sweeper_has_yet_to_come() {
    let mut lab = Lab::new(config());
    let idle = lab.root(0);
    assert_eq!(lab.colour(idle), Colour::White);
    for i in 0..3000 {
        lab.root(i); // more than two blocks, all live
    }
    for dropped in (1..lab.mutator.stack().len()).step_by(2) {
        lab.mutator.stack().set(dropped, Ref::NULL);
    }
    lab.mutator.step();
    let marking = lab.root(1);
    assert_eq!(lab.colour(marking), Colour::Black);
    lab.step_until(Phase::Sweep);
    let (mut below, mut above) = (0, 0);
    while lab.phase() == Phase::Sweep {
        let born = lab.root(2);
        let cursor = lab.machine(|m| m.sweep_cur());
        if born.address() < cursor {
            below += 1;
            assert_eq!(lab.colour(born), Colour::White);
        } else {
            above += 1;
            assert_eq!(lab.colour(born), Colour::Black);
        }
        for _ in 0..100 {
            lab.mutator.step();
            if lab.phase() == Phase::Idle {
                break;
            }
        }
        assert_eq!(lab.number(born), 2);
    }
    assert!(below > 0 && above > 0, "{below} below, {above} above");
    let born = lab.root(3);
    assert_eq!(lab.colour(born), Colour::White);
}

// Figure 8.
#[test]
fn a_store_while_marking_shades_whatever_the_parent_s_colour() {
    let mut tried = 0;
    for steps in 1..6 {
        let mut lab = Lab::new(config());
        let white_parent = lab.root(1);
        let parent = lab.root(2);
        let value = lab.node(3);
        let chain = lab.node(4);
        lab.write(white_parent, 0, chain);
        lab.write(chain, 0, value);
        for _ in 0..steps {
            lab.mutator.step();
        }
        if lab.colour(value) != Colour::White {
            break;
        }
        tried += 1;
        let before = lab.machine(|m| m.stack_count());
        for target in [chain, parent] {
            lab.write(target, 1, value);
        }
        assert_eq!(lab.colour(value), Colour::Grey);
        assert_eq!(lab.machine(|m| m.stack_count()), before + 1, "shaded once");
        assert_eq!(lab.machine(|m| *m.stack().last().unwrap()), value);
    }
    assert!(tried > 1);
}

#[test]
fn a_store_while_not_marking_shades_nothing() {
    let mut lab = Lab::new(config());
    let a = lab.root(1);
    let b = lab.root(2);
    lab.write(a, 0, b);
    assert_eq!(lab.colour(b), Colour::White);
    lab.step_until(Phase::Sweep);
    lab.write(b, 0, a);
    assert_eq!(lab.machine(|m| m.stack_count()), 0);
}

#[test]
fn initialising_stores_shade_too() {
    let mut lab = Lab::new(config());
    let a = lab.root(1);
    let hidden = lab.node(2);
    lab.write(a, 0, hidden);
    lab.mutator.step();
    let index = lab.mutator.stack().push(hidden);
    lab.write(a, 0, Ref::NULL);
    let node = lab.node;
    // SAFETY: `hidden` is rooted, and this collector moves nothing.
    let parent = unsafe { lab.mutator.allocate_with(&node, [hidden]) }.unwrap();
    assert_eq!(lab.colour(parent), Colour::Black);
    assert_eq!(lab.colour(hidden), Colour::Grey);
    lab.mutator.stack().set(index, parent);
    lab.step_until(Phase::Idle);
    assert_eq!(lab.number(hidden), 2);
}

#[test]
fn the_check_sees_a_store_that_skipped_the_barrier() {
    let mut settings = config();
    settings.sanity = false;
    let mut lab = Lab::new(settings);
    let hidden = lab.node(2);
    let below = lab.root(1);
    lab.write(below, 0, hidden);
    let black = lab.root(3);
    lab.mutator.step();
    lab.mutator.step();
    assert_eq!(lab.colour(black), Colour::Black);
    assert_eq!(lab.colour(hidden), Colour::White);
    let slot = object::slot_address(black.address(), 0);
    // SAFETY: a reference slot of a live object; the missing barrier is the point.
    unsafe { object::store(slot, hidden) };
    let heap = lab.heap.clone();
    let verdict = lab.machine(|m| m.verify(heap.shapes()));
    assert!(verdict.unwrap_err().starts_with("black"));
    lab.write(black, 0, hidden);
    assert_eq!(lab.machine(|m| m.verify(heap.shapes())), Ok(()));
}

#[test]
fn large_arrays_are_visited_in_segments() {
    let mut settings = config();
    settings.incremental.mark_num = 2;
    let mut lab = Lab::new(settings);
    let references = lab.heap.define(ShapeSpec::references("Node[]")).unwrap();
    let length = 8 * SEGMENT + 5;
    let array = lab
        .mutator
        .allocate_array(&references, length as u32)
        .unwrap();
    lab.mutator.stack().push(array);
    for i in 0..length {
        let node = lab.node(i as u64);
        lab.write(array, i, node);
    }
    let late = lab.node(99);
    let index = lab.mutator.stack().push(late);
    lab.mutator.step();
    lab.mutator.stack().truncate(index);
    let mut grey_steps = 0;
    while lab.colour(array) == Colour::Grey {
        lab.mutator.step();
        assert!(lab.machine(|m| m.num_mark()) <= 2);
        grey_steps += 1;
        if grey_steps == 10 {
            // Into a segment that has been visited, of an array that has not.
            assert_eq!(lab.colour(array), Colour::Grey);
            lab.write(array, 0, late);
        }
    }
    assert!(grey_steps > 10);
    lab.step_until(Phase::Idle);
    for i in 1..length {
        // SAFETY: the array is rooted, and `i` is within it.
        let node = unsafe { lab.mutator.read(array, i) };
        assert_eq!(lab.number(node), i as u64);
    }
    assert_eq!(lab.number(late), 99);
}

#[test]
fn objects_with_many_references_do_not_make_a_step_long() {
    let mut settings = config();
    settings.incremental.mark_num = 16;
    let mut lab = Lab::new(settings);
    let references = lab.heap.define(ShapeSpec::references("Node[]")).unwrap();
    let shared = lab.root(1);
    for _ in 0..20 {
        let array = lab.mutator.allocate_array(&references, 100).unwrap();
        lab.mutator.stack().push(array);
        (0..100).for_each(|i| lab.write(array, i, shared));
    }
    lab.mutator.step();
    lab.mutator.step();
    // Sixteen objects may be visited, and 128 references followed: two arrays.
    assert_eq!(lab.machine(|m| m.num_mark()), 2);
    lab.step_until(Phase::Sweep);
}

#[test]
fn thresholds_are_settings_and_have_defaults() {
    let mut config = config();
    let in_force = |config: &HeapConfig| {
        let mut lab = Lab::new(config.clone());
        lab.machine(|m| m.thresholds())
    };
    config.incremental = IncrementalSettings {
        mark_num: 3,
        sweep_num: 4,
        free_num: 5,
    };
    assert_eq!(in_force(&config), config.incremental);
    config.incremental = IncrementalSettings::default();
    let small = in_force(&config);
    assert!(small.mark_num > 0 && small.sweep_num > 0 && small.free_num > 0);
    let large = thresholds(&HeapConfig::default().with_max_bytes(1 << 30));
    assert!(large.mark_num > small.mark_num && large.sweep_num > small.sweep_num);
}
