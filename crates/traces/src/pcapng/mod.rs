//! Packets as Wireshark, tcpdump and scapy read them: one interface per port that saw any.

mod file;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use selvedge_sim::SimConfig;
use selvedge_sim::record::{Event, What};
use selvedge_sim::topology::Node;
use selvedge_telemetry::DropReason;
use selvedge_units::{Instant, PortId};
use selvedge_wire::{Packet, Repr};

use crate::headers::Headers;
use crate::names::PortNames;
use file::{Direction, Interface, Pcapng};

pub(crate) use file::LONGEST;

/// A capture of what passed through ports.
pub(crate) struct Capture<W> {
    file: Pcapng<W>,
    names: Arc<PortNames>,
    headers: Headers,
    interfaces: BTreeMap<PortId, Interface>,
    buffer: Vec<u8>,
}

/// What every payload is made of.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl<W: Write> Capture<W> {
    /// Begins a capture that keeps at most `snaplen` bytes of each packet.
    pub(crate) fn begin(
        out: W,
        program: &str,
        config: &SimConfig,
        names: Arc<PortNames>,
        snaplen: usize,
    ) -> io::Result<Self> {
        Ok(Self {
            file: Pcapng::begin(out, program, snaplen)?,
            names,
            headers: Headers::new(config),
            interfaces: BTreeMap::new(),
            buffer: vec![0; LONGEST],
        })
    }

    /// Writes down the packets among `events`.
    pub(crate) fn on_events(&mut self, events: &[Event]) -> io::Result<()> {
        let mut events = events.iter().peekable();
        while let Some(event) = events.next() {
            match &event.what {
                What::FlowStarted { flow, qp } => {
                    if let Node::Host(sender) = event.node {
                        self.headers.learn(flow, (sender, *qp));
                    }
                }
                What::Sent { port, packet, .. } => {
                    let again = match packet.repr {
                        Repr::Data(data) => data.retransmission,
                        Repr::Tcp(tcp) => tcp.is_again(),
                        Repr::Ack(_) | Repr::Cnp | Repr::Pause(_) => false,
                    };
                    let comment = again.then_some("retransmission");
                    self.packet(*port, event.at, Direction::Out, packet, comment)?;
                }
                What::Arrived { port, packet } => match events.peek().and_then(|next| fate(next, *port, packet)) {
                    // It never came out of the link.
                    Some(DropReason::LinkLoss | DropReason::LinkDown | DropReason::Corrupt) => {}
                    Some(reason) => {
                        let comment = format!("dropped: {}", reason.name());
                        self.packet(*port, event.at, Direction::In, packet, Some(&comment))?;
                    }
                    None => self.packet(*port, event.at, Direction::In, packet, None)?,
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Hands everything to the operating system.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.finish()
    }

    fn packet(
        &mut self,
        port: PortId,
        at: Instant,
        direction: Direction,
        packet: &Packet,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let interface = match self.interfaces.get(&port) {
            Some(&interface) => interface,
            None => {
                let info = self.names.info(port);
                let description = format!("port {} of {}, towards {}", port.0, info.node, info.peer);
                let interface = self.file.interface(self.names.name(port), &description, info.rate)?;
                self.interfaces.insert(port, interface);
                interface
            }
        };
        // A pause comes from the port that sent it.
        let source = if direction == Direction::Out { port } else { self.names.info(port).peer_id };
        let (frame, payload) = self.headers.frame(packet, source);
        let bytes = frame.emit(&ZEROS[..payload], &mut self.buffer);
        self.file.packet(interface, at, direction, bytes, comment)
    }
}

/// Why `packet`, which has just arrived at `port`, was dropped there, if that is what happened next.
fn fate(next: &Event, at: PortId, arrived: &Packet) -> Option<DropReason> {
    match &next.what {
        What::Dropped { port, packet, reason } if *port == at && packet == arrived => Some(*reason),
        _ => None,
    }
}
