//! One paper's section of `docs/claims.md`.

use std::fmt::Write;

use super::paper::Paper;
use super::{CheckedFigure, ClaimsInput, grid, ours, range, sentence, why};
use crate::{NotRun, Outcome};

/// Returns the section without its heading: what was run and how, a table of the figures, and each figure.
pub(super) fn section(paper: &Paper<'_>, input: &ClaimsInput<'_>) -> String {
    let mut out = format!("{} {}\n\n", paper.in_one_line(), paper.effort());
    let _ = write!(out, "Written by `{}` (version {}); not by hand.\n\n", input.command, input.version);
    out += "| figure | claims | reproduced | by construction | direction only | not | seeds | runs | CPU s |\n|---|---|---|---|---|---|---|---|---|\n";
    for &figure in &paper.figures {
        let (name, claims, seeds, runs) = (figure.name(), figure.claims.len(), figure.seeds, figure.runs);
        let of = |outcome| figure.count(outcome);
        let (yes, part, no) = (of(Outcome::Reproduced), of(Outcome::DirectionOnly), of(Outcome::NotReproduced));
        let given = of(Outcome::ByConstruction);
        let _ = writeln!(
            out,
            "| [{name}](#{}) | {claims} | {yes} | {given} | {part} | {no} | {seeds} | {runs} | {:.0} |",
            paper.anchor(figure),
            figure.cpu_s
        );
    }
    for figure in &paper.figures {
        out += &one(figure, paper);
    }
    out
}

fn one(figure: &CheckedFigure, paper: &Paper<'_>) -> String {
    // Markdown derives a heading's anchor from its text: lower case, with "-" for blanks.
    let heading = format!("{} {}", paper.name, figure.name());
    let mut out = format!("\n### {heading}\n\n[{}](../{}/scenario.toml)\n", figure.title, figure.figure);
    if !figure.claims.is_empty() {
        out += "\n| claim | where | paper | ours | verdict |\n|---|---|---|---|---|\n";
    }
    for claim in &figure.claims {
        let source = claim.source.clone().unwrap_or_default();
        let cells = [&sentence(claim), &source, &range(claim), &ours(claim.mean, claim.ci95, claim.bound)];
        let cells: Vec<String> = cells.into_iter().map(|text| cell(text)).collect();
        let verdict = match claim.outcome {
            holds if holds.holds() => holds.to_string(),
            other => format!("**{other}**"),
        };
        let _ = writeln!(out, "| {} | {verdict} |", cells.join(" | "));
    }
    let explanations = why::explanations(figure, paper);
    if !explanations.is_empty() {
        out += "\nWhy:\n\n";
    }
    for (claims, reasons) in explanations {
        let reasons = if reasons.is_empty() { vec!["not known yet".to_owned()] } else { reasons };
        let _ = writeln!(out, "- *{}.* {}.", claims.join("*; *"), reasons.join(". "));
    }
    let constructions = why::constructions(figure);
    if !constructions.is_empty() {
        out += "\nBy construction:\n\n";
    }
    for (claims, reason) in constructions {
        let _ = writeln!(out, "- *{}.* {reason}.", claims.join("*; *"));
    }
    if !figure.not_run.is_empty() {
        out += "\nNot run, and counted nowhere:\n\n| says | where | paper | why there is no run |\n|---|---|---|---|\n";
    }
    for NotRun { say, source, paper, because } in &figure.not_run {
        let cells = [say.as_str(), source, paper.as_deref().unwrap_or("-"), because].map(cell);
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    for grid in grid::grids(&figure.measured) {
        let _ = write!(out, "\n{}\n\n| | {} |\n|---|", grid.say, grid.columns.join(" | "));
        out += &"---|".repeat(grid.columns.len());
        out.push('\n');
        for (label, cells) in grid.rows {
            let _ = writeln!(out, "| {} | {} |", cell(&label), cells.join(" | "));
        }
    }
    out
}

/// Returns the text escaped for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
