//! How long a run may go without news before it counts as standing still: longer than anything that it may be waiting
//! for, so that only a run that would never end is cut short.

use std::ops::RangeInclusive;

use selvedge_transport::eqds::MOST_DOUBLINGS;
use selvedge_transport::recovery::irn::Rto;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{CongestionConfig, RecoveryConfig};
use selvedge_units::{Bytes, Duration, Instant, Rate, Setting};

use crate::config::{BufferConfig, SimConfig, TransportConfig};
use crate::fault::LossModel;

/// How often to look, at the least.
const LOOK: Duration = Duration::from_ms(1);
/// On usual fabrics far longer than any timeout of RDMA.
const STALL: Duration = Duration::from_ms(200);
/// Round trips and timeouts that may pass in a row, because what is sent again may be lost as well: at least, and at
/// most.
const IN_A_ROW: RangeInclusive<u64> = 8..=200;
/// As many packets that a link loses in a row are a burst, during which a run does not count as standing still: fewer
/// than may be sent in vain anyway.
pub(crate) const BURST: u64 = *IN_A_ROW.start() / 2;
/// How unlikely it shall be that more of them pass.
const UNLIKELY: f64 = 1e-12;

/// When a run counts as standing still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StallLimits {
    /// The time between two looks. What is on its way over a link has arrived at the next but one.
    pub(crate) look: Duration,
    /// A run ends when no receiver has accepted anything for this long, and for what TCP takes, although flows are open
    /// and none is about to begin.
    pub(crate) timeout: Duration,
    /// A sender that loses packets sends the next one within this time.
    pub(crate) silence: Duration,
    tcp: Option<TcpWaits>,
}

/// How long TCP's timeouts may become, which double.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TcpWaits {
    /// The first may be so long at the beginning.
    first: Duration,
    longest: Duration,
    /// So many of them may pass in a row.
    in_a_row: u64,
}

impl StallLimits {
    /// What a run of `config` asks for.
    pub(crate) fn of(config: &SimConfig) -> Self {
        let frame = config.largest_frame() + config.nic.gap;
        let links = &config.paths.graph().links;
        let crossing = links.iter().map(|link| link.delay.saturating_add(link.rate.time_for(frame))).max();
        let crossing = crossing.unwrap_or_default();
        let slowest = links.iter().map(|link| link.rate).min().unwrap_or(Rate::MAX);
        let hops = config.paths.longest().map_or(0, |path| path.links);
        let round = crossing.saturating_mul(2 * u64::from(hops));
        let of_hosts = || config.transports.iter().map(|(_, transport)| transport).chain([&config.transport]);
        let transports = || of_hosts().chain(&config.path_transports.distinct);
        let timeout = transports().map(longest_timeout).max().unwrap_or_default();
        let pace = transports().map(|transport| slowest_pace(transport, frame, round)).max().unwrap_or_default();
        let in_a_row = in_a_row(config, hops, frame);
        let wait = round.saturating_add(timeout).saturating_add(pace);
        let waits = [
            wait.saturating_mul(in_a_row),
            // What is in front may be what everybody has already.
            slowest.time_for(largest_buffer(&config.switch.buffer, frame)),
        ];
        let stall = waits.into_iter().fold(Duration::ZERO, Duration::saturating_add).max(STALL);
        let in_a_row = 2.max(in_a_row - IN_A_ROW.start());
        let tcp = match (&config.transport.tcp, &config.beside) {
            (Some(tcp), _) => Some(TcpWaits { first: tcp.max_rto, longest: tcp.max_rto, in_a_row }),
            (None, Some(beside)) => Some(TcpWaits::beside_rdma(&beside.tcp, in_a_row)),
            (None, None) => None,
        };
        let longest = tcp.map_or(Duration::ZERO, |tcp| tcp.longest);
        let silence = wait.max(longest).max(LOOK).saturating_mul(2);
        Self { look: crossing.saturating_mul(2).max(LOOK), timeout: stall, silence, tcp }
    }

