//! The collectors, one file each.

mod generational;
mod mark_sweep;

pub use generational::Generational;
pub use mark_sweep::MarkSweep;
