//! Collections as a log in the form of HotSpot's unified logging (`java -Xlog:gc`), so that the tools which people
//! already have for such logs, GCViewer first, show ours.
//!
//! ```text
//! [0.000s][info][gc] Using Serial
//! [0.000s][info][gc,init] Version: Liveoak 0.1.0 (generational)
//! [0.123s][info][gc] GC(0) Pause Young (Allocation Failure) 24M->2M(64M) 1.234ms
//! [0.456s][info][gc] GC(1) Pause Full (System.gc()) 31M->1843K(64M) 5.678ms
//! ```
//!
//! A line says when it was written, `GC(n)`, what happened, the used bytes before and after and the committed ones,
//! and the duration; it is written when the thing has ended. What GCViewer's reader (`DataReaderUnifiedJvmLogging`)
//! takes decides the rest:
//!
//! - It looks the name up in a table, after removing what stands in parentheses, and drops a line with an unknown
//!   name. So each collection of ours goes by the name of the nearest thing that it knows:
//!
//!   | ours | in the log | because |
//!   |---|---|---|
//!   | minor, epoch | `Pause Young` | short, frequent, frees what died recently |
//!   | full | `Pause Full` | |
//!   | cycles | `Pause Mixed` | a part of the old objects |
//!   | roots of a cycle | `Pause Initial Mark` | |
//!   | slice of marking | `Pause Remark (Mark Step)` | marking, stopped; collects nothing by itself |
//!   | roots again | `Pause Remark` | |
//!   | slice of sweeping | `Pause Cleanup (Sweep Step)` | |
//!   | marking, sweeping beside the mutators | `Concurrent Mark`, `Concurrent Sweep` | the names of CMS |
//!   | a cycle of which no concurrent work was recorded | `Concurrent Cycle` | its beginning and its end, as G1 writes it; JDK 16 and later say `Concurrent Mark Cycle`, which older readers do not know |
//!
//! - A name has letters, spaces, `.`, `-`, `:` and parentheses, but no digits: a number ends it.
//! - A size is a whole number and one of `B`, `K`, `M`, `G`. HotSpot writes megabytes, which says nothing about a
//!   heap of two of them. We write the largest unit that is exact, or that is off by less than a hundredth.
//! - Lines with tags other than `gc` (and a few that we do not use) are skipped. There we say what its tables have
//!   no name for.
//! - `Using …` is shown as it is; other tools choose their grammar by it. So it names the HotSpot collector whose
//!   lines ours resemble, and the next line tells the truth.

use std::fmt;
use std::time::Duration;

use liveoak_heap::stats::{
    Cause, Collection, CollectionKind, ConcurrentPhase, ConcurrentWork, Pause, PausePhase, Stats,
};

/// One line of the log. [`Display`](fmt::Display) writes it, without the line's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it was written, since the heap was created.
    pub at: Duration,
    /// HotSpot's tags, separated by commas.
    pub tags: &'static str,
    /// What it says.
    pub message: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { at, tags, message } = self;
        write!(f, "[{:.3}s][info][{tags}] {message}", at.as_secs_f64())
    }
}

/// The whole log: [`header`], then the lines of all collections of which there is a record, in the order of time.
///
/// For a complete log, the statistics must keep all records (`Stats::with_history`); if some are missing, a line
/// after the header says how many.
pub fn unified(stats: &Stats) -> Vec<Line> {
    let mut events: Vec<Line> = stats.history().flat_map(collection).collect();
    // Collections overlap; a stable sort keeps the lines of each in their order.
    events.sort_by_key(|line| line.at);
    let mut lines = header(stats);
    lines.extend(forgotten(stats));
    lines.append(&mut events);
    lines
}

