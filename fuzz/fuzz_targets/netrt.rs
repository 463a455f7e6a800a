//! Switches with NetRT that carry real frames, whose hosts send anything.
#![no_main]

#[path = "../../crates/study/tests/support/mod.rs"]
#[expect(dead_code, reason = "tests send frames one by one, too")]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::torment_netrt(bytes));
