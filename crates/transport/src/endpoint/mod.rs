//! Transports as one host sees them: the contract between a transport and its NIC.
//!
//! ```text
//!     packet for it ──> handle_packet ───────┐                ┌─> Port: control packets, turns at the link, deadlines
//!     its turn at the link ─> poll_transmit ─┼──> Endpoint ───┼─> Handled: messages that are complete
//!     its deadline ─────> handle_timeout ────┘                └─> the next data packet
//! ```
//!
//! An endpoint is everything of a transport on one host. Its flows are named by small numbers of its own, its
//! *entries*: the NIC lets entries take turns at the link, and keeps their deadlines. A transport of messages is a
//! folder with its settings (`Config`, an [`EndpointSettings`]) and its state on one host (`Host`, an [`Endpoint`]),
//! and one line in the registry at the end of this file. A transport of one's own needs neither: see [`own`].

mod answers;
mod deadlines;
pub mod own;
mod port;
mod standing;
mod stats;

use core::fmt;

use selvedge_units::{Bytes, Duration, HostId, Instant, Psn, QpNumber, Seq};
use selvedge_wire::{Control, Data, Ecn, Packet, Repr};

use crate::fabric::{Fabric, SettingError};
use crate::registry::registry;
use crate::role::{Cx, Limits};
use crate::{homa, ndp};

pub use answers::Answers;
pub use deadlines::Deadlines;
pub use port::{Alarm, Port};
pub use standing::{Expected, Received, Standing};
pub use stats::NicStats;

/// A message to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Destination host.
    pub dst: HostId,
    /// Payload length in bytes; above zero.
    pub size: Bytes,
    /// Input of the ECMP hash.
    pub entropy: u32,
    /// Traffic class of the data, for transports that do not choose classes.
    pub class: u8,
    /// Number of links that packets cross; zero if not known.
    pub links: u32,
    /// The caller's name of the message, returned on completion.
    pub context: u32,
}

/// Lengths and classes of packets, for all flows of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frames {
    /// Payload of a full packet in bytes.
    pub mtu: u16,
    /// Bytes of a data frame in addition to its payload.
    pub header: u16,
    /// Length of an acknowledgement frame in bytes.
    pub ack_frame: u16,
    /// Length of an acknowledgement frame that carries holes in bytes.
    pub hole_nack_frame: u16,
    /// Length of a congestion notification frame in bytes.
    pub cnp_frame: u16,
    /// Bytes that every frame occupies on the wire in addition to its length.
    pub gap: u16,
    /// Traffic class of acknowledgements and other control packets.
    pub ack_class: u8,
    /// Traffic class of congestion notifications.
    pub cnp_class: u8,
    /// Traffic class of each of a transport's own priorities, lowest priority first ([`EndpointSettings::priorities`]).
    pub classes: [u8; 8],
    /// Whether data is marked as ECN-capable.
    pub ecn_capable: bool,
}

impl Frames {
    /// Returns the number of packets of a message of `size`.
    pub const fn packets(&self, size: Bytes) -> u64 {
        size.get().div_ceil(self.mtu as u64)
    }

    /// Returns the payload of packet `index` of a message of `size`, in bytes.
    pub const fn payload(&self, size: Bytes, index: u64) -> u16 {
        let rest = size.get().saturating_sub(index * self.mtu as u64);
        if rest < self.mtu as u64 { rest as u16 } else { self.mtu }
    }
}

/// The entry of an endpoint itself rather than of one of its flows: turns of all flows together, deadlines of a pacer.
/// Entries of flows are smaller.
pub const HOST: u32 = (1 << 27) - 1;

/// The outside world as an endpoint sees it during one call: time and probe, and what the NIC lends.
pub struct Context<'a, 'p, P: ?Sized = EndpointParams> {
    /// The time and the probe.
    pub cx: &'a mut Cx<'p>,
    /// Settings of the endpoint, every "auto" resolved; shared by all hosts. Where a flow is opened, those for its
    /// path, which differ from the host's where "auto" depends on the path.
    pub params: &'a P,
    /// Lengths and classes of packets.
    pub frames: &'a Frames,
    /// The part of the NIC that its endpoints share.
    pub port: &'a mut Port,
    /// Number that entry 0 of the endpoint has as a slot of the NIC.
    pub first: u32,
}

