//! The log of the collections.

use super::{liveoak, succeed};
use liveoak_heap::kind::CollectorKind;
use std::fs;
use std::path::Path;

const PROGRAM: &str = "bench binary-trees --depth 12 --heap 16m";

/// `[0.123s][info][gc] ...`
fn is_log_line(line: &str) -> bool {
    let stamp = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("s][info][gc"));
    stamp.is_some_and(|(seconds, _)| seconds.parse::<f64>().is_ok())
}

#[test]
fn the_log_goes_to_standard_output() {
    for gc in CollectorKind::ALL {
        let finished = succeed(&format!("{PROGRAM} --gc {gc} --gc-log - --json"));
        let (json, log): (Vec<_>, Vec<_>) =
            finished.out.lines().partition(|line| line.starts_with('{'));
        assert_eq!(json.len(), 1, "{finished:?}");
        assert!(log.iter().all(|line| is_log_line(line)), "{gc}: {log:#?}");
        assert!(log[0].contains("Using "), "{gc}: {log:#?}");
        assert!(log[1].contains(gc.name()), "{gc}: {log:#?}");
        assert!(
            log.iter().any(|line| line.contains("GC(0) ")),
            "{gc}: {log:#?}"
        );
    }
}

#[test]
fn the_log_goes_to_a_file() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("collections.log");
    let finished = succeed(&format!(
        "{PROGRAM} --gc generational --gc-log {}",
        path.display()
    ));
    let log = fs::read_to_string(&path).expect("it was written");
    assert!(
        log.lines().count() > 2 && log.lines().all(is_log_line),
        "{log}"
    );
    assert!(!finished.out.contains("GC(0)"), "{finished:?}");
}

#[test]
fn a_log_that_cannot_be_written_is_an_error() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("no such folder")
        .join("x");
    let path = path.display().to_string().replace(' ', "-");
    let finished = liveoak(&format!("{PROGRAM} --gc-log {path}"));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains(&path), "{finished:?}");
}
