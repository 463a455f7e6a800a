//! Credit at the sending end (section 5, data clocking).
//!
//! ```text
//!    held ──data──> in flight ──target──> owed by the receiver ──pull──> in flight ──> held
//! ```
//!
//! All of it together is one window, a bandwidth-delay product. Nothing of it is counted in messages that could
//! be lost: the sender says how high it wants the pull number to be, the receiver how high it is.
//!
//! Design notes.
//! 1. *Asked for again, or not.* A packet takes its credit along. Where something waits behind it, its pull target asks
//!    for that credit again, and a pull brings it. Where nothing waits, nobody asks, and the credit ends when the
//!    packet arrives. `unasked` counts bytes in flight of the second kind.
//! 2. *Stacks* hand over packet by packet: hardly anything ever waits when they send, and yet there is always more.
//!    What comes while packets of theirs are in flight is to have those packets' credit when they arrive, without a
//!    word to the receiver: `reserved`.
//! 3. *A window unasked.* While the receiver has nothing better to do a tunnel may always send one window: what it does
//!    not hold, has not under way and has not asked for, it takes ([`Credit::restart`]).
//! 4. *No account by packet.* Which of the packets in flight were asked for again is not kept. `unasked` takes the
//!    first ones sent for those that were not, so that their credit comes back soon; `open` takes the last ones for
//!    them, so that it counts as under way for long, which is what restarting goes by. Hence all credit is a window at
//!    most, but for a packet or two now and then (`tests/credit.rs`).
//!
//! A window of four packets, whose owner hands over two, two more, and a fifth:
//!
//! ```text
//!                              held  unasked  reserved
//!     at first                  4       0        0
//!     four come and are sent    0       4        0       nothing waited behind any of them
//!     a fifth comes             0       4        1       it waits for the credit of the first one
//!     the first has arrived     1       3        0
//!     the fifth is sent         0       4        0
//! ```

use super::numbers::Numbers;

/// Credit that goes with numbers: MTUs and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Scale {
    pub(super) numbers: Numbers,
    /// Bytes of credit in one pull.
    pub(super) quantum: u32,
    /// All credit of a tunnel, in bytes: whole quanta.
    pub(super) window: u32,
}

/// So many quanta more than were asked for are worth a request of their own, which is a small part of what they are.
const MUCH: u32 = 4;

/// What the sending end knows of its credit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Credit {
    /// Bytes that pulls have granted.
    granted: u32,
    /// Bytes that may be sent unasked, as NDP's first window.
    burst: u32,
    /// The highest pull number that has come.
    pub(super) pull: u32,
    /// The highest pull target that was announced.
    target: u32,
    /// What the receiver will grant for packets that it said were trimmed.
    promise: Promise,
    /// How far it had pulled when it said so last.
    promised_at: u32,
    /// Bytes in flight whose credit was not asked for again, taken for the first ones sent (notes 1 and 4).
    unasked: u32,
    /// Those of them that something waits for, which came later: it has their credit when they arrive (note 2).
    reserved: u32,
    /// As `unasked`, taken for the last ones sent: at least as much (note 4).
    open: u32,
}

impl Credit {
    /// Of a new tunnel, which may send so much unasked.
    pub(super) fn new(burst: u32) -> Self {
        Self {
            granted: 0,
            burst,
            pull: 0,
            target: 0,
            promise: Promise::default(),
            promised_at: 0,
            unasked: 0,
            reserved: 0,
            open: 0,
        }
    }

