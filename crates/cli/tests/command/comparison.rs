//! Several collectors in one table.

use super::{liveoak, succeed};
use liveoak_heap::kind::CollectorKind;

#[test]
fn the_table_has_a_row_for_every_program_and_collector() {
    let table = succeed("bench all --gc all --depth 8 --objects 2000").out;
    let heading = table.lines().next().unwrap_or_default();
    for column in [
        "program",
        "collector",
        "CPU time",
        "longest pause",
        "collections",
    ] {
        assert!(heading.contains(column), "{heading}");
    }
    for program in [
        "gcbench",
        "binary-trees",
        "large-live-heap",
        "long-list",
        "scaling",
    ] {
        for gc in CollectorKind::ALL {
            let is_row = |line: &&str| {
                let mut words = line.split_whitespace();
                words.next() == Some(program) && words.next() == Some(gc.name())
            };
            assert_eq!(
                table.lines().filter(is_row).count(),
                1,
                "{program} on {gc}: {table}"
            );
        }
    }
}

#[test]
fn all_runs_of_a_program_agree() {
    let json = succeed("bench binary-trees --gc all --depth 8 --json").json();
    let runs = json["runs"].as_array().expect("an array");
    assert_eq!(runs.len(), CollectorKind::ALL.len());
    for (run, gc) in runs.iter().zip(CollectorKind::ALL) {
        assert_eq!(run["collector"], gc.name());
        assert_eq!(run["program"], "binary-trees");
        assert_eq!(run["checksum"], runs[0]["checksum"]);
    }
}

#[test]
fn a_run_that_fails_is_shown_and_fails_the_command() {
    let finished = liveoak("bench long-list --gc all --objects 1000000 --heap 8m");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let failed = finished
        .out
        .lines()
        .filter(|line| line.contains("failed: out of memory"))
        .count();
    assert_eq!(failed, CollectorKind::ALL.len(), "{finished:?}");
    assert!(finished.err.contains("runs failed"), "{finished:?}");
}

#[test]
fn flags_about_one_heap_are_refused() {
    for flags in ["all --stats", "gcbench --gc all --stats", "all --gc-log -"] {
        let finished = liveoak(&format!("bench {flags}"));
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.err.contains("one heap"), "{finished:?}");
    }
}
