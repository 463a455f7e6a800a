//! Counters of NetRT's top-of-rack switches.

use selvedge_switch::Switches;
use selvedge_transport::netrt::Occupancy;

/// Calls `each` for the counters of every switch that runs NetRT, with the switch's name, which stands before the colon
/// in the names of its ports.
pub(super) fn visit_counts(switches: &Switches, names: &[String], each: &mut dyn FnMut(&str, &'static str, u64)) {
    for (switch, tor) in switches.switches.iter().zip(switches.tors.iter()) {
        let Some(tor) = tor else { continue };
        let port = names.get(switch.facts.first_port as usize).map_or("", String::as_str);
        let name = port.split(':').next().unwrap_or_default();
        let (source, destination) = (tor.source(), tor.destination());
        for (what, count) in [
            ("requests_received", source.requests),
            ("unfulfilled", source.unfulfilled),
            ("copies_sent", source.retransmissions),
            ("requests_sent", destination.requests),
            ("held", destination.held),
            ("given_up", destination.given_up),
            ("surplus", destination.surplus),
            ("untracked", destination.untracked),
            ("restarts", destination.restarts),
            ("pauses", source.pauses),
            ("messages", tor.messages()),
            ("pool_peak", tor.pools().map(Occupancy::peak).sum()),
            ("pool_mean", tor.pools().map(Occupancy::mean).sum()),
            ("buffer_peak", tor.buffers().iter().map(Occupancy::peak).sum()),
            ("buffer_mean", tor.buffers().iter().map(Occupancy::mean).sum()),
        ] {
            each(name, what, count);
        }
    }
}
