//! Recording of what happens to each packet: a thread that writes the events while programs run, and what is made of
//! them afterwards.

use std::fs;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};

use selvedge_dataplane::switch::{Batch, Recorder};
use selvedge_scenario::Rack;
use selvedge_telemetry::{FabricStep, RecordingStop};
use selvedge_traces::{LabPaths, RecordWriter, TraceError};
use selvedge_units::{Bytes, Instant};

use super::options::SwitchOptions;
use crate::output::{self, Failure};

/// Longest part of a frame that is kept: all of it.
const WHOLE: usize = u16::MAX as usize;
/// Least size of a recording: that of some packets.
const LEAST: Bytes = Bytes::from_kb(100);

/// Recording under way.
pub(super) struct Recording {
    paths: LabPaths,
    limit: Bytes,
    thread: JoinHandle<Result<Option<Stop>, TraceError>>,
}

/// End of a recording before that of its run.
type Stop = (Instant, RecordingStop);

impl Recording {
    /// Begins the recording that `options` ask for.
    pub(super) fn begin(options: &SwitchOptions, rack: &Rack) -> Result<Option<(Recorder, Self)>, Failure> {
        let Some(folder) = &options.trace_dir else { return Ok(None) };
        let limit = options.trace_limit;
        if limit < LEAST {
            return Err(Failure::input(format!("--trace-limit {limit}: too little to record; give at least {LEAST}")));
        }
        fs::create_dir_all(folder).map_err(|error| {
            Failure::input(format!("--trace-dir {}: cannot make the folder: {error}", folder.display()))
        })?;
        let snaplen = if options.trace_payload { WHOLE } else { options.trace_snaplen as usize };
        let paths = LabPaths::within(folder);
        let ports = selvedge_sim::port_infos(rack.network.graph());
        let writer = RecordWriter::create(&paths.events, &ports, snaplen, limit);
        let writer = writer.map_err(|error| Failure::input(format!("--trace-dir: {error}")))?;
        let (recorder, batches) = Recorder::new(snaplen);
        let thread = thread::Builder::new().name("recording".to_owned()).spawn(|| write(writer, batches));
        let thread = thread.map_err(|error| Failure::outcome(format!("cannot record: {error}")))?;
        Ok(Some((recorder, Self { paths, limit, thread })))
    }

    /// Completes the files, after the switch has ended and its recorder is dropped.
    pub(super) fn finish(self, rack: &Rack) -> Result<(), Failure> {
        let stop = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let stop = stop.map_err(|error| Failure::outcome(error.to_string()))?;
        if let Some((at, why)) = stop {
            let why = match why {
                RecordingStop::Limit => {
                    format!("its events have {} (--trace-limit sets another size)", self.limit)
                }
                RecordingStop::Slow => "events came faster than they could be written".to_owned(),
            };
            let at = at.as_us_f64() / 1e6;
            output::say(&format!("note: the recording stops {at:.3} s after the switches began: {why}"));
        }
        let program = concat!("selvedge ", env!("CARGO_PKG_VERSION"));
        let made = self.paths.convert(rack.network.graph(), program);
        made.map_err(|error| Failure::outcome(error.to_string()))?;
        let folder = self.paths.events.parent().unwrap_or(&self.paths.events).display();
        output::say(&format!("recorded: {folder}; `selvedge explain {folder}` tells why flows were slow"));
        Ok(())
    }
}

fn write(mut writer: RecordWriter, batches: Receiver<Batch>) -> Result<Option<Stop>, TraceError> {
    let mut stop = None;
    for batch in batches {
        let takes_more = writer.add(&batch.events, &batch.captured)?;
        let Some(last) = batch.events.last() else { continue };
        if let FabricStep::Stopped { why } = last.what {
            stop = Some((last.at, why));
        } else if !takes_more {
            stop = Some((last.at, RecordingStop::Limit));
            break;
        }
    }
    writer.finish().map(|()| stop)
}
