//! Helpers for messages: suggestions for misspelled names, lists, and line breaking.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Returns the candidate that `word` most probably misspells, if any is near enough: the first of the nearest.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = candidates.into_iter().filter_map(|candidate| Some((misspelling(word, candidate)?, candidate)));
    near.min_by_key(|&(distance, _)| distance).map(|(_, near)| near)
}

/// Returns the edit distance from `word` to `candidate`, if `word` may be a misspelling of it.
pub fn misspelling(word: &str, candidate: &str) -> Option<usize> {
    let tolerance = match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    let distance = distance(&canonical(word), &canonical(candidate));
    (distance <= tolerance).then_some(distance)
}

/// Returns `", did you mean \"pod0-agg2\"?"` with up to three candidates that `word` may misspell, nearest first; or an
/// empty text.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let tolerance = 1 + word.chars().count() / 3;
    let word = canonical(word);
    let near = candidates.into_iter().map(|candidate| (distance(&word, &canonical(candidate)), candidate));
    let mut near: Vec<(usize, &str)> = near.filter(|&(distance, _)| distance <= tolerance).collect();
    near.sort();
    let quoted: Vec<String> = near.iter().take(3).map(|(_, name)| format!("\"{name}\"")).collect();
    if quoted.is_empty() { String::new() } else { format!(", did you mean {}?", one_of(&quoted)) }
}

/// Returns a count with the singular or plural of `thing`.
///
/// ```
/// use selvedge_units::words::plural;
///
/// assert_eq!([plural(1, "link"), plural(0, "link"), plural(2, "switch")], ["1 link", "0 links", "2 switches"]);
/// ```
pub fn plural(count: u64, thing: &str) -> String {
    match thing {
        _ if count == 1 => format!("1 {thing}"),
        _ if thing.ends_with("ch") => format!("{count} {thing}es"),
        _ => format!("{count} {thing}s"),
    }
}

/// Returns "a", "a or b", "a, b or c"; "nothing" for an empty list.
pub fn one_of(names: &[impl AsRef<str>]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { joined(names, "or") }
}

/// Returns "a", "a and b", "a, b and c"; an empty text for an empty list.
pub fn all_of(names: &[impl AsRef<str>]) -> String {
    joined(names, "and")
}

fn joined(names: &[impl AsRef<str>], last_by: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [head @ .., last] => {
            let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
            format!("{} {last_by} {}", head.join(", "), last.as_ref())
        }
    }
}

/// Breaks `text` into lines of up to `width` characters at blanks; a longer word has a line of its own.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Normalizes a name for comparison: lower case, `-` for `_`, at most 64 characters.
fn canonical(text: &str) -> Vec<char> {
    let plain = |c: char| if c == '_' { '-' } else { c };
    text.chars().take(64).flat_map(char::to_lowercase).map(plain).collect()
}

/// Returns the optimal string alignment distance: the insertions, deletions, substitutions and swaps of neighbours that
/// turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = alloc::vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j - 1] + same).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Returns a short list of `names`: those that differ only in numbers are shown by the first and the last, as in "h0
/// ... h7, leaf0 ... leaf3".
pub fn in_ranges<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 8;
    let shape = |name: &str| {
        let words: Vec<&str> = name.split(|c: char| c.is_ascii_digit()).collect();
        let is_number = |at: usize| at > 0 && (at == 1 || !words[at - 1].is_empty());
        (0..words.len())
            .map(|at| if is_number(at) { format!("0{}", words[at]) } else { words[at].to_owned() })
            .collect()
    };
    let mut kinds: Vec<(String, &str, &str)> = Vec::new();
    for name in names {
        let shape = shape(name);
        match kinds.iter().position(|(known, ..)| *known == shape) {
            Some(kind) => kinds[kind].2 = name,
            None if kinds.len() > MOST => {}
            None => kinds.push((shape, name, name)),
        }
    }
    let more = kinds.len() > MOST;
    let told = kinds.iter().take(MOST).map(|(_, first, last)| match first == last {
        true => (*first).to_owned(),
        false => format!("{first} ... {last}"),
    });
    let told: Vec<String> = told.collect();
    if more { told.join(", ") + ", ..." } else { told.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_numbers_alone_are_a_range() {
        let told = |names: &str| in_ranges(names.split(' '));
        assert_eq!(told("h0 h1 h10 left right"), "h0 ... h10, left, right");
        assert_eq!(told("pod0-edge0 pod0-agg0 pod0-edge1 pod12-edge3"), "pod0-edge0 ... pod12-edge3, pod0-agg0");
        assert_eq!(told("0 5 12"), "0 ... 12");
        assert_eq!(told("a b c d e f g h i j"), "a, b, c, d, e, f, g, h, ...");
    }

    #[test]
    fn lines_are_filled_and_lose_no_word() {
        let text = "a line is as long as it may be, and incomprehensibly long words stay whole";
        for width in 0..90 {
            let broken = lines(text, width);
            assert_eq!(broken.join(" "), text);
            assert!(broken.iter().all(|line| line.len() <= width || !line.contains(' ')), "{width}: {broken:?}");
            let joined =
                broken.windows(2).map(|pair| pair[0].len() + 1 + pair[1].split(' ').next().map_or(0, str::len));
            assert!(joined.into_iter().all(|filled| filled > width), "{width}: {broken:?}");
        }
        assert!(lines(" ", 9).is_empty());
    }

    #[test]
    fn misspellings_find_their_word() {
        let words = ["headroom", "enabled", "quanta", "xon-gap", "Radix_Down"];
        assert_eq!(nearest("headrom", words), Some("headroom"));
        assert_eq!(nearest("xon_gap", words), Some("xon-gap"));
        assert_eq!(nearest("enalbed", words), Some("enabled"));
        assert_eq!(nearest("radix_donw", words), Some("Radix_Down"));
        assert_eq!(nearest("threshold", words), None);
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn near_names_are_offered_nearest_first() {
        let names = ["pod0-edge0", "pod0-edge1", "pod0-agg0", "core0"];
        assert_eq!(
            did_you_mean("pod0-egde1", names),
            ", did you mean \"pod0-edge1\", \"pod0-edge0\" or \"pod0-agg0\"?"
        );
        assert_eq!(did_you_mean("Core0", names), ", did you mean \"core0\"?");
        assert_eq!(did_you_mean("zebra", names), "");
    }

    #[test]
    fn a_swap_is_one_mistake() {
        let distance = |a, b| distance(&canonical(a), &canonical(b));
        assert_eq!([distance("ab", "ba"), distance("kitten", "sitting"), distance("", "abc")], [1, 3, 3]);
    }
}
