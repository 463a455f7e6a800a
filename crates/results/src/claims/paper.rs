//! Figures grouped by paper: names of figures repeat from paper to paper, so each paper has a section.

use std::path::Path;

use super::CheckedFigure;
use crate::Outcome;
use crate::number::digits;

/// The figures of one paper, or the studies of one folder.
pub(super) struct Paper<'a> {
    /// Name of the folder that holds the figures.
    pub(super) name: String,
    pub(super) figures: Vec<&'a CheckedFigure>,
}

/// Groups figures by paper, ordered by the papers' names.
pub(super) fn papers(figures: &[CheckedFigure]) -> Vec<Paper<'_>> {
    let mut papers: Vec<Paper<'_>> = Vec::new();
    for figure in figures {
        let name = name_of(figure);
        match papers.iter_mut().find(|paper| paper.name == name) {
            Some(paper) => paper.figures.push(figure),
            None => papers.push(Paper { name, figures: vec![figure] }),
        }
    }
    papers.sort_by(|a, b| a.name.cmp(&b.name));
    papers
}

fn name_of(figure: &CheckedFigure) -> String {
    let folder = Path::new(&figure.figure).parent().and_then(Path::file_name);
    folder.map_or_else(|| "figures".to_owned(), |name| name.to_string_lossy().into_owned())
}

impl Paper<'_> {
    /// Returns the anchor of a figure of this paper.
    pub(super) fn anchor(&self, figure: &CheckedFigure) -> String {
        format!("{}-{}", self.name, figure.name())
    }
    pub(super) fn claims(&self) -> usize {
        self.figures.iter().map(|figure| figure.claims.len()).sum()
    }
    pub(super) fn count(&self, outcome: Outcome) -> usize {
        self.figures.iter().map(|figure| figure.count(outcome)).sum()
    }
    /// Returns a summary such as "57 claims: 40 reproduced, 12 in direction only, 5 not."
    pub(super) fn in_one_line(&self) -> String {
        let unjudged = match self.count(Outcome::NotJudged) {
            0 => String::new(),
            n => format!(", {n} not judged after a smoke run"),
        };
        let by_construction = match self.count(Outcome::ByConstruction) {
            0 => String::new(),
            n => format!("{n} by construction, "),
        };
        format!(
            "{} claims: {} reproduced, {by_construction}{} in direction only, {} not{unjudged}.",
            self.claims(),
            self.count(Outcome::Reproduced),
            self.count(Outcome::DirectionOnly),
            self.count(Outcome::NotReproduced)
        )
    }
    /// Returns the cost of the runs: "1,200 runs (30 more are the same as these), 52 minutes of processor time."
    pub(super) fn effort(&self) -> String {
        let shared: usize = self.figures.iter().map(|figure| figure.shared).sum();
        let all: usize = self.figures.iter().map(|figure| figure.runs).sum();
        let minutes = digits(self.figures.iter().map(|figure| figure.cpu_s).sum::<f64>() / 60.0, 2);
        format!("{} runs ({shared} more are the same as these), {minutes} minutes of processor time.", all - shared)
    }
}
