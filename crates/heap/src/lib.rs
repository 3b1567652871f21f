//! heap

pub mod pauses;
pub mod stats;
