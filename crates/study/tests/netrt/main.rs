//! Tests of NetRT on real frames: hosts, the switches of a rack between them, and links that lose what a test says.
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

use std::fs;

use proptest::prelude::*;
use selvedge_units::{Duration, Psn, QpNumber};
use selvedge_wire::verbs::opcode::operation;
use selvedge_wire::{Aeth, EtherType, Ethernet, Extended, Ipv4, Opcode, Reth, Syndrome, Udp};

use support::{OF_COPIES, RACK, RECEIVER, Spec, World, data, framed, over_ipv6, rack, torment_netrt};

/// Time after which nothing happens any more.
const LONG: Duration = Duration::from_ms(1_000);

/// Returns the rack with more text.
fn with(more: &str) -> World {
    World::new(&rack(&[RACK, more].concat()))
}

/// Returns the rack whose link between the switches loses the packets with data of these numbers, from the left.
fn losing(numbers: impl Iterator<Item = u64>) -> String {
    let numbers: Vec<u64> = numbers.collect();
    format!(
        "\n[[loss]]\nlink = \"left - right\"\ndirection = \"a-to-b\"\npackets = \"data\"\nmodel.trace.drops = {numbers:?}\n"
    )
}

#[test]
fn without_loss_hosts_receive_what_was_sent_byte_for_byte() {
    let mut world = with("");
    let mut sent: Vec<_> = (0..300).map(data).collect();
    sent.push(over_ipv6(&data(5)));
    // No packets of which a switch understands anything.
    sent.push(framed(0, RECEIVER, EtherType::IPV4, &[0x45; 3]));
    sent.push(framed(0, RECEIVER, EtherType::IPV4, &[]));
    sent.iter().for_each(|frame| world.send(0, frame));
    world.wait(LONG);
    assert!(world.came[RECEIVER] == sent);
    assert!(world.count("left", "messages") + world.count("right", "messages") == 0);
}

#[test]
fn a_lost_packet_is_repaired_before_the_host_sees_a_gap() {
    for version in [4, 6] {
        let mut world = with(&losing([7].into_iter()));
        let sent: Vec<_> = (0..20).map(data).map(|p| if version == 6 { over_ipv6(&p) } else { p }).collect();
        for frame in &sent {
            world.send(0, frame);
            world.wait(Duration::from_us(2));
        }
        world.wait(LONG);
        assert!(world.came[RECEIVER] == sent, "in order, and once");
        assert!(world.came[0].is_empty(), "no message comes to a host");
        assert_eq!((world.count("left", "copies_sent"), world.count("left", "unfulfilled")), (1, 0));
        assert_eq!((world.count("right", "given_up"), world.count("right", "messages")), (0, 1));
        assert_eq!((world.count("data", "link-loss"), world.waiting()), (1, 0));
    }
}

#[test]
fn a_damaged_packet_passes_and_is_a_lost_one() {
    let mut world = with("");
    for psn in 0..20 {
        let mut frame = data(psn);
        if psn == 7 {
            frame[80] ^= 1;
        }
        world.send(0, &frame);
    }
    world.wait(LONG);
    let came = world.psns(RECEIVER);
    assert_eq!((came[..7].to_vec(), came.contains(&7)), ((0..7).collect(), true));
    // The first switch has kept no copy of it: recovery is left to the NICs.
    assert_eq!((world.count("left", "copies_sent"), world.count("right", "given_up")), (0, 1));
    (7..20).for_each(|psn| world.send(0, &data(psn)));
    world.wait(LONG);
    assert_eq!(world.psns(RECEIVER)[came.len()..], (7..20).collect::<Vec<_>>());
}

#[test]
fn messages_of_hosts_are_refused() {
    let mut world = with("");
    let message = selvedge_wire::netrt::Message::Unfulfilled(Psn::new(3));
    let forged = Spec { opcode: Opcode::NETRT, extended: Extended::NetRt(message), ..Spec::data(0) }.frame(&[]);
    world.send(0, &forged);
    world.wait(LONG);
    assert_eq!(world.count("", "forged"), 1);
    assert!(world.came.iter().all(Vec::is_empty));
}

#[test]
fn what_is_not_a_request_of_a_reliable_connection_passes_in_any_order() {
    let mut world = with("");
    let aeth = || Extended::Aeth(Aeth { syndrome: Syndrome::Ack(0), msn: 0 });
    let sent: Vec<_> = [9, 3, 70, 4]
        .into_iter()
        .flat_map(|psn| {
            [
                Spec { opcode: Opcode::ACKNOWLEDGE, extended: aeth(), ..Spec::data(psn) }.frame(&[]),
                Spec { opcode: operation::SEND_ONLY | 0x60, ..Spec::data(psn) }.frame(&[1; 100]),
                Spec { opcode: operation::SEND_ONLY | 0x20, ..Spec::data(psn) }.frame(&[1; 100]),
                Spec { opcode: operation::READ_RESPONSE_MIDDLE, ..Spec::data(psn) }.frame(&[1; 100]),
                Spec { opcode: Opcode::CONGESTION_NOTIFICATION, extended: Extended::Cnp, ..Spec::data(psn) }.frame(&[]),
            ]
        })
        .collect();
    sent.iter().for_each(|frame| world.send(0, frame));
    world.wait(LONG);
    assert!(world.came[RECEIVER] == sent);
    assert_eq!((world.count("right", "held"), world.count("right", "messages")), (0, 0));
}

