//! Every collector against the specification, and against each other, on random programs.
//!
//! The programs, the specification and the comparison are in `liveoak_heap::testing`. A failure
//! prints the shortest program found that still fails.

mod driver;

use driver::{for_all, programs};
use liveoak_heap::kind::CollectorKind;
use liveoak_heap::testing::{Class, Length, Operation, Program, Room, Setting, check_among};

#[test]
fn on_short_programs() {
    for_all(200, programs(40), CollectorKind::ALL);
}

#[test]
fn on_long_programs() {
    for_all(25, programs(500), CollectorKind::ALL);
}

/// Each collector by itself, so that a failure of one does not hide those of another.
#[test]
fn each_with_the_specification() {
    for &kind in CollectorKind::ALL {
        for_all(10, programs(300), &[kind]);
    }
}

/// Programs on which the specification once asked for too much: an immediate in an ephemeron whose
/// key was dead had to stay (497), and two collectors had to choose alike about a weak slot that
/// leads to what a guardian brought back (577).
#[test]
fn choices_that_a_collector_may_make() {
    for seed in [497, 577] {
        let program = Program::random(seed, 400);
        if let Err(failure) = check_among(CollectorKind::ALL, &program) {
            panic!("seed {seed}: {failure}");
        }
    }
}

#[test]
fn a_program_prints_one_operation_per_line() {
    let program = Program {
        setting: Setting {
            room: Room::Tiny,
            orderly: false,
            stride: 1,
        },
        operations: vec![
            Operation::New {
                shape: Class(3),
                length: Length(0),
            },
            Operation::Collect,
        ],
    };
    assert_eq!(
        format!("{program:?}"),
        "Setting { room: Tiny, orderly: false, stride: 1 }\n   \
         0: New { shape: Ephemeron, length: 0 }\n   1: Collect\n"
    );
}

#[test]
fn shrinking_keeps_what_matters() {
    let long = Program::random(7, 300);
    let collects = |p: &Program| {
        let count = p.operations.iter().filter(|&&o| o == Operation::Collect);
        count.count() >= 2
    };
    assert!(collects(&long));
    let short = long.shrink(collects);
    assert_eq!(short.operations, [Operation::Collect; 2]);
}
