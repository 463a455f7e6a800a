//! Parameters of the engine for the tunnels to one peer, from what the settings say.

use selvedge_transport::eqds::{EqdsConfig, EqdsParams, LifeConfig, LossConfig, Messages, Numbers, Source};
use selvedge_transport::{Fabric, SettingError};
use selvedge_units::{Bytes, Duration, Rate, Setting, Toggle};

use super::inside::Eqif;
use crate::auth::TAG;
use crate::config::{Config, Peer, Seal};
use selvedge_wire::eqds::v1::{Common, MAC, PacketType, Service};
use selvedge_wire::{Ipv4, Ipv6, Udp};

/// Bytes of Ethernet's header and FCS, and of preamble and gap.
const ETHERNET: u64 = 14 + 4;
const GAP: u64 = 20;
/// Round-trip time for which "auto" sizes a tunnel's credit: two hosts whose kernels and daemons take their time. More
/// than the link carries is never granted, whatever the window.
const ROUND_TRIP: Duration = Duration::from_ms(2);
/// Bits of sequence numbers below the epoch. Appendix A has ten: at most 512 packets would be in flight, which at an
/// MTU of 1500 are less than a millisecond at 10 Gb/s.
const LOW_BITS: u32 = 14;
/// Packets that a tunnel may have in flight: a quarter of an epoch.
const REORDER: u32 = 1 << (LOW_BITS - 2);
/// Most packets of a window that "auto" gives.
const MOST_PACKETS: u64 = 2_048;
const LEAST_PACKETS: u64 = 10;

/// Sizes of the datagrams to one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    /// Bytes of a data header, MAC included.
    pub(super) header: usize,
    /// Bytes of a payload's tag.
    pub(super) tag: usize,
    /// Bytes of the longest UDP payload.
    pub(super) datagram: u16,
    /// Bytes around a UDP payload, Ethernet to FCS.
    pub(super) around: u32,
}

impl Sizes {
    pub(super) fn of(config: &Config, peer: &Peer) -> Self {
        let ip = if peer.address.is_ipv4() { Ipv4::LENGTH } else { Ipv6::LENGTH };
        Self {
            header: Common::LENGTH + PacketType::Data.length() + MAC,
            tag: if config.seal == Seal::Off { 0 } else { TAG },
            datagram: (peer.mtu as usize - ip - Udp::LENGTH).min(usize::from(u16::MAX)) as u16,
            around: (ETHERNET as usize + ip + Udp::LENGTH) as u32,
        }
    }
    /// Returns the bytes of credit that a data packet takes beside its payload.
    pub(super) fn credit_header(&self) -> u32 {
        self.around + (self.header + self.tag) as u32
    }
}

fn settings(config: &Config, peer: &Peer) -> (EqdsConfig, Bytes) {
    let tunnel = &config.tunnel;
    let sizes = Sizes::of(config, peer);
    let quantum = Bytes::new(u64::from(peer.mtu) + ETHERNET);
    let frame = quantum.get();
    let packets = (config.link_rate.amount_in(ROUND_TRIP).get() / frame).clamp(LEAST_PACKETS, MOST_PACKETS);
    let window = tunnel.window.unwrap_or(Bytes::new(packets * frame));
    let mut eqds = EqdsConfig {
        burst: if tunnel.first_window == Bytes::ZERO { Toggle::Off } else { Toggle::On },
        first_window: Setting::Value(tunnel.first_window),
        window: Setting::Value(window),
        reorder: Setting::Value(512),
        pull_rate: Setting::Value(tunnel.pull_rate.unwrap_or(spared(config.link_rate))),
        pull_catch_up: tunnel.pull_catch_up,
        pull_quanta: tunnel.pull_quanta,
        rto: Setting::Value(tunnel.rto),
        loss: LossConfig {
            timeout: Source::Measured,
            rto_floor: tunnel.rto_floor,
            rto_ceiling: Duration::from_ms(1_000),
            path_margin: Setting::Value(tunnel.path_margin),
            gap_wait: Setting::Value(tunnel.gap_wait),
        },
        busy_ceiling: Setting::Value(Duration::from_ms(20)),
        life: LifeConfig {
            idle_timeout: Setting::Value(tunnel.idle_timeout),
            unreachable_after: Setting::Value(tunnel.unreachable_after),
            ..LifeConfig::default()
        },
        ack_after: Bytes::new(16 * frame),
        paths: config.path_ports.len() as u32,
        header: Setting::Value(Bytes::new(sizes.credit_header().into())),
        messages: Messages::Queue,
        ..EqdsConfig::default()
    };
    let fabric = Fabric::of_path(config.link_rate, ROUND_TRIP, 2, quantum);
    eqds.resolve(&fabric, quantum, false, false);
    // Holes are filled by retransmissions for as long as the peer answers; parts of a packet are of no use without it.
    eqds.reorder_timeout = Setting::Off;
    (eqds, quantum)
}

/// Checks the parameters of the tunnels between this host and a peer.
///
/// # Errors
/// If a setting is out of range; the error names the key.
pub(crate) fn check(config: &Config, peer: &Peer) -> Result<(), SettingError> {
    let (eqds, quantum) = settings(config, peer);
    eqds.check(quantum)
}

/// Returns the parameters of all tunnels between this host and a peer, but for their service. Both hosts compute equal
/// windows and quanta if their settings of the peer's MTU and of windows are equal.
pub(super) fn of(config: &Config, peer: &Peer) -> EqdsParams {
    let (eqds, quantum) = settings(config, peer);
    let params = eqds.params(quantum, Bytes::new(GAP)).expect("the configuration was checked when it was read");
    EqdsParams { numbers: Numbers::new(32, LOW_BITS), reorder: REORDER, ..params }
}

/// Returns `params` for a tunnel of this service.
pub(super) fn serving(params: &EqdsParams, service: Service) -> EqdsParams {
    let (ordered, reliable) = (service == Service::Ordered, service != Service::Unreliable);
    EqdsParams { ordered, reliable, ..*params }
}

/// Bounds of the queue of one peer and EQIF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Bytes beyond which packets are dropped.
    pub(super) queue: u64,
    /// Bytes beyond which packets that know ECN are marked.
    pub(super) mark_above: u64,
}

impl Limits {
    pub(super) fn of(config: &Config, params: &EqdsParams, eqif: Eqif) -> Self {
        let (own, all) = (eqif.settings(&config.eqif), &config.tunnel);
        let queue = own.queue.or(all.queue).map_or((6 * u64::from(params.window)).max(256_000), Bytes::get);
        let mark_above = own.mark_above.or(all.mark_above.filter(|_| own.queue.is_none()));
        // RDMA is slowed down by marks and never dropped (section 6): the device is no longer read before memory ends.
        let most = if eqif == Eqif::Rdma { u64::MAX } else { queue };
        Self { queue: most, mark_above: mark_above.map_or(queue / 2, Bytes::get) }
    }
}

/// Returns the rate that is granted on a link of `rate`: some is left for control packets and for other traffic.
fn spared(rate: Rate) -> Rate {
    Rate::from_bps(rate.as_bps() / 100 * 97)
}
