//! Received packets: from sockets, and from processes that pass on packets of the shared port.

use nix::errno::Errno;
use selvedge_nic::verbs::{Route, is_group};
use selvedge_wire::verbs::{Headers, Ours};

use super::Network;
use crate::rnic::datagrams::{Datagrams, Seen, take};
use crate::rnic::forward::{self, Addressee};
use crate::rnic::invariant::Ends;
use crate::rnic::port::{self, Sockets};

impl Network {
    /// Receives what one system call returns: up to 64 packets that arrived one behind the other. Returns whether there
    /// were any. Checks all sockets if `all`, otherwise those that had packets so far.
    pub(in crate::rnic) fn receive(
        &mut self,
        all: bool,
        mut handle: impl FnMut(&Route, &Headers, &[u8], Seen),
    ) -> bool {
        let is_standard = self.outlet.is_some();
        let mut handle = |route: &Route, headers: &Headers, payload: &[u8], seen: Seen| {
            if is_standard {
                handle(route, &Headers { ours: Ours::No, ..*headers }, payload, seen);
            } else {
                handle(route, headers, payload, seen);
            }
        };
        if let Some(datagrams) = self.take_any(all) {
            let before = self.counters.received;
            self.sort(&datagrams, &mut handle);
            self.learn(&datagrams, before);
            return true;
        }
        if all || self.uses_shared { self.take_passed(&mut handle) } else { false }
    }

    /// Receives from the first socket that has datagrams.
    fn take_any(&mut self, all: bool) -> Option<Datagrams> {
        let Self { ports, listeners, buffer, control, uses_v6, uses_shared, .. } = self;
        let own = port::ROCE + u16::from(ports.own.slot);
        let v6 = ports.own.v6.as_ref().filter(|_| all || *uses_v6);
        if let Some(datagrams) =
            std::iter::once(&ports.own.v4).chain(v6).find_map(|socket| take(socket, own, buffer, control))
        {
            return Some(datagrams);
        }
        let mut shared = ports.shared.iter().filter(|_| all || *uses_shared).flat_map(Sockets::each);
        if let Some(datagrams) = shared.find_map(|socket| take(socket, port::ROCE, buffer, control)) {
            *uses_shared = true;
            return Some(datagrams);
        }
        let mut listeners = listeners
            .iter()
            .filter(|_| all)
            .flat_map(|listener| listener.sockets.each().map(|socket| (socket, listener.port)));
        listeners.find_map(|(socket, port)| take(socket, port, buffer, control))
    }

    /// Receives datagrams that another process has passed on; returns whether there were any.
    fn take_passed(&mut self, handle: &mut impl FnMut(&Route, &Headers, &[u8], Seen)) -> bool {
        let Self { inbox, listeners, buffer, .. } = self;
        let mut inboxes = inbox.iter_mut().chain(listeners.iter_mut().filter_map(|listener| listener.inbox.as_mut()));
        let Some(datagrams) = inboxes.find_map(|inbox| inbox.take(buffer)) else { return false };
        self.uses_shared = true;
        let before = self.counters.received;
        let packets = &self.buffer[forward::HEADER..][..datagrams.length];
        datagrams.unpack(packets, &mut self.counters, handle);
        self.learn(&datagrams, before);
        true
    }

    /// Learns from datagrams what their sender is, if any of them was sound: noise teaches nothing.
    pub(super) fn learn(&mut self, datagrams: &Datagrams, before: u64) {
        let Ends { from, from_port, .. } = datagrams.ends;
        self.uses_v6 |= from.to_ipv4_mapped().is_none();
        if self.counters.received == before || port::is_ours(from_port) {
            return;
        }
        // A forgotten host is learnt again with its next packet.
        if self.foreign.len() >= MOST_FOREIGN {
            self.foreign.clear();
        }
        self.foreign.insert(from);
    }

    /// Handles packets for this process and passes on those for others that came to the shared port.
    fn sort(&mut self, datagrams: &Datagrams, handle: &mut impl FnMut(&Route, &Headers, &[u8], Seen)) {
        let Self { ports, listeners, inbox, buffer, counters, .. } = self;
        let mut rest = &buffer[..datagrams.length];
        // Packets for a group come to each process that has joined it.
        if datagrams.ends.to_port != port::ROCE || is_group(&datagrams.ends.to) {
            return datagrams.unpack(rest, counters, handle);
        }
        let is_here = |whose: Addressee| match whose {
            Addressee::Slot(slot) => slot == ports.own.slot,
            Addressee::Listener(port) => listeners.iter().any(|listener| listener.port == port),
        };
        while !rest.is_empty() {
            let mut packets = rest.chunks(datagrams.segment).map(|packet| (Addressee::of(packet), packet.len()));
            let Some((whose, first)) = packets.next() else { return };
            let others = packets.take_while(|(other, _)| *other == whose).map(|(_, length)| length);
            let (now, later) = rest.split_at(first + others.sum::<usize>());
            rest = later;
            let passed = match inbox {
                Some(inbox) if !is_here(whose) => inbox.pass(whose, datagrams, now),
                _ => Err(Errno::ECONNREFUSED),
            };
            match passed {
                Ok(()) => counters.passed_on += 1,
                // No other process is the addressee: this one handles the packets, and answers them if an answer is
                // due.
                Err(Errno::ECONNREFUSED) => datagrams.unpack(now, counters, handle),
                // The other process's socket is full: the packets are lost, as in any network.
                Err(_) => {}
            }
        }
    }
}

/// Most hosts that are remembered as foreign: more than one process talks to.
pub(super) const MOST_FOREIGN: usize = 1 << 14;
