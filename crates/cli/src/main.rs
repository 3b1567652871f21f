//! The `liveoak` command.
fn main() {}
