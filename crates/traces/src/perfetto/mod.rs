//! The timeline of a run for Perfetto: nodes, and below each its ports and the flows that begin or end there.
//!
//! ```text
//! h3
//! ├─ to pod0-edge1 (port 3)     a slice per packet being sent; arrows follow it through its hops
//! │  ├─ in                      packets that enter, if this port was asked for
//! │  ├─ paused                  while the peer pauses it
//! │  └─ queue                   bytes that wait for it, by class
//! ├─ flow 12 to h40             from its start until the receiver has everything
//! │  ├─ waits for               what keeps it from sending
//! │  ├─ recovery                episodes of loss recovery, retransmissions, timeouts
//! │  ├─ hears                   acknowledgements
//! │  └─ window, rate, in flight
//! └─ flow 13 from h9            packets that arrive
//! ```

mod file;
mod flows;
mod ports;
mod proto;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use selvedge_sim::record::{Event, Focus, What};
use selvedge_sim::topology::{Graph, Node};
use selvedge_units::{Instant, PortId, Psn, mix64};
use selvedge_wire::netrt::Message;
use selvedge_wire::tcp::Tcp;
use selvedge_wire::{AckKind, Data, Ecn, Hole, HoleNack, Packet, Repr, eqds};

use crate::fate::{is_lost_on_link, with_fates};
use crate::names::PortNames;
use file::{File, Track, TrackKind};
use flows::Flows;
pub(crate) use ports::PortEvent;
use ports::Ports;

/// A timeline in construction.
pub(crate) struct Timeline<W> {
    rows: Rows<W>,
    ports: Ports,
    flows: Flows,
}

/// Lanes of nodes and ports, without flows: of packets that no engine of ours has sent.
pub(crate) struct Lanes<W> {
    pub(crate) rows: Rows<W>,
    pub(crate) ports: Ports,
}

/// Packet that can be drawn.
pub(crate) trait Drawn {
    /// Returns the packet's title.
    fn title(&self) -> String;
    /// Returns an identifier that joins the slices of the packet; `sender` is the port that sends it.
    fn identity(&self, sender: PortId) -> u64;
    /// Returns the bytes of the packet's frame.
    fn frame(&self) -> u16;
    /// Returns the packet's traffic class.
    fn class(&self) -> u8;
    /// Returns whether the packet is marked: congestion experienced.
    fn is_marked(&self) -> bool;
    /// Returns whether the packet is a PFC frame.
    fn is_pause(&self) -> bool;
}

impl Drawn for Packet {
    fn title(&self) -> String {
        title(self)
    }
    fn identity(&self, sender: PortId) -> u64 {
        identity(self, sender)
    }
    fn frame(&self) -> u16 {
        self.frame
    }
    fn class(&self) -> u8 {
        self.class
    }
    fn is_marked(&self) -> bool {
        self.ecn == Ecn::Marked
    }
    fn is_pause(&self) -> bool {
        matches!(self.repr, Repr::Pause(_))
    }
}

/// The file, and the tracks of nodes in it.
pub(crate) struct Rows<W> {
    file: File<W>,
    /// Track of each node, with the number of tracks below it.
    nodes: BTreeMap<Node, (Track, u32)>,
    graph: Graph,
    names: Arc<PortNames>,
}

impl<W: Write> Timeline<W> {
    /// Begins the timeline of a run of `graph` of which `focus` is recorded.
    pub(crate) fn begin(out: W, graph: &Graph, names: Arc<PortNames>, focus: &Focus) -> io::Result<Self> {
        Ok(Self { rows: Rows::begin(out, graph, names)?, ports: Ports::new(focus), flows: Flows::new(focus) })
    }

    /// Draws events.
    pub(crate) fn on_events(&mut self, events: &[Event]) -> io::Result<()> {
        with_fates(events).try_for_each(|(event, fate)| match (&event.what, fate) {
            (What::Arrived { .. }, Some(reason)) if is_lost_on_link(reason) => Ok(()),
            (What::Arrived { port, packet, .. }, Some(_)) => {
                self.ports.on_arrived(&mut self.rows, PortEvent { at: event.at, port: *port, packet })
            }
            _ => self.on_event(event),
        })
    }

