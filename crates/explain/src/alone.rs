//! Delays of a packet whose flow has the network to itself.

use selvedge_units::Duration;

/// One link of a path: serialisation time of a full packet of the flow, and of this packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) full: Duration,
    pub(crate) this: Duration,
}

/// Returns the wait of a packet before each link of its path behind the `before` full packets of its flow that leave
/// the host ahead of it back to back. They queue where a link is slower than those before it, and a short last packet
/// catches up with the one before.
///
/// The j-th full packet has left a link after one packet's serialisation time on each link so far and j times that on
/// the slowest of these links. Propagation is ignored, because it is equal for all packets.
pub(crate) fn waits(before: u64, links: &[Link]) -> Vec<Duration> {
    let (mut one, mut slowest, mut here) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut waits = Vec::with_capacity(links.len());
    for (nth, link) in links.iter().enumerate() {
        one += link.full;
        slowest = slowest.max(link.full);
        let previous = if before == 0 { Duration::ZERO } else { one + slowest * (before - 1) };
        let begin = here.max(previous);
        // Leaving the host as soon as possible is no wait.
        waits.push(if nth == 0 { Duration::ZERO } else { begin - here });
        here = begin + link.this;
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(values: &[u64]) -> Vec<Duration> {
        values.iter().map(|&value| Duration::from_ns(value)).collect()
    }

    fn links(full: &[u64], this: &[u64]) -> Vec<Link> {
        let link = |(full, this)| Link { full, this };
        ns(full).into_iter().zip(ns(this)).map(link).collect()
    }

    #[test]
    fn equal_links_hold_nobody_up() {
        assert_eq!(waits(7, &links(&[100; 4], &[100; 4])), ns(&[0; 4]));
        assert_eq!(waits(0, &links(&[100, 400], &[30, 120])), ns(&[0, 0]));
    }

    #[test]
    fn packets_pile_up_before_a_slower_link() {
        assert_eq!(waits(7, &links(&[100, 400, 200], &[100, 400, 200])), ns(&[0, 2_100, 0]));
        assert_eq!(waits(7, &links(&[100, 200, 400], &[100, 200, 400])), ns(&[0, 700, 1_400]));
    }

    #[test]
    fn a_short_packet_catches_up_on_every_link() {
        assert_eq!(waits(7, &links(&[100; 4], &[30; 4])), ns(&[0, 70, 70, 70]));
    }
}
