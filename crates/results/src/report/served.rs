//! Additions of `selvedge open` to reports: tables read from disk, and results side by side.

use std::fmt::Write;

use super::html::{escape, number_cell, section};
use super::{SCRIPT, STYLE};
use crate::number::{self, Scale};
use crate::{Comparison, MetricComparison, Summary};

const TABLES: &str = include_str!("tables.js");

/// Returns the report of a results folder with its tables, which the page asks the server for.
pub fn with_tables(report: &str) -> String {
    let Some((body, end)) = report.rsplit_once("</main>") else { return report.to_owned() };
    let lead = "Every row of the study, read from disk page by page. Times are in picoseconds, as in the files.";
    let tables = section("tables", "Tables", lead, "<div class=\"browser\"></div>");
    let link = "<a href=\"#tables\">Tables</a></nav>";
    let body = body.replacen("</nav>", link, 1);
    let end = end.replacen("</body>", &format!("<script type=\"module\">\n{TABLES}\n</script>\n</body>"), 1);
    format!("{body}{tables}</main>{end}")
}

/// Results to be shown beside others.
pub struct ComparedResults<'a> {
    /// Folder of the results.
    pub folder: &'a str,
    /// Summary of the results.
    pub summary: &'a Summary,
    /// Comparison with the first results; `None` for these, and for results without a series in common.
    pub comparison: Option<&'a Comparison>,
}

/// Returns a page that compares results, which has their reports side by side; that of results `n` is at `/n/`.
pub fn render_side_by_side(results: &[ComparedResults<'_>]) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Results side by side</title>\n<style>\n",
    );
    page += STYLE;
    page += "\n.sides { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(420px, 1fr); gap: 12px; }\
             \n.sides iframe { width: 100%; height: 85vh; border: 1px solid var(--line); border-radius: 6px; }\
             \n@media print { .sides { display: none; } }\n</style>\n</head>\n<body>\n<header class=\"top\">\
             <p class=\"over\">Results side by side</p><button type=\"button\" id=\"theme\" hidden></button></header>\n<main>\n";
    page += &heads(results);
    page += &differences(results);
    page += &metrics(results);
    let frames: String = (0..results.len())
        .map(|at| format!("<iframe src=\"/{at}/\" title=\"Report {}\"></iframe>", letter(at)))
        .collect();
    page += &section(
        "reports",
        "The reports",
        "Each report can be explored by itself.",
        &format!("<div class=\"scroll\"><div class=\"sides\">{frames}</div></div>"),
    );
    let _ = write!(
        page,
        "</main>\n<div id=\"tip\" hidden></div>\n<p id=\"say\" role=\"status\" class=\"unseen\"></p>\n\
         <script type=\"application/json\" id=\"data\">{{\"charts\":[]}}</script>\n\
         <script type=\"module\">\n{SCRIPT}\n</script>\n</body>\n</html>\n"
    );
    page
}

/// Returns the name of results in the page: "A", "B"; after "Z", numbers.
fn letter(at: usize) -> String {
    u8::try_from(at).ok().filter(|at| *at < 26).map_or_else(|| at.to_string(), |at| char::from(b'A' + at).to_string())
}

