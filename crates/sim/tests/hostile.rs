//! Replays the corpus of the fuzz target `switches`, and random scripts.

mod support;

use std::fs;

use proptest::prelude::*;

#[test]
fn the_corpus_of_the_fuzz_target_harms_nobody() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/switches");
    let files: Vec<_> =
        fs::read_dir(corpus).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    assert!(!files.is_empty());
    for file in files {
        support::torment_switches(&fs::read(file).expect("a file of the corpus"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn each_packet_arrives_or_is_dropped(script in prop::collection::vec(any::<u8>(), 0..10_000)) {
        support::torment_switches(&script);
    }
}
