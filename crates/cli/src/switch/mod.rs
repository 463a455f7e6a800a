//! Command `selvedge switch`: the switches of a rack between interfaces that exist.

mod args;
mod options;
mod recording;
mod report;

use std::path::Path;

use selvedge_dataplane::switch::ports::Port;
use selvedge_dataplane::switch::{Bridge, Direct, Directory, Engine, FabricEngine, Running};
use selvedge_scenario::Rack;

pub(crate) use args::{EXAMPLES, Kind, SwitchArgs};
pub(crate) use options::SwitchOptions;

use self::recording::Recording;
use crate::output::{self, Failure, print};
use crate::supervise::Signals;

/// Switches to run.
pub(crate) struct Job<'a> {
    pub(crate) rack: &'a Rack,
    /// Addresses of hosts that are known beforehand.
    pub(crate) directory: Directory,
    /// Ports in the order of the hosts.
    pub(crate) ports: Vec<Port>,
    pub(crate) options: &'a SwitchOptions,
}

pub(crate) fn switch(args: &SwitchArgs) -> Result<(), Failure> {
    let rack = read(&args.config, &args.options)?;
    let places = args.places(&rack).map_err(Failure::input)?;
    let signals = Signals::listen()?;
    let mut ports = Vec::with_capacity(places.len());
    let mut is_told = false;
    let graph = rack.network.graph();
    for (host, place) in graph.host_ids().zip(&places) {
        let name = &graph.hosts[host.index()].name;
        let opened = place.open();
        let (port, why) = opened
            .map_err(|error| Failure::input(format!("port of {name}: {error}; `--port {name}=PORT` names another")))?;
        if let Some(why) = why.filter(|_| !is_told) {
            is_told = true;
            output::say(&format!("note: ports use AF_PACKET, which is slower than AF_XDP: {why}"));
        }
        ports.push(port);
    }
    let directory = Directory::new(ports.len());
    let mut wait = |has_failed: &dyn Fn() -> bool| {
        output::say(&format!("ready: {} ports; Ctrl-C ends", places.len()));
        signals.wait_for(u32::MAX, has_failed);
        Ok(0)
    };
    let job = Job { rack: &rack, directory, ports, options: &args.options };
    run(job, true, &mut wait).map(drop)
}

/// Reads a rack, and tells its notes.
pub(crate) fn read(path: &Path, options: &SwitchOptions) -> Result<Rack, Failure> {
    let rack = Rack::from_file(path, &options.sets)?;
    rack.notes.iter().for_each(|note| output::say(&format!("note: {note}")));
    Ok(rack)
}

/// Work that lasts as long as switches are to run: it is lent the question whether they have ended by themselves, and
/// returns an exit status.
pub(crate) type During<'a> = dyn FnMut(&dyn Fn() -> bool) -> Result<u8, Failure> + 'a;

/// Runs switches while `during` lasts, and reports: to standard output, or to standard error if that belongs to a
/// program. Returns the status that `during` returned.
pub(crate) fn run(job: Job<'_>, is_alone: bool, during: &mut During<'_>) -> Result<u8, Failure> {
    if job.options.without {
        return run_engine(Direct::default(), job, is_alone, during);
    }
    let (parts, names) = job.rack.fabric(job.options.longest_frame(), &job.options.priorities)?;
    let rack = job.rack;
    let Some((recorder, recording)) = Recording::begin(job.options, rack)? else {
        return run_engine(FabricEngine::new(parts, names), job, is_alone, during);
    };
    let status = run_engine(FabricEngine::recorded(parts, names, recorder), job, is_alone, during)?;
    recording.finish(rack)?;
    Ok(status)
}

fn run_engine<E: Engine + Send + 'static>(
    engine: E,
    job: Job<'_>,
    is_alone: bool,
    during: &mut During<'_>,
) -> Result<u8, Failure> {
    let Job { rack, directory, ports, options } = job;
    let (sampling, writing) = options.begin_samples(rack)?;
    let running = Running::start(Bridge::new(engine, directory), ports, sampling)
        .map_err(|error| Failure::outcome(format!("cannot start the switch: {error}")))?;
    let outcome = during(&|| running.has_failed());
    let ended = running.close().map_err(|error| Failure::outcome(format!("a port has failed: {error}")))?;
    writing.finish()?;
    let status = outcome?;
    let graph = rack.network.graph();
    let names: Vec<&str> = graph.host_ids().map(|host| graph.hosts[host.index()].name.as_str()).collect();
    if options.json {
        print(&(output::json(&report::as_json(&names, &ended)) + "\n"))?;
    } else if is_alone {
        print(&report::as_text(&names, &ended))?;
    } else {
        // Standard output is left to the user's program.
        output::say(report::as_text(&names, &ended).trim_end());
    }
    Ok(status)
}
