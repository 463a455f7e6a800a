//! Queue pairs that poll the MAC layer, like those of the IRN paper's simulator (section 4.1), instead of taking turns.
//!
//! Each queue pair polls the link once in each [`NicParams::mac_poll`]. A free link serves the first queue pair that
//! polls, and waits for that. With fixed phases, derived from queue pair number and host, a queue pair that polls just
//! after another one may find the link busy again and again; phases drawn anew for each packet starve no queue pair.

use selvedge_transport::Cx;
use selvedge_units::{Duration, Instant, QpNumber, mix64};
use selvedge_wire::Packet;

use super::{Nic, NicParams};
use crate::slot::POLL;

impl Nic {
    /// Sends a packet of the queue pair that polls now, if one does and has a packet to send. If not, the NIC is woken
    /// when the next queue pair polls; bit `i` of `paused` forbids class `i`.
    #[cold]
    pub(super) fn send_polled(&mut self, cx: &mut Cx<'_>, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        while let Some((asks_at, place)) = self.next_to_ask(cx.now, params, paused) {
            if asks_at > cx.now {
                if asks_at < self.polls_at || self.polls_at <= cx.now {
                    self.polls_at = asks_at;
                    self.port.deadlines.push(asks_at, POLL);
                }
                return false;
            }
            let Some(slot) = self.port.ready.remove(place) else { return false };
            self.port.ready.push_front(slot);
            if self.send_data(cx, params, slot, packet) {
                return true;
            }
        }
        false
    }

    /// Returns the queue pair in the ready ring that polls first, from `now` on: its time and its index in the ring.
    /// Queue pairs whose class is paused do not poll.
    fn next_to_ask(&self, now: Instant, params: &NicParams, paused: u8) -> Option<(Instant, usize)> {
        let period = params.mac_poll;
        let asks_at = |(place, &slot): (usize, &u32)| {
            let sender = self.queue_pairs.sender_at(slot);
            // The entry of a closed queue pair is cleared at once.
            let at = sender.map_or(now, |(qp, _)| next_poll(now, period, self.phase(qp, params)));
            let may_go = sender.is_none_or(|(_, class)| paused & (1 << class) == 0);
            may_go.then_some((at, place))
        };
        self.port.ready.iter().enumerate().filter_map(asks_at).min()
    }

    fn phase(&self, qp: QpNumber, params: &NicParams) -> u64 {
        let own = mix64(u64::from(self.port.host.0) << 32 | u64::from(qp.0));
        let drawn = if params.polls_at_random { mix64(own ^ self.port.stats.data_sent) } else { own };
        drawn % params.mac_poll.as_ps()
    }
}

/// Returns the first time from `now` on that is `phase` picoseconds plus a whole number of periods.
fn next_poll(now: Instant, period: Duration, phase: u64) -> Instant {
    let period = period.as_ps();
    let since = (now.as_ps() + period - phase) % period;
    if since == 0 { now } else { now + Duration::from_ps(period - since) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_a_period_apart() {
        let (period, at) = (Duration::from_ps(100), Instant::from_ps);
        for (now, expected) in [(0, 30), (29, 30), (30, 30), (31, 130), (130, 130), (1_131, 1_230)] {
            assert_eq!(next_poll(at(now), period, 30), at(expected), "{now}");
        }
    }
}