    fn on_event(&mut self, event: &Event) -> io::Result<()> {
        let (at, rows) = (event.at, &mut self.rows);
        match &event.what {
            What::FlowStarted { flow, qp, queue_pairs, .. } => match event.node {
                Node::Host(sender) => self.flows.on_started(rows, at, flow, (sender, *qp), *queue_pairs),
                Node::Switch(_) => Ok(()),
            },
            What::FlowFinished { flow } => self.flows.on_finished(rows, at, flow),
            What::Sent { port, packet, serialisation, waiting, .. } => {
                let flow = self.flows.name_of(packet);
                self.ports.on_sent(rows, PortEvent { at, port: *port, packet }, flow, *serialisation, *waiting)
            }
            What::Arrived { port, packet, .. } => {
                self.ports.on_arrived(rows, PortEvent { at, port: *port, packet })?;
                match event.node {
                    Node::Host(host) => self.flows.on_arrived(rows, at, host, packet),
                    Node::Switch(_) => Ok(()),
                }
            }
            What::Queued { port, packet, ahead, .. } => {
                let followed = self.flows.follows(packet);
                self.ports.on_queued(rows, PortEvent { at, port: *port, packet }, *ahead, followed)
            }
            What::Trimmed { port, packet, class, waiting, .. } => {
                let followed = self.flows.follows(packet);
                self.ports.on_trimmed(rows, PortEvent { at, port: *port, packet }, *class, *waiting, followed)
            }
            What::Dropped { port, packet, reason } => {
                self.ports.on_dropped(rows, PortEvent { at, port: *port, packet }, *reason)
            }
            What::Paused { port, classes } => self.ports.on_paused(rows, at, *port, *classes),
            What::Filled { port, .. } => self.ports.on_filled(rows, at, *port),
            What::Link { port, up } => self.ports.on_link(rows, at, *port, *up),
            What::Engine { sender, qp, trace } => self.flows.on_engine(rows, at, (*sender, *qp), trace),
            What::Held { qp, hold, limits, .. } => match event.node {
                Node::Host(host) => {
                    self.flows.on_held(rows, at, (host, *qp), *hold)?;
                    limits.iter().try_for_each(|limits| self.flows.on_limits(rows, at, (host, *qp), *limits))
                }
                Node::Switch(_) => Ok(()),
            },
        }
    }

    /// Ends everything that has not ended at `end`, and flushes the file to the operating system.
    pub(crate) fn finish(mut self, end: Instant) -> io::Result<()> {
        self.ports.finish(&mut self.rows, end)?;
        self.flows.finish(&mut self.rows, end)?;
        self.rows.file.finish()
    }
}

impl<W: Write> Lanes<W> {
    /// Begins the timeline of a recording in `graph`, of which `focus` is shown.
    pub(crate) fn begin(out: W, graph: &Graph, names: Arc<PortNames>, focus: &Focus) -> io::Result<Self> {
        Ok(Self { rows: Rows::begin(out, graph, names)?, ports: Ports::new(focus) })
    }

    /// Ends everything that has not ended at `end`, and flushes the file to the operating system.
    pub(crate) fn finish(mut self, end: Instant) -> io::Result<()> {
        self.ports.finish(&mut self.rows, end)?;
        self.rows.file.finish()
    }
}

impl<W: Write> Rows<W> {
    fn begin(out: W, graph: &Graph, names: Arc<PortNames>) -> io::Result<Self> {
        Ok(Self { file: File::begin(out)?, nodes: BTreeMap::new(), graph: graph.clone(), names })
    }

    /// Creates a track for a port.
    fn port(&mut self, port: PortId) -> io::Result<Track> {
        let name = format!("to {} (port {})", self.names.info(port).peer, port.0);
        self.below(self.names.owner(port), &name)
    }

    /// Creates a track below that of `node`.
    fn below(&mut self, node: Node, name: &str) -> io::Result<Track> {
        if !self.nodes.contains_key(&node) {
            let rank = match node {
                Node::Host(host) => host.0,
                Node::Switch(switch) => self.graph.hosts.len() as u32 + switch.0,
            };
            let track = self.file.track(self.graph.name(node), None, rank, TrackKind::Events)?;
            self.nodes.insert(node, (track, 0));
        }
        let (parent, children) = self.nodes.get_mut(&node).expect("the entry has just been inserted");
        *children += 1;
        self.file.track(name, Some(*parent), *children, TrackKind::Events)
    }
}

