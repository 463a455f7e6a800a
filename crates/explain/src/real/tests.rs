use std::net::Ipv4Addr;

use selvedge_telemetry::{DropReason, FabricEvent, FabricStep, MadePacket, PortInfo, PortKind};
use selvedge_units::{Bytes, Duration, HostId, Instant, PortId, Psn, QpNumber, Rate, TcpSeq};
use selvedge_wire::tcp::{Flags, Header, Segment, TcpDatagram};
use selvedge_wire::{Bth, Ecn, Envelope, EtherType, Ethernet, Ipv4, MacAddress, Opcode, Udp};

use super::report::RealPart;
use super::{RealFlow, RealRecording, render_real, render_real_flow};

/// Ports of two hosts at one switch: h0 and h1, then the switch's ports towards them.
const PORTS: [(&str, &str, u32); 4] = [("h0", "s0", 2), ("h1", "s0", 3), ("s0", "h0", 0), ("s0", "h1", 1)];
/// Propagation of each link.
const DELAY: u64 = 50;

/// A recording in construction, with times in microseconds.
struct Tape {
    recording: RealRecording,
    packets: u64,
}

/// Way of a packet from one host to the other. Times are in microseconds.
#[derive(Clone, Copy)]
struct Way {
    from: usize,
    at: u64,
    /// Wait for the switch's port.
    wait: u64,
    serialisation: u64,
    late: u64,
}

fn us(us: u64) -> Instant {
    Instant::from_ps(us * 1_000_000)
}

impl Tape {
    fn new() -> Self {
        let port = |(id, (node, peer, peer_id)): (u32, (&str, &str, u32))| {
            let kind = |node: &str| if node == "s0" { PortKind::Switch { tier: 0 } } else { PortKind::Host };
            PortInfo {
                id: PortId(id),
                node: node.into(),
                peer: peer.into(),
                peer_id: PortId(peer_id),
                kind: kind(node),
                peer_kind: kind(peer),
                rate: Rate::from_gbps(1),
            }
        };
        let names = PORTS.iter().map(|(node, peer, _)| format!("{node}:{peer}")).collect();
        Self { recording: RealRecording::new((0..).zip(PORTS).map(port).collect(), names), packets: 0 }
    }

    fn event(&mut self, at: u64, packet: u64, port: usize, what: FabricStep) {
        self.recording.add(&FabricEvent { at: us(at), packet, port: PortId(port as u32), what }, &[]);
    }

    fn enter(&mut self, at: u64, from: usize, frame: &[u8]) -> u64 {
        self.packets += 1;
        let length = frame.len() as u16;
        let what = FabricStep::Entered { to: HostId(1 - from as u32), class: 0, frame: length + 4, length };
        let event = FabricEvent { at: us(at), packet: self.packets, port: PortId(from as u32), what };
        self.recording.add(&event, frame);
        self.packets
    }

    fn send(&mut self, at: u64, packet: u64, port: usize, serialisation: u64) {
        let serialisation = Duration::from_us(serialisation);
        self.event(at, packet, port, FabricStep::Sent { serialisation, waiting: Bytes::ZERO });
    }

    /// Passes a packet to the other host; returns the time at which it is handed over.
    fn pass(&mut self, way: Way, frame: &[u8]) -> u64 {
        let Way { from, at, wait, serialisation, late } = way;
        let packet = self.enter(at, from, frame);
        self.send(at, packet, from, serialisation);
        let reached = at + serialisation + DELAY;
        self.event(reached, packet, 2 + from, FabricStep::Arrived);
        let out = 3 - from;
        if wait > 0 {
            let ingress = PortId(2 + from as u32);
            self.event(reached, packet, out, FabricStep::Queued { ingress, ahead: Bytes::ZERO });
        }
        self.send(reached + wait, packet, out, serialisation);
        let arrived = reached + wait + serialisation + DELAY;
        self.event(arrived, packet, 1 - from, FabricStep::Arrived);
        let late_by = Duration::from_us(late);
        self.event(arrived + late, packet, 1 - from, FabricStep::Delivered { late: late_by });
        arrived + late
    }

    fn flows(&self) -> Vec<RealFlow> {
        self.recording.explain().flows
    }
}

fn ip_frame(packet: &[u8]) -> Vec<u8> {
    let ethernet = Ethernet { destination: MacAddress::local(2), source: MacAddress::local(1), kind: EtherType::IPV4 };
    [&ethernet.emit()[..], packet].concat()
}

fn envelope(from: usize) -> Envelope {
    let addresses = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
    Envelope {
        source: addresses[from],
        destination: addresses[1 - from],
        dscp: 0,
        ecn: Ecn::Capable,
        identification: 0,
        ttl: 64,
    }
}

