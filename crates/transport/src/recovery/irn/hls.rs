//! IRN's sender according to the authors' hardware code: the modules `txFree`, `receiveAck` and `timeout` of section
//! 6.2, statement by statement.
//!
//! All differences from the text are kept:
//! 1. Recovery begins when the packet at the cumulative acknowledgement is retransmitted, not when the NACK arrives.
//! 2. A NACK that moves the cumulative acknowledgement outside recovery marks no packet; recovery waits for the next
//!    NACK or a timeout.
//! 3. If a hole is found by a call that had no retransmission pending, a new packet is sent first.
//! 4. At the end of recovery a pending retransmission is dropped, even one for a known hole.
//!
//! The authors' hardware counts in plain integers, without wrap and without checks of acknowledgements. [`Hls::new`]
//! behaves in the same way: numbers do not wrap, and a bit outside the bitmap is lost, like in the hardware's shifts.
//!
//! This project's hardware (`rtl/`) defines the cases that the authors' hardware leaves open, and [`Hls::guarded`]
//! behaves like it:
//! 1. PSNs have 24 bits and are compared as serial numbers relative to the head, the cumulative acknowledgement. An
//!    acknowledgement 2^22 packets or more ahead of the head, or more than 2^22 behind it, is ignored as a whole. When
//!    the head advances, `retransmit` and `recover` are moved to just behind it where they lie more than 2^22 behind.
//! 2. A SACK below the head, or beyond the bitmap, sets no bit and affects no search; the rest of its NACK counts.

use alloc::boxed::Box;
use core::fmt;

use selvedge_units::{Psn, Seq};

use crate::bitmap::Bitmap;

/// Size of the hardware's bitmap at 40 Gb/s, in packets.
const BITMAP: u64 = 128;

/// The sender's context, in the columns of the authors' output traces.
#[derive(Clone, Debug, Default)]
pub struct Hls {
    next: Seq,
    acked: Seq,
    retransmit: Seq,
    recover: Seq,
    do_retransmit: bool,
    in_recovery: bool,
    find_new_hole: bool,
    /// The bitmap of selective acknowledgements.
    sacks: Bitmap,
    /// One past the highest bit of the bitmap that is set.
    sacks_end: Seq,
    /// Packets that the bitmap holds from `acked` on.
    window: u64,
    cap: u64,
    low_packets: u32,
    /// Whether SACKs outside the bitmap are ignored and old pointers move along.
    is_guarded: bool,
}

/// The largest distance of an acknowledgement from the head, and of a pointer behind the head, in packets.
const REACH: u64 = 1 << 22;
/// The throttling factor above which a sender does not use RTO_low.
const RATE_FACTOR_LIMIT: u32 = 4;

/// The seven columns at the end of every line of a sender trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// nextSNtoSend: the next new packet.
    pub next: Seq,
    /// lastAckedPsn: the cumulative acknowledgement.
    pub acked: Seq,
    /// retransmitSN: the last or next packet to retransmit.
    pub retransmit: Seq,
    /// recoverSN: the recovery sequence.
    pub recover: Seq,
    /// doRetransmit: whether `retransmit` waits to be sent.
    pub do_retransmit: bool,
    /// inRecovery: whether the sender is in recovery.
    pub in_recovery: bool,
    /// findNewHole: whether the next `txFree` searches the bitmap.
    pub find_new_hole: bool,
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { next, acked, retransmit, recover, do_retransmit, in_recovery, find_new_hole } = *self;
        write!(f, "{} {} {} {}", next.index(), acked.index(), retransmit.index(), recover.index())?;
        write!(f, " {} {} {}", u8::from(do_retransmit), u8::from(in_recovery), u8::from(find_new_hole))
    }
}

impl Hls {
    /// Creates a context of zeros, with at most `cap` packets in flight (111 in the published code), and RTO_low for at
    /// most `low_packets` (3).
    pub fn new(cap: u64, low_packets: u32) -> Self {
        Self { window: cap.next_power_of_two().max(BITMAP), cap, low_packets, ..Self::default() }
    }

