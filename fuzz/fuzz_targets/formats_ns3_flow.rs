//! The reader of ns-3 flow lists: no panics, no impossible flows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::ns3_flow;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = ns3_flow::read(bytes, "fuzz", ns3_flow::Options::default()) {
        let flows = parsed.value.flows;
        assert!(flows.is_sorted_by_key(|flow| flow.start));
        assert!(flows.iter().all(|flow| flow.src != flow.dst && !flow.size.is_zero()));
    }
});
