//! Text about several flows, one line each.

use selvedge_telemetry::TimePart;
use selvedge_units::Duration;

use super::awaited::write_awaited;
use super::merged::{merged_drops, merged_places, merged_trees};
use super::page::{Page, number, percent, slowdown, took};
use super::pauses::write_pauses;
use super::places::{write_drops, write_places};
use crate::explanation::Explanation;
use crate::names::Names;
use crate::parts::{EXPLAINED, Parts};

/// Renders one line for each flow, then the places where all of them waited and the causes of their pauses.
pub fn render_flows(explanations: &[Explanation], names: &Names) -> String {
    let mut page = Page::default();
    write_table(&mut page, explanations, names);
    write_legend(&mut page, explanations);
    write_awaited(&mut page, explanations, names);
    write_places(&mut page, &merged_places(explanations), names);
    write_drops(&mut page, &merged_drops(explanations), names);
    write_pauses(&mut page, &merged_trees(explanations), names);
    page.text()
}

/// Number of letters of a bar.
const BAR: usize = 32;
const HEADS: [&str; 5] = ["flow", "size", "from -> to", "FCT us", "slowdown"];

fn write_table(page: &mut Page, explanations: &[Explanation], names: &Names) {
    let rows: Vec<[String; 5]> = explanations.iter().map(|explanation| cells(explanation, names)).collect();
    let heads = HEADS.map(str::to_owned);
    let width = |column: usize| rows.iter().chain([&heads]).map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    page.put(format_args!("{}  {:BAR$}  most of it", aligned(&heads, &widths), "its time"));
    for (row, explanation) in rows.iter().zip(explanations) {
        let parts = &explanation.parts;
        page.put(format_args!("{}  {:BAR$}  {}", aligned(row, &widths), bar(parts), most(parts)));
    }
}

fn cells(explanation: &Explanation, names: &Names) -> [String; 5] {
    let flow = &explanation.flow;
    let way = format!("{} -> {}", names.host(flow.src), names.host(flow.dst));
    [number(explanation), flow.size.to_string(), way, took(explanation), slowdown(explanation)]
}

/// Returns the columns of a line: names aligned left, numbers right.
fn aligned([flow, size, way, fct, slowdown]: &[String; 5], widths: &[usize; 5]) -> String {
    let [a, b, c, d, e] = *widths;
    format!("{flow:>a$}  {size:>b$}  {way:<c$}  {fct:>d$}  {slowdown:>e$}")
}

/// Returns a bar of letters in which each part has its share.
fn bar(parts: &Parts) -> String {
    let total = parts.total();
    let (mut until, mut bar) = (Duration::ZERO, String::new());
    for (part, time) in parts.iter() {
        until += time;
        let letters = (percent(until, total) / 100.0 * BAR as f64).round() as usize;
        bar.extend(std::iter::repeat_n(part.letter(), letters - bar.len()));
    }
    bar
}

/// Returns the largest parts as text: "timeout 76 %, queueing 18 %".
fn most(parts: &Parts) -> String {
    let mut sorted: Vec<(TimePart, Duration)> = parts.iter().collect();
    sorted.sort_by_key(|&(part, time)| (std::cmp::Reverse(time), part));
    let shares = sorted.into_iter().map(|(part, time)| (part, percent(time, parts.total())));
    let shown = shares.filter(|(_, share)| *share >= 10.0);
    shown.map(|(part, share)| format!("{} {share:.0} %", part.name())).collect::<Vec<_>>().join(", ")
}

fn write_legend(page: &mut Page, explanations: &[Explanation]) {
    let used = |part: TimePart| explanations.iter().any(|explanation| !explanation.parts[part].is_zero());
    let entry = |part: &TimePart| format!("{} {}", part.letter(), part.name());
    let entries: Vec<String> = EXPLAINED.iter().filter(|part| used(**part)).map(entry).collect();
    page.head(format_args!("{}", entries.join("  ")));
}
