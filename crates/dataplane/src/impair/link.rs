//! The link from a host to its switch: packets wait at the host's end, as behind a NIC.

use std::collections::VecDeque;

use selvedge_units::{Bytes, Duration, Instant, Rate};

/// A link that a switch can pause: then the host's end begins no further packet.
#[derive(Debug)]
pub(super) struct Link {
    /// Packets, each with the time at which the host has sent it.
    waiting: VecDeque<(Instant, Vec<u8>)>,
    /// Rate; `None`: packets take no time.
    rate: Option<Rate>,
    /// Time at which the last bit of the first waiting packet arrives; `None`: its transmission has not begun.
    arrives: Option<Instant>,
    is_paused: bool,
    /// Buffers to be reused.
    spare: Vec<Vec<u8>>,
}

impl Link {
    /// Creates a link without packets.
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Self { waiting: VecDeque::new(), rate, arrives: None, is_paused: false, spare: Vec::new() }
    }

    /// Handles a packet that the host sends.
    pub(super) fn handle_packet(&mut self, now: Instant, bytes: &[u8]) {
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(bytes);
        self.waiting.push_back((now, packet));
        self.begin(now);
    }

    /// Pauses the link, or ends its pause. A packet whose transmission has begun still arrives.
    pub(super) fn pause(&mut self, now: Instant, is_paused: bool) {
        self.is_paused = is_paused;
        self.begin(now);
    }

    /// Returns the next packet that has arrived by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        let at = self.arrives.take_if(|at| *at <= now)?;
        let (_, packet) = self.waiting.pop_front()?;
        // A link that was busy since is not slower because it is served late.
        self.begin(at);
        Some(packet)
    }

    /// Takes back the memory of a packet.
    pub(super) fn reuse(&mut self, packet: Vec<u8>) {
        self.spare.push(packet);
    }

    /// Returns the time at which the next packet arrives, if one is on its way.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.arrives
    }

    fn begin(&mut self, now: Instant) {
        if let (None, false, Some((sent, first))) = (self.arrives, self.is_paused, self.waiting.front()) {
            let taken = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(Bytes::new(first.len() as u64)));
            self.arrives = Some(now.max(*sent) + taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    /// Returns the times at which packets arrive by `end`, in us, and their first bytes; asks when the link says so.
    fn arrivals(link: &mut Link, end: u64) -> Vec<(u64, u8)> {
        let mut arrivals = Vec::new();
        while let Some(at) = link.poll_timeout().filter(|at| *at <= us(end)) {
            let packet = link.pop(at).expect("a packet arrives when the link says so");
            arrivals.push((at.as_ps() / 1_000_000, packet[0]));
        }
        arrivals
    }

    #[test]
    fn packets_arrive_one_after_another_at_the_rate_of_the_link() {
        let mut link = Link::new(Some(Rate::from_bps(8_000_000)));
        for (at, packet) in [(0, [1; 100]), (0, [2; 100]), (500, [3; 100])] {
            link.handle_packet(us(at), &packet);
        }
        assert_eq!(link.poll_timeout(), Some(us(100)));
        assert_eq!(link.pop(us(99)), None);
        // Served late, the link is not slower.
        assert_eq!(link.pop(us(150)).map(|packet| packet[0]), Some(1));
        assert_eq!(arrivals(&mut link, 1_000), [(200, 2), (600, 3)]);
        assert_eq!(link.poll_timeout(), None);
    }

    #[test]
    fn in_a_pause_only_the_packet_arrives_that_has_begun() {
        let mut link = Link::new(Some(Rate::from_bps(8_000_000)));
        for packet in 0..3 {
            link.handle_packet(us(0), &[packet; 100]);
        }
        link.pause(us(50), true);
        assert_eq!(arrivals(&mut link, 900), [(100, 0)]);
        assert_eq!(link.poll_timeout(), None);
        link.pause(us(1_000), false);
        assert_eq!(arrivals(&mut link, 2_000), [(1_100, 1), (1_200, 2)], "after the pause, at the link's rate");
    }

    #[test]
    fn a_link_without_rate_can_be_paused_too() {
        let mut link = Link::new(None);
        link.pause(us(5), true);
        link.handle_packet(us(6), &[1]);
        assert_eq!(arrivals(&mut link, 9), []);
        link.pause(us(10), false);
        assert_eq!(arrivals(&mut link, 10), [(10, 1)]);
    }
}
