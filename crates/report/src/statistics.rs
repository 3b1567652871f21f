//! The statistics of a heap: [`text`] for people, [`json()`] for programs.
//!
//! # The JSON document
//!
//! Field names and the names of kinds, causes and phases are stable; new fields may be added. Times are whole
//! nanoseconds (`…_ns`), sizes are bytes. `elapsed` stands for `{"wall_ns", "cpu_ns"}`, `amount` for
//! `{"objects", "bytes"}`, `usage` for `{"objects", "bytes", "capacity"}`.
//!
//! | field | content |
//! |---|---|
//! | `collector` | name of the collector, as in `--gc` |
//! | `allocated` | amount allocated since the heap was created |
//! | `peak` | usage: the fullest that a collection saw, each field by itself |
//! | `totals` | sums over all collections: `collections` (how many), `elapsed`, `paused` (elapsed), `marked`, `copied`, `freed` (amounts) |
//! | `kinds` | object: for each kind that occurred, the same sums |
//! | `pauses.wall`, `pauses.cpu` | distribution over all pauses: `count`, `total_ns`, `mean_ns`, `min_ns`, `p50_ns`, `p99_ns`, `p99_9_ns`, `max_ns`; the quantiles are at most 1/32 too high |
//! | `forgotten` | how many collections are no longer in `collections` |
//! | `collections` | the last collections, in the order in which they ended, each with the fields below |
//!
//! | field of a collection | content |
//! |---|---|
//! | `id` | number, in the order in which they began |
//! | `kind` | `minor`, `full`, `incremental`, `concurrent`, `epoch`, `cycles` |
//! | `cause` | `allocation failure`, `nursery full`, `threshold`, `explicit`, `out of memory`, `finish` |
//! | `collector` | name of the collector |
//! | `start_ns` | when it began, since the heap was created |
//! | `before`, `after` | usage |
//! | `marked`, `copied`, `freed` | amounts |
//! | `elapsed` | elapsed |
//! | `concurrent` | array: work beside the mutators: `phase` (`mark`, `sweep`), `start_ns`, `elapsed` |
//! | `pauses` | `count`, `total` (elapsed), `max_wall_ns`, and `longest`, an array: `phase` (`whole`, `initial mark`, `mark step`, `remark`, `sweep step`), `start_ns`, `elapsed`, `bytes_before`, `bytes_after` |

use std::time::Duration;

use liveoak_heap::pauses::Histogram;
use liveoak_heap::stats::{
    Amount, Collection, CollectionKind, CollectionPauses, ConcurrentWork, Elapsed, Pause, Stats,
    Totals, Usage,
};
use serde_json::{Map, Value, json};

use crate::table::Table;
use crate::units;

/// How many of the last collections [`text`] lists.
const LISTED: usize = 10;

/// A report in four parts: totals, kinds of collections, pauses, and the last collections.
pub fn text(stats: &Stats) -> String {
    if stats.totals().collections == 0 && stats.pauses().count() == 0 {
        return summary(stats);
    }
    [
        summary(stats),
        kinds(stats),
        pauses(stats),
        last_collections(stats),
    ]
    .join("\n")
}

fn summary(stats: &Stats) -> String {
    let totals = stats.totals();
    let peak = stats.peak();
    format!(
        "collector    {}\n\
         allocated    {}\n\
         freed        {}\n\
         peak         {} objects, {} of {}\n\
         collections  {} in {} (CPU {}), paused {}\n",
        stats.collector(),
        amount(stats.allocated()),
        amount(totals.freed),
        units::count(peak.objects),
        units::bytes(peak.bytes),
        units::bytes(peak.capacity),
        units::count(totals.collections),
        units::duration(totals.elapsed.wall),
        units::duration(totals.elapsed.cpu),
        units::duration(totals.paused.wall),
    )
}

fn amount(amount: Amount) -> String {
    format!(
        "{} objects, {}",
        units::count(amount.objects),
        units::bytes(amount.bytes)
    )
}

fn kinds(stats: &Stats) -> String {
    let mut table = Table::new([
        "kind", "count", "wall", "CPU", "paused", "marked", "copied", "freed",
    ]);
    for (kind, totals) in kinds_that_occurred(stats) {
        table.row([
            kind.to_string(),
            units::count(totals.collections),
            units::duration(totals.elapsed.wall),
            units::duration(totals.elapsed.cpu),
            units::duration(totals.paused.wall),
            units::count(totals.marked.objects),
            units::count(totals.copied.objects),
            units::count(totals.freed.objects),
        ]);
    }
    table.to_string()
}

