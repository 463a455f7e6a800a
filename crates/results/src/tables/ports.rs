//! Samples of ports, to disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use selvedge_telemetry::{PortInfo, PortRow};
use selvedge_units::Duration;

use super::PAGE;
use super::labels::{Labels, Written};
use super::names::Names;
use super::part::Part;
use super::schema::Table;
use crate::{ResultsError, Tier};

/// Rows that are put in order together, at least; and samples of all ports.
const SORTED: usize = 1 << 17;
const SAMPLES: usize = 10;

/// Writes the port samples of one point.
pub(crate) struct PortWriter {
    part: Part,
    labels: Written,
    seed: u64,
    names: Names,
    /// Node, peer and tier by port number: where they stand among the names.
    ports: Vec<[u32; 3]>,
    samples: Samples,
    /// How many rows are put in order together: the more a port has of these, the more repeats itself.
    sorted: usize,
}

/// Rows that wait to be written: columns that repeat themselves take no room.
#[derive(Default)]
struct Samples {
    /// Those that there are, and behind them some that were written, whose room others will have.
    all: Vec<Sample>,
    /// How many there are.
    count: usize,
    /// How many rows they have.
    rows: usize,
}

/// What ports were like at one time.
#[derive(Default)]
struct Sample {
    /// In picoseconds.
    time: u64,
    /// By port. Whoever writes them port by port reads a few of these side by side, each from one end to the other.
    rows: Vec<Row>,
}

/// What is written of a port.
#[derive(Clone, Copy)]
struct Row {
    port: u32,
    utilisation: f32,
    egress_queue: u64,
    ingress_buffer: u64,
    paused: u64,
    drops: u32,
    trims: u32,
}

impl Samples {
    /// Adds rows of one time, which cover `interval`, by port.
    fn extend(&mut self, rows: &[PortRow], interval: Duration) {
        debug_assert!(rows.is_sorted_by_key(|row| row.port), "rows come by port");
        if self.count == self.all.len() {
            self.all.push(Sample::default());
        }
        let sample = &mut self.all[self.count];
        self.count += 1;
        self.rows += rows.len();
        sample.time = rows[0].time.as_ps();
        sample.rows.clear();
        sample.rows.reserve_exact(rows.len());
        sample.rows.extend(rows.iter().map(|row| Row {
            port: row.port.0,
            utilisation: utilisation(row.busy, interval),
            egress_queue: row.egress_queue.get(),
            ingress_buffer: row.ingress_buffer.get(),
            paused: row.paused.as_ps(),
            drops: row.drops,
            trims: row.trims,
        }));
    }

    /// All rows with their times, port by port, and those of a port by time.
    fn by_port(&self) -> ByPort<'_> {
        let all = &self.all[..self.count];
        let last = all.iter().filter_map(|sample| sample.rows.last()).map(|row| row.port).max();
        ByPort {
            left: all.iter().map(|sample| (sample.time, &*sample.rows)).collect(),
            ports: last.map_or(0, |last| last + 1),
            port: 0,
            next: 0,
        }
    }

    fn clear(&mut self) {
        (self.count, self.rows) = (0, 0);
    }
}

/// Rows of several samples, taken from all of them at once.
struct ByPort<'a> {
    /// What is left of each sample, and its time.
    left: Vec<(u64, &'a [Row])>,
    /// One more than the last port's number.
    ports: u32,
    /// Whose rows are looked for, and in which sample next.
    port: u32,
    next: usize,
}

impl<'a> Iterator for ByPort<'a> {
    type Item = (u64, &'a Row);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((time, rows)) = self.left.get_mut(self.next) else {
                if self.port + 1 >= self.ports {
                    return None;
                }
                (self.port, self.next) = (self.port + 1, 0);
                continue;
            };
            self.next += 1;
            if let Some((row, rest)) = rows.split_first()
                && row.port == self.port
            {
                *rows = rest;
                return Some((*time, row));
            }
        }
    }
}

impl PortWriter {
    /// Creates or replaces the file. `ports` describes all ports of the fabric, in any order.
    pub(crate) fn create(path: &Path, labels: &Labels, seed: u64, ports: &[PortInfo]) -> Result<Self, ResultsError> {
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
            part: Part::create(path, Table::Ports, &labels.extras())?,
            labels: Written::new(labels),
            seed,
            names,
            ports: by_port,
            samples: Samples::default(),
            sorted,
        })
    }

    /// Adds rows of one sample, by port; `interval` is the time they cover.
    pub(crate) fn add(&mut self, mut rows: &[PortRow], interval: Duration) -> Result<(), ResultsError> {
        while !rows.is_empty() {
            let (first, rest) = rows.split_at(rows.len().min(self.sorted - self.samples.rows));
            self.samples.extend(first, interval);
            if self.samples.rows == self.sorted {
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
        let mut batch: Vec<(u64, &Row)> = Vec::with_capacity(PAGE);
        loop {
            batch.clear();
            batch.extend(rows.by_ref().take(PAGE));
            if batch.is_empty() {
                break;
            }
            self.part.write(&batch, |columns| {
                let ports = columns.parts(|(_, a), (_, b)| a.port == b.port);
                let all = columns.parts(|_, _| true);
                self.labels.write_first(columns)?;
                columns.long_of(&all, |_| self.seed)?;
                columns.long(|(time, _)| *time)?;
                columns.int_of(&ports, |(_, row)| row.port)?;
                columns.text_of(&ports, |(_, row)| name(row.port, 0))?;
                columns.text_of(&ports, |(_, row)| name(row.port, 1))?;
                columns.text_of(&ports, |(_, row)| name(row.port, 2))?;
                columns.long(|(_, row)| row.egress_queue)?;
                columns.long(|(_, row)| row.ingress_buffer)?;
                columns.long(|(_, row)| row.paused)?;
                columns.share(|(_, row)| row.utilisation)?;
                columns.int(|(_, row)| row.drops)?;
                columns.int(|(_, row)| row.trims)?;
                self.labels.write_last(columns)
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
