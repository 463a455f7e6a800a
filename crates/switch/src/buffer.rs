//! Admission to a switch's buffer, and release of buffer space.
//!
//! Design notes.
//! 1. *Accounts.* An input keeps one account for each of its lossless classes, with thresholds, headroom and pauses of
//!    its own (802.1Qbb), and one for all lossy classes together. No class takes the space of another.
//! 2. *The plain case*: inputs have buffers of their own, and all classes in use share one account, which then lies in
//!    [`Ingress`](crate::port::Ingress): one lossless class, or none.
//! 3. *Short queues.* Switches that trim consider the output's queues alone ([`Line::room`](crate::queue::Line)), and
//!    pause no peer: where flows take no turns, they keep no accounts.

use selvedge_telemetry::DropReason;

use crate::descriptor::Descriptor;
use crate::environment::{Environment, Note};
use crate::switches::{Switches, Way};
use crate::{fair, shares, trimming};

/// Limits of a switch's buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Buffer {
    /// Each input has a buffer of its own, with fixed limits.
    PerInput,
    /// All ports share a buffer by dynamic thresholds (Choudhury and Hahne, ToN 1998).
    Shared(Thresholds),
    /// Queues of outputs have limits; inputs have none.
    PerOutput,
}

/// Dynamic thresholds of a buffer that all ports share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thresholds {
    /// Multiple of the free bytes that a lossy output queue may hold; above zero.
    pub egress_alpha: f64,
    /// Multiple of the free bytes that a lossless class of an input may hold before its peer is paused; above zero.
    pub ingress_alpha: f64,
}

/// Behaviour of outputs beyond serving their lines, in any combination.
#[derive(Clone, Copy, Default)]
pub struct Queueing {
    /// Packets that find their queue full are cut to their headers.
    pub trims: Option<trimming::Rules>,
    /// Flows take turns within a class; headers of trimmed packets do not.
    pub fair: Option<fair::Rules>,
    /// Some classes share the output by weight.
    pub shares: Option<shares::Rules>,
}

impl Queueing {
    /// Returns the bytes of `class` that may wait for one output, where inputs set no limit.
    pub fn room(&self, class: u8) -> u64 {
        self.trims.map_or(u64::MAX, |rules| rules.room(class))
    }

    /// Returns the rules by which flows of `class` take turns, if they do.
    #[inline]
    pub fn fair_for(&self, class: u8) -> Option<&fair::Rules> {
        self.fair.as_ref().filter(|_| self.trims.is_none_or(|trims| trims.class != class))
    }
}

/// Account of some classes of one input: bytes held, and limits.
#[derive(Clone, Copy)]
pub struct Account {
    /// Bytes that wait (without those in the headroom of a shared buffer).
    pub buffered: u64,
    /// Bytes in the headroom of a shared buffer.
    pub in_headroom: u64,
    /// Fixed limits. Shared buffers compute their limits.
    pub limits: InputLimits,
    /// Headroom in a shared buffer.
    pub headroom: u64,
}

/// Fixed limits of an input's buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InputLimits {
    /// X-OFF threshold: the peer is paused above it.
    pub xoff: u64,
    /// X-ON threshold: the pause ends at it and below.
    pub xon: u64,
    /// Capacity: nothing is accepted above it.
    pub most: u64,
}

impl InputLimits {
    /// Limits that nothing reaches.
    pub const NONE: Self = Self { xoff: u64::MAX, xon: u64::MAX, most: u64::MAX };

    /// Returns [`Ingress::slow_above`](crate::port::Ingress::slow_above) and `slow_below` while the peer is not paused.
    pub fn while_open(&self) -> (u64, u64) {
        (self.xoff.min(self.most), 0)
    }

    /// Returns [`Ingress::slow_above`](crate::port::Ingress::slow_above) and `slow_below` while the peer is paused.
    fn while_paused(&self) -> (u64, u64) {
        (self.most, self.xon.saturating_add(1))
    }
}

impl Account {
    /// Creates an empty account; `headroom` is in bytes.
    pub const fn new(limits: InputLimits, headroom: u64) -> Self {
        Self { buffered: 0, in_headroom: 0, limits, headroom }
    }
}

