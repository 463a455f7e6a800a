//! Meaning of descriptors, and of requests over the Unix socket.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Most bytes of a message.
pub const LONGEST_MESSAGE: usize = 1 << 20;

/// First word of a program's first request.
pub(crate) const HELLO: u64 = u64::from_be_bytes(*b"SVEQDS\x00\x01");
/// Requests after the first.
pub(crate) const BIND: u64 = 1;
pub(crate) const CONNECT: u64 = 2;
pub(crate) const REACH: u64 = 3;
pub(crate) const PREFIXES: u64 = 4;
/// Words of a request: kind, number, arguments.
pub(crate) const REQUEST: usize = 8;
/// Most words of an answer: status, number, results.
pub(crate) const ANSWER: usize = 1_024;

/// Fate of a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All of it is at the destination's host. A refusal may follow.
    Arrived,
    /// The message was sent by an unreliable tunnel, which does not tell more.
    Sent,
    /// The destination's host has no program with that port.
    NoListener,
    /// The destination's program has too much unread.
    Full,
    /// The destination's host does not answer.
    Unreachable,
    /// The message may not have arrived: one of the hosts has changed its settings or started anew, or the path takes
    /// only shorter packets than before.
    Lost,
    /// The destination's host knows no native messages.
    Unsupported,
    /// No peer of this host serves the destination.
    NoRoute,
    /// The source is no address of this host.
    WrongSource,
}

impl Outcome {
    const ALL: [Self; 9] = [
        Self::Arrived,
        Self::Sent,
        Self::NoListener,
        Self::Full,
        Self::Unreachable,
        Self::Lost,
        Self::Unsupported,
        Self::NoRoute,
        Self::WrongSource,
    ];

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
    /// Returns whether the message went well as far as is known.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Arrived | Self::Sent)
    }
}

/// Notice about a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Number that the sender chose.
    pub tag: u32,
    /// Fate of the message.
    pub outcome: Outcome,
    /// Round-trip time of the message's last packet in nanoseconds; `None` if it was sent twice, or is not known to
    /// have arrived.
    pub round_trip_ns: Option<u64>,
}

impl Notice {
    pub(crate) fn facts(&self) -> [u64; 6] {
        let head = u64::from(self.outcome as u8) | u64::from(self.tag) << 32;
        [head, self.round_trip_ns.map_or(0, |ns| ns.max(1)), 0, 0, 0, 0]
    }
    pub(crate) fn of(facts: [u64; 6]) -> Option<Self> {
        let outcome = Outcome::from_code(facts[0] as u8)?;
        Some(Self { tag: (facts[0] >> 32) as u32, outcome, round_trip_ns: (facts[1] > 0).then_some(facts[1]) })
    }
}

/// Addresses of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Envelope {
    /// The other host's address inside, and its program's port.
    pub(crate) remote: SocketAddr,
    /// This host's address inside; unspecified: any. Its port is 0 where that of the socket is meant.
    pub(crate) local: SocketAddr,
    pub(crate) tag: u32,
    pub(crate) wants_notice: bool,
}

impl Envelope {
    pub(crate) fn facts(&self) -> [u64; 6] {
        let [r1, r0] = words(self.remote.ip());
        let [l1, l0] = words(self.local.ip());
        let ports = u64::from(self.remote.port()) | u64::from(self.local.port()) << 16;
        [u64::from(self.wants_notice) | u64::from(self.tag) << 32, r1, r0, ports, l1, l0]
    }
    pub(crate) fn of([head, r1, r0, ports, l1, l0]: [u64; 6]) -> Self {
        Self {
            remote: SocketAddr::new(address([r1, r0]), ports as u16),
            local: SocketAddr::new(address([l1, l0]), (ports >> 16) as u16),
            tag: (head >> 32) as u32,
            wants_notice: head & 1 == 1,
        }
    }
}

/// Returns an address as two words.
pub(crate) fn words(address: IpAddr) -> [u64; 2] {
    let address = match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv6Addr::UNSPECIFIED,
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let bits = u128::from(address);
    [(bits >> 64) as u64, bits as u64]
}

/// Returns the address of two words; the unspecified one is that of IPv6.
pub(crate) fn address([high, low]: [u64; 2]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low))).to_canonical()
}

/// A prefix inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// First address.
    pub address: IpAddr,
    /// Bits that all addresses share.
    pub length: u8,
    /// Whether this host serves the prefix; else a peer does.
    pub is_own: bool,
}

