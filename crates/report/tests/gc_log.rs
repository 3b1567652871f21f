//! The log, read back.
//!
//! [`parse`] is a reader for unified garbage collection logs, written from what HotSpot prints and what GCViewer's
//! reader takes: the layout of a line, the names of events, and what must follow each name. It is tried on lines that
//! HotSpot printed; then it must read every line of ours, and get back the numbers that went in.

use std::time::Duration;

use liveoak_heap::stats::{
    Cause, Collection, CollectionKind, ConcurrentPhase, ConcurrentWork, Elapsed, Pause, PausePhase,
    Stats, Usage,
};
use liveoak_report::gc_log;

/// What must follow the name of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tail {
    /// `24M->2M(64M) 1.234ms`
    MemoryAndTime,
    /// `1.234ms`, or nothing where the event begins.
    TimeOrNothing,
}

/// The events that GCViewer knows, as far as HotSpot's Serial, Parallel, G1 and CMS print them with `-Xlog:gc`.
const EVENTS: [(&str, Tail); 10] = [
    ("Pause Young", Tail::MemoryAndTime),
    ("Pause Full", Tail::MemoryAndTime),
    ("Pause Mixed", Tail::MemoryAndTime),
    ("Pause Initial Mark", Tail::MemoryAndTime),
    ("Pause Remark", Tail::MemoryAndTime),
    ("Pause Cleanup", Tail::MemoryAndTime),
    ("Concurrent Mark", Tail::TimeOrNothing),
    ("Concurrent Sweep", Tail::TimeOrNothing),
    ("Concurrent Cycle", Tail::TimeOrNothing),
    ("Concurrent Reset", Tail::TimeOrNothing),
];

/// A line, understood.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    uptime_ms: u64,
    id: u64,
    /// Without what stood in parentheses.
    name: &'static str,
    /// What stood in parentheses after the name.
    detail: String,
    /// Bytes before, bytes after, capacity.
    memory: Option<[u64; 3]>,
    duration_us: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Parsed {
    Event(Event),
    /// A line that readers show or skip, but do not understand.
    Remark,
}

fn parse(line: &str) -> Result<Parsed, String> {
    let fail = |what: &str| format!("{what}: {line}");
    let rest = line
        .strip_prefix('[')
        .ok_or_else(|| fail("no decorations"))?;
    let (uptime, rest) = rest
        .split_once("s][info][")
        .ok_or_else(|| fail("no uptime and level"))?;
    let (tags, message) = rest.split_once("] ").ok_or_else(|| fail("no tags"))?;
    let uptime_ms = fixed_point(uptime).ok_or_else(|| fail("not a time"))?;
    if tags.trim_end() != "gc" || message.starts_with("Using ") {
        return Ok(Parsed::Remark);
    }
    let rest = message
        .strip_prefix("GC(")
        .ok_or_else(|| fail("no number"))?;
    let (id, rest) = rest
        .split_once(") ")
        .ok_or_else(|| fail("no end of the number"))?;
    let (title, tail) = split_before_number(rest);
    if !title
        .chars()
        .all(|c| c.is_ascii_alphabetic() || "-.: ()1".contains(c))
    {
        return Err(fail("not a name"));
    }
    let (name, detail) = title.split_once(" (").unwrap_or((title, ""));
    let known = EVENTS.iter().find(|(known, _)| *known == name);
    let &(name, expected) = known.ok_or_else(|| fail("unknown event"))?;
    let (memory, duration_us) = match (expected, tail) {
        (Tail::TimeOrNothing, None) => (None, None),
        (Tail::TimeOrNothing, Some(time)) => (
            None,
            Some(microseconds(time).ok_or_else(|| fail("not a duration"))?),
        ),
        (Tail::MemoryAndTime, tail) => {
            let (memory, time) = tail
                .and_then(|tail| tail.split_once(' '))
                .ok_or_else(|| fail("no memory"))?;
            let memory = sizes(memory).ok_or_else(|| fail("not memory"))?;
            (
                Some(memory),
                Some(microseconds(time).ok_or_else(|| fail("not a duration"))?),
            )
        }
    };
    Ok(Parsed::Event(Event {
        uptime_ms,
        id: id.parse().map_err(|_| fail("not a number"))?,
        name,
        detail: detail.strip_suffix(')').unwrap_or(detail).to_string(),
        memory,
        duration_us,
    }))
}

/// A name ends where a word begins with a digit. Words in parentheses belong to the name: `(G1 Evacuation Pause)`.
fn split_before_number(text: &str) -> (&str, Option<&str>) {
    let is_tail =
        |&(place, _): &(usize, &str)| text[place + 1..].starts_with(|c: char| c.is_ascii_digit());
    match text.match_indices(' ').find(is_tail) {
        Some((place, _)) => (&text[..place], Some(&text[place + 1..])),
        None => (text, None),
    }
}

/// `1.234` as 1234: three decimals, no more and no less.
fn fixed_point(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.')?;
    if fraction.len() != 3 {
        return None;
    }
    Some(whole.parse::<u64>().ok()? * 1000 + fraction.parse::<u64>().ok()?)
}