/// Returns the title of a packet.
fn title(packet: &Packet) -> String {
    match packet.repr {
        Repr::Data(Data { psn, trimmed: true, .. }) => format!("header of {}", psn.get()),
        Repr::Data(Data { psn, retransmission: true, .. }) => format!("data {} again", psn.get()),
        Repr::Data(data) => format!("data {}", data.psn.get()),
        Repr::Ack(ack) => match ack.kind {
            AckKind::Ack => format!("ACK {}", ack.expected.get()),
            AckKind::Nack => format!("NACK {} for {}", ack.expected.get(), ack.sack.get()),
        },
        Repr::HoleNack(nack) => format!("NACK {}{}", nack.expected.get(), holes(nack)),
        Repr::Cnp => "CNP".to_owned(),
        Repr::NetRt(message) => match message.message() {
            Message::Request(request) => format!("NetRT request {}", request.expected().get()),
            Message::Unfulfilled(psn) => format!("NetRT unfulfilled {}", psn.get()),
        },
        Repr::Control(control) => control.to_string(),
        Repr::EqdsData(data) => tunnel_title(&data),
        Repr::EqdsControl(control) => answer_title(&control),
        Repr::Pause(pause) if pause.quanta == 0 => "PFC resume".to_owned(),
        Repr::Pause(_) => "PFC pause".to_owned(),
        Repr::Tcp(tcp) => match tcp {
            Tcp::Syn { .. } => "SYN".to_owned(),
            Tcp::Sack { ack, .. } => format!("SACK {}", ack.get()),
            Tcp::Plain { ack, payload: 0, .. } => format!("ACK {}", ack.get()),
            Tcp::Plain { seq, .. } if tcp.is_again() => format!("data {} again", seq.get()),
            Tcp::Plain { seq, .. } => format!("data {}", seq.get()),
        },
    }
}

/// Returns the title of a packet in a tunnel.
fn tunnel_title(data: &eqds::Data) -> String {
    let again = if data.retransmission { " again" } else { "" };
    match data.flags.any(eqds::Flags::RTS) {
        true => format!("request to {}", data.pull_target),
        false => format!("data {}{again}", data.seq),
    }
}

/// Returns the title of a tunnel's control packet, with all its flags and numbers.
fn answer_title(control: &eqds::Control) -> String {
    let names = [
        (eqds::Flags::RST, "RST"),
        (eqds::Flags::NACK, "NACK"),
        (eqds::Flags::SACK, "SACK"),
        (eqds::Flags::ACK, "ACK"),
    ];
    let named = names.into_iter().filter(|(flag, _)| control.flags.any(*flag));
    let mut said: Vec<String> = named.map(|(_, name)| format!("{name} {}", control.number)).collect();
    if control.flags.any(eqds::Flags::PULL) {
        said.push(format!("pull {}", control.pull));
    }
    said.join(", ")
}

/// Returns the holes that a NACK carries, newest first: " for 7, 3-4".
fn holes(nack: HoleNack) -> String {
    let holes = nack.holes.into_iter().filter(|hole| hole.length > 0).map(|Hole { start, length }| {
        let first = nack.expected.get().wrapping_add(start.wrapping_sub(nack.expected.get() as u16).into());
        let last = Psn::new(first.wrapping_add(u32::from(length) - 1)).get();
        if length == 1 { last.to_string() } else { format!("{}-{last}", Psn::new(first).get()) }
    });
    format!(" for {}", holes.collect::<Vec<_>>().join(", "))
}

/// Returns an identifier that joins the slices of a packet: a hash of what is equal on all its hops and differs from
/// other packets. A pause frame has one hop, from the port that sent it.
fn identity(packet: &Packet, sender: PortId) -> u64 {
    let (kind, number) = match packet.repr {
        Repr::Data(data) => (0, data.psn.get()),
        Repr::Ack(ack) => (1 + ack.kind as u64, ack.sack.get()),
        Repr::HoleNack(nack) => (1 + AckKind::Nack as u64, nack.sack().get()),
        Repr::Pause(_) => (3, sender.0),
        // A host sends one segment at a time, so that the sending time identifies it.
        Repr::Tcp(tcp) => (4, u32::from(tcp.is_backward())),
        // A CNP carries the sending time of the data packet that it answers.
        Repr::Cnp => (5, 0),
        Repr::NetRt(message) => match message.message() {
            Message::Request(request) => (5, 1 + request.expected().get()),
            Message::Unfulfilled(psn) => (5, 1 + psn.get()),
        },
        Repr::Control(control) => (20, control.words[0]),
        // A host sends one packet at a time, so that the sending time identifies it.
        Repr::EqdsData(data) => (6, data.seq),
        Repr::EqdsControl(control) => (7 + u64::from(control.flags.bits()), control.number ^ control.pull << 16),
    };
    let parties = u64::from(packet.src.0) << 32 | u64::from(packet.dst.0);
    let message = u64::from(packet.qp.0) << 32 | u64::from(number);
    [parties, message, packet.sent_at.as_ps(), kind].into_iter().fold(0, |hash, part| mix64(hash ^ part))
}