fn kinds_that_occurred(stats: &Stats) -> impl Iterator<Item = (CollectionKind, Totals)> {
    let kinds = CollectionKind::ALL.into_iter();
    kinds
        .map(|kind| (kind, stats.totals_of(kind)))
        .filter(|(_, totals)| totals.collections > 0)
}

fn pauses(stats: &Stats) -> String {
    let mut table = Table::new([
        "pauses", "count", "total", "mean", "p50", "p99", "p99.9", "max",
    ]);
    for (clock, pauses) in [
        ("wall", stats.pauses().wall()),
        ("CPU", stats.pauses().cpu()),
    ] {
        table.row([
            clock.to_string(),
            units::count(pauses.count()),
            units::duration(pauses.total()),
            units::duration(pauses.mean()),
            units::duration(pauses.p50()),
            units::duration(pauses.p99()),
            units::duration(pauses.p99_9()),
            units::duration(pauses.max()),
        ]);
    }
    table.to_string()
}

fn last_collections(stats: &Stats) -> String {
    let skipped = stats.history().len().saturating_sub(LISTED);
    let mut table = Table::new([
        "last",
        "start",
        "kind",
        "cause",
        "objects",
        "before",
        "after",
        "capacity",
        "wall",
        "CPU",
        "max pause",
    ]);
    for collection in stats.history().skip(skipped) {
        table.row([
            format!("#{}", collection.id),
            format!("{:.3} s", collection.start.as_secs_f64()),
            collection.kind.to_string(),
            collection.cause.to_string(),
            units::count(collection.after.objects),
            units::bytes(collection.before.bytes),
            units::bytes(collection.after.bytes),
            units::bytes(collection.after.capacity),
            units::duration(collection.elapsed.wall),
            units::duration(collection.elapsed.cpu),
            units::duration(collection.pauses().max_wall()),
        ]);
    }
    table.to_string()
}

/// The document that the [module](self) describes.
pub fn json(stats: &Stats) -> Value {
    let kinds: Map<String, Value> = kinds_that_occurred(stats)
        .map(|(kind, totals)| (kind.name().to_string(), totals_json(totals)))
        .collect();
    json!({
        "collector": stats.collector(),
        "allocated": amount_json(stats.allocated()),
        "peak": usage_json(stats.peak()),
        "totals": totals_json(stats.totals()),
        "kinds": kinds,
        "pauses": {
            "wall": histogram_json(stats.pauses().wall()),
            "cpu": histogram_json(stats.pauses().cpu()),
        },
        "forgotten": stats.forgotten(),
        "collections": stats.history().map(collection_json).collect::<Vec<_>>(),
    })
}

/// One collection as in the array `collections` of the document: for those who write one line for each as it ends.
pub fn collection_json(collection: &Collection) -> Value {
    json!({
        "id": collection.id,
        "kind": collection.kind.name(),
        "cause": collection.cause.name(),
        "collector": collection.collector,
        "start_ns": nanoseconds(collection.start),
        "before": usage_json(collection.before),
        "after": usage_json(collection.after),
        "marked": amount_json(collection.marked),
        "copied": amount_json(collection.copied),
        "freed": amount_json(collection.freed),
        "elapsed": elapsed_json(collection.elapsed),
        "concurrent": collection.concurrent.iter().map(concurrent_json).collect::<Vec<_>>(),
        "pauses": pauses_json(collection.pauses()),
    })
}

fn pauses_json(pauses: &CollectionPauses) -> Value {
    json!({
        "count": pauses.count(),
        "total": elapsed_json(pauses.total()),
        "max_wall_ns": nanoseconds(pauses.max_wall()),
        "longest": pauses.longest().iter().map(pause_json).collect::<Vec<_>>(),
    })
}

fn pause_json(pause: &Pause) -> Value {
    json!({
        "phase": pause.phase.name(),
        "start_ns": nanoseconds(pause.start),
        "elapsed": elapsed_json(pause.elapsed),
        "bytes_before": pause.bytes_before,
        "bytes_after": pause.bytes_after,
    })
}

fn concurrent_json(work: &ConcurrentWork) -> Value {
    json!({
        "phase": work.phase.name(),
        "start_ns": nanoseconds(work.start),
        "elapsed": elapsed_json(work.elapsed),
    })
}

