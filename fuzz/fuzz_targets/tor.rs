//! Two top-of-rack switches with NetRT, whose hosts and whose fabric send anything.
#![no_main]

#[path = "../../crates/tor/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::torment_tor(bytes));