impl<P: ?Sized> Context<'_, '_, P> {
    /// Returns the current time.
    #[inline]
    pub const fn now(&self) -> Instant {
        self.cx.now
    }

    /// Returns the slot of an entry: its number among all entries of the NIC, which [`Packet::slot`] holds.
    #[inline(always)]
    pub const fn slot(&self, entry: u32) -> u32 {
        self.first + entry
    }

    /// Gives an entry a turn at the link, behind those that have one already. An entry must not be given a second turn
    /// before [`poll_transmit`](Endpoint::poll_transmit) was called for the first.
    #[inline(always)]
    pub fn ready(&mut self, entry: u32) {
        let slot = self.slot(entry);
        self.port.ready.push_back(slot);
    }

    /// Queues a control packet for the sender of packet `to`, of the same queue pair.
    pub fn answer(&mut self, to: &Packet, repr: Repr) {
        let reply = reply(self.port.host, self.frames, to);
        self.port.answers.push_back(Packet { sent_at: self.cx.now, repr, ..reply });
    }

    /// Queues a control packet that echoes the sending time of `to`, from which the sender of `to` learns the
    /// round-trip time; otherwise like [`Context::answer`].
    #[inline(always)]
    pub fn echo(&mut self, to: &Packet, repr: Repr) {
        self.port.answers.push_back(Packet { repr, ..reply(self.port.host, self.frames, to) });
    }

    /// Queues a control packet for the receiver of flow `entry`, which this host sends.
    pub fn control(&mut self, entry: u32, message: &Message, qp: QpNumber, control: Control) {
        let (frame, class) = (self.frames.ack_frame, self.frames.ack_class);
        let packet = Packet {
            sent_at: self.cx.now,
            src: self.port.host,
            dst: message.dst,
            qp,
            slot: self.slot(entry),
            entropy: message.entropy,
            frame,
            class,
            ecn: Ecn::NotCapable,
            repr: Repr::Control(control),
        };
        self.port.answers.push_back(packet);
    }

    /// Returns packet `index` of a message that this host sends as flow `entry`, and counts it as sent. Indices and
    /// PSNs begin at 0.
    pub fn data(&mut self, entry: u32, message: &Message, qp: QpNumber, index: u64, retransmission: bool) -> Packet {
        self.port.stats.data_sent += 1;
        self.port.stats.retransmissions += u64::from(retransmission);
        let payload = self.frames.payload(message.size, index);
        Packet {
            sent_at: self.cx.now,
            src: self.port.host,
            dst: message.dst,
            qp,
            slot: self.slot(entry),
            entropy: message.entropy,
            frame: payload + self.frames.header,
            class: message.class,
            ecn: if self.frames.ecn_capable { Ecn::Capable } else { Ecn::NotCapable },
            repr: Repr::Data(Data {
                psn: Seq::new(index).to_psn(Psn::new(0)),
                payload,
                last: index + 1 == self.frames.packets(message.size),
                retransmission,
                trimmed: false,
            }),
        }
    }
}

/// Returns an acknowledgement from `host` for the sender of packet `to`, whose kind is still to be set.
#[inline(always)]
pub(crate) fn reply(host: HostId, frames: &Frames, to: &Packet) -> Packet {
    let (frame, class) = (frames.ack_frame, frames.ack_class);
    Packet { src: host, dst: to.src, entropy: !to.entropy, ecn: Ecn::NotCapable, frame, class, ..*to }
}

/// Outcome of handling a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handled {
    /// The packet was accepted.
    Taken,
    /// The packet was accepted and completed a message.
    Completed(Completion),
    /// The packet was dropped because its queue pair does not exist (any more).
    Unknown,
}

