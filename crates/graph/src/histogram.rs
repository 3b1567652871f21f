//! How many nodes there are of each class, and how many bytes they occupy.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Name, Observe};

/// Nodes counted by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    classes: BTreeMap<Name, Tally>,
}

/// How many, and how large together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of nodes.
    pub count: u64,
    /// The sum of their sizes.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, count: u64, bytes: u64) {
        self.count = self.count.saturating_add(count);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Counts `nodes` by class: for example those that are [`reachable`](crate::reachable), or
/// [`dead`](crate::dead).
pub fn histogram<M: Observe + ?Sized>(
    memory: &M,
    nodes: impl IntoIterator<Item = M::Node>,
) -> Histogram {
    let mut histogram = Histogram::default();
    for node in nodes {
        let tally = histogram.classes.entry(memory.class(node)).or_default();
        tally.add(1, memory.size(node));
    }
    histogram
}

impl Histogram {
    /// The tally of one class.
    pub fn class(&self, class: &str) -> Tally {
        self.classes.get(class).copied().unwrap_or_default()
    }

    /// The tally of all classes together.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in self.classes.values() {
            total.add(tally.count, tally.bytes);
        }
        total
    }

    /// The classes with their tallies, those with the most bytes first.
    pub fn by_size(&self) -> Vec<(&Name, Tally)> {
        let mut classes: Vec<_> = self.classes.iter().map(|(name, &t)| (name, t)).collect();
        classes.sort_by_key(|(_, tally)| std::cmp::Reverse((tally.bytes, tally.count)));
        classes
    }
}

/// One class per line, the largest first.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12} {:>14}  class", "count", "bytes")?;
        for (class, Tally { count, bytes }) in self.by_size() {
            write!(f, "\n{count:>12} {bytes:>14}  {class}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Shape, Transform, dead};

    #[test]
    fn counts_by_class_and_prints_the_largest_first() {
        let mut model = Model::new();
        for (class, bytes) in [("Small", 1), ("Large", 100), ("Small", 2)] {
            model.allocate(&Shape::new(class).with_size(bytes)).unwrap();
        }
        let histogram = histogram(&model, dead(&model));
        assert_eq!(histogram.class("Small"), Tally { count: 2, bytes: 3 });
        assert_eq!(histogram.class("None"), Tally::default());
        assert_eq!(histogram.total().bytes, 103);
        assert_eq!(
            histogram.to_string(),
            "       count          bytes  class\n           1            100  Large\n           2              3  Small"
        );
    }
}
