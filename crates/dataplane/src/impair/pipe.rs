//! One direction of the device: packets in flight.

use std::collections::BTreeMap;

use selvedge_units::{Bytes, Instant};

use super::class::{Class, classify};
use super::counts::Counts;
use super::damage;
use super::lane::Lane;

/// A queue of packets in flight, which are delivered at their times of arrival.
#[derive(Debug)]
pub struct Pipe {
    lane: Lane,
    /// Time when the last packet has been sent, at the rate of the pipe.
    free_at: Instant,
    /// Packets in flight, ordered by time of arrival, then by number.
    flying: BTreeMap<(Instant, u64), Packet>,
    /// Number of the next packet.
    next: u64,
    /// The highest number delivered so far, plus 1.
    delivered: u64,
    /// Buffers to be reused.
    spare: Vec<Vec<u8>>,
    counts: [Counts; Class::ALL.len()],
}

#[derive(Debug)]
struct Packet {
    class: Class,
    number: u64,
    bytes: Vec<u8>,
}

impl Pipe {
    /// Creates an empty pipe.
    pub fn new(lane: Lane) -> Self {
        Self {
            lane,
            free_at: Instant::ZERO,
            flying: BTreeMap::new(),
            next: 0,
            delivered: 0,
            spare: Vec::new(),
            counts: Default::default(),
        }
    }
    /// Returns the counters so far, in the order of [`Class::ALL`].
    pub const fn counts(&self) -> &[Counts; Class::ALL.len()] {
        &self.counts
    }
    /// Returns the time when the next packet arrives; `None` if none is in flight.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.flying.first_key_value().map(|((at, _), _)| *at)
    }

    /// Handles a packet that is sent: draws its fate and puts it in flight.
    pub fn handle_packet(&mut self, now: Instant, bytes: &[u8]) {
        let class = classify(bytes);
        let fate = self.lane.fate(class);
        let number = self.number();
        let counts = &mut self.counts[class as usize];
        counts.sent += 1;
        if fate.lost {
            counts.lost += 1;
            return;
        }
        if self.flying.len() >= self.lane.impairment().limit {
            counts.full += 1;
            return;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        if let Some(draw) = fate.corrupt {
            damage::anywhere(&mut buffer, draw);
            counts.corrupted += 1;
        }
        let damaged = fate.corrupt_payload.is_some_and(|draw| damage::behind_the_checksum(&mut buffer, draw));
        counts.corrupted_payload += u64::from(damaged);
        counts.duplicated += u64::from(fate.duplicate);
        let sent = self.serialise(now, bytes.len());
        let arrives = |copy: usize| if fate.at_once { sent } else { sent + fate.delays[copy] };
        if fate.duplicate {
            // A copy has its original's number, and is ordered behind it where both arrive at once.
            let copy = Packet { class, number, bytes: buffer.clone() };
            let behind = self.number();
            self.flying.insert((arrives(0), number), Packet { class, number, bytes: buffer });
            self.flying.insert((arrives(1), behind), copy);
        } else {
            self.flying.insert((arrives(0), number), Packet { class, number, bytes: buffer });
        }
    }

    /// Delivers the packets that have arrived by `now`; `write` returns whether the kernel accepted one.
    pub fn deliver(&mut self, now: Instant, mut write: impl FnMut(&[u8]) -> bool) {
        while let Some(first) = self.flying.first_entry().filter(|first| first.key().0 <= now) {
            let packet = first.remove();
            let counts = &mut self.counts[packet.class as usize];
            counts.delivered += 1;
            counts.refused += u64::from(!write(&packet.bytes));
            // A copy of the latest is not out of order.
            counts.reordered += u64::from(packet.number + 1 < self.delivered);
            self.delivered = self.delivered.max(packet.number + 1);
            self.spare.push(packet.bytes);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the time when the last bit of a packet of `bytes` bytes has left.
    fn serialise(&mut self, now: Instant, bytes: usize) -> Instant {
        let Some(rate) = self.lane.impairment().rate else { return now };
        self.free_at = self.free_at.max(now) + rate.time_for(Bytes::new(bytes as u64));
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Chance, Duration, Rate};

    use super::super::settings::{Impairment, Loss};
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }
    fn pipe(impairment: &Impairment) -> Pipe {
        Pipe::new(Lane::new(impairment, 7, 0))
    }
    /// Returns the first bytes of the packets that arrive by `now`.
    fn arrived(pipe: &mut Pipe, now: Instant) -> Vec<u8> {
        let mut arrived = Vec::new();
        pipe.deliver(now, |packet| {
            arrived.push(packet[0]);
            true
        });
        arrived
    }

    #[test]
    fn packets_wait_as_long_as_they_are_delayed() {
        let mut pipe = pipe(&Impairment { delay: Duration::from_us(50), ..Impairment::default() });
        pipe.handle_packet(at(0), &[1]);
        pipe.handle_packet(at(10), &[2]);
        assert_eq!(pipe.poll_timeout(), Some(at(50)));
        assert!(arrived(&mut pipe, at(49)).is_empty());
        assert_eq!(arrived(&mut pipe, at(60)), [1, 2]);
        assert_eq!(pipe.poll_timeout(), None);
    }

    #[test]
    fn a_pipe_sends_one_packet_after_another() {
        let rate = Some(Rate::from_bps(8_000_000));
        let mut pipe = pipe(&Impairment { rate, limit: 2, ..Impairment::default() });
        for packet in [[1; 100], [2; 100], [3; 100]] {
            pipe.handle_packet(at(0), &packet);
        }
        assert_eq!(arrived(&mut pipe, at(100)), [1]);
        assert_eq!(arrived(&mut pipe, at(200)), [2]);
        assert!(arrived(&mut pipe, at(900)).is_empty());
        let counts = pipe.counts()[Class::Other as usize];
        assert_eq!((counts.sent, counts.full, counts.delivered), (3, 1, 2));
    }

    #[test]
    fn overtaken_packets_count_as_reordered_and_copies_do_not() {
        let reorder = Chance::ratio(1, 4);
        let impairment =
            Impairment { reorder, duplicate: Chance::ALWAYS, delay: Duration::from_us(50), ..Impairment::default() };
        let mut pipe = pipe(&impairment);
        for n in 0..100 {
            pipe.handle_packet(at(u64::from(n)), &[n]);
        }
        let mut order = Vec::new();
        for us in 0..200 {
            order.extend(arrived(&mut pipe, at(us)));
        }
        assert_eq!(order.len(), 200);
        let overtaken = (0..200).filter(|&n| order[..n].iter().any(|before| *before > order[n])).count() as u64;
        let counts = pipe.counts()[Class::Other as usize];
        assert!(overtaken > 20);
        assert_eq!((counts.reordered, counts.duplicated, counts.delivered), (overtaken, 100, 200));
    }

    #[test]
    fn what_is_lost_is_counted_and_nothing_else_happens_to_it() {
        let loss = Loss::Random(Chance::ALWAYS);
        let mut pipe = pipe(&Impairment { loss, duplicate: Chance::ALWAYS, ..Impairment::default() });
        pipe.handle_packet(at(0), &[1]);
        assert_eq!(pipe.poll_timeout(), None);
        let counts = pipe.counts()[Class::Other as usize];
        assert_eq!((counts.sent, counts.lost, counts.duplicated), (1, 1, 0));
    }
}