/// Separation of the classes of a fabric into accounts.
#[derive(Clone, Copy)]
pub struct Accounting {
    /// Whether the plain case applies: see design note 2.
    pub is_plain: bool,
    /// Bit per class: lossless.
    pub lossless: u8,
    /// Account of each class: its own number, or that of the first lossy class.
    home: [u8; 8],
}

impl Accounting {
    /// Returns the separation of `classes` classes, of which those marked in `lossless` are lossless; `per_input`: each
    /// input has a buffer of its own.
    pub fn new(classes: u32, lossless: u8, per_input: bool) -> Self {
        let first_lossy = lossless.trailing_ones() as u8;
        let home = std::array::from_fn(|class| if lossless & (1 << class) != 0 { class as u8 } else { first_lossy });
        let lossy = u32::from(lossless.count_ones() < classes);
        let accounts = lossless.count_ones() + lossy;
        Self { is_plain: per_input && accounts == 1, lossless, home }
    }

    /// Returns whether the peer is paused rather than packets of `class` dropped.
    pub fn is_lossless(&self, class: u8) -> bool {
        self.lossless & (1 << class) != 0
    }
}

impl Switches {
    /// Admits `frame` bytes to the buffer, or returns the reason for a drop. Pauses the peer of its input where the
    /// class is lossless and the input is filling up.
    #[inline(always)]
    pub fn admit<E: Environment>(&mut self, env: &mut E, way: Way, frame: u64, class: u8) -> Result<(), DropReason> {
        let port = &mut self.ingress[way.at];
        let buffered = port.buffered + frame;
        if buffered > port.slow_above {
            return self.admit_slow(env, way, frame, class);
        }
        port.buffered = buffered;
        Ok(())
    }

    /// Admits a frame like [`Switches::admit`], but where the plain case has to pause or to refuse, and in all other
    /// cases.
    #[inline(never)]
    fn admit_slow<E: Environment>(&mut self, env: &mut E, way: Way, frame: u64, class: u8) -> Result<(), DropReason> {
        if !self.params.accounting.is_plain {
            return self.admit_by_class(env, way, frame, class);
        }
        let Way { at, out, .. } = way;
        let port = &mut self.ingress[at];
        let limits = self.extras[at].limits;
        let buffered = port.buffered + frame;
        if buffered > limits.most {
            let is_lossy = self.params.accounting.lossless == 0;
            return Err(if is_lossy { DropReason::BufferFull } else { DropReason::HeadroomFull });
        }
        port.buffered = buffered;
        if buffered > limits.xoff && port.pausing == 0 {
            (port.slow_above, port.slow_below) = limits.while_paused();
            self.pause(env, at, out, frame, self.params.accounting.lossless);
        }
        Ok(())
    }

    /// Frees the buffer space of a packet that entered through port `at`.
    #[inline(always)]
    pub fn release<E: Environment>(&mut self, env: &mut E, switch: u32, at: u32, frame: u64, class: u8) {
        let port = &mut self.ingress[at];
        let buffered = port.buffered - frame;
        if buffered < port.slow_below {
            return self.release_slow(env, switch, at, frame, class);
        }
        port.buffered = buffered;
    }

    /// Frees buffer space like [`Switches::release`], but where the plain case has to end a pause, and in all other
    /// cases.
    #[inline(never)]
    fn release_slow<E: Environment>(&mut self, env: &mut E, switch: u32, at: u32, frame: u64, class: u8) {
        if !self.params.accounting.is_plain {
            return self.release_by_class(env, switch, at, frame, class);
        }
        let port = &mut self.ingress[at];
        port.buffered -= frame;
        (port.slow_above, port.slow_below) = self.extras[at].limits.while_open();
        self.resume(env, at, self.params.accounting.lossless);
    }

