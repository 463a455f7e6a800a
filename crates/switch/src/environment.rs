//! Contract between switches and the world that they are in.

use selvedge_telemetry::{DropReason, PacketKind};
use selvedge_transport::netrt::Flow;
use selvedge_units::{Duration, Instant, Psn};
use selvedge_wire::Pause;
use selvedge_wire::netrt::Message;

use crate::descriptor::{Descriptor, Slot};
use crate::port::Egress;
use crate::switches::Switches;

/// Memory of packets.
///
/// A packet belongs to the memory; switches hold its handle from the arrival until they send or drop it.
pub trait Packets {
    /// Returns a number that tells the packet from all others that entered through the same port, for fingerprints.
    fn name(&self, slot: Slot) -> u64;
    /// Returns the kind that the packet counts as.
    fn kind(&self, slot: Slot) -> PacketKind;
    /// Returns a hash of the packet's flow, by which fair queueing tells flows apart.
    fn flow_hash(&self, slot: Slot) -> u64;
    /// Returns whether the packet carries a payload.
    fn has_payload(&self, slot: Slot) -> bool;
    /// Removes a packet.
    fn discard(&mut self, slot: Slot);
    /// Marks a packet: congestion experienced.
    fn mark(&mut self, slot: Slot);
    /// Moves a packet to another class.
    fn set_class(&mut self, slot: Slot, class: u8);
    /// Moves a packet to `class`, and cuts it to its headers if it has a payload.
    fn trim(&mut self, slot: Slot, class: u8) -> Trimmed;
    /// Removes a pause frame that has arrived. `None`: the packet is none.
    fn take_pause(&mut self, slot: Slot) -> Option<Pause>;
    /// Adds a pause frame.
    fn put_pause(&mut self, now: Instant, pause: Pause) -> Descriptor;

    /// Returns what a packet is to NetRT's switches.
    fn netrt(&self, slot: Slot) -> NetRtPacket;
    /// Keeps a copy of a packet; returns the copy's handle.
    fn keep(&mut self, slot: Slot) -> u32;
    /// Frees a copy.
    fn forget(&mut self, copy: u32);
    /// Adds a packet of `class` that equals a copy, which is kept, and is flagged as a retransmission.
    fn put_copy(&mut self, copy: u32, class: u8) -> Descriptor;
    /// Removes a message of NetRT that has arrived; returns it with its addresses. `None`: the packet is none.
    fn take_message(&mut self, slot: Slot) -> Option<(Flow, Message)>;
    /// Adds a message of NetRT of `class` that travels from `flow.src` to `flow.dst`. The descriptor's port is that of
    /// the sender.
    fn put_message(&mut self, now: Instant, flow: Flow, message: Message, class: u8) -> Descriptor;
}

/// World that switches are in: the memory of packets, the links, and an observer.
pub trait Environment: Packets {
    /// Whether [`note`](Environment::note) is called.
    const RECORDED: bool;

    /// Sends a packet through `port`; its last bit reaches the other end at `arrival`.
    fn send(&mut self, port: &Egress, arrival: Instant, packet: &Descriptor);
    /// Tells that a packet is about to leave through port `at`, where packets take the slow path
    /// ([`Egress::take_slow_path`]).
    fn leave_slowly(&mut self, switches: &Switches, at: u32, packet: &Descriptor);
    /// Returns why the link that ends at port `at` loses a packet that would arrive `now`, if it does. Called once for
    /// each packet, where arrivals take the slow path ([`Ingress::slow_path`](crate::port::Ingress::slow_path)).
    fn lost(&mut self, now: Instant, at: u32, packet: &Descriptor) -> Option<DropReason>;
    /// Drops a packet that entered through port `at`.
    fn drop(&mut self, switches: &Switches, at: u32, slot: Slot, reason: DropReason);
    /// Sets the timer of a host's port, which leads to [`Switches::on_pause_timer`], to `time` picoseconds. The latest
    /// call counts: a timer that expires at an earlier setting's time has no effect.
    fn set_host_timer(&mut self, host: u32, time: u64);
    /// Observes an event at the time [`Switches::now`]. Called only if [`RECORDED`](Environment::RECORDED).
    fn note(&mut self, switches: &Switches, event: Note<'_>);
}

/// Result of an attempt to cut a packet to its headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trimmed {
    /// The frame has this many bytes left.
    To(u16),
    /// The packet has no payload to lose, and stays as it is.
    Whole,
    /// The packet has a payload, but its receiver could not tell that it was cut.
    Impossible,
}

/// Role of a packet for NetRT's switches.
#[derive(Clone, Copy, Debug)]
pub enum NetRtPacket {
    /// Data with its sequence number.
    Data {
        /// Flow of the packet.
        flow: Flow,
        /// Number of the packet.
        psn: Psn,
        /// Numbers that the packet takes; `None` for answers to RDMA requests, which travel in the numbers of the other
        /// direction, with gaps where other requests were: the NIC recovers them.
        psns: Option<u32>,
        /// Leaf of the sender.
        from: u32,
    },
    /// Message of NetRT.
    Message {
        /// Leaf of the sender.
        from: u32,
    },
    /// Any other packet, which passes.
    Other,
}

/// Event that an observer may want to know.
#[derive(Clone, Copy, Debug)]
pub enum Note<'a> {
    /// Port `at`, which is free, begins to send a packet, which takes `serialisation` on the wire.
    Sent {
        /// Port.
        at: u32,
        /// Packet.
        slot: Slot,
        /// Time from now until the last bit has left.
        serialisation: Duration,
    },
    /// The last bit of a packet has reached port `at`.
    Arrived {
        /// Port.
        at: u32,
        /// Packet.
        slot: Slot,
    },
    /// A packet that entered through port `at` has begun to wait for port `out`.
    Queued {
        /// Port of the arrival.
        at: u32,
        /// Port that the packet waits for.
        out: u32,
        /// Packet.
        slot: Slot,
    },
    /// A packet that entered through port `at` and waits for port `out` has been trimmed.
    Trimmed {
        /// Port of the arrival.
        at: u32,
        /// Port that the packet waits for.
        out: u32,
        /// Descriptor of the whole packet.
        before: &'a Descriptor,
    },
    /// The set of classes that port `at` may send has changed.
    Paused {
        /// Port.
        at: u32,
    },
    /// The link at port `at` has gone down or come back.
    Link {
        /// Port.
        at: u32,
        /// Whether it has come back.
        up: bool,
    },
    /// Input `at` has filled up with a packet of `frame` bytes for port `out`.
    Filled {
        /// Input.
        at: u32,
        /// Port that the packet waits for.
        out: u32,
        /// Bytes of the packet's frame.
        frame: u64,
    },
}
