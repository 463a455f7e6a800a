//! Captures of packets for Wireshark, tcpdump and scapy: one interface per port that saw any packet.

pub(crate) mod file;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use selvedge_sim::record::{Event, What};
use selvedge_sim::topology::{Graph, Node};
use selvedge_telemetry::DropReason;
use selvedge_units::{Instant, PortId};
use selvedge_wire::{Content, Packet, Repr, verbs};

use crate::fate::{is_lost_on_link, with_fates};
use crate::files::Kept;
use crate::headers::{Headers, address};
use crate::names::PortNames;
use file::{Direction, Interface, LONGEST, Pcapng};

/// A capture of the packets that passed through ports.
pub(crate) struct Capture<W> {
    file: Pcapng<W>,
    kept: Kept,
    names: Arc<PortNames>,
    headers: Headers,
    interfaces: BTreeMap<PortId, Interface>,
    /// Names of hosts that have not appeared yet, indexed by host.
    strangers: Vec<Option<String>>,
    buffer: Vec<u8>,
}

/// Size of an Ethernet header in bytes. The IPv4 header follows; its second pair of bytes is the packet's length.
const ETHERNET: usize = 14;

/// Content of payloads.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl<W: Write> Capture<W> {
    /// Begins a capture of the part `kept` of each packet.
    pub(crate) fn begin(
        out: W,
        program: &str,
        headers: Headers,
        graph: &Graph,
        names: Arc<PortNames>,
        kept: Kept,
    ) -> io::Result<Self> {
        let snaplen = if let Kept::Bytes(bytes) = kept { bytes } else { LONGEST };
        Ok(Self {
            file: Pcapng::begin(out, program, snaplen)?,
            kept,
            names,
            headers,
            interfaces: BTreeMap::new(),
            strangers: graph.hosts.iter().map(|host| Some(host.name.clone())).collect(),
            buffer: vec![0; LONGEST],
        })
    }

    /// Writes the packets among `events`.
    pub(crate) fn on_events(&mut self, events: &[Event]) -> io::Result<()> {
        for (event, fate) in with_fates(events) {
            match &event.what {
                What::FlowStarted { flow, qp, .. } => {
                    if let Node::Host(sender) = event.node {
                        self.headers.learn(flow, (sender, *qp));
                    }
                }
                What::Sent { port, packet, headers, .. } => {
                    let comment = comment(packet, None);
                    self.packet(*port, event.at, Direction::Out, (packet, headers.as_ref()), comment.as_deref())?;
                }
                // A packet lost on a link does not arrive at its end.
                What::Arrived { port, packet, headers } if !fate.is_some_and(is_lost_on_link) => {
                    let comment = comment(packet, fate);
                    self.packet(*port, event.at, Direction::In, (packet, headers.as_ref()), comment.as_deref())?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Flushes everything to the operating system.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.finish()
    }

    fn packet(
        &mut self,
        port: PortId,
        at: Instant,
        direction: Direction,
        (packet, headers): (&Packet, Option<&verbs::Headers>),
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
        for host in [packet.src, packet.dst] {
            if let Some(name) = self.strangers.get_mut(host.index()).and_then(Option::take) {
                self.file.name(address(host), &name)?;
            }
        }
        // The source of a pause is the port that sent it.
        let source = if direction == Direction::Out { port } else { self.names.info(port).peer_id };
        let (frame, payload) = self.headers.frame(packet, headers, source);
        let whole = frame.length(payload);
        // Lengths in a trimmed packet's headers are those of the whole packet.
        let length = if packet.is_trimmed() { whole.min(usize::from(packet.frame)) } else { whole };
        let bytes = match (self.kept, &frame.content) {
            // Wireshark reports an application's Send without its payload as malformed.
            (Kept::All | Kept::Bytes(_), _) | (Kept::Headers, Content::Rdma(_)) => {
                frame.emit(&ZEROS[..payload], &mut self.buffer)
            }
            // Dissectors of RoCE require the ICRC, and find it by the lengths in the headers.
            (Kept::Headers, Content::Roce(_)) if payload > 0 => {
                let bytes = frame.emit(&[], &mut self.buffer);
                // Without the padding of short frames, which the whole frame does not have.
                &bytes[..ETHERNET + usize::from(u16::from_be_bytes([bytes[ETHERNET + 2], bytes[ETHERNET + 3]]))]
            }
            (Kept::Headers, Content::Roce(_)) => frame.emit(&[], &mut self.buffer),
            // Other dissectors accept truncated packets; TCP's numbers are only consistent with the true lengths.
            (Kept::Headers, Content::Tcp(_) | Content::Eqds(_) | Content::Pfc(_)) => {
                let headers = frame.length(0);
                let headers = if payload == 0 { whole } else { headers };
                &frame.emit(&ZEROS[..payload], &mut self.buffer)[..headers.min(whole)]
            }
        };
        self.file.packet(interface, at, direction, bytes, length, comment)
    }
}

/// Returns a comment with facts that the packet's bytes do not show.
fn comment(packet: &Packet, fate: Option<DropReason>) -> Option<String> {
    let again = match packet.repr {
        Repr::Data(data) => data.retransmission,
        Repr::Tcp(tcp) => tcp.is_again(),
        Repr::EqdsData(data) => data.retransmission,
        Repr::Ack(_)
        | Repr::HoleNack(_)
        | Repr::Cnp
        | Repr::Control(_)
        | Repr::Pause(_)
        | Repr::EqdsControl(_)
        | Repr::NetRt(_) => false,
    };
    let again = again.then(|| "retransmission".to_owned());
    let control = if let Repr::Control(control) = packet.repr { Some(control.to_string()) } else { None };
    let trimmed = packet.is_trimmed().then(|| "trimmed".to_owned());
    let dropped = fate.map(|reason| format!("dropped: {}", reason.name()));
    let notes: Vec<String> = again.into_iter().chain(control).chain(trimmed).chain(dropped).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}
