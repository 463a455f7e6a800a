use super::*;

fn messages() -> [Message; 12] {
    let ids = Ids { local: 0x1234_5678, remote: 0x9abc_def0 };
    let path = PathOf {
        local: "::ffff:10.0.0.1".parse().expect("a valid address"),
        remote: "::ffff:10.0.0.2".parse().expect("a valid address"),
        flow_label: 0xf_ffff,
        traffic_class: 3,
        hop_limit: 64,
        ack_timeout: 19,
    };
    let ip = IpAddresses { port: 47_944, source: path.local, destination: path.remote };
    let v6 = IpAddresses {
        source: "fe80::1".parse().expect("a valid address"),
        destination: "fe80::2".parse().expect("a valid address"),
        ..ip
    };
    let request = Request {
        local: ids.local,
        service: IpAddresses::TCP_SERVICES | 7_174,
        guid: u64::MAX - 1,
        qkey: 0x11,
        qp: QpNumber(0xff_fffe),
        responder_resources: 1,
        initiator_depth: 2,
        remote_timeout: 20,
        local_timeout: 21,
        transport: 0,
        psn: Psn::new(0x41_921e),
        retries: 7,
        not_ready_retries: 6,
        mtu: 3,
        srq: true,
        scheme: 0xa,
        path,
        ip,
        private: [5; 56],
    };
    let reply = Reply {
        ids,
        qkey: 9,
        qp: QpNumber(0x1d),
        psn: Psn::new(3),
        responder_resources: 1,
        initiator_depth: 1,
        not_ready_retries: 7,
        srq: true,
        scheme: 1,
        guid: 77,
        private: [6; 196],
    };
    [
        Message::Request(request),
        Message::Wait(Wait { ids, received: 1, timeout: 24 }),
        Message::Reject(Reject { ids, refused: 1, reason: Reject::CONSUMER, private: [1; 148] }),
        Message::Reply(reply),
        Message::Ready(ids, [2; 224]),
        Message::Disconnect(ids, QpNumber(0x12_3456), [3; 220]),
        Message::Disconnected(ids, [4; 224]),
        Message::Resolve(SidrRequest { id: 3, service: IpAddresses::UDP_SERVICES | 1, ip: v6, private: [7; 180] }),
        Message::Resolved(SidrReply { id: 3, status: 0, qp: QpNumber(8), service: 9, qkey: 10, private: [8; 136] }),
        Message::Life(ids, Life::Asked),
        Message::Life(ids, Life::Lives),
        Message::Life(ids, Life::Gone),
    ]
}

#[test]
fn every_message_comes_back_as_it_was_sent() {
    for message in messages() {
        let mad = Mad { transaction: 0x2_62dc_f44a, message };
        assert_eq!(Mad::parse(&mad.emit()), Ok(mad));
    }
}

#[test]
fn what_is_no_mad_of_this_class_is_refused() {
    let sound = Mad { transaction: 1, message: messages()[4] }.emit();
    assert!(Mad::parse(&sound[..255]).is_err());
    for at in 0..4 {
        let mut other = sound;
        other[at] ^= 1;
        assert!(Mad::parse(&other).is_err(), "byte {at}");
    }
    let mut other = sound;
    other[17] = 0x30;
    assert_eq!(Mad::parse(&other), Err(ParseError::Opcode(0x30)));
}