fn microseconds(text: &str) -> Option<u64> {
    fixed_point(text.strip_suffix("ms")?)
}

fn sizes(text: &str) -> Option<[u64; 3]> {
    let (before, rest) = text.split_once("->")?;
    let (after, capacity) = rest.strip_suffix(')')?.split_once('(')?;
    Some([size(before)?, size(after)?, size(capacity)?])
}

fn size(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'B' => 0,
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return None,
    };
    // GCViewer reads the number as a Java `int`.
    let value: i32 = text[..text.len() - 1].parse().ok()?;
    Some(u64::try_from(value).ok()? << shift)
}

/// Printed by OpenJDK 17.0.15: `java -Xmx32m -Xlog:gc` (the padded tags: `-Xlog:gc*`) with Serial, Parallel and G1.
const HOTSPOT: &str = "\
[0.003s][info][gc] Using Serial
[0.066s][info][gc] GC(0) Pause Young (Allocation Failure) 8M->5M(30M) 5.909ms
[0.092s][info][gc] GC(5) Pause Full (Allocation Failure) 28M->10M(30M) 6.065ms
[0.044s][info][gc,cpu      ] GC(0) User=0.01s Sys=0.00s Real=0.00s
[0.044s][info][gc          ] GC(0) Pause Young (Allocation Failure) 8M->5M(30M) 5.145ms
[0.064s][info][gc] GC(4) Pause Full (Ergonomics) 30M->9M(31M) 6.402ms
[0.306s][info][gc] GC(185) Pause Full (System.gc()) 17M->9M(28M) 2.491ms
[0.103s][info][gc] GC(5) Pause Remark 22M->22M(32M) 0.252ms
[0.128s][info][gc] GC(16) Pause Cleanup 24M->24M(32M) 0.073ms";

/// The form of CMS, written by hand: JDK 14 removed it.
const CMS: &str = "\
[0.010s][info][gc] Using Concurrent Mark Sweep
[0.500s][info][gc] GC(7) Pause Initial Mark 50M->50M(100M) 0.125ms
[0.500s][info][gc] GC(7) Concurrent Mark
[0.503s][info][gc] GC(7) Concurrent Mark 3.000ms
[0.505s][info][gc] GC(7) Concurrent Sweep 1.500ms";

