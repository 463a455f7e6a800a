//! Tests of queues, RED's curve, back-pressure, and shares of an uplink.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Bytes, Chance, Duration, Instant, Setting};

use super::*;

/// Interval in which one packet leaves.
const EACH: Duration = Duration::from_us(1);

fn queue_of(packets: u32) -> Queue<u32> {
    let mut queue = Queue::new();
    (0..packets).for_each(|packet| queue.push(packet, 1_000));
    queue
}

/// Offers `packets` packets one after another to a queue of `length` packets; returns the verdicts.
fn offers(eqif: &TcpEqifParams, length: u32, ecn_capable: bool, packets: u32) -> Vec<Offer> {
    let mut queue = queue_of(length);
    (0..packets).map(|_| queue.offer(eqif, Instant::ZERO, EACH, packet(ecn_capable))).collect()
}

/// Returns a packet of 1,000 bytes with data of connection 7.
fn packet(ecn_capable: bool) -> Offered {
    Offered { flow: Some(7), bytes: 1_000, ecn_capable }
}

/// Returns the defaults, resolved for a tunnel's window of `packets` packets.
fn with_window(packets: u32) -> TcpEqifParams {
    let mut eqif = TcpEqif::default();
    eqif.resolve(packets);
    eqif.params().expect("valid settings")
}

/// Returns the defaults with `red`, resolved for a short window.
fn with_red(red: Red) -> TcpEqifParams {
    let mut eqif = TcpEqif { red, ..TcpEqif::default() };
    eqif.resolve(10);
    eqif.params().expect("valid settings")
}

fn count(offers: &[Offer], which: Offer) -> usize {
    offers.iter().filter(|offer| **offer == which).count()
}

#[test]
fn a_queue_is_first_in_first_out_and_knows_its_bytes() {
    let mut queue = queue_of(3);
    assert_eq!((queue.len(), queue.bytes(), queue.head()), (3, 3_000, Some(1_000)));
    assert_eq!((queue.pop(Instant::ZERO), queue.pop(Instant::ZERO)), (Some((0, 1_000)), Some((1, 1_000))));
    assert_eq!((queue.len(), queue.bytes(), queue.is_empty()), (1, 1_000, false));
}

#[test]
fn a_full_queue_drops_what_comes() {
    let eqif = TcpEqifParams { limit: 5, ..with_window(10) };
    assert_eq!(offers(&eqif, 4, false, 1), [Offer::Taken]);
    assert_eq!(offers(&eqif, 5, false, 1), [Offer::Dropped]);
    assert_eq!(offers(&eqif, 5, true, 1), [Offer::Dropped], "marks make no room");
}

#[test]
fn packets_of_a_connection_count_as_one_super_packet() {
    let super_packet = Some(Bytes::new(4_000));
    let eqif = TcpEqifParams { limit: 3, super_packet, min: 2, max: 2, ..with_window(10) };
    let mut queue = Queue::new();
    let hand_over = |queue: &mut Queue<Option<u32>>, flow, times| {
        let packet = Offered { flow, ..packet(true) };
        let verdicts = (0..times).map(|_| {
            let verdict = queue.offer(&eqif, Instant::ZERO, EACH, packet);
            if verdict != Offer::Dropped {
                queue.push(flow, 1_000);
            }
            verdict
        });
        verdicts.collect::<Vec<_>>()
    };
    // Four packets fill a super-packet; another connection begins its own; so does each packet without data.
    assert_eq!(hand_over(&mut queue, Some(1), 5), [Offer::Taken; 5]);
    assert_eq!((queue.len(), queue.bytes()), (2, 5_000));
    assert_eq!(hand_over(&mut queue, Some(2), 1), [Offer::Marked], "it finds two");
    // What joins has the mark of what it joins, and finds room where a new one would not.
    assert_eq!(hand_over(&mut queue, Some(2), 3), [Offer::Marked; 3]);
    assert_eq!(hand_over(&mut queue, Some(2), 1), [Offer::Dropped]);
    assert_eq!(hand_over(&mut queue, None, 1), [Offer::Dropped]);
    // A super-packet leaves with its last packet.
    let lengths: Vec<u32> = core::iter::from_fn(|| queue.pop(Instant::ZERO).map(|_| queue.len())).collect();
    assert_eq!(lengths, [3, 3, 3, 2, 1, 1, 1, 1, 0]);
    assert_eq!(hand_over(&mut queue, None, 2), [Offer::Taken; 2]);
    assert_eq!(queue.len(), 2);
    assert_eq!((queue.drain().count(), queue.len()), (2, 0));
}

