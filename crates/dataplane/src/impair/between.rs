//! Pipes between the two namespaces, one in each direction, and, if asked for, a switch before each namespace.

use selvedge_tor::{Port, Settings, Tor};
use selvedge_units::Instant;

use super::link::Link;
use super::pipe::Pipe;

/// Pipes and switches.
pub(super) struct Between {
    /// Pipes from each end to the other.
    pub(super) pipes: [Pipe; 2],
    /// Switches at the ends, each with the namespace as its only host and the pipes as its fabric.
    pub(super) tors: Option<[Racked; 2]>,
}

/// A switch, and the link from its host.
pub(super) struct Racked {
    pub(super) tor: Tor,
    /// Link of the switch's rate: what a host sends faster, or in a pause, waits at the host.
    link: Link,
}

impl Racked {
    pub(super) fn new(settings: Settings) -> Self {
        Self { link: Link::new(settings.rate), tor: Tor::new(settings) }
    }

    /// Hands the switch what has come from its host by `now`, and pauses the link as the switch says.
    fn handle_link(&mut self, now: Instant) {
        while let Some(packet) = self.link.pop(now) {
            self.tor.handle_packet(now, Port::Host(0), &packet);
            self.link.reuse(packet);
            self.heed(now);
        }
        self.tor.handle_timeout(now);
    }

    /// Pauses the link, or ends its pause, if the switch asks for it.
    fn heed(&mut self, now: Instant) {
        while let Some((_, is_paused)) = self.tor.poll_pause(now) {
            self.link.pause(now, is_paused);
        }
    }
}

impl Between {
    /// Handles a packet that an end has sent.
    pub(super) fn handle_packet(&mut self, now: Instant, end: usize, packet: &[u8]) {
        match &mut self.tors {
            None => self.pipes[end].handle_packet(now, packet),
            Some(tors) => tors[end].link.handle_packet(now, packet),
        }
    }

    /// Delivers what has arrived by `now`; `write` takes a packet for an end, and returns whether the kernel accepted
    /// it.
    pub(super) fn deliver(&mut self, now: Instant, mut write: impl FnMut(usize, &[u8]) -> bool) {
        let Self { pipes, tors } = self;
        let Some(tors) = tors else {
            return (0..2).for_each(|end| pipes[end].deliver(now, |packet| write(1 - end, packet)));
        };
        for end in 0..2 {
            let other = &mut tors[1 - end];
            pipes[end].deliver(now, |packet| {
                other.tor.handle_packet(now, Port::Fabric, packet);
                other.heed(now);
                true
            });
        }
        for (end, racked) in tors.iter_mut().enumerate() {
            racked.handle_link(now);
            let tor = &mut racked.tor;
            while let Some(leaving) = tor.poll_transmit(now) {
                match leaving.port {
                    Port::Fabric => pipes[end].handle_packet(leaving.at, &leaving.packet),
                    // What the kernel refuses is damaged beyond recognition; the NIC would drop it.
                    Port::Host(_) => _ = write(end, &leaving.packet),
                }
                tor.reuse(leaving.packet);
            }
            racked.heed(now);
        }
    }

    /// Returns the time at which [`Between::deliver`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let tors = self.tors.iter().flatten();
        let tors = tors.flat_map(|racked| [racked.tor.poll_timeout(), racked.link.poll_timeout()]);
        self.pipes.iter().filter_map(Pipe::poll_timeout).chain(tors.flatten()).min()
    }
}
