//! Samples of ports, to disk.

use std::path::Path;

use selvedge_telemetry::{PortInfo, PortRow};
use selvedge_units::Duration;

use super::names::{Name, Names};
use super::part::Part;
use super::schema::Table;
use crate::{ResultsError, Tier};

/// Rows that are put in order together, at least; and samples of all ports.
const SORTED: usize = 1 << 17;
const SAMPLES: usize = 10;

/// Writes the port samples of one point.
pub(crate) struct PortWriter {
    part: Part,
    series: Name,
    seed: u64,
    names: Names,
    /// Node, peer and tier by port number: where they stand among the names.
    ports: Vec<[u32; 3]>,
    rows: Vec<Row>,
    /// How many of them are put in order together: the more a port has of these, the more repeats itself.
    sorted: usize,
}

/// What is written of a sample.
#[derive(Clone, Copy)]
struct Row {
    time: u64,
    egress_queue: u64,
    ingress_buffer: u64,
    paused: u64,
    port: u32,
    utilisation: f32,
    drops: u32,
    trims: u32,
}

impl Row {
    #[inline]
    fn of(row: &PortRow, interval: Duration) -> Self {
        Self {
            time: row.time.as_ps(),
            egress_queue: row.egress_queue.get(),
            ingress_buffer: row.ingress_buffer.get(),
            paused: row.paused.as_ps(),
            port: row.port.0,
            utilisation: utilisation(row.busy, interval),
            drops: row.drops,
            trims: row.trims,
        }
    }
}

impl PortWriter {
    /// Creates or replaces the file. `ports` describes all ports of the fabric, in any order.
    pub(crate) fn create(path: &Path, series: &str, seed: u64, ports: &[PortInfo]) -> Result<Self, ResultsError> {
        let tiers: Vec<String> = ports.iter().map(|port| Tier::from(port.kind).to_string()).collect();
        let texts = ports.iter().zip(&tiers).flat_map(|(port, tier)| [&*port.node, &port.peer, tier]);
        let (names, ranks) = Names::of(texts);
        let len = ports.iter().map(|port| port.id.index() + 1).max().unwrap_or(0);
        let mut by_port = vec![[0; 3]; len];
        ports.iter().zip(ranks.as_chunks().0).for_each(|(port, ranks)| by_port[port.id.index()] = *ranks);
        let part = Part::create(path, Table::Ports)?;
        let sorted = SORTED.max(SAMPLES * ports.len());
        Ok(Self { part, series: Name::only(series), seed, names, ports: by_port, rows: Vec::new(), sorted })
    }

    /// Adds rows; `interval` is the time they cover.
    pub(crate) fn add(&mut self, mut rows: &[PortRow], interval: Duration) -> Result<(), ResultsError> {
        while !rows.is_empty() {
            let (first, rest) = rows.split_at(rows.len().min(self.sorted - self.rows.len()));
            self.rows.extend(first.iter().map(|row| Row::of(row, interval)));
            if self.rows.len() == self.sorted {
                self.flush()?;
            }
            rows = rest;
        }
        Ok(())
    }

    /// Writes what is buffered, and the footer; returns a digest of the file.
    pub(crate) fn close(mut self) -> Result<u64, ResultsError> {
        self.flush()?;
        self.part.close()
    }

    fn flush(&mut self) -> Result<(), ResultsError> {
        let order = by_port(&self.rows);
        let row = |&at: &u32| &self.rows[at as usize];
        let name = |at: &u32, which: usize| self.names.at(self.ports[row(at).port as usize][which]);
        self.part.write(&order, |columns| {
            let ports = columns.parts(|a, b| row(a).port == row(b).port);
            let all = columns.parts(|_, _| true);
            columns.text_of(&all, |_| &self.series)?;
            columns.long_of(&all, |_| self.seed)?;
            columns.long(|at| row(at).time)?;
            columns.int_of(&ports, |at| row(at).port)?;
            columns.text_of(&ports, |at| name(at, 0))?;
            columns.text_of(&ports, |at| name(at, 1))?;
            columns.text_of(&ports, |at| name(at, 2))?;
            columns.long(|at| row(at).egress_queue)?;
            columns.long(|at| row(at).ingress_buffer)?;
            columns.long(|at| row(at).paused)?;
            columns.share(|at| row(at).utilisation)?;
            columns.int(|at| row(at).drops)?;
            columns.int(|at| row(at).trims)
        })?;
        self.rows.clear();
        Ok(())
    }
}

/// The places of rows in the order of their ports, each port's as they came, which is by time: columns that repeat
/// themselves take no room.
fn by_port(rows: &[Row]) -> Vec<u32> {
    let port = |row: &Row| row.port as usize;
    let ports = rows.iter().map(port).max().map_or(0, |last| last + 1);
    let mut places = vec![0u32; ports];
    rows.iter().for_each(|row| places[port(row)] += 1);
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    let mut order = vec![0; rows.len()];
    for (at, row) in (0..).zip(rows) {
        let place = &mut places[port(row)];
        order[*place as usize] = at;
        *place += 1;
    }
    order
}

/// The share of `interval`, to a hundredth of a percent: more digits are noise, and most of the file.
fn utilisation(busy: Duration, interval: Duration) -> f32 {
    let share = busy.as_ps() as f64 / interval.as_ps().max(1) as f64;
    // Rounded by truncation: to `round`, processors of the oldest kind have to make a call.
    (f64::from((share * 1e4 + 0.5) as u32) / 1e4) as f32
}
