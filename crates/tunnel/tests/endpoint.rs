//! Replays the corpus of the fuzz target `endpoint`, and random scripts.

mod support;

use std::fs;

use proptest::prelude::*;

#[test]
fn the_corpus_of_the_fuzz_target_harms_nobody() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/endpoint");
    let files: Vec<_> =
        fs::read_dir(corpus).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    assert!(!files.is_empty());
    for file in files {
        support::torment_endpoint(&fs::read(file).expect("a file of the corpus"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn whatever_a_peer_says_others_are_served(script in prop::collection::vec(any::<u8>(), 0..20_000)) {
        support::torment_endpoint(&script);
    }
}
