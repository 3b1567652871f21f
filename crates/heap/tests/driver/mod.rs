//! Random programs as proptest wants them: shrinking takes operations out, and makes operands and
//! kinds of operations smaller.

use liveoak_heap::kind::CollectorKind;
use liveoak_heap::testing::{Failure, Operation, Program, Setting, check_among};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

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
pub(crate) fn for_all(
    cases: u32,
    programs: impl Strategy<Value = Program>,
    kinds: &[CollectorKind],
) {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(cases);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let checked = |program: Program| {
        let failed = |failure: Failure| TestCaseError::fail(failure.to_string());
        check_among(kinds, &program).map_err(failed)
    };
    match TestRunner::new_with_rng(config, rng).run(&programs, checked) {
        Ok(()) => {}
        Err(TestError::Fail(reason, program)) => {
            // Proptest simplifies operations; this takes all out that do not matter.
            let short = program.shrink(|candidate| check_among(kinds, candidate).is_err());
            let reason =
                check_among(kinds, &short).map_or_else(|f| f.to_string(), |()| reason.to_string());
            panic!("{reason}\n{short:?}");
        }
        Err(aborted) => panic!("{aborted}"),
    }
}
