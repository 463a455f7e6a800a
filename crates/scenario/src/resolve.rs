//! Every "auto" of a scenario, derived from its network.

use selvedge_sim::config::BufferConfig;
use selvedge_transport::{Fabric, Scheme, Tuning};
use selvedge_units::{Bytes, Duration, Setting};

use crate::network::Network;
use crate::scenario::Scenario;

/// Replaces every "auto" of `scenario`, which runs on `network`.
pub(crate) fn resolve(scenario: &mut Scenario, network: &Network) {
    let Scenario { switch, nic, transport, sample, .. } = scenario;
    let bdp = network.bdp();
    let frame = nic.mtu + nic.data_header(transport);

    let (of_port, of_switch) = match &mut switch.buffer {
        BufferConfig::InputQueued(buffer) => {
            // IRN section 4.1: twice the bandwidth-delay product.
            settle(&mut buffer.per_port, Some(bdp * 2));
            (buffer.per_port, None)
        }
        BufferConfig::SharedBuffer(buffer) => (Setting::Off, Some(buffer.total)),
    };

    // One value where all links are alike; else each input keeps its own.
    let mut per_link = network.links_to_switches().map(|link| switch.pfc.headroom_on(link.rate, link.delay, nic));
    if let Some(first) = per_link.next()
        && per_link.all(|other| other == first)
    {
        drop(per_link);
        settle(&mut switch.pfc.headroom, Some(first));
    }
    settle(&mut switch.pfc.xon_gap, Some((frame + nic.gap) * 2));

    let fabric = Fabric {
        pfc: switch.pfc.enabled,
        line_rate: network.line_rate(),
        bdp,
        frame,
        congested_rtt: network.base_rtt() + network.longest_queueing(of_port, of_switch),
    };
    transport.recovery.resolve(&fabric);
    transport.congestion.resolve(&fabric);

    settle(sample, Some(network.base_rtt().max(SHORTEST_SAMPLE) * 2));
}

/// Replaces "auto".
fn settle<T: Copy>(setting: &mut Setting<T>, auto: Option<T>) {
    *setting = setting.resolve(|| auto).into();
}

/// Buffer of a port or of a whole switch, for messages and checks.
pub(crate) fn buffer_per_input(buffer: &BufferConfig) -> Option<Bytes> {
    match buffer {
        BufferConfig::InputQueued(buffer) => buffer.per_port.resolve(|| None),
        BufferConfig::SharedBuffer(buffer) => Some(buffer.total),
    }
}

/// Queues do not change much within less.
const SHORTEST_SAMPLE: Duration = Duration::from_us(5);