#[test]
fn by_default_ecn_capable_packets_are_marked_from_sixteen_on() {
    let eqif = with_window(10);
    assert_eq!(offers(&eqif, 15, true, 1), [Offer::Taken]);
    assert_eq!(offers(&eqif, 16, true, 1), [Offer::Marked]);
    assert_eq!(offers(&eqif, 99, false, 1), [Offer::Taken], "others are not");
    assert_eq!(offers(&eqif, 100, false, 1), [Offer::Dropped]);
}

#[test]
fn where_windows_are_larger_more_may_wait() {
    let eqif = with_window(101);
    assert_eq!((eqif.limit, eqif.min, eqif.max), (303, 152, 152));
    let ends_of = |min, max| {
        let mut eqif = TcpEqif { red: Red { min, max, ..Red::default() }, ..TcpEqif::default() };
        eqif.resolve(40);
        let params = eqif.params().expect("valid settings");
        (params.min, params.max)
    };
    assert_eq!(ends_of(Setting::Value(70), Setting::Auto), (70, 70));
    assert_eq!(ends_of(Setting::Value(7), Setting::Auto), (7, 60));
    assert_eq!(ends_of(Setting::Auto, Setting::Value(30)), (30, 30));
    assert_eq!(ends_of(Setting::Auto, Setting::Value(90)), (60, 90));
}

#[test]
fn the_curve_rises_linearly_and_marks_lie_evenly() {
    let red =
        Red { min: Setting::Value(10), max: Setting::Value(50), probability: Chance::ratio(1, 2), ..Red::default() };
    let eqif = with_red(red);
    for (length, expected) in [(9, 0), (10, 0), (20, 125), (30, 250), (49, 487), (50, 1_000)] {
        let marked = count(&offers(&eqif, length, true, 1_000), Offer::Marked);
        assert!(marked.abs_diff(expected) <= 1, "{marked} of 1000 at {length}");
    }
    let at_thirty = offers(&eqif, 30, true, 40);
    assert!(at_thirty.chunks(4).all(|four| count(four, Offer::Marked) == 1), "{at_thirty:?}");
}

#[test]
fn an_average_follows_slowly() {
    let red = Red { weight: 4, ..Red::default() };
    let eqif = with_red(red);
    let burst = offers(&eqif, 30, true, 40);
    let first = burst.iter().position(|offer| *offer == Offer::Marked).expect("a packet is marked");
    assert!((8..20).contains(&first), "{first}: half of 30 within some 2^4 packets");
    assert_eq!(burst.last(), Some(&Offer::Marked));
}

#[test]
fn an_average_ages_while_nothing_waits() {
    let eqif = with_red(Red { min: Setting::Value(6), max: Setting::Value(6), weight: 4, ..Red::default() });
    // Packets arriving at an empty queue until one is not marked; the queue was 30 long and has been idle since.
    let marked_after = |us| {
        let mut queue = queue_of(30);
        (0..200).for_each(|_| _ = queue.offer(&eqif, Instant::ZERO, EACH, packet(true)));
        while queue.pop(Instant::ZERO).is_some() {}
        let now = Instant::ZERO + Duration::from_us(us);
        (0..100).take_while(|_| queue.offer(&eqif, now, EACH, packet(true)) == Offer::Marked).count()
    };
    // 30 (15/16)^n is below 6 from the 25th packet on, whether the packets arrived or were only inferred.
    assert_eq!([0, 1, 10, 23, 24, 1_000_000].map(marked_after), [24, 23, 14, 1, 0, 0]);
}

