//! Tests of two connection managers and a wire that loses messages.

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_transport::Cx;
use selvedge_units::{Domain, Duration, Instant, Psn, QpNumber, Rng};
use selvedge_wire::cm::{Ids, IpAddresses, Life, Mad, Message, Reject};

use super::{CmError, CmEvent, ConnectionId, ConnectionManager, Offer};
use crate::verbs::Route;

const SERVICE: u64 = IpAddresses::TCP_SERVICES | 7_174;

struct World {
    managers: [ConnectionManager; 2],
    now: Instant,
    /// Loss probability in per cent.
    loss: u64,
    rng: Rng,
    sent: Vec<Mad>,
    /// Whether the managers know each other as Selvedge NICs.
    ours: bool,
}

fn address(n: usize) -> Ipv6Addr {
    Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, n as u16)
}
fn route(from: usize) -> Route {
    Route { local: address(from), remote: address(1 - from), traffic_class: 0, hop_limit: 64, flow_label: 0 }
}
/// Returns the queue pairs that agree with their peers after a connection was established, where the two sides prefer
/// these schemes.
fn agreed(schemes: [Option<u8>; 2]) -> [Vec<QpNumber>; 2] {
    let mut world = World::listening(30, 1);
    for (manager, scheme) in world.managers.iter_mut().zip(schemes) {
        manager.prefer(scheme);
    }
    world.establish();
    world.managers.each_mut().map(|manager| core::iter::from_fn(|| manager.poll_agreed()).collect())
}

#[test]
fn two_that_prefer_one_recovery_agree_and_all_others_find_out() {
    assert_eq!(agreed([Some(1), Some(1)]), [vec![QpNumber(17)], vec![QpNumber(99)]]);
    for schemes in [[None, None], [Some(1), None], [None, Some(1)], [Some(1), Some(2)]] {
        assert_eq!(agreed(schemes), [vec![], vec![]], "{schemes:?}");
    }
}

fn offer(n: u32) -> Offer {
    Offer { qp: QpNumber(n), psn: Psn::new(n * 10), private: vec![n as u8; 5], retries: 7, ..Offer::default() }
}

impl World {
    fn new(loss: u64, seed: u64) -> Self {
        let managers = [ConnectionManager::new(1, 0, 100), ConnectionManager::new(2, 63, u32::MAX - 1)];
        let rng = Rng::stream(seed, Domain::Impairment, 0);
        Self { managers, now: Instant::ZERO, loss, rng, sent: Vec::new(), ours: false }
    }
    fn cx(&self) -> Cx<'static> {
        Cx::at(self.now)
    }
    fn listening(loss: u64, seed: u64) -> Self {
        let mut world = Self::new(loss, seed);
        world.managers[1].listen(SERVICE).expect("the service is unused");
        world
    }
    fn connect(&mut self) -> ConnectionId {
        let mut cx = self.cx();
        self.managers[0].connect(&mut cx, route(0), SERVICE, 4_000, 3, &offer(17))
    }
    /// Lets time pass until one of the two managers raises an event.
    fn next(&mut self, within_ms: u64) -> Option<(usize, CmEvent)> {
        let end = self.now + Duration::from_ms(within_ms);
        loop {
            for at in 0..2 {
                while let Some((route, mad)) = self.managers[at].poll_transmit() {
                    self.sent.push(mad);
                    if self.rng.below(100) >= self.loss {
                        let back = Route { local: route.remote, remote: route.local, ..route };
                        let (other, mut cx) = (&mut self.managers[1 - at], Cx::at(self.now));
                        match self.ours {
                            true => other.handle_ours(&mut cx, &back, &mad.emit()),
                            false => other.handle(&mut cx, &back, &mad.emit()),
                        }
                    }
                }
            }
            for at in 0..2 {
                if let Some(event) = self.managers[at].poll_event() {
                    return Some((at, event));
                }
            }
            let due = self.managers.iter().filter_map(ConnectionManager::poll_timeout).min();
            match due {
                Some(due) if due <= end => {
                    self.now = self.now.max(due);
                    for manager in &mut self.managers {
                        manager.handle_timeout(&mut Cx::at(self.now));
                    }
                }
                _ if self.managers.iter().any(|manager| !manager.outgoing.is_empty()) => {}
                _ => {
                    self.now = end;
                    return None;
                }
            }
        }
    }
    /// Establishes a connection; returns the identifiers of both sides.
    fn establish(&mut self) -> [ConnectionId; 2] {
        let active = self.connect();
        let (mut passive, mut stands) = (None, [false; 2]);
        while stands != [true; 2] {
            match self.next(60_000).expect("an event within the time limit") {
                (1, CmEvent::Requested { id, request, .. }) => {
                    assert_eq!(
                        (request.qp, request.psn, &request.private[..6]),
                        (QpNumber(17), Psn::new(170), &[17, 17, 17, 17, 17, 0][..])
                    );
                    assert_eq!((request.ip.source, request.ip.port), (address(0), 4_000));
                    let mut cx = self.cx();
                    self.managers[1].accept(&mut cx, id, &offer(99)).expect("the connection was requested");
                    assert_eq!(self.managers[1].accept(&mut cx, id, &offer(99)), Err(CmError::NotThus));
                    passive = Some(id);
                }
                (0, CmEvent::Replied { id, reply }) => {
                    assert_eq!((id, reply.qp, reply.psn), (active, QpNumber(99), Psn::new(990)));
                    let mut cx = self.cx();
                    self.managers[0].ready(&mut cx, id).expect("the connection was accepted");
                    stands[0] = true;
                }
                (1, CmEvent::Established(id)) => {
                    assert_eq!(Some(id), passive);
                    stands[1] = true;
                }
                other => panic!("{other:?}"),
            }
        }
        [active, passive.expect("the connection was requested")]
    }
}

