//! Translation of a simulated run into a trial.

use selvedge_dataplane::impair::{Class, Impairment, Loss, addresses};
use selvedge_sim::config::VerbsHeaders;
use selvedge_sim::fault::{Affected, LossConfig, LossModel};
use selvedge_sim::topology::{Path, Paths};
use selvedge_sim::workload::{BuildEnv, FlowSpec, Posting, Verb, WorkloadConfig};
use selvedge_sim::{ConfigError, Library, SimConfig};
use selvedge_tor::Settings;
use selvedge_transport::{CongestionConfig, netrt};
use selvedge_units::{Bytes, Duration, HostId, Rate};

use super::exchange::Setup;

/// A run between two processes.
pub(super) struct Trial {
    pub(super) seed: u64,
    /// Instructions for the requester.
    pub(super) setup: Setup,
    /// Impairments from the requester to the responder, and back.
    pub(super) impairments: [Impairment; 2],
    /// Switches with NetRT at both processes, around what is impaired.
    pub(super) tors: Option<Box<[Settings; 2]>>,
    /// Requested messages in order, each with its completion time in an empty network.
    pub(super) messages: Vec<(FlowSpec, Duration)>,
}

/// Highest rate that can be emulated packet by packet; faster links run at the machine's own speed.
const FASTEST: Rate = Rate::from_gbps(1);
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
    let there = way(paths, connection.src, connection.dst)?;
    let messages = messages(posting, connection.src)?;
    let params = config.transport.connection_params(posting, paths.slowest_host());
    let longest = messages.iter().map(|(message, _)| message.size.get()).max().unwrap_or(8);
    let ideal = |message: &FlowSpec, verb: Verb| {
        verb.ideal(paths, [message.src, message.dst], message.size, env.framing, config.nic.gap).unwrap_or_default()
    };
    let back = way(paths, connection.dst, connection.src)?;
    let mut impairments = [impairment(config, paths, &there)?, impairment(config, paths, &back)?];
    let tors = config.switch.netrt.enabled.then(|| switches(config, paths, &there, &mut impairments)).transpose()?;
    Ok(Trial {
        seed: config.seed,
        setup: Setup {
            recovery: verbs.recovery,
            window: verbs.window,
            mtu: config.nic.mtu.get() as u16,
            depth: params.send_requests,
            receives: params.receive_requests,
            reads: params.reads,
            timeout: params.timeout,
            retries: params.retries,
            credits: params.options.credits,
            longest: longest.max(8) as u32,
            messages: messages.iter().map(|(message, verb)| (*verb, message.size.get())).collect(),
        },
        impairments,
        tors,
        messages: messages.iter().map(|(message, verb)| (*message, ideal(message, *verb))).collect(),
    })
}

/// Refuses features that the device between two processes does not support.
fn refuse_others(config: &SimConfig) -> Result<(), ConfigError> {
    if (WorkloadConfig { verbs: config.workload.verbs.clone(), ..WorkloadConfig::default() }) != config.workload {
        return Err(only_verbs());
    }
    for (key, is_wanted) in [
        ("switch.pfc.enabled", config.switch.pfc.enabled),
        ("failures", !config.failures.is_empty()),
        ("stop.time", config.stop.time.is_some()),
        ("beside", config.beside.is_some()),
        ("transport.eqds", config.transport.tunnels().is_some()),
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

fn way(paths: &Paths, from: HostId, to: HostId) -> Result<Path, ConfigError> {
    paths.between(from, to).ok_or_else(|| ConfigError::new("topology", "the two hosts cannot reach each other"))
}

/// Returns the switches with NetRT at both ends of a path. Their queues come before the rate of the path: there, copies
/// overtake other packets.
fn switches(
    config: &SimConfig,
    paths: &Paths,
    way: &Path,
    impairments: &mut [Impairment; 2],
) -> Result<Box<[Settings; 2]>, ConfigError> {
    let graph = paths.graph();
    let links: Vec<_> = paths.links(way.src, way.dst).into_iter().flatten().collect();
    if links.len() < 3 || links.iter().any(|link| graph.links[*link as usize].rate != way.bottleneck) {
        let message = "NetRT in the real world has two switches, host - switch - switch - host, and links of one rate";
        return Err(ConfigError::new("topology", message));
    }
    let rate = impairments[0].rate;
    for impairment in impairments {
        impairment.rate = None;
    }
    let switch = |end| Settings {
        netrt: Some(netrt::Settings::from(&config.switch.netrt).restarting()),
        hosts: vec![addresses(end)],
        rate,
        line_rate: way.bottleneck,
        queue: Bytes::MAX,
        mark_above: None,
        dscp: Settings::DSCP,
        path_mtu: config.nic.mtu.get() as u32,
    };
    Ok(Box::new([switch(0), switch(1)]))
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

/// Returns the impairment of the packets on a path.
fn impairment(config: &SimConfig, paths: &Paths, way: &Path) -> Result<Impairment, ConfigError> {
    let mut impairment = Impairment {
        delay: way.propagation,
        rate: (way.bottleneck <= FASTEST).then_some(way.bottleneck),
        ..Impairment::default()
    };
    let mut lossy = None;
    for (n, rule) in config.loss.iter().enumerate() {
        let lanes = rule
            .link
            .lanes(config.paths.graph(), rule.direction)
            .map_err(|error| error.within(&format!("loss[{n}]")))?;
        let links = paths.links(way.src, way.dst).into_iter().flatten();
        let mut at = selvedge_sim::topology::Node::Host(way.src);
        for (hop, link) in links.enumerate() {
            let ends = &config.paths.graph().links[link as usize];
            let from_a = ends.a == at;
            at = if from_a { ends.b } else { ends.a };
            if !lanes.iter().any(|lane| lane.link == link && lane.from_a == from_a) {
                continue;
            }
            if lossy.replace(n).is_some() {
                let message = "in the real world packets are lost in one place on their way: name one link";
                return Err(ConfigError::new("loss", message));
            }
            let is_at_host = hop == 0 || at == selvedge_sim::topology::Node::Host(way.dst);
            if config.switch.netrt.enabled && is_at_host {
                let message = "in the real world NetRT's switches are at the hosts: name a link between switches";
                return Err(ConfigError::new(&format!("loss[{n}].link"), message));
            }
        }
    }
    if let Some(n) = lossy {
        lose(&mut impairment, &config.loss[n]).map_err(|error| error.within(&format!("loss[{n}]")))?;
    }
    Ok(impairment)
}

fn lose(impairment: &mut Impairment, rule: &LossConfig) -> Result<(), ConfigError> {
    let LossModel::Random(random) = &rule.model else {
        return Err(ConfigError::new("model", "in the real world packets are lost at random: give { random = .. }"));
    };
    impairment.loss = Loss::Random(random.rate);
    let concerned = |class: Class| match rule.packets {
        Affected::All => class != Class::Other,
        Affected::Data => class == Class::Data,
        Affected::Ack => class == Class::Ack,
        Affected::Pause => false,
    };
    impairment.concerns = Class::ALL.map(concerned);
    Ok(())
}
