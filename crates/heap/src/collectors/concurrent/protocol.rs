//! The protocol between mutators and marker, apart from real memory.
//!
//! Everything on which the safety of on-the-fly marking rests is here, generic over the memory, so
//! that the same code runs in the collector (over headers and slots) and under a model checker
//! that tries the interleavings (`tests/protocol_loom.rs`, over a handful of atomics).
//!
//! In the words of the derivation: S is the set of marked nodes, and the work set
//!
//! > WS = (roots ∪ successors(S)) \ S
//!
//! is kept by every transformer of the graph. Here WS is kept in pieces: the stack and queue of the
//! marker ([`WorkSet`]), the buffers of the mutators ([`Barrier`]), and the roots themselves, which
//! change without a barrier and are therefore looked at again, with the world stopped, before S is
//! declared complete. The invariant is kept as an inclusion, which is all that safety needs: every
//! node of (successors(S) \ S) is in some piece; a piece may also hold nodes that are marked already.
//!
//! The rules, and what breaks without each:
//! - **Shade, then store, always.** While marking is on, a mutator puts the value into its buffer
//!   before the store, whatever the colours. The derivation's guard (x ∈ S ∧ y ∉ S) is computed for
//!   an `addArc` that is atomic; tested before a store that is not, the marker can mark and scan x
//!   between test and store, and y is lost.
//! - **Marking is switched with the world stopped.** Otherwise a mutator that has not heard of it
//!   stores without shading into a node that is already marked.
//! - **New nodes are born in S**, and the stores that initialise them shade. A node that is born
//!   outside S is freed by the sweep under way.
//! - **Roots are looked at again** after the last piece of WS is empty, with the world stopped. A
//!   reference that was loaded into a register since the first look is nowhere else.

use std::collections::VecDeque;

/// A reference as the protocol sees it.
pub trait Node: Copy {
    /// False for null and for values that name no node.
    fn is_node(self) -> bool;
}

/// What the marker does to memory.
pub trait Tracer {
    /// References of this memory.
    type Node: Node;

    /// Announces that `node` will be traced soon.
    fn expect(&self, _node: Self::Node) {}

    /// Unless `node` ∈ S: S ← S ∪ {node}, in this order with adding its successors to `found`. Those
    /// that are in S already may be left out.
    fn trace(&mut self, node: Self::Node, found: &mut Vec<Self::Node>);

    /// Goes on with a node that was too large to be scanned at once. False when there is none.
    fn trace_rest(&mut self, _found: &mut Vec<Self::Node>) -> bool {
        false
    }
}

/// A mutator's side: whether it must shade, and what it has shaded.
#[derive(Debug)]
pub struct Barrier<N> {
    marking: bool,
    greys: Vec<N>,
    capacity: usize,
}

impl<N: Node> Barrier<N> {
    /// A barrier whose buffer is handed over when it holds `capacity` nodes.
    pub fn new(marking: bool, capacity: usize) -> Barrier<N> {
        Barrier {
            marking,
            greys: Vec::new(),
            capacity,
        }
    }

    /// Turns marking on or off. The world is stopped.
    pub fn set_marking(&mut self, marking: bool) {
        debug_assert!(marking || self.greys.is_empty());
        self.marking = marking;
    }

    /// True while marking.
    pub fn is_marking(&self) -> bool {
        self.marking
    }

    /// Puts `value` into WS, if marking is on. `full` empties the buffer: into the common pile, or by
    /// leaving out what is in S.
    #[inline(always)]
    pub fn shade(&mut self, value: N, full: impl FnOnce(&mut Vec<N>)) {
        if self.marking && value.is_node() {
            self.greys.push(value);
            if self.greys.len() >= self.capacity {
                full(&mut self.greys);
            }
        }
    }

    /// The barrier: shade, then store.
    #[inline(always)]
    pub fn store(&mut self, value: N, full: impl FnOnce(&mut Vec<N>), store: impl FnOnce(N)) {
        self.shade(value, full);
        store(value);
    }

    /// What was shaded and not yet handed over. Taken with the world stopped, or by the mutator
    /// itself when it ends.
    pub fn take(&mut self) -> Vec<N> {
        std::mem::take(&mut self.greys)
    }

