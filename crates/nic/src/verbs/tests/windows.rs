//! Tests of memory windows: which peers reach which memory through them, and until when.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Domain, QpNumber, Rng};

use super::world::{ALL, BASE, Wire, World, each, go_back_n, irn, request, statuses, write_to};
use crate::verbs::region::{Intent, Regions};
use crate::verbs::*;

const WRITE: Access = Access { remote_write: true, ..Access::NONE };
const READ: Access = Access { remote_read: true, remote_write: false, ..WRITE };
/// Rights of a region for its owner: writing, and binding of windows.
const PRIVATE: Access = Access { local_write: true, bind: true, ..Access::NONE };

/// Creates a region at host 1 that only windows open, and a window; returns the parameters that bind it to a part of
/// the region.
fn window(world: &mut World, kind: WindowKind) -> Bind {
    let host = &mut world.hosts[1];
    let region = Region { pd: host.pd, address: BASE, start: BASE, length: 10_000, access: PRIVATE };
    let region = host.rnic.reg_mr(region, 0x5555).expect("a valid region");
    let (window, key) = host.rnic.alloc_mw(host.pd, kind, 0x1234_5678).expect("a free window");
    assert_eq!((window, key), (WindowId(0x12_3456), 0x1234_5678));
    Bind { window, key: key + 1, region, address: BASE + 100, length: 1_000, access: WRITE, zero_based: false }
}
fn bind(world: &mut World, id: u64, bind: Bind) -> Vec<(u64, Status)> {
    world.post(1, request(id, Operation::Bind(bind), Vec::new()));
    world.run(1_000);
    statuses(world, 1)
}
/// Returns the status of an operation of host 0.
fn ask(world: &mut World, operation: Operation, length: u32) -> Status {
    let data = vec![world.hosts[0].sge(0, length)];
    world.post(0, request(77, operation, data));
    world.run(5_000);
    statuses(world, 0)[0].1
}

const KINDS: [WindowKind; 2] = [WindowKind::Type1, WindowKind::Type2];

#[test]
fn a_window_opens_part_of_a_region_that_is_closed() {
    for kind in KINDS {
        each(|mut world| {
            let wanted = window(&mut world, kind);
            assert_eq!(bind(&mut world, 1, wanted), [(1, Status::Success)]);
            assert_eq!(ask(&mut world, write_to(BASE + 100, wanted.key), 1_000), Status::Success);
            assert!(world.hosts[1].memory[100..1_100] == world.hosts[0].memory[..1_000]);
        });
        // Accesses beyond the window's ends, without the right to them, and by keys that are not, or no longer, the
        // window's.
        let write = |address, key| Operation::Write { remote: Remote { address, key }, immediate: None };
        type Ask = fn(&Bind) -> Remote;
        let beyond: [Ask; 4] = [
            |bind| Remote { address: BASE + 99, key: bind.key },
            |bind| Remote { address: BASE + 1_093, key: bind.key },
            |bind| Remote { address: BASE + 100, key: bind.key - 1 },
            |bind| Remote { address: BASE + 100, key: bind.region },
        ];
        for which in beyond {
            each(|mut world| {
                let wanted = window(&mut world, kind);
                let before = world.hosts[1].memory.clone();
                bind(&mut world, 1, wanted);
                let Remote { address, key } = which(&wanted);
                assert_eq!(ask(&mut world, write(address, key), 8), Status::RemoteAccess);
                assert!(world.hosts[1].memory == before);
            });
        }
        each(|mut world| {
            let wanted = window(&mut world, kind);
            bind(&mut world, 1, wanted);
            let remote = Remote { address: BASE + 104, key: wanted.key };
            assert_eq!(ask(&mut world, Operation::Read(remote), 8), Status::RemoteAccess);
        });
    }
}

