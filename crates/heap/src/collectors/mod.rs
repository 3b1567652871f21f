//! The collectors, each in a module of its own that begins with its idea and its invariants.

pub mod generational;
pub mod mark_compact;
pub mod mark_sweep;
pub mod refcount;
pub mod semispace;
#[cfg(test)]
mod moving_tests;

pub use generational::Generational;
pub use mark_compact::MarkCompact;
pub use mark_sweep::MarkSweep;
pub use refcount::RefCount;
pub use semispace::Semispace;
