//! The command, version and scenario of a report, with which anyone can repeat the study.

use std::fmt::Write;

use super::ReportInput;
use super::axis::Quantity;
use super::html::{escape, number_cell, section};
use crate::number::{digits, fixed};

/// Returns the section with command, version, seeds, fingerprint, cost, points and scenario.
pub(super) fn how(input: &ReportInput<'_>) -> String {
    let summary = input.summary;
    let run = &summary.run;
    let seeds: Vec<_> = summary.seeds.iter().map(u64::to_string).collect();
    let speed = if run.cpu_s > 0.0 { run.packet_hops as f64 / run.cpu_s / 1e6 } else { 0.0 };
    let facts = [
        ("command", format!("<code>{}</code>", escape(input.command))),
        ("version", escape(&run.version)),
        ("seeds", escape(&seeds.join(", "))),
        (
            "fingerprint",
            format!(
                "<code>{}</code> <small>equal for equal scenario and seeds, on any machine</small>",
                escape(&run.fingerprint)
            ),
        ),
        ("work", format!("{} packet-hops, {} events", fixed(run.packet_hops as f64, 0), fixed(run.events as f64, 0))),
        (
            "cost",
            format!(
                "{} s wall, {} s processor on {} thread{}; {} M packet-hops per processor second",
                digits(run.wall_s, 3),
                digits(run.cpu_s, 3),
                run.threads,
                if run.threads == 1 { "" } else { "s" },
                digits(speed, 3)
            ),
        ),
    ];
    let mut body = String::from("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(body, "<dt>{name}</dt><dd>{value}</dd>");
    }
    body += "</dl>";
    if summary.sweep.is_some() {
        body += "<p>The runs are listed in summary.json, the resolved scenario is scenario.toml beside this page.</p>";
        return section("how", "How this was run", "Everything needed to get the same numbers again.", &body);
    }
    body += "<details><summary>Each run</summary><div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>series</th><th class=\"n\">seed</th>\
             <th>fingerprint</th><th class=\"n\">simulated</th><th class=\"n\">packet-hops</th><th class=\"n\">processor s</th></tr></thead><tbody>";
    for point in &run.points {
        let _ = write!(
            body,
            "<tr><td>{}</td><td class=\"n\">{}</td><td><code>{}</code></td>{}<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escape(&point.series),
            point.seed,
            escape(&point.fingerprint),
            number_cell(&Quantity::Time.label(point.simulated_us), Some(point.simulated_us)),
            fixed(point.packet_hops as f64, 0),
            digits(point.cpu_s, 3)
        );
    }
    let _ = write!(
        body,
        "</tbody></table></div></details><details><summary>The resolved scenario</summary><pre>{}</pre></details>",
        escape(input.scenario_toml)
    );
    section("how", "How this was run", "Everything needed to get the same numbers again.", &body)
}
