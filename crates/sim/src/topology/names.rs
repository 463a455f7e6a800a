//! What somebody may have meant.

/// `", did you mean \"pod0-agg2\"?"`: the names nearest to `wanted`, or nothing if none is near.
pub(crate) fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near_enough = 1 + wanted.chars().count() / 3;
    let mut near: Vec<(usize, &str)> =
        names.map(|name| (distance(wanted, name), name)).filter(|&(distance, _)| distance <= near_enough).collect();
    near.sort();
    let quoted: Vec<String> = near.iter().take(3).map(|(_, name)| format!("\"{name}\"")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => format!(", did you mean {one}?"),
        [rest @ .., last] => format!(", did you mean {} or {last}?", rest.join(", ")),
    }
}

/// Levenshtein's distance, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_nearest_first() {
        let names = ["pod0-edge0", "pod0-edge1", "pod0-agg0", "core0"];
        assert_eq!(
            did_you_mean("pod0-egde1", names.into_iter()),
            ", did you mean \"pod0-edge1\", \"pod0-edge0\" or \"pod0-agg0\"?"
        );
        assert_eq!(did_you_mean("Core0", names.into_iter()), ", did you mean \"core0\"?");
        assert_eq!(did_you_mean("zebra", names.into_iter()), "");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