    /// True when nothing waits to be handed over.
    pub fn is_empty(&self) -> bool {
        self.greys.is_empty()
    }
}

/// Length of the queue in which nodes wait for their headers; see [`crate::trace`].
const QUEUE: usize = 32;

/// The marker's piece of WS: a stack, and a short queue in front of it in which the header of each
/// node is being fetched.
#[derive(Debug)]
pub struct WorkSet<N> {
    stack: Vec<N>,
    queue: VecDeque<N>,
}

impl<N> Default for WorkSet<N> {
    fn default() -> WorkSet<N> {
        WorkSet {
            stack: Vec::new(),
            queue: VecDeque::with_capacity(QUEUE),
        }
    }
}

impl<N: Node> WorkSet<N> {
    /// Adds a node.
    #[inline(always)]
    pub fn push(&mut self, node: N) {
        if node.is_node() {
            self.stack.push(node);
        }
    }

    /// Adds what mutators have shaded.
    pub fn absorb(&mut self, greys: &mut Vec<N>) {
        self.stack.append(greys);
    }

    /// True when no node is left here.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty() && self.queue.is_empty()
    }

    /// The nodes here.
    pub fn iter(&self) -> impl Iterator<Item = N> + '_ {
        self.stack.iter().chain(&self.queue).copied()
    }

    /// Takes at most `steps` nodes out and traces them: the loop `while ∃z ∈ WS` of the derivation.
    /// True when nothing is left, in here or of a large node.
    pub fn advance<T: Tracer<Node = N>>(&mut self, tracer: &mut T, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(next) = self.next(tracer) else {
                if tracer.trace_rest(&mut self.stack) {
                    continue;
                }
                return true;
            };
            tracer.trace(next, &mut self.stack);
        }
        false
    }

    /// The node that has waited longest, after the queue has been filled up.
    #[inline(always)]
    fn next<T: Tracer<Node = N>>(&mut self, tracer: &T) -> Option<N> {
        while self.queue.len() < QUEUE {
            let Some(node) = self.stack.pop() else { break };
            tracer.expect(node);
            self.queue.push_back(node);
        }
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    impl Node for usize {
        fn is_node(self) -> bool {
            self != usize::MAX
        }
    }

    struct Plain<'a> {
        arcs: &'a [Vec<usize>],
        marked: BTreeSet<usize>,
    }

    impl Tracer for Plain<'_> {
        type Node = usize;
        fn trace(&mut self, node: usize, found: &mut Vec<usize>) {
            if self.marked.insert(node) {
                found.extend(&self.arcs[node]);
            }
        }
    }

    proptest! {
        /// The work set loses nothing, however the work is cut into pieces.
        #[test]
        fn marks_what_is_reachable(
            arcs in proptest::collection::vec(proptest::collection::vec(0usize..100, 0..4), 100),
            roots in proptest::collection::vec(0usize..100, 0..80),
            steps in 1usize..50,
        ) {
            let mut tracer = Plain { arcs: &arcs, marked: BTreeSet::new() };
            let mut work = WorkSet::default();
            for &root in &roots {
                work.push(root);
            }
            while !work.advance(&mut tracer, steps) {}
            prop_assert!(work.is_empty());
            let mut reachable = BTreeSet::new();
            let mut todo = roots;
            while let Some(node) = todo.pop() {
                if reachable.insert(node) {
                    todo.extend(&arcs[node]);
                }
            }
            prop_assert_eq!(tracer.marked, reachable);
        }
    }

    #[test]
    fn the_barrier_shades_only_while_marking_and_before_the_store() {
        let mut barrier = Barrier::new(false, 2);
        let order = std::cell::RefCell::new(Vec::new());
        barrier.store(7usize, |_| unreachable!(), |v| order.borrow_mut().push(v));
        assert!(barrier.is_empty());
        barrier.set_marking(true);
        barrier.store(8, |_| unreachable!(), |v| order.borrow_mut().push(v));
        let full = |greys: &mut Vec<usize>| order.borrow_mut().append(greys);
        barrier.store(9, full, |v| order.borrow_mut().push(v + 100));
        assert_eq!(*order.borrow(), [7, 8, 8, 9, 109]);
        barrier.shade(usize::MAX, |_| unreachable!());
        assert!(barrier.take().is_empty());
    }
}