/// Completion of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Everything sent on a queue pair is acknowledged.
    Sent {
        /// Queue pair of the message.
        qp: QpNumber,
        /// The caller's name of the message.
        context: u32,
    },
    /// Everything expected on a queue pair has arrived.
    Received {
        /// Sending host.
        src: HostId,
        /// Queue pair of the message.
        qp: QpNumber,
        /// The caller's name of the message.
        context: u32,
        /// Data packets that had arrived before.
        duplicates: u32,
    },
}

/// A receiver that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed {
    /// The caller's name of the message.
    pub context: u32,
    /// Data packets that had arrived before.
    pub duplicates: u32,
}

/// Everything of a transport on one host.
///
/// Senders and receivers have entries of their own: numbers below [`HOST`] that name a sender in packets
/// ([`Packet::slot`], through [`Context::data`]), in the NIC's turns and in its deadlines, and a receiver in
/// [`Endpoint::handle_packet`]. Senders and receivers are numbered separately. Calls that name an entry that does not
/// exist have no effect.
pub trait Endpoint: fmt::Debug {
    /// Settings, every "auto" resolved.
    type Params: ?Sized;

    /// Returns how many consecutive queue pair numbers each flow takes.
    fn numbers(_params: &Self::Params) -> u32
    where
        Self: Sized,
    {
        1
    }
    /// Begins to send a message on queue pair `qp`; returns the entry of its sender.
    fn open_sender(&mut self, cx: &mut Context<'_, '_, Self::Params>, qp: QpNumber, message: &Message) -> u32;
    /// Expects a message of `size` from queue pair `qp` of `src`; returns the entry of its receiver. `context` is the
    /// caller's name of the message.
    fn open_receiver(
        &mut self,
        cx: &mut Context<'_, '_, Self::Params>,
        src: HostId,
        qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32;
    /// Ends a sender, finished or not; returns the caller's name of its message.
    fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32>;
    /// Ends a receiver, finished or not.
    fn close_receiver(&mut self, entry: u32) -> Option<Closed>;
    /// Handles a packet. Packets for a receiver ([`Repr::Data`], [`Repr::Tcp`] from the end that opened the connection,
    /// and [`Repr::Control`] with [`to_receiver`](selvedge_wire::Control::to_receiver)) come with the receiver's entry,
    /// all others with that of the sender that they name, which may have ended. A sender that is complete ends here.
    fn handle_packet(&mut self, cx: &mut Context<'_, '_, Self::Params>, packet: &Packet, entry: u32) -> Handled;
    /// Writes the next data packet of an entry that was [ready](Context::ready), and whose turn has come, to `packet`;
    /// returns whether there is one. An entry with more packets calls [`Context::ready`] again.
    fn poll_transmit(&mut self, cx: &mut Context<'_, '_, Self::Params>, entry: u32, packet: &mut Packet) -> bool;
    /// Handles a deadline of an entry, set through an [`Alarm`] for `at`, which has passed.
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_, Self::Params>, entry: u32, at: Instant);
    /// Returns the traffic class of the next packet of an entry that is ready, for links whose peers pause classes.
    fn class(&self, entry: u32, frames: &Frames) -> Option<u8>;
    /// Returns the progress of a sender at `now`.
    fn standing(&self, entry: u32, qp: QpNumber, now: Instant) -> Option<Standing>;
    /// Returns the progress of a receiver.
    fn received(&self, entry: u32) -> Option<Received>;
    /// Returns the limits of a sender.
    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits>;
    /// Returns the number of consecutive queue pairs of a flow, named by the first; several if it has subflows.
    fn queue_pairs(&self, _entry: u32, _qp: QpNumber) -> u32 {
        1
    }
}

/// Properties of a transport that follow from its settings.
pub trait EndpointSettings {
    /// The parameters of a host's state: checked values, none of them "auto".
    type Params;