#[test]
fn read_requests_take_the_numbers_of_their_answers() {
    let read = |psn, length| {
        let extended = Extended::Reth(Reth { length, ..Reth::default() });
        Spec { opcode: operation::READ_REQUEST, extended, ..Spec::data(psn) }.frame(&[])
    };
    let first = |psn, mtu: usize| Spec { opcode: operation::SEND_FIRST, ..Spec::data(psn) }.frame(&vec![1; mtu]);
    // The path MTU is that which the host's packets show.
    for (mtu, answers) in [(1_024, 64), (256, 256)] {
        let sent = [first(0, mtu), read(1, 64 * 1_024), data(1 + answers), read(2 + answers, 100), data(3 + answers)];
        let mut world = with("");
        sent.iter().for_each(|frame| world.send(0, frame));
        world.wait(LONG);
        assert!(world.came[RECEIVER] == sent);
        assert_eq!((world.count("right", "held"), world.count("right", "messages")), (0, 0), "{mtu}");
    }
}

#[test]
fn without_copies_recovery_is_left_to_the_nics() {
    let text = [&RACK.replace("pool = \"128KB\"", "pool = \"off\""), losing([7].into_iter()).as_str()].concat();
    let mut world = World::new(&rack(&text));
    (0..10).for_each(|psn| world.send(0, &data(psn)));
    world.wait(LONG);
    assert_eq!(world.psns(RECEIVER), [0, 1, 2, 3, 4, 5, 6, 8], "the NIC asks for 7");
    (7..12).for_each(|psn| world.send(0, &data(psn)));
    world.wait(LONG);
    assert_eq!(world.psns(RECEIVER)[8..], [7, 8, 9, 10, 11]);
    assert_eq!((world.count("left", "unfulfilled"), world.waiting()), (1, 0));
}

#[test]
fn a_full_buffer_loses_packets_before_their_order_is_checked() {
    // Two hosts send to one at once, through a switch that buffers 20 KB.
    let mut world = World::new(&rack(&RACK.replace("per-port = \"1MB\"", "per-port = \"20KB\"")));
    for psn in 0..60 {
        world.send(0, &data(psn));
        world.send(1, &Spec { from: 1, ..Spec::data(psn) }.frame(&[psn as u8; 1_024]));
        world.wait(Duration::from_us(9));
    }
    world.wait(LONG);
    assert!(world.count("data", "buffer-full") > 0);
    // What found no place at the first switch is not requested there; of what was let in, all comes in order.
    for host in [0, 1] {
        let source = support::address(host).octets();
        let came: Vec<u32> =
            world.came[RECEIVER].iter().filter(|frame| frame[26..30] == source).map(|f| support::psn(f)).collect();
        assert!(came.len() > 20 && came.is_sorted(), "{came:?}");
    }
    assert_eq!(world.waiting(), 0);
}

#[test]
fn a_host_that_uses_the_priority_of_copies_is_served_like_any_other() {
    let mut world = with(&losing([2].into_iter()));
    let sent: Vec<_> =
        (0..6).map(|psn| Spec { dscp: OF_COPIES, ..Spec::data(psn) }.frame(&[psn as u8; 1_024])).collect();
    sent.iter().for_each(|frame| world.send(0, frame));
    world.wait(LONG);
    assert!(world.came[RECEIVER] == sent);
    assert_eq!(world.count("left", "copies_sent"), 1);
}

#[test]
fn two_software_nics_of_one_host_are_two_flows() {
    let mut world = with(&losing([6, 9].into_iter()));
    let port_at = Ethernet::LENGTH + Ipv4::LENGTH + 2;
    let sent: Vec<_> = (0..10)
        .flat_map(|psn| {
            let mut other = data(psn);
            other[port_at..port_at + 2].copy_from_slice(&(Udp::ROCE + 3).to_be_bytes());
            [data(psn), with_right_icrc(other)]
        })
        .collect();
    sent.iter().for_each(|frame| world.send(0, frame));
    world.wait(LONG);
    let flow = |port: u16, frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
        frames.iter().filter(|frame| frame[port_at..port_at + 2] == port.to_be_bytes()).cloned().collect()
    };
    for port in [Udp::ROCE, Udp::ROCE + 3] {
        assert!(flow(port, &world.came[RECEIVER]) == flow(port, &sent), "{port}");
    }
    assert_eq!(world.count("left", "copies_sent"), 2);
}