fn totals_json(totals: Totals) -> Value {
    json!({
        "collections": totals.collections,
        "elapsed": elapsed_json(totals.elapsed),
        "paused": elapsed_json(totals.paused),
        "marked": amount_json(totals.marked),
        "copied": amount_json(totals.copied),
        "freed": amount_json(totals.freed),
    })
}

fn histogram_json(histogram: &Histogram) -> Value {
    json!({
        "count": histogram.count(),
        "total_ns": nanoseconds(histogram.total()),
        "mean_ns": nanoseconds(histogram.mean()),
        "min_ns": nanoseconds(histogram.min()),
        "p50_ns": nanoseconds(histogram.p50()),
        "p99_ns": nanoseconds(histogram.p99()),
        "p99_9_ns": nanoseconds(histogram.p99_9()),
        "max_ns": nanoseconds(histogram.max()),
    })
}

fn elapsed_json(elapsed: Elapsed) -> Value {
    json!({ "wall_ns": nanoseconds(elapsed.wall), "cpu_ns": nanoseconds(elapsed.cpu) })
}

fn amount_json(amount: Amount) -> Value {
    json!({ "objects": amount.objects, "bytes": amount.bytes })
}

fn usage_json(usage: Usage) -> Value {
    json!({ "objects": usage.objects, "bytes": usage.bytes, "capacity": usage.capacity })
}

