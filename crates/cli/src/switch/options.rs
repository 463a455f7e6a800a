//! Options of real switches, and samples of their ports in a table as those of simulated ones.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use clap::Args;
use selvedge_dataplane::switch::Sampling;
use selvedge_results::{Labels, PortWriter, ResultsError};
use selvedge_scenario::Rack;
use selvedge_units::{Bytes, Duration, Instant};

use crate::output::Failure;

/// Options that switches have wherever their ports are.
#[derive(Args)]
pub(crate) struct SwitchOptions {
    /// Change one value of the file: its dotted key, and a TOML value; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// MTU of the hosts' interfaces
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u16).range(576..=9_000))]
    pub(crate) mtu: u16,
    /// No switches: frames reach their hosts at once, to compare with
    #[arg(long)]
    pub(crate) without: bool,
    /// Priority that has a class of its own, 0 to 7, the highest first; may be repeated [default: those of the file]
    ///
    /// Priorities are those of tags, or the upper three bits of the DSCP. All others travel with data.
    #[arg(long = "priority", value_name = "N", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(super) priorities: Vec<u8>,
    /// Write samples of all ports to this file, a table like ports.parquet of a results folder
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "samples")]
    every: Duration,
    /// Record what happens to each packet, into this folder
    ///
    /// The folder gets the events (lab.events), of which `selvedge explain` tells why flows were slow, a capture for
    /// Wireshark (lab.pcapng) and a timeline for ui.perfetto.dev (lab.perfetto-trace).
    #[arg(long = "trace-dir", value_name = "DIR", conflicts_with = "without")]
    pub(super) trace_dir: Option<PathBuf>,
    /// Cut packets in captures after this many bytes, headers included
    #[arg(long = "trace-snaplen", value_name = "BYTES", default_value_t = 128, requires = "trace_dir", value_parser = clap::value_parser!(u32).range(64..=262_144))]
    pub(super) trace_snaplen: u32,
    /// Keep the payload in captures: whole packets
    #[arg(long = "trace-payload", requires = "trace_dir", conflicts_with = "trace_snaplen")]
    pub(super) trace_payload: bool,
    /// Stop recording when the events have this size; the programs go on
    #[arg(long = "trace-limit", value_name = "SIZE", default_value = "1GB", requires = "trace_dir")]
    pub(super) trace_limit: Bytes,
    /// Print the counters at the end as JSON, to standard output
    #[arg(long)]
    pub(super) json: bool,
}

/// Thread that writes samples.
pub(super) struct Writing {
    thread: Option<JoinHandle<Result<(), ResultsError>>>,
}

impl SwitchOptions {
    /// Returns the options of switches whose hosts' interfaces have an MTU of `mtu` bytes, with changed values of the
    /// file (`sets`).
    pub(crate) fn new(mtu: u16, sets: Vec<String>, json: bool) -> Self {
        Self {
            sets,
            mtu,
            without: false,
            priorities: Vec::new(),
            samples: None,
            every: Duration::ZERO,
            trace_dir: None,
            trace_snaplen: 0,
            trace_payload: false,
            trace_limit: Bytes::ZERO,
            json,
        }
    }

    /// Returns the bytes on a link of the longest frame of a host's interface.
    pub(super) fn longest_frame(&self) -> Bytes {
        // Header and frame check sequence of Ethernet.
        Bytes::new(u64::from(self.mtu) + 14 + 4)
    }

    /// Creates the table of samples, and starts the thread that writes it, if samples are asked for.
    pub(super) fn begin_samples(&self, rack: &Rack) -> Result<(Option<Sampling>, Writing), Failure> {
        let Some(path) = &self.samples else { return Ok((None, Writing { thread: None })) };
        if self.every.is_zero() {
            return Err(Failure::input("--every: 0 is no time between samples; give one, as in 10ms"));
        }
        let ports = selvedge_sim::port_infos(rack.network.graph());
        let writer = PortWriter::create(path, &Labels::from("real"), rack.seed, &ports);
        let mut writer = writer.map_err(|error| Failure::input(format!("--samples: {error}")))?;
        let (to, samples) = channel::<Vec<_>>();
        let write = move || {
            let mut last = Instant::ZERO;
            for rows in samples.iter().filter(|rows| !rows.is_empty()) {
                writer.add(&rows, rows[0].time.since(last))?;
                last = rows[0].time;
            }
            writer.close().map(drop)
        };
        let thread = thread::Builder::new().name("samples".to_owned()).spawn(write);
        let thread = thread.map_err(|error| Failure::outcome(format!("cannot write samples: {error}")))?;
        Ok((Some(Sampling { every: self.every, to }), Writing { thread: Some(thread) }))
    }
}

impl Writing {
    /// Completes the file, after the switch has ended.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Some(thread) = self.thread else { return Ok(()) };
        let written = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.map_err(|error| Failure::outcome(error.to_string()))
    }
}
