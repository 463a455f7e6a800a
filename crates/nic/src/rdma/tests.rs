//! Tests of two NICs and a wire: requests of applications complete whatever is lost.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::{Cx, FeedbackConfig, Scheme};
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber, Setting};
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Packet, Repr};

use super::{ConnectionParams, VerbsParams, WireFormat};
use crate::tests::params;
use crate::verbs::{Data, Operation, QpOptions, Remote, SendRequest, Status};
use crate::{Nic, NicParams};

const CONNECTION: ConnectionParams = ConnectionParams {
    send_requests: 8,
    receive_requests: 8,
    reads: 4,
    timeout: 14,
    retries: 7,
    options: QpOptions { credits: false, fence_overlaps: false },
};

fn speaking() -> NicParams {
    let irn = IrnConfig {
        timeouts: Timeouts::On,
        rto_low: Setting::Off,
        rto_high: Setting::Value(Duration::from_us(100)),
        bdp_cap: Setting::Value(16),
        ..IrnConfig::default()
    };
    let verbs = VerbsParams {
        recovery: irn.params().expect("valid settings").into(),
        congestion: NoneConfig {}.into(),
        feedback: FeedbackConfig::default(),
        overhead: Bytes::new(90),
        window: 16,
        class: 0,
        format: WireFormat::Selvedge,
    };
    NicParams { verbs: Some(verbs), ..params(1) }
}

/// Creates two NICs with a connection.
fn pair(params: &NicParams) -> ([Nic; 2], [QpNumber; 2]) {
    let verbs = params.verbs.expect("RDMA parameters");
    let mut nics = [0, 1].map(|n| Nic::new(HostId(n), params));
    let qps = [0, 1].map(|n| nics[n].create_qp(&verbs, &CONNECTION).expect("a valid configuration"));
    for at in 0..2 {
        let other = (HostId(1 - at as u32), qps[1 - at]);
        nics[at].connect_qp(params, &CONNECTION, qps[at], other, 7).expect("matching queue pairs");
    }
    (nics, qps)
}

pub(crate) fn request(id: u64, operation: Operation, length: u32) -> SendRequest {
    SendRequest {
        id,
        operation,
        data: Data::Gather(vec![Nic::memory(1 << 40, length)]),
        signaled: true,
        solicited: false,
        fence: false,
        destination: None,
    }
}

/// Carries all packets over a wire with a delay of 1 us that loses each `nth` packet; returns the packets sent.
fn run(params: &NicParams, nics: &mut [Nic; 2], nth: u64) -> Vec<Packet> {
    let (mut now, mut sent) = (Instant::ZERO, 0);
    let mut seen = Vec::new();
    let mut wire: VecDeque<(Instant, usize, Packet, Headers)> = VecDeque::new();
    loop {
        for (at, nic) in nics.iter_mut().enumerate() {
            let mut packet = Packet::BLANK;
            while nic.poll_transmit(&mut Cx::at(now), params, 0, &mut packet) {
                let headers = nic.poll_headers().expect("headers of an application packet");
                seen.push(packet);
                sent += 1;
                if sent % nth != 0 {
                    wire.push_back((now + Duration::from_us(1), 1 - at, packet, headers));
                }
            }
        }
        let wakes = nics.iter().filter_map(Nic::poll_timeout);
        let Some(next) = wakes.chain(wire.front().map(|&(at, ..)| at)).min() else { return seen };
        if next == Instant::NEVER || now > Instant::ZERO + Duration::from_ms(100) {
            return seen;
        }
        now = now.max(next);
        if let Some((_, to, packet, headers)) = wire.pop_front_if(|&mut (at, ..)| at <= now) {
            nics[to].handle_verbs(&mut Cx::at(now), params, &packet, &headers);
        }
        for nic in &mut *nics {
            nic.handle_timeout(&mut Cx::at(now), params);
        }
    }
}

