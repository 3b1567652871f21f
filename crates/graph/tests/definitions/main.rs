//! The answers of the crate against the definitions, on small random memories.
//!
//! Nothing here is clever: a definition is evaluated as it stands, by trying every possibility.

mod brute_force;
mod collections;
mod dominance;
mod isomorphisms;
mod paths;
mod random;