/// The first lines of a log: which collector.
pub fn header(stats: &Stats) -> Vec<Line> {
    let resembles = match stats.collector() {
        "incremental" | "concurrent" => "Concurrent Mark Sweep",
        _ => "Serial",
    };
    let version = env!("CARGO_PKG_VERSION");
    vec![
        Line {
            at: Duration::ZERO,
            tags: "gc",
            message: format!("Using {resembles}"),
        },
        Line {
            at: Duration::ZERO,
            tags: "gc,init",
            message: format!("Version: Liveoak {version} ({})", stats.collector()),
        },
    ]
}

fn forgotten(stats: &Stats) -> Option<Line> {
    let forgotten = stats.forgotten();
    (forgotten > 0).then(|| Line {
        at: Duration::ZERO,
        tags: "gc,stats",
        message: format!(
            "The first {forgotten} collections are missing: only the last records were kept"
        ),
    })
}

/// The lines of one collection, in the order of time: for those who write the log as the program runs.
pub fn collection(collection: &Collection) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let runs_beside_mutators = matches!(
        collection.kind,
        CollectionKind::Incremental | CollectionKind::Concurrent
    );
    let is_undivided = runs_beside_mutators && collection.concurrent.is_empty();
    if is_undivided {
        lines.push(event(collection, collection.start, "Concurrent Cycle"));
    }
    let pauses = collection.pauses().longest().iter();
    lines.extend(pauses.map(|pause| pause_line(collection, pause)));
    for work in &collection.concurrent {
        lines.extend(concurrent_lines(collection, work));
    }
    lines.sort_by_key(|line| line.at);
    if is_undivided {
        let ended = format!("Concurrent Cycle {}", milliseconds(collection.elapsed.wall));
        lines.push(event(collection, collection.end(), &ended));
    }
    lines.extend(shorter_pauses(collection));
    lines
}

fn event(collection: &Collection, at: Duration, what: &str) -> Line {
    Line {
        at,
        tags: "gc",
        message: format!("GC({}) {what}", collection.id),
    }
}

fn pause_line(collection: &Collection, pause: &Pause) -> Line {
    let what = format!(
        "{} {}->{}({}) {}",
        pause_name(collection, pause.phase),
        size(pause.bytes_before),
        size(pause.bytes_after),
        size(collection.after.capacity),
        milliseconds(pause.elapsed.wall),
    );
    event(collection, pause.start + pause.elapsed.wall, &what)
}

fn pause_name(collection: &Collection, phase: PausePhase) -> String {
    match phase {
        PausePhase::Whole => format!(
            "{} ({})",
            whole_name(collection.kind),
            cause_name(collection.cause)
        ),
        PausePhase::InitialMark => "Pause Initial Mark".to_string(),
        PausePhase::MarkStep => "Pause Remark (Mark Step)".to_string(),
        PausePhase::Remark => "Pause Remark".to_string(),
        PausePhase::SweepStep => "Pause Cleanup (Sweep Step)".to_string(),
    }
}

fn whole_name(kind: CollectionKind) -> &'static str {
    match kind {
        CollectionKind::Minor | CollectionKind::Epoch => "Pause Young",
        CollectionKind::Cycles => "Pause Mixed",
        // A cycle that was done in one pause after all was a full collection.
        CollectionKind::Full | CollectionKind::Incremental | CollectionKind::Concurrent => {
            "Pause Full"
        }
    }
}

/// HotSpot's word where it has one for the same thing.
fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::AllocationFailure | Cause::NurseryFull => "Allocation Failure",
        Cause::Threshold => "Ergonomics",
        Cause::Explicit => "System.gc()",
        Cause::OutOfMemory => "Last ditch collection",
        Cause::Finish => "Finish Cycle",
    }
}

fn concurrent_lines(collection: &Collection, work: &ConcurrentWork) -> [Line; 2] {
    let name = match work.phase {
        ConcurrentPhase::Mark => "Concurrent Mark",
        ConcurrentPhase::Sweep => "Concurrent Sweep",
    };
    let ended = format!("{name} {}", milliseconds(work.elapsed.wall));
    [
        event(collection, work.start, name),
        event(collection, work.start + work.elapsed.wall, &ended),
    ]
}