#[test]
fn each_operation_completes_whatever_is_lost() {
    for nth in [u64::MAX, 7, 3] {
        let params = speaking();
        let (mut nics, qps) = pair(&params);
        let key = Nic::memory(0, 0).key;
        let operations = [
            (Operation::Write { remote: Remote { address: 0, key }, immediate: None }, 100_000),
            (Operation::Read(Remote { address: 0, key }), 50_000),
            (Operation::Send(Default::default()), 3_000),
            (Operation::FetchAdd { remote: Remote { address: 64, key }, add: 5 }, 8),
            (Operation::CompareSwap { remote: Remote { address: 64, key }, compare: 5, swap: 9 }, 8),
        ];
        for (id, (operation, length)) in (0..).zip(operations) {
            let request = request(id, operation, length);
            nics[0].post(&mut Cx::at(Instant::ZERO), &params, qps[0], request).expect("free capacity");
        }
        let seen = run(&params, &mut nics, nth);
        let done: Vec<_> = core::iter::from_fn(|| nics[0].poll_completed()).collect();
        assert_eq!(done.iter().map(|done| done.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "one in {nth} lost");
        assert!(done.iter().all(|done| done.status == Status::Success));
        assert_eq!(nics[1].poll_completed().map(|received| received.length), Some(3_000));
        assert_eq!(nics[1].ledger().map(|ledger| ledger.word(64)), Some(9));
        assert_eq!(nics[0].ledger().map(|ledger| ledger.take(1 << 40)), Some(5), "what was there before the last");
        let stats = nics.each_ref().map(|nic| *nic.stats());
        assert_eq!(stats[1].goodput, 103_000);
        assert_eq!(stats[0].goodput, 50_016);
        let is_data = |packet: &&Packet| matches!(packet.repr, Repr::Data(_));
        assert_eq!(seen.iter().filter(is_data).count() as u64, stats[0].data_sent + stats[1].data_sent);
        assert_eq!(stats[0].retransmissions > 0, nth != u64::MAX);
    }
}

/// Returns the frame lengths in bytes of a message of three packets, each with a payload of 1,024 bytes, and of the
/// first acknowledgement.
fn frames(format: WireFormat, operation: Operation) -> (Vec<u16>, u16) {
    let mut params = speaking();
    params.verbs.as_mut().expect("RDMA parameters").format = format;
    let (mut nics, qps) = pair(&params);
    let request = request(0, operation, 3 * 1_024);
    nics[0].post(&mut Cx::at(Instant::ZERO), &params, qps[0], request).expect("room in the queue");
    let seen = run(&params, &mut nics, u64::MAX);
    let is_full = |packet: &&Packet| matches!(packet.repr, Repr::Data(data) if data.payload == 1_024);
    let full = seen.iter().filter(is_full).map(|packet| packet.frame).collect();
    let ack = seen.iter().find(|packet| matches!(packet.repr, Repr::Ack(_))).expect("all is acknowledged");
    (full, ack.frame)
}

#[test]
fn headers_cost_what_their_format_says() {
    use WireFormat::{Irn, Roce, Selvedge};
    let remote = Remote { address: 0, key: Nic::memory(0, 0).key };
    let write = Operation::Write { remote, immediate: None };
    let (read, send) = (Operation::Read(remote), Operation::Send(Default::default()));
    for (operation, roce, irn, selvedge) in [
        (write, [16, 0, 0], [16, 16, 16], [36, 36, 36]),
        (send, [0, 0, 0], [6, 6, 6], [20, 20, 20]),
        (read, [4, 0, 4], [4, 0, 4], [24, 24, 24]),
    ] {
        for (format, beside, ack) in [(Roce, roce, 66), (Irn, irn, 66), (Selvedge, selvedge, 78)] {
            let full = beside.map(|more| 62 + 1_024 + more).to_vec();
            assert_eq!(frames(format, operation), (full, ack), "{format:?}, {operation:?}");
        }
    }
}

#[test]
fn queue_pairs_take_turns_packet_by_packet() {
    let params = speaking();
    let (mut nics, first) = pair(&params);
    let verbs = params.verbs.expect("RDMA parameters");
    let second = [0, 1].map(|n| nics[n].create_qp(&verbs, &CONNECTION).expect("a valid configuration"));
    for at in 0..2 {
        let other = (HostId(1 - at as u32), second[1 - at]);
        nics[at].connect_qp(&params, &CONNECTION, second[at], other, 8).expect("matching queue pairs");
    }
    let remote = Remote { address: 0, key: Nic::memory(0, 0).key };
    for qp in [first[0], second[0]] {
        let write = request(0, Operation::Write { remote, immediate: None }, 10_000);
        nics[0].post(&mut Cx::at(Instant::ZERO), &params, qp, write).expect("room in the queue");
    }
    let seen = run(&params, &mut nics, u64::MAX);
    let senders: Vec<u32> = seen.iter().filter(|packet| packet.src == HostId(0)).map(|packet| packet.entropy).collect();
    assert!(senders.chunks(2).take(8).all(|turns| turns == [7, 8]), "{senders:?}");
}
