//! Every program on every collector, small, with the whole heap checked after every collection.

use super::succeed;
use liveoak_heap::kind::CollectorKind;
use serde_json::Value;

/// Each program with arguments that make it small, and the checksum that all collectors must give. The first two follow
/// from the specification by arithmetic; see the unit tests of the programs for the last.
const PROGRAMS: [(&str, &str); 5] = [
    (
        "gcbench --depth 10 --heap 32m",
        "gcbench trees=344 spine=1923 live=511 array=402a034ac65bd2ad",
    ),
    (
        "binary-trees --depth 8 --heap 16m",
        "binary-trees 8 stretch=1023 4=256:7936 6=64:8128 8=16:8176 long=511",
    ),
    (
        "large-live-heap --objects 20000 --heap 16m",
        "large-live-heap",
    ),
    (
        "long-list --objects 50000 --heap 32m",
        "long-list 50000 sum=501249475000",
    ),
    ("scaling --objects 2000 --heap 16m", "scaling 2000"),
];

fn run(program: &str, gc: CollectorKind, flags: &str) -> Value {
    succeed(&format!("bench {program} --gc {gc} --json {flags}")).json()
}

#[test]
fn all_collectors_give_the_checksum_of_the_specification() {
    for (program, checksum) in PROGRAMS {
        let mut seen = Vec::new();
        for &gc in CollectorKind::ALL {
            let json = run(program, gc, "--sanity --nursery 256k");
            let text = json["checksum"].as_str().expect("a text").to_string();
            assert!(text.starts_with(checksum), "{program} on {gc}: {text}");
            seen.push(text);
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{program}: {seen:?}");
    }
}

#[test]
fn every_run_says_what_it_cost() {
    for &gc in CollectorKind::ALL {
        let json = run("binary-trees --depth 12 --heap 16m", gc, "");
        assert!(json["cpu_ms"].as_f64() > Some(0.0), "{gc}: {json}");
        assert!(json["max_pause_us"].as_f64() > Some(0.0), "{gc}: {json}");
        assert!(json["collections"].as_u64() > Some(0), "{gc}: {json}");
        if cfg!(target_os = "linux") {
            assert!(
                json["peak_rss_bytes"].as_u64() > Some(1 << 20),
                "{gc}: {json}"
            );
        }
        assert!(
            json["note"]
                .as_str()
                .expect("a text")
                .starts_with("heap 16.0 MiB")
        );
    }
}

#[test]
fn the_large_live_heap_reports_latency_and_live_bytes() {
    for &gc in CollectorKind::ALL {
        let json = run("large-live-heap --objects 20000 --heap 16m", gc, "");
        let number = |field: &str| {
            let number = json[field].as_f64();
            number.unwrap_or_else(|| panic!("{gc}: {field} in {json}"))
        };
        assert!(number("max_latency_us") >= number("p999_latency_us"));
        assert!(number("max_latency_wall_us") >= number("p999_latency_wall_us"));
        assert!(number("setup_cpu_ms") > 0.0);
        assert!(number("live_bytes") >= 10_000.0 * (16.0 + 24.0));
        assert!(number("alloc_stalls") >= 0.0);
        // A collector that marks must find the table, its entries and their leaves; one that copies has no such field.
        if json.get("marked_objects").is_some() {
            assert_eq!(number("marked_objects"), 20_001.0, "{gc}");
            assert!(number("mark_cpu_ms") > 0.0, "{gc}");
        }
    }
}

#[test]
fn only_a_nursery_has_minor_collections() {
    let minor = |gc| {
        run("scaling --objects 2000 --heap 16m", gc, "")
            .get("minor_gc_cpu_us")
            .is_some()
    };
    assert!(minor(CollectorKind::Generational));
    assert!(!minor(CollectorKind::MarkSweep));
}

#[test]
fn a_person_reads_the_same_numbers_with_units() {
    let text = succeed("bench scaling --gc generational --objects 2000 --heap 16m").out;
    assert!(
        text.starts_with("scaling on generational (heap 16.0 MiB, pauses in CPU time)\n"),
        "{text}"
    );
    for label in [
        "CPU time",
        "longest pause",
        "collections",
        "full collection, CPU",
        "minor collection, CPU",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(label)),
            "{label} in {text}"
        );
    }
    assert!(text.ends_with("scaling 2000\n"), "{text}");
}

#[test]
fn statistics_come_before_the_result() {
    let out = succeed("bench binary-trees --depth 12 --heap 16m --gc mark-sweep --stats --json");
    assert!(out.out.starts_with("collector    mark-sweep\n"), "{out:?}");
    assert!(out.json()["checksum"].is_string());
}

#[test]
fn settings_of_the_heap_are_heeded() {
    let collections = |flags: &str| {
        let program = "binary-trees --depth 12 --heap 64m";
        run(program, CollectorKind::Generational, flags)["collections"].as_u64()
    };
    assert!(collections("--nursery 64k") > collections("--nursery 1m"));
    run(
        "gcbench --depth 8 --heap 32m",
        CollectorKind::MarkSweep,
        "--mark-num 10 --sweep-num 20 --free-num 30 --growth 3",
    );
}
