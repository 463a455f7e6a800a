//! Writer of the table of flows.

use std::path::Path;

use selvedge_telemetry::{FlowRow, PortInfo, PortKind};
use selvedge_units::HostId;

use super::PAGE;
use super::labels::{Labels, Written};
use super::names::{Name, Names};
use super::part::Part;
use super::schema::Table;
use crate::ResultsError;

/// Largest number of buffered rows; a page is a multiple.
const WAITING: usize = PAGE / 8;

/// Writer of the flows of one point.
pub(crate) struct FlowWriter {
    part: Part,
    labels: Written,
    seed: u64,
    names: Names,
    /// Index of each host's name in `names`, indexed by host.
    hosts: Vec<u32>,
    /// Name of hosts without a description.
    nameless: Name,
    rows: Vec<FlowRow>,
}

impl FlowWriter {
    /// Creates or replaces the file. `ports` describes all ports of the fabric; a host's number is that of its port.
    pub(crate) fn create(path: &Path, labels: &Labels, seed: u64, ports: &[PortInfo]) -> Result<Self, ResultsError> {
        let of_hosts = || ports.iter().filter(|port| port.kind == PortKind::Host);
        let (names, ranks) = Names::of(of_hosts().map(|port| &port.node));
        let len = of_hosts().map(|port| port.id.index() + 1).max().unwrap_or(0);
        let mut hosts = vec![u32::MAX; len];
        of_hosts().zip(ranks).for_each(|(port, rank)| hosts[port.id.index()] = rank);
        Ok(Self {
            part: Part::create(path, Table::Flows, &labels.extras())?,
            labels: Written::new(labels),
            seed,
            names,
            hosts,
            nameless: Name::last(""),
            rows: Vec::with_capacity(WAITING),
        })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &FlowRow) -> Result<(), ResultsError> {
        self.rows.push(*row);
        if self.rows.len() == WAITING { self.flush() } else { Ok(()) }
    }

    /// Writes the buffered rows and the footer; returns a digest of the file.
    pub(crate) fn close(mut self) -> Result<u64, ResultsError> {
        self.flush()?;
        self.part.close()
    }

    fn flush(&mut self) -> Result<(), ResultsError> {
        let name = |host: HostId| {
            let known = self.hosts.get(host.index()).filter(|rank| **rank != u32::MAX);
            known.map_or(&self.nameless, |&rank| self.names.at(rank))
        };
        self.part.write(&self.rows, |columns| {
            self.labels.write_first(columns)?;
            columns.long(|_| self.seed)?;
            columns.long(|row| row.id)?;
            columns.int(|row| u32::from(row.workload))?;
            columns.int(|row| row.group)?;
            columns.int(|row| row.src.0)?;
            columns.int(|row| row.dst.0)?;
            columns.text(|row| name(row.src))?;
            columns.text(|row| name(row.dst))?;
            columns.long(|row| row.size.get())?;
            columns.long(|row| row.packets)?;
            columns.long(|row| row.start.as_ps())?;
            columns.optional_long(|row| row.finish.map(|finish| finish.as_ps()))?;
            columns.optional_long(|row| row.fct().map(|fct| fct.as_ps()))?;
            columns.long(|row| row.ideal.as_ps())?;
            columns.optional_double(FlowRow::slowdown)?;
            columns.int(|row| row.spurious)?;
            columns.flag(|row| row.measured)?;
            self.labels.write_last(columns)
        })?;
        self.rows.clear();
        Ok(())
    }
}