#[test]
fn connections_are_made_and_ended_whatever_is_lost() {
    for seed in 0..100 {
        for loss in [0, 30] {
            let mut world = World::listening(loss, seed);
            let ids = world.establish();
            let who = (seed % 2) as usize;
            let mut cx = world.cx();
            world.managers[who].disconnect(&mut cx, ids[who]).expect("an established connection");
            let mut ended = Vec::new();
            while let Some((at, event)) = world.next(60_000) {
                assert_eq!(event, CmEvent::Disconnected(ids[at]));
                ended.push(at);
            }
            ended.sort_unstable();
            assert_eq!(ended, [0, 1], "loss {loss}, seed {seed}");
            assert!(world.managers.iter().all(|manager| manager.connections.is_empty() && manager.known.is_empty()));
            assert!(loss > 0 || world.sent.len() == 5, "REQ, REP, RTU, DREQ, DREP");
        }
    }
}

#[test]
fn who_leaves_without_an_answer_says_goodbye_often_enough() {
    let mut unheard = 0;
    for seed in 0..200 {
        let mut world = World::listening(0, seed);
        let ids = world.establish();
        world.loss = 10;
        let mut cx = world.cx();
        world.managers[0].disconnect(&mut cx, ids[0]).expect("an established connection");
        world.managers[0].forget(ids[0]);
        let mut ends = 0;
        while let Some((at, event)) = world.next(60_000) {
            assert_eq!((at, event), (1, CmEvent::Disconnected(ids[1])));
            ends += 1;
        }
        assert!(ends <= 1 && world.managers[0].connections.is_empty(), "seed {seed}");
        unheard += 1 - ends;
    }
    assert!(unheard <= 1, "{unheard} of 200, with one packet in ten lost");
}

#[test]
fn the_end_of_a_process_is_the_end_of_its_connections() {
    for leaves in 0..2 {
        let mut world = World::listening(0, 1);
        let ids = world.establish();
        let waits = world.connect();
        let Some((1, CmEvent::Requested { .. })) = world.next(1_000) else { panic!("expected a connection request") };
        let mut cx = world.cx();
        world.managers[leaves].leave(&mut cx);
        let mut heard = [world.next(100), world.next(100)];
        heard.sort_by_key(|event| matches!(event, Some((_, CmEvent::Rejected { .. }))));
        let [ended, refused] = heard;
        let stays = 1 - leaves;
        assert_eq!(ended, Some((stays, CmEvent::Disconnected(ids[stays]))));
        // A peer that has gone when its request is answered is not found then.
        match refused {
            Some((0, CmEvent::Rejected { id, .. })) if leaves == 1 => assert_eq!(id, waits),
            other => assert!(other.is_none() && leaves == 0, "{other:?}"),
        }
        assert_eq!(world.next(60_000), None);
        assert!(world.managers[leaves].connections.is_empty() && world.managers[leaves].known.is_empty());
    }
}

#[test]
fn what_nobody_serves_or_wants_is_refused() {
    let mut world = World::new(0, 1);
    let id = world.connect();
    let Some((0, CmEvent::Rejected { id: refused, reason, .. })) = world.next(1_000) else {
        panic!("expected a rejection")
    };
    assert_eq!((refused, reason), (id, Reject::INVALID_SERVICE));
    world.managers[1].listen(SERVICE).expect("the service is unused");
    assert_eq!(world.managers[1].listen(SERVICE), Err(CmError::InUse));
    let id = world.connect();
    let Some((1, CmEvent::Requested { id: asked, .. })) = world.next(1_000) else {
        panic!("expected a connection request")
    };
    let mut cx = world.cx();
    world.managers[1].reject(&mut cx, asked, b"no").expect("the connection was requested");
    let Some((0, CmEvent::Rejected { id: refused, reason, private })) = world.next(1_000) else {
        panic!("expected a rejection")
    };
    assert_eq!((refused, reason, &private[..2]), (id, Reject::CONSUMER, &b"no"[..]));
}

#[test]
fn who_does_not_answer_is_given_up() {
    let mut world = World::listening(100, 1);
    let id = world.connect();
    assert_eq!(world.next(5_500), None);
    assert_eq!(world.next(1_000), Some((0, CmEvent::Unreachable(id))));
    // 15 attempts of one copy, one copy, two copies, and so on up to 16 copies.
    assert_eq!(world.sent.len(), 1 + 15 + 10 * 16);
}

