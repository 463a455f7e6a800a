//! Both ends of an EQDS tunnel, whose peers say anything at any time.
#![no_main]

#[allow(dead_code, reason = "the other engines have their own targets")]
#[path = "../../crates/transport/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::eqds::torment_tunnel(bytes));
