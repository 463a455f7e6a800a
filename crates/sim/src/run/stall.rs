//! Stall limits: how long a run may go without progress before it counts as stalled. The limit is longer than anything
//! that the run may be waiting for, so that only a run that would never end is cut short.

use std::ops::RangeInclusive;

use selvedge_transport::endpoint::EndpointSettings;
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::eqds::MOST_DOUBLINGS;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{Scheme, Tuning};
use selvedge_units::{Bytes, Duration, Instant, Rate, Setting};

use crate::config::{BufferConfig, SimConfig, TransportConfig};
use crate::fault::LossModel;

/// Smallest interval between checks.
const LOOK: Duration = Duration::from_ms(1);
/// Smallest stall timeout: on usual fabrics far longer than any timeout of RDMA.
const STALL: Duration = Duration::from_ms(200);
/// Smallest and largest number of round trips and timeouts that may pass in a row, because retransmissions may be lost
/// as well.
const IN_A_ROW: RangeInclusive<u64> = 8..=200;
/// Number of packets lost in a row by a link that count as a burst, during which a run is not stalled: fewer than the
/// number of failed attempts that is allowed for anyway.
pub(crate) const BURST: u64 = *IN_A_ROW.start() / 2;
/// Probability that counts as negligible: that more attempts in a row fail than are allowed for.
const UNLIKELY: f64 = 1e-12;

/// Limits beyond which a run counts as stalled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StallLimits {
    /// Time between two checks. A packet that is on a link at one check has arrived at the next but one.
    pub(crate) look: Duration,
    /// Time after which a run ends in which no receiver has accepted anything although flows are open and none is about
    /// to begin. The time that TCP may take is added.
    pub(crate) timeout: Duration,
    /// Time within which a sender that loses packets sends the next one.
    pub(crate) silence: Duration,
    tcp: Option<TcpWaits>,
}

/// Durations of TCP's timeouts, which double.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TcpWaits {
    /// Longest first timeout at the beginning of a connection.
    first: Duration,
    longest: Duration,
    /// Number of timeouts that may pass in a row.
    in_a_row: u64,
}

impl StallLimits {
    /// Returns the limits for a run of `config`.
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
        let schedule = transports().map(|transport| slowest_pace(transport, frame, round)).max().unwrap_or_default();
        let in_a_row = in_a_row(config, hops, frame);
        let wait = round.saturating_add(timeout).saturating_add(schedule);
        let waits = [
            wait.saturating_mul(in_a_row),
            // The packets in front may be duplicates that receivers have already.
            slowest.time_for(largest_buffer(&config.switch.buffer, frame)),
        ];
        let stall = waits.into_iter().fold(Duration::ZERO, Duration::saturating_add).max(STALL);
        let in_a_row = 2.max(in_a_row - IN_A_ROW.start());
        let tcp = match (config.transport.tcp(), &config.beside) {
            (Some(tcp), beside) => {
                let longest = beside.as_ref().map_or(tcp.max_rto, |beside| tcp.max_rto.max(beside.tcp.max_rto));
                Some(TcpWaits { first: longest, longest, in_a_row })
            }
            (None, Some(beside)) => Some(TcpWaits::beside_rdma(&beside.tcp, in_a_row)),
            (None, None) => None,
        };
        let longest = tcp.map_or(Duration::ZERO, |tcp| tcp.longest);
        let silence = wait.max(longest).max(LOOK).saturating_mul(2);
        Self { look: crossing.saturating_mul(2).max(LOOK), timeout: stall, silence, tcp }
    }

    /// Returns the time at which a run ends in which nothing has been accepted since `since`.
    pub(crate) fn end(&self, since: Instant) -> Instant {
        let tcp = self.tcp.map_or(Duration::ZERO, |tcp| tcp.after(since));
        since.saturating_add(self.timeout.saturating_add(tcp))
    }
}

