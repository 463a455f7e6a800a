//! The reader of connection matrices: no panics, no impossible flows, no undefined triggers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::htsim_cm::{self, Start, StartUnit};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = htsim_cm::read(bytes, "fuzz", StartUnit::Auto) {
        let matrix = parsed.value;
        for flow in &matrix.flows {
            assert!(flow.src != flow.dst && flow.src.max(flow.dst) < matrix.nodes && !flow.size.is_zero());
            if let Start::Trigger(id) = flow.start {
                assert!(matrix.triggers.contains_key(&id));
            }
        }
    }
});
