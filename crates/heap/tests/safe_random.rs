//! Random programs on the safe layer, most of whose operations make no sense: registers that do not
//! exist, slots out of range, fields of other shapes, shapes of another heap. A model of a few lines
//! says which are right and what the heap then looks like. Every collector must agree with it on
//! every operation, without a panic, and with the sanity check on.

use liveoak_heap::collector::Collector;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::kind::{CollectorKind, Program};
use liveoak_heap::safe::{Error, Immediate, RefField, Registers, Value};
use liveoak_heap::shape::{Shape, ShapeSpec};
use proptest::prelude::*;
use std::collections::HashMap;

const PAIR: usize = 0;
const MIXED: usize = 1;
const DERIVED: usize = 2;
const REFERENCES: usize = 3;
const BYTES: usize = 4;
// And 5: a shape of another heap.

#[derive(Clone, Debug)]
enum Step {
    Allocate(usize),
    AllocateArray(usize, u32),
    AllocateWith(usize, [usize; 2]),
    LoadSlot(usize, usize, usize),
    StoreSlot(usize, usize, usize),
    LoadField(usize, usize, usize),
    StoreField(usize, usize, usize),
    Element(usize, usize, usize),
    ReadWord(usize, usize),
    WriteWord(usize, usize, u64),
    WriteByte(usize, usize, u8),
    Immediate(usize, u32),
    Copy(usize, usize),
    Truncate(usize),
    Collect,
    Minor,
}

fn step() -> impl Strategy<Value = Step> {
    let register = 0..24usize;
    let slot = prop_oneof![9 => 0..5usize, 1 => 0..200usize, 1 => Just(usize::MAX)];
    let shape = 0..6usize;
    let r = move || register.clone();
    let s = move || slot.clone();
    prop_oneof![
        6 => shape.clone().prop_map(Step::Allocate),
        3 => (shape.clone(), 0..40u32).prop_map(|(shape, n)| Step::AllocateArray(shape, n)),
        4 => (shape, [r(), r()]).prop_map(|(shape, initial)| Step::AllocateWith(shape, initial)),
        5 => (r(), r(), s()).prop_map(|(a, b, c)| Step::LoadSlot(a, b, c)),
        8 => (r(), s(), r()).prop_map(|(a, b, c)| Step::StoreSlot(a, b, c)),
        3 => (r(), r(), 0..3usize).prop_map(|(a, b, c)| Step::LoadField(a, b, c)),
        5 => (r(), 0..3usize, r()).prop_map(|(a, b, c)| Step::StoreField(a, b, c)),
        3 => (r(), s(), r()).prop_map(|(a, b, c)| Step::Element(a, b, c)),
        2 => (r(), s()).prop_map(|(a, b)| Step::ReadWord(a, b)),
        3 => (r(), s(), any::<u64>()).prop_map(|(a, b, c)| Step::WriteWord(a, b, c)),
        3 => (r(), s(), any::<u8>()).prop_map(|(a, b, c)| Step::WriteByte(a, b, c)),
        2 => (r(), any::<u32>()).prop_map(|(a, b)| Step::Immediate(a, b)),
        2 => (r(), r()).prop_map(|(a, b)| Step::Copy(a, b)),
        1 => (0..30usize).prop_map(Step::Truncate),
        1 => Just(Step::Collect),
        1 => Just(Step::Minor),
    ]
}

/// A value of the model.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mine {
    Null,
    Immediate(u32),
    Object(usize),
}

/// An object of the model.
#[derive(Clone, Debug)]
struct Object {
    shape: usize,
    slots: Vec<Mine>,
    word: u64,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Model {
    objects: Vec<Object>,
    registers: Vec<Mine>,
}

impl Model {
    fn allocate(&mut self, shape: usize, length: usize) -> usize {
        let slots = match shape {
            PAIR | DERIVED => 2,
            MIXED => 1,
            REFERENCES => length,
            _ => 0,
        };
        self.objects.push(Object {
            shape,
            slots: vec![Mine::Null; slots],
            word: 0,
            bytes: vec![0; if shape == BYTES { length } else { 0 }],
        });
        self.objects.len() - 1
    }

    fn object(&mut self, register: usize) -> Option<&mut Object> {
        match self.registers.get(register)? {
            Mine::Object(index) => self.objects.get_mut(*index),
            _ => None,
        }
    }

    /// The reference in a slot.
    fn slot(&mut self, register: usize, slot: usize) -> Option<&mut Mine> {
        let object = self.object(register)?;
        let index = match object.shape {
            MIXED => slot.checked_sub(2)?,
            _ => slot,
        };
        object.slots.get_mut(index)
    }