    /// Creates a context with a bitmap of `bitmap` packets; otherwise like [`Hls::new`].
    pub(crate) fn with_bitmap(bitmap: u64, cap: u64, low_packets: u32) -> Self {
        Self { window: bitmap, cap, low_packets, ..Self::default() }
    }

    /// Creates a context that behaves like the hardware in `rtl/`, whose first packet has PSN `first`. The bitmap holds
    /// `bitmap` packets, of which at most `cap` are in flight; RTO_low is for at most `low_packets`. Sequence numbers
    /// equal PSNs modulo 2^24; they begin high enough for old acknowledgements to lie behind the first packet.
    pub fn guarded(first: Psn, bitmap: u64, cap: u64, low_packets: u32) -> Self {
        let head = Seq::new((1 << 32) + u64::from(first.get()));
        Self {
            next: head,
            acked: head,
            retransmit: head,
            recover: head,
            window: bitmap,
            cap,
            low_packets,
            is_guarded: true,
            ..Self::default()
        }
    }

    /// Handles an acknowledgement with the 24-bit numbers that it carries, for guarded contexts; otherwise like
    /// [`Hls::receive_ack`].
    pub fn receive_ack_of(&mut self, expected: Psn, sack: Psn, nack: bool) {
        let near = |psn: Psn| psn.near(self.acked, Psn::new(0));
        let (Some(expected), Some(sack)) = (near(expected), near(sack)) else { return };
        if expected < self.acked + REACH && expected + REACH >= self.acked {
            self.receive_ack(expected, sack, nack);
        }
    }

    /// Handles a free link for this queue pair. Returns the packet to send: a lost packet, or a new one before `limit`.
    /// (The hardware has no limit, and does not know the flow's end.)
    pub fn tx_free(&mut self, limit: Seq) -> Option<Seq> {
        let sent = if self.has_pending() {
            if self.retransmit == self.acked {
                self.in_recovery = true;
            }
            // Without any packet sent before a timeout, the difference wraps in 24 bits.
            self.recover = Seq::new(self.next.index().checked_sub(1).unwrap_or(u64::from(Psn::MODULUS) - 1));
            self.do_retransmit = false;
            self.find_new_hole = true;
            Some(self.retransmit)
        } else {
            self.do_retransmit = false;
            let new = self.offers_new(limit).then_some(self.next);
            self.next += u64::from(new.is_some());
            new
        };
        if self.find_new_hole {
            if let Some(hole) = self.search() {
                self.retransmit = hole;
                self.do_retransmit = true;
            }
            self.find_new_hole = false;
        }
        sent
    }

    /// Handles an acknowledgement; `nack` says whether it is negative, `sack` is the packet that triggered it.
    pub fn receive_ack(&mut self, expected: Seq, sack: Seq, nack: bool) {
        self.next = self.next.max(expected);
        let new_ack = expected > self.acked;
        if new_ack {
            self.sacks.clear(self.acked, expected.min(self.sacks_end));
            self.acked = expected;
            if self.is_guarded {
                self.bring_along();
            }
        }
        if nack {
            self.set_bit(sack);
            if self.in_recovery && (!self.is_guarded || self.is_in_window(sack)) {
                if self.do_retransmit && sack == self.retransmit {
                    self.do_retransmit = false;
                    self.find_new_hole = true;
                } else if !self.do_retransmit && self.is_highest(sack) {
                    self.find_new_hole = true;
                }
            }
        }
        if expected > self.recover {
            self.in_recovery = false;
            self.find_new_hole = false;
            self.do_retransmit = false;
        }
        if new_ack && self.in_recovery {
            // Partial acknowledgement.
            if self.retransmit < self.acked || (self.retransmit == self.acked && self.do_retransmit) {
                self.retransmit = self.acked;
                self.do_retransmit = true;
                self.find_new_hole = false;
            }
        } else if !new_ack && !self.in_recovery && nack && self.next > self.acked {
            self.retransmit = self.acked;
            self.do_retransmit = true;
        }
    }