/// Returns a segment: of host 0 with `payload` bytes from `seq` on, or of host 1, acknowledging up to `seq`.
fn tcp(from: usize, seq: u32, payload: usize) -> Vec<u8> {
    let ports = [40_000, 5_201];
    let number = TcpSeq::new(seq);
    let (seq, ack) = if from == 0 { (number, TcpSeq::default()) } else { (TcpSeq::default(), number) };
    let segment = Segment { seq, ack, flags: Flags::ACK, payload: payload as u16, ..Segment::default() };
    let header = Header { source: ports[from], destination: ports[1 - from], segment };
    let mut buffer = [0; 2_000];
    ip_frame(TcpDatagram { envelope: envelope(from), header }.emit(&vec![0; payload], &mut buffer))
}

/// Returns a RoCE packet of a host to a queue pair of the other.
fn roce(from: usize, opcode: u8, qp: u32, psn: u32, payload: usize) -> Vec<u8> {
    let bth = Bth { opcode, destination: QpNumber(qp), psn: Psn::new(psn), ..Bth::default() };
    let content = [&bth.emit()[..], &vec![0; payload + 4]].concat();
    let length = (Udp::LENGTH + content.len()) as u16;
    let udp = Udp { source: 50_000, destination: Udp::ROCE, length, checksum: 0 };
    let ip = envelope(from).around(Ipv4::UDP, length.into());
    ip_frame(&[&ip.emit()[..], &udp.emit(), &content].concat())
}

fn time(flow: &RealFlow, part: RealPart) -> u64 {
    flow.parts[part].as_ps() / 1_000_000
}

/// Two packets in stop-and-wait: the second one leaves 30 us after the acknowledgement of the first, and waits.
#[test]
fn the_time_of_a_flow_is_that_of_the_chain_that_ended_it() {
    let mut tape = Tape::new();
    let data = |at, wait| Way { from: 0, at, wait, serialisation: 100, late: 0 };
    let arrived = tape.pass(data(0, 0), &tcp(0, 1_000, 1_000));
    assert_eq!(arrived, 300);
    let heard = tape.pass(Way { from: 1, at: 320, wait: 0, serialisation: 5, late: 7 }, &tcp(1, 2_000, 0));
    assert_eq!(heard, 320 + 2 * 55 + 7);
    // The port is busy with a packet of another flow until the packet leaves.
    tape.packets += 1;
    let other = tape.packets;
    tape.send(heard + 30 + 150, other, 3, 40);
    let end = tape.pass(data(heard + 30, 40), &tcp(0, 2_000, 1_000));
    let flows = tape.flows();
    let [flow] = &flows[..] else { panic!("one flow: {flows:?}") };
    assert_eq!((flow.name.as_str(), flow.from.as_str()), ("TCP 10.77.0.1:40000 > 10.77.0.2:5201", "h0"));
    assert_eq!((flow.bytes, flow.packets, flow.answers, flow.again), (2_000, 2, 1, 0));
    assert_eq!(flow.end_ps, Some(us(end).as_ps()));
    assert_eq!(flow.parts.total(), us(end) - us(0));
    let [serialisation, propagation] = [RealPart::Serialisation, RealPart::Propagation].map(|part| time(flow, part));
    assert_eq!((serialisation, propagation), (4 * 100 + 2 * 5, 6 * DELAY));
    let own = [RealPart::Sender, RealPart::Receiver, RealPart::Queueing, RealPart::Own, RealPart::Late];
    assert_eq!(own.map(|part| time(flow, part)), [30, 20, 40, 0, 7]);
    assert_eq!((flow.queues.len(), flow.queues[0].port.as_str()), (1, "s0:h1"));
    assert_eq!(flow.per_packet.max_ps, 340_000_000);
    assert_eq!(flow.per_packet.parts.total(), Duration::from_us(300 + 340));
    let text = render_real(&tape.recording.explain());
    assert!(text.contains("waited at s0:h1 (5 %)"), "{text}");
    let text = render_real_flow(flow);
    assert!(text.contains("40.0 us    5.0 %  QQ\n"), "{text}");
}

#[test]
fn a_burst_of_the_sender_is_serialisation_and_waits_behind_itself() {
    let mut tape = Tape::new();
    // The switch's link is slower than the host's: each packet waits behind the one before.
    for nth in 0..10 {
        let (entered, frame) = (nth * 100, tcp(0, 1_000 * nth as u32, 1_000));
        let packet = tape.enter(entered, 0, &frame);
        tape.send(entered, packet, 0, 100);
        tape.event(entered + 150, packet, 2, FabricStep::Arrived);
        if nth > 0 {
            let ingress = PortId(2);
            tape.event(entered + 150, packet, 3, FabricStep::Queued { ingress, ahead: Bytes::ZERO });
        }
    }
    // Events come in the order of time but for this test's sake by packet.
    for nth in 0..10 {
        let sent = 150 + nth * 200;
        tape.send(sent, nth + 1, 3, 200);
        tape.event(sent + 250, nth + 1, 1, FabricStep::Arrived);
        tape.event(sent + 250, nth + 1, 1, FabricStep::Delivered { late: Duration::ZERO });
    }
    let flow = &tape.flows()[0];
    assert_eq!(flow.parts.total(), Duration::from_us(150 + 10 * 200 + 50));
    let parts = [RealPart::Serialisation, RealPart::Propagation, RealPart::Own, RealPart::Queueing, RealPart::Sender];
    // Nine packets before the last one, and the last one on both links; 2 x 900 - 900 behind others of the flow.
    assert_eq!(parts.map(|part| time(flow, part)), [9 * 100 + 100 + 200, 2 * DELAY, 900, 0, 0]);
    assert_eq!(flow.queues[0].own_ps, 900_000_000);
}

