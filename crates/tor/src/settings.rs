//! Settings of a switch.

use std::net::IpAddr;

use selvedge_transport::netrt::{self, NetRtConfig};
use selvedge_units::{Bytes, Duration, Rate, Setting};

/// Settings of a [`Tor`](crate::Tor).
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Settings of NetRT; `None`: the switch only forwards.
    pub netrt: Option<netrt::Settings>,
    /// Addresses of the host at each port. Packets for other addresses go to the fabric.
    pub hosts: Vec<Vec<IpAddr>>,
    /// Rate of the links to hosts and fabric; `None`: as fast as packets are taken.
    pub rate: Option<Rate>,
    /// Rate by which NetRT's rate law reckons where `rate` is `None`: that of a host's link.
    pub line_rate: Rate,
    /// Most bytes in the queue of a port; beyond them packets are dropped. Copies and messages count, too.
    pub queue: Bytes,
    /// Bytes in a queue above which packets that can carry congestion marks (ECN) are marked; `None`: never.
    pub mark_above: Option<Bytes>,
    /// DSCP of copies and messages, 1 to 63. Hosts should not use it: their packets with it are not repaired.
    pub dscp: u8,
    /// Payload of a full packet of the hosts' queue pairs (path MTU), 256 to 4096 bytes, until a longer message shows
    /// it. From it follows how many PSNs the answer to a Read request takes.
    pub path_mtu: u32,
}

impl Settings {
    /// DSCP of copies and messages unless set otherwise: class selector 6 (RFC 2474).
    pub const DSCP: u8 = 48;

    /// Returns settings of NetRT for switches between which a packet and an answer take `round_trip`, processing
    /// included, at a rate of `line`: as the paper has them, with a bandwidth-delay product each of copies and of held
    /// packets, 128 KB at least.
    pub fn netrt_for(line: Rate, round_trip: Duration) -> NetRtConfig {
        // A request comes a round trip after the packet, and software is late at times.
        let pool = line.amount_in(round_trip).max(Bytes::from_kb(128));
        NetRtConfig {
            enabled: true,
            pool: Setting::Value(pool),
            buffer: Setting::Value(pool),
            interval: Setting::Value(round_trip),
            quiet: Setting::Value(round_trip.saturating_mul(3) / 4),
            lifetime: Setting::Value(round_trip.saturating_mul(4)),
            idle: Duration::from_ms(100),
            ..NetRtConfig::default()
        }
    }
}
