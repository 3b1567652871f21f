//! The collectors, one file each.

mod generational;
mod mark_compact;
mod mark_sweep;
mod semispace;

pub use generational::Generational;
pub use mark_compact::MarkCompact;
pub use mark_sweep::MarkSweep;
pub use semispace::Semispace;