    /// Admits a frame like [`Switches::admit`], but by account.
    #[inline(never)]
    fn admit_by_class<E: Environment>(
        &mut self,
        env: &mut E,
        way: Way,
        frame: u64,
        class: u8,
    ) -> Result<(), DropReason> {
        let Way { switch, at, out } = way;
        let index = self.account_of(at, class);
        let is_lossless = self.params.accounting.is_lossless(class);
        let in_headroom = match self.params.buffer {
            Buffer::PerInput => {
                let account = &self.accounts[index];
                if account.buffered + frame > account.limits.most {
                    return Err(if is_lossless { DropReason::HeadroomFull } else { DropReason::BufferFull });
                }
                false
            }
            Buffer::Shared(shared) if is_lossless => self.share_lossless(&shared, switch, index, frame)?,
            Buffer::Shared(shared) => {
                let waiting = self.lines[self.line_of(out, class)].bytes;
                self.share_lossy(&shared, switch, waiting, frame)?;
                false
            }
            // Behind the next packet, those of each flow wait apart ([`fair`]).
            Buffer::PerOutput
                if self.params.queueing.fair_for(class).is_some()
                    && !self.lines[self.line_of(out, class)].is_empty() =>
            {
                return Err(DropReason::BufferFull);
            }
            Buffer::PerOutput => false,
        };
        let (account, port) = (&mut self.accounts[index], &mut self.ingress[at]);
        if in_headroom {
            account.in_headroom += frame;
            self.switches[switch].headroom_used += frame;
        } else {
            account.buffered += frame;
            self.switches[switch].shared_used += frame;
        }
        port.buffered += frame;
        if is_lossless && port.pausing & (1 << class) == 0 && self.is_full(switch, index) {
            self.pause(env, at, out, frame, 1 << class);
        }
        Ok(())
    }

    /// Frees the buffer space of a packet that entered through port `at` and leaves through port `out`.
    #[inline]
    pub fn release_sent<E: Environment>(&mut self, env: &mut E, switch: u32, at: u32, out: u32, frame: u64, class: u8) {
        self.release(env, switch, at, frame, class);
        if !self.params.accounting.is_plain {
            if let Some(&rules) = self.params.queueing.fair_for(class) {
                self.stage(switch, out, class, &rules);
            }
            if let Some(rules) = &self.params.queueing.trims {
                self.trimmers[out].keep_turn(&mut self.egress[out], class, rules.turns());
            }
        }
    }

    /// Returns the bytes of a lossless `class` that may be added to those that entered through port `at` without taking
    /// headroom, which is for arrivals until a pause takes effect. `None` if the class is lossy.
    pub fn lossless_room(&self, switch: u32, at: u32, class: u8) -> Option<u64> {
        if !self.params.accounting.is_lossless(class) {
            return None;
        }
        let (most, used) = match self.params.buffer {
            Buffer::PerInput if self.params.accounting.is_plain => {
                (self.extras[at].limits.xoff, self.ingress[at].buffered)
            }
            Buffer::PerInput => {
                let account = &self.accounts[self.account_of(at, class)];
                (account.limits.xoff, account.buffered)
            }
            Buffer::Shared(shared) => {
                let account = &self.accounts[self.account_of(at, class)];
                let most = self.threshold(&shared, switch).min(account.buffered + self.switches[switch].shared_free());
                (most, account.buffered + account.in_headroom)
            }
            Buffer::PerOutput => (u64::MAX, 0),
        };
        Some(most.saturating_sub(used))
    }

    /// Counts `frame` bytes that entered through port `at` as buffered, whatever the limits: the caller has checked
    /// that they fit below any threshold at which a peer is paused.
    pub fn hold(&mut self, switch: u32, at: u32, frame: u64, class: u8) {
        let port = &mut self.ingress[at];
        port.buffered += frame;
        if port.buffered > port.slow_above {
            debug_assert!(!self.params.accounting.is_plain, "there is room for it");
            let index = self.account_of(at, class);
            self.accounts[index].buffered += frame;
            self.switches[switch].shared_used += frame;
        }
    }

    /// Handles a packet that finds no buffer space to wait for its output.
    #[cold]
    #[inline(never)]
    pub fn refuse<E: Environment>(&mut self, env: &mut E, way: Way, packet: &Descriptor, reason: DropReason) {
        let Queueing { trims, .. } = self.params.queueing;
        match (trims, self.params.queueing.fair_for(packet.class).copied()) {
            (None, None) => self.drop_packet(env, way.at, packet.slot, reason),
            (Some(trims), None) => self.trim_one(env, way, packet, &trims),
            (None, Some(fair)) => self.wait_fairly(env, way, packet, &fair),
            (Some(trims), Some(fair)) => self.wait_or_trim(env, way, packet, &trims, &fair),
        }
    }

