//! TCP connections, reconstructed from their packets.

use std::collections::BTreeMap;

use selvedge_telemetry::FlowRow;
use selvedge_transport::tcp::clock;
use selvedge_units::{HostId, QpNumber, TcpSeq};
use selvedge_wire::tcp::{self, Flags, Stream, Tcp};
use selvedge_wire::{Packet, Udp};

/// The connections of one run, with the information that packed segments omit.
#[derive(Default)]
pub(super) struct Connections(BTreeMap<(HostId, QpNumber), Connection>);

/// The state of a connection, as known from its packets.
struct Connection {
    /// Port of the end that opened the connection.
    port: u16,
    /// Octets of a full segment, and end of the stream.
    stream: Stream,
    /// Next octet from the end that accepted the connection.
    answers: TcpSeq,
}

/// Port of the accepting end: that of iWARP's connection manager in Linux's examples.
const SERVICE: u16 = 7471;

impl Connections {
    /// Returns the header of a segment on queue pair `qp` of `opener`, whose `flow` may be known.
    pub(super) fn header(&mut self, packet: &Packet, tcp: &Tcp, opener: HostId, flow: Option<&FlowRow>) -> tcp::Header {
        let connection = self.0.entry((opener, packet.qp)).or_insert_with(|| Connection {
            port: Udp::source_port(packet.entropy),
            stream: Stream { mss: 0, end: TcpSeq::new(0) },
            answers: TcpSeq::new(0),
        });
        let segment = tcp.unpack(connection.answers, clock(packet.sent_at), connection.stream);
        let after_syn = u32::from(segment.flags.contains(Flags::SYN));
        let after = |octets: u32| TcpSeq::new(segment.seq.get().wrapping_add(octets));
        if tcp.is_backward() {
            connection.answers = after(after_syn + u32::from(segment.payload));
            return tcp::Header { source: SERVICE, destination: connection.port, segment };
        }
        // The first packet marks the beginning; the first data is a full segment if there is more data.
        if connection.stream.end == TcpSeq::new(0) {
            connection.stream.end = after(after_syn + flow.map_or(0, |flow| flow.size.get() as u32));
        }
        if connection.stream.mss == 0 {
            connection.stream.mss = segment.payload;
        }
        tcp::Header { source: connection.port, destination: SERVICE, segment }
    }
}
