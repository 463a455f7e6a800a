//! The order in which a NIC serves its queue pairs.

use alloc::vec::Vec;

use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::{CongestionConfig, Cx, FeedbackConfig, ReceiverConfig, RecoveryConfig, SenderConfig};
use selvedge_units::{Bytes, HostId, Instant, Setting};
use selvedge_wire::Packet;

use crate::{Nic, NicParams, Outgoing};

pub(crate) fn params(qp_burst: u32) -> NicParams {
    let irn = IrnConfig { timeouts: Timeouts::Off, bdp_cap: Setting::Off, ..IrnConfig::default() };
    let recovery = RecoveryConfig::from(irn);
    NicParams {
        mtu: 1_024,
        header: 62,
        ack_frame: 66,
        hole_nack_frame: 78,
        cnp_frame: 78,
        gap: 20,
        qp_burst,
        data_classes: 1,
        ack_class: 0,
        cnp_class: 0,
        ecn_capable: false,
        sender: SenderConfig { recovery, congestion: CongestionConfig::None(NoneConfig {}), frame: Bytes::new(1_106) },
        receiver: ReceiverConfig { recovery },
        feedback: FeedbackConfig::default(),
        tcp: None,
        eqds: None,
        eqif: None,
        ndp: None,
        verbs: None,
        tcp_ack_class: 0,
    }
}

/// Which queue pair each packet comes from, when they have so many packets to send.
fn served(qp_burst: u32, packets: &[u64]) -> Vec<u32> {
    let params = params(qp_burst);
    let mut cx = Cx::at(Instant::ZERO);
    let mut nic = Nic::new(HostId(0), &params);
    for (&packets, n) in packets.iter().zip(0..) {
        let size = Bytes::new(1_024) * packets;
        nic.open_sender(
            &cx,
            &params,
            &Outgoing { dst: HostId(1), size, entropy: 0, links: 2, class: 0, context: n, is_tcp: false },
        );
    }
    let mut packet = Packet::BLANK;
    core::iter::from_fn(|| nic.poll_transmit(&mut cx, &params, 0, &mut packet).then_some(packet.qp.0)).collect()
}

#[test]
fn queue_pairs_take_turns_packet_by_packet() {
    assert_eq!(served(1, &[3, 3, 3]), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(served(1, &[1, 4, 2]), [0, 1, 2, 1, 2, 1, 1]);
}

#[test]
fn a_turn_may_be_a_burst() {
    assert_eq!(served(3, &[4, 6]), [0, 0, 0, 1, 1, 1, 0, 1, 1, 1]);
    // Who has no more ends its turn, and its rest is nobody's.
    assert_eq!(served(3, &[1, 5, 2]), [0, 1, 1, 1, 2, 2, 1, 1]);
}
