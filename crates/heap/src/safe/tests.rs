//! Misuse of every kind, on every collector: typed errors, and a heap that is still whole.

use super::*;
use crate::collector::Collector;
use crate::collectors::MarkSweep;
use crate::config::HeapConfig;
use crate::error::HeapError;
use crate::heap::Heap;
use crate::kind::{CollectorKind, Program};
use crate::shape::{Kind, Shape, ShapeId, ShapeSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

fn small() -> HeapConfig {
    HeapConfig::default()
        .with_max_bytes(16 << 20)
        .with_nursery_bytes(256 << 10)
        .with_sanity(true)
}

/// Runs a test, generic over the collector, on all of them.
macro_rules! on_all_collectors {
    ($($(#[$doc:meta])* fn $name:ident<$c:ident>($heap:ident) $body:block)+) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            struct Run;
            impl Program for Run {
                type Output = Result<(), Error>;
                fn run<$c: Collector>(self) -> Result<(), Error> {
                    let $heap: Heap<$c> = Heap::new(small())?;
                    $body
                    Ok(())
                }
            }
            for &kind in CollectorKind::ALL {
                if let Err(error) = kind.run(Run) {
                    panic!("{kind}: {error}");
                }
            }
        }
    )+};
}

fn pair<C: Collector>(heap: &Heap<C>) -> (Shape, RefField, RefField) {
    let spec = ShapeSpec::fixed("Pair").reference("head").reference("tail");
    let shape = heap.define(spec).unwrap();
    let field = |name| heap.ref_field(&shape, name).unwrap();
    (shape, field("head"), field("tail"))
}

fn refusal<T>(result: Result<T, impl Into<Error>>) -> Option<Refusal> {
    match result.err()?.into().reason() {
        Reason::Access(error) => Some(error.refusal().clone()),
        _ => None,
    }
}

macro_rules! refused {
    ($result:expr, $pattern:pat) => {{
        let refusal = refusal($result);
        assert!(matches!(refusal, Some($pattern)), "{refusal:?}");
    }};
}

on_all_collectors! {
    fn locals_survive_collections<C>(heap) {
        let (shape, head, tail) = pair(&heap);
        heap.session()?.scope(|scope| {
            let list = scope.null();
            for i in 0..20_000u32 {
                scope.nested(|inner| {
                    let new = inner.allocate(&shape)?;
                    inner.set(new, tail, list)?;
                    inner.object(new)?.set(head, Immediate::truncated(i))?;
                    inner.assign(list, inner.value(new))?;
                    inner.allocate(&shape)?; // garbage
                    Ok::<(), Error>(())
                })?;
                if i % 5000 == 0 {
                    scope.collect();
                }
            }
            let mut at = scope.value(list).object();
            for i in (0..20_000u32).rev() {
                let cell = at.expect("the list is whole");
                assert_eq!(cell.get(head)?, Immediate::truncated(i).into());
                at = cell.follow(tail)?;
            }
            assert_eq!(at, None);
            Ok::<(), Error>(())
        })?;
    }

    fn escaping_brings_one_handle_out<C>(heap) {
        let (shape, head, _) = pair(&heap);
        let mut session = heap.session()?;
        session.scope(|scope| {
            let before = scope.depth();
            let kept = scope.escaping(|inner| {
                let lost = inner.allocate(&shape)?;
                let kept = inner.allocate(&shape)?;
                inner.set(kept, head, lost)?;
                Ok::<_, Error>(kept)
            })?;
            assert_eq!(scope.depth(), before + 1);
            scope.collect();
            assert!(scope.object(kept)?.follow(head)?.is_some());
            Ok::<(), Error>(())
        })?;
        assert_eq!(session.depth(), 0);
    }

    fn a_panic_ends_its_scopes<C>(heap) {
        let (shape, ..) = pair(&heap);
        let mut session = heap.session()?;
        session.registers().reserve(1);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            session.scope(|scope| {
                scope.allocate(&shape).unwrap();
                scope.nested(|inner| {
                    inner.allocate(&shape).unwrap();
                    std::panic::resume_unwind(Box::new("out"));
                })
            })
        }));
        assert!(panic.is_err());
        assert_eq!(session.depth(), 1);
        // Out of a blocking call, too: a session that runs must not count as parked.
        let panic = catch_unwind(AssertUnwindSafe(|| {
            session.blocking(|| std::panic::resume_unwind(Box::new("out")))
        }));
        assert!(panic.is_err());
        session.collect();
        // And out of a walk.
        session.allocate(&shape)?.push();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            session.each_object(|_| std::panic::resume_unwind(Box::new("out")));
        }));
        assert!(panic.is_err());
        session.collect();
        session.allocate(&shape)?;
    }

    fn the_world_starts_again_after_a_panic_in_it<C>(heap) {
        let mut mutator = heap.mutator();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            mutator.inspect(|_| std::panic::resume_unwind(Box::new("out")));
        }));
        assert!(panic.is_err());
        mutator.collect(); // does not hang
    }

    fn wrong_fields_and_slots_are_refused<C>(heap) {
        let (shape, head, _) = pair(&heap);
        let mixed = ShapeSpec::fixed("Mixed")
            .with("byte", Kind::Data(1))
            .word("word")
            .reference("link");
        let mixed = heap.define(mixed)?;
        let word = heap.data_field::<u64>(&mixed, "word")?;
        let byte = heap.data_field::<u8>(&mixed, "byte")?;
        let link = heap.ref_field(&mixed, "link")?;
        refused!(heap.ref_field(&mixed, "word"), Refusal::WrongKind { .. });
        refused!(heap.data_field::<u64>(&mixed, "link"), Refusal::WrongKind { .. });
        refused!(heap.data_field::<u32>(&mixed, "word"), Refusal::WrongKind { .. });
        refused!(heap.ref_field(&mixed, "lnik"), Refusal::NoSuchField { .. });

        let mut session = heap.session()?;
        refused!(session.shape(ShapeId(999)), Refusal::NoSuchShape { .. });
        refused!(session.shape(ShapeId(0)), Refusal::NoSuchShape { .. });
        let object = session.allocate(&mixed)?;
        refused!(object.get(head), Refusal::WrongShape { .. });
        refused!(object.set(head, object), Refusal::WrongShape { .. });
        object.write(word, u64::MAX)?;
        object.write(byte, 200)?;
        object.set(link, object)?;
        assert_eq!((object.read(word)?, object.read(byte)?), (u64::MAX, 200));
        assert_eq!(object.follow(link)?, Some(object));
        assert_eq!(object.slot(4)?, object.into());
        refused!(object.slot(0), Refusal::WrongKind { .. });
        refused!(object.slot(2), Refusal::WrongKind { .. });
        refused!(object.slot(3), Refusal::WrongKind { .. });
        refused!(object.slot(6), Refusal::OutOfRange { .. });
        refused!(object.set_slot(usize::MAX, object), Refusal::OutOfRange { .. });
        assert_eq!(object.read_slot::<u64>(2)?, u64::MAX);
        refused!(object.read_slot::<u64>(4), Refusal::WrongKind { .. });
        refused!(object.write_slot::<u32>(2, 0), Refusal::WrongKind { .. });
        refused!(object.element(0), Refusal::WrongKind { .. });
        refused!(object.read_at::<u8>(0), Refusal::WrongKind { .. });
        refused!(session.allocate_array(&shape, 1), Refusal::NotThatForm { is_array: false, .. });
        session.collect();
    }

    fn a_subclass_has_the_fields_of_its_parent<C>(heap) {
        let (shape, head, tail) = pair(&heap);
        let parent = heap.shape_info(shape.id()).unwrap();
        let derived = heap.define(ShapeSpec::extending("Derived", parent).word("more"))?;
        let more = heap.data_field::<u64>(&derived, "more")?;
        let stranger = heap.define(ShapeSpec::fixed("Stranger").reference("a").reference("b"))?;
        let mut session = heap.session()?;
        let object = session.allocate(&derived)?;
        object.set(tail, object)?;
        object.write(more, 9)?;
        assert_eq!(object.follow(tail)?, Some(object));
        assert!(object.is(&derived) && !object.is(&shape));
        let base = session.allocate(&shape)?;
        refused!(base.read(more), Refusal::WrongShape { .. });
        refused!(session.allocate(&stranger)?.get(head), Refusal::WrongShape { .. });
    }

    fn arrays_are_checked<C>(heap) {
        let references = heap.define(ShapeSpec::references("Value[]"))?;
        let bytes = heap.define(ShapeSpec::bytes("byte[]"))?;
        let floats = heap.define(ShapeSpec::words("double[]"))?;
        let mut session = heap.session()?;
        let array = session.allocate_array(&references, 8)?;
        for i in 0..8 {
            array.set_element(i, Immediate::truncated(i as u32))?;
        }
        array.copy_elements(2, array, 0, 6)?;
        let numbers = |array: Gc<'_, C>| -> Vec<u32> {
            (0..8).map(|i| array.element(i).unwrap().immediate().unwrap().get()).collect()
        };
        assert_eq!(numbers(array), [0, 1, 0, 1, 2, 3, 4, 5]);
        array.copy_elements(0, array, 2, 6)?;
        assert_eq!(numbers(array), [0, 1, 2, 3, 4, 5, 4, 5]);
        refused!(array.element(8), Refusal::OutOfRange { index: 8, length: 8, .. });
        refused!(array.copy_elements(3, array, 0, 6), Refusal::OutOfRange { .. });
        refused!(array.fill_elements(1, usize::MAX, Value::Null), Refusal::OutOfRange { .. });
        refused!(array.read_at::<u32>(0), Refusal::WrongKind { .. });
        array.fill_elements(0, 8, array)?;
        assert_eq!(array.slot(7)?, array.into());
        refused!(array.slot(8), Refusal::OutOfRange { .. });

        let text = session.allocate_data(&bytes, b"collector")?;
        assert_eq!(text.length(), Some(9));
        assert_eq!(text.to_vec::<u8>()?, b"collector");
        text.write_at(0, b'C')?;
        let mut part = [0; 4];
        text.copy_to(0, &mut part)?;
        assert_eq!(&part, b"Coll");
        refused!(text.copy_to(6, &mut part), Refusal::OutOfRange { .. });
        refused!(text.copy_from(usize::MAX, b"x"), Refusal::OutOfRange { .. });
        refused!(text.read_at::<u16>(0), Refusal::WrongKind { .. });
        refused!(text.element(0), Refusal::WrongKind { .. });
        refused!(session.allocate(&bytes), Refusal::NotThatForm { is_array: true, .. });
        let empty = session.allocate_array(&floats, 0)?;
        refused!(empty.read_at::<f64>(0), Refusal::OutOfRange { length: 0, .. });
        assert_eq!(empty.to_vec::<f64>()?, []);
        // Large ones live in a space of their own.
        let large = session.allocate_array(&floats, 100_000)?;
        large.write_at(99_999, 1.5)?;
        assert_eq!(large.read_at::<f64>(99_999)?, 1.5);
        session.collect();
    }

    fn registers_are_checked<C>(heap) {
        let (shape, head, tail) = pair(&heap);
        let word_first = heap.define(ShapeSpec::fixed("W").word("w").reference("a").reference("b"))?;
        let b = heap.ref_field(&word_first, "b")?;
        let vector = heap.define(ShapeSpec::references("Value[]"))?;
        let mut session = heap.session()?;
        let r = session.registers();
        assert_eq!(r.pop(), None);
        refused!(r.get(0), Refusal::NoSuchRegister { .. });
        refused!(r.allocate_popping::<2>(&shape), Refusal::NoSuchRegister { .. });
        r.reserve(2);
        r.set(0, Immediate::truncated(1))?;
        refused!(r.object(0), Refusal::NotAnObject { found: "an immediate" });
        refused!(r.load(0, 1, head), Refusal::NotAnObject { found: "null" });
        refused!(r.allocate_with(&shape, [0, 2]), Refusal::NoSuchRegister { index: 2, .. });
        refused!(r.allocate_with(&shape, [0, 0, 0]), Refusal::TooManyInitial { .. });
        let at = r.allocate_popping::<2>(&shape)?.push();
        assert_eq!((at, r.len()), (0, 1));
        r.store(0, tail, 0)?;
        r.push(Value::Null)?;
        r.load(1, 0, head)?;
        assert_eq!(r.get(1)?, Immediate::truncated(1).into());
        // References that do not come first in the object.
        let new = r.allocate_with(&word_first, [1, 0])?;
        assert!(new.follow(b)?.is_some_and(|pair| pair.is(&shape)));
        let array = r.allocate_array_with(&vector, 0..2)?;
        assert_eq!(array.element(1)?, Immediate::truncated(1).into());
        refused!(r.allocate_array_with(&vector, 1..3), Refusal::NoSuchRegister { index: 2, .. });
        refused!(r.allocate_array_with(&shape, 0..1), Refusal::NotThatForm { .. });
        r.load_slot(1, 0, 1)?;
        assert_eq!(r.object(1)?, r.object(0)?);
        refused!(r.store_slot(0, 2, 1), Refusal::OutOfRange { .. });
        r.truncate(0);
        r.collect();
        assert_eq!(r.census(), []);
    }

    fn heaps_do_not_mix<C>(heap) {
        let other: Heap<C> = Heap::new(small())?;
        let (shape, head, tail) = pair(&heap);
        let (shape2, _, tail2) = pair(&other);
        refused!(heap.ref_field(&shape2, "head"), Refusal::WrongHeap { what: "shape" });
        let (mut session, mut session2) = (heap.session()?, other.session()?);
        refused!(session.allocate(&shape2), Refusal::WrongHeap { what: "shape" });
        let (a, b) = (session.allocate(&shape)?, session2.allocate(&shape2)?);
        refused!(a.set(tail, b), Refusal::WrongHeap { what: "reference" });
        refused!(a.set_slot(0, b), Refusal::WrongHeap { what: "reference" });
        refused!(a.get(tail2), Refusal::WrongHeap { what: "field" });
        refused!(b.get(head), Refusal::WrongHeap { what: "field" });
        assert!(!b.is(&shape));
        let root = a.root();
        refused!(root.set(b), Refusal::WrongHeap { what: "root" });
        let guardian = heap.guardian();
        refused!(guardian.watch(b), Refusal::WrongHeap { what: "guardian" });
        refused!(root.get(&session2), Refusal::WrongHeap { what: "root" });
        refused!(guardian.next(&session2), Refusal::WrongHeap { what: "guardian" });
        let b = session2.allocate(&shape2)?;
        let r = session.registers();
        refused!(r.push(b), Refusal::WrongHeap { what: "reference" });
        refused!(session.scope(|scope| scope.local(b).map(|_| ())), Refusal::WrongHeap { .. });
    }

    fn a_thread_has_one_session_of_a_heap<C>(heap) {
        let mut first = heap.session()?;
        assert_eq!(heap.session().unwrap_err().reason(), &Reason::SecondSession);
        first.blocking(|| {
            assert_eq!(heap.session().unwrap_err().reason(), &Reason::SecondSession);
        });
        drop(first);
        heap.session()?;
    }

    fn memory_runs_out_as_an_error<C>(_heap) {
        // Without the sanity check, which would look at a full heap many times.
        let heap: Heap<C> = Heap::new(small().with_sanity(false))?;
        let bytes = heap.define(ShapeSpec::bytes("byte[]"))?;
        let (shape, _, tail) = pair(&heap);
        let mut session = heap.session()?;
        let alloc = |result: Result<(), Error>| match result.unwrap_err().reason() {
            Reason::Alloc(error) => *error,
            other => panic!("{other:?}"),
        };
        let too_large = session.allocate_array(&bytes, 64 << 20).map(|_| ());
        assert!(alloc(too_large).is_too_large());
        let too_large = session.allocate_array(&bytes, u32::MAX).map(|_| ());
        assert!(alloc(too_large).is_too_large());
        let full = session.scope(|scope| {
            let list = scope.null();
            loop {
                scope.nested(|inner| {
                    let new = inner.allocate(&shape)?;
                    inner.set(new, tail, list)?;
                    inner.assign(list, inner.value(new))?;
                    Ok::<(), Error>(())
                })?;
            }
        });
        assert!(!alloc(full).is_too_large());
        // Nothing is lost: the list is dead, and the heap goes on.
        for _ in 0..100_000 {
            session.allocate(&shape)?;
        }
    }

    fn weak_slots_ephemerons_and_guardians<C>(heap) {
        let (shape, head, _) = pair(&heap);
        let weak = heap.define(ShapeSpec::fixed("Weak").weak("to").with("after", Kind::Phantom))?;
        let (to, after) = (heap.ref_field(&weak, "to")?, heap.ref_field(&weak, "after")?);
        heap.remember_cleared();
        let guardian = heap.guardian();
        let mut session = heap.session()?;
        session.scope(|scope| {
            let cell = scope.allocate(&weak)?;
            let strong = scope.allocate(&shape)?;
            scope.nested(|inner| {
                let dying = inner.allocate(&shape)?;
                inner.set(dying, head, strong)?;
                inner.set(cell, to, dying)?;
                inner.set(cell, after, dying)?;
                guardian.watch(inner.object(dying)?)?;
                inner.collect();
                assert!(inner.object(cell)?.follow(to)?.is_some());
                assert!(guardian.next(inner)?.is_none());
                Ok::<(), Error>(())
            })?;
            scope.collect();
            let gone = scope.object(cell)?;
            assert_eq!(gone.get(to)?, Value::Null);
            let back = guardian.next(scope)?.expect("the guardian has it");
            assert_eq!(back.follow(head)?, scope.value(strong).object());
            assert_eq!(gone.follow(after)?, Some(back));
            assert_eq!(scope.take_cleared(), [gone]);
            scope.collect(); // its second death
            assert_eq!(scope.object(cell)?.get(after)?, Value::Null);
            // By slot number, the kind is found in the shape.
            scope.object(cell)?.set_slot(0, scope.value(strong))?;
            assert!(scope.object(cell)?.slot(0)?.object().is_some());
            // A guardian that is gone watches no more.
            let another = heap.guardian();
            another.watch(scope.object(strong)?)?;
            drop(another);
            Ok::<(), Error>(())
        })?;
        session.collect();
        assert_eq!(session.census().iter().map(|p| p.objects).sum::<u64>(), 1); // the last cleared
    }

    fn a_survey_sees_what_is_live<C>(heap) {
        let (shape, head, tail) = pair(&heap);
        let weak = heap.define(ShapeSpec::fixed("Weak").weak("to"))?;
        let entry = heap.define(ShapeSpec::fixed("Entry").ephemeron())?;
        let field = |shape, name| heap.ref_field(shape, name);
        let (to, key, value) = (field(&weak, "to")?, field(&entry, "key")?, field(&entry, "value")?);
        let mut session = heap.session()?;
        session.scope(|scope| {
            let list = scope.allocate(&shape)?;
            let cell = scope.allocate(&weak)?;
            let entries = [scope.allocate(&entry)?, scope.allocate(&entry)?];
            scope.nested(|inner| {
                let a = inner.allocate(&shape)?;
                inner.set(list, head, a)?;
                inner.set(list, tail, list)?;
                let only_weak = inner.allocate(&shape)?;
                inner.set(cell, to, only_weak)?;
                // Reached through an ephemeron whose key is reached through another.
                let (k, v) = (inner.allocate(&shape)?, inner.allocate(&shape)?);
                inner.set(entries[0], key, k)?;
                inner.set(entries[0], value, v)?;
                inner.set(entries[1], key, a)?;
                inner.set(entries[1], value, k)?;
                Ok::<(), Error>(())
            })?;
            let mut names = Vec::new();
            scope.each_object(|object| names.push(object.shape_name().to_string()));
            names.sort();
            let expected = ["Entry", "Entry", "Pair", "Pair", "Pair", "Pair", "Weak"];
            assert_eq!(names, expected);
            Ok::<(), Error>(())
        })?;
        assert_eq!(session.census(), []);
    }

    /// The generational collector once forgot what an ended mutator had remembered.
    fn what_an_ended_thread_stored_is_not_lost<C>(heap) {
        let (shape, head, tail) = pair(&heap);
        let mut session = heap.session()?;
        let old = session.allocate(&shape)?.root();
        session.collect();
        session.blocking(|| {
            let store = || -> Result<(), Error> {
                let mut session = heap.session()?;
                let young = session.allocate(&shape)?;
                young.set(head, Immediate::truncated(5))?;
                let young = young.root();
                old.get(&session)?.set(tail, young.get(&session)?)?;
                Ok(())
            };
            std::thread::scope(|threads| threads.spawn(store).join().unwrap())
        })?;
        session.step();
        session.collect();
        let kept = old.get(&session)?.follow(tail)?.expect("it was stored");
        assert_eq!(kept.get(head)?, Immediate::truncated(5).into());
    }

    fn roots_go_to_other_threads<C>(heap) {
        let (shape, head, tail) = pair(&heap);
        let mut session = heap.session()?;
        let shared = session.allocate(&shape)?.root();
        let (done, wait) = mpsc::channel();
        session.blocking(|| std::thread::scope(|threads| {
            for t in 0..3u32 {
                let (heap, shared, done) = (heap.clone(), shared.clone(), done.clone());
                threads.spawn(move || {
                    let work = || -> Result<(), Error> {
                        let mut session = heap.session()?;
                        for i in 0..3000 {
                            let mine = session.allocate(&shape)?;
                            mine.set(head, Immediate::truncated(t))?;
                            let mine = mine.root();
                            let list = shared.get(&session)?;
                            mine.get(&session)?.set(tail, list.get(tail)?)?;
                            list.set(tail, mine.get(&session)?)?;
                            if i % 500 == 0 {
                                session.collect();
                            }
                        }
                        Ok(())
                    };
                    done.send(work()).unwrap();
                });
            }
            drop(done);
            wait.iter().collect::<Result<(), Error>>()
        }))?;
        session.collect();
        let mut at = shared.get(&session)?.follow(tail)?;
        let mut length = 0;
        while let Some(cell) = at {
            assert!(cell.get(head)?.immediate().is_some_and(|t| t.get() < 3));
            length += 1;
            at = cell.follow(tail)?;
        }
        assert!(length > 0);
        // A root can be dropped where there is no session.
        let clone = shared.clone();
        std::thread::spawn(move || drop(clone)).join().unwrap();
        drop(shared);
        session.collect();
        assert_eq!(session.census(), []);
    }
}