#[test]
fn every_operation_goes_through_windows() {
    each(|mut world| {
        let access = Access { local_write: false, bind: false, ..ALL };
        let wanted = Bind { access, zero_based: true, address: BASE + 104, ..window(&mut world, WindowKind::Type2) };
        assert_eq!(bind(&mut world, 1, wanted), [(1, Status::Success)]);
        // Addresses begin at 0.
        let remote = Remote { address: 16, key: wanted.key };
        let before = world.hosts[1].memory[120..128].to_vec();
        assert_eq!(ask(&mut world, Operation::Read(remote), 8), Status::Success);
        assert_eq!(world.hosts[0].memory[..8], before);
        assert_eq!(ask(&mut world, Operation::FetchAdd { remote, add: 3 }, 8), Status::Success);
        let was = u64::from_ne_bytes(before.try_into().expect("8 bytes"));
        assert_eq!(world.hosts[1].memory[120..128], was.wrapping_add(3).to_ne_bytes());
        let compare = Operation::CompareSwap { remote, compare: was.wrapping_add(3), swap: 9 };
        assert_eq!(ask(&mut world, compare, 8), Status::Success);
        assert_eq!(world.hosts[1].memory[120..128], 9_u64.to_ne_bytes());
        assert_eq!(ask(&mut world, write_to(BASE + 104, wanted.key), 8), Status::RemoteAccess);
    });
}

/// A change that makes a binding invalid.
type Spoil = fn(&mut World, &mut Bind);

#[test]
fn a_window_is_not_bound_against_the_rules() {
    let both: &[WindowKind] = &KINDS;
    let second = &KINDS[1..];
    let cases: [(&[WindowKind], Spoil); 12] = [
        (both, |_, bind| bind.window = WindowId(7)),
        (both, |_, bind| bind.region ^= 1),
        (both, |_, bind| bind.address = BASE - 1),
        (both, |_, bind| bind.length = 9_901),
        (both, |_, bind| bind.length = u64::MAX),
        (both, |_, bind| (bind.address, bind.length) = (u64::MAX, 2)),
        // The region permits no windows, cannot be written, or belongs to another domain.
        (both, |world, bind| bind.region = region(world, Access { bind: false, ..ALL }, false)),
        (both, |world, bind| bind.region = region(world, Access { bind: true, ..READ }, false)),
        (both, |world, bind| bind.region = region(world, ALL, true)),
        // The window belongs to another domain.
        (both, |world, bind| {
            let pd = world.hosts[1].rnic.alloc_pd();
            bind.window = world.hosts[1].rnic.alloc_mw(pd, WindowKind::Type2, 0x7777_7777).expect("a free window").0;
        }),
        (&KINDS[..1], |_, bind| bind.zero_based = true),
        (second, |_, bind| bind.length = 0),
    ];
    for (kinds, spoil) in cases {
        for &kind in kinds {
            each(|mut world| {
                let mut wanted = window(&mut world, kind);
                spoil(&mut world, &mut wanted);
                assert_eq!(bind(&mut world, 1, wanted), [(1, Status::WindowBind)], "{kind:?} {wanted:?}");
                let state = world.hosts[1].rnic.qp_state(world.hosts[1].qp);
                assert_eq!(state, Some(QpState::Error));
            });
        }
    }
}

/// Registers another region at host 1, of another domain if `is_foreign`; returns its key.
fn region(world: &mut World, access: Access, is_foreign: bool) -> u32 {
    let host = &mut world.hosts[1];
    let pd = if is_foreign { host.rnic.alloc_pd() } else { host.pd };
    let region = Region { pd, address: BASE, start: BASE, length: 10_000, access };
    host.rnic.reg_mr(region, 0x6666).expect("a valid region")
}

#[test]
fn windows_to_read_need_no_right_to_write() {
    each(|mut world| {
        let wanted = window(&mut world, WindowKind::Type1);
        let region = region(&mut world, Access { bind: true, ..Access::default() }, false);
        assert_eq!(bind(&mut world, 1, Bind { region, access: READ, ..wanted }), [(1, Status::Success)]);
        let remote = Remote { address: BASE + 100, key: wanted.key };
        assert_eq!(ask(&mut world, Operation::Read(remote), 500), Status::Success);
    });
}

