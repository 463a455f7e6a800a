//! Credit at the sending end (section 5, data clocking).
//!
//! ```text
//!    held ──data──> in flight ──target──> owed by the receiver ──pull──> in flight ──> held
//! ```
//!
//! All credit together is one window, a bandwidth-delay product. No credit is carried in messages that could be lost:
//! the sender announces the pull number it wants, the receiver the pull number it has granted.
//!
//! Design notes.
//! 1. *Requested again, or not.* A packet takes its credit along. If another packet waits behind it, its pull target
//!    requests that credit again, and a pull returns it. If nothing waits, nothing is requested, and the credit ends
//!    when the packet arrives. `unasked` counts the bytes in flight of the second kind.
//! 2. *Stacks* hand over packet by packet: a queue rarely exists when they send, and yet more packets follow. Packets
//!    that come while others of the stack are in flight are to get the credit of those when they arrive, without a
//!    request to the receiver: `reserved`.
//! 3. *An unsolicited window.* While the receiver is not busy, a tunnel may always send one window: credit that it does
//!    not hold, has not in flight and has not requested is created ([`Credit::restart`]).
//! 4. *No account per packet.* Which of the packets in flight were requested again is not recorded. `unasked` assumes
//!    that those not requested were sent first, so that their credit returns soon; `open` assumes that they were sent
//!    last, so that their credit counts as in flight for long, which restarting needs. Hence all credit together is at
//!    most a window, except for an occasional packet or two (`tests/credit.rs`).
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

/// Units of credit: numbers, and bytes per number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Scale {
    pub(super) numbers: Numbers,
    /// Bytes of credit in one pull.
    pub(super) quantum: u32,
    /// Total credit of a tunnel, in bytes: whole quanta.
    pub(super) window: u32,
}

/// Quanta beyond those requested that justify a request of their own, whose cost is then a small part of them.
const MUCH: u32 = 4;

/// The sender's view of its credit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Credit {
    /// Bytes that pulls have granted.
    granted: u32,
    /// Bytes that may be sent unsolicited, like NDP's first window.
    burst: u32,
    /// The highest pull number received.
    pub(super) pull: u32,
    /// The highest pull target announced.
    target: u32,
    /// Credit that the receiver will grant for the packets that it reported as trimmed.
    promise: Promise,
    /// Pull number in the receiver's last report of a trimmed packet.
    promised_at: u32,
    /// Bytes in flight whose credit was not requested again, assumed to have been sent first (notes 1 and 4).
    unasked: u32,
    /// Part of `unasked` that a later packet waits for: the packet gets that credit when the bytes arrive (note 2).
    reserved: u32,
    /// Like `unasked`, but assumed to have been sent last: at least as much (note 4).
    open: u32,
}

impl Credit {
    /// Creates the credit of a new tunnel, which may send `burst` bytes unsolicited.
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

