//! Priority flow control (802.1Qbb).
//!
//! An input that fills up pauses its peer: `Ingress::shall_pause` tells which classes should be paused,
//! `Ingress::announced` which the peer has been told of. Where the two differ, the next frame that the port sends is a
//! pause frame, which takes its time on the wire like any other; a change that is reverted before it is sent costs
//! nothing. A pause expires unless it is refreshed, so a lost resume frame does not stop a link for ever. A refresh
//! depends on time alone: `announced` keeps its value until the peer is told otherwise.

use selvedge_telemetry::PacketKind;
use selvedge_units::{Duration, HostId, Instant, QpNumber};
use selvedge_wire::{Ecn, Header, Packet, Pause, Repr};

use super::descriptor::Descriptor;
use super::pool::Slot;
use super::port::of_bits;
use super::switch::Switch;
use crate::kernel::fabric::Attachment;
use crate::kernel::partition::Partition;
use crate::kernel::prefetch_at;

/// Bit times per quantum.
const QUANTUM_BITS: u64 = 512;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Sends a pause or resume frame through port `at`, which is free.
    #[cold]
    pub(crate) fn send_pause(&mut self, at: u32) {
        let quanta = self.fabric.quanta;
        let pause_time = self.pause_time(at, quanta);
        let refreshes = self.refresh_is_due(at);
        let port = &mut self.ingress[at];
        let begins = port.shall_pause() & !port.announced != 0 || refreshes;
        let pause = if begins {
            // All classes that should be paused: a new X-OFF renews the older ones, too.
            port.announced |= port.shall_pause();
            Pause { classes: port.shall_pause(), quanta }
        } else {
            let end = port.announced & !port.shall_pause();
            port.announced = port.shall_pause();
            Pause { classes: end, quanta: 0 }
        };
        let extra = &mut self.extras[at];
        extra.pause_frames += 1;
        if begins {
            extra.pauses_sent += 1;
            extra.refresh_at = self.now.saturating_add(pause_time / 2);
            self.arm_pause_timer(at);
        }
        self.note_pause_due(at);
        let packet = Packet {
            sent_at: self.now,
            src: HostId(u32::MAX),
            dst: HostId(u32::MAX),
            qp: QpNumber(0),
            slot: 0,
            entropy: 0,
            frame: Header::MINIMUM_FRAME.get() as u16,
            class: 0,
            ecn: Ecn::NotCapable,
            repr: Repr::Pause(pause),
        };
        let slot = self.pool.put(packet);
        self.transmit(at, &Descriptor::of(&packet, slot, Attachment::NONE));
        self.return_to_do_more(at);
    }

    /// Returns how long a pause of `quanta` quanta lasts at port `at`.
    fn pause_time(&self, at: u32, quanta: u16) -> Duration {
        self.egress[at].serialisation(u64::from(quanta) * QUANTUM_BITS / 8, || self.extras[at].rate)
    }

    /// Returns whether pauses at port `at` last so long that none ends in the window in which it begins.
    pub(crate) fn has_lasting_pauses(&self, at: u32) -> bool {
        self.pause_time(at, self.fabric.quanta).as_ps() >= self.fabric.schedule.length()
    }

    /// Updates whether a pause frame is due: compares the pauses that the peer of port `at` should know with those that
    /// it has been told of.
    pub(crate) fn note_pause_due(&mut self, at: u32) {
        let port = &self.ingress[at];
        let due = port.shall_pause() != port.announced || self.refresh_is_due(at);
        self.egress[at].set_pause_due(due);
        self.forget_idle(at);
    }

    /// Returns whether the peer of port `at` has to be reminded of its pause.
    fn refresh_is_due(&self, at: u32) -> bool {
        let port = &self.ingress[at];
        port.announced & port.shall_pause() != 0 && self.extras[at].refresh_at <= self.now
    }

    /// Prefetches the state that [`take_pause`](Self::take_pause) needs.
    #[inline]
    pub(super) fn prefetch_pause(&self, at: u32, slot: Slot) {
        self.pool.prefetch(slot);
        let extra = &self.extras[at];
        prefetch_at(extra);
        prefetch_at(&raw const extra.pauses_sent);
    }

    /// Prefetches the pause state of the ports of `switch` at which a pause of the port or of its peer may soon begin
    /// or end.
    #[inline(always)]
    pub(crate) fn prefetch_likely_pauses(&self, switch: &Switch) {
        for (n, (output, input)) in self.ports_of(switch).enumerate() {
            if output.paused != 0 || !input.is_far_from_limits() {
                let extra = &self.extras[switch.facts.first_port + n as u32];
                prefetch_at(extra);
                prefetch_at(&raw const extra.pauses_sent);
            }
        }
    }

    /// Handles a request of the peer of port `at` to pause or to resume.
    #[cold]
    pub(crate) fn take_pause(&mut self, at: u32, slot: Slot) {
        let Repr::Pause(pause) = self.pool.take(slot).repr else { return };
        self.tally.delivered[PacketKind::Pause] += 1;
        let expires = self.now.saturating_add(self.pause_time(at, pause.quanta));
        let port = &mut self.egress[at];
        let extra = &mut self.extras[at];
        let before = port.paused;
        if pause.quanta == 0 {
            port.paused &= !pause.classes;
        } else {
            port.paused |= pause.classes;
            of_bits(pause.classes).for_each(|class| extra.pauses[class].expires = expires);
            of_bits(pause.classes & !before).for_each(|class| extra.pauses[class].since = self.now);
        }
        let after = port.paused;
        self.note_pause(at, before, after);
        if after != 0 {
            self.arm_pause_timer(at);
        }
        if before & !after != 0 {
            self.kick(at);
        }
    }

    /// Updates the paused time of a port.
    fn note_pause(&mut self, at: u32, before: u8, after: u8) {
        let extra = &mut self.extras[at];
        if before == 0 && after != 0 {
            extra.paused_since = self.now;
        } else if before != 0 && after == 0 {
            extra.end_pause(self.now);
        }
        if RECORDED && before != after {
            self.note_paused(at);
        }
    }

    /// Sets a timer for the earlier of refresh and expiry, unless one is pending.
    fn arm_pause_timer(&mut self, at: u32) {
        let (port, entry) = (&self.egress[at], &self.ingress[at]);
        let extra = &mut self.extras[at];
        // An overdue pause frame leaves as soon as the port is free.
        let refreshes = entry.announced != 0 && extra.refresh_at > self.now;
        let refresh = if refreshes { extra.refresh_at } else { Instant::NEVER };
        let expiry = if extra.down { Instant::NEVER } else { extra.first_expiry(port.paused) };
        let due = refresh.min(expiry).max(self.now + Duration::from_ps(1));
        if due < extra.timer_at {
            extra.timer_at = due;
            if port.is_host {
                self.hosts[port.owner].timer_at = due.as_ps();
            } else {
                self.arm(port.owner, at, due.as_ps());
            }
        }
    }

    pub(crate) fn on_pause_timer(&mut self, at: u32) {
        self.events += 1;
        let port = &mut self.egress[at];
        let extra = &mut self.extras[at];
        if extra.timer_at != self.now {
            return;
        }
        extra.timer_at = Instant::NEVER;
        let before = port.paused;
        if !extra.down && extra.first_expiry(before) <= self.now {
            let expired = |class: &usize| extra.pauses[*class].expires <= self.now;
            port.paused = of_bits(before).filter(|class| !expired(class)).fold(0, |bits, class| bits | 1 << class);
            let after = port.paused;
            self.note_pause(at, before, after);
            self.kick(at);
        }
        if self.refresh_is_due(at) {
            self.note_pause_due(at);
            self.kick(at);
        }
        if self.ingress[at].announced != 0 || self.egress[at].paused != 0 {
            self.arm_pause_timer(at);
        }
    }
}
