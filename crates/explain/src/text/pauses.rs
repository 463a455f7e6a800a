//! Text about pauses and the congestion behind them.

use selvedge_units::Duration;

use super::page::{Page, about_kb, about_us, count, percent, us};
use crate::blame::{Cause, PauseTree, roots};
use crate::names::Names;

/// Number of trees shown.
const SHOWN: usize = 5;
/// Percentage of its tree below which a cause is not shown.
const NEGLIGIBLE: f64 = 2.0;

pub(super) fn write_pauses(page: &mut Page, trees: &[PauseTree], names: &Names) {
    if trees.is_empty() {
        return;
    }
    let roots = roots(trees);
    if !roots.is_empty() {
        page.head(format_args!("{:<38} {:>12}", "congested behind the pauses", "pause us"));
    }
    for root in roots.iter().take(SHOWN) {
        let (waiting, inputs) = (about_kb(root.waiting), count(u64::from(root.inputs), "input"));
        let port = names.port(root.port);
        page.put(format_args!("  {port:<36} {:>12}   up to {waiting} waiting, from {inputs}", us(root.time)));
    }
    page.head(format_args!("who paused whom"));
    for tree in trees.iter().take(SHOWN) {
        page.put(format_args!("  {} paused {}", names.port(tree.port), about_us(tree.time)));
        write_causes(page, &tree.causes, names, 2, tree.time);
    }
    if trees.len() > SHOWN {
        page.put(format_args!("  and {} more", trees.len() - SHOWN));
    }
}

/// Writes the outputs for which packets waited, and the causes of these outputs' pauses.
fn write_causes(page: &mut Page, causes: &[Cause], names: &Names, depth: usize, of: Duration) {
    let indent = "  ".repeat(depth);
    for cause in causes.iter().filter(|cause| percent(cause.time, of) >= NEGLIGIBLE) {
        let paused = cause.time - cause.congested;
        let mut why = Vec::new();
        if !cause.congested.is_zero() {
            why.push(format!("congested {}", about_us(cause.congested)));
        }
        if !paused.is_zero() {
            why.push(format!("paused {}", about_us(paused)));
        }
        page.put(format_args!("{indent}by what waits for {}: {}", names.port(cause.port), why.join(", ")));
        write_causes(page, &cause.causes, names, depth + 1, of);
    }
}
