//! Random programs, run in step with the specification on every collector.
//!
//! For the tests of this crate, the fuzz target and the soak; not part of the interface.
//!
//! [`check`] runs a program on every collector and compares: after each full collection the heap
//! must be isomorphic to a [`liveoak_graph::Model`] that made the same steps, contents included,
//! with nothing dead left; weak slots, ephemerons and guardians must be as the model says. Programs
//! that see no decision of the collector must end the same way on all of them.

mod catalogue;
mod machine;
mod operation;
mod oracle;

pub use machine::{Outcome, run};
pub use operation::{Class, Length, Operation, Program, Room, Setting};

use crate::collector::Collector;
use crate::kind::CollectorKind;
use liveoak_graph::{ArcKind, Difference, Mismatch, isomorphic_by, same_size};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A program on which a collector is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The collector.
    pub collector: &'static str,
    /// What is wrong, and at which operation.
    pub problem: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.collector, self.problem)
    }
}

struct Run<'p>(&'p Program);

impl crate::kind::Program for Run<'_> {
    type Output = Result<Outcome, Failure>;

    fn run<C: Collector>(self) -> Result<Outcome, Failure> {
        let result = catch_unwind(AssertUnwindSafe(|| run::<C>(self.0)));
        let result = result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("of unknown kind")))
        });
        result.map_err(|problem| Failure {
            collector: C::NAME,
            problem,
        })
    }
}

/// Runs `program` on one collector.
pub fn check_on(kind: CollectorKind, program: &Program) -> Result<Outcome, Failure> {
    kind.run(Run(program))
}

/// Runs `program` on all collectors of `kinds`, each in step with the model, and compares them with
/// each other.
pub fn check_among(kinds: &[CollectorKind], program: &Program) -> Result<(), Failure> {
    let mut first: Option<(CollectorKind, Outcome)> = None;
    for &kind in kinds {
        let outcome = check_on(kind, program)?;
        let Some((other, expected)) = &first else {
            first = Some((kind, outcome));
            continue;
        };
        let differs = |how: String| Failure {
            collector: kind.name(),
            problem: format!("does not agree with {other}: {how}"),
        };
        if expected.decisions != outcome.decisions {
            if program.setting.orderly {
                return Err(differs(format!(
                    "{:?} against {:?}",
                    outcome.decisions, expected.decisions
                )));
            }
            // Both were right, but the program took another way.
            continue;
        }
        let (left, right) = (&expected.survivors, &outcome.survivors);
        match isomorphic_by(left, right, same_size(left, right)) {
            Ok(_) => {}
            // Whether a weak slot of an object that a guardian has brought back is still set depends
            // on when it was looked at: while its holder was alive it was cleared before the target
            // was brought back, together with the holder it is looked at afterwards. When the
            // collectors chose different moments, both are right.
            Err(difference) if !program.setting.orderly && is_about_a_weak_arc(&difference) => {}
            Err(difference) => return Err(differs(difference.to_string())),
        }
    }
    Ok(())
}

fn is_about_a_weak_arc(difference: &Difference) -> bool {
    let Mismatch::Arc { kind, .. } = &*difference.mismatch else {
        return false;
    };
    *kind == ArcKind::Weak
}

/// [`check_among`] all collectors.
pub fn check(program: &Program) -> Result<(), Failure> {
    check_among(CollectorKind::ALL, program)
}