/// A record keeps its longest pauses only; what the rest came to goes where viewers do not look.
fn shorter_pauses(collection: &Collection) -> Option<Line> {
    let pauses = collection.pauses();
    let shown: Duration = pauses
        .longest()
        .iter()
        .map(|pause| pause.elapsed.wall)
        .sum();
    let hidden = pauses.count() - pauses.longest().len() as u64;
    (hidden > 0).then(|| Line {
        at: collection.end(),
        tags: "gc,stats",
        message: format!(
            "GC({}) {hidden} shorter pauses not shown, {} in all",
            collection.id,
            milliseconds(pauses.total().wall.saturating_sub(shown))
        ),
    })
}

/// HotSpot's form: microseconds written as a fraction of milliseconds.
fn milliseconds(duration: Duration) -> String {
    format!("{:.3}ms", duration.as_secs_f64() * 1000.0)
}

/// The largest unit that is exact or, the value being at least a hundred of it, off by less than a hundredth.
fn size(bytes: u64) -> String {
    for (shift, unit) in [(30, 'G'), (20, 'M'), (10, 'K')] {
        let value = bytes >> shift;
        let is_exact = value << shift == bytes && bytes > 0;
        if is_exact || value >= 100 {
            return format!("{value}{unit}");
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use liveoak_heap::stats::{Elapsed, PAUSES_KEPT, Usage};

    fn usage(bytes: u64) -> Usage {
        Usage {
            objects: 1,
            bytes,
            capacity: 64 << 20,
        }
    }

    fn us(wall: u64) -> Elapsed {
        Elapsed {
            wall: Duration::from_micros(wall),
            cpu: Duration::from_micros(wall),
        }
    }

    fn pause(phase: PausePhase, start_ms: u64, wall_us: u64, bytes: u64) -> Pause {
        Pause {
            phase,
            start: Duration::from_millis(start_ms),
            elapsed: us(wall_us),
            bytes_before: bytes,
            bytes_after: bytes,
        }
    }

    fn log(stats: &Stats) -> String {
        let lines: Vec<String> = unified(stats).iter().map(Line::to_string).collect();
        lines.join("\n")
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn stopped_collections() {
        let mut stats = Stats::new("generational");
        let minor = stats.begin_at(
            at(122),
            CollectionKind::Minor,
            Cause::NurseryFull,
            usage(24 << 20),
        );
        stats.finish_stopped(minor, usage(2 << 20), us(1234));
        let full = stats.begin_at(
            at(450),
            CollectionKind::Full,
            Cause::Explicit,
            usage(31 << 20),
        );
        stats.finish_stopped(full, usage(1_887_436), us(5678));
        assert_eq!(
            log(&stats),
            "\
[0.000s][info][gc] Using Serial
[0.000s][info][gc,init] Version: Liveoak 0.1.0 (generational)
[0.123s][info][gc] GC(0) Pause Young (Allocation Failure) 24M->2M(64M) 1.234ms
[0.456s][info][gc] GC(1) Pause Full (System.gc()) 31M->1843K(64M) 5.678ms"
        );
    }

    #[test]
    fn a_concurrent_cycle_around_a_minor_collection() {
        let mut stats = Stats::new("concurrent");
        let mut cycle = stats.begin_at(
            at(100),
            CollectionKind::Concurrent,
            Cause::Threshold,
            usage(40 << 20),
        );
        stats.pause(
            &mut cycle,
            pause(PausePhase::InitialMark, 100, 50, 40 << 20),
        );
        for (phase, start, wall) in [
            (ConcurrentPhase::Mark, 101, 20_000),
            (ConcurrentPhase::Sweep, 123, 7000),
        ] {
            cycle.concurrent.push(ConcurrentWork {
                phase,
                start: at(start),
                elapsed: us(wall),
            });
        }
        stats.pause(&mut cycle, pause(PausePhase::Remark, 122, 80, 44 << 20));
        let minor = stats.begin_at(
            at(110),
            CollectionKind::Minor,
            Cause::NurseryFull,
            usage(43 << 20),
        );
        stats.finish_stopped(minor, usage(42 << 20), us(500));
        stats.finish(cycle, usage(10 << 20), us(30_000));
        assert_eq!(
            log(&stats),
            "\
[0.000s][info][gc] Using Concurrent Mark Sweep
[0.000s][info][gc,init] Version: Liveoak 0.1.0 (concurrent)
[0.100s][info][gc] GC(0) Pause Initial Mark 40M->40M(64M) 0.050ms
[0.101s][info][gc] GC(0) Concurrent Mark
[0.111s][info][gc] GC(1) Pause Young (Allocation Failure) 43M->42M(64M) 0.500ms
[0.121s][info][gc] GC(0) Concurrent Mark 20.000ms
[0.122s][info][gc] GC(0) Pause Remark 44M->44M(64M) 0.080ms
[0.123s][info][gc] GC(0) Concurrent Sweep
[0.130s][info][gc] GC(0) Concurrent Sweep 7.000ms"
        );
    }

    #[test]
    fn an_incremental_cycle_shows_its_longest_slices() {
        let mut stats = Stats::new("incremental");
        let mut cycle = stats.begin_at(
            at(100),
            CollectionKind::Incremental,
            Cause::Threshold,
            usage(4096),
        );
        for _ in 0..PAUSES_KEPT {
            stats.pause(&mut cycle, pause(PausePhase::MarkStep, 101, 10, 5000));
        }
        for _ in 0..3 {
            stats.pause(&mut cycle, pause(PausePhase::SweepStep, 102, 5, 4000));
        }
        stats.finish(cycle, usage(4000), us(3000));
        let log = log(&stats);
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len(), 2 + 1 + PAUSES_KEPT + 2);
        assert_eq!(lines[2], "[0.100s][info][gc] GC(0) Concurrent Cycle");
        assert_eq!(
            lines[3],
            "[0.101s][info][gc] GC(0) Pause Remark (Mark Step) 5000B->5000B(64M) 0.010ms"
        );
        assert_eq!(
            lines[lines.len() - 2..],
            [
                "[0.103s][info][gc] GC(0) Concurrent Cycle 3.000ms",
                "[0.103s][info][gc,stats] GC(0) 3 shorter pauses not shown, 0.015ms in all",
            ]
        );
    }

    #[test]
    fn missing_records_are_admitted() {
        let mut stats = Stats::new("refcount").with_history(1);
        for kind in [CollectionKind::Epoch, CollectionKind::Cycles] {
            let collection = stats.begin_at(at(1), kind, Cause::Threshold, usage(0));
            stats.finish_stopped(collection, usage(0), us(1));
        }
        assert_eq!(
            log(&stats),
            "\
[0.000s][info][gc] Using Serial
[0.000s][info][gc,init] Version: Liveoak 0.1.0 (refcount)
[0.000s][info][gc,stats] The first 1 collections are missing: only the last records were kept
[0.001s][info][gc] GC(1) Pause Mixed (Ergonomics) 0B->0B(64M) 0.001ms"
        );
    }

    #[test]
    fn sizes_are_exact_or_nearly_so() {
        let expected = [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1K"),
            (102_399, "102399B"),
            (102_401, "100K"),
            (1 << 20, "1M"),
            ((1 << 20) + 1, "1024K"),
            ((100 << 20) + 1, "100M"),
            (3 << 30, "3G"),
            ((3 << 30) + 1, "3072M"),
            (u64::MAX, "17179869183G"),
        ];
        for (bytes, text) in expected {
            assert_eq!(size(bytes), text);
        }
    }
}