    /// The reference in one of the three fields of [`Tokens`].
    fn field(&mut self, register: usize, field: usize) -> Option<&mut Mine> {
        let object = self.object(register)?;
        match (field, object.shape) {
            (0, PAIR | DERIVED) | (1, MIXED) => object.slots.first_mut(),
            _ => None,
        }
    }

    fn word(&mut self, register: usize, slot: usize) -> Option<&mut u64> {
        let object = self.object(register)?;
        let is_word = matches!((object.shape, slot), (MIXED, 0) | (DERIVED, 2));
        is_word.then_some(&mut object.word)
    }
}

struct Tokens {
    shapes: [Shape; 6],
    /// Of a pair, of a mixed object, and of a pair of another heap.
    fields: [RefField; 3],
}

struct Run<'a> {
    steps: &'a [Step],
}

impl Program for Run<'_> {
    type Output = Result<(), Error>;

    fn run<C: Collector>(self) -> Result<(), Error> {
        let config = HeapConfig::default()
            .with_max_bytes(8 << 20)
            .with_nursery_bytes(32 << 10)
            .with_sanity(true);
        let (heap, other): (Heap<C>, Heap<C>) = (Heap::new(config.clone())?, Heap::new(config)?);
        let pair = || ShapeSpec::fixed("Pair").reference("head").reference("tail");
        let foreign = other.define(pair())?;
        let pair = heap.define(pair())?;
        let mixed = heap.define(ShapeSpec::fixed("Mixed").word("number").reference("link"))?;
        let parent = heap.shape_info(pair.id()).expect("it was just defined");
        let derived = heap.define(ShapeSpec::extending("Derived", parent).word("number"))?;
        let references = heap.define(ShapeSpec::references("Value[]"))?;
        let bytes = heap.define(ShapeSpec::bytes("byte[]"))?;
        let tokens = Tokens {
            shapes: [pair, mixed, derived, references, bytes, foreign],
            fields: [
                heap.ref_field(&pair, "head")?,
                heap.ref_field(&mixed, "link")?,
                other.ref_field(&foreign, "head")?,
            ],
        };
        let mut session = heap.session()?;
        let mut model = Model::default();
        let registers = session.registers();
        for step in self.steps {
            perform(registers, &mut model, &tokens, step);
        }
        compare(registers, &model);
        registers.collect();
        compare(registers, &model);
        Ok(())
    }
}