    /// When a run ends in which nothing has been accepted since then.
    pub(crate) fn end(&self, since: Instant) -> Instant {
        let tcp = self.tcp.map_or(Duration::ZERO, |tcp| tcp.after(since));
        since.saturating_add(self.timeout.saturating_add(tcp))
    }
}

impl TcpWaits {
    /// RDMA sends again all the time meanwhile, in vain: no longer than needed. TCP alone is silent for as long as it
    /// waits, and that costs nothing.
    fn beside_rdma(tcp: &TcpConfig, in_a_row: u64) -> Self {
        let set = |setting: Setting<Duration>| setting.resolve(|| None).unwrap_or_default();
        // After a second SYN, three times the first (RFC 6298, section 5, rule 5.7).
        let first = set(tcp.initial_rto).saturating_mul(3).max(set(tcp.min_rto));
        Self { first, longest: tcp.max_rto, in_a_row }
    }
    /// How long it takes them from `since` on. A timeout begins at five round trips at most (SRTT and four RTTVAR),
    /// none of which is longer than the run, and has passed whenever it doubles: it cannot be long early in a run.
    fn after(&self, since: Instant) -> Duration {
        let mut next = self.first.max(since.since(Instant::ZERO).saturating_mul(6)).min(self.longest);
        let mut sum = Duration::ZERO;
        for _ in 0..self.in_a_row {
            sum = sum.saturating_add(next);
            next = next.saturating_mul(2).min(self.longest);
        }
        sum
    }
}

/// How often in a row a packet may be sent in vain, where links lose packets.
fn in_a_row(config: &SimConfig, hops: u32, frame: Bytes) -> u64 {
    let links = config.paths.graph().links.iter().map(|link| link.loss.as_f64()).fold(0.0, f64::max);
    let models = || config.loss.iter().map(|rule| &rule.model);
    let rates = models().map(|model| (model.usual(frame), model.again(frame))).chain([(links, links)]);
    // Each link on the way has its own count, and each on the way back.
    let listed = models().map(LossModel::listed).max().unwrap_or(0).saturating_mul(2 * u64::from(hops));
    IN_A_ROW.start().saturating_add(listed).max(unlucky(rates, hops)).min(*IN_A_ROW.end())
}

/// After how many packets in a row that are lost on their way, or back, it is unlikely that the next one is, too. Each
/// of the processes on a link loses packets with the first of these chances, and with the second where it has lost the
/// one before.
///
/// Losses that come in bursts count packets, not time: a packet that is sent again and again, alone, meets the rest of
/// the burst.
fn unlucky(rates: impl Iterator<Item = (f64, f64)>, hops: u32) -> u64 {
    // What loses everything, and for ever, is not waited for.
    let (passes, worst) = rates
        .filter(|(_, again)| *again < 1.0)
        .fold((1.0, 0.0), |(passes, worst), (usual, again)| (passes * (1.0 - usual), f64::max(worst, again)));
    // There and back, and one of these links has lost what came before.
    let arrives = (1.0 - worst) * libm::pow(passes, f64::from((2 * hops).max(1) - 1));
    libm::ceil(libm::log(UNLIKELY) / libm::log(1.0 - arrives)) as u64
}

/// The longest timeout of RDMA's loss recovery, EQDS or NDP; every "auto" is resolved.
fn longest_timeout(transport: &TransportConfig) -> Duration {
    let set = |setting: Setting<Duration>| setting.resolve(|| None).unwrap_or_default();
    let recovery = match &transport.recovery {
        _ if !transport.is_rdma() => Duration::ZERO,
        RecoveryConfig::GoBackN(config) => set(config.rto).max(set(config.rto_low)),
        RecoveryConfig::Melo(config) => set(config.rto),
        RecoveryConfig::Irn(config) => {
            let dynamic = match config.rto {
                Rto::Static => Duration::ZERO,
                Rto::Dynamic(dynamic) => dynamic.max.max(set(dynamic.initial)),
            };
            set(config.rto_high).max(set(config.rto_low)).max(dynamic).saturating_add(config.retransmit_delay)
        }
    };
    let eqds = transport.eqds.map_or(Duration::ZERO, |eqds| set(eqds.rto).saturating_mul(1 << MOST_DOUBLINGS));
    let ndp = transport.ndp.map_or(Duration::ZERO, |ndp| set(ndp.rto));
    recovery.max(eqds).max(ndp)
}

