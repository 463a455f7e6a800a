//! The sender's packets in flight: the in-flight queue and the retransmit queue (section 6, figure 5).

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};

use super::clock::rebase;
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
    /// Lost packets that are not sent again.
    pub(super) abandoned: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Packet<H> {
    cargo: H,
    bytes: u32,
    delivery: Delivery,
    /// Whether the packet was sent more than once.
    again: bool,
    path: u16,
    sent_at: Instant,
}

/// A packet that was sent: its last transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Notice<H> {
    pub(super) cargo: H,
    pub(super) bytes: u32,
    pub(super) seq: u32,
    pub(super) again: bool,
    pub(super) path: u16,
    pub(super) sent_at: Instant,
}

impl<H: Copy> Packet<H> {
    fn notice(&self, seq: u32) -> Notice<H> {
        let Self { cargo, bytes, again, path, sent_at, .. } = *self;
        Notice { cargo, bytes, seq, again, path, sent_at }
    }
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
        Self { first, packets: VecDeque::new(), lost: VecDeque::new(), in_flight: 0, lost_bytes: 0, abandoned: 0 }
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
        let delivery = Delivery::InFlight;
        self.packets.push_back(Packet { cargo, bytes, delivery, again: false, path: 0, sent_at: now });
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
        (packet.delivery, packet.sent_at, packet.again) = (Delivery::InFlight, now, true);
        let (bytes, cargo) = (u64::from(packet.bytes), packet.cargo);
        self.lost_bytes -= bytes;
        self.in_flight += bytes;
        Some((seq, cargo))
    }

    /// Records the path of packet `seq`, which was sent last.
    pub(super) fn set_path(&mut self, numbers: Numbers, seq: u32, path: u16) {
        if let Some(packet) = self.get_mut(numbers, seq) {
            packet.path = path;
        }
    }

    /// Returns the last transmission of packet `seq` if the packet is in flight.
    pub(super) fn get_in_flight(&self, numbers: Numbers, seq: u32) -> Option<Notice<H>> {
        let packet = self.get(numbers, seq).filter(|packet| packet.delivery == Delivery::InFlight)?;
        Some(packet.notice(seq))
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
    pub(super) fn acknowledge(&mut self, numbers: Numbers, seq: u32, freed: &mut impl FnMut(Notice<H>)) {
        let Some(packet) = self.get_mut(numbers, seq) else { return };
        let (delivery, notice) = (packet.delivery, packet.notice(seq));
        packet.delivery = Delivery::Arrived;
        self.settle(delivery, notice, freed);
        while self.packets.front().is_some_and(|packet| packet.delivery == Delivery::Arrived) {
            self.packets.pop_front();
            self.first = numbers.add(self.first, 1);
        }
    }

    /// Marks all packets before `seq` as arrived.
    pub(super) fn acknowledge_to(&mut self, numbers: Numbers, seq: u32, freed: &mut impl FnMut(Notice<H>)) {
        while numbers.is_after(seq, self.first) {
            let Some(packet) = self.packets.pop_front() else { break };
            let notice = packet.notice(self.first);
            self.first = numbers.add(self.first, 1);
            self.settle(packet.delivery, notice, freed);
        }
        while self.packets.front().is_some_and(|packet| packet.delivery == Delivery::Arrived) {
            self.packets.pop_front();
            self.first = numbers.add(self.first, 1);
        }
        if self.lost_bytes == 0 && !self.lost.is_empty() {
            self.lost.clear();
        }
    }

    #[inline]
    fn settle(&mut self, delivery: Delivery, notice: Notice<H>, freed: &mut impl FnMut(Notice<H>)) {
        let bytes = u64::from(notice.bytes);
        match delivery {
            Delivery::InFlight => self.in_flight -= bytes,
            Delivery::Lost => self.lost_bytes -= bytes,
            Delivery::Arrived => return,
        }
        freed(notice);
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

    /// Marks the packets before `end` as lost for which `lost_from` gives a time that has passed; returns the earliest
    /// time that has not.
    pub(super) fn judge(
        &mut self,
        numbers: Numbers,
        now: Instant,
        end: u32,
        mut lost_from: impl FnMut(&Notice<H>) -> Option<Instant>,
    ) -> Instant {
        let mut next = Instant::NEVER;
        let places = numbers.distance(self.first, end).max(0) as usize;
        for (place, packet) in (0..).zip(self.packets.iter_mut().take(places)) {
            if packet.delivery != Delivery::InFlight {
                continue;
            }
            let notice = packet.notice(numbers.add(self.first, place));
            match lost_from(&notice) {
                Some(at) if at <= now => {
                    packet.delivery = Delivery::Lost;
                    self.in_flight -= u64::from(packet.bytes);
                    self.lost_bytes += u64::from(packet.bytes);
                    self.lost.push_back(notice.seq);
                }
                Some(at) => next = next.min(at),
                None => {}
            }
        }
        next
    }

    /// Gives up all lost packets: as if they had arrived.
    pub(super) fn abandon_lost(&mut self, numbers: Numbers) {
        self.lost.clear();
        self.lost_bytes = 0;
        for packet in self.packets.iter_mut().filter(|packet| packet.delivery == Delivery::Lost) {
            packet.delivery = Delivery::Arrived;
            self.abandoned += 1;
        }
        while self.packets.front().is_some_and(|packet| packet.delivery == Delivery::Arrived) {
            self.packets.pop_front();
            self.first = numbers.add(self.first, 1);
        }
    }

    /// Moves the times at which packets were sent.
    pub(super) fn rebase(&mut self, by: Duration) {
        for packet in &mut self.packets {
            rebase(&mut packet.sent_at, by);
        }
    }

    /// Returns the cargo of the packets that are not known to have arrived, in order.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = &H> {
        self.packets.iter().filter(|packet| packet.delivery != Delivery::Arrived).map(|packet| &packet.cargo)
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
