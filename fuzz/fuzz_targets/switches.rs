//! A small fabric of switches, whose hosts send anything and whose links fail.
#![no_main]

#[path = "../../crates/sim/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::torment_switches(bytes));
