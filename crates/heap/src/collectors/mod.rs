//! The collectors, one file each.

pub mod concurrent;
mod generational;
mod mark_sweep;

pub use concurrent::Concurrent;
pub use generational::Generational;
pub use mark_sweep::MarkSweep;
