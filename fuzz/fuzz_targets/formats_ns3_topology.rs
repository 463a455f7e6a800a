//! The reader of ns-3 topologies, and detection: no panics, no impossible links.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::{detect, ns3_topology};

fuzz_target!(|bytes: &[u8]| {
    let _ = detect(bytes, "fuzz");
    if let Ok(parsed) = ns3_topology::read(bytes, "fuzz") {
        let topology = parsed.value;
        assert!(topology.links.iter().all(|link| link.a != link.b && link.a.max(link.b) < topology.node_count));
        assert!(topology.links.iter().all(|link| !link.rate.is_zero() && !link.delay.is_zero()));
    }
});