#[test]
fn windows_of_type_1_are_bound_again_and_closed_by_binding() {
    each(|mut world| {
        let first = window(&mut world, WindowKind::Type1);
        bind(&mut world, 1, first);
        let second = Bind { key: first.key + 1, address: BASE + 5_000, ..first };
        assert_eq!(bind(&mut world, 2, second), [(2, Status::Success)]);
        assert_eq!(ask(&mut world, write_to(BASE + 5_000, second.key), 8), Status::Success);
        let closed = Bind { key: second.key + 1, length: 0, region: 0, ..second };
        assert_eq!(bind(&mut world, 3, closed), [(3, Status::Success)]);
        assert_eq!(ask(&mut world, write_to(BASE + 5_000, closed.key), 8), Status::RemoteAccess);
    });
    // The earlier key is invalid, and its invalidation is an error.
    each(|mut world| {
        let first = window(&mut world, WindowKind::Type1);
        bind(&mut world, 1, first);
        bind(&mut world, 2, Bind { key: first.key + 1, ..first });
        assert_eq!(ask(&mut world, write_to(BASE + 100, first.key), 8), Status::RemoteAccess);
    });
    each(|mut world| {
        let first = window(&mut world, WindowKind::Type1);
        bind(&mut world, 1, first);
        world.post(1, request(2, Operation::LocalInvalidate(first.key), Vec::new()));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 1), [(2, Status::LocalOperation)]);
    });
}

#[test]
fn windows_of_type_2_are_closed_by_either_side_and_bound_anew() {
    each(|mut world| {
        let first = window(&mut world, WindowKind::Type2);
        bind(&mut world, 1, first);
        world.post(1, request(2, Operation::LocalInvalidate(first.key), Vec::new()));
        let second = Bind { key: first.key + 1, ..first };
        assert_eq!(bind(&mut world, 3, second), [(2, Status::Success), (3, Status::Success)]);
        assert_eq!(ask(&mut world, write_to(BASE + 100, second.key), 1_000), Status::Success);
        // The other side invalidates the window, and is informed as soon as its message is received.
        world.receive(1, 9, 500_000, 500);
        assert_eq!(ask(&mut world, Operation::Send(Attached::Invalidate(second.key)), 20), Status::Success);
        let received = world.hosts[1].poll();
        assert_eq!((received[0].id, received[0].attached), (9, Attached::Invalidate(second.key)));
        assert_eq!(ask(&mut world, write_to(BASE + 100, second.key), 8), Status::RemoteAccess);
    });
    // The window is bound twice, and invalidated twice.
    each(|mut world| {
        let first = window(&mut world, WindowKind::Type2);
        bind(&mut world, 1, first);
        assert_eq!(bind(&mut world, 2, Bind { key: first.key + 1, ..first }), [(2, Status::WindowBind)]);
    });
    each(|mut world| {
        let first = window(&mut world, WindowKind::Type2);
        bind(&mut world, 1, first);
        for id in [2, 3] {
            world.post(1, request(id, Operation::LocalInvalidate(first.key), Vec::new()));
        }
        world.run(1_000);
        assert_eq!(statuses(&mut world, 1), [(2, Status::Success), (3, Status::LocalOperation)]);
    });
}

#[test]
fn what_was_asked_before_a_window_is_closed_is_done() {
    // The requests are fenced, so that no Read finds the window closed; an Atomic is executed in its turn anyway.
    for loss in [0, 100, 300] {
        each(|mut world| {
            let access = Access { local_write: false, bind: false, ..ALL };
            let wanted = Bind { access, address: BASE + 104, ..window(&mut world, WindowKind::Type2) };
            bind(&mut world, 1, wanted);
            world.receive(1, 9, 500_000, 5_000);
            world.wire.loss = loss;
            let remote = Remote { address: BASE + 104, key: wanted.key };
            let data = vec![world.hosts[0].sge(0, 1_000)];
            let word = vec![world.hosts[0].sge(2_000, 8)];
            world.post(0, request(1, write_to(BASE + 104, wanted.key), data.clone()));
            world.post(0, request(2, Operation::Read(remote), data.clone()));
            let add = request(3, Operation::FetchAdd { remote, add: 1 }, word);
            world.post(0, SendRequest { fence: true, ..add });
            world.post(0, request(4, Operation::Send(Attached::Invalidate(wanted.key)), data));
            world.run(100_000);
            let expected = [1, 2, 3, 4].map(|id| (id, Status::Success));
            assert_eq!(statuses(&mut world, 0), expected, "{loss} in a thousand lost");
            assert_eq!(statuses(&mut world, 1), [(9, Status::Success)]);
        });
    }
}

