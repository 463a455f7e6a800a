//! Priority flow control (802.1Qbb).
//!
//! An input that fills up pauses its peer: `Ingress::shall_pause` tells which classes should be paused,
//! `Ingress::announced` which the peer has been told of. Where the two differ, the next frame that the port sends is a
//! pause frame, which takes its time on the wire like any other; a change that is reverted before it is sent costs
//! nothing. A pause expires unless it is refreshed, so a lost resume frame does not stop a link for ever. A refresh
//! depends on time alone: `announced` keeps its value until the peer is told otherwise.

use selvedge_prefetch::prefetch_at;
use selvedge_units::{Duration, Instant};
use selvedge_wire::Pause;

use crate::descriptor::Slot;
use crate::environment::{Environment, Note};
use crate::port::of_bits;
use crate::switch::Switch;
use crate::switches::Switches;

/// Bit times per quantum.
const QUANTUM_BITS: u64 = 512;

impl Switches {
    /// Sends a pause or resume frame through port `at`, which is free.
    #[cold]
    pub fn send_pause<E: Environment>(&mut self, env: &mut E, at: u32) {
        let quanta = self.params.quanta;
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
            self.arm_pause_timer(env, at);
        }
        self.note_pause_due(at);
        let packet = env.put_pause(self.now, pause);
        self.transmit(env, at, &packet);
        self.return_to_do_more(at);
    }

    /// Returns how long a pause of `quanta` quanta lasts at port `at`.
    fn pause_time(&self, at: u32, quanta: u16) -> Duration {
        self.egress[at].serialisation(u64::from(quanta) * QUANTUM_BITS / 8, || self.extras[at].rate)
    }

    /// Returns whether pauses at port `at` last so long that none ends within `window` picoseconds.
    pub fn has_lasting_pauses(&self, at: u32, window: u64) -> bool {
        self.pause_time(at, self.params.quanta).as_ps() >= window
    }

    /// Updates whether a pause frame is due: compares the pauses that the peer of port `at` should know with those that
    /// it has been told of.
    pub fn note_pause_due(&mut self, at: u32) {
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
    pub fn prefetch_pause(&self, at: u32) {
        let extra = &self.extras[at];
        prefetch_at(extra);
        prefetch_at(&raw const extra.pauses_sent);
    }

    /// Prefetches the pause state of the ports of `switch` at which a pause of the port or of its peer may soon begin
    /// or end.
    #[inline(always)]
    pub fn prefetch_likely_pauses(&self, switch: &Switch) {
        for (n, (output, input)) in self.ports_of(switch).enumerate() {
            if output.paused != 0 || !input.is_far_from_limits() {
                let extra = &self.extras[switch.facts.first_port + n as u32];
                prefetch_at(extra);
                prefetch_at(&raw const extra.pauses_sent);
            }
        }
    }

    /// Handles a request of the peer of port `at` to pause or to resume. Returns whether the port is that of a host who
    /// may send again: its NIC must be asked.
    #[cold]
    pub fn take_pause<E: Environment>(&mut self, env: &mut E, at: u32, slot: Slot) -> bool {
        let Some(pause) = env.take_pause(slot) else { return false };
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
        self.note_pause(env, at, before, after);
        if after != 0 {
            self.arm_pause_timer(env, at);
        }
        before & !after != 0 && self.kick_or_report(env, at)
    }

    /// Makes port `at` serve what waits if it belongs to a switch; returns whether it belongs to a host.
    fn kick_or_report<E: Environment>(&mut self, env: &mut E, at: u32) -> bool {
        let is_host = self.egress[at].is_host;
        if !is_host {
            self.kick(env, at);
        }
        is_host
    }

    /// Updates the paused time of a port.
    fn note_pause<E: Environment>(&mut self, env: &mut E, at: u32, before: u8, after: u8) {
        let extra = &mut self.extras[at];
        if before == 0 && after != 0 {
            extra.paused_since = self.now;
        } else if before != 0 && after == 0 {
            extra.end_pause(self.now);
        }
        if E::RECORDED && before != after {
            env.note(self, Note::Paused { at });
        }
    }

    /// Sets a timer for the earlier of refresh and expiry, unless one is pending.
    fn arm_pause_timer<E: Environment>(&mut self, env: &mut E, at: u32) {
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
                env.set_host_timer(port.owner, due.as_ps());
            } else {
                self.arm(port.owner, at, due.as_ps());
            }
        }
    }

    /// Handles the timer of port `at`: a pause may have expired, or the peer may have to be reminded of it. Returns
    /// whether the port belongs to a host that may send again: its NIC must be asked.
    pub fn on_pause_timer<E: Environment>(&mut self, env: &mut E, at: u32) -> bool {
        self.events += 1;
        let port = &mut self.egress[at];
        let extra = &mut self.extras[at];
        if extra.timer_at != self.now {
            return false;
        }
        extra.timer_at = Instant::NEVER;
        let before = port.paused;
        let mut may_send = false;
        if !extra.down && extra.first_expiry(before) <= self.now {
            let expired = |class: &usize| extra.pauses[*class].expires <= self.now;
            port.paused = of_bits(before).filter(|class| !expired(class)).fold(0, |bits, class| bits | 1 << class);
            let after = port.paused;
            self.note_pause(env, at, before, after);
            may_send = self.kick_or_report(env, at);
        }
        if self.refresh_is_due(at) {
            self.note_pause_due(at);
            self.kick(env, at);
        }
        if self.ingress[at].announced != 0 || self.egress[at].paused != 0 {
            self.arm_pause_timer(env, at);
        }
        may_send
    }
}
