//! Loss on links: state machines that decide which packets of a sequence are lost.
//!
//! Kinds of packets have processes of their own, so that the n-th data packet of a direction has the same fate however
//! many acknowledgements pass.

use std::sync::Arc;

use selvedge_telemetry::{DropReason, PacketKind};
use selvedge_units::{Chance, Channel, Instant, Rng, TwoStates};

/// Process that decides packet by packet. The n-th packet of a sequence has the same fate in every run with the same
/// seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LossProcess {
    /// Independent loss of each packet with one probability.
    Random {
        /// Probability that a packet is lost.
        rate: Chance,
        /// Random stream that decides.
        rng: Rng,
    },
    /// Loss of a two-state channel.
    TwoStates(Channel),
    /// Independent errors of each bit.
    BitErrors(BitErrorProcess),
    /// Loss of the packets with these numbers.
    Listed {
        /// Numbers of the lost packets, ascending, from 0.
        drops: Arc<[u64]>,
        /// Number of listed packets that have passed.
        passed: usize,
        /// Number of the next packet.
        packet: u64,
    },
}

impl LossProcess {
    /// Returns a process that loses each packet with probability `rate`.
    pub const fn random(rate: Chance, rng: Rng) -> Self {
        Self::Random { rate, rng }
    }
    /// Returns a two-state channel.
    pub fn two_states(states: TwoStates, rng: Rng) -> Self {
        Self::TwoStates(Channel::new(states, rng))
    }
    /// Returns a process in which each bit of a packet is wrong with probability `rate`.
    pub const fn bit_errors(rate: Chance, rng: Rng) -> Self {
        Self::BitErrors(BitErrorProcess::new(rate, rng))
    }
    /// Returns a process that loses the packets with these numbers (ascending, from 0).
    pub fn listed(drops: Arc<[u64]>) -> Self {
        Self::Listed { drops, passed: 0, packet: 0 }
    }
    /// Returns why the next packet, `bytes` long, is lost, if it is. Must be called exactly once per packet.
    pub fn lost(&mut self, bytes: u64) -> Option<DropReason> {
        let (lost, reason) = match self {
            Self::BitErrors(process) => (process.damages(bytes), DropReason::Corrupt),
            other => (other.loses(), DropReason::LinkLoss),
        };
        lost.then_some(reason)
    }

    /// Returns the probability that one of the next packets passes; 1 for a list of lost packets, which ends.
    fn chance_to_pass(&self) -> f64 {
        match self {
            Self::Random { rate, .. } => rate.of_not(),
            Self::TwoStates(channel) => channel.chance_to_pass(),
            Self::BitErrors(process) => process.chance_to_pass(),
            Self::Listed { .. } => 1.0,
        }
    }

    /// Returns whether the next packet is lost by a process that does not depend on its length.
    fn loses(&mut self) -> bool {
        match self {
            Self::BitErrors(_) => false,
            Self::Random { rate, rng } => rate.hits(rng.next_u64()),
            Self::TwoStates(channel) => channel.loses(),
            Self::Listed { drops, passed, packet } => {
                let lost = drops.get(*passed) == Some(packet);
                *passed += usize::from(lost);
                *packet += 1;
                lost
            }
        }
    }
}

/// Process that decides frame by frame whether bit errors damage the frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitErrorProcess {
    rate: Chance,
    rng: Rng,
    /// Length of the latest frame in bytes, and the probability that such a frame is damaged: most frames are equally
    /// long.
    latest: (u64, Chance),
}

impl BitErrorProcess {
    /// Creates a process in which each bit is wrong with probability `rate`. It draws from `rng` once per frame,
    /// whatever the frame's length.
    pub const fn new(rate: Chance, rng: Rng) -> Self {
        Self { rate, rng, latest: (0, Chance::NEVER) }
    }
    /// Returns the probability that a frame as long as the latest one is not damaged.
    pub fn chance_to_pass(&self) -> f64 {
        self.latest.1.of_not()
    }
    /// Returns whether the next frame, of `bytes`, is damaged.
    pub fn damages(&mut self, bytes: u64) -> bool {
        if self.latest.0 != bytes {
            self.latest = (bytes, self.rate.of_any(bytes * 8));
        }
        self.latest.1.hits(self.rng.next_u64())
    }
}

