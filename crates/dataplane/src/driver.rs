//! The run loops: an engine, a clock, a network, and memory to send from or to place into.
//!
//! The engine decides; the driver moves bytes and waits. Each turn of its loop handles an arrived datagram, expired
//! timers and at most one packet to send, then waits until the engine's deadline or the next datagram.

use std::io;
use std::time::Duration;

use selvedge_nic::{ReorderBuffer, Spare};
use selvedge_transport::recovery::irn::{Completion, Completions};
use selvedge_transport::{
    Congestion, Cx, DataVerdict, Next, Receiver, Recovery, RecoveryParams, RecoveryReceiver, SchemeParams, Sender,
    SharedState,
};
use selvedge_units::{Bytes, Psn, QpNumber, Seq};
use selvedge_wire::{Ack, AckKind, Body, Data, Datagram, Header};

use crate::clock::Clock;
use crate::udp::Datagrams;

/// Size of the receive buffer in bytes, larger than any UDP datagram.
const LONGEST: usize = 1 << 16;
/// Modulus of message sequence numbers, which have 24 bits.
const MSN_MODULUS: u64 = 1 << 24;
/// Longest wait before the driver asks again whether the caller wants to stop.
const HEARTBEAT: Duration = Duration::from_millis(10);

/// Data to send and the parameters of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The bytes to send.
    pub payload: &'a [u8],
    /// Payload bytes of a packet, at most 65,000; the last packet may carry less.
    pub piece: usize,
    /// The queue pair that the packets are addressed to.
    pub qp: QpNumber,
    /// PSN of the first packet.
    pub first_psn: Psn,
    /// The loss recovery that both engines were built with.
    pub recovery: RecoveryParams,
}

/// Destination of arriving packets and the parameters of the connection.
pub struct Incoming<'a> {
    /// The queue pair whose packets are accepted.
    pub qp: QpNumber,
    /// The loss recovery that both engines were built with.
    pub recovery: RecoveryParams,
    /// Callback for each accepted packet, with its sequence number and its payload.
    pub place: &'a mut dyn FnMut(Seq, &[u8]),
}

/// Sends all of `outgoing`, and returns when everything is acknowledged or `stop` returns true. `sender` must have been
/// supplied with all packets, and uses the NIC's on-chip memory alone.
///
/// # Errors
/// Returns an error if the network fails.
pub fn send<R: Recovery<Shared = SharedState>, C: Congestion>(
    network: &mut impl Datagrams,
    clock: &Clock,
    sender: &mut Sender<R, C>,
    outgoing: &Outgoing<'_>,
    stop: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let mut buffer = vec![0; LONGEST];
    let mut headers = [0; Datagram::LONGEST_HEADERS];
    let mut shared = outgoing.recovery.shared();
    while !sender.is_done() && !stop() {
        let mut cx = Cx::at(clock.now());
        if sender.poll_timeout().is_some_and(|at| at <= cx.now) {
            sender.handle_timeout(&mut cx, &mut shared);
        }
        let frame_of = |seq| Header::ROCE + Bytes::new(outgoing.piece_of(seq).len() as u64) + Header::GAP;
        if let Some(segment) = sender.poll_transmit(&mut cx, &mut shared, frame_of) {
            let payload = outgoing.piece_of(segment.seq);
            let data = Data {
                psn: segment.seq.to_psn(outgoing.first_psn),
                payload: payload.len() as u16,
                last: segment.seq + 1 == sender.supplied(),
                retransmission: segment.retransmission,
                trimmed: false,
            };
            let datagram = Datagram { qp: outgoing.qp, sent_at: cx.now, body: Body::Data(data) };
            network.send(&[datagram.emit(&mut headers), payload].concat())?;
        }
        // Between two packets of a burst, only datagrams that have already arrived are handled.
        let patience = match sender.next(cx.now) {
            Next::Send(_) => Duration::ZERO,
            Next::Wait(_) | Next::Idle => sender.poll_timeout().map_or(HEARTBEAT, |at| clock.until(at).min(HEARTBEAT)),
        };
        let Some(length) = network.recv(&mut buffer, patience)? else { continue };
        // Datagrams that do not parse, or that are for another queue pair, are ignored.
        let Ok((Datagram { qp, sent_at, body }, _)) = Datagram::parse(&buffer[..length]) else { continue };
        let mut cx = Cx::at(clock.now());
        match body {
            Body::Ack(ack) if qp == outgoing.qp => sender.handle_ack(&mut cx, &mut shared, &ack, sent_at),
            Body::HoleNack(nack) if qp == outgoing.qp => sender.handle_hole_nack(&mut cx, &mut shared, &nack, sent_at),
            Body::Ack(_) | Body::HoleNack(_) | Body::Data(_) | Body::Cnp => {}
        }
    }
    Ok(())
}

