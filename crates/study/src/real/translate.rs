//! Translation of a simulated run into a trial.

use selvedge_sim::config::{BufferConfig, VerbsHeaders};
use selvedge_sim::workload::{BuildEnv, FlowSpec, Posting, Verb, WorkloadConfig};
use selvedge_sim::{ConfigError, Library, SimConfig, fabric_parts};
use selvedge_switch::Parts;
use selvedge_transport::CongestionConfig;
use selvedge_units::{Duration, HostId};

use super::exchange::Setup;

/// A run between two processes.
pub(super) struct Trial {
    /// Instructions for the requester.
    pub(super) setup: Setup,
    /// Switches and links of the whole network.
    pub(super) parts: Parts,
    /// Hosts of both processes, the requester's first.
    pub(super) hosts: [HostId; 2],
    /// Requested messages in order, each with its completion time in an empty network.
    pub(super) messages: Vec<(FlowSpec, Duration)>,
}

/// ECN field of packets that can be marked.
const ECN_CAPABLE: u8 = 0b10;
/// Largest number of messages, so that a trial is over in minutes.
const MOST_MESSAGES: u64 = 1_000_000;

pub(super) fn translate(config: &SimConfig, library: &dyn Library) -> Result<Trial, ConfigError> {
    refuse_others(config)?;
    let verbs = config.transport.verbs(&config.nic, 0)?;
    let paths = &config.paths;
    let env = BuildEnv {
        graph: paths.graph(),
        routes: paths.routes(),
        seed: config.seed,
        library,
        framing: config.nic.framing(&config.transport),
        measure: config.measure,
        stop_flows: config.stop.flows,
    };
    let mut workload = config.workload.build(&env).map_err(|error| error.within("workload"))?;
    let [posting] = workload.postings.as_mut_slice() else { return Err(only_verbs()) };
    let [connection] = **posting.connections() else {
        let message = "the real world has one connection: list one pair, as [[\"h0\", \"h1\"]], with one queue pair";
        return Err(ConfigError::new("workload.verbs.pairs", message));
    };
    if paths.between(connection.src, connection.dst).is_none() {
        return Err(ConfigError::new("topology", "the two hosts cannot reach each other"));
    }
    let messages = messages(posting, connection.src)?;
    let params = config.transport.connection_params(posting, paths.slowest_host());
    let longest = messages.iter().map(|(message, _)| message.size.get()).max().unwrap_or(8);
    let ideal = |message: &FlowSpec, verb: Verb| {
        verb.ideal(paths, [message.src, message.dst], message.size, env.framing, config.nic.gap).unwrap_or_default()
    };
    let ecn = if config.switch.ecn.enabled.resolve(|| false) { ECN_CAPABLE } else { 0 };
    Ok(Trial {
        parts: fabric_parts(config, library, &[])?,
        hosts: [connection.src, connection.dst],
        setup: Setup {
            recovery: *config.transport.recovery().ok_or_else(only_verbs)?,
            window: verbs.window,
            mtu: config.nic.mtu.get() as u16,
            depth: params.send_requests,
            receives: params.receive_requests,
            reads: params.reads,
            timeout: params.timeout,
            retries: params.retries,
            credits: params.options.credits,
            longest: longest.max(8) as u32,
            // The upper bits of the DSCP are the priority.
            traffic_class: config.nic.data_class << 5 | ecn,
            messages: messages.iter().map(|(message, verb)| (*verb, message.size.get())).collect(),
        },
        messages: messages.iter().map(|(message, verb)| (*message, ideal(message, *verb))).collect(),
    })
}

/// Refuses what real hosts, or real packets, do not support.
fn refuse_others(config: &SimConfig) -> Result<(), ConfigError> {
    if (WorkloadConfig { verbs: config.workload.verbs.clone(), ..WorkloadConfig::default() }) != config.workload {
        return Err(only_verbs());
    }
    for (key, is_wanted) in [
        ("stop.time", config.stop.time.is_some()),
        ("beside", config.beside.is_some()),
        ("transport.eqds", config.transport.tunnels().is_some()),
        // Without its payload, a real RoCEv2 packet has a wrong ICRC.
        ("switch.buffer.trimming", matches!(config.switch.buffer, BufferConfig::Trimming(_))),
        ("nic.ack-class", config.nic.ack_class != config.nic.data_class),
        ("nic.verbs-headers", config.nic.verbs_headers != VerbsHeaders::Selvedge),
        ("transport.congestion", !matches!(config.transport.congestion(), None | Some(CongestionConfig::None(_)))),
    ] {
        if is_wanted {
            return Err(ConfigError::new(key, "the real world has none of this: leave it out, or --real"));
        }
    }
    Ok(())
}

fn only_verbs() -> ConfigError {
    ConfigError::new("workload", "in the real world there is one [workload.verbs], and nothing else")
}

/// Returns the messages of a connection, each after the one before.
fn messages(posting: &mut Posting, asking: HostId) -> Result<Vec<(FlowSpec, Verb)>, ConfigError> {
    if posting.extent().known().is_none_or(|count| count == 0 || count > MOST_MESSAGES) {
        let message = format!("in the real world their number is given, 1 to {MOST_MESSAGES}, and no load");
        return Err(ConfigError::new("workload.verbs.messages", message));
    }
    let mut all = posting.begin(asking);
    let mut last = all.last().copied();
    while let Some(next) = last.and_then(|last| posting.after(&last, last.start)) {
        all.push(next);
        last = Some(next);
    }
    Ok(all.into_iter().filter_map(|message| Some((message, posting.verb_of(message.workload)?))).collect())
}
