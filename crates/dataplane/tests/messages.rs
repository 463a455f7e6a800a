//! MSNs of acknowledgements: they count the messages that are complete, in order (IRN section 5.3.3).

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use selvedge_dataplane::{Clock, Datagrams, Incoming, receive};
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::{Receiver, RecoveryParams, Scheme};
use selvedge_units::{Instant, Psn, QpNumber, Setting};
use selvedge_wire::{Ack, Body, Data, Datagram};

const QP: QpNumber = QpNumber(0x11);

/// A network that delivers queued datagrams and records the answers.
struct Script {
    incoming: VecDeque<Vec<u8>>,
    answers: Vec<Ack>,
}

impl Datagrams for Script {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let (parsed, _) = Datagram::parse(datagram).map_err(io::Error::other)?;
        let Body::Ack(ack) = parsed.body else { panic!("expected an acknowledgement") };
        self.answers.push(ack);
        Ok(())
    }
    fn recv(&mut self, buffer: &mut [u8], _: Duration) -> io::Result<Option<usize>> {
        Ok(self.incoming.pop_front().map(|datagram| {
            buffer[..datagram.len()].copy_from_slice(&datagram);
            datagram.len()
        }))
    }
}

/// Returns the MSNs in the answers to packets in this order. Every packet with an odd PSN ends a message.
fn msns(recovery: impl Into<RecoveryParams>, order: &[u32]) -> Vec<u32> {
    let recovery = recovery.into();
    let packet = |&psn: &u32| {
        let data = Data { psn: Psn::new(psn), payload: 0, last: psn % 2 == 1, retransmission: false, trimmed: false };
        let datagram = Datagram { qp: QP, sent_at: Instant::ZERO, body: Body::Data(data) };
        datagram.emit(&mut [0; Datagram::LONGEST_HEADERS]).to_vec()
    };
    let mut network = Script { incoming: order.iter().map(packet).collect(), answers: Vec::new() };
    let mut receiver = Receiver::new(&recovery, Psn::new(0));
    let mut incoming = Incoming { qp: QP, recovery, place: &mut |_, _| {} };
    let mut turns = 0..order.len();
    let mut stop = || turns.next().is_none();
    receive(&mut network, &Clock::start(), &mut receiver, &mut incoming, &mut stop)
        .expect("the script network never fails");
    network.answers.iter().map(|ack| ack.msn).collect()
}

#[test]
fn messages_count_when_everything_before_has_arrived() {
    let irn = IrnConfig { bdp_cap: Setting::Value(64), timeouts: Timeouts::Off, ..IrnConfig::default() };
    let irn = irn.params().expect("valid settings");
    assert_eq!(msns(irn, &[0, 1, 2, 3]), [0, 1, 1, 2]);
    // The second message is there, but packet 1 is missing.
    assert_eq!(msns(irn, &[0, 2, 3, 1, 1]), [0, 0, 0, 2, 2]);
    let go_back_n = GoBackNConfig { acks: Acks::PerPacket, rto: Setting::Off, ..GoBackNConfig::default() };
    let go_back_n = go_back_n.params().expect("valid settings");
    // A gap causes one NACK; packets that arrived out of order are retransmitted.
    assert_eq!(msns(go_back_n, &[0, 2, 3, 1, 2, 3]), [0, 0, 1, 1, 2]);
}
