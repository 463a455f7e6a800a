//! Pipes between the two namespaces, one in each direction, and, if asked for, a switch before each namespace.

use selvedge_tor::{Port, Tor};
use selvedge_units::Instant;

use super::pipe::Pipe;

/// Pipes and switches.
pub(super) struct Between {
    /// Pipes from each end to the other.
    pub(super) pipes: [Pipe; 2],
    /// Switches at the ends, each with the namespace as its only host and the pipes as its fabric.
    pub(super) tors: Option<[Tor; 2]>,
}

impl Between {
    /// Handles a packet that an end has sent.
    pub(super) fn handle_packet(&mut self, now: Instant, end: usize, packet: &[u8]) {
        match &mut self.tors {
            None => self.pipes[end].handle_packet(now, packet),
            Some(tors) => tors[end].handle_packet(now, Port::Host(0), packet),
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
                other.handle_packet(now, Port::Fabric, packet);
                true
            });
        }
        for end in 0..2 {
            tors[end].handle_timeout(now);
            while let Some(leaving) = tors[end].poll_transmit(now) {
                match leaving.port {
                    Port::Fabric => pipes[end].handle_packet(leaving.at, &leaving.packet),
                    // What the kernel refuses is damaged beyond recognition; the NIC would drop it.
                    Port::Host(_) => _ = write(end, &leaving.packet),
                }
                tors[end].reuse(leaving.packet);
            }
        }
    }

    /// Returns the time at which [`Between::deliver`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let tors = self.tors.iter().flatten().filter_map(Tor::poll_timeout);
        self.pipes.iter().filter_map(Pipe::poll_timeout).chain(tors).min()
    }
}