#[test]
fn a_limit_below_one_block_is_an_error() {
    struct Tiny;
    impl Program for Tiny {
        type Output = Option<HeapError>;
        fn run<C: Collector>(self) -> Option<HeapError> {
            Heap::<C>::new(HeapConfig::default().with_max_bytes(1024)).err()
        }
    }
    for &kind in CollectorKind::ALL {
        let error = kind.run(Tiny);
        assert!(
            matches!(error, Some(HeapError::LimitTooSmall { .. })),
            "{kind}: {error:?}"
        );
    }
}

#[test]
fn messages_say_what_to_do() {
    let heap: Heap<MarkSweep> = Heap::new(small()).unwrap();
    let (shape, head, _) = pair(&heap);
    let other = heap.define(ShapeSpec::fixed("Other").word("n")).unwrap();
    let mut session = heap.session().unwrap();
    let error = session.allocate(&other).unwrap().get(head).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a field of Pair was used on an object of shape Other; test with Gc::is first, or read it by slot number"
    );
    let error = heap.ref_field(&shape, "next").unwrap_err();
    assert_eq!(
        error.to_string(),
        "shape Pair has no field \"next\"; its fields are head, tail"
    );
    let error = session.allocate_array(&other, 3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "shape Other is not an array: allocate it without a length"
    );
}
