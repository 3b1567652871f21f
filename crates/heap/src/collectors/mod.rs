//! The collectors, one file each.

mod generational;
mod mark_sweep;
mod refcount;

pub use generational::Generational;
pub use mark_sweep::MarkSweep;
pub use refcount::RefCount;