/// Accepts arriving packets and answers them until `stop` returns true. A receiver cannot know that its last
/// acknowledgement has arrived, so the caller decides when to stop. Returns the number of duplicate packets.
///
/// # Errors
/// Returns an error if the network fails.
pub fn receive<A: RecoveryReceiver<Shared = SharedState>>(
    network: &mut impl Datagrams,
    clock: &Clock,
    receiver: &mut Receiver<A>,
    incoming: &mut Incoming<'_>,
    stop: &mut dyn FnMut() -> bool,
) -> io::Result<u64> {
    let mut buffer = vec![0; LONGEST];
    let mut headers = [0; Datagram::LONGEST_HEADERS];
    let mut duplicates = 0;
    let (mut completions, mut msn) = (Completions::default(), 0);
    let mut shared = incoming.recovery.shared();
    let mut reorder = ReorderBuffer::new(incoming.recovery.reorder_slots());
    let mut spare = Spare::default();
    while !stop() {
        let Some(length) = network.recv(&mut buffer, HEARTBEAT)? else { continue };
        let Ok((Datagram { qp, sent_at, body: Body::Data(data) }, payload)) = Datagram::parse(&buffer[..length]) else {
            continue;
        };
        if qp != incoming.qp {
            continue;
        }
        let before = receiver.expected();
        let reply = receiver.handle_data(&mut Cx::at(clock.now()), &mut shared, &data, false);
        match reply.verdict {
            DataVerdict::Accepted(seq) => (incoming.place)(seq, payload),
            DataVerdict::Buffered(seq) => {
                reorder.keep(seq, seq, payload.len() as u32, &mut spare, |into| into.extend_from_slice(payload));
            }
            DataVerdict::Released { seq, run } => {
                (incoming.place)(seq, payload);
                for kept in (1..=u64::from(run)).filter_map(|ahead| reorder.take(seq + ahead)) {
                    (incoming.place)(kept.destination, &kept.payload);
                    spare.give(kept.payload);
                }
            }
            DataVerdict::Duplicate => duplicates += 1,
            DataVerdict::Refused | DataVerdict::Invalid => {}
        }
        if let Some(seq) = reply.verdict.accepted() {
            let completion = if data.last { Completion::Receive } else { Completion::Nothing };
            msn += completions.on_accepted(seq, completion, before, receiver.expected()).messages;
        }
        if let Some(ack) = reply.ack {
            let ack = Ack { msn: (msn % MSN_MODULUS) as u32, ..ack };
            let holes = if ack.kind == AckKind::Nack { receiver.with_holes(&ack) } else { None };
            let datagram = Datagram { qp, sent_at, body: holes.map_or(Body::Ack(ack), Body::HoleNack) };
            network.send(datagram.emit(&mut headers))?;
        }
    }
    Ok(duplicates)
}

impl Outgoing<'_> {
    fn piece_of(&self, seq: Seq) -> &[u8] {
        let from = seq.index() as usize * self.piece;
        &self.payload[from..self.payload.len().min(from + self.piece)]
    }
}
