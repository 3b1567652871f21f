//! Misuse of the safe layer that the compiler refuses. The expected messages are those of the
//! compiler that the workspace is built with; after an upgrade, `TRYBUILD=overwrite` renews them, and
//! the change is reviewed by eye.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