/// The longest time from one packet of a flow to the next that congestion control or its receiver's pace may ask for.
fn slowest_pace(transport: &TransportConfig, frame: Bytes, round: Duration) -> Duration {
    let at = |rate: Setting<Rate>| match rate.resolve(|| None) {
        Some(rate) if rate > Rate::ZERO => rate.time_for(frame),
        _ => Duration::ZERO,
    };
    let congestion = match &transport.congestion {
        _ if !transport.is_rdma() => Duration::ZERO,
        CongestionConfig::Dcqcn(config) => at(config.min_rate),
        CongestionConfig::Timely(config) => at(config.min_rate),
        CongestionConfig::Hpcc(config) => at(Setting::Value(config.min_rate)),
        CongestionConfig::Fixed(config) => at(config.rate),
        CongestionConfig::Swift(config) => {
            Duration::from_ps((round.as_ps() as f64 / config.min_cwnd.max(f64::MIN_POSITIVE)) as u64)
        }
        CongestionConfig::None(_) | CongestionConfig::Aimd(_) | CongestionConfig::Dctcp(_) => Duration::ZERO,
    };
    let eqds = transport.eqds.map_or(Duration::ZERO, |eqds| at(eqds.pull_rate));
    let ndp = transport.ndp.and_then(|ndp| ndp.pull_interval.resolve(|| None)).unwrap_or_default();
    congestion.max(eqds).max(ndp)
}

/// The most that may wait before one packet in one switch, where that is limited.
fn largest_buffer(buffer: &BufferConfig, frame: Bytes) -> Bytes {
    match buffer {
        BufferConfig::InputQueued(config) => config.per_port.resolve(|| None).unwrap_or_default(),
        BufferConfig::SharedBuffer(config) => config.total,
        BufferConfig::FairQueued(config) => config.per_port.resolve(|| None).unwrap_or_default(),
        BufferConfig::Trimming(config) => config.data_room(frame) + config.header_room(frame).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside RDMA, which sends again all the time, each second of them is millions of events.
    #[test]
    fn timeouts_that_double_are_waited_for_as_long_as_they_can_be() {
        let [ms, s] = [Duration::from_ms, |s| Duration::from_ms(1_000 * s)];
        let waits = |first, in_a_row| TcpWaits { first, longest: s(60), in_a_row };
        let at = |time: Duration| Instant::ZERO + time;
        assert_eq!(waits(ms(1), 2).after(at(Duration::ZERO)), ms(3));
        assert_eq!(waits(ms(1), 2).after(at(ms(20))), ms(120 + 240));
        assert_eq!(waits(ms(1), 2).after(at(s(100))), s(120), "RFC 6298's 60 s, twice");
        assert_eq!(waits(s(9), 4).after(at(Duration::ZERO)), s(9 + 18 + 36 + 60));
    }

    #[test]
    fn bursts_are_waited_for_and_what_never_ends_is_not() {
        let unlucky = |rates: &[(f64, f64)], hops| unlucky(rates.iter().copied(), hops);
        assert_eq!(unlucky(&[(0.0, 0.0)], 6), 0);
        // One in a hundred, on twelve links: 0.114 to the 13th is 5e-13.
        assert_eq!(unlucky(&[(0.01, 0.01)], 6), 13);
        // Bursts of four, with nothing else: three quarters to the 97th is 8e-13.
        assert_eq!(unlucky(&[(0.0, 0.75)], 6), 97);
        // Losses of several processes meet; none of them is certain.
        assert!(unlucky(&[(0.6, 0.6), (0.6, 0.6)], 1) > unlucky(&[(0.6, 0.6)], 1));
        assert_eq!(unlucky(&[(1.0, 1.0), (0.01, 0.01)], 6), 13);
    }
}
