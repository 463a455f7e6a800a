//! The reader of htsim topologies: no panics, and counts that agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::htsim_topo;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = htsim_topo::read(bytes, "fuzz") {
        let tree = parsed.value;
        assert_eq!(tree.hosts, tree.pods * tree.tors_per_pod * tree.hosts_per_tor());
        assert!(tree.links().take(10_000).all(|link| link.lower < link.upper));
    }
});
