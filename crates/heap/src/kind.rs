//! The collectors by name, chosen at run time.
//!
//! A program that is generic over its collector implements [`Program`]; [`CollectorKind::run`] then
//! runs the instance for the collector chosen. The dispatch happens once, outside the program.

use crate::collector::Collector;
use crate::collectors::{
    Concurrent, Generational, Incremental, MarkCompact, MarkSweep, RefCount, Semispace,
};
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
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {
        /// A collector, as a value.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum CollectorKind {
            $($(#[doc = $doc])+ $name),+
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

            /// What it is, in a sentence or two.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(CollectorKind::$name => concat!($($doc),+).trim_ascii()),+
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
    /// Stops the world, marks what can be reached, and sweeps lazily: the plain one, and the oracle of the others.
    MarkSweep,
    /// Marks and sweeps in small steps between the steps of the program, with a write barrier.
    Incremental,
    /// Marks and sweeps by a thread of its own while the program runs; mutators stop for handshakes only.
    Concurrent,
    /// Copies what can be reached from one half of the heap to the other.
    Semispace,
    /// Allocates by bumping through a nursery and copies its survivors to an old generation that is marked and swept.
    Generational,
    /// Marks what can be reached and slides it together, keeping the order of addresses.
    MarkCompact,
    /// Counts references, deferred and coalesced, and looks for dead cycles by trial deletion.
    RefCount,
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
