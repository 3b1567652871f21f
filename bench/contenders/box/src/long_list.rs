//! Lists with `Box`; a list is dropped by a loop, since the derived drop would recurse.

use bench_programs::long_list::{AFTER, checksum};

/// A cell of a list.
pub(crate) struct Cell {
    number: u64,
    next: List,
}

/// A list that frees its cells one after the other.
#[derive(Default)]
pub(crate) struct List(Option<Box<Cell>>);

impl List {
    /// Puts a number in front.
    #[inline(always)]
    pub(crate) fn push(&mut self, number: u64) {
        let next = List(self.0.take());
        self.0 = Some(Box::new(Cell { number, next }));
    }

    /// The sum of all numbers.
    pub(crate) fn sum(&self) -> u64 {
        std::iter::successors(self.0.as_ref(), |cell| cell.next.0.as_ref())
            .fold(0, |sum, cell| sum.wrapping_add(cell.number))
    }
}

impl Drop for List {
    fn drop(&mut self) {
        let mut head = self.0.take();
        while let Some(mut cell) = head {
            head = cell.next.0.take();
        }
    }
}

pub(crate) fn run(objects: u64) -> String {
    let mut list = List::default();
    (0..objects).for_each(|k| list.push(k));
    let mut total = list.sum();
    drop(list);
    for k in 0..AFTER {
        let cell = std::hint::black_box(Box::new(Cell {
            number: k,
            next: List::default(),
        }));
        total = total.wrapping_add(cell.number);
    }
    checksum(objects, total)
}
