//! Samples of ports, to disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use selvedge_telemetry::{PortInfo, PortRow};
use selvedge_units::Duration;

use super::names::{Name, Names};
use super::part::{BATCH, Part};
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

/// Rows that wait to be written, by port: columns that repeat themselves take no room.
struct Samples {
    /// Of each port, by time.
    rows: Vec<Vec<Row>>,
    /// How many there are of all.
    count: usize,
    /// For how many of each port there is room from its first on.
    room: usize,
    /// When the samples were taken.
    times: Vec<u64>,
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
    /// None yet, of so many ports, with room for `most` if all have as many.
    fn of_ports(ports: usize, most: usize) -> Self {
        Self { rows: vec![Vec::new(); ports], count: 0, room: most.div_ceil(ports.max(1)), times: Vec::new() }
    }

    /// Adds rows of one sample, which covers `interval`.
    fn extend(&mut self, rows: &[PortRow], interval: Duration) {
        let time = rows[0].time.as_ps();
        if self.times.last() != Some(&time) {
            self.times.push(time);
        }
        let sample = self.times.len() as u32 - 1;
        for row in rows {
            let of_port = &mut self.rows[row.port.index()];
            if of_port.capacity() == 0 {
                of_port.reserve_exact(self.room);
            }
            of_port.push(Row {
                egress_queue: row.egress_queue.get(),
                ingress_buffer: row.ingress_buffer.get(),
                paused: row.paused.as_ps(),
                sample,
                utilisation: utilisation(row.busy, interval),
                drops: row.drops,
                trims: row.trims,
            });
        }
        self.count += rows.len();
    }

    /// Each row with its port, port by port.
    fn by_port(&self) -> impl Iterator<Item = (u32, &Row)> {
        (0..).zip(&self.rows).flat_map(|(port, rows)| rows.iter().map(move |row| (port, row)))
    }

    fn clear(&mut self) {
        self.rows.iter_mut().for_each(Vec::clear);
        self.count = 0;
        self.times.clear();
    }
}

impl PortWriter {
    /// Creates or replaces the file. `ports` describes all ports of the fabric, in any order.
    pub(crate) fn create(path: &Path, series: &str, seed: u64, ports: &[PortInfo]) -> Result<Self, ResultsError> {
        let mut tiers = BTreeMap::<Tier, Arc<str>>::new();
        for port in ports {
            tiers.entry(port.kind.into()).or_insert_with_key(|tier| tier.to_string().into());
        }
        let texts = ports.iter().flat_map(|port| [&port.node, &port.peer, &tiers[&port.kind.into()]]);
        let (names, ranks) = Names::of(texts);
        let len = ports.iter().map(|port| port.id.index() + 1).max().unwrap_or(0);
        let mut by_port = vec![[0; 3]; len];
        ports.iter().zip(ranks.as_chunks().0).for_each(|(port, ranks)| by_port[port.id.index()] = *ranks);
        let sorted = SORTED.max(SAMPLES * ports.len());
        Ok(Self {
            part: Part::create(path, Table::Ports)?,
            series: Name::only(series),
            seed,
            names,
            ports: by_port,
            samples: Samples::of_ports(len, sorted),
            sorted,
        })
    }

    /// Adds rows of one sample; `interval` is the time they cover.
    pub(crate) fn add(&mut self, mut rows: &[PortRow], interval: Duration) -> Result<(), ResultsError> {
        while !rows.is_empty() {
            let (first, rest) = rows.split_at(rows.len().min(self.sorted - self.samples.count));
            self.samples.extend(first, interval);
            if self.samples.count == self.sorted {
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
        let name = |port: u32, which: usize| self.names.at(self.ports[port as usize][which]);
        let mut rows = self.samples.by_port();
        let mut batch: Vec<(u32, &Row)> = Vec::with_capacity(BATCH);
        loop {
            batch.clear();
            batch.extend(rows.by_ref().take(BATCH));
            if batch.is_empty() {
                break;
            }
            self.part.write(&batch, |columns| {
                let ports = columns.parts(|a, b| a.0 == b.0);
                let all = columns.parts(|_, _| true);
                columns.text_of(&all, |_| &self.series)?;
                columns.long_of(&all, |_| self.seed)?;
                columns.long(|(_, row)| self.samples.times[row.sample as usize])?;
                columns.int_of(&ports, |(port, _)| *port)?;
                columns.text_of(&ports, |(port, _)| name(*port, 0))?;
                columns.text_of(&ports, |(port, _)| name(*port, 1))?;
                columns.text_of(&ports, |(port, _)| name(*port, 2))?;
                columns.long(|(_, row)| row.egress_queue)?;
                columns.long(|(_, row)| row.ingress_buffer)?;
                columns.long(|(_, row)| row.paused)?;
                columns.share(|(_, row)| row.utilisation)?;
                columns.int(|(_, row)| row.drops)?;
                columns.int(|(_, row)| row.trims)
            })?;
        }
        drop(rows);
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
