//! The way of a datagram from a socket to a tunnel. No state is made or changed for a packet before its MAC holds.
//!
//! Order of the checks, each with a counter: form, key id, key epoch, MAC, replay, freshness, encryption.

use core::net::IpAddr;

use ring::rand::{SecureRandom, SystemRandom};
use selvedge_wire::ParseError;
use selvedge_wire::eqds::v1::{Body, Flags, LONGEST, Options, Packet, Reset, ResetReason};
use siphasher::sip::SipHasher24;

use crate::auth::TAG;
use crate::keys::{Direction, EpochKeys};
use crate::limit::Buckets;
use crate::replay::Replay;

/// Reason why a datagram goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The bytes are no packet of this version.
    Malformed(ParseError),
    /// No peer has this key id.
    Stranger,
    /// The source has named too many key epochs whose MAC did not hold.
    Limited,
    /// The MAC does not hold.
    Forged,
    /// The packet number was accepted before, or is too old to tell.
    Replayed,
    /// The key epoch is over, or may be; the peer should be told so, if there is an answer: too many are not sent.
    Stale {
        /// Index of the peer.
        peer: usize,
        /// Sequence number for that reset.
        seq: u32,
        /// Content of the reset that should answer, see [`Notice::reset`].
        answer: Option<Notice>,
        /// Notice of the peer, which is safe to obey although the packet may be a replay.
        notice: Option<Notice>,
    },
    /// The payload should be encrypted and is not.
    Unsealed,
}

/// Content of a reset that concerns the key epoch rather than a tunnel. The tunnels to the peer then begin anew, with
/// SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The peer accepts only epochs greater than this one: [`crate::Outbound::exceed`]. Obeying an old notice does
    /// nothing.
    Exceed(u32),
    /// The peer wants its challenge answered: [`crate::Outbound::answer`]. Obeying an old notice makes the peer ask
    /// again.
    Answer(u64),
}

impl Notice {
    /// Returns the notice of a packet, if it is one.
    pub fn of(packet: &Packet) -> Option<Self> {
        let Body::Reset(reset) = packet.body else { return None };
        match reset.reason {
            ResetReason::OldEpoch => packet.options.floor.map(Self::Exceed),
            ResetReason::Challenge => packet.options.challenge.map(Self::Answer),
            _ => None,
        }
    }

    /// Returns the body and the options of a reset with this notice, about the packet with sequence number `seq`.
    pub fn reset(self, seq: u32) -> (Body, Options) {
        let (reason, options) = match self {
            Self::Exceed(floor) => (ResetReason::OldEpoch, Options { floor: Some(floor), ..Options::NONE }),
            Self::Answer(challenge) => {
                (ResetReason::Challenge, Options { challenge: Some(challenge), ..Options::NONE })
            }
        };
        (Body::Reset(Reset { seq, reason }), options)
    }
}

/// A packet that comes from the peer that it names, for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted<'a> {
    /// Index of the peer.
    pub peer: usize,
    /// The header.
    pub packet: Packet,
    /// The payload, decrypted; `None` if a switch has trimmed the packet, or the payload was damaged.
    pub payload: Option<&'a [u8]>,
    /// Bytes of the payload as it was given to the sender's daemon, without tag.
    pub sent_payload: usize,
    /// Whether this is the first packet of a key epoch, whose number is to be stored as the peer's floor.
    pub new_epoch: bool,
}

/// Packets that were accepted and refused, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets accepted, trimmed ones included.
    pub accepted: u64,
    /// Packets accepted whose payload a switch had cut off.
    pub trimmed: u64,
    /// Packets accepted whose encrypted payload was damaged.
    pub damaged: u64,
    /// Datagrams of another version.
    pub other_version: u64,
    /// Datagrams of an unknown type.
    pub unknown_type: u64,
    /// Datagrams malformed in any other way.
    pub malformed: u64,
    /// Packets with an unknown key id.
    pub strangers: u64,
    /// Packets with a strange key epoch that were not looked at, because of others like them.
    pub limited: u64,
    /// Packets whose MAC did not hold.
    pub forged: u64,
    /// Packets that were repeated.
    pub replayed: u64,
    /// Packets under a key epoch that is over, or may be.
    pub stale: u64,
    /// Packets whose payload should have been encrypted.
    pub unsealed: u64,
}

/// Smallest key epoch that is accepted of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Floor {
    /// Epochs up to this one are over: zero for a peer that was never heard of.
    Known(u32),
    /// The record was lost: a peer must answer a challenge first.
    Unknown,
}