/// Returns a frame with the ICRC that it should have.
fn with_right_icrc(mut frame: Vec<u8>) -> Vec<u8> {
    let (ip, udp) = (Ethernet::LENGTH, Ethernet::LENGTH + Ipv4::LENGTH);
    let bth = udp + Udp::LENGTH;
    let end = frame.len() - 4;
    let chunk = |at: usize| &frame[at..];
    let mut crc = selvedge_wire::Icrc::begin(
        *chunk(ip).first_chunk().expect("a header"),
        *chunk(udp).first_chunk().expect("a header"),
        *chunk(bth).first_chunk().expect("a header"),
    );
    crc.update(&frame[bth + 12..end]);
    frame[end..].copy_from_slice(&crc.finish());
    frame
}

#[test]
fn a_queue_pair_that_is_used_again_is_repaired_again() {
    let mut world = with(&losing([5, 25].into_iter()));
    let numbers: Vec<u32> = (0..20).chain(70_000..70_020).collect();
    for psn in &numbers {
        world.send(0, &data(*psn));
        world.wait(Duration::from_us(10));
    }
    world.wait(LONG);
    assert_eq!(world.psns(RECEIVER), numbers);
    assert_eq!((world.count("left", "copies_sent"), world.count("right", "restarts")), (2, 1));
}

#[test]
fn a_host_is_paused_while_its_copies_are_sent_slowly() {
    // 60 packets of 1,094 bytes are lost together: above K_l = 20 KB.
    let mut world = with(&losing(10..70));
    (0..200).for_each(|psn| world.send(0, &data(psn)));
    world.wait(LONG);
    assert_eq!(world.psns(RECEIVER), (0..200).collect::<Vec<_>>());
    assert!(world.count("left", "pauses") > 0);
    // Copies are sent at half of the rate and less.
    assert!(world.count("h0:left", "paused_us") > 500, "{}", world.count("h0:left", "paused_us"));
    let mut eager =
        World::new(&rack(&[&RACK.replace("enabled", "pause = false\nenabled"), losing(10..70).as_str()].concat()));
    (0..200).for_each(|psn| eager.send(0, &data(psn)));
    eager.wait(LONG);
    assert_eq!((eager.count("left", "pauses"), eager.count("h0:left", "paused_us")), (0, 0));
}

#[test]
fn the_corpus_of_the_fuzz_target_harms_nobody() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/netrt");
    let files: Vec<_> =
        fs::read_dir(corpus).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    assert!(!files.is_empty());
    for file in files {
        torment_netrt(&fs::read(file).expect("a file of the corpus"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_loss_is_repaired_or_left_to_the_nic_and_no_packet_is_kept_for_ever(
        seed in 1_u32..1_000_000, loss in 0.0..0.4, first in 0_u32..1 << 24,
    ) {
        let loss = format!("seeds = [{seed}]\n{RACK}\n[[loss]]\nlink = \"left - right\"\nmodel.random.rate = {loss}\n");
        let mut world = World::new(&rack(&loss));
        let sent: Vec<_> = (0..200).map(|n| data(Psn::new(first).plus(n).get())).collect();
        for frame in &sent {
            world.send(0, frame);
            world.wait(Duration::from_us(1));
        }
        world.wait(LONG);
        prop_assert!(world.came[0].is_empty() && world.came[1].is_empty());
        prop_assert!(world.came[RECEIVER].iter().all(|frame| sent.contains(frame)), "each frame that came was sent");
        if world.count("right", "given_up") + world.count("right", "restarts") == 0 {
            let places: Vec<_> =
                world.came[RECEIVER].iter().map(|frame| sent.iter().position(|one| one == frame)).collect();
            prop_assert!(places.windows(2).all(|two| two[0] < two[1]), "{places:?}");
        }
        prop_assert_eq!(world.waiting(), 0, "nothing is held for ever");
    }

    #[test]
    fn hosts_receive_only_what_was_sent(script in prop::collection::vec(any::<u8>(), 0..20_000)) {
        torment_netrt(&script);
    }
}

#[test]
fn queue_pairs_are_flows_of_their_own() {
    let mut world = with(&losing([4].into_iter()));
    let sent: Vec<_> = (0..6)
        .flat_map(|psn| [17, 18].map(|qp| Spec { qp: QpNumber(qp), ..Spec::data(psn) }.frame(&[psn as u8; 1_024])))
        .collect();
    sent.iter().for_each(|frame| world.send(0, frame));
    world.wait(LONG);
    // The other queue pair's packets do not wait for the copy.
    assert_eq!(world.psns(RECEIVER).len(), 12);
    assert!(world.came[RECEIVER] != sent);
    assert_eq!((world.count("left", "copies_sent"), world.count("right", "given_up")), (1, 0));
}
