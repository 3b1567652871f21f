//! The collectors, each in a module of its own that begins with its idea and its invariants.

pub mod concurrent;
pub mod generational;
pub mod incremental;
pub mod mark_compact;
pub mod mark_sweep;
#[cfg(test)]
mod moving_tests;
pub mod refcount;
pub mod semispace;

pub use concurrent::Concurrent;
pub use generational::Generational;
pub use incremental::Incremental;
pub use mark_compact::MarkCompact;
pub use mark_sweep::MarkSweep;
pub use refcount::RefCount;
pub use semispace::Semispace;
