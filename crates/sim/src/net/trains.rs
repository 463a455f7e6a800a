//! Trains: packets of one queue pair that a host receives, or sends, back to back.
//!
//! Where most expected data is not answered (RoCE), its arrival affects its receiver alone, so it can be handled before
//! packets that the host sends meanwhile. The transmission of one queue pair then has few interruptions, and its engine
//! is asked once for many packets ([`Nic::train`](selvedge_nic::Nic::train)).

use selvedge_switch::busy_ports::NEVER;
use selvedge_switch::descriptor::{Descriptor, Slot, TRAIN_STEP};
use selvedge_telemetry::PacketKind;
use selvedge_units::Instant;

use super::host::Host;
use super::pool::{LONGEST, LONGEST_STEP};
use crate::kernel::inbox::WriteMessage;
use crate::net::partition::{Partition, fold};

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles arrivals until `last`, as long as they affect only their receivers; returns the number of these packets.
    #[inline(never)]
    pub(super) fn take_ahead(&mut self, host: u32, inbox: &[Descriptor], last: u64) -> usize {
        let begin = self.edge.calendar.begin();
        let Some(last) = last.checked_sub(begin) else { return 0 };
        let is_early = |packet: &&Descriptor| u64::from(packet.at) <= last;
        let Host { nic, digest, .. } = &mut self.edge.hosts[host];
        let mut unread = inbox;
        while let Some(first) = unread.first().filter(is_early)
            && let Some(mut incoming) = nic.incoming(self.edge.pool.first(first.slot).0)
        {
            let mut hash = *digest;
            for packet in unread.iter().take_while(is_early) {
                let (first, nth) = self.edge.pool.first(packet.slot);
                let at = Instant::from_ps(begin + u64::from(packet.at));
                if packet.takes_slow_path() || !incoming.take(at, first, nth) {
                    break;
                }
                hash = fold(hash, at, self.edge.pool.name(packet.slot));
                self.edge.pool.release(packet.slot);
            }
            *digest = hash;
            let taken = incoming.end() as usize;
            if taken == 0 {
                break;
            }
            unread = &unread[taken..];
        }
        let count = inbox.len() - unread.len();
        self.net.events += count as u64;
        self.edge.tally.delivered[PacketKind::Data] += count as u64;
        count
    }

    /// Sends packets of the queue pair whose turn it is back to back, before `until`, when another event happens.
    #[inline(never)]
    pub(super) fn send_train(&mut self, host: u32, at: u32, until: u64) {
        let (state, port) = (&mut self.edge.hosts[host], &mut self.net.egress[at]);
        let train =
            state.nic.train(&state.params, port.paused).filter(|train| train.count > 0 && !port.takes_slow_path());
        // From memory, the train is copied as a whole.
        let Some(train) = std::hint::black_box(&train) else { return };
        // Packets of the train go before a wake-up of the NIC at the same time.
        let until = until.min(state.wake_at().saturating_add(1));
        let descriptor = Descriptor::of(&train.first, 0, self.edge.fabric.attachment[train.first.dst.index()]);
        // From memory, the descriptor is copied as a whole.
        let descriptor = std::hint::black_box(&descriptor);
        let frame = u64::from(descriptor.frame);
        let (step, delay) = (port.plain_serialisation(frame + self.net.params.gap), port.delay.as_ps());
        let begin = self.edge.calendar.begin();
        let mut outlet = self.edge.calendar.outlet(port.peer_node, port.peer_port);
        let (mut now, mut sent) = (port.busy_until, 0);
        // Packets that can be neither marked nor trimmed stay unchanged.
        let is_left_alone =
            !descriptor.is_markable() && self.net.params.queueing.trims.is_none() && self.net.tors.is_empty();
        let most = if is_left_alone && step <= LONGEST_STEP { LONGEST } else { 1 };
        while now.as_ps() < until && sent < train.count {
            let in_time = (until - now.as_ps()).div_ceil(step.as_ps());
            let count = in_time.min(train.count - sent).min(most);
            let mut slot = self.edge.pool.put_train(train, sent, count, now, step);
            for _ in 0..count {
                now += step;
                outlet.send(now.as_ps() + delay - begin, WithSlot(descriptor, slot));
                slot = slot.wrapping_add(TRAIN_STEP);
            }
            sent += count;
        }
        self.net.events += sent;
        port.add_frames(now, sent, sent * frame);
        state.nic.end_train(&state.params, now, sent);
        port.free_pending = state.nic.is_ready();
        state.free_at = if port.free_pending { now.as_ps() } else { NEVER };
    }
}

/// Copy of a descriptor, except for the packet's slot in the pool.
struct WithSlot<'a>(&'a Descriptor, Slot);

impl WriteMessage<Descriptor> for WithSlot<'_> {
    #[inline(always)]
    unsafe fn write(self, place: *mut Descriptor) {
        // SAFETY: the caller passes a place in a block of an inbox.
        unsafe {
            place.write(*self.0);
            (*place).slot = self.1;
        }
    }
    #[inline(always)]
    fn show<R>(self, see: impl FnOnce(&Descriptor) -> R) -> R {
        see(&Descriptor { slot: self.1, ..*self.0 })
    }
}
