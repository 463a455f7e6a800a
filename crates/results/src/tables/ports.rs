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
    samples: Samples,
    /// How many rows are put in order together: the more a port has of these, the more repeats itself.
    sorted: usize,
}

/// Rows that wait to be put in order, and written.
struct Samples {
    rows: Vec<Row>,
    /// Whose they are, apart, so that to put them in order takes no look at them.
    port_of: Vec<u32>,
    /// How many there are of each port.
    counts: Vec<u32>,
    /// When the samples were taken.
    times: Vec<u64>,
    /// The places of rows, once they are in order.
    order: Vec<u32>,
}

/// What is written of a sample.
#[derive(Clone, Copy)]
struct Row {
    egress_queue: u64,
    ingress_buffer: u64,
    paused: u64,
    /// Of which sample it is.
    sample: u32,
    utilisation: f32,
    drops: u32,
    trims: u32,
}

impl Samples {
    /// None yet, of so many ports.
    fn of_ports(ports: usize) -> Self {
        Self { rows: Vec::new(), port_of: Vec::new(), counts: vec![0; ports], times: Vec::new(), order: Vec::new() }
    }

    /// Adds rows of one sample, which covers `interval`.
    fn extend(&mut self, rows: &[PortRow], interval: Duration) {
        let time = rows[0].time.as_ps();
        if self.times.last() != Some(&time) {
            self.times.push(time);
        }
        let sample = self.times.len() as u32 - 1;
        self.rows.extend(rows.iter().map(|row| Row {
            egress_queue: row.egress_queue.get(),
            ingress_buffer: row.ingress_buffer.get(),
            paused: row.paused.as_ps(),
            sample,
            utilisation: utilisation(row.busy, interval),
            drops: row.drops,
            trims: row.trims,
        }));
        self.port_of.extend(rows.iter().map(|row| row.port.0));
        rows.iter().for_each(|row| self.counts[row.port.index()] += 1);
    }

    /// Puts rows in the order of their ports, each port's as they came, which is by time: columns that repeat
    /// themselves take no room.
    fn put_in_order(&mut self) {
        // What counted the rows of a port says where its next one goes.
        let mut sum = 0;
        self.counts.iter_mut().for_each(|count| sum += std::mem::replace(count, sum));
        self.order.resize(self.rows.len(), 0);
        for (at, &port) in (0..).zip(&self.port_of) {
            let place = &mut self.counts[port as usize];
            self.order[*place as usize] = at;
            *place += 1;
        }
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.port_of.clear();
        self.counts.fill(0);
        self.times.clear();
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
        Ok(Self {
            part: Part::create(path, Table::Ports)?,
            series: Name::only(series),
            seed,
            names,
            ports: by_port,
            samples: Samples::of_ports(len),
            sorted: SORTED.max(SAMPLES * ports.len()),
        })
    }

    /// Adds rows of one sample; `interval` is the time they cover.
    pub(crate) fn add(&mut self, mut rows: &[PortRow], interval: Duration) -> Result<(), ResultsError> {
        while !rows.is_empty() {
            let (first, rest) = rows.split_at(rows.len().min(self.sorted - self.samples.rows.len()));
            self.samples.extend(first, interval);
            if self.samples.rows.len() == self.sorted {
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
        self.samples.put_in_order();
        let row = |&at: &u32| &self.samples.rows[at as usize];
        let port = |&at: &u32| self.samples.port_of[at as usize];
        let name = |at: &u32, which: usize| self.names.at(self.ports[port(at) as usize][which]);
        self.part.write(&self.samples.order, |columns| {
            let ports = columns.parts(|a, b| port(a) == port(b));
            let all = columns.parts(|_, _| true);
            columns.text_of(&all, |_| &self.series)?;
            columns.long_of(&all, |_| self.seed)?;
            columns.long(|at| self.samples.times[row(at).sample as usize])?;
            columns.int_of(&ports, port)?;
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
        self.samples.clear();
        Ok(())
    }
}

/// The share of `interval`, to a hundredth of a percent: more digits are noise, and most of the file.
fn utilisation(busy: Duration, interval: Duration) -> f32 {
    let share = busy.as_ps() as f64 / interval.as_ps().max(1) as f64;
    // Rounded by truncation: to `round`, processors of the oldest kind have to make a call.
    (f64::from((share * 1e4 + 0.5) as u32) / 1e4) as f32
}