#[test]
fn early_drops_are_for_those_who_cannot_be_marked() {
    let red = Red { drops: true, ..Red::default() };
    let eqif = with_red(red);
    assert_eq!(offers(&eqif, 16, false, 1), [Offer::Dropped]);
    assert_eq!(offers(&eqif, 16, true, 1), [Offer::Marked]);
}

#[test]
fn the_engine_is_paused_while_any_queue_is_long() {
    let pressure = Pressure::Pause { above: Bytes::new(100), resume: Bytes::new(40) };
    let (mut backlog, mut a, mut b) = (Backlog::default(), QueuePressure::default(), QueuePressure::default());
    assert!(!backlog.note_length(&mut a, &pressure, 100) && !backlog.pauses());
    assert!(!backlog.note_length(&mut a, &pressure, 101) && backlog.pauses());
    assert!(!backlog.note_length(&mut b, &pressure, 150) && backlog.pauses());
    assert!(!backlog.note_length(&mut a, &pressure, 40) && backlog.pauses(), "b is still long");
    assert!(!backlog.note_length(&mut b, &pressure, 41) && backlog.pauses());
    assert!(backlog.note_length(&mut b, &pressure, 40) && !backlog.pauses(), "now it may go on");
}

#[test]
fn cnps_are_asked_for_between_the_thresholds_ever_more_often() {
    let cnp = CnpConfig { k_low: Bytes::new(1_000), k_high: Bytes::new(5_000), ..CnpConfig::default() };
    let pressure = Pressure::Cnp(cnp);
    let asked = |waiting| {
        let mut queue = QueuePressure::default();
        (0..100).filter(|_| queue.asks_for_cnp(&pressure, waiting)).count()
    };
    assert_eq!([1_000, 2_000, 3_000, 4_000, 5_000, 5_001].map(asked), [0, 25, 50, 75, 100, 100]);
}

/// Serves EQIFs whose tunnels always have packets of these sizes; returns the bytes of each EQIF.
fn served(shares: [Share; 3], sizes: [&[u32]; 3], packets: u32) -> Vec<u64> {
    let mut schedule = Schedule::new(shares);
    let mut bytes = vec![0; 3];
    for (eqif, sizes) in (0..).zip(sizes) {
        (0..sizes.len() as u32).for_each(|tunnel| schedule.join(eqif, tunnel));
    }
    for _ in 0..packets {
        let (eqif, tunnel) = schedule.pop(1_500).expect("every EQIF has a tunnel with packets");
        let size = sizes[usize::from(eqif)][tunnel as usize];
        bytes[usize::from(eqif)] += u64::from(size);
        schedule.charge(eqif, size);
        schedule.join(eqif, tunnel);
    }
    bytes
}

#[test]
fn eqifs_share_by_bytes_whatever_their_packets_and_tunnels() {
    let bytes = served([Share::default(); 3], [&[9_000], &[64, 64], &[1_500, 1_500, 1_500]], 100_000);
    let mean = bytes.iter().sum::<u64>() / 3;
    assert!(bytes.iter().all(|of| of.abs_diff(mean) <= 20_000), "{bytes:?}");
}

#[test]
fn weights_are_proportions() {
    let share = |weight| Share { priority: 0, weight };
    let bytes = served([share(1), share(2), share(5)], [&[1_000], &[1_000], &[1_000]], 80_000);
    for (bytes, expected) in bytes.iter().zip([10_000_000, 20_000_000, 50_000_000]) {
        assert!(bytes.abs_diff(expected) <= 10_000, "{bytes} of {expected}");
    }
}

#[test]
fn a_higher_priority_goes_first_and_others_get_the_rest() {
    let share = |priority| Share { priority, weight: 1 };
    let shares = [share(0), share(3), share(3)];
    let bytes = served(shares, [&[1_000], &[1_000], &[1_000]], 10_000);
    assert_eq!(bytes, [0, 5_000_000, 5_000_000]);
    let mut schedule = Schedule::new(shares);
    schedule.join(0, 7);
    schedule.join(1, 8);
    assert_eq!((schedule.pop(1_500), schedule.pop(1_500), schedule.pop(1_500)), (Some((1, 8)), Some((0, 7)), None));
    assert!(schedule.is_empty());
}