#[test]
fn a_binding_holds_for_what_is_asked_behind_it_and_completes_in_its_turn() {
    each(|mut world| {
        let wanted = window(&mut world, WindowKind::Type2);
        for id in 1..5 {
            let data = vec![world.hosts[1].sge(0, 2_000)];
            world.receive(0, 10 + id, 400_000, 2_000);
            world.post(1, request(id, Operation::Send(Attached::Nothing), data));
        }
        world.post(1, request(5, Operation::Bind(wanted), Vec::new()));
        let data = vec![world.hosts[1].sge(0, 8)];
        world.receive(0, 15, 400_000, 2_000);
        world.post(1, request(6, Operation::Send(Attached::Nothing), data));
        // The window is bound already, but the completion waits for that of earlier requests.
        world.run(0);
        assert_eq!(statuses(&mut world, 1), []);
        assert_eq!(ask(&mut world, write_to(BASE + 100, wanted.key), 8), Status::Success);
        assert_eq!(statuses(&mut world, 1), [1, 2, 3, 4, 5, 6].map(|id| (id, Status::Success)));
    });
}

#[test]
fn what_a_window_leads_into_stays() {
    each(|mut world| {
        let wanted = window(&mut world, WindowKind::Type2);
        bind(&mut world, 1, wanted);
        let host = &mut world.hosts[1];
        let region = host.rnic.region(wanted.region).expect("the region exists");
        let busy = Err(VerbsError::InUse("memory window"));
        assert_eq!(host.rnic.dereg_mr(wanted.region), busy);
        assert_eq!(host.rnic.rereg_mr(wanted.region, region), busy);
        // The destruction of a queue pair closes the windows that it has bound; so does the deallocation of a window.
        host.rnic.destroy_qp(host.qp).expect("the queue pair exists");
        host.rnic.dereg_mr(wanted.region).expect("no window refers to the region");
        host.rnic.dereg_mr(host.key).expect("no window refers to the region");
        assert_eq!(host.rnic.dealloc_pd(host.pd), busy);
        host.rnic.dealloc_mw(wanted.window).expect("the window exists");
        assert_eq!(host.rnic.dealloc_mw(wanted.window), Err(VerbsError::NoSuch("memory window")));
        host.rnic.dealloc_pd(host.pd).expect("nothing uses the domain");
    });
    each(|mut world| {
        let wanted = window(&mut world, WindowKind::Type1);
        bind(&mut world, 1, wanted);
        let rnic = &mut world.hosts[1].rnic;
        rnic.dealloc_mw(wanted.window).expect("the window exists");
        rnic.dereg_mr(wanted.region).expect("no window refers to the region");
        assert_eq!(ask(&mut world, write_to(BASE + 100, wanted.key), 8), Status::RemoteAccess);
    });
}

#[test]
fn what_is_closed_while_it_is_read_fails_the_read() {
    // A standard responder cannot know whether a repeated request is only late, and sends nothing.
    for (recovery, expected) in [(irn(), Status::RemoteAccess), (go_back_n(), Status::RetriesExceeded)] {
        let mut world = World::connected([recovery; 2], Wire::default(), 1);
        let wanted = Bind { access: READ, length: 9_000, ..window(&mut world, WindowKind::Type1) };
        bind(&mut world, 1, wanted);
        let key = world.hosts[1].key;
        assert_eq!(ask(&mut world, write_to(BASE + 20_000, key), 8), Status::Success);
        let remote = Remote { address: BASE + 100, key: wanted.key };
        let data = vec![world.hosts[0].sge(0, 9_000)];
        // The first packets of the response are lost.
        world.post(0, request(1, Operation::Read(remote), data));
        world.run(5);
        world.wire.loss = 1_000;
        world.run(10);
        world.hosts[1].rnic.dealloc_mw(wanted.window).expect("the window exists");
        world.wire.loss = 0;
        world.run(100_000);
        assert_eq!(statuses(&mut world, 0), [(1, expected)]);
    }
}