    /// Frees buffer space like [`Switches::release`], but by account: headroom first.
    #[inline(never)]
    fn release_by_class<E: Environment>(&mut self, env: &mut E, switch: u32, at: u32, frame: u64, class: u8) {
        let index = self.account_of(at, class);
        let account = &mut self.accounts[index];
        let from_headroom = account.in_headroom.min(frame);
        account.in_headroom -= from_headroom;
        account.buffered -= frame - from_headroom;
        let state = &mut self.switches[switch];
        state.shared_used -= frame - from_headroom;
        state.headroom_used -= from_headroom;
        let port = &mut self.ingress[at];
        port.buffered -= frame;
        if port.pausing & (1 << class) != 0 && self.has_room(switch, index) {
            self.resume(env, at, 1 << class);
        }
    }

    /// Checks whether a lossy queue may grow by a frame: it may hold `egress_alpha` times the free bytes of a shared
    /// buffer.
    fn share_lossy(&self, shared: &Thresholds, switch: u32, waiting: u64, frame: u64) -> Result<(), DropReason> {
        let free = self.switches[switch].shared_free();
        let fits = frame <= free && (waiting + frame) as f64 <= shared.egress_alpha * free as f64;
        if fits { Ok(()) } else { Err(DropReason::BufferFull) }
    }

    /// Returns whether a frame of a lossless class of an input goes into headroom. The class may hold `ingress_alpha`
    /// times the free bytes of a shared buffer, then its headroom, as far as the pool of all headroom suffices.
    ///
    /// # Errors
    /// If the frame fits nowhere.
    fn share_lossless(&self, shared: &Thresholds, switch: u32, account: u32, frame: u64) -> Result<bool, DropReason> {
        let state = &self.switches[switch];
        let free = state.shared_free();
        let account = &self.accounts[account];
        if frame <= free && (account.buffered + frame) as f64 <= shared.ingress_alpha * free as f64 {
            return Ok(false);
        }
        let fits =
            account.in_headroom + frame <= account.headroom && state.headroom_used + frame <= state.headroom_total;
        if fits { Ok(true) } else { Err(DropReason::HeadroomFull) }
    }

    /// Returns the account of `class` at port `at`.
    fn account_of(&self, at: u32, class: u8) -> u32 {
        at * self.params.classes + u32::from(self.params.accounting.home[usize::from(class)])
    }

    /// Returns whether the peer has to be paused because of an account.
    fn is_full(&self, switch: u32, account: u32) -> bool {
        let account = &self.accounts[account];
        match self.params.buffer {
            Buffer::PerInput => account.buffered > account.limits.xoff,
            Buffer::Shared(shared) => account.in_headroom > 0 || account.buffered > self.threshold(&shared, switch),
            Buffer::PerOutput => false,
        }
    }

    /// Returns whether an account permits the peer to resume.
    fn has_room(&self, switch: u32, account: u32) -> bool {
        let account = &self.accounts[account];
        match self.params.buffer {
            Buffer::PerInput => account.buffered <= account.limits.xon,
            Buffer::Shared(shared) => {
                let gap = self.params.xon_gap;
                let below = || account.buffered + gap <= self.threshold(&shared, switch);
                account.in_headroom == 0 && (account.buffered <= self.params.xon || below())
            }
            Buffer::PerOutput => true,
        }
    }

    /// Returns the bytes that a lossless class of an input may hold of a shared buffer now.
    fn threshold(&self, shared: &Thresholds, switch: u32) -> u64 {
        (shared.ingress_alpha * self.switches[switch].shared_free() as f64) as u64
    }

    /// Makes the peer of port `at` pause `classes`, after `frame` bytes for port `out` have filled the input.
    #[cold]
    fn pause<E: Environment>(&mut self, env: &mut E, at: u32, out: u32, frame: u64, classes: u8) {
        self.ingress[at].pausing |= classes;
        if E::RECORDED {
            env.note(self, Note::Filled { at, out, frame });
        }
        self.note_pause_due(at);
        self.kick(env, at);
    }

    /// Lets the peer of port `at` resume `classes`.
    #[cold]
    fn resume<E: Environment>(&mut self, env: &mut E, at: u32, classes: u8) {
        self.ingress[at].pausing &= !classes;
        self.note_pause_due(at);
        self.kick(env, at);
    }
}
