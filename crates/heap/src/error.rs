//! What can go wrong, as values. Every message says what to do next.

use std::num::NonZeroU32;
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
///
/// It is four bytes long, so that the result of an allocation travels in registers.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct AllocError(NonZeroU32);

impl AllocError {
    const TOO_LARGE: u32 = 1;

    /// The live objects leave no room for `bytes` more.
    pub(crate) fn out_of_memory(bytes: usize) -> AllocError {
        AllocError::new(bytes as u64, 0)
    }

    /// An object of `bytes` would not fit into the empty heap.
    pub(crate) fn too_large(bytes: u64) -> AllocError {
        AllocError::new(bytes, AllocError::TOO_LARGE)
    }

    fn new(bytes: u64, kind: u32) -> AllocError {
        // In units of 8 bytes, and one bit for the kind. Sizes beyond that are all "too large".
        let units = (bytes / 8).clamp(1, u64::from(u32::MAX >> 1)) as u32;
        AllocError(NonZeroU32::new(units << 1 | kind).unwrap_or(NonZeroU32::MAX))
    }

    /// Bytes of the object that did not fit (at most 16 GiB are told apart).
    pub fn requested(self) -> u64 {
        u64::from(self.0.get() >> 1) * 8
    }

    /// True when the object would not fit even into the empty heap; false when there was no room
    /// beside the live objects.
    pub fn is_too_large(self) -> bool {
        self.0.get() & AllocError::TOO_LARGE != 0
    }

    fn message(self) -> String {
        let bytes = self.requested();
        if self.is_too_large() {
            format!(
                "an object of {bytes} bytes is larger than this heap can ever hold; raise the heap limit"
            )
        } else {
            format!(
                "out of memory: an object of {bytes} bytes does not fit, even after a full collection; raise the heap limit or drop references"
            )
        }
    }
}

impl std::fmt::Debug for AllocError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_too_large() {
            "TooLarge"
        } else {
            "OutOfMemory"
        };
        write!(f, "{kind} {{ requested: {} }}", self.requested())
    }
}
