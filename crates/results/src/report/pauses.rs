//! The spread of PFC pauses over ports and tiers.

use std::fmt::Write;

use super::Study;
use super::axis::Quantity;
use super::heat;
use super::html::{escape, figure, number_cell, section};
use crate::number::fixed;
use crate::{PausedPort, Pauses, PointSummary, Tier};

/// Largest number of rows of the map.
const MAP_ROWS: usize = 32;
/// Largest number of rows of the table.
const TABLE_ROWS: usize = 10;

/// Returns for each series with pauses: tiers, a map of the worst ports over time, and their numbers.
pub(super) fn spread(study: &Study<'_>) -> String {
    let mut body = String::new();
    for (at, point) in study.first_points().filter(|(_, point)| point.pauses.paused_ports > 0) {
        body += &one_series(study.inks[at], point);
    }
    if body.is_empty() {
        return if study.summary.series.iter().any(|series| series.traits.pfc) {
            section("pauses", "Where pauses spread", "No port was ever paused.", "")
        } else {
            String::new()
        };
    }
    section(
        "pauses",
        "Where pauses spread",
        "A pause stops everything behind a port, the innocent too. One run of each series, with its first seed. \
         In a map, a row is an egress port and the node that paused it, darker where it stood still for more of the time.",
        &body,
    )
}

fn one_series(ink: usize, point: &PointSummary) -> String {
    let pauses = &point.pauses;
    let mut rows: Vec<&PausedPort> = pauses.worst.iter().take(MAP_ROWS).collect();
    // Rows go from the core outwards, so that spreading reads downwards.
    rows.sort_by(|a, b| b.tier.cmp(&a.tier).then(b.paused_us.total_cmp(&a.paused_us)));
    let paused = format!(
        "{} of {} ports were paused at all, for {} together",
        pauses.paused_ports,
        pauses.ports,
        Quantity::Time.label(point.run.paused_us)
    );
    let over_time = if rows.iter().all(|port| port.share.is_empty()) {
        format!("<p>{paused}. When is not known, for the run took no samples.</p>")
    } else {
        let map =
            heat::map(&rows, pauses.bin_us, point.run.begin_us, &format!("Paused ports over time, {}", point.series));
        let caption = format!("The {} that were paused longest; {paused}", rows.len());
        format!("<div class=\"scroll\">{}</div>", figure(&caption, &map))
    };
    format!(
        "<div class=\"s{ink}\"><h3><i class=\"dot\" style=\"background:var(--s{ink})\"></i>{} <small>seed {}</small></h3>\
         {over_time}<div class=\"pair tables\">{}{}</div></div>",
        escape(&point.series),
        point.seed,
        tier_matrix(pauses),
        worst_ports(pauses, point.run.span_us())
    )
}

/// Returns a matrix of paused time: pausing tiers as rows, paused tiers as columns.
fn tier_matrix(pauses: &Pauses) -> String {
    let mut tiers: Vec<Tier> = pauses.by_tier.iter().flat_map(|pair| [pair.by, pair.paused]).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let most = pauses.by_tier.iter().map(|pair| pair.paused_us).fold(0.0, f64::max);
    let mut table = String::from(
        "<figure><figcaption>Paused time by tier: who paused (rows) whom (columns)</figcaption><table class=\"matrix\"><thead><tr><td></td>",
    );
    for paused in &tiers {
        let _ = write!(table, "<th>{paused}</th>");
    }
    table += "</tr></thead><tbody>";
    for by in &tiers {
        let _ = write!(table, "<tr><th>{by}</th>");
        for paused in &tiers {
            match pauses.by_tier.iter().find(|pair| pair.by == *by && pair.paused == *paused) {
                Some(pair) => {
                    let _ = write!(
                        table,
                        "<td style=\"--heat:{:.3}\"><b>{}</b><br><small>{} of {} ports</small></td>",
                        pair.paused_us / most.max(f64::MIN_POSITIVE),
                        Quantity::Time.label(pair.paused_us),
                        pair.paused_ports,
                        pair.ports
                    );
                }
                None => table += "<td class=\"none\">–</td>",
            }
        }
        table += "</tr>";
    }
    table + "</tbody></table></figure>"
}

fn worst_ports(pauses: &Pauses, span_us: f64) -> String {
    let worst = || pauses.worst.iter().take(TABLE_ROWS);
    // A host's data waits in its NIC's queue pairs, not at the port.
    let has_queue = |port: &PausedPort| port.tier != Tier::Host;
    let some_have = worst().any(has_queue);
    let mut table = String::from(
        "<figure><figcaption>The worst ports</figcaption><table class=\"sortable\"><thead><tr><th>port of</th><th>paused by</th>\
         <th class=\"n\">paused</th><th class=\"n\">of the run</th><th class=\"n\">X-OFFs</th>",
    );
    table += if some_have { "<th class=\"n\">peak queue</th>" } else { "" };
    table += "</tr></thead><tbody>";
    for port in worst() {
        let share = port.paused_us / span_us.max(f64::MIN_POSITIVE);
        let _ = write!(
            table,
            "<tr><td>{}</td><td>{}</td>{}{}{}",
            escape(&port.node),
            escape(&port.peer),
            number_cell(&Quantity::Time.label(port.paused_us), Some(port.paused_us)),
            number_cell(&Quantity::Share.label(share), Some(share)),
            number_cell(&fixed(port.pauses as f64, 0), Some(port.pauses as f64)),
        );
        if some_have {
            let peak = port.egress_peak as f64;
            table += &match has_queue(port) {
                true => number_cell(&Quantity::Size.label(peak), Some(peak)),
                false => number_cell("–", None),
            };
        }
        table += "</tr>";
    }
    table + "</tbody></table></figure>"
}
