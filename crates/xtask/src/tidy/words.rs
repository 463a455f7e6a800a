//! Doc comments that stand alone, and messages that say something.

/// Beginnings of doc comments that need the item above them, or whose subject comes late.
const BEGINNINGS: &[&str] = &[
    "The same",
    "Same ",
    "Of these",
    "Of those",
    "As above",
    "As [",
    "As for",
    "What ",
    "Who ",
    "Whose ",
    "Whoever ",
    "It ",
    "They ",
    "Their ",
    "Its ",
    "That ",
    "These ",
    "So ",
    "And ",
    "Until when",
];

/// Messages of `expect` and `expect_err` that do not say what is wrong.
const EMPTY: &[&str] = &[
    "it is right",
    "right",
    "it is there",
    "it works",
    "it can be",
    "always",
    "a plan",
    "a study may want it",
    "nobody knows it",
    "there is no way",
    "wrong",
    "it fails",
];

/// Names of modules, types and functions that have given way to the words of docs/glossary.md.
const RETIRED: &[&str] = &[
    "mail",
    "Mail",
    "Letter",
    "Outlet",
    "Abroad",
    "desk",
    "Desk",
    "tour",
    "Tour",
    "leg",
    "Leg",
    "pace",
    "Pace",
    "tempo",
    "Tempo",
    "crew",
    "Crew",
    "trickle",
    "Trickle",
    "calm",
    "whereabouts",
    "outlook",
    "OnChip",
    "on_chip",
];

/// Keywords of definitions.
const DEFINITIONS: &[&str] = &["struct ", "enum ", "trait ", "mod ", "type "];

/// Returns what is wrong with the comments and messages of a Rust source, with the line of each.
pub(super) fn complaints(text: &str) -> Vec<(usize, String)> {
    let mut complaints = Vec::new();
    let mut in_comment = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let comment = ["///", "//!"].iter().find_map(|mark| line.strip_prefix(mark));
        if let Some(comment) = comment.filter(|_| !in_comment)
            && let Some(begin) = BEGINNINGS.iter().find(|begin| comment.trim_start().starts_with(**begin))
        {
            complaints
                .push((number, format!("a doc comment that begins with \"{}\" does not stand alone", begin.trim())));
        }
        in_comment = comment.is_some();
        let defined =
            DEFINITIONS.iter().find_map(|word| Some(line.split_once(word)?.1)).filter(|_| !line.starts_with("//"));
        let name = defined.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
        if let Some(name) = name.filter(|name| RETIRED.contains(name)) {
            complaints.push((number, format!("{name} is a retired word: docs/glossary.md has the one in its place")));
        }
        let says = |call: &str, message: &str| line.contains(&format!(".{call}(\"{message}\")"));
        let is_empty = |message: &&&str| says("expect", message) || says("expect_err", message);
        if let Some(message) = EMPTY.iter().find(is_empty) {
            complaints.push((number, format!("expect(\"{message}\") does not say what is wrong")));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_need_their_neighbours_are_found() {
        let text =
            "/// The same for writing.\nfn f() {}\n/// Returns a sum.\n/// It may wrap.\nfn g() {}\n//! What it is.\n";
        let lines: Vec<usize> = complaints(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 6]);
    }

    #[test]
    fn retired_names_are_found_where_they_are_defined() {
        let text = concat!("pub(crate) struct ", "Tour {\n    mod", " crew;\n// struct ", "Tour\nlet tour = 1;\n");
        let lines: Vec<usize> = complaints(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn empty_messages_are_found() {
        let text = concat!("a.expect(\"it is ", "right\");\nb.expect(\"the queue pair exists\");\n");
        assert_eq!(complaints(text).len(), 1);
        let text = concat!("a.expect_err(\"wr", "ong\");\nb.expect_err(\"should be refused\");\n");
        assert_eq!(complaints(text).len(), 1);
    }
}
