//! The network with what happened on its links over time, drawn by the page's script.

use super::html::section;
use crate::Fabric;
use crate::number::fixed;

/// Returns the place of the network; empty without tables of links and ports.
pub(super) fn links(fabric: Option<&Fabric>) -> String {
    let Some(fabric) = fabric else { return String::new() };
    let title = "Links over time";
    if let Some(ports) = fabric.too_large() {
        let lead = format!(
            "{} ports over time are too much for this page: selvedge open shows them, from ports.parquet.",
            fixed(ports as f64, 0)
        );
        return section("links", title, &lead, "<div class=\"fabric\"></div>");
    }
    if !fabric.has_samples() {
        let lead = "The runs took no samples of ports, so that times are not known. The totals are in the tables of pauses \
                    and drops.";
        return section("links", title, lead, "");
    }
    let mut lead = String::from(
        "Each line is one direction of a link, drawn on the right of its way; one run of each series, with its first seed. In an interval of the slider, \
         utilisation and pauses are shares of its time, queues are the deepest sample, drops are counted. Numbers have three digits; \
         ports.parquet has all.",
    );
    if fabric.left_out() > 0 {
        lead += &format!(" {} more series are not shown, for their size.", fabric.left_out());
    }
    section("links", title, &lead, "<div class=\"fabric\"></div>")
}
