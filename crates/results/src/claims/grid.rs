//! Measurements as tables: cases and series down, metrics across.

use super::ours;
use crate::Measured;

/// One table of a measurement.
pub(super) struct Grid<'a> {
    /// The measurement in a sentence.
    pub(super) say: &'a str,
    /// Names of the metrics, one per column.
    pub(super) columns: Vec<String>,
    /// Label and numbers of each row.
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// Returns one table for each measurement of a figure.
pub(super) fn grids(measured: &[Measured]) -> Vec<Grid<'_>> {
    let chunks = measured.chunk_by(|a, b| a.say == b.say);
    chunks.map(grid).collect()
}

fn grid(measured: &[Measured]) -> Grid<'_> {
    let mut columns = Vec::new();
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for one in measured {
        let title = one.quantity.title();
        let column = columns.iter().position(|known| *known == title).unwrap_or_else(|| {
            columns.push(title);
            columns.len() - 1
        });
        let label = label(one);
        let row = rows.iter().position(|(known, _)| *known == label).unwrap_or_else(|| {
            rows.push((label, Vec::new()));
            rows.len() - 1
        });
        let cells = &mut rows[row].1;
        cells.resize(cells.len().max(column + 1), String::new());
        cells[column] = ours(one.mean, one.ci95, one.bound);
    }
    Grid { say: &measured[0].say, columns, rows }
}

fn label(one: &Measured) -> String {
    let quantity = &one.quantity;
    let series = match &quantity.than {
        Some(than) => format!("{} over {than}", quantity.of),
        None => quantity.of.clone(),
    };
    match &quantity.case {
        Some(case) => format!("{case}: {series}"),
        None => series,
    }
}
