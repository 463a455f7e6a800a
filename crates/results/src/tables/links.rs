//! Writer of the table of links, which describes the port numbers of other tables.

use std::path::Path;
use std::sync::Arc;

use selvedge_telemetry::{PortInfo, PortKind};
use selvedge_units::Duration;

use super::labels::{Labels, Written};
use super::names::Names;
use super::part::Part;
use super::schema::Table;
use crate::{ResultsError, Tier};

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkRow {
    /// Number of the link in the topology, shared by both directions.
    pub link: u32,
    /// The sending port; its `peer` fields describe the receiving one.
    pub port: PortInfo,
    /// Propagation delay.
    pub delay: Duration,
    /// Probability that the link loses a packet, as set in the topology, 0 to 1.
    pub loss: f64,
}

/// Writes the table of links for each of `networks`; the runs of a network have the given labels.
///
/// # Errors
/// Returns an error when the file cannot be written.
pub fn write_links(path: &Path, networks: &[(Labels, Vec<LinkRow>)]) -> Result<(), ResultsError> {
    let extras = networks.first().map(|(labels, _)| labels.extras()).unwrap_or_default();
    let mut part = Part::create(path, Table::Links, &extras)?;
    let tiers: Vec<Vec<[Arc<str>; 2]>> = networks
        .iter()
        .map(|(_, links)| {
            let tier = |kind: PortKind| Arc::from(Tier::from(kind).to_string());
            links.iter().map(|row| [tier(row.port.kind), tier(row.port.peer_kind)]).collect()
        })
        .collect();
    let texts = networks.iter().zip(&tiers).flat_map(|((_, links), tiers)| {
        links.iter().zip(tiers).flat_map(|(row, [own, other])| [&row.port.node, &row.port.peer, own, other])
    });
    let (names, ranks) = Names::of(texts);
    let mut ranks = ranks.as_chunks::<4>().0.iter();
    let labels = Written::of_all(networks.iter().map(|(labels, _)| labels));
    for ((_, links), written) in networks.iter().zip(&labels) {
        let rows: Vec<(&LinkRow, &[u32; 4])> = links.iter().zip(ranks.by_ref()).collect();
        part.write(&rows, |columns| {
            written.write_first(columns)?;
            columns.int(|(row, _)| row.link)?;
            columns.int(|(row, _)| row.port.id.0)?;
            columns.int(|(row, _)| row.port.peer_id.0)?;
            for at in 0..4 {
                columns.text(|(_, ranks)| names.at(ranks[at]))?;
            }
            columns.long(|(row, _)| row.port.rate.as_bps())?;
            columns.long(|(row, _)| row.delay.as_ps())?;
            columns.real(|(row, _)| row.loss)?;
            written.write_last(columns)
        })?;
    }
    part.close().map(drop)
}