impl Prefix {
    /// Returns whether an address lies in the prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (width, own, other) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (32, u128::from(u32::from(own)), u128::from(u32::from(other))),
            (IpAddr::V6(own), IpAddr::V6(other)) => (128, u128::from(own), u128::from(other)),
            _ => return false,
        };
        (own ^ other).checked_shr(width - u32::from(self.length).min(width)).unwrap_or(0) == 0
    }

    pub(crate) fn facts(&self) -> [u64; 3] {
        let [high, low] = words(self.address);
        let (is_v6, is_own) = (u64::from(self.address.is_ipv6()), u64::from(self.is_own));
        [high, low, u64::from(self.length) | is_v6 << 8 | is_own << 9]
    }
    pub(crate) fn of([high, low, facts]: [u64; 3]) -> Self {
        let address = match address([high, low]) {
            IpAddr::V6(address) if facts & 1 << 8 == 0 => {
                // The unspecified address has no version of its own.
                IpAddr::V4(std::net::Ipv4Addr::from(u128::from(address) as u32))
            }
            address => address,
        };
        Self { address, length: facts as u8, is_own: facts & 1 << 9 > 0 }
    }
}

/// Information about the way to another host (EQDS, section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    /// Bytes of messages that wait to be sent to the host, of all programs: the TX buffer.
    pub waiting: u64,
    /// Bytes in flight, headers included.
    pub in_flight: u64,
    /// Bytes of credit held.
    pub credit: u64,
    /// Bytes of credit that are asked for and not yet granted: this host's part of the destination's pull queue.
    pub pull_queue: u64,
    /// Time in nanoseconds for which the destination's link is busy with other senders, as far as it has said.
    pub busy_ns: u64,
    /// Retransmission timeout in nanoseconds.
    pub rto_ns: u64,
    /// Round trips measured.
    pub round_trips: u64,
    /// Newest, smallest and smoothed round-trip time in nanoseconds; 0 before the first.
    pub latest_ns: u64,
    /// See `latest_ns`.
    pub least_ns: u64,
    /// See `latest_ns`.
    pub smoothed_ns: u64,
}

impl Reach {
    /// Returns all fields in their order, as C's structure has them.
    pub fn words(&self) -> [u64; 10] {
        let Self { waiting, in_flight, credit, pull_queue, busy_ns, rto_ns, round_trips, .. } = *self;
        let (latest, least, smoothed) = (self.latest_ns, self.least_ns, self.smoothed_ns);
        [waiting, in_flight, credit, pull_queue, busy_ns, rto_ns, round_trips, latest, least, smoothed]
    }
    pub(crate) fn of(words: [u64; 10]) -> Self {
        let [waiting, in_flight, credit, pull_queue, busy_ns, rto_ns, round_trips, latest_ns, least_ns, smoothed_ns] =
            words;
        Self { waiting, in_flight, credit, pull_queue, busy_ns, rto_ns, round_trips, latest_ns, least_ns, smoothed_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_notices_and_prefixes_survive_the_way() {
        for (remote, local) in [("10.80.1.1:5201", "10.80.2.1:9"), ("[fd00::1]:1", "[fd00::2]:65535")] {
            let envelope = Envelope {
                remote: remote.parse().unwrap(),
                local: local.parse().unwrap(),
                tag: u32::MAX,
                wants_notice: true,
            };
            assert_eq!(Envelope::of(envelope.facts()), envelope);
        }
        for (at, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, at);
            let notice = Notice { tag: 7, outcome, round_trip_ns: Some(70_000) };
            assert_eq!(Notice::of(notice.facts()), Some(notice));
        }
        assert_eq!(Notice::of([200, 0, 0, 0, 0, 0]), None);
        for (address, length) in [("10.80.2.0", 24), ("0.0.0.0", 1), ("fd00::", 64), ("::", 3)] {
            let prefix = Prefix { address: address.parse().unwrap(), length, is_own: length == 24 };
            assert_eq!(Prefix::of(prefix.facts()), prefix);
        }
        let prefix = Prefix { address: "10.80.2.0".parse().unwrap(), length: 24, is_own: false };
        let within = |text: &str| prefix.contains(text.parse().unwrap());
        assert!(within("10.80.2.255") && !within("10.80.3.0") && !within("fd00::1"));
        assert!(Prefix { length: 0, ..prefix }.contains("192.0.2.1".parse().unwrap()));
    }
}