/// JSON readers handle 64 bits at best; that is 584 years.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use liveoak_heap::stats::{Cause, ConcurrentPhase, PausePhase};

    fn usage(objects: u64, kilobytes: u64) -> Usage {
        Usage {
            objects,
            bytes: kilobytes << 10,
            capacity: 64 << 20,
        }
    }

    fn us(wall: u64, cpu: u64) -> Elapsed {
        Elapsed {
            wall: Duration::from_micros(wall),
            cpu: Duration::from_micros(cpu),
        }
    }

    /// Eleven minor collections and a concurrent cycle.
    fn sample() -> Stats {
        let mut stats = Stats::new("generational");
        stats.allocate(Amount {
            objects: 1_200_000,
            bytes: 28_800_000,
        });
        let at = Duration::from_millis;
        for n in 0..11 {
            let mut minor = stats.begin_at(
                at(10 * n),
                CollectionKind::Minor,
                Cause::NurseryFull,
                usage(102_000, 2400),
            );
            minor.copied = Amount {
                objects: 2000,
                bytes: 48_000,
            };
            minor.freed = Amount {
                objects: 100_000,
                bytes: 2_400_000,
            };
            stats.finish_stopped(minor, usage(2000, 48), us(150 + n, 140));
        }
        let mut cycle = stats.begin_at(
            at(200),
            CollectionKind::Concurrent,
            Cause::Threshold,
            usage(5000, 100),
        );
        cycle.marked = Amount {
            objects: 4000,
            bytes: 80_000,
        };
        cycle.freed = Amount {
            objects: 1000,
            bytes: 20_000,
        };
        let root_scan = Pause {
            phase: PausePhase::InitialMark,
            start: at(200),
            elapsed: us(40, 30),
            bytes_before: 102_400,
            bytes_after: 102_400,
        };
        stats.pause(&mut cycle, root_scan);
        cycle.concurrent.push(ConcurrentWork {
            phase: ConcurrentPhase::Mark,
            start: at(201),
            elapsed: us(1900, 1800),
        });
        stats.finish(cycle, usage(4000, 80), us(3000, 2500));
        stats
    }

    #[test]
    fn text_has_totals_kinds_pauses_and_the_last_collections() {
        assert_eq!(
            text(&sample()),
            "\
collector    generational
allocated    1,200,000 objects, 27.5 MiB
freed        1,101,000 objects, 25.2 MiB
peak         102,000 objects, 2.34 MiB of 64.0 MiB
collections  12 in 4.71 ms (CPU 4.04 ms), paused 1.75 ms

kind        count     wall      CPU   paused  marked  copied      freed
minor          11  1.71 ms  1.54 ms  1.71 ms       0  22,000  1,100,000
concurrent      1  3.00 ms  2.50 ms  40.0 µs   4,000       0      1,000

pauses  count    total    mean     p50     p99   p99.9     max
wall       12  1.75 ms  145 µs  156 µs  160 µs  160 µs  160 µs
CPU        12  1.57 ms  131 µs  140 µs  140 µs  140 µs  140 µs

last    start        kind         cause  objects    before     after  capacity     wall      CPU  max pause
#2    0.020 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   152 µs   140 µs     152 µs
#3    0.030 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   153 µs   140 µs     153 µs
#4    0.040 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   154 µs   140 µs     154 µs
#5    0.050 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   155 µs   140 µs     155 µs
#6    0.060 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   156 µs   140 µs     156 µs
#7    0.070 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   157 µs   140 µs     157 µs
#8    0.080 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   158 µs   140 µs     158 µs
#9    0.090 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   159 µs   140 µs     159 µs
#10   0.100 s       minor  nursery full    2,000  2.34 MiB  48.0 KiB  64.0 MiB   160 µs   140 µs     160 µs
#11   0.200 s  concurrent     threshold    4,000   100 KiB  80.0 KiB  64.0 MiB  3.00 ms  2.50 ms    40.0 µs
"
        );
    }

    #[test]
    fn a_heap_that_never_collected_has_no_tables() {
        let mut stats = Stats::new("semispace");
        stats.allocate(Amount {
            objects: 3,
            bytes: 96,
        });
        assert_eq!(
            text(&stats),
            "\
collector    semispace
allocated    3 objects, 96 B
freed        0 objects, 0 B
peak         0 objects, 0 B of 0 B
collections  0 in 0 ns (CPU 0 ns), paused 0 ns
"
        );
    }

    #[test]
    fn json_has_the_documented_fields() {
        let document = json(&sample());
        assert_eq!(document["collector"], "generational");
        assert_eq!(
            document["allocated"],
            json!({ "objects": 1_200_000, "bytes": 28_800_000 })
        );
        assert_eq!(
            document["peak"],
            json!({ "objects": 102_000, "bytes": 2400 << 10, "capacity": 64 << 20 })
        );
        assert_eq!(document["totals"]["collections"], 12);
        assert_eq!(document["forgotten"], 0);
        let kinds: Vec<_> = document["kinds"]
            .as_object()
            .expect("an object")
            .keys()
            .collect();
        assert_eq!(kinds, ["concurrent", "minor"]);
        assert_eq!(
            document["kinds"]["minor"],
            json!({
                "collections": 11,
                "elapsed": { "wall_ns": 1_705_000, "cpu_ns": 1_540_000 },
                "paused": { "wall_ns": 1_705_000, "cpu_ns": 1_540_000 },
                "marked": { "objects": 0, "bytes": 0 },
                "copied": { "objects": 22_000, "bytes": 528_000 },
                "freed": { "objects": 1_100_000, "bytes": 26_400_000 },
            })
        );
        assert_eq!(
            document["pauses"]["cpu"],
            json!({
                "count": 12, "total_ns": 1_570_000, "mean_ns": 130_833, "min_ns": 30_000,
                "p50_ns": 140_000, "p99_ns": 140_000, "p99_9_ns": 140_000, "max_ns": 140_000,
            })
        );
        assert_eq!(
            document["collections"][11],
            json!({
                "id": 11,
                "kind": "concurrent",
                "cause": "threshold",
                "collector": "generational",
                "start_ns": 200_000_000,
                "before": { "objects": 5000, "bytes": 102_400, "capacity": 64 << 20 },
                "after": { "objects": 4000, "bytes": 81_920, "capacity": 64 << 20 },
                "marked": { "objects": 4000, "bytes": 80_000 },
                "copied": { "objects": 0, "bytes": 0 },
                "freed": { "objects": 1000, "bytes": 20_000 },
                "elapsed": { "wall_ns": 3_000_000, "cpu_ns": 2_500_000 },
                "concurrent": [
                    { "phase": "mark", "start_ns": 201_000_000, "elapsed": { "wall_ns": 1_900_000, "cpu_ns": 1_800_000 } },
                ],
                "pauses": {
                    "count": 1,
                    "total": { "wall_ns": 40_000, "cpu_ns": 30_000 },
                    "max_wall_ns": 40_000,
                    "longest": [{
                        "phase": "initial mark",
                        "start_ns": 200_000_000,
                        "elapsed": { "wall_ns": 40_000, "cpu_ns": 30_000 },
                        "bytes_before": 102_400,
                        "bytes_after": 102_400,
                    }],
                },
            })
        );
    }
}
