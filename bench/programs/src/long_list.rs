//! `long-list`: does dying in depth cost stack?

/// Cells allocated and forgotten one by one after the list.
pub const AFTER: u64 = 1_000_000;

/// The text that every contender must print.
pub fn checksum(objects: u64, sum: u64) -> String {
    format!("long-list {objects} sum={sum}")
}