#[test]
fn a_first_packet_tells_that_the_connection_stands() {
    let mut world = World::listening(0, 1);
    world.connect();
    let Some((1, CmEvent::Requested { id, .. })) = world.next(1_000) else { panic!("expected a connection request") };
    let mut cx = world.cx();
    world.managers[1].accept(&mut cx, id, &offer(1)).expect("the connection was requested");
    world.managers[1].established(&mut cx, id);
    world.managers[1].established(&mut cx, id);
    assert_eq!(world.managers[1].poll_event(), Some(CmEvent::Established(id)));
    assert_eq!(world.managers[1].poll_event(), None);
}

/// Creates a world of two Selvedge NICs with an established connection, and returns it with the identifiers of both
/// sides.
fn standing() -> (World, [ConnectionId; 2]) {
    let mut world = World::listening(0, 1);
    world.ours = true;
    let ids = world.establish();
    (world, ids)
}

#[test]
fn connections_of_ours_live_as_long_as_both_sides_do() {
    let (mut world, ids) = standing();
    world.loss = 30;
    assert_eq!(world.next(600_000), None);
    world.loss = 0;
    let mut cx = world.cx();
    world.managers[0].disconnect(&mut cx, ids[0]).expect("an established connection");
    assert!(matches!(world.next(1_000), Some((_, CmEvent::Disconnected(_)))));
    assert!(world.managers.iter_mut().all(|manager| manager.poll_lost().is_none()));
}

#[test]
fn the_other_side_of_a_process_that_was_killed_hears_of_it() {
    for killed in 0..2 {
        for restarted in [false, true] {
            let (mut world, ids) = standing();
            let stays = 1 - killed;
            world.managers[killed] = ConnectionManager::new(3, 0, 7);
            if !restarted {
                world.loss = 100;
            }
            let within = if restarted { 1_100 } else { 10_000 };
            assert_eq!(world.next(within), Some((stays, CmEvent::Disconnected(ids[stays]))), "{killed} {restarted}");
            let ours = if stays == 0 { 17 } else { 99 };
            assert_eq!(world.managers[stays].poll_lost(), Some(QpNumber(ours)));
            assert_eq!(world.managers[stays].poll_lost(), None);
        }
    }
}

#[test]
fn who_ended_and_was_not_heard_is_not_taken_for_dead() {
    let (mut world, ids) = standing();
    world.loss = 100;
    let mut cx = world.cx();
    world.managers[0].disconnect(&mut cx, ids[0]).expect("an established connection");
    assert_eq!(world.next(3_000), None);
    world.loss = 0;
    let ends = [world.next(2_000), world.next(2_000)];
    assert!(ends.contains(&Some((1, CmEvent::Disconnected(ids[1])))), "{ends:?}");
    assert_eq!(world.managers[1].poll_lost(), None);
}

#[test]
fn strangers_are_not_asked_whether_they_live() {
    let mut world = World::listening(0, 1);
    world.establish();
    let said = world.sent.len();
    assert_eq!(world.next(600_000), None);
    assert_eq!(world.sent.len(), said);
}

#[test]
fn strangers_cannot_end_a_connection() {
    let mut world = World::listening(0, 1);
    let ids = world.establish();
    let mut cx = world.cx();
    world.managers[0].disconnect(&mut cx, ids[0]).expect("an established connection");
    let (_, end) = world.managers[0].poll_transmit().expect("a DREQ is sent");
    let stranger = Route { remote: address(9), ..route(1) };
    world.managers[1].handle(&mut cx, &stranger, &end.emit());
    let message = Message::Life(Ids { local: ids[0].0, remote: ids[1].0 }, Life::Gone);
    world.managers[1].handle(&mut cx, &stranger, &Mad { transaction: 1, message }.emit());
    assert_eq!(world.managers[1].poll_event(), None);
}

#[test]
fn a_queue_pair_for_datagrams_is_found() {
    for loss in [0, 30] {
        let mut world = World::new(loss, 3);
        let service = IpAddresses::UDP_SERVICES | 9;
        let mut cx = world.cx();
        let id = world.managers[0].resolve(&mut cx, route(0), service, 1, b"who");
        if loss == 0 {
            let refused = world.next(1_000);
            assert!(matches!(refused, Some((0, CmEvent::Rejected { reason: 1, .. }))), "{refused:?}");
            continue;
        }
        world.managers[1].listen(service).expect("the service is unused");
        let asked = world.next(60_000);
        let Some((1, CmEvent::Asked { id: question, request, .. })) = asked else { panic!("{asked:?}") };
        assert_eq!(&request.private[..3], b"who");
        cx = world.cx();
        world.managers[1].answer(&mut cx, question, Some((QpNumber(55), 0x42)), b"me").expect("the question is open");
        let found = world.next(60_000);
        let Some((0, CmEvent::Resolved { id: of, reply })) = found else { panic!("{found:?}") };
        assert_eq!((of, reply.qp, reply.qkey, &reply.private[..2]), (id, QpNumber(55), 0x42, &b"me"[..]));
    }
}
