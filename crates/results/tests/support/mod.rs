//! Reading of claims files, shared by the fuzz target and the tests.

use selvedge_results::{Expectations, Footprints};

/// Reads any bytes as an `expect.toml`, and checks its names against a study that has none of them.
pub(crate) fn read_claims(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split('\n').count();
    let read = Expectations::parse(&text, "fuzz");
    let error = read.and_then(|claims| claims.check_names(&[(None, "nobody")], &Footprints::default())).err();
    let Some(said) = error.map(|error| error.to_string()) else { return };
    let mut parts = said.splitn(4, ':');
    let place = (parts.next(), parts.next().map(str::parse::<usize>), parts.next().map(str::parse::<usize>));
    let (Some("fuzz"), Some(Ok(line)), Some(Ok(column))) = place else { panic!("no place: {said}") };
    assert!((1..=lines).contains(&line) && column >= 1, "beyond {lines} lines: {said}");
    assert!(parts.next().is_some_and(|what| !what.trim().is_empty()), "says nothing: {said}");
}
