//! Wrong flags, and heaps that are too small.

use super::liveoak;
use liveoak_heap::kind::CollectorKind;

#[test]
fn wrong_use_is_code_2_and_says_what_would_be_right() {
    let cases = [
        ("", "Usage"),
        ("bench", "PROGRAM"),
        ("fly", "unrecognized subcommand"),
        ("bench quicksort", "large-live-heap"),
        ("bench gcbench --gc wishful", "mark-sweep, "),
        ("bench gcbench --gc", "a value is required"),
        ("bench gcbench --heap 64q", "as in 64m"),
        ("bench gcbench --heap much", "sizes look like 64m"),
        ("bench gcbench --heap 99999999999g", "address space"),
        ("bench gcbench --depth 99", "1..=28"),
        ("bench long-list --objects 0", "1..="),
        ("bench gcbench --fast", "--fast"),
        ("bench long-list --depth 8", "does not apply to long-list"),
        ("bench gcbench --objects 8", "use --depth"),
        ("bench long-list --api safe", "leave out --api safe"),
        ("bench gcbench --growth 0.5", "between 1.05 and 100"),
        ("bench gcbench --growth NaN", "between 1.05 and 100"),
        ("bench gcbench --heap 100g", "choose a smaller limit"),
    ];
    for (arguments, hint) in cases {
        let finished = liveoak(arguments);
        assert_eq!(finished.code, Some(2), "liveoak {arguments}: {finished:?}");
        assert!(
            finished.err.contains(hint),
            "liveoak {arguments}: {finished:?}"
        );
        assert_eq!(finished.out, "", "liveoak {arguments}");
    }
}

#[test]
fn an_unknown_collector_is_told_of_all_that_there_are() {
    let finished = liveoak("bench gcbench --gc wishful");
    for gc in CollectorKind::ALL {
        assert!(finished.err.contains(gc.name()), "{gc}: {finished:?}");
    }
}

#[test]
fn a_heap_smaller_than_a_block_is_refused() {
    for gc in CollectorKind::ALL {
        for heap in ["0", "1", "4096"] {
            let finished = liveoak(&format!("bench gcbench --gc {gc} --heap {heap}"));
            assert_eq!(finished.code, Some(2), "{gc}: {finished:?}");
            assert!(finished.err.contains("too small"), "{gc}: {finished:?}");
        }
    }
}

#[test]
fn out_of_memory_is_code_1_and_says_how_much_there_was() {
    for gc in CollectorKind::ALL {
        let finished = liveoak(&format!(
            "bench long-list --gc {gc} --objects 1000000 --heap 8m"
        ));
        assert_eq!(finished.code, Some(1), "{gc}: {finished:?}");
        assert!(
            finished.err.starts_with("error: out of memory"),
            "{gc}: {finished:?}"
        );
        assert!(
            finished.err.contains("of 8.00 MiB are in use"),
            "{gc}: {finished:?}"
        );
        assert_eq!(finished.out, "", "{gc}");
    }
}

#[test]
fn an_array_larger_than_the_heap_is_an_error_too() {
    for gc in CollectorKind::ALL {
        let finished = liveoak(&format!("bench gcbench --depth 4 --gc {gc} --heap 2m"));
        assert_eq!(finished.code, Some(1), "{gc}: {finished:?}");
        assert!(
            finished.err.contains("raise the heap limit"),
            "{gc}: {finished:?}"
        );
    }
}