fn event(line: &str) -> Event {
    match parse(line) {
        Ok(Parsed::Event(event)) => event,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_reader_reads_what_hotspot_prints() {
    let parsed: Result<Vec<_>, _> = HOTSPOT.lines().chain(CMS.lines()).map(parse).collect();
    let parsed = parsed.expect("HotSpot writes such lines");
    assert_eq!(
        parsed
            .iter()
            .filter(|line| **line == Parsed::Remark)
            .count(),
        3
    );
    let explicit =
        event("[0.306s][info][gc] GC(185) Pause Full (System.gc()) 17M->9M(28M) 2.491ms");
    assert_eq!(
        explicit,
        Event {
            uptime_ms: 306,
            id: 185,
            name: "Pause Full",
            detail: "System.gc()".to_string(),
            memory: Some([17 << 20, 9 << 20, 28 << 20]),
            duration_us: Some(2491),
        }
    );
    let young = event(
        "[0.080s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->5M(32M) 9.891ms",
    );
    assert_eq!(young.name, "Pause Young");
    assert_eq!(young.duration_us, Some(9891));
}

#[test]
fn the_reader_is_strict() {
    for line in [
        "GC(0) Pause Young (Allocation Failure) 8M->5M(30M) 5.909ms",
        "[0.066s][info][gc] Pause Young (Allocation Failure) 8M->5M(30M) 5.909ms",
        "[0.066s][info][gc] GC(0) Pause Old (Allocation Failure) 8M->5M(30M) 5.909ms",
        "[0.066s][info][gc] GC(0) Pause Young (Allocation Failure) 8M->5M 5.909ms",
        "[0.066s][info][gc] GC(0) Pause Young (Allocation Failure) 8.5M->5M(30M) 5.909ms",
        "[0.066s][info][gc] GC(0) Pause Young (Allocation Failure) 8M->5M(30M)",
        "[0.066s][info][gc] GC(0) Pause Young (Allocation Failure) 5.909ms",
        "[0.066s][info][gc] GC(0) Concurrent Mark 5.9s",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

const SIZES: [u64; 9] = [
    0,
    24,
    99_999,
    102_400,
    1_234_567,
    24 << 20,
    (24 << 20) + 8,
    987_654_321,
    (250 << 30) + 8,
];
const MICROSECONDS: [u64; 5] = [0, 7, 1234, 999_999, 14_289_335];

fn us(microseconds: u64) -> Elapsed {
    Elapsed {
        wall: Duration::from_micros(microseconds),
        cpu: Duration::from_micros(microseconds / 2),
    }
}

fn usage(bytes: u64) -> Usage {
    Usage {
        objects: bytes / 24,
        bytes,
        capacity: bytes.next_multiple_of(1 << 20),
    }
}

/// A written size stands for the original: exactly, or a hundredth below it.
fn assert_stands_for(written: u64, original: u64) {
    assert!(written <= original, "{written} for {original}");
    assert!(
        original - written <= original / 100,
        "{written} for {original}"
    );
}

fn assert_says(event: &Event, collection: &Collection, pause: &Pause) {
    assert_eq!(event.id, collection.id);
    assert_eq!(
        event.duration_us.map(u128::from),
        Some(pause.elapsed.wall.as_micros())
    );
    // HotSpot's clock has three decimals; which way a half is rounded does not matter here.
    let end = (pause.start + pause.elapsed.wall).as_micros();
    assert!((u128::from(event.uptime_ms) * 1000).abs_diff(end) <= 500);
    let [before, after, capacity] = event.memory.expect("a pause has memory");
    assert_stands_for(before, pause.bytes_before);
    assert_stands_for(after, pause.bytes_after);
    assert_stands_for(capacity, collection.after.capacity);
}

fn events_of(collection: &Collection) -> Vec<Event> {
    let lines = gc_log::collection(collection);
    lines.iter().map(|line| event(&line.to_string())).collect()
}

#[test]
fn stopped_collections_come_back() {
    let mut stats = Stats::new("generational").with_history(usize::MAX);
    for kind in CollectionKind::ALL {
        for cause in Cause::ALL {
            for (n, &bytes) in SIZES.iter().enumerate() {
                for &wall in &MICROSECONDS {
                    let start = Duration::from_micros(wall * 3 + n as u64 * 1001);
                    let collection = stats.begin_at(start, kind, cause, usage(bytes));
                    stats.finish_stopped(collection, usage(SIZES[SIZES.len() - 1 - n]), us(wall));
                }
            }
        }
    }
    for collection in stats.history() {
        let events = events_of(collection);
        let pauses: Vec<_> = events
            .iter()
            .filter(|event| event.memory.is_some())
            .collect();
        let [pause] = pauses[..] else {
            panic!("{events:?}")
        };
        assert_says(pause, collection, &collection.pauses().longest()[0]);
        assert_eq!(
            pause.detail == "System.gc()",
            collection.cause == Cause::Explicit
        );
        let expected = match collection.kind {
            CollectionKind::Minor | CollectionKind::Epoch => "Pause Young",
            CollectionKind::Cycles => "Pause Mixed",
            _ => "Pause Full",
        };
        assert_eq!(pause.name, expected);
    }
    let log = gc_log::unified(&stats);
    assert!(log.is_sorted_by_key(|line| line.at));
    for line in log {
        parse(&line.to_string()).expect("every line can be read");
    }
}

#[test]
fn cycles_come_back() {
    let phases = [
        PausePhase::InitialMark,
        PausePhase::MarkStep,
        PausePhase::Remark,
        PausePhase::SweepStep,
    ];
    for kind in [CollectionKind::Incremental, CollectionKind::Concurrent] {
        let mut stats = Stats::new(kind.name());
        let start = Duration::from_secs(1);
        let mut cycle = stats.begin_at(start, kind, Cause::Threshold, usage(SIZES[5]));
        for (n, phase) in phases.into_iter().enumerate() {
            let pause = Pause {
                phase,
                start: start + Duration::from_millis(10 * n as u64),
                elapsed: us(100 + n as u64),
                bytes_before: SIZES[n + 1],
                bytes_after: SIZES[n],
            };
            stats.pause(&mut cycle, pause);
        }
        if kind == CollectionKind::Concurrent {
            let marking = ConcurrentWork {
                phase: ConcurrentPhase::Mark,
                start: start + Duration::from_millis(1),
                elapsed: us(8765),
            };
            cycle.concurrent.push(marking);
        }
        stats.finish(cycle, usage(SIZES[4]), us(54_321));

        let cycle = stats.history().next().expect("just finished");
        let (pauses, work): (Vec<_>, Vec<_>) = events_of(cycle)
            .into_iter()
            .partition(|event| event.memory.is_some());
        assert_eq!(pauses.len(), phases.len());
        for (event, pause) in pauses.iter().zip(cycle.pauses().longest()) {
            assert_says(event, cycle, pause);
        }
        let names: Vec<_> = pauses.iter().map(|event| event.name).collect();
        assert_eq!(
            names,
            [
                "Pause Initial Mark",
                "Pause Remark",
                "Pause Remark",
                "Pause Cleanup"
            ]
        );
        let work: Vec<_> = work
            .iter()
            .map(|event| (event.name, event.duration_us))
            .collect();
        let expected = match kind {
            CollectionKind::Concurrent => {
                [("Concurrent Mark", None), ("Concurrent Mark", Some(8765))]
            }
            _ => [
                ("Concurrent Cycle", None),
                ("Concurrent Cycle", Some(54_321)),
            ],
        };
        assert_eq!(work, expected);
    }
}