    /// Bytes that may be sent now.
    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.granted + self.burst
    }

    /// Bytes of it that the receiver has given.
    #[inline]
    pub(super) fn granted(&self) -> u32 {
        self.granted
    }

    /// Takes the credit for a packet: "to send a packet of size b, the sending EQIF must possess b bytes".
    #[inline]
    pub(super) fn spend(&mut self, bytes: u32) {
        let unasked = bytes.saturating_sub(self.granted);
        self.granted -= bytes - unasked;
        self.burst -= unasked;
        self.unasked += bytes;
        self.open += bytes;
    }

    /// So many bytes have arrived, and so many are still in flight. What is asked for again is the credit of the last
    /// ones sent, so the first to arrive are the others.
    #[inline]
    pub(super) fn note_arrived(&mut self, scale: &Scale, bytes: u64, in_flight: u64) {
        debug_assert!(self.unasked <= self.open, "two accounts of the same");
        if self.open == 0 {
            return;
        }
        let back = u64::from(self.unasked).min(bytes) as u32;
        self.unasked -= back;
        let taken = back.min(self.reserved);
        self.reserved -= taken;
        self.open = u64::from(self.open.saturating_sub(taken)).min(in_flight) as u32;
        // Never more than one window, whatever the other end has granted beyond what was asked for.
        self.burst += taken.min(scale.window.saturating_sub(self.held()));
    }

    /// So many bytes were lost, and so many are still in flight.
    pub(super) fn note_lost(&mut self, bytes: u64, in_flight: u64) {
        self.unasked = u64::from(self.unasked).saturating_sub(bytes) as u32;
        self.open = u64::from(self.open).min(in_flight) as u32;
        self.release();
    }

    /// A pull number has come; returns whether it is news.
    #[inline]
    pub(super) fn take_pull(&mut self, scale: &Scale, pull: u32) -> bool {
        let more = scale.numbers.distance(self.pull, pull);
        if more <= 0 {
            return false;
        }
        self.pull = pull;
        let granted = u64::from(self.granted) + u64::from(more as u32) * u64::from(scale.quantum);
        // Never more than one window, whatever the other end says.
        self.granted = granted.min(u64::from(scale.window - self.burst)) as u32;
        // What lies behind must not come round again when numbers wrap.
        if scale.numbers.is_after(pull, self.target) {
            self.target = pull;
        }
        self.promise.stay_near(scale, pull);
        if scale.numbers.distance(self.promised_at, pull) > Promise::FAR {
            self.promised_at = pull;
        }
        true
    }

    /// A packet of so many bytes was trimmed, says the receiver, which had pulled so far. What it said before it had
    /// pulled further may have been paid since, so that is to be asked for: who waits for too much waits for ever.
    pub(super) fn note_trimmed(&mut self, scale: &Scale, pull: u32, bytes: u32) {
        if !scale.numbers.is_after(self.promised_at, pull) {
            self.promised_at = pull;
            self.promise.add(scale, pull, bytes);
        }
    }

    /// Asks for what `demand` wants, `lost` bytes of which were; returns the target to announce.
    #[inline]
    pub(super) fn ask(&mut self, scale: &Scale, demand: u64, lost: u64) -> u32 {
        let before = self.outstanding(scale);
        self.target = self.wanted(scale, demand, lost);
        let more = self.outstanding(scale).saturating_sub(before);
        self.unasked = self.unasked.saturating_sub(more * scale.quantum);
        self.open = self.open.saturating_sub(more * scale.quantum);
        self.reserved = self.reserved.min(self.unasked);
        self.target
    }

    /// The target that asks for what `demand` wants beyond what is held, and reserved: at most one window (section 5).
    /// For what was `lost` only what the receiver has given counts.
    #[inline]
    fn wanted(&self, scale: &Scale, demand: u64, lost: u64) -> u32 {
        let have = u64::from(self.held()) + u64::from(self.reserved);
        let most = u64::from(scale.window);
        let again = lost.min(most).saturating_sub(self.granted.into());
        let want = demand.min(most).saturating_sub(have).max(again) as u32;
        let target = scale.numbers.add(self.pull, want.div_ceil(scale.quantum));
        let expected = self.promise.beyond(scale, self.target);
        if scale.numbers.is_after(target, expected) { target } else { expected }
    }

    /// Quanta that the receiver has been asked for, or has promised, and has not granted yet.
    #[inline]
    pub(super) fn outstanding(&self, scale: &Scale) -> u32 {
        let expected = self.promise.beyond(scale, self.target);
        scale.numbers.distance(self.pull, expected).max(0) as u32
    }

    /// Whether so much `demand` is to be asked for in a packet of its own: nothing was, or no more than half of it, or
    /// [`MUCH`] less than it. Stacks hand over packet by packet; each would be asked for by itself, or the rest only
    /// when the first was given.
    #[inline]
    pub(super) fn wants(&self, scale: &Scale, demand: u64, lost: u64) -> bool {
        let outstanding = self.outstanding(scale);
        let enough = outstanding + outstanding.clamp(1, MUCH);
        // More than a window is never wanted; most who wait have asked for one.
        if u64::from(enough) * u64::from(scale.quantum) >= u64::from(scale.window) + u64::from(scale.quantum) {
            return false;
        }
        scale.numbers.distance(self.pull, self.wanted(scale, demand, lost)).max(0) as u32 >= enough
    }

    /// The sender may send one window unasked, less what it has, has asked for, or has under way and not asked for: the
    /// credit of what was sent when nothing waited is lost when it arrives.
    pub(super) fn restart(&mut self, scale: &Scale) {
        let own = self.held() + self.open + self.outstanding(scale) * scale.quantum;
        self.burst += scale.window.saturating_sub(own);
    }

    /// What waits beyond what is held and awaited is to have the credit that acknowledgements will bring back. A stack
    /// that hands over packet by packet never says how much will follow; while the network keeps up with it, it need
    /// not ask.
    #[inline]
    pub(super) fn reserve(&mut self, scale: &Scale, demand: u64) {
        let own = u64::from(self.held()) + u64::from(self.outstanding(scale)) * u64::from(scale.quantum);
        self.reserved = u64::from(self.unasked).min(demand.saturating_sub(own)) as u32;
    }

    /// What might be sent unasked must be asked for: the receiver is busy.
    pub(super) fn forfeit(&mut self) {
        self.burst = 0;
    }

    /// What waits for acknowledgements must be asked for: something was lost, or the receiver is busy.
    #[inline]
    pub(super) fn release(&mut self) {
        self.reserved = 0;
    }
}