/// Loss on one direction of one link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaneLoss {
    /// Loss processes, indexed by [`LossClass`]; several rules may apply.
    processes: [Vec<LossProcess>; 3],
    /// Packets lost in a row up to the latest one, indexed by [`LossClass`].
    rows: [Row; 3],
}

/// Packets that were lost in a row, up to the latest one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Row {
    losses: u64,
    /// Time at which the latest packet was lost.
    latest: Instant,
}

/// Class of packets that share loss processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossClass {
    /// Packets with payload.
    Data = 0,
    /// Acknowledgements, congestion notifications, and messages between switches.
    Ack = 1,
    /// PFC frames.
    Pause = 2,
}

impl LaneLoss {
    /// Adds a process that decides about packets of `class`; several may.
    pub fn add(&mut self, class: LossClass, process: LossProcess) {
        self.processes[class as usize].push(process);
    }

    /// Returns why the next packet of this kind is lost, if it is; the packet arrives at `now` and has `bytes` bytes.
    /// Must be called exactly once per packet.
    pub fn lost(&mut self, now: Instant, kind: PacketKind, bytes: u64) -> Option<DropReason> {
        let class = LossClass::of(kind) as usize;
        // All rules count every packet, whatever other rules decide.
        let reason = self.processes[class].iter_mut().fold(None, |reason, process| reason.or(process.lost(bytes)));
        self.rows[class] =
            if reason.is_some() { Row { losses: self.rows[class].losses + 1, latest: now } } else { Row::default() };
        reason
    }

    /// Returns whether data, or answers to data, are being lost here: `least` packets or more in a row, the latest of
    /// them at `since` or later, by processes that will let packets pass again.
    pub fn is_in_burst(&self, least: u64, since: Instant) -> bool {
        [LossClass::Data, LossClass::Ack].into_iter().any(|class| {
            let (row, processes) = (self.rows[class as usize], &self.processes[class as usize]);
            row.losses >= least
                && row.latest >= since
                && processes.iter().all(|process| process.chance_to_pass() >= HOPE)
        })
    }
}

/// Least probability that the next packet passes for which the end of a burst is waited for: 1e-9.
const HOPE: f64 = 1e-9;

impl LossClass {
    /// Returns the class of packets of `kind`; acknowledgements, congestion notifications and messages between switches
    /// share one.
    const fn of(kind: PacketKind) -> Self {
        match kind {
            PacketKind::Data => Self::Data,
            PacketKind::Ack | PacketKind::Cnp | PacketKind::NetRt => Self::Ack,
            PacketKind::Pause => Self::Pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::Domain;

    use super::*;

    fn rng(entity: u64) -> Rng {
        Rng::stream(3, Domain::LinkLoss, entity)
    }
    fn chance(p: f64) -> Chance {
        Chance::from_f64(p).unwrap()
    }
    fn share(process: &mut LossProcess, packets: u32) -> f64 {
        f64::from((0..packets).filter(|_| process.loses()).count() as u32) / f64::from(packets)
    }

    #[test]
    fn random_loss_has_its_rate() {
        let found = share(&mut LossProcess::random(chance(0.01), rng(0)), 1_000_000);
        assert!((found - 0.01).abs() < 4.0 * (0.01f64 / 1e6).sqrt(), "{found}");
        assert_eq!(share(&mut LossProcess::random(Chance::NEVER, rng(0)), 1000), 0.0);
        assert_eq!(share(&mut LossProcess::random(Chance::ALWAYS, rng(0)), 1000), 1.0);
    }

    #[test]
    fn listed_packets_are_lost_and_no_others() {
        let mut process = LossProcess::listed([0, 3, 4].into());
        let fates: Vec<bool> = (0..7).map(|_| process.loses()).collect();
        assert_eq!(fates, [true, false, false, true, true, false, false]);
    }

    #[test]
    fn longer_frames_are_damaged_more_often() {
        let mut process = BitErrorProcess::new(chance(1e-6), rng(0));
        for (bytes, expected) in [(64u64, 5.1187e-4), (1_086, 8.6504e-3), (9_000, 6.9469e-2)] {
            let share = (0..2_000_000).filter(|_| process.damages(bytes)).count() as f64 / 2e6;
            assert!((share / expected - 1.0).abs() < 0.1, "{bytes}: {share}, not {expected}");
        }
    }
}