/// Returns the results with their verdicts.
fn heads(results: &[ComparedResults<'_>]) -> String {
    let mut rows = String::new();
    for (at, one) in results.iter().enumerate() {
        let Summary { title, scenario, seeds, verdict, run, .. } = one.summary;
        let _ = write!(
            rows,
            "<tr><th scope=\"row\"><a href=\"/{at}/\">{}</a></th><td>{}<br><small><code>{}</code></small></td><td>{}</td>\
             <td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            letter(at),
            escape(title),
            escape(one.folder),
            escape(scenario),
            escape(&verdict.sentence),
            seeds.len(),
            escape(&run.version)
        );
    }
    format!(
        "<h1>{} results</h1><div class=\"scroll\"><table><thead><tr><th></th><th>study</th><th>scenario</th><th>verdict</th>\
         <th class=\"n\">seeds</th><th>version</th></tr></thead><tbody>{rows}</tbody></table></div>",
        results.len()
    )
    .replacen("<th></th>", "<td></td>", 1)
}

/// Returns the keys of scenarios that differ from those of the first results.
fn differences(results: &[ComparedResults<'_>]) -> String {
    let mut rows = String::new();
    for (at, one) in results.iter().enumerate().skip(1) {
        let Some(comparison) = one.comparison else {
            let _ =
                write!(rows, "<tr><td>{}</td><td colspan=\"4\">has no series in common with A</td></tr>", letter(at));
            continue;
        };
        for difference in &comparison.differences {
            let value = |value: &Option<String>| value.as_ref().map_or("–".into(), |value| escape(value));
            let series = if difference.series.is_empty() { "all".into() } else { difference.series.join(", ") };
            let _ = write!(
                rows,
                "<tr><td>{}</td><td><code>{}</code></td><td>{}</td><td><code>{}</code></td><td><code>{}</code></td></tr>",
                letter(at),
                escape(&difference.key),
                escape(&series),
                value(&difference.a),
                value(&difference.b)
            );
        }
    }
    let body = match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>results</th><th>key</th><th>series</th><th>A</th>\
             <th>its own</th></tr></thead><tbody>{rows}</tbody></table></div>"
        ),
    };
    let lead =
        if rows.is_empty() { "None: the resolved scenarios are the same." } else { "Keys of the resolved scenarios." };
    section("differences", "Differences from A", lead, &body)
}

/// Returns a table of each main metric: series as rows, results and ratios as columns.
fn metrics(results: &[ComparedResults<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for series in results.iter().flat_map(|one| &one.summary.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let Some(first) = results.first() else { return String::new() };
    let mut body = String::new();
    for row in first.summary.main_rows() {
        let of = |one: &ComparedResults<'_>, name: &str| {
            let series = one.summary.series.iter().find(|series| series.name == name)?;
            series.metric(row.name).cloned()
        };
        let all = || results.iter().flat_map(|one| names.iter().filter_map(move |name| of(one, name)));
        let scale = Scale::of(row.metric.unit, all().filter_map(|found| found.mean).fold(0.0, f64::max));
        let heads: String = (0..results.len()).map(|at| format!("<th class=\"n\">{}</th>", letter(at))).collect();
        let ratios = (1..results.len()).map(|at| format!("<th class=\"n\">{} / A (95 %)</th>", letter(at)));
        let unit = if scale.unit.is_empty() { String::new() } else { format!(" <small>{}</small>", scale.unit) };
        let _ = write!(
            body,
            "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>{}{unit}</th>{heads}{}</tr></thead><tbody>",
            escape(&row.title),
            ratios.collect::<String>()
        );
        for name in &names {
            let _ = write!(body, "<tr><th scope=\"row\">{}</th>", escape(name));
            for one in results {
                let found = of(one, name);
                let text = found.as_ref().map_or("–".into(), |found| number::estimate(found, scale));
                body += &number_cell(&escape(&text), found.and_then(|found| found.mean));
            }
            for one in &results[1..] {
                body += &ratio_cell(one.comparison.and_then(|comparison| ratio(comparison, name, row.name)));
            }
            body += "</tr>";
        }
        body += "</tbody></table></div>";
    }
    section(
        "numbers",
        "Metric by metric",
        "Means over seeds ± half the 95 % confidence interval. Ratios are paired by seed where flows are the same; a bold \
         one differs from 1.",
        &body,
    )
}

fn ratio<'a>(comparison: &'a Comparison, series: &str, metric: &str) -> Option<&'a MetricComparison> {
    let series = comparison.series.iter().find(|one| one.name == series)?;
    series.metrics.iter().find(|one| one.metric == metric)
}

fn ratio_cell(found: Option<&MetricComparison>) -> String {
    let Some(estimate) = found.map(|found| &found.ratio).filter(|ratio| ratio.mean.is_some() || ratio.bound.is_some())
    else {
        return number_cell("–", None);
    };
    let text = escape(&number::bounded(estimate.mean, estimate.bound, 3));
    let differs = estimate.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0);
    let text = if differs { format!("<b>{text}</b>") } else { text };
    let interval = escape(&number::in_brackets(estimate.ci95));
    number_cell(&format!("{text}<small>{interval}</small>"), estimate.mean)
}