#[test]
fn what_is_closed_after_it_was_read_holds_up_nothing() {
    // The requester has the response, but the responder does not know that yet.
    for steps in [22, 25, 40, 60] {
        each(|mut world| {
            let wanted = Bind { access: READ, length: 9_000, ..window(&mut world, WindowKind::Type1) };
            bind(&mut world, 1, wanted);
            let remote = Remote { address: BASE + 100, key: wanted.key };
            let data = vec![world.hosts[0].sge(0, 9_000)];
            world.post(0, request(1, Operation::Read(remote), data.clone()));
            world.run(steps);
            if world.hosts[0].poll().is_empty() {
                return;
            }
            world.wire.loss = 1_000;
            world.run(100);
            world.hosts[1].rnic.dealloc_mw(wanted.window).expect("the window exists");
            world.wire.loss = 0;
            let key = world.hosts[1].key;
            for id in 2..40 {
                world.post(0, request(id, Operation::Read(Remote { address: BASE, key }), data.clone()));
            }
            world.run(100_000);
            assert_eq!(statuses(&mut world, 0), (2..40).map(|id| (id, Status::Success)).collect::<Vec<_>>());
        });
    }
}

#[test]
fn keys_of_windows_and_regions_never_meet() {
    let mut world = World::connected([irn(); 2], Wire::default(), 1);
    let host = &mut world.hosts[0];
    let (first, _) = host.rnic.alloc_mw(host.pd, WindowKind::Type1, 0xffff_ff07).expect("a free window");
    let (second, _) = host.rnic.alloc_mw(host.pd, WindowKind::Type2, 0xffff_ff08).expect("a free window");
    assert_eq!([first, second], [WindowId(0xff_ffff), WindowId(1)]);
    let region = Region { pd: host.pd, address: BASE, start: BASE, length: 1, access: ALL };
    let key = host.rnic.reg_mr(region, 0xffff_ff00).expect("a valid region");
    assert_eq!(key, 1, "past the window's keys, and past 0");
    let (third, _) = host.rnic.alloc_mw(host.pd, WindowKind::Type2, 0x1007).expect("a free window");
    assert_ne!(third, WindowId(host.key >> 8));
}

/// A window, as a naive model of the NIC knows it.
#[derive(Clone, Copy)]
struct Known {
    id: WindowId,
    kind: WindowKind,
    key: u32,
    open: Option<(QpNumber, Bind)>,
}

