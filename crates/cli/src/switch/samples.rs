//! Samples of the ports of real switches, in a table as those of simulated ones.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use clap::Args;
use selvedge_dataplane::switch::Sampling;
use selvedge_results::{Labels, PortWriter, ResultsError};
use selvedge_scenario::Rack;
use selvedge_units::{Duration, Instant};

use crate::output::Failure;

#[derive(Args, Clone)]
pub(crate) struct SampleArgs {
    /// Write samples of all ports to this file, a table like ports.parquet of a results folder
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "samples")]
    every: Duration,
}

/// Thread that writes samples.
pub(super) struct Writing {
    thread: Option<JoinHandle<Result<(), ResultsError>>>,
}

impl SampleArgs {
    /// Creates the file, and starts the thread that writes it, if samples are asked for.
    pub(super) fn begin(&self, rack: &Rack) -> Result<(Option<Sampling>, Writing), Failure> {
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
