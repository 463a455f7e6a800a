//! IRN's sender from the definitions of section 3.1, with the readings of the engine's notes.

use std::collections::BTreeSet;

use selvedge_transport::recovery::irn::PartialAcks;
use selvedge_units::Seq;

/// An IRN sender that keeps sets, and looks for losses anew whenever it is asked. Knows no time.
#[derive(Clone, Debug, Default)]
pub struct IrnSender {
    /// Everything before has arrived.
    pub acked: Seq,
    /// The next new packet.
    pub next: Seq,
    sacked: BTreeSet<Seq>,
    episode: Option<Episode>,
    nacks: u32,
    threshold: u32,
    cap: u64,
    partial_acks: PartialAcks,
}

/// One recovery.
#[derive(Clone, Debug)]
struct Episode {
    /// Sent again in this recovery.
    resent: BTreeSet<Seq>,
    /// Lost whatever the SACKs say: at the cumulative acknowledgement, on entry and on partial
    /// acknowledgements.
    certain: Option<Seq>,
    /// The last new packet before the latest retransmission, once there was one.
    recover: Option<Seq>,
    /// The last new packet before the first retransmission, once there was one.
    recover_at_first: Option<Seq>,
}

impl IrnSender {
    /// With at most `cap` packets in flight, beginning recovery at the `threshold`-th NACK; `partial_acks` is not
    /// "auto".
    pub fn new(cap: u64, threshold: u32, partial_acks: PartialAcks) -> Self {
        Self { cap, threshold, partial_acks, ..Self::default() }
    }

    /// What to send, of a flow of `supplied` packets, and whether it was sent before.
    pub fn offer(&self, supplied: Seq) -> Option<(Seq, bool)> {
        let new = (self.next < supplied && self.next - self.acked < self.cap).then_some((self.next, false));
        self.lost().map(|seq| (seq, true)).or(new)
    }

    /// The first packet that is lost and was not sent again.
    fn lost(&self) -> Option<Seq> {
        let episode = self.episode.as_ref()?;
        let highest = self.sacked.last().copied().unwrap_or_default();
        let behind = episode.resent.last().map_or(Seq::ZERO, |&last| last + 1);
        let is_lost = |seq: Seq| {
            // Before the first retransmission, only the packet at the cumulative acknowledgement.
            let below_a_sack = episode.recover.is_some() && seq < highest && !self.sacked.contains(&seq);
            episode.certain == Some(seq) || below_a_sack
        };
        (self.acked.index()..self.next.index()).map(Seq::new).find(|&seq| seq >= behind && is_lost(seq))
    }

    /// The packet that [`IrnSender::offer`] named was sent.
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

    /// An acknowledgement arrived, with the packet that triggered it if it is a NACK.
    pub fn on_ack(&mut self, expected: Seq, sack: Option<Seq>) {
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

    /// A timeout.
    pub fn on_timeout(&mut self) {
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
