//! The raw API under libFuzzer: every input is a program, run on all collectors in step with the
//! specification. `cargo +nightly fuzz run raw_api`
#![no_main]

use liveoak_heap::testing::{Program, check};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let program = Program::decode(bytes);
    if let Err(failure) = check(&program) {
        panic!("{failure}\n{program:?}");
    }
});
