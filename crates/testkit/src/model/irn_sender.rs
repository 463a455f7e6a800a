//! A reference model of IRN's sender, by the definitions of section 3.1 as interpreted in the engine's notes.

use std::collections::BTreeSet;

use selvedge_transport::recovery::irn::PartialAcks;
use selvedge_units::Seq;

/// An IRN sender that keeps sets, and recomputes losses on each call. Without timers.
#[derive(Clone, Debug, Default)]
pub struct IrnSender {
    /// Cumulative acknowledgement: everything before has arrived.
    pub acked: Seq,
    /// Next new packet.
    pub next: Seq,
    sacked: BTreeSet<Seq>,
    episode: Option<Episode>,
    nacks: u32,
    threshold: u32,
    cap: u64,
    partial_acks: PartialAcks,
}

/// State of one recovery.
#[derive(Clone, Debug)]
struct Episode {
    /// Packets retransmitted in this recovery.
    resent: BTreeSet<Seq>,
    /// Packet that is lost regardless of SACKs: at the cumulative acknowledgement, on entry and on partial
    /// acknowledgements.
    certain: Option<Seq>,
    /// The last new packet before the latest retransmission, if any.
    recover: Option<Seq>,
    /// The last new packet before the first retransmission, if any.
    recover_at_first: Option<Seq>,
}

impl IrnSender {
    /// Creates a sender with at most `cap` packets in flight, which enters recovery at the `threshold`-th NACK;
    /// `partial_acks` must not be "auto".
    pub fn new(cap: u64, threshold: u32, partial_acks: PartialAcks) -> Self {
        Self { cap, threshold, partial_acks, ..Self::default() }
    }

    /// Returns the next packet of a flow of `supplied` packets, and whether it is a retransmission.
    pub fn offer(&self, supplied: Seq) -> Option<(Seq, bool)> {
        let new = (self.next < supplied && self.next - self.acked < self.cap).then_some((self.next, false));
        self.lost().map(|seq| (seq, true)).or(new)
    }

    /// Returns the first lost packet that was not retransmitted.
    fn lost(&self) -> Option<Seq> {
        let episode = self.episode.as_ref()?;
        let highest = self.sacked.last().copied().unwrap_or_default();
        let behind = episode.resent.last().map_or(Seq::ZERO, |&last| last + 1);
        let is_lost = |seq: Seq| {
            // Before the first retransmission, only the packet at the cumulative acknowledgement is lost.
            let below_a_sack = episode.recover.is_some() && seq < highest && !self.sacked.contains(&seq);
            episode.certain == Some(seq) || below_a_sack
        };
        (self.acked.index()..self.next.index()).map(Seq::new).find(|&seq| seq >= behind && is_lost(seq))
    }

    /// Records the transmission of the packet that [`IrnSender::offer`] returned.
    pub fn on_sent(&mut self, seq: Seq) {
        if seq == self.next {
            self.next += 1;
            return;
        }
        let recover = Seq::new(self.next.index() - 1);
        let episode = self.episode.as_mut().expect("only recovery sends again");
        episode.recover = Some(recover);
        episode.recover_at_first.get_or_insert(recover);
        episode.resent.insert(seq);
    }

    /// Handles an acknowledgement; `sack` is the packet that triggered a NACK.
    pub fn handle_ack(&mut self, expected: Seq, sack: Option<Seq>) {
        if expected > self.next {
            return;
        }
        if expected > self.acked {
            self.acked = expected;
            self.nacks = 0;
            self.sacked = self.sacked.split_off(&self.acked);
            self.on_progress();
        }
        if let Some(sack) = sack.filter(|&sack| sack > self.acked && sack < self.next) {
            self.nacks += 1;
            self.sacked.insert(sack);
            if self.episode.is_none() && self.nacks >= self.threshold {
                self.enter();
            }
        }
    }

    /// Handles a timeout.
    pub fn handle_timeout(&mut self) {
        self.enter();
    }

    fn on_progress(&mut self) {
        let Some(episode) = &mut self.episode else { return };
        if episode.recover.is_none_or(|recover| self.acked > recover) {
            self.episode = None;
            if self.sacked.len() >= self.threshold as usize {
                self.enter();
            }
            return;
        }
        let sent_before = match self.partial_acks {
            PartialAcks::Latest => episode.recover,
            PartialAcks::First => episode.recover_at_first,
            PartialAcks::None | PartialAcks::Auto => None,
        };
        let is_told = sent_before.is_some_and(|last| self.acked <= last);
        if is_told && episode.resent.last().is_none_or(|&last| last < self.acked) {
            episode.certain = Some(self.acked);
        }
    }

    fn enter(&mut self) {
        self.episode =
            Some(Episode { resent: BTreeSet::new(), certain: Some(self.acked), recover: None, recover_at_first: None });
    }
}
