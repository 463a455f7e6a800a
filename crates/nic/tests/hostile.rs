//! Tests that no input of the other side causes a panic or an access to memory that is not registered.

use proptest::prelude::*;

mod support;

proptest! {
    #[test]
    fn an_rnic_survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        support::torment_rnic(&bytes);
    }
}

#[test]
fn the_fuzz_corpus_passes() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/rnic");
    let mut inputs = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = entry.expect("a readable entry").path();
        support::torment_rnic(&std::fs::read(&path).expect("a readable file"));
        inputs += 1;
    }
    assert!(inputs > 0);
}
