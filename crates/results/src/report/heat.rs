//! A map of ports over time, darker where a port was paused for longer.

use std::fmt::Write;

use super::axis::{Axis, Quantity, time_title};
use super::html::escape;
use crate::PausedPort;

const WIDTH: f64 = 1040.0;
/// Minimum and maximum space for the names of ports.
const LEFT: [f64; 2] = [170.0, 420.0];
/// Width of a letter of a port's name.
const LETTER: f64 = 6.4;
const RIGHT: f64 = 10.0;
const ROW: f64 = 13.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 42.0;
/// Smallest share of each shade. Short pauses are many and matter less, so that steps grow.
const SHADES: [f32; 9] = [0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9];

/// Returns the map: one row per port in the given order, `bin_us` per column from `begin_us` on.
pub(super) fn map(ports: &[&PausedPort], bin_us: f64, begin_us: f64, label: &str) -> String {
    let names: Vec<String> = ports.iter().map(|port| format!("{} ⇠ {}", port.node, port.peer)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * LETTER + 14.0).ceil().clamp(LEFT[0], LEFT[1]);
    let bins = ports.iter().map(|port| port.share.len()).max().unwrap_or(0).max(1);
    let cell = (WIDTH - left - RIGHT) / bins as f64;
    let bottom = TOP + ROW * ports.len() as f64;
    let height = bottom + BOTTOM;
    let mut shades = vec![String::new(); SHADES.len() + 1];
    let mut labels = String::new();
    let mut readings = Vec::new();
    for (row, (port, name)) in ports.iter().zip(&names).enumerate() {
        let y = TOP + row as f64 * ROW;
        let levels: Vec<usize> = port.share.iter().map(|&share| shade(share)).collect();
        let mut column = 0;
        // Adjacent cells of equal shade become one rectangle.
        for run in levels.chunk_by(|a, b| a == b) {
            let (x, w) = (left + column as f64 * cell, run.len() as f64 * cell);
            let _ = write!(shades[run[0]], "M{x:.1} {:.1}h{w:.1}v{:.1}h-{w:.1}z", y + 0.5, ROW - 1.0);
            column += run.len();
        }
        let _ = write!(
            labels,
            "<text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 7.0,
            y + ROW - 3.2,
            escape(&shortened(name, ((left - 14.0) / LETTER) as usize))
        );
        let shares = port.share.iter().map(|share| (share * 1000.0).round().to_string());
        readings.push(format!("{name}|{}", shares.collect::<Vec<_>>().join(" ")));
    }
    let mut out = format!(
        "<svg class=\"heat wide\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\" \
         data-cell=\"{left},{TOP},{cell},{ROW},{bin_us}\" data-rows=\"{}\">",
        escape(label),
        escape(&readings.join(";"))
    );
    let _ = write!(
        out,
        "<rect class=\"blank\" x=\"{left}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>",
        WIDTH - left - RIGHT,
        bottom - TOP
    );
    for (level, path) in shades.iter().enumerate().skip(1).filter(|(_, path)| !path.is_empty()) {
        let _ = write!(out, "<path class=\"shade\" fill-opacity=\"{:.2}\" d=\"{path}\"/>", opacity(level));
    }
    let _ = write!(
        out,
        "{}{labels}{}<text class=\"title\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>",
        time_axis(left, bottom, bins as f64 * bin_us),
        key(height - 13.0),
        WIDTH - RIGHT,
        height - 4.0,
        time_title(begin_us)
    );
    out
}

/// Returns the ticks below the map, with their times.
fn time_axis(left: f64, bottom: f64, end_us: f64) -> String {
    let mut out = String::new();
    let axis = Axis::linear("", Quantity::Time, 0.0, end_us).exact(0.0, end_us);
    for tick in axis.ticks() {
        let x = left + axis.place(tick) * (WIDTH - left - RIGHT);
        // A centred label at the end would be cut.
        let anchor = if x > WIDTH - RIGHT - 10.0 { "end" } else { "middle" };
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {bottom}v4\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            bottom + 16.0,
            Quantity::Time.label(tick)
        );
    }
    out
}

/// Returns the name, with an ellipsis in the middle if it has more letters than `most`.
fn shortened(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let (begin, end) = letters.split_at(most / 2);
    let end = &end[end.len() - (most - most / 2 - 1)..];
    begin.iter().chain(&['…']).chain(end).collect()
}

/// Returns the shade of a share: 0 below the first threshold, else 1 to the number of shades.
fn shade(share: f32) -> usize {
    SHADES.iter().filter(|&&least| share >= least).count()
}

fn opacity(level: usize) -> f64 {
    0.1 + 0.9 * (level as f64 / SHADES.len() as f64)
}

/// Returns the key to the shades.
fn key(y: f64) -> String {
    let mut out = format!("<text class=\"tick\" x=\"{}\" y=\"{}\">paused at least</text>", LEFT[0], y + 9.0);
    for (at, least) in SHADES.iter().enumerate() {
        let x = LEFT[0] + 92.0 + at as f64 * 58.0;
        let _ = write!(
            out,
            "<rect class=\"shade\" fill-opacity=\"{:.2}\" x=\"{x}\" y=\"{y}\" width=\"12\" height=\"10\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>",
            opacity(at + 1),
            x + 17.0,
            y + 9.0,
            Quantity::Share.label(f64::from(*least))
        );
    }
    out
}