/// Packets from one peer.
struct Inbound {
    direction: Direction,
    sealed: bool,
    floor: Floor,
    current: Option<(EpochKeys, Replay)>,
    /// The epoch before the current one, whose last packets may still be on the way.
    previous: Option<(EpochKeys, Replay)>,
}

/// Checker of datagrams.
pub struct Gate {
    peers: Vec<Inbound>,
    /// Key ids with the indices of their peers, in ascending order.
    by_id: Vec<(u32, usize)>,
    /// Attempts with strange key epochs, by source.
    attempts: Buckets,
    /// Resets, by source.
    resets: Buckets,
    /// Key of challenges, made at start.
    challenges: SipHasher24,
    counters: Counters,
}

impl Gate {
    /// Attempts per second and prefix with key epochs that are not in use.
    const ATTEMPTS: u32 = 20_000;
    /// Resets per second and prefix.
    const RESETS: u32 = 100;
    const PREFIXES: usize = 4_096;

    /// Creates a gate without peers, which draws its secrets from the system.
    pub fn new() -> Self {
        let mut secrets = [0; 48];
        SystemRandom::new().fill(&mut secrets).expect("the system has random numbers");
        let key = |at: usize| secrets[16 * at..][..16].try_into().expect("16 bytes");
        Self {
            peers: Vec::new(),
            by_id: Vec::new(),
            attempts: Buckets::new(Self::ATTEMPTS, Self::ATTEMPTS / 10, Self::PREFIXES, key(0)),
            resets: Buckets::new(Self::RESETS, Self::RESETS / 10, Self::PREFIXES, key(1)),
            challenges: SipHasher24::new_with_key(&key(2)),
            counters: Counters::default(),
        }
    }

    /// Adds a peer; returns its index. `sealed` refuses payloads that are not encrypted.
    pub fn add(&mut self, direction: Direction, sealed: bool, floor: Floor) -> usize {
        let (peer, id) = (self.peers.len(), direction.id);
        let at = self.by_id.partition_point(|(known, _)| *known <= id);
        self.by_id.insert(at, (id, peer));
        self.peers.push(Inbound { direction, sealed, floor, current: None, previous: None });
        peer
    }

    /// Removes a peer: its packets are those of a stranger from now on. The indices of the others stay.
    pub fn remove(&mut self, peer: usize) {
        self.by_id.retain(|(_, of)| *of != peer);
        if let Some(inbound) = self.peers.get_mut(peer) {
            (inbound.current, inbound.previous) = (None, None);
        }
    }

