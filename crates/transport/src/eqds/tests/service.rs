//! Services of tunnels, and the information that native transports are offered.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Domain, Duration, Rng};

use super::*;
use crate::eqds::{Loss, NativeInfo};

fn unreliable() -> EqdsParams {
    EqdsParams { ordered: false, reliable: false, ..params() }
}

#[test]
fn an_unreliable_packet_is_sent_once() {
    let mut tunnel = Tunnel::new(unreliable());
    tunnel.supply(vec![MTU; 4]);
    tunnel.send_all();
    tunnel.data.remove(1);
    tunnel.arrive(1, true);
    assert_eq!(tunnel.receiver.owed(&tunnel.params), 0, "nothing is promised for a packet that does not come again");
    tunnel.settle();
    tunnel.wait();
    assert!(tunnel.sender.is_done() && !tunnel.sender.has_lost());
    assert_eq!((tunnel.delivered.as_slice(), tunnel.sender.abandoned()), ([0, 3].as_slice(), 2));
    tunnel.supply(vec![MTU; 30]);
    tunnel.settle();
    assert_eq!(tunnel.delivered.len(), 32, "and the tunnel goes on");
}

#[test]
fn unreliable_tunnels_keep_going_whatever_is_lost() {
    for seed in 0..100 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 8);
        let mut tunnel = Tunnel::new(EqdsParams { bursts: seed.is_multiple_of(2), ..unreliable() });
        let (packets, loss) = (400, 1 + rng.below(60));
        tunnel.supply(vec![MTU; packets]);
        let mut lost = 0;
        for step in 0.. {
            assert!(step < 200_000, "seed {seed}: stuck with {} delivered", tunnel.delivered.len());
            tunnel.now += Duration::from_ns(300);
            if tunnel.sender.is_done() {
                break;
            }
            let (data, control) = (tunnel.data.len() as u64, tunnel.control.len() as u64);
            match rng.below(5) {
                0 => _ = tunnel.send(),
                1 if data > 0 && rng.below(100) < loss => {
                    lost += u64::from(tunnel.data.remove(rng.below(data) as usize).is_some());
                }
                1 if data > 0 => _ = tunnel.arrive(rng.below(data.min(4)) as usize, rng.below(20) == 0),
                2 if control > 0 => _ = tunnel.answer(rng.below(control) as usize),
                3 => _ = tunnel.grant(),
                _ => _ = tunnel.sender.handle_timeout(&tunnel.params, tunnel.now),
            }
            let believed = tunnel.sender.credit() + tunnel.sender.awaited(&tunnel.params) * MTU;
            assert!(believed < tunnel.params.window + MTU, "credit from nowhere: {believed}");
        }
        let mut names = tunnel.delivered.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), tunnel.delivered.len(), "seed {seed}: nothing twice");
        assert!(names.len() as u64 + lost >= packets as u64 / 2, "seed {seed}: {} arrived, {lost} lost", names.len());
    }
}

#[test]
fn native_transports_see_buffer_queue_and_round_trips() {
    let loss = Loss { path_margin: Some(Duration::from_us(3)), ..Loss::BY_TIMEOUT };
    let mut tunnel = Tunnel::new(EqdsParams { loss, ..params() });
    tunnel.supply(vec![MTU; 14]);
    for path in 0..10 {
        let sent = tunnel.send().expect("the first window");
        tunnel.sender.note_path(&tunnel.params, sent.seq, path % 2);
    }
    tunnel.now += Duration::from_us(9);
    tunnel.arrive(0, false);
    tunnel.control[0].busy = 40;
    let control = tunnel.control.pop_front().expect("an acknowledgement");
    let mut notices = Vec::new();
    tunnel.sender.handle_control_with(&tunnel.params, tunnel.now, &control, |notice| notices.push(notice));
    let notice = notices.pop().expect("a delivery notice");
    assert_eq!((notice.cargo, notice.path, notice.round_trip), (0, 0, Some(Duration::from_us(9))));
    let info: NativeInfo = tunnel.sender.native_info(&tunnel.params, tunnel.now);
    assert_eq!((info.waiting, info.in_flight, info.credit), (4_000, 9_000, 0));
    assert_eq!((info.awaited, info.pull_queue), (4, Duration::from_us(40)));
    assert_eq!(info.round_trips.map(|trips| (trips.samples, trips.smoothed)), Some((1, Duration::from_us(9))));
    let paths = tunnel.sender.paths();
    assert_eq!((paths[0].arrived, paths[0].round_trips.latest), (1, Duration::from_us(9)));
}
