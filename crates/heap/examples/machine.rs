//! A virtual machine in a hundred lines, on registers: conses, closures' environments and numbers in
//! one register file, no `unsafe`, no lifetime in the machine's types.
//!
//! It runs a small program in bytecode: build the list of the squares of 1..=10, reverse it, sum it.
//! `cargo run -p liveoak-heap --example machine`

#![forbid(unsafe_code)]

use liveoak_heap::collector::Collector;
use liveoak_heap::collectors::Generational;
use liveoak_heap::config::HeapConfig;
use liveoak_heap::heap::Heap;
use liveoak_heap::safe::{AccessError, Error, Immediate, RefField, Registers};
use liveoak_heap::shape::{Shape, ShapeSpec};

/// Registers are numbers relative to the frame.
#[derive(Clone, Copy)]
enum Op {
    Number(usize, i32),
    Move(usize, usize),
    Add(usize, usize, usize),
    Multiply(usize, usize, usize),
    Cons(usize, usize, usize),
    Car(usize, usize),
    Cdr(usize, usize),
    Nil(usize),
    /// Jumps when the register is not nil.
    IfPair(usize, usize),
    /// Jumps when the first number is at most the second.
    IfAtMost(usize, usize, usize),
    Return(usize),
}

struct Machine {
    cons: Shape,
    car: RefField,
    cdr: RefField,
}

impl Machine {
    fn new<C: Collector>(heap: &Heap<C>) -> Result<Machine, Error> {
        let cons = heap.define(ShapeSpec::fixed("Cons").reference("car").reference("cdr"))?;
        Ok(Machine {
            cons,
            car: heap.ref_field(&cons, "car")?,
            cdr: heap.ref_field(&cons, "cdr")?,
        })
    }

    fn run<C: Collector>(&self, r: &mut Registers<C>, code: &[Op]) -> Result<i32, Error> {
        let frame = r.reserve(8);
        let mut pc = 0;
        let result = loop {
            let op = code[pc];
            pc += 1;
            match op {
                Op::Number(d, n) => r.set(frame + d, Immediate::truncated(n as u32))?,
                Op::Move(d, a) => r.copy(frame + d, frame + a)?,
                Op::Add(d, a, b) => {
                    let sum = number(r, frame + a)?.wrapping_add(number(r, frame + b)?);
                    r.set(frame + d, Immediate::truncated(sum as u32))?;
                }
                Op::Multiply(d, a, b) => {
                    let product = number(r, frame + a)?.wrapping_mul(number(r, frame + b)?);
                    r.set(frame + d, Immediate::truncated(product as u32))?;
                }
                Op::Cons(d, a, b) => {
                    // The only instruction that may collect; its operands are roots.
                    let at = r.allocate_with(&self.cons, [frame + a, frame + b])?.push();
                    r.copy(frame + d, at)?;
                    r.truncate(at);
                }
                Op::Car(d, a) => r.load(frame + d, frame + a, self.car)?,
                Op::Cdr(d, a) => r.load(frame + d, frame + a, self.cdr)?,
                Op::Nil(d) => r.set(frame + d, None)?,
                Op::IfPair(a, target) => {
                    if !r.get(frame + a)?.is_null() {
                        pc = target;
                    }
                }
                Op::IfAtMost(a, b, target) => {
                    if number(r, frame + a)? <= number(r, frame + b)? {
                        pc = target;
                    }
                }
                Op::Return(a) => break number(r, frame + a)?,
            }
        };
        r.truncate(frame);
        Ok(result)
    }
}

/// What a machine makes of a value that is no number is its own affair; here it is 0.
fn number<C: Collector>(r: &Registers<C>, index: usize) -> Result<i32, AccessError> {
    Ok(r.get(index)?.immediate().map_or(0, Immediate::as_signed))
}

fn main() -> Result<(), Error> {
    let heap: Heap<Generational> = Heap::new(HeapConfig::default())?;
    let machine = Machine::new(&heap)?;
    let (i, one, ten, square, list, reversed, sum) = (0, 1, 2, 3, 4, 5, 6);
    let code = [
        Op::Number(i, 1),
        Op::Number(one, 1),
        Op::Number(ten, 10),
        Op::Nil(list),
        Op::Multiply(square, i, i), // 4
        Op::Cons(list, square, list),
        Op::Add(i, i, one),
        Op::IfAtMost(i, ten, 4),
        Op::Nil(reversed),
        Op::Car(square, list), // 9
        Op::Cons(reversed, square, reversed),
        Op::Cdr(list, list),
        Op::IfPair(list, 9),
        Op::Number(sum, 0),
        Op::Car(square, reversed), // 14
        Op::Add(sum, sum, square),
        Op::Move(list, reversed),
        Op::Cdr(reversed, list),
        Op::IfPair(reversed, 14),
        Op::Return(sum),
    ];
    let mut session = heap.session()?;
    for _ in 0..10_000 {
        assert_eq!(machine.run(session.registers(), &code)?, 385);
    }
    println!("the squares of 1..=10 sum to 385");

    // A wrong program gets an error, with what to do about it, and the heap is as whole as before.
    let wrong = [Op::Number(0, 1), Op::Car(1, 0)];
    if let Err(error) = machine.run(session.registers(), &wrong) {
        println!("a wrong program: {error}");
    }
    Ok(())
}