    /// Returns the key id of a peer's packets, and the smallest key epoch that is accepted of it.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn floor(&self, peer: usize) -> (u32, Floor) {
        let inbound = &self.peers[peer];
        let floor = inbound.current.as_ref().map_or(inbound.floor, |(keys, _)| Floor::Known(keys.epoch));
        (inbound.direction.id, floor)
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Checks a UDP payload that came from `source`; decrypts its content in place. `now` is in nanoseconds.
    ///
    /// # Errors
    /// Returns the reason why the datagram goes no further, which is counted.
    pub fn handle<'a>(&mut self, now: u64, source: IpAddr, bytes: &'a mut [u8]) -> Result<Accepted<'a>, Refused> {
        let accepted = self.check(now, source, bytes);
        self.count(&accepted);
        accepted
    }

    fn check<'a>(&mut self, now: u64, source: IpAddr, bytes: &'a mut [u8]) -> Result<Accepted<'a>, Refused> {
        let parsed = Packet::parse(bytes).map_err(Refused::Malformed)?;
        let (packet, mac, is_trimmed) = (parsed.packet, parsed.mac(), parsed.is_trimmed());
        let (header, sent) = (parsed.header().len(), parsed.sent_payload());
        let mut place = [0; LONGEST];
        let covered = parsed.covered(&mut place);
        let id = packet.common.key_id;
        let first = self.by_id.partition_point(|(known, _)| *known < id);
        let mut refused = Refused::Stranger;
        for at in first.. {
            // Peers whose ids are equal by chance are tried in turn.
            let Some((_, peer)) = self.by_id.get(at).copied().filter(|(known, _)| *known == id) else { break };
            match self.admit(now, source, peer, &packet, covered, mac) {
                Ok(new_epoch) => return self.open(peer, packet, new_epoch, is_trimmed, (header, sent), bytes),
                Err(reason @ (Refused::Forged | Refused::Limited)) => refused = reason,
                Err(reason) => return Err(reason),
            }
        }
        Err(refused)
    }

    /// Checks key epoch, MAC and number of a packet; returns whether it begins a key epoch.
    fn admit(
        &mut self,
        now: u64,
        source: IpAddr,
        peer: usize,
        packet: &Packet,
        covered: &[u8],
        mac: [u8; 8],
    ) -> Result<bool, Refused> {
        let inbound = &mut self.peers[peer];
        let epoch = packet.common.key_epoch;
        for (keys, replay) in [&mut inbound.current, &mut inbound.previous].into_iter().flatten() {
            if keys.epoch == epoch {
                return match (keys.verify(covered, mac), packet.common.packet_number) {
                    (false, _) => Err(Refused::Forged),
                    (true, number) if replay.accept(number) => Ok(false),
                    (true, _) => Err(Refused::Replayed),
                };
            }
        }
        // Strange epochs cost a derivation of keys.
        if !self.attempts.take(now, source) {
            return Err(Refused::Limited);
        }
        let keys = inbound.direction.epoch(epoch);
        if !keys.verify(covered, mac) {
            return Err(Refused::Forged);
        }
        self.attempts.give_back(source);
        let floor = inbound.current.as_ref().map_or(inbound.floor, |(keys, _)| Floor::Known(keys.epoch));
        let challenge = self.challenges.hash(&packet.common.key_id.to_be_bytes());
        let has_answered = packet.options.answer == Some(challenge);
        let answer = match floor {
            // The current epoch is accepted: a sender that has begun it must not give it up for packets that it
            // overtook.
            Floor::Known(floor) if epoch <= floor => Notice::Exceed(floor - u32::from(inbound.current.is_some())),
            Floor::Unknown if !has_answered => Notice::Answer(challenge),
            _ => {
                let mut replay = Replay::new();
                replay.accept(packet.common.packet_number);
                inbound.previous = inbound.current.replace((keys, replay));
                return Ok(true);
            }
        };
        // Nothing answers a reset, so that two ends do not go on answering each other.
        let is_question = !matches!(packet.body, Body::Reset(_) | Body::Close(_));
        let answer = (is_question && self.resets.take(now, source)).then_some(answer);
        Err(Refused::Stale { peer, seq: packet.seq().unwrap_or(0), answer, notice: Notice::of(packet) })
    }

    /// Decrypts the payload of a packet that was admitted.
    fn open<'a>(
        &mut self,
        peer: usize,
        packet: Packet,
        new_epoch: bool,
        is_trimmed: bool,
        (header, sent): (usize, usize),
        bytes: &'a mut [u8],
    ) -> Result<Accepted<'a>, Refused> {
        let inbound = &self.peers[peer];
        let is_sealed = packet.common.flags.any(Flags::SEALED);
        if inbound.sealed && !is_sealed && sent > 0 {
            return Err(Refused::Unsealed);
        }
        let epochs = [&inbound.current, &inbound.previous].into_iter().flatten();
        let keys = epochs.map(|(keys, _)| keys).find(|keys| keys.epoch == packet.common.key_epoch);
        let (header, rest) = bytes.split_at_mut(header);
        let payload = match keys {
            _ if is_trimmed => None,
            Some(keys) if is_sealed => keys.open(packet.common.packet_number, header, rest).map(|open| &*open),
            _ => Some(&*rest),
        };
        let sent_payload = if is_sealed { sent.saturating_sub(TAG) } else { sent };
        self.counters.damaged += u64::from(payload.is_none() && !is_trimmed);
        self.counters.trimmed += u64::from(is_trimmed);
        Ok(Accepted { peer, packet, payload, sent_payload, new_epoch })
    }

    fn count(&mut self, accepted: &Result<Accepted<'_>, Refused>) {
        let counters = &mut self.counters;
        *match accepted {
            Ok(_) => &mut counters.accepted,
            Err(Refused::Malformed(ParseError::Version(_))) => &mut counters.other_version,
            Err(Refused::Malformed(ParseError::Type(_))) => &mut counters.unknown_type,
            Err(Refused::Malformed(_)) => &mut counters.malformed,
            Err(Refused::Stranger) => &mut counters.strangers,
            Err(Refused::Limited) => &mut counters.limited,
            Err(Refused::Forged) => &mut counters.forged,
            Err(Refused::Replayed) => &mut counters.replayed,
            Err(Refused::Stale { .. }) => &mut counters.stale,
            Err(Refused::Unsealed) => &mut counters.unsealed,
        } += 1;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
