//! Renders what the engines found. The values come from the crates below; this crate turns them into text, JSON and
//! logs, and returns strings and values: printing is the business of the command line.
//!
//! | module | renders |
//! |---|---|
//! | [`statistics`] | the statistics of a heap as a table and as JSON |
//! | [`gc_log`] | collections as a log in the form of HotSpot's `-Xlog:gc`, for the viewers that read it |
//! | [`table`] | plain text in columns |
//! | [`units`] | sizes, durations and counts for human readers |
//!
//! ```
//! use liveoak_heap::stats::{Cause, CollectionKind, Elapsed, Stats, Usage};
//! use liveoak_report::{gc_log, statistics};
//! use std::time::Duration;
//!
//! let mut stats = Stats::new("mark-sweep");
//! let usage = |megabytes: u64| Usage { objects: 1000, bytes: megabytes << 20, capacity: 64 << 20 };
//! let elapsed = Elapsed { wall: Duration::from_micros(1234), cpu: Duration::from_micros(1200) };
//! let full = stats.begin_at(Duration::from_millis(122), CollectionKind::Full, Cause::Explicit, usage(24));
//! stats.finish_stopped(full, usage(2), elapsed);
//!
//! let log = gc_log::unified(&stats);
//! assert_eq!(log[0].to_string(), "[0.000s][info][gc] Using Serial");
//! assert_eq!(log[2].to_string(), "[0.123s][info][gc] GC(0) Pause Full (System.gc()) 24M->2M(64M) 1.234ms");
//! assert_eq!(statistics::json(&stats)["totals"]["collections"], 1);
//! ```

#![forbid(unsafe_code)]

pub mod gc_log;
pub mod statistics;
pub mod table;
pub mod units;
