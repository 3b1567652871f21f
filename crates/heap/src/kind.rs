//! The collectors by name, chosen at run time.
//!
//! A program that is generic over its collector implements [`Program`]; [`CollectorKind::run`] then
//! runs the instance for the collector chosen. The dispatch happens once, outside the program.

use crate::collector::Collector;
use crate::collectors::{Concurrent, Generational, MarkSweep};
use crate::error::HeapError;
use std::fmt;
use std::str::FromStr;

/// Something that can run on any collector.
///
/// ```
/// use liveoak_heap::collector::Collector;
/// use liveoak_heap::config::HeapConfig;
/// use liveoak_heap::heap::Heap;
/// use liveoak_heap::kind::{CollectorKind, Program};
///
/// struct NameOf;
/// impl Program for NameOf {
///     type Output = &'static str;
///     fn run<C: Collector>(self) -> &'static str {
///         let _heap: Heap<C> = Heap::new(HeapConfig::default()).unwrap();
///         C::NAME
///     }
/// }
/// let kind: CollectorKind = "mark-sweep".parse().unwrap();
/// assert_eq!(kind.run(NameOf), "mark-sweep");
/// ```
pub trait Program {
    /// What it computes.
    type Output;
    /// Runs it on collector `C`.
    fn run<C: Collector>(self) -> Self::Output;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// A collector, as a value.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum CollectorKind {
            $($(#[$doc])* $name),+
        }

        impl CollectorKind {
            /// All of them.
            pub const ALL: &'static [CollectorKind] = &[$(CollectorKind::$name),+];

            /// The name by which it is chosen.
            pub const fn name(self) -> &'static str {
                match self {
                    $(CollectorKind::$name => <$name as Collector>::NAME),+
                }
            }

            /// Runs `program` on this collector.
            pub fn run<P: Program>(self, program: P) -> P::Output {
                match self {
                    $(CollectorKind::$name => program.run::<$name>()),+
                }
            }
        }
    };
}

kinds! {
    /// Mark and sweep.
    MarkSweep,
    /// On-the-fly mark and sweep, by a thread of its own.
    Concurrent,
    /// Copying nursery, swept old generation.
    Generational,
}

impl fmt::Display for CollectorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for CollectorKind {
    type Err = HeapError;

    fn from_str(name: &str) -> Result<CollectorKind, HeapError> {
        let found = CollectorKind::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == name);
        found.ok_or_else(|| HeapError::UnknownCollector {
            name: name.to_string(),
            known: CollectorKind::ALL
                .iter()
                .map(|k| k.name())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}