/// Does one step on both sides, and checks that both did it or both did not.
fn perform<C: Collector>(r: &mut Registers<C>, model: &mut Model, tokens: &Tokens, step: &Step) {
    let is_fixed = |shape: usize| matches!(shape, PAIR | MIXED | DERIVED);
    let is_array = |shape: usize| matches!(shape, REFERENCES | BYTES);
    match *step {
        Step::Allocate(shape) => {
            let new = r.allocate(&tokens.shapes[shape]).map(|new| new.push());
            assert_eq!(new.is_ok(), is_fixed(shape), "{step:?}");
            if new.is_ok() {
                let new = model.allocate(shape, 0);
                model.registers.push(Mine::Object(new));
            }
        }
        Step::AllocateArray(shape, length) => {
            let new = r.allocate_array(&tokens.shapes[shape], length);
            let new = new.map(|new| new.push());
            assert_eq!(new.is_ok(), is_array(shape), "{step:?}");
            if new.is_ok() {
                let new = model.allocate(shape, length as usize);
                model.registers.push(Mine::Object(new));
            }
        }
        Step::AllocateWith(shape, initial) => {
            let new = r.allocate_with(&tokens.shapes[shape], initial);
            let new = new.map(|new| new.push());
            let values = initial.map(|index| model.registers.get(index).copied());
            let expected = match values {
                [Some(a), Some(b)] if matches!(shape, PAIR | DERIVED) => Some([a, b]),
                _ => None,
            };
            assert_eq!(new.is_ok(), expected.is_some(), "{step:?}");
            if let Some(values) = expected {
                let new = model.allocate(shape, 0);
                model.objects[new].slots = values.to_vec();
                model.registers.push(Mine::Object(new));
            }
        }
        Step::LoadSlot(target, object, slot) => {
            let done = r.load_slot(target, object, slot);
            let value = model.slot(object, slot).copied();
            set(model, target, value, done.is_ok(), step);
        }
        Step::LoadField(target, object, field) => {
            let done = r.load(target, object, tokens.fields[field]);
            let value = model.field(object, field).copied();
            set(model, target, value, done.is_ok(), step);
        }
        Step::StoreSlot(object, slot, source) => {
            let done = r.store_slot(object, slot, source);
            let value = model.registers.get(source).copied();
            assign(model.slot(object, slot), value, done.is_ok(), step);
        }
        Step::StoreField(object, field, source) => {
            let done = r.store(object, tokens.fields[field], source);
            let value = model.registers.get(source).copied();
            assign(model.field(object, field), value, done.is_ok(), step);
        }
        Step::Element(object, index, source) => {
            let done = r.object(object).and_then(|array| {
                array.set_element(index, r.get(source)?)?;
                assert_eq!(array.element(index)?, r.get(source)?);
                Ok(())
            });
            let value = model.registers.get(source).copied();
            let is_array = model.object(object).is_some_and(|o| o.shape == REFERENCES);
            let place = model.slot(object, index).filter(|_| is_array);
            assign(place, value, done.is_ok(), step);
        }
        Step::ReadWord(object, slot) => {
            let word = r.object(object).and_then(|o| o.read_slot::<u64>(slot));
            assert_eq!(word.ok(), model.word(object, slot).copied(), "{step:?}");
        }
        Step::WriteWord(object, slot, word) => {
            let done = r.object(object).and_then(|o| o.write_slot(slot, word));
            assign(model.word(object, slot), Some(word), done.is_ok(), step);
        }
        Step::WriteByte(object, index, byte) => {
            let done = r.object(object).and_then(|o| o.write_at(index, byte));
            let place = model.object(object).and_then(|o| o.bytes.get_mut(index));
            assign(place, Some(byte), done.is_ok(), step);
        }
        Step::Immediate(target, number) => {
            let value = Immediate::truncated(number);
            let done = r.set(target, value);
            let place = model.registers.get_mut(target);
            assign(
                place,
                Some(Mine::Immediate(value.get())),
                done.is_ok(),
                step,
            );
        }
        Step::Copy(target, source) => {
            let done = r.copy(target, source);
            let value = model.registers.get(source).copied();
            set(model, target, value, done.is_ok(), step);
        }
        Step::Truncate(length) => {
            r.truncate(length);
            model.registers.truncate(length);
        }
        Step::Collect => r.collect(),
        Step::Minor => r.step(),
    }
}

fn set(model: &mut Model, target: usize, value: Option<Mine>, done: bool, step: &Step) {
    assign(model.registers.get_mut(target), value, done, step);
}

fn assign<T: Copy>(place: Option<&mut T>, value: Option<T>, done: bool, step: &Step) {
    let pair = place.zip(value);
    assert_eq!(pair.is_some(), done, "{step:?}");
    if let Some((place, value)) = pair {
        *place = value;
    }
}

/// The heap and the model are the same graph, seen from the registers, with the same data.
fn compare<C: Collector>(r: &Registers<C>, model: &Model) {
    assert_eq!(r.len(), model.registers.len());
    let mut todo = Vec::new();
    for (index, &mine) in model.registers.iter().enumerate() {
        todo.push((r.get(index).expect("the register exists"), mine));
    }
    let (mut to_model, mut to_heap) = (HashMap::new(), HashMap::new());
    while let Some((value, mine)) = todo.pop() {
        match (value, mine) {
            (Value::Null, Mine::Null) => {}
            (Value::Immediate(a), Mine::Immediate(b)) => assert_eq!(a.get(), b),
            (Value::Object(gc), Mine::Object(index)) => {
                let seen = to_model.insert(gc, index);
                assert_eq!(seen.is_some(), to_heap.contains_key(&index));
                assert!(seen.is_none_or(|before| before == index));
                if to_heap.insert(index, gc).is_some() {
                    continue;
                }
                let object = &model.objects[index];
                let first = if object.shape == MIXED { 2 } else { 0 };
                for (slot, &mine) in object.slots.iter().enumerate() {
                    todo.push((gc.slot(first + slot).expect("a reference"), mine));
                }
                match object.shape {
                    MIXED => assert_eq!(gc.read_slot::<u64>(0), Ok(object.word)),
                    DERIVED => assert_eq!(gc.read_slot::<u64>(2), Ok(object.word)),
                    BYTES => assert_eq!(gc.to_vec::<u8>().as_ref(), Ok(&object.bytes)),
                    _ => {}
                }
            }
            (value, mine) => panic!("{value:?} is not {mine:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn senseless_programs_get_errors_and_sensible_ones_answers(
        steps in prop::collection::vec(step(), 1..400)
    ) {
        for &kind in CollectorKind::ALL {
            kind.run(Run { steps: &steps }).unwrap();
        }
    }
}