    /// Handles the timer, set to RTO_low if `quick`. Returns whether to extend it to RTO_high instead of
    /// retransmitting.
    ///
    /// `rate_factor` is how many times congestion control throttles the sender below the link's rate; a factor above 4
    /// extends the timer, too. The authors' testbench passes 1, and so do simulations.
    pub fn timeout(&mut self, quick: bool, rate_factor: u32) -> bool {
        if quick && (rate_factor > RATE_FACTOR_LIMIT || self.in_flight() > u64::from(self.low_packets)) {
            return true;
        }
        self.retransmit = self.acked;
        self.do_retransmit = true;
        // The SACK bitmap is kept, so later holes follow in turn.
        self.find_new_hole = false;
        false
    }

    /// Reverts the increment of `nextSNtoSend`, like the authors' testbench after a call of [`Hls::tx_free`] that
    /// offered a packet beyond the flow's end.
    pub fn retract(&mut self) {
        self.next = Seq::new(self.next.index().saturating_sub(1));
    }

    /// Returns the context's columns.
    pub fn columns(&self) -> Columns {
        Columns {
            next: self.next,
            acked: self.acked,
            retransmit: self.retransmit,
            recover: self.recover,
            do_retransmit: self.do_retransmit,
            in_recovery: self.in_recovery,
            find_new_hole: self.find_new_hole,
        }
    }

    /// Returns the bitmap of `bitmap` packets from the cumulative acknowledgement on, lowest first.
    pub fn sacks(&self, bitmap: u64) -> Box<[u64]> {
        let mut words = alloc::vec![0u64; bitmap.div_ceil(64) as usize];
        for offset in 0..bitmap.min(self.sacks_end.checked_since(self.acked).unwrap_or(0)) {
            let is_set = self.sacks.get(self.acked, self.acked + offset);
            words[(offset / 64) as usize] |= u64::from(is_set) << (offset % 64);
        }
        words.into()
    }

    /// Returns the packet that this or the next call of [`Hls::tx_free`] would retransmit: a pending retransmission, or
    /// else the result of its search.
    pub(super) fn lost(&self) -> Option<Seq> {
        if self.has_pending() {
            Some(self.retransmit)
        } else if self.find_new_hole {
            self.search()
        } else {
            None
        }
    }
    /// Returns whether [`Hls::tx_free`] would retransmit in this call.
    pub(super) fn has_pending(&self) -> bool {
        self.do_retransmit && self.retransmit >= self.acked
    }
    /// Returns whether [`Hls::tx_free`] would send a new packet if no retransmission were pending.
    pub(super) fn offers_new(&self, limit: Seq) -> bool {
        self.next < limit && self.in_flight() < self.cap
    }
    pub(super) fn in_flight(&self) -> u64 {
        // The difference may be negative after `retract`; the hardware's is signed.
        self.next.checked_since(self.acked).unwrap_or(0)
    }
    pub(super) fn acked(&self) -> Seq {
        self.acked
    }
    pub(super) fn next(&self) -> Seq {
        self.next
    }

    /// Returns the first hole behind the last retransmission that has a SACK above it.
    fn search(&self) -> Option<Seq> {
        self.sacks.first_clear((self.retransmit + 1).max(self.acked), self.sacks_end)
    }

    /// Returns whether no bit above that of `sack` is set.
    fn is_highest(&self, sack: Seq) -> bool {
        match self.acked.checked_since(sack + 1) {
            None | Some(0) => self.sacks_end <= sack + 1,
            // The hardware shifts the bitmap by a negative amount, which drops its upper end.
            Some(behind) => {
                let kept = self.window.saturating_sub(behind);
                !self.sacks.any(self.acked, self.sacks_end.min(self.acked + kept))
            }
        }
    }

    /// Moves pointers that lie too far behind the head to just behind it, to keep them comparable in 24 bits.
    fn bring_along(&mut self) {
        for pointer in [&mut self.retransmit, &mut self.recover] {
            if *pointer + REACH < self.acked {
                *pointer = Seq::new(self.acked.index() - 1);
            }
        }
    }

    fn is_in_window(&self, sack: Seq) -> bool {
        sack.checked_since(self.acked).is_some_and(|offset| offset < self.window)
    }

    fn set_bit(&mut self, sack: Seq) {
        if self.is_in_window(sack) {
            self.sacks.insert(self.acked, sack);
            self.sacks_end = self.sacks_end.max(sack + 1);
        }
    }
}
