//! The collectors, one file each.

mod generational;
mod mark_compact;
mod mark_sweep;
#[cfg(test)]
mod moving_tests;
mod semispace;

pub use generational::Generational;
pub use mark_compact::MarkCompact;
pub use mark_sweep::MarkSweep;
pub use semispace::Semispace;
