//! The key that was probably meant.

/// The candidate with the fewest edits from `word`, if two fifths of its letters or fewer differ.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).map(|c| c.to_ascii_lowercase()).collect();
    candidates
        .iter()
        .map(|&candidate| (distance(&word, candidate), candidate))
        .filter(|&(edits, candidate)| edits * 5 <= candidate.len() * 2)
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and substitutions between the two (Levenshtein), ignoring case.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (i, wanted) in candidate.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, found) in word.iter().enumerate() {
            let substituted = diagonal + usize::from(*found != wanted.to_ascii_lowercase());
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_another_word_is_not() {
        let keys = ["Radix_Up", "Radix_Down", "Bundle"];
        assert_eq!(nearest("radix_donw", &keys), Some("Radix_Down"));
        assert_eq!(nearest("strat", &["start", "size"]), Some("start"));
        assert_eq!(nearest("bundles", &keys), Some("Bundle"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!(nearest("", &keys), None);
    }
}
