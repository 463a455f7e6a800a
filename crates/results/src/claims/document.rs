//! `docs/claims.md`: a line per paper, then a section per paper. The part of one paper can be rewritten without the
//! others, because running all papers takes hours of processor time.

use std::collections::BTreeMap;

use super::paper::{Paper, papers};
use super::{ClaimsInput, RULE, markdown};
use crate::Outcome;

/// Returns the claims of all papers as Markdown. The parts of `before` (such a document, or an empty text) about papers
/// that were not run are kept unchanged.
pub fn render_claims_markdown(input: &ClaimsInput<'_>, before: &str) -> String {
    let mut parts = parts(before);
    for paper in papers(input.figures) {
        let part = Part { line: line(&paper, input), section: markdown::section(&paper, input) };
        parts.insert(paper.name.clone(), part);
    }
    let mut out = format!("{TITLE}\n\n{RULE}\n\n{COLUMNS}");
    parts.values().for_each(|part| out += &format!("{}\n", part.line));
    for (name, part) in &parts {
        out += &format!("\n{HEADING}{name}\n\n{}\n", part.section.trim());
    }
    out
}

/// Returns whether [`render_claims_markdown`] preserves all of `text`, the file's previous content: `text` is such a
/// document, or empty.
pub fn is_claims_markdown(text: &str) -> bool {
    text.trim().is_empty() || text.lines().next() == Some(TITLE)
}

/// The part of the document about one paper.
#[derive(Default)]
struct Part {
    /// The paper's line in the table of papers.
    line: String,
    /// The paper's section, without its heading.
    section: String,
}

fn line(paper: &Paper<'_>, input: &ClaimsInput<'_>) -> String {
    let of = |outcome| paper.count(outcome);
    format!(
        "{LINK}{name}](#{name}) | {} | {} | {} | {} | {} | {} |",
        paper.claims(),
        of(Outcome::Reproduced),
        of(Outcome::ByConstruction),
        of(Outcome::DirectionOnly),
        of(Outcome::NotReproduced),
        input.version,
        name = paper.name,
    )
}

/// Returns the parts of a document, by paper; empty if `document` has another title.
fn parts(document: &str) -> BTreeMap<String, Part> {
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    if !document.starts_with(TITLE) {
        return parts;
    }
    let mut sections = document.split(NEXT);
    let head = sections.next().unwrap_or_default();
    for section in sections {
        let (name, text) = section.split_once('\n').unwrap_or((section, ""));
        parts.insert(name.trim().to_owned(), Part { line: String::new(), section: text.to_owned() });
    }
    for line in head.lines() {
        let name = line.strip_prefix(LINK).and_then(|rest| rest.split_once(']'));
        if let Some(part) = name.and_then(|(name, _)| parts.get_mut(name)) {
            part.line = widened(line);
        }
    }
    parts
}

/// Returns a line of the table of papers in its present columns: older lines lack the column "by construction".
fn widened(line: &str) -> String {
    let cells: Vec<&str> = line.split('|').collect();
    match cells[..] {
        [first, name, claims, reproduced, direction, not, version, last] => {
            [first, name, claims, reproduced, " 0 ", direction, not, version, last].join("|")
        }
        _ => line.to_owned(),
    }
}

const TITLE: &str = "# Claims";
const HEADING: &str = "## ";
const NEXT: &str = "\n## ";
const LINK: &str = "| [";
const COLUMNS: &str = "| paper | claims | reproduced | by construction | direction only | not | version |\n|---|---|---|---|---|---|---|\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckedFigure, NotRun};

    fn figure(folder: &str, title: &str) -> CheckedFigure {
        CheckedFigure {
            figure: folder.into(),
            title: title.into(),
            smoke: false,
            seeds: 1,
            runs: 2,
            shared: 0,
            cpu_s: 3.0,
            claims: Vec::new(),
            measured: Vec::new(),
            not_run: Vec::new(),
        }
    }

    fn written(figures: &[CheckedFigure], version: &str, before: &str) -> String {
        let input = ClaimsInput { figures, wall_s: 1.0, threads: 2, version, command: "selvedge check" };
        render_claims_markdown(&input, before)
    }

    #[test]
    fn figures_of_the_same_name_stand_in_their_papers_sections() {
        let both = written(&[figure("figures/netrt/fig6", "NetRT's"), figure("figures/irn/fig6", "IRN's")], "1", "");
        let at = |text: &str| both.find(text).unwrap_or_else(|| panic!("{text} in {both}"));
        assert!(at("## irn") < at("[fig6](#irn-fig6)") && at("[fig6](#irn-fig6)") < at("### irn fig6"));
        assert!(at("### irn fig6") < at("## netrt") && at("## netrt") < at("### netrt fig6"));
        assert!(both.contains("| [irn](#irn) | 0 | 0 | 0 | 0 | 0 | 1 |\n| [netrt](#netrt) |"), "{both}");
    }

    #[test]
    fn one_paper_is_written_anew_and_the_others_stay() {
        let first = written(&[figure("figures/irn/fig6", "old"), figure("figures/netrt/fig6", "kept")], "1", "");
        let second = written(&[figure("figures/irn/fig6", "new")], "2", &first);
        assert!(
            second.contains("| [irn](#irn) | 0 | 0 | 0 | 0 | 0 | 2 |\n| [netrt](#netrt) | 0 | 0 | 0 | 0 | 0 | 1 |")
        );
        assert!(second.contains("[new]") && !second.contains("[old]") && second.contains("[kept]"), "{second}");
        // Writing the document again changes nothing.
        assert_eq!(written(&[figure("figures/irn/fig6", "new")], "2", &second), second);
    }

    #[test]
    fn what_no_run_can_show_has_a_row_that_says_why() {
        let mut figure = figure("figures/irn/61-state", "State");
        figure.not_run = vec![NotRun {
            say: "A NIC sends 39.5 Mpps".into(),
            source: "section 6.2.2".into(),
            paper: Some("39.5 Mpps".into()),
            because: "measured on a NIC | that is not here".into(),
        }];
        let figures = [figure];
        let text = written(&figures, "1", "");
        let row = "| A NIC sends 39.5 Mpps | section 6.2.2 | 39.5 Mpps | measured on a NIC \\| that is not here |\n";
        assert!(text.contains(row) && text.contains("0 claims: "), "{text}");
        let input = ClaimsInput { figures: &figures, wall_s: 1.0, threads: 2, version: "1", command: "selvedge check" };
        let page = crate::render_claims_html(&input);
        assert!(page.contains("<td>39.5 Mpps</td><td>measured on a NIC | that is not here</td>"), "{page}");
    }

    #[test]
    fn a_paper_from_before_there_was_a_column_keeps_its_numbers() {
        let before = "# Claims\n\n| paper | claims | reproduced | direction only | not | version |\n|---|---|---|---|---|---|\n\
                      | [melo](#melo) | 9 | 5 | 1 | 3 | 0 |\n\n## melo\n\nkept\n";
        let text = written(&[figure("figures/irn/fig6", "new")], "1", before);
        assert!(text.contains("| [melo](#melo) | 9 | 5 | 0 | 1 | 3 | 0 |\n"), "{text}");
        assert_eq!(written(&[figure("figures/irn/fig6", "new")], "1", &text), text);
    }

    #[test]
    fn a_file_that_is_something_else_is_replaced() {
        let text = written(&[figure("figures/irn/fig6", "x")], "1", "# Notes\n\n## irn\n\nmine\n\n## spare\n");
        assert!(!text.contains("mine") && !text.contains("spare"), "{text}");
    }
}
