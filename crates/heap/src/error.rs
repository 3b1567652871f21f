//! What can go wrong, as values. Every message says what to do next.

use thiserror::Error;

/// The heap could not be made, or a shape could not be defined.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeapError {
    /// The limit leaves no room for even one block.
    #[error(
        "a heap limit of {limit} bytes is too small for the {collector} collector: it needs at least {least} bytes"
    )]
    LimitTooSmall {
        /// What was asked for.
        limit: usize,
        /// The least that this collector can work with.
        least: usize,
        /// The collector's name.
        collector: &'static str,
    },
    /// The limit is beyond what references can name.
    #[error(
        "a heap limit of {limit} bytes is too large: all heaps of a process share {ADDRESS} GiB of address space; choose a smaller limit",
        ADDRESS = crate::reference::ADDRESS_LIMIT >> 30
    )]
    LimitTooLarge {
        /// What was asked for.
        limit: usize,
    },
    /// The operating system has no address range left below 16 GiB.
    #[error(
        "could not reserve {bytes} bytes of address space below 16 GiB ({reason}); choose a smaller heap limit, or drop other heaps of this process first"
    )]
    Reserve {
        /// What was asked for.
        bytes: usize,
        /// What the operating system said.
        reason: String,
    },
    /// All shape ids are taken.
    #[error("this heap has 65535 shapes already; share shapes between classes of equal layout")]
    TooManyShapes,
    /// A shape that cannot be laid out.
    #[error("shape {name}: {reason}")]
    BadShape {
        /// The shape's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A setting that makes no sense.
    #[error("setting {setting}: {reason}")]
    BadSetting {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The collector's thread could not be started.
    #[error("could not start the collector thread: {0}")]
    Thread(String),
    /// No collector has this name.
    #[error("no collector is called {name:?}; there are {known}")]
    UnknownCollector {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
}

/// An allocation failed. Nothing was lost: the heap is as before, and a later allocation may
/// succeed when references have been dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AllocError {
    /// The live objects leave no room, even after a full collection.
    #[error(
        "out of memory: {requested} bytes do not fit; after a full collection {used} of at most {limit} bytes are in use. Raise the heap limit or drop references"
    )]
    OutOfMemory {
        /// Bytes of the object that did not fit.
        requested: usize,
        /// Bytes in use after the full collection.
        used: usize,
        /// The heap's limit.
        limit: usize,
    },
    /// The object would not fit into an empty heap.
    #[error(
        "an object of {requested} bytes is larger than the heap can ever hold ({limit} bytes); raise the heap limit"
    )]
    TooLarge {
        /// Bytes of the object.
        requested: u64,
        /// The heap's limit.
        limit: usize,
    },
}