    /// Replaces every "auto" by a value for `fabric`.
    fn resolve(&mut self, fabric: &Fabric);
    /// Checks the resolved settings, and returns the parameters that they make.
    ///
    /// # Errors
    /// The first setting that cannot work, or still says "auto".
    fn params(&self) -> Result<Self::Params, SettingError>;
    /// Checks the resolved settings.
    ///
    /// # Errors
    /// Those of [`EndpointSettings::params`].
    fn check(&self) -> Result<(), SettingError> {
        self.params().map(drop)
    }
    /// Returns whether the transport works only where switches trim packets to their headers. Receivers then want these
    /// headers: packets with [`Data::trimmed`] set reach [`Endpoint::handle_packet`].
    fn needs_trimming(&self) -> bool {
        false
    }
    /// Returns the number of priorities, from 0 on, among which the transport chooses for each data packet; zero if
    /// flows have one priority each, chosen by the workload or by the NIC.
    fn priorities(&self) -> u8 {
        0
    }
    /// Returns whether all hosts and paths have the same settings: "auto" is then derived from the longest path of the
    /// fastest hosts alone.
    fn is_global(&self) -> bool {
        false
    }
    /// Returns whether senders choose a path for each packet ([`Packet::entropy`]), rather than one for each message.
    fn chooses_paths(&self) -> bool {
        false
    }
    /// Returns the number of control packets for each data packet, for estimates of a run's cost.
    fn answers(&self) -> f64 {
        1.0
    }
    /// Returns the longest time after which a sender or receiver acts on a loss.
    fn longest_timeout(&self) -> Duration;
    /// Returns the key of the timeout that a round trip must not exceed, and its resolved value.
    fn shortest_timeout(&self) -> Option<(&'static str, Duration)> {
        None
    }
    /// Returns the longest pause between two packets of a flow that pacing asks for when nothing else is sent.
    fn slowest_pace(&self) -> Duration {
        Duration::ZERO
    }
    /// Returns the pace at which receivers ask for packets: the key of the setting, the time between two packets, and
    /// the number of packets sent before the first request. `None` where arrivals set the pace.
    fn receiver_pace(&self) -> Option<(&'static str, Duration, u64)> {
        None
    }
}

registry! {
    /// Transports of messages, with their settings.
    config EndpointConfig: EndpointSettings {
        fn resolve(&mut self, fabric: &Fabric);
        fn needs_trimming(&self) -> bool;
        fn priorities(&self) -> u8;
        fn is_global(&self) -> bool;
        fn chooses_paths(&self) -> bool;
        fn answers(&self) -> f64;
        fn longest_timeout(&self) -> Duration;
        fn shortest_timeout(&self) -> Option<(&'static str, Duration)>;
        fn slowest_pace(&self) -> Duration;
        fn receiver_pace(&self) -> Option<(&'static str, Duration, u64)>;
    }
    /// Parameters of a transport of messages.
    params EndpointParams
    /// Any transport of messages.
    #[derive(Debug)]
    run AnyEndpoint: Endpoint<Params = EndpointParams> = Host {
        fn open_sender(&mut self, cx: &mut Context<'_, '_>, qp: QpNumber, message: &Message) -> u32;
        fn open_receiver(
            &mut self, cx: &mut Context<'_, '_>, src: HostId, qp: QpNumber, size: Bytes, context: u32
        ) -> u32;
        fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32>;
        fn close_receiver(&mut self, entry: u32) -> Option<Closed>;
        fn handle_packet(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, entry: u32) -> Handled;
        fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, entry: u32, packet: &mut Packet) -> bool;
        fn handle_timeout(&mut self, cx: &mut Context<'_, '_>, entry: u32, at: Instant);
        fn class(&self, entry: u32, frames: &Frames) -> Option<u8>;
        fn standing(&self, entry: u32, qp: QpNumber, now: Instant) -> Option<Standing>;
        fn received(&self, entry: u32) -> Option<Received>;
        fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits>;
        fn queue_pairs(&self, entry: u32, qp: QpNumber) -> u32;
    }
    algorithms {
        /// NDP: receivers pull, switches trim, packets spread over paths (SIGCOMM'17).
        "ndp" => Ndp(ndp),
        /// Homa: receivers grant and choose priorities, shortest first (SIGCOMM'18).
        "homa" => Homa(homa),
    }
    own [Own own]
}
