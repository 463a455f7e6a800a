//! Writer of the table of port samples.

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

/// Smallest number of rows that are sorted together.
const SORTED: usize = 1 << 17;
/// Smallest number of samples of all ports that are sorted together.
const SAMPLES: usize = 10;

/// Writer of samples of ports (`ports.parquet`), of one run.
pub struct PortWriter {
    part: Part,
    labels: Written,
    seed: u64,
    names: Names,
    /// Indices of node, peer and tier in `names`, indexed by port.
    ports: Vec<[u32; 3]>,
    samples: Samples,
    /// Number of rows that are sorted together: the more rows of a port are adjacent, the more values repeat.
    sorted: usize,
}

/// Rows that wait to be written, without their constant columns.
#[derive(Default)]
struct Samples {
    /// The waiting samples, followed by written ones whose memory is reused.
    all: Vec<Sample>,
    /// Number of waiting samples.
    count: usize,
    /// Number of rows of the waiting samples.
    rows: usize,
}

/// The state of ports at one time.
#[derive(Default)]
struct Sample {
    /// Time of the sample, in picoseconds.
    time: u64,
    /// Rows of the ports, sorted by port. Writing port by port reads several samples in parallel, each sequentially.
    rows: Vec<Row>,
}

/// The values of a port in one sample.
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
    /// Adds rows of one time, sorted by port, which cover `interval`.
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

    /// Returns all rows with their times, sorted by port, then by time.
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

/// Iterator over the rows of several samples, merged by port.
struct ByPort<'a> {
    /// Time and remaining rows of each sample.
    left: Vec<(u64, &'a [Row])>,
    /// Highest port number plus one.
    ports: u32,
    /// Port whose rows are returned at present.
    port: u32,
    /// Index of the next sample to look in for rows of `port`.
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
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, labels: &Labels, seed: u64, ports: &[PortInfo]) -> Result<Self, ResultsError> {
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

    /// Adds rows of one sample, sorted by port; `interval` is the time that they cover.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, mut rows: &[PortRow], interval: Duration) -> Result<(), ResultsError> {
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

    /// Writes the buffered rows and the footer; returns a digest of the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn close(mut self) -> Result<u64, ResultsError> {
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

/// Returns the busy share of `interval`, rounded to 0.01 %: further digits are noise, and would be most of the file.
fn utilisation(busy: Duration, interval: Duration) -> f32 {
    let share = busy.as_ps() as f64 / interval.as_ps().max(1) as f64;
    // Rounded by truncation, because `round` is a function call on processors without a rounding instruction.
    (f64::from((share * 1e4 + 0.5) as u32) / 1e4) as f32
}
