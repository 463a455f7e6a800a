//! Events of packets in a fabric, for recordings of real frames.

use selvedge_units::{Bytes, Duration, HostId, Instant, PortId};

use crate::row::DropReason;

/// Event in a fabric that carries real frames.
///
/// The life of a packet is `Entered`, then for each link `Sent` and `Arrived`, with `Queued` between them where the
/// packet had to wait, and `Delivered` at the end. A packet that switches make begins with `Made`; one that is lost
/// ends with `Dropped`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FabricEvent {
    /// Time since the switches began.
    pub at: Instant,
    /// Number of the packet, in the order in which packets began, from 1; 0: the event is about the port alone.
    pub packet: u64,
    /// Port of the event.
    pub port: PortId,
    /// Kind of the event.
    pub what: FabricStep,
}

/// Kind of an event in a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FabricStep {
    /// A host has sent a frame, which waits for the host's link. The frame's first bytes come with the event.
    Entered {
        /// Host that the frame is for.
        to: HostId,
        /// Class in which the frame travels.
        class: u8,
        /// Bytes on a link, FCS and padding included.
        frame: u16,
        /// Bytes of the frame as the host has sent it, without FCS.
        length: u16,
    },
    /// A switch, or the host at the port, has made a packet.
    Made {
        /// Class in which the packet travels.
        class: u8,
        /// Bytes on a link, FCS and padding included.
        frame: u16,
        /// Content of the packet.
        made: MadePacket,
    },
    /// The first bit of a packet leaves through the port.
    Sent {
        /// Time of the packet on the wire, gap included; the port is free after that.
        serialisation: Duration,
        /// Bytes of the packet's class that still wait for the port.
        waiting: Bytes,
    },
    /// The last bit of a packet has reached the port.
    Arrived,
    /// A packet has to wait for the port.
    Queued {
        /// Port through which the packet entered.
        ingress: PortId,
        /// Bytes of its class that already wait for the port.
        ahead: Bytes,
    },
    /// A packet that waits for the port is marked: congestion experienced.
    Marked,
    /// A packet that waits, or shall wait, for the port is cut to its headers.
    Trimmed {
        /// Bytes on a link that are left.
        frame: u16,
        /// Bytes that wait for the port in the class that the packet had.
        waiting: Bytes,
    },
    /// A packet that entered through the port is dropped.
    Dropped {
        /// Reason of the drop.
        reason: DropReason,
    },
    /// A frame whose last bit has reached the host at the port is handed to the host's interface.
    Delivered {
        /// Time since that arrival: the process that carries frames had no processor, or was busy.
        late: Duration,
    },
    /// The peer of the port pauses or resumes classes.
    Paused {
        /// Classes that may not leave now, one bit each. Zero: all may leave.
        classes: u8,
    },
    /// The link at the port goes down or comes back.
    Link {
        /// Whether the link works from now on.
        up: bool,
    },
    /// The input of the port fills up, and asks its peer for a pause.
    Filled {
        /// Output that the packet waits for that has filled the input.
        output: PortId,
    },
    /// Nothing is recorded from now on.
    Stopped {
        /// Reason of the stop.
        why: RecordingStop,
    },
}

/// Packet that no host's program has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MadePacket {
    /// Copy of a packet that NetRT's switches send again.
    Copy {
        /// Number of the original.
        of: u64,
    },
    /// PFC frame.
    Pause {
        /// Classes, one bit each.
        classes: u8,
        /// Length of the pause in quanta; zero ends it.
        quanta: u16,
    },
    /// Message of NetRT's switches.
    NetRt {
        /// Whether the message asks for packets again; otherwise it says that one cannot be sent again.
        is_request: bool,
        /// PSN that the message names.
        psn: u32,
    },
}

/// Reason for which a recording stops before its run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordingStop {
    /// The recording has reached its limit.
    Limit,
    /// Events come faster than they can be written.
    Slow,
}