    /// Returns the bytes that may be sent now.
    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.granted + self.burst
    }

    /// Returns the bytes of credit granted by the receiver.
    #[inline]
    pub(super) fn granted(&self) -> u32 {
        self.granted
    }

    /// Spends the credit for a packet: "to send a packet of size b, the sending EQIF must possess b bytes".
    #[inline]
    pub(super) fn spend(&mut self, bytes: u32) {
        let unasked = bytes.saturating_sub(self.granted);
        self.granted -= bytes - unasked;
        self.burst -= unasked;
        self.unasked += bytes;
        self.open += bytes;
    }

    /// Records the arrival of `bytes` bytes, with `in_flight` bytes still in flight. The credit requested again is
    /// taken to be that of the packets sent last, so the first arrivals are the others.
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
        // At most one window, even if the receiver has granted more than was requested.
        self.burst += taken.min(scale.window.saturating_sub(self.held()));
    }

    /// Records the loss of `bytes` bytes, with `in_flight` bytes still in flight.
    pub(super) fn note_lost(&mut self, bytes: u64, in_flight: u64) {
        self.unasked = u64::from(self.unasked).saturating_sub(bytes) as u32;
        self.open = u64::from(self.open).min(in_flight) as u32;
        self.release();
    }

    /// Takes over a pull number; returns whether it is new.
    #[inline]
    pub(super) fn take_pull(&mut self, scale: &Scale, pull: u32) -> bool {
        let more = scale.numbers.distance(self.pull, pull);
        if more <= 0 {
            return false;
        }
        self.pull = pull;
        let granted = u64::from(self.granted) + u64::from(more as u32) * u64::from(scale.quantum);
        // At most one window, whatever the receiver grants; credit held when a measured window shrinks is kept.
        self.granted = granted.min(u64::from(scale.window.saturating_sub(self.burst).max(self.granted))) as u32;
        // A target left behind must not reappear ahead when numbers wrap.
        if scale.numbers.is_after(pull, self.target) {
            self.target = pull;
        }
        self.promise.stay_near(scale, pull);
        if scale.numbers.distance(self.promised_at, pull) > Promise::FAR {
            self.promised_at = pull;
        }
        true
    }

    /// Records that the receiver, having granted up to `pull`, reported a trimmed packet of `bytes` bytes. Reports
    /// older than the last one are ignored, since their credit may have been granted already; that credit is requested
    /// instead: a sender that expected too much would wait forever.
    pub(super) fn note_trimmed(&mut self, scale: &Scale, pull: u32, bytes: u32) {
        if !scale.numbers.is_after(self.promised_at, pull) {
            self.promised_at = pull;
            self.promise.add(scale, pull, bytes);
        }
    }

    /// Requests the credit that `demand` needs, `lost` bytes of which are retransmissions; returns the target to
    /// announce.
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

    /// Returns the target that requests credit for the part of `demand` not covered by held and reserved credit: at
    /// most one window (section 5). For the `lost` bytes, only credit granted by the receiver counts.
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

    /// Returns the quanta that were requested or promised and have not been granted yet.
    #[inline]
    pub(super) fn outstanding(&self, scale: &Scale) -> u32 {
        let expected = self.promise.beyond(scale, self.target);
        scale.numbers.distance(self.pull, expected).max(0) as u32
    }

    /// Returns whether `demand` justifies a request packet: nothing was requested, or no more than half of it, or
    /// [`MUCH`] less than it. Stacks hand over packet by packet; otherwise each would be requested separately, or the
    /// rest only after the first grant.
    #[inline]
    pub(super) fn wants(&self, scale: &Scale, demand: u64, lost: u64) -> bool {
        let outstanding = self.outstanding(scale);
        let enough = outstanding + outstanding.clamp(1, MUCH);
        // More than a window is never wanted; most waiting senders have requested one.
        if u64::from(enough) * u64::from(scale.quantum) >= u64::from(scale.window) + u64::from(scale.quantum) {
            return false;
        }
        scale.numbers.distance(self.pull, self.wanted(scale, demand, lost)).max(0) as u32 >= enough
    }

    /// Renews the unsolicited window: `most` bytes, at most a window, less the credit held, requested, or in flight and
    /// not requested again. The credit of packets sent when nothing waited ends when they arrive.
    pub(super) fn restart(&mut self, scale: &Scale, most: u32) {
        let own = self.held() + self.open + self.outstanding(scale) * scale.quantum;
        self.burst += most.min(scale.window).saturating_sub(own);
    }

    /// Reserves the credit that acknowledgements will return for the demand beyond held and outstanding credit. A stack
    /// that hands over packet by packet never announces its demand; while the network keeps up with the stack, no
    /// request is needed.
    #[inline]
    pub(super) fn reserve(&mut self, scale: &Scale, demand: u64) {
        let own = u64::from(self.held()) + u64::from(self.outstanding(scale)) * u64::from(scale.quantum);
        self.reserved = u64::from(self.unasked).min(demand.saturating_sub(own)) as u32;
    }

    /// Limits unsolicited credit to a window of `window` bytes, which has become smaller.
    pub(super) fn narrow(&mut self, window: u32) {
        self.burst = self.burst.min(window.saturating_sub(self.granted));
    }

    /// Gives up unsolicited credit, which must be requested instead: the receiver is busy.
    pub(super) fn forfeit(&mut self) {
        self.burst = 0;
    }

    /// Gives up reserved credit, which must be requested instead: a packet was lost, or the receiver is busy.
    #[inline]
    pub(super) fn release(&mut self) {
        self.reserved = 0;
    }
}

/// Credit destined for retransmissions of trimmed packets. Both ends keep equal accounts: the receiver knows the demand
/// before the sender does, and the sender knows that it need not request the credit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Promise {
    /// The pull number that covers all promised retransmissions.
    number: u32,
    /// Bytes of the last quantum not yet assigned to a packet.
    room: u32,
}

impl Promise {
    /// Distance by which the account may lag: more than any report of the receiver lags.
    const FAR: i32 = 1 << 12;

    /// Adds a packet of `bytes` bytes that was trimmed when `pull` had been reached.
    pub(super) fn add(&mut self, scale: &Scale, pull: u32, bytes: u32) {
        self.catch_up(scale, pull);
        while self.room < bytes {
            self.number = scale.numbers.add(self.number, 1);
            self.room += scale.quantum;
        }
        self.room -= bytes;
    }

    /// Limits the account's lag after the sender was granted `pull`. The receiver's promise depends on the pull number
    /// at the time of trimming, which its report carries; so this account must not run ahead, only not lag so far that
    /// numbers wrap.
    #[inline]
    fn stay_near(&mut self, scale: &Scale, pull: u32) {
        if scale.numbers.distance(self.number, pull) > Self::FAR {
            self.catch_up(scale, pull);
        }
    }

    /// Advances the account to `pull`, which has been reached.
    #[inline]
    pub(super) fn catch_up(&mut self, scale: &Scale, pull: u32) {
        if !scale.numbers.is_after(self.number, pull) {
            *self = Self { number: pull, room: 0 };
        }
    }

    /// Returns the promised number or `target`, whichever is later.
    #[inline]
    pub(super) fn beyond(&self, scale: &Scale, target: u32) -> u32 {
        if scale.numbers.is_after(self.number, target) { self.number } else { target }
    }
}