#[test]
fn losses_retransmissions_and_silences_are_seen() {
    let mut tape = Tape::new();
    let way = |at| Way { from: 0, at, wait: 0, serialisation: 100, late: 0 };
    // A sequence number that wraps.
    tape.pass(way(0), &tcp(0, u32::MAX - 499, 1_000));
    let lost = tape.enter(100, 0, &tcp(0, 500, 1_000));
    tape.send(100, lost, 0, 100);
    tape.event(250, lost, 2, FabricStep::Arrived);
    tape.event(250, lost, 2, FabricStep::Dropped { reason: DropReason::LinkLoss });
    let end = tape.pass(way(200_200), &tcp(0, 500, 1_000));
    let flow = &tape.flows()[0];
    assert_eq!((flow.packets, flow.again, flow.bytes, flow.arrived), (3, 1, 2_000, 2));
    assert_eq!((flow.lost[0].data, flow.lost[0].on_link, flow.lost[0].from.as_str()), (1, true, "h0"));
    assert_eq!(time(flow, RealPart::Resend), 200_200, "nothing of the other direction came before");
    assert_eq!(flow.parts.total(), us(end) - us(0));
    assert_eq!((flow.gaps[0].length_ps, flow.gaps[0].before_resending), (200_000_000_000, true));
    let text = render_real_flow(flow);
    assert!(text.contains("link h0 -> s0") && text.contains("then it retransmitted"), "{text}");
}

#[test]
fn queue_pairs_are_paired_by_their_acknowledgements() {
    let mut tape = Tape::new();
    let way = |from, at| Way { from, at, wait: 0, serialisation: 100, late: 0 };
    // Two connections between the same hosts, and a packet that is sent again after a wrap of its PSN.
    let write = |qp, psn| roce(0, Opcode::WRITE_ONLY, qp, psn, 1_000);
    let acknowledge = |qp, psn| roce(1, Opcode::ACKNOWLEDGE, qp, psn, 4);
    tape.pass(way(0, 0), &write(0x11, 0xff_ffff));
    tape.pass(way(0, 100), &write(0x22, 500));
    tape.pass(way(0, 200), &write(0x11, 0));
    tape.pass(way(0, 300), &write(0x11, 0xff_ffff));
    tape.pass(way(1, 1_000), &acknowledge(0xbb, 500));
    tape.pass(way(1, 2_000), &acknowledge(0xaa, 0));
    tape.pass(way(1, 3_000), &roce(1, Opcode::CONGESTION_NOTIFICATION, 0xaa, 0, 16));
    let flows = tape.flows();
    let named: Vec<(&str, u64, u64, u64)> =
        flows.iter().map(|flow| (flow.name.as_str(), flow.packets, flow.again, flow.answers)).collect();
    assert_eq!(
        named,
        [
            ("RoCE 10.77.0.1 QP 0xaa > 10.77.0.2 QP 0x11", 3, 1, 2),
            ("RoCE 10.77.0.1 QP 0xbb > 10.77.0.2 QP 0x22", 1, 0, 1),
        ]
    );
}

#[test]
fn pauses_and_copies_have_their_own_parts() {
    let mut tape = Tape::new();
    let frame = tcp(0, 0, 1_000);
    let lost = tape.enter(0, 0, &frame);
    tape.send(0, lost, 0, 100);
    tape.event(150, lost, 2, FabricStep::Arrived);
    tape.event(150, lost, 2, FabricStep::Dropped { reason: DropReason::BufferFull });
    tape.packets += 1;
    let copy = tape.packets;
    tape.event(400, copy, 3, FabricStep::Made { class: 0, frame: 1_000, made: MadePacket::Copy { of: lost } });
    tape.event(400, copy, 3, FabricStep::Queued { ingress: PortId(2), ahead: Bytes::ZERO });
    // Class 0 may not leave from 410 to 460; another class later.
    tape.event(410, 0, 3, FabricStep::Paused { classes: 0b01 });
    tape.event(460, 0, 3, FabricStep::Paused { classes: 0b10 });
    tape.send(500, copy, 3, 100);
    tape.event(650, copy, 1, FabricStep::Arrived);
    tape.event(650, copy, 1, FabricStep::Delivered { late: Duration::ZERO });
    let flow = &tape.flows()[0];
    let parts = [RealPart::Held, RealPart::Pause, RealPart::Queueing, RealPart::Serialisation, RealPart::Propagation];
    assert_eq!(parts.map(|part| time(flow, part)), [400, 50, 50, 100, 50]);
    assert_eq!((flow.packets, flow.copies, flow.arrived), (1, 1, 1));
}
