//! Tests of [`Simulation::builder`].

use std::sync::Arc;

use selvedge_sim::config::{
    BufferConfig, NicConfig, RdmaConfig, SharedBuffer, SimConfig, SwitchConfig, TransportConfig, Trimming,
};
use selvedge_sim::topology::{Dumbbell, FatTree, Graph, LeafSpine, LinkConfig};
use selvedge_sim::workload::{AllToAll, Incast, Permutation, Poisson, Senders, Sizes, WorkloadConfig};
use selvedge_sim::{ConfigError, Network, Parallel, Simulation, SimulationBuilder};
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::homa::HomaConfig;
use selvedge_transport::ndp::NdpConfig;
use selvedge_transport::recovery::go_back_n::GoBackNConfig;
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{CongestionConfig, RecoveryConfig};
use selvedge_units::{Bytes, Duration, HostId, Instant, Rate};
use serde_json::Value;

const LINK: LinkConfig = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(2) };

fn fat_tree() -> FatTree {
    FatTree { k: 4, link: LINK }
}

/// Returns the builder of a permutation with flows of 50 KB.
fn permutation() -> SimulationBuilder {
    Simulation::builder(fat_tree()).workload(Permutation::of(Bytes::from_kb(50)))
}

fn refused(builder: SimulationBuilder) -> String {
    match builder.build() {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_same_seed_gives_the_same_run_on_any_number_of_threads() -> Result<(), ConfigError> {
    let one = permutation().build()?;
    let first = one.run()?;
    assert_eq!(first.flows.len(), 16);
    assert_eq!(one.run()?, first);
    let two = permutation().parallel(Parallel::on(2)).build()?.run()?;
    assert_eq!((two.flows, two.totals.fingerprint), (first.flows, first.totals.fingerprint));
    let other_seed = permutation().seed(2).build()?.run()?;
    assert_ne!(other_seed.totals.fingerprint, first.totals.fingerprint);
    Ok(())
}

#[test]
fn flows_one_by_one_start_when_told_beside_other_workloads() -> Result<(), ConfigError> {
    let start = Duration::from_us(3);
    let builder = permutation().flow(HostId(0), HostId(1), Bytes::new(1), start);
    let outcome = builder.flow(HostId(1), HostId(0), Bytes::from_kb(9), start * 2).build()?.run()?;
    let mut listed: Vec<_> = outcome.flows.iter().filter(|flow| flow.workload == 1).collect();
    listed.sort_by_key(|flow| flow.id);
    let starts: Vec<Instant> = listed.iter().map(|flow| flow.start).collect();
    assert_eq!(starts, [Instant::ZERO + start, Instant::ZERO + start * 2]);
    assert_eq!(outcome.completion_times().count(), 18);
    Ok(())
}

#[test]
fn a_network_serves_several_runs() -> Result<(), ConfigError> {
    let network = Arc::new(Network::of(fat_tree().build()?)?);
    let run = || Simulation::builder(Arc::clone(&network)).workload(AllToAll::of(Bytes::from_kb(1))).build()?.run();
    assert_eq!(run()?, run()?);
    Ok(())
}

fn assert_begins(text: &str, beginning: &str) {
    assert!(text.starts_with(beginning), "{text}\ndoes not begin with\n{beginning}");
}

#[test]
fn errors_name_the_key_of_a_scenario_file() {
    let no_traffic = Simulation::builder(fat_tree());
    assert_begins(&refused(no_traffic), "workload: nothing is sent");
    let arrivals = Poisson::of("50%".parse().expect("a load"), Sizes::Fixed(Bytes::from_kb(1)));
    assert_begins(&refused(Simulation::builder(fat_tree()).workload(arrivals)), "stop: the traffic never ends");
    let odd = Simulation::builder(FatTree { k: 3, link: LINK });
    assert_begins(&refused(odd), "topology.fat-tree.k: ");
    let nowhere = Simulation::builder(Graph::default());
    assert_begins(&refused(nowhere), "topology.hosts: ");
    let no_bytes = permutation().nic(NicConfig { mtu: Bytes::ZERO, ..NicConfig::default() });
    assert_eq!(refused(no_bytes), "nic.mtu: 0B is out of range: a packet carries 64B to 9KB");
    let to_itself = permutation().flow(HostId(1), HostId(1), Bytes::new(1), Duration::ZERO);
    assert_begins(&refused(to_itself), "workload.flows.path: flows of the builder: ");
    let too_many = permutation().workload(Incast::of(Bytes::from_kb(1), Senders::Count(16)));
    assert_begins(&refused(too_many), "workload.incast.senders: ");
}

/// Returns the keys below `path` whose value is "auto".
fn autos(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(table) => table.iter().for_each(|(key, value)| autos(&format!("{path}.{key}"), value, found)),
        Value::String(text) if text == "auto" => found.push(path.to_owned()),
        _ => {}
    }
}

/// Returns the keys of `config` that still say "auto".
fn open_keys(config: &SimConfig) -> Vec<String> {
    let json = |part: Result<Value, serde_json::Error>| part.expect("settings can be written");
    let mut found = Vec::new();
    autos("switch", &json(serde_json::to_value(&config.switch)), &mut found);
    let others = config.transports.iter().map(|(_, transport)| transport);
    for transport in [&config.transport].into_iter().chain(others).chain(&config.path_transports.distinct) {
        autos("transport", &json(serde_json::to_value(transport)), &mut found);
    }
    found
}

/// Returns every transport that the crate has, with the switches that it needs.
fn transports() -> Vec<(TransportConfig, SwitchConfig)> {
    let plain = SwitchConfig::default;
    let trimming = || SwitchConfig { buffer: BufferConfig::Trimming(Trimming::default()), ..plain() };
    let recoveries: [RecoveryConfig; 3] =
        [IrnConfig::default().into(), GoBackNConfig::default().into(), MeloConfig::default().into()];
    let mut all = vec![
        (TcpConfig::default().into(), plain()),
        (TransportConfig::Messages(NdpConfig::default().into()), trimming()),
        (TransportConfig::Messages(HomaConfig::default().into()), plain()),
        (EqdsConfig::default().into(), trimming()),
    ];
    for recovery in recoveries {
        for congestion in CongestionConfig::all() {
            let transport = RdmaConfig { recovery, congestion }.into();
            all.push((transport, plain()));
        }
    }
    all
}

#[test]
fn nothing_is_auto_in_a_configuration_that_was_built() -> Result<(), ConfigError> {
    let fast = LinkConfig { rate: Rate::from_gbps(100), delay: Duration::from_us(1) };
    let unlike =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host_link: LINK, spine_link: fast, parallel_links: 1 };
    let bottleneck = Dumbbell { left: 2, right: 2, host_link: fast, bottleneck: LINK };
    for (transport, switch) in transports() {
        let with = |network: SimulationBuilder| {
            let flow = network.flow(HostId(0), HostId(2), Bytes::from_kb(10), Duration::ZERO);
            flow.transport(transport).switch(switch.clone()).build()
        };
        let alike = with(Simulation::builder(fat_tree()))?;
        assert_eq!(open_keys(alike.config()), [""; 0], "{transport:?}");
        assert_eq!(alike.run()?.totals.flows_finished, 1, "{transport:?}");
        for simulation in [with(Simulation::builder(unlike))?, with(Simulation::builder(bottleneck))?] {
            let open: Vec<String> = open_keys(simulation.config());
            assert!(open.iter().all(|key| key == "switch.pfc.headroom"), "{transport:?}: {open:?}");
        }
    }
    let shared = SharedBuffer::default();
    let switch = SwitchConfig { buffer: BufferConfig::SharedBuffer(shared), ..SwitchConfig::default() };
    assert_eq!(open_keys(permutation().switch(switch).build()?.config()), [""; 0]);
    Ok(())
}

#[test]
fn constructors_of_workloads_have_the_defaults_of_scenario_files() {
    let size = Bytes::from_kb(1);
    let load = "50%".parse().expect("a load");
    let expected: [WorkloadConfig; 4] = [
        Permutation::of(size).into(),
        AllToAll::of(size).into(),
        Incast::of(size, Senders::Count(3)).into(),
        Poisson::of(load, Sizes::Fixed(size)).into(),
    ];
    let written = [
        "permutation = { size = '1KB' }",
        "all-to-all = { size = '1KB' }",
        "incast = { size = '1KB', senders = 3 }",
        "poisson = { load = 0.5, sizes = { fixed = '1KB' } }",
    ];
    let mut all = WorkloadConfig::default();
    for (expected, written) in expected.into_iter().zip(written) {
        assert_eq!(toml::from_str::<WorkloadConfig>(written), Ok(expected.clone()), "{written}");
        all.extend(expected);
    }
    assert_eq!(toml::from_str::<WorkloadConfig>(&written.join("\n")), Ok(all));
}
