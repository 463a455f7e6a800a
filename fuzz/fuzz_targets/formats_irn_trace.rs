//! The readers of IRN traces: no panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::irn_trace::{receiver_events, sender_events};

fuzz_target!(|bytes: &[u8]| {
    let _ = receiver_events(bytes, "fuzz").map_while(Result::ok).count();
    let _ = sender_events(bytes, "fuzz").map_while(Result::ok).count();
});
