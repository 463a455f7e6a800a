//! Turns at the link.

use selvedge_units::{Bytes, Instant};
use selvedge_wire::{Data, Ecn, Packet, Repr};

use super::state::SendQp;
use super::{FIRST_PSN, QueuePairs, RdmaParams};
use crate::endpoint::Context;

impl QueuePairs {
    /// Writes the next packet of the queue pair `entry` to `packet`, if it still has one to send.
    #[inline(always)]
    pub(super) fn transmit(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32, packet: &mut Packet) -> bool {
        let Some(state) = self.senders.get_mut(entry) else {
            self.senders.free(entry); // closed while it waited for its turn
            return false;
        };
        let (last, last_payload, frames) = (state.last, state.last_payload, cx.frames);
        let payload = |seq| if seq == last { last_payload } else { frames.mtu };
        let on_wire = |seq| Bytes::new(u64::from(payload(seq)) + u64::from(frames.header) + u64::from(frames.gap));
        let segment = state.sender.poll_transmit(cx.cx, &mut self.shared, on_wire);
        if let Some(segment) = segment {
            let data = Data {
                psn: segment.seq.to_psn(FIRST_PSN),
                payload: payload(segment.seq),
                last: segment.seq == last,
                retransmission: segment.retransmission,
                trimmed: false,
            };
            *packet = state.packet(cx, cx.now(), entry, data);
            cx.port.stats.data_sent += 1;
            cx.port.stats.retransmissions += u64::from(segment.retransmission);
        }
        state.ask(cx, entry);
        segment.is_some()
    }

    /// Returns the packets that repeated turns of `entry` would bring if nothing else happened, where the queue pair
    /// has sent before and its class is not in `paused`. The last packet of its message is not included.
    #[inline]
    pub fn train(&self, cx: &Context<'_, '_, RdmaParams>, entry: u32, paused: u8) -> Option<Train> {
        let state = self.senders.get(entry)?;
        if paused & (1 << state.class) != 0 {
            return None;
        }
        let packets = state.sender.train();
        let count = packets.end.min(state.last).checked_since(packets.start)?;
        let data = Data {
            psn: packets.start.to_psn(FIRST_PSN),
            payload: cx.frames.mtu,
            last: false,
            retransmission: false,
            trimmed: false,
        };
        Some(Train { first: state.packet(cx, Instant::ZERO, entry, data), count })
    }

    /// Notes that `packets` packets of a [`train`](QueuePairs::train) of `entry` have left, the last before now. Takes
    /// the place of the turns in which they left, including the one that `entry` has been given.
    #[inline]
    pub fn end_train(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32, packets: u64) {
        let Some(state) = self.senders.get_mut(entry) else { return };
        state.sender.on_train_sent(cx.now(), packets);
        cx.port.stats.data_sent += packets;
        state.ask(cx, entry);
    }
}

impl SendQp {
    /// Creates a packet of the queue pair, which sends as `entry`.
    #[inline(always)]
    fn packet(&self, cx: &Context<'_, '_, RdmaParams>, sent_at: Instant, entry: u32, data: Data) -> Packet {
        Packet {
            sent_at,
            src: cx.port.host,
            dst: self.dst,
            qp: self.qp,
            slot: cx.slot(entry),
            entropy: self.entropy,
            frame: data.payload + cx.frames.header,
            class: self.class,
            ecn: if cx.frames.ecn_capable { Ecn::Capable } else { Ecn::NotCapable },
            repr: Repr::Data(data),
        }
    }
}

/// A train: full-size packets of one flow back to back.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    /// First packet of the train, without its sending time.
    pub first: Packet,
    /// Number of packets.
    pub count: u64,
}

impl Train {
    /// Writes to `packet` the packet of the train that `before` others precede and that leaves at `now`.
    #[inline(always)]
    pub fn write(&self, before: u64, now: Instant, packet: &mut Packet) {
        *packet = self.first;
        packet.sent_at = now;
        if let Repr::Data(data) = &mut packet.repr {
            data.psn = data.psn.plus(before as u32);
        }
    }
}
