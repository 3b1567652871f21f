//! The collectors, one file each.

mod generational;
pub mod incremental;
mod mark_sweep;

pub use generational::Generational;
pub use incremental::Incremental;
pub use mark_sweep::MarkSweep;
