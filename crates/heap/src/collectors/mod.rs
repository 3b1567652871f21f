//! The collectors, each in a module of its own that begins with its idea and its invariants.

pub mod generational;
pub mod mark_sweep;

pub use generational::Generational;
pub use mark_sweep::MarkSweep;
