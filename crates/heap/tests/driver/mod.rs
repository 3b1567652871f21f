//! Random programs as proptest wants them: shrinking takes operations out, and makes operands and
//! kinds of operations smaller.

use liveoak_heap::testing::{Operation, Program, Setting};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Programs of at most `longest` operations.
pub(crate) fn programs(longest: usize) -> impl Strategy<Value = Program> {
    let operation = any::<[u8; 8]>().prop_map(Operation::decode);
    let operations = proptest::collection::vec(operation, 0..=longest);
    (any::<u8>(), any::<u8>(), operations).prop_map(|(room, stride, operations)| Program {
        setting: Setting::decode(room, stride),
        operations,
    })
}

/// Checks `cases` programs (or as many as `PROPTEST_CASES` says), always the same ones.
pub(crate) fn for_all<S: Strategy>(
    cases: u32,
    strategy: S,
    check: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(cases);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 1000,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    if let Err(failure) = TestRunner::new_with_rng(config, rng).run(&strategy, check) {
        panic!("{failure}");
    }
}
