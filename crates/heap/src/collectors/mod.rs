//! The collectors, each in a module of its own that begins with its idea and its invariants.

pub mod generational;
pub mod mark_compact;
pub mod mark_sweep;
#[cfg(test)]
mod moving_tests;
pub mod semispace;

pub use generational::Generational;
pub use mark_compact::MarkCompact;
pub use mark_sweep::MarkSweep;
pub use semispace::Semispace;
