//! Explanations of claims that are not fully reproduced.

use super::CheckedFigure;
use super::paper::Paper;
use crate::number::bounded;
use crate::{Bound, ClaimVerdict, Measured, Outcome};

/// Returns the claims of a figure that need an explanation, each with its reasons; claims with equal reasons are
/// grouped.
pub(super) fn explanations(figure: &CheckedFigure, paper: &Paper<'_>) -> Vec<(Vec<String>, Vec<String>)> {
    let mut found: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for claim in &figure.claims {
        if !matches!(claim.outcome, Outcome::DirectionOnly | Outcome::NotReproduced) {
            continue;
        }
        let mut reasons: Vec<String> = claim.known.iter().chain(&claim.note).cloned().collect();
        reasons.extend(moved_by(claim, figure, paper));
        let name = super::sentence(claim);
        match found.iter_mut().find(|(_, known)| *known == reasons) {
            Some((claims, _)) => claims.push(name),
            None => found.push((vec![name], reasons)),
        }
    }
    found
}

/// Returns the claims of a figure that hold by construction, each with its reason; claims with equal reasons are
/// grouped.
pub(super) fn constructions(figure: &CheckedFigure) -> Vec<(Vec<String>, String)> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    for claim in figure.claims.iter().filter(|claim| claim.outcome == Outcome::ByConstruction) {
        let reason = claim.by_construction.clone().unwrap_or_default();
        let name = super::sentence(claim);
        match found.iter_mut().find(|(_, known)| *known == reason) {
            Some((claims, _)) => claims.push(name),
            None => found.push((vec![name], reason)),
        }
    }
    found
}

/// Returns how far measurements of the paper's other figures move the quantity of `claim`.
fn moved_by(claim: &ClaimVerdict, own: &CheckedFigure, paper: &Paper<'_>) -> Vec<String> {
    let is_same = |measured: &&Measured| {
        let (a, b) = (&measured.quantity, &claim.quantity);
        (&a.metric, &a.of, &a.than) == (&b.metric, &b.of, &b.than) && a.than_case.is_none() && b.than_case.is_none()
    };
    let mut lines = Vec::new();
    for figure in paper.figures.iter().filter(|figure| figure.figure != own.figure) {
        let mut values: Vec<(f64, &str, Option<Bound>)> = figure
            .measured
            .iter()
            .filter(is_same)
            .filter_map(|measured| Some((measured.mean?, measured.quantity.case.as_deref()?, measured.bound)))
            .collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let [(low, at_low, of_low), .., (high, at_high, of_high)] = values[..] {
            let [low, high] = [(low, of_low), (high, of_high)].map(|(value, bound)| bounded(Some(value), bound, 3));
            lines.push(format!("{}: {low} ({at_low}) to {high} ({at_high})", figure.name()));
        }
    }
    lines
}
