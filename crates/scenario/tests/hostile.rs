//! Tests of scenarios from untrusted sources.

mod support;

use std::fs;

#[test]
fn the_fuzz_corpus_passes_whole_cut_and_damaged() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/scenario");
    for entry in fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let bytes = fs::read(entry.expect("readable").path()).expect("readable");
        support::read_scenario(&bytes);
        // Only every seventh length is tried: complete scenarios are planned, which takes long.
        for at in (0..bytes.len()).step_by(7) {
            support::read_scenario(&bytes[..at]);
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x15;
            support::read_scenario(&damaged);
        }
    }
}
