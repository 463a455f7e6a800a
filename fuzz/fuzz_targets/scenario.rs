//! Scenario files: no panics, errors say something.
#![no_main]

#[path = "../../crates/scenario/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::read_scenario(bytes));
