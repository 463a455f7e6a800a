//! The sender as the authors' hardware code has it: the modules `txFree`, `receiveAck` and
//! `timeout` of section 6.2, action by action.
//!
//! Differences to the text, all kept:
//! 1. Recovery begins when the packet at the cumulative acknowledgement is sent again, not when the
//!    NACK arrives.
//! 2. A NACK that moves the cumulative acknowledgement outside recovery marks nothing; recovery
//!    waits for the next NACK or a timeout.
//! 3. If a hole is found by a call that had no retransmission pending, a new packet goes first.
//! 4. On leaving recovery a pending retransmission is dropped, even one for a known hole.
//!
//! The authors' hardware counts in plain integers: no wrap, no check of what an acknowledgement names. [`Hls::new`]
//! does as they do: numbers do not wrap, and a bit outside the bitmap is lost, as it is in the hardware's shifts.
//!
//! Our hardware (`rtl/`) decides what theirs leaves open, and [`Hls::guarded`] does as ours does:
//! 1. PSNs have 24 bits and are compared by serial numbers relative to the head, the cumulative acknowledgement. One
//!    from 2^22 packets ahead of it or more, or from farther than 2^22 behind it, is ignored as a whole. When the head
//!    advances, `retransmit` and `recover` are moved to just behind it where they lie farther behind than 2^22.
//! 2. A SACK below the head, or beyond the bitmap, sets no bit and touches no search; what else its NACK says counts.

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
    /// The SACK bitmap, and one past its highest bit.
    sacks: Bitmap,
    sacks_end: Seq,
    /// Packets the bitmap holds from `acked` on.
    window: u64,
    cap: u64,
    low_packets: u32,
    /// Whether SACKs outside the bitmap are ignored and old pointers move along.
    is_guarded: bool,
}

/// Farthest that an acknowledgement may lie from the head, and a pointer behind it, in packets.
const REACH: u64 = 1 << 22;
/// Throttled more than so many times, a sender does not use RTO_low.
const RATE_FACTOR_LIMIT: u32 = 4;

/// The seven columns that every line of a sender trace ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// nextSNtoSend: the next new packet.
    pub next: Seq,
    /// lastAckedPsn: the cumulative acknowledgement.
    pub acked: Seq,
    /// retransmitSN: the packet sent again last, or next.
    pub retransmit: Seq,
    /// recoverSN: the recovery sequence.
    pub recover: Seq,
    /// doRetransmit: `retransmit` waits to be sent.
    pub do_retransmit: bool,
    /// inRecovery.
    pub in_recovery: bool,
    /// findNewHole: the next `txFree` searches the bitmap.
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
    /// A context of zeros. At most `cap` packets in flight (111 in the published code); RTO_low for
    /// at most `low_packets` (3).
    pub fn new(cap: u64, low_packets: u32) -> Self {
        Self { window: cap.next_power_of_two().max(BITMAP), cap, low_packets, ..Self::default() }
    }

    /// As [`Hls::new`], with a bitmap of `bitmap` packets.
    pub(crate) fn with_bitmap(bitmap: u64, cap: u64, low_packets: u32) -> Self {
        Self { window: bitmap, cap, low_packets, ..Self::default() }
    }

    /// A context whose first packet has PSN `first`, with a bitmap for `bitmap` packets, of which at most `cap` are in
    /// flight; RTO_low for at most `low_packets`. It does as the hardware in `rtl/` does. Sequence numbers equal PSNs
    /// modulo 2^24; they begin high enough for old acknowledgements to lie behind the first packet.
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

    /// An acknowledgement has arrived, as [`Hls::receive_ack`], by the 24-bit numbers that it carries: for guarded
    /// contexts.
    pub fn receive_ack_of(&mut self, expected: Psn, sack: Psn, nack: bool) {
        let near = |psn: Psn| psn.near(self.acked, Psn::new(0));
        let (Some(expected), Some(sack)) = (near(expected), near(sack)) else { return };
        if expected < self.acked + REACH && expected + REACH >= self.acked {
            self.receive_ack(expected, sack, nack);
        }
    }

    /// The link is free for this queue pair. Returns what to send: a lost packet, or a new one
    /// before `limit`. (The hardware knows no limit, and no flow end.)
    pub fn tx_free(&mut self, limit: Seq) -> Option<Seq> {
        let sent = if self.has_pending() {
            if self.retransmit == self.acked {
                self.in_recovery = true;
            }
            // In 24 bits, should a timeout strike before anything was sent.
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

    /// An acknowledgement has arrived; `nack` says of which kind, `sack` which packet triggered it.
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

    /// The timer has fired, with RTO_low if `quick`. Returns whether to extend it to RTO_high
    /// instead of sending again.
    ///
    /// `rate_factor` is how many times congestion control throttles the sender below the link's rate; it extends the
    /// timer, too, if it exceeds 4. The authors' testbench passes 1, and so do simulations.
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

    /// Takes back the increment of `nextSNtoSend`, as the authors' testbench does after a call of
    /// [`Hls::tx_free`] that offered a packet beyond the flow's end.
    pub fn retract(&mut self) {
        self.next = Seq::new(self.next.index().saturating_sub(1));
    }

    /// The context.
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

    /// The bitmap of `bitmap` packets from the cumulative acknowledgement on, lowest first.
    pub fn sacks(&self, bitmap: u64) -> Box<[u64]> {
        let mut words = alloc::vec![0u64; bitmap.div_ceil(64) as usize];
        for offset in 0..bitmap.min(self.sacks_end.checked_since(self.acked).unwrap_or(0)) {
            let is_set = self.sacks.get(self.acked, self.acked + offset);
            words[(offset / 64) as usize] |= u64::from(is_set) << (offset % 64);
        }
        words.into()
    }

    /// What [`Hls::tx_free`] would send again, if not in this call then in the next: a pending
    /// retransmission, else what its search would find.
    pub(super) fn lost(&self) -> Option<Seq> {
        if self.has_pending() {
            Some(self.retransmit)
        } else if self.find_new_hole {
            self.search()
        } else {
            None
        }
    }
    /// Whether [`Hls::tx_free`] would send again in this call.
    pub(super) fn has_pending(&self) -> bool {
        self.do_retransmit && self.retransmit >= self.acked
    }
    /// Whether [`Hls::tx_free`] would send a new packet if nothing were pending.
    pub(super) fn offers_new(&self, limit: Seq) -> bool {
        self.next < limit && self.in_flight() < self.cap
    }
    pub(super) fn in_flight(&self) -> u64 {
        // After `retract`, less than nothing may be; the hardware's difference is signed.
        self.next.checked_since(self.acked).unwrap_or(0)
    }
    pub(super) fn acked(&self) -> Seq {
        self.acked
    }
    pub(super) fn next(&self) -> Seq {
        self.next
    }

    /// The first hole behind the last retransmission that has a SACK above it.
    fn search(&self) -> Option<Seq> {
        self.sacks.first_clear((self.retransmit + 1).max(self.acked), self.sacks_end)
    }

    /// Whether no bit above that of `sack` is set.
    fn is_highest(&self, sack: Seq) -> bool {
        match self.acked.checked_since(sack + 1) {
            None | Some(0) => self.sacks_end <= sack + 1,
            // The hardware shifts the bitmap by a negative amount, which moves its upper end out.
            Some(behind) => {
                let kept = self.window.saturating_sub(behind);
                !self.sacks.any(self.acked, self.sacks_end.min(self.acked + kept))
            }
        }
    }

    /// Pointers that no longer matter stay near enough to be compared in 24 bits.
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
