//! The sender's packets in flight: the in-flight queue and the retransmit queue (section 6, figure 5).

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};

use super::numbers::Numbers;

/// Packets sent and not acknowledged, in the order of their sequence numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Window<H> {
    /// The lowest unacknowledged number.
    first: u32,
    packets: VecDeque<Packet<H>>,
    /// Numbers to retransmit, in the order of their detection. Numbers acknowledged since are skipped.
    lost: VecDeque<u32>,
    /// Bytes of packets in flight, and of lost ones.
    pub(super) in_flight: u64,
    pub(super) lost_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Packet<H> {
    cargo: H,
    bytes: u32,
    delivery: Delivery,
    sent_at: Instant,
}

/// Delivery state of a packet, as known to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Delivery {
    InFlight,
    Lost,
    Arrived,
}

impl<H: Copy> Window<H> {
    pub(super) fn new(first: u32) -> Self {
        Self { first, packets: VecDeque::new(), lost: VecDeque::new(), in_flight: 0, lost_bytes: 0 }
    }

    pub(super) fn first(&self) -> u32 {
        self.first
    }
    /// Returns the number of the next new packet.
    pub(super) fn next(&self, numbers: Numbers) -> u32 {
        numbers.add(self.first, self.packets.len() as u32)
    }
    /// Returns the number of sequence numbers from the first up to, not including, the next.
    pub(super) fn len(&self) -> u32 {
        self.packets.len() as u32
    }

    /// Records the transmission of a new packet; returns its number.
    pub(super) fn send(&mut self, numbers: Numbers, now: Instant, cargo: H, bytes: u32) -> u32 {
        let seq = self.next(numbers);
        self.packets.push_back(Packet { cargo, bytes, delivery: Delivery::InFlight, sent_at: now });
        self.in_flight += u64::from(bytes);
        seq
    }

    /// Returns the bytes of the next packet to retransmit.
    #[inline(never)]
    pub(super) fn lost_front(&mut self, numbers: Numbers) -> Option<u32> {
        while let Some(&seq) = self.lost.front() {
            if let Some(packet) = self.get(numbers, seq).filter(|packet| packet.delivery == Delivery::Lost) {
                return Some(packet.bytes);
            }
            self.lost.pop_front();
        }
        None
    }

    /// Retransmits the first lost packet; returns its number and cargo.
    pub(super) fn resend(&mut self, numbers: Numbers, now: Instant) -> Option<(u32, H)> {
        if self.lost_bytes == 0 {
            return None;
        }
        self.lost_front(numbers)?;
        let seq = self.lost.pop_front()?;
        let packet = self.get_mut(numbers, seq)?;
        (packet.delivery, packet.sent_at) = (Delivery::InFlight, now);
        let (bytes, cargo) = (u64::from(packet.bytes), packet.cargo);
        self.lost_bytes -= bytes;
        self.in_flight += bytes;
        Some((seq, cargo))
    }

    /// Marks packet `seq` as lost, whether trimmed or timed out; returns its bytes if it was in flight.
    pub(super) fn lose(&mut self, numbers: Numbers, seq: u32) -> Option<u32> {
        let packet = self.get_mut(numbers, seq).filter(|packet| packet.delivery == Delivery::InFlight)?;
        packet.delivery = Delivery::Lost;
        let bytes = packet.bytes;
        self.in_flight -= u64::from(bytes);
        self.lost_bytes += u64::from(bytes);
        self.lost.push_back(seq);
        Some(bytes)
    }

    /// Marks packet `seq` as arrived.
    pub(super) fn acknowledge(&mut self, numbers: Numbers, seq: u32, freed: &mut impl FnMut(H)) {
        let Some(packet) = self.get_mut(numbers, seq) else { return };
        let (delivery, bytes, cargo) = (packet.delivery, u64::from(packet.bytes), packet.cargo);
        packet.delivery = Delivery::Arrived;
        self.settle(delivery, bytes, cargo, freed);
        while self.packets.front().is_some_and(|packet| packet.delivery == Delivery::Arrived) {
            self.packets.pop_front();
            self.first = numbers.add(self.first, 1);
        }
    }

    /// Marks all packets before `seq` as arrived.
    pub(super) fn acknowledge_to(&mut self, numbers: Numbers, seq: u32, freed: &mut impl FnMut(H)) {
        while numbers.is_after(seq, self.first) {
            let Some(packet) = self.packets.pop_front() else { break };
            self.first = numbers.add(self.first, 1);
            self.settle(packet.delivery, u64::from(packet.bytes), packet.cargo, freed);
        }
        while self.packets.front().is_some_and(|packet| packet.delivery == Delivery::Arrived) {
            self.packets.pop_front();
            self.first = numbers.add(self.first, 1);
        }
        if self.lost_bytes == 0 && !self.lost.is_empty() {
            self.lost.clear();
        }
    }

    fn settle(&mut self, delivery: Delivery, bytes: u64, cargo: H, freed: &mut impl FnMut(H)) {
        match delivery {
            Delivery::InFlight => self.in_flight -= bytes,
            Delivery::Lost => self.lost_bytes -= bytes,
            Delivery::Arrived => return,
        }
        freed(cargo);
    }

    /// Marks all packets as lost that were sent `rto` ago or earlier; returns when the next of the others will expire,
    /// and whether any packet was marked.
    pub(super) fn expire(&mut self, numbers: Numbers, now: Instant, rto: Duration) -> (Instant, bool) {
        let (mut next, mut any) = (Instant::NEVER, false);
        for (place, packet) in (0..).zip(&mut self.packets) {
            if packet.delivery != Delivery::InFlight {
                continue;
            }
            let due = packet.sent_at.saturating_add(rto);
            if due <= now {
                any = true;
                packet.delivery = Delivery::Lost;
                self.in_flight -= u64::from(packet.bytes);
                self.lost_bytes += u64::from(packet.bytes);
                self.lost.push_back(numbers.add(self.first, place));
            } else {
                next = next.min(due);
            }
        }
        (next, any)
    }

    /// Removes and returns the packets that have not arrived, in order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (H, u32)> {
        self.lost.clear();
        (self.in_flight, self.lost_bytes) = (0, 0);
        let packets = core::mem::take(&mut self.packets);
        packets
            .into_iter()
            .filter(|packet| packet.delivery != Delivery::Arrived)
            .map(|packet| (packet.cargo, packet.bytes))
    }

    fn get(&self, numbers: Numbers, seq: u32) -> Option<&Packet<H>> {
        self.packets.get(usize::try_from(numbers.distance(self.first, seq)).ok()?)
    }
    fn get_mut(&mut self, numbers: Numbers, seq: u32) -> Option<&mut Packet<H>> {
        self.packets.get_mut(usize::try_from(numbers.distance(self.first, seq)).ok()?)
    }
}
