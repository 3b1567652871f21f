//! The frontier of a marker: references that are still to be looked at.
//!
//! A stack, with a short queue in front of it: a reference waits in the queue while the line of its
//! header is fetched, and is handed out when it has arrived. (First in, first out in front of the
//! stack: Cher, Hosking and Vitek, "Software prefetching for mark-sweep garbage collection", ASPLOS
//! 2004.)

use crate::reference::Ref;

/// Places in the queue: enough that a line has arrived when its turn comes, few enough that it has
/// not been driven out again.
const QUEUE: usize = 32;

/// See the [module text](self).
#[derive(Debug)]
pub struct Frontier {
    /// References that wait, the last one first. Push here.
    pub stack: Vec<Ref>,
    queue: [Ref; QUEUE],
    head: usize,
    queued: usize,
}

impl Frontier {
    /// An empty frontier that uses the capacity of `stack`.
    pub fn new(stack: Vec<Ref>) -> Frontier {
        debug_assert!(stack.is_empty());
        Frontier {
            stack,
            queue: [Ref::NULL; QUEUE],
            head: 0,
            queued: 0,
        }
    }

    /// Adds a reference, unless it leads to no object.
    #[inline(always)]
    pub fn push(&mut self, reference: Ref) {
        if reference.is_object() {
            self.stack.push(reference);
        }
    }

    /// The next reference. `fetch` is called with those that enter the queue: it asks for the lines
    /// that will be needed when they are handed out.
    #[inline(always)]
    pub fn next(&mut self, fetch: impl Fn(Ref)) -> Option<Ref> {
        while self.queued < QUEUE {
            let Some(next) = self.stack.pop() else { break };
            fetch(next);
            self.queue[(self.head + self.queued) % QUEUE] = next;
            self.queued += 1;
        }
        if self.queued == 0 {
            return None;
        }
        let next = self.queue[self.head];
        self.head = (self.head + 1) % QUEUE;
        self.queued -= 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_was_pushed_comes_out_once() {
        let mut frontier = Frontier::new(Vec::new());
        let mut out = Vec::new();
        for i in 1..=100 {
            frontier.push(Ref::from_address(i * 8));
            frontier.push(Ref::NULL);
            frontier.push(Ref::immediate(7));
            if i % 3 == 0 {
                out.extend(frontier.next(|_| {}));
            }
        }
        while let Some(next) = frontier.next(|_| {}) {
            out.push(next);
        }
        out.sort_unstable();
        let all: Vec<Ref> = (1..=100).map(|i| Ref::from_address(i * 8)).collect();
        assert_eq!(out, all);
    }
}