/// Credit that goes to retransmissions of trimmed packets. Both ends keep the same account: the receiver knows the
/// demand before the sender does, and the sender knows that it need not ask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Promise {
    /// The pull number that pays for all.
    number: u32,
    /// Bytes of the last quantum that pay for nothing yet.
    room: u32,
}

impl Promise {
    /// Further behind than any word of the receiver's.
    const FAR: i32 = 1 << 12;

    /// A packet of so many bytes was trimmed when `pull` had been reached.
    pub(super) fn add(&mut self, scale: &Scale, pull: u32, bytes: u32) {
        self.catch_up(scale, pull);
        while self.room < bytes {
            self.number = scale.numbers.add(self.number, 1);
            self.room += scale.quantum;
        }
        self.room -= bytes;
    }

    /// The sender has been given `pull`. The receiver promised by what it had given when it trimmed, which its word
    /// will say; so this account must not run ahead, only not fall behind so far that numbers wrap.
    #[inline]
    fn stay_near(&mut self, scale: &Scale, pull: u32) {
        if scale.numbers.distance(self.number, pull) > Self::FAR {
            self.catch_up(scale, pull);
        }
    }

    /// `pull` has been reached.
    #[inline]
    pub(super) fn catch_up(&mut self, scale: &Scale, pull: u32) {
        if !scale.numbers.is_after(self.number, pull) {
            *self = Self { number: pull, room: 0 };
        }
    }

    /// The promised number or `target`, whichever is later.
    #[inline]
    pub(super) fn beyond(&self, scale: &Scale, target: u32) -> u32 {
        if scale.numbers.is_after(self.number, target) { self.number } else { target }
    }
}
