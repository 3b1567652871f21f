//! The real binary, from outside: what it prints, and with which code it ends.

mod bench;
mod comparison;
mod log;
mod wrong_use;

use liveoak_heap::kind::CollectorKind;
use serde_json::Value;
use std::process::Command;

/// What a run of the command came to.
#[derive(Debug)]
struct Finished {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Finished {
    /// The last line of the output as JSON, where the contract of a contender puts it.
    fn json(&self) -> Value {
        let last = self.out.lines().next_back().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs `liveoak` with these arguments, which contain no spaces themselves.
fn liveoak(arguments: &str) -> Finished {
    let output = Command::new(env!("CARGO_BIN_EXE_liveoak"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the binary was built for this test");
    Finished {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("it prints text"),
        err: String::from_utf8(output.stderr).expect("it prints text"),
    }
}

/// The same, with a run that must succeed.
fn succeed(arguments: &str) -> Finished {
    let finished = liveoak(arguments);
    assert_eq!(finished.code, Some(0), "liveoak {arguments}: {finished:?}");
    assert_eq!(finished.err, "", "liveoak {arguments}");
    finished
}

#[test]
fn the_collectors_are_listed_with_a_sentence_each() {
    let list = succeed("collectors").out;
    let json = succeed("collectors --json").json();
    assert_eq!(list.lines().count(), CollectorKind::ALL.len());
    for (place, (line, kind)) in list.lines().zip(CollectorKind::ALL).enumerate() {
        assert!(
            line.starts_with(kind.name()) && line.ends_with('.'),
            "{line}"
        );
        assert_eq!(json[place]["name"], kind.name());
    }
}