impl TcpWaits {
    /// Returns TCP's waits in a run with RDMA traffic, which retransmits all the time meanwhile: no longer than needed.
    /// TCP alone is silent while it waits, so that waiting costs nothing.
    fn beside_rdma(tcp: &TcpConfig, in_a_row: u64) -> Self {
        let set = |setting: Setting<Duration>| setting.resolve(|| None).unwrap_or_default();
        // After a second SYN, three times the first (RFC 6298, section 5, rule 5.7).
        let first = set(tcp.initial_rto).saturating_mul(3).max(set(tcp.min_rto));
        Self { first, longest: tcp.max_rto, in_a_row }
    }
    /// Returns how long TCP's timeouts take from `since` on. A timeout begins at five round trips at most (SRTT and
    /// four RTTVAR), none of which is longer than the run, and has passed whenever it doubles: it cannot be long early
    /// in a run.
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

/// Returns how many times in a row a packet may be lost, where links lose packets.
fn in_a_row(config: &SimConfig, hops: u32, frame: Bytes) -> u64 {
    let links = config.paths.graph().links.iter().map(|link| link.loss.as_f64()).fold(0.0, f64::max);
    let models = || config.loss.iter().map(|rule| &rule.model);
    let rates = models().map(|model| (model.usual(frame), model.again(frame))).chain([(links, links)]);
    // Each link of the path has its own count, and so has each link of the path back.
    let listed = models().map(LossModel::listed).max().unwrap_or(0).saturating_mul(2 * u64::from(hops));
    IN_A_ROW.start().saturating_add(listed).max(unlucky(rates, hops)).min(*IN_A_ROW.end())
}

/// Returns the number of losses in a row, of a packet or its answer, after which another loss is unlikely. Each of the
/// processes on a link loses packets with the first of its probabilities, and with the second where it has lost the
/// packet before.
///
/// Bursts of losses count packets, not time: a packet that is sent again and again, alone, meets the rest of the burst.
fn unlucky(rates: impl Iterator<Item = (f64, f64)>, hops: u32) -> u64 {
    // Processes that lose everything for ever are not waited for.
    let (passes, worst) = rates
        .filter(|(_, again)| *again < 1.0)
        .fold((1.0, 0.0), |(passes, worst), (usual, again)| (passes * (1.0 - usual), f64::max(worst, again)));
    // The path there and back, one link of which has lost the packet before.
    let arrives = (1.0 - worst) * libm::pow(passes, f64::from((2 * hops).max(1) - 1));
    libm::ceil(libm::log(UNLIKELY) / libm::log(1.0 - arrives)) as u64
}

/// Returns the longest timeout of RDMA's loss recovery, EQDS or a transport of messages; every "auto" is resolved.
fn longest_timeout(transport: &TransportConfig) -> Duration {
    let recovery = transport.recovery().map(Scheme::longest_timeout).unwrap_or_default();
    let of_tunnels = |eqds: &EqdsConfig| eqds.rto.resolve(|| None).map(|rto| rto.saturating_mul(1 << MOST_DOUBLINGS));
    let eqds = transport.tunnels().and_then(of_tunnels).unwrap_or_default();
    let messages = transport.messages().map(EndpointSettings::longest_timeout).unwrap_or_default();
    recovery.max(eqds).max(messages)
}

/// Returns the longest time from one packet of a flow to the next that congestion control or the receiver's pacing may
/// ask for.
fn slowest_pace(transport: &TransportConfig, frame: Bytes, round: Duration) -> Duration {
    let at = |rate: Setting<Rate>| match rate.resolve(|| None) {
        Some(rate) if rate > Rate::ZERO => rate.time_for(frame),
        _ => Duration::ZERO,
    };
    let congestion = transport.congestion().map(|own| own.slowest_pace(frame, round)).unwrap_or_default();
    let eqds = transport.tunnels().map_or(Duration::ZERO, |eqds| at(eqds.pull_rate));
    let messages = transport.messages().map(EndpointSettings::slowest_pace).unwrap_or_default();
    congestion.max(eqds).max(messages)
}

/// Returns the largest number of bytes that may wait before a packet in one switch, where that is limited.
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

    /// Checks that the limit allows for TCP's doubling timeouts, but not for longer: in a run with RDMA, which
    /// retransmits all the time, each second of waiting is millions of events.
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
        // One loss in a hundred, on twelve links: 0.114 to the 13th is 5e-13.
        assert_eq!(unlucky(&[(0.01, 0.01)], 6), 13);
        // Bursts of four, with no other losses: three quarters to the 97th is 8e-13.
        assert_eq!(unlucky(&[(0.0, 0.75)], 6), 97);
        // Losses of several processes add up; none of them is certain.
        assert!(unlucky(&[(0.6, 0.6), (0.6, 0.6)], 1) > unlucky(&[(0.6, 0.6)], 1));
        assert_eq!(unlucky(&[(1.0, 1.0), (0.01, 0.01)], 6), 13);
    }
}