#[test]
fn at_random_windows_open_what_a_naive_model_opens() {
    let (pd, qps) = (PdId(1), [QpNumber(5), QpNumber(6)]);
    let access = |bits: u64| Access {
        local_write: bits & 1 != 0,
        remote_write: bits & 2 != 0,
        remote_read: bits & 4 != 0,
        remote_atomic: bits & 8 != 0,
        bind: bits & 16 != 0,
        ..Access::NONE
    };
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 3);
        let mut regions = Regions::default();
        // Addresses of the second region differ from those of its memory.
        let all: Vec<_> = [(1_000, 1_000, 31), (0, 5_000, 23), (2_000, 2_000, 15)]
            .map(|(address, start, bits)| {
                let region = Region { pd, address, start, length: 64, access: access(bits) };
                (regions.register(region, 0x100 + address as u32).expect("a valid region"), region)
            })
            .into();
        let mut windows: Vec<Known> = KINDS
            .iter()
            .chain(&KINDS)
            .map(|&kind| {
                let (id, key) = regions.open(pd, kind, rng.below(1 << 32) as u32).expect("a free window");
                Known { id, kind, key, open: None }
            })
            .collect();
        for _ in 0..300 {
            let (at, qp) = (rng.below(4) as usize, qps[rng.below(2) as usize]);
            let known = &mut windows[at];
            let (region, inside) = all[rng.below(3) as usize];
            match rng.below(3) {
                0 => {
                    let wanted = Bind {
                        window: known.id,
                        key: rng.below(1 << 32) as u32,
                        region,
                        address: (inside.address + rng.below(70)).saturating_sub(3),
                        length: rng.below(40),
                        access: access(rng.below(16)),
                        zero_based: rng.below(3) == 0,
                    };
                    let within = wanted.address >= inside.address
                        && wanted.address + wanted.length <= inside.address + inside.length;
                    let writes = wanted.access.remote_write || wanted.access.remote_atomic;
                    let may_open = within && inside.access.bind && (inside.access.local_write || !writes);
                    let expected = match known.kind {
                        WindowKind::Type1 => !wanted.zero_based && (wanted.length == 0 || may_open),
                        WindowKind::Type2 => known.open.is_none() && wanted.length > 0 && may_open,
                    };
                    assert_eq!(regions.bind(pd, qp, &wanted).is_ok(), expected, "seed {seed}: {wanted:?}");
                    if expected {
                        known.key = known.id.0 << 8 | wanted.key & 0xff;
                        known.open = (wanted.length > 0).then_some((qp, wanted));
                    }
                }
                1 => {
                    let key = if rng.below(4) == 0 { rng.below(1 << 32) as u32 } else { known.key };
                    let is_its_own = known.open.is_some_and(|(by, _)| by == qp) && key == known.key;
                    let expected = is_its_own && known.kind == WindowKind::Type2;
                    assert_eq!(regions.windows().invalidate(pd, qp, key).is_ok(), expected, "seed {seed}");
                    known.open.take_if(|_| expected);
                }
                _ => {
                    let is_busy = windows.iter().any(|known| known.open.is_some_and(|(_, bind)| bind.region == region));
                    assert_eq!(regions.change(region, inside).is_err(), is_busy, "seed {seed}");
                }
            }
            for (known, by) in windows.iter().flat_map(|known| qps.map(|by| (known, by))) {
                let (address, length) = (990 + rng.below(90), 1 + rng.below(8));
                let address = if rng.below(2) == 0 { address - 990 } else { address };
                let intent = [Intent::RemoteRead, Intent::RemoteWrite, Intent::RemoteAtomic][rng.below(3) as usize];
                let expected = known.open.and_then(|(owner, bind)| {
                    let from = if bind.zero_based { bind.address + address } else { address };
                    let inside = all.iter().find(|(key, _)| *key == bind.region).expect("the region exists").1;
                    let is_allowed = (known.kind == WindowKind::Type1 || owner == by)
                        && bind.access.admits(intent)
                        && from >= bind.address
                        && from + length <= bind.address + bind.length;
                    is_allowed.then(|| inside.start + (from - inside.address))
                });
                assert_eq!(regions.resolve(pd, by, known.key, address, length, intent), expected, "seed {seed}");
                assert_eq!(regions.resolve(PdId(2), by, known.key, address, length, intent), None, "seed {seed}");
            }
        }
    }
}

#[test]
fn another_queue_pair_of_the_domain_passes_through_type_1_alone() {
    // Host 1 binds by a queue pair other than the one that host 0 is connected to.
    for kind in KINDS {
        each(|mut world| {
            let wanted = window(&mut world, kind);
            let (_, init) = world.hosts[1].rnic.query_qp(world.hosts[1].qp).expect("the queue pair exists");
            let other = world.hosts[1].rnic.create_qp(init).expect("a valid configuration");
            let used = core::mem::replace(&mut world.hosts[1].qp, other);
            world.connect(1, |_| {});
            assert_eq!(bind(&mut world, 1, wanted), [(1, Status::Success)]);
            world.hosts[1].qp = used;
            let expected = if kind == WindowKind::Type1 { Status::Success } else { Status::RemoteAccess };
            assert_eq!(ask(&mut world, write_to(BASE + 100, wanted.key), 8), expected, "{kind:?}");
        });
    }
}

#[test]
fn windows_run_out() {
    let mut world = World::connected([irn(); 2], Wire::default(), 1);
    let host = &mut world.hosts[0];
    for n in 0..Limits::HERE.windows {
        host.rnic.alloc_mw(host.pd, WindowKind::Type2, n << 8).expect("a free window");
    }
    let last = host.rnic.alloc_mw(host.pd, WindowKind::Type2, 1);
    assert_eq!(last, Err(VerbsError::Exhausted("memory windows")));
    assert_eq!(host.rnic.alloc_mw(PdId(999), WindowKind::Type2, 1), Err(VerbsError::NoSuch("protection domain")));
}
