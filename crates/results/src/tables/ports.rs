//! Samples of ports, to disk.

use std::path::Path;

use parquet::data_type::ByteArray;
use selvedge_telemetry::{PortInfo, PortRow};
use selvedge_units::Duration;

use super::part::Part;
use super::schema::Table;
use crate::{ResultsError, Tier};

/// Rows that are put in order together.
const SORTED: usize = 1 << 16;

/// Writes the port samples of one point.
pub(crate) struct PortWriter {
    part: Part,
    series: ByteArray,
    seed: u64,
    /// Node, peer and tier by port number.
    names: Vec<[ByteArray; 3]>,
    rows: Vec<(PortRow, Duration)>,
}

impl PortWriter {
    /// Creates or replaces the file. `ports` describes all ports of the fabric, in any order.
    pub(crate) fn create(path: &Path, series: &str, seed: u64, ports: &[PortInfo]) -> Result<Self, ResultsError> {
        let len = ports.iter().map(|port| port.id.index() + 1).max().unwrap_or(0);
        let mut names = vec![["".into(), "".into(), "".into()]; len];
        for port in ports {
            let tier = Tier::from(port.kind).to_string();
            names[port.id.index()] = [port.node.as_str().into(), port.peer.as_str().into(), tier.as_str().into()];
        }
        Ok(Self { part: Part::create(path, Table::Ports)?, series: series.into(), seed, names, rows: Vec::new() })
    }

    /// Adds a row; `interval` is the time it covers.
    pub(crate) fn push(&mut self, row: &PortRow, interval: Duration) -> Result<(), ResultsError> {
        self.rows.push((*row, interval));
        if self.rows.len() == SORTED { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered, and the footer.
    pub(crate) fn close(mut self) -> Result<(), ResultsError> {
        self.flush()?;
        self.part.close()
    }

    fn flush(&mut self) -> Result<(), ResultsError> {
        // By port, then time: columns that repeat themselves take no room. Rows come sample by sample, each in order,
        // of which the stable sort makes use.
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        let rows = |at: u32| &self.rows[at as usize];
        order.sort_by_key(|&at| (rows(at).0.port, rows(at).0.time));
        let row = |&at: &u32| &rows(at).0;
        let name = |row: &PortRow, which: usize| {
            self.names.get(row.port.index()).map_or_else(|| "".into(), |names| names[which].clone())
        };
        self.part.write(&order, |columns| {
            columns.text(|_| self.series.clone())?;
            columns.long(|_| self.seed)?;
            columns.long(|at| row(at).time.as_ps())?;
            columns.int(|at| row(at).port.0)?;
            columns.text(|at| name(row(at), 0))?;
            columns.text(|at| name(row(at), 1))?;
            columns.text(|at| name(row(at), 2))?;
            columns.long(|at| row(at).egress_queue.get())?;
            columns.long(|at| row(at).ingress_buffer.get())?;
            columns.long(|at| row(at).paused.as_ps())?;
            columns.float(|&at| utilisation(rows(at).0.busy, rows(at).1))?;
            columns.int(|at| row(at).drops)?;
            columns.int(|at| row(at).trims)
        })?;
        self.rows.clear();
        Ok(())
    }
}

/// The share of `interval`, to a hundredth of a percent: more digits are noise, and most of the file.
fn utilisation(busy: Duration, interval: Duration) -> f32 {
    let share = busy.as_ps() as f64 / interval.as_ps().max(1) as f64;
    ((share * 1e4).round() / 1e4) as f32
}
