//! An exhaustive exploration of both state machines of appendix A.
//!
//! The model *is* the engine: its states are the engine's own, hashed, with the packets in the network. A tunnel
//! carries a few packets with a window of two; the network holds a few data and control packets, in no order, and may
//! lose any of them at any time. A number of accidents may happen, in any order and at any time: an end forgets
//! everything, a packet is trimmed or duplicated, a timeout expires, however early ([`Bounds`]). Random epochs are
//! assumed not to be next to one still in use, by chance: with 22 bits, the probability is about one in a million.
//!
//! In every state: no packet of one epoch is taken for one of another. From every state: once the network loses nothing
//! more and nobody forgets, everything is sent and acknowledged, and nothing waits in the reorder queue.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::{Control, Data};

use super::*;
use crate::eqds::Memory;

/// Bounds of the exploration.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Packets to carry.
    packets: u8,
    /// Capacity of the network in data packets; `control`: in control packets.
    data: usize,
    control: usize,
    /// Number of accidents (see the module's documentation).
    accidents: u8,
    bursts: bool,
    /// Whether the sender may close the tunnel at any time, which counts as an accident.
    closes: bool,
}

/// Epochs that random numbers select.
const EPOCHS: [u32; 3] = [20, 10, 30];

fn small() -> EqdsParams {
    EqdsParams {
        numbers: Numbers::new(32, 3),
        quantum: 1,
        window: 2,
        reorder: 3,
        rto: Duration::from_ps(1),
        reorder_timeout: Some(Duration::from_ps(1)),
        max_timeouts: 1,
        ..params()
    }
}

/// A data packet in the network: header, name, and epoch of its sender.
type InFlight = (Data, u8, u32);

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    sender: Sender<u8>,
    receiver: Receiver<u8>,
    data: Vec<InFlight>,
    control: Vec<Control>,
    /// Packets not supplied yet; `waiting`: packets that wait with the owner.
    unsupplied: u8,
    waiting: u8,
    /// Name of the first waiting packet.
    next: u8,
    accidents: u8,
}

impl World {
    fn new(bounds: &Bounds) -> Self {
        Self {
            sender: Sender::new(),
            receiver: Receiver::new(),
            data: Vec::new(),
            control: Vec::new(),
            unsupplied: bounds.packets,
            waiting: 0,
            next: 0,
            accidents: bounds.accidents,
        }
    }

    /// Returns a hash that does not depend on the order of packets in the network.
    fn fingerprint(&mut self) -> (u64, u64) {
        let key = |data: &Data| (data.seq, data.pull_target, data.flags.bits(), data.payload);
        self.data.sort_by_key(|(data, cargo, epoch)| (key(data), data.retransmission, *cargo, *epoch));
        self.control.sort_by_key(|control| (control.number, control.pull, control.flags.bits()));
        let mut hashers = [Fnv(0xcbf2_9ce4_8422_2325), Fnv(0x9e37_79b9_7f4a_7c15)];
        hashers.iter_mut().for_each(|hasher| self.hash(hasher));
        (hashers[0].finish(), hashers[1].finish())
    }

    fn send(&mut self, params: &EqdsParams) -> bool {
        let (waiting, next) = (&mut self.waiting, &mut self.next);
        let head = (*waiting > 0).then_some(1);
        let transmit = self.sender.poll_transmit(params, Instant::ZERO, head, || {
            *waiting -= 1;
            *next += 1;
            (*next - 1, 1)
        });
        let Some(Transmit { cargo, seq, pull_target, flags, .. }) = transmit else { return false };
        let payload = u16::from(cargo.is_some());
        let data = Data {
            seq,
            pull_target,
            index: 0,
            payload,
            flags,
            eqif: 0,
            class: 0,
            retransmission: false,
            trimmed: false,
        };
        self.data.push((data, cargo.unwrap_or(0), self.sender.epoch()));
        true
    }

    fn arrive(&mut self, params: &EqdsParams, place: usize, trimmed: bool) -> bool {
        let (data, cargo, epoch) = self.data.remove(place);
        let (disposition, control) = self.receiver.handle_data(params, Instant::ZERO, &data, trimmed, cargo, |_| {});
        assert!(
            disposition != Disposition::Taken || self.receiver.epoch() == Some(epoch),
            "{data:?} of epoch {epoch} taken"
        );
        self.control.extend(control);
        true
    }

    fn answer(&mut self, params: &EqdsParams, place: usize) -> bool {
        let control = self.control.remove(place);
        self.sender.handle_control(params, Instant::ZERO, &control, |_| {});
        self.sender.turn_back_time(params);
        true
    }

    fn lose_data(&mut self, place: usize) -> bool {
        self.data.remove(place);
        true
    }
    fn double_data(&mut self, place: usize) -> bool {
        self.data.push(self.data[place]);
        true
    }
    fn lose_control(&mut self, place: usize) -> bool {
        self.control.remove(place);
        true
    }
    fn double_control(&mut self, place: usize) -> bool {
        self.control.push(self.control[place]);
        true
    }

    fn grant(&mut self, params: &EqdsParams) -> bool {
        let owed = self.receiver.owed(params) > 0;
        if owed {
            self.control.extend(self.receiver.grant(params, 1));
        }
        owed
    }

    fn time_out(&mut self, params: &EqdsParams) -> bool {
        if self.sender.poll_timeout() == Instant::NEVER {
            return false;
        }
        // The time is after any deadline, so all long waits are given up.
        self.sender.handle_timeout(params, Instant::ZERO + Duration::from_ms(1));
        self.sender.turn_back_time(params);
        true
    }

    fn release(&mut self, params: &EqdsParams) -> bool {
        let at = self.receiver.poll_timeout(params);
        if at == Instant::NEVER {
            return false;
        }
        self.receiver.handle_timeout(params, at, |_| {});
        true
    }

    fn supply(&mut self, params: &EqdsParams, packets: u8, epoch: u32) {
        self.waiting += packets;
        self.sender.supply(params, Instant::ZERO, packets.into(), epoch);
        self.sender.turn_back_time(params);
    }

    fn supply_one(&mut self, params: &EqdsParams, epoch: u32) -> bool {
        let some = self.unsupplied > 0;
        if some {
            self.unsupplied -= 1;
            self.supply(params, 1, epoch);
        }
        some
    }

    /// Makes the sender forget its state; packets waiting with its owner still wait.
    fn forget(&mut self, params: &EqdsParams, memory: Memory, epoch: u32) -> bool {
        self.sender.forget(params, memory);
        let waiting = core::mem::take(&mut self.waiting);
        if waiting > 0 {
            self.supply(params, waiting, epoch);
        }
        true
    }

    /// Closes the sender's tunnel, and tells the receiver; packets waiting with the owner open another.
    fn close(&mut self, params: &EqdsParams) -> bool {
        let epoch = self.sender.epoch();
        let Some(Transmit { seq, pull_target, flags, .. }) = self.sender.close(params) else { return false };
        let (index, payload, eqif, class) = (0, 0, 0, 0);
        let end = Data { seq, pull_target, index, payload, flags, eqif, class, retransmission: false, trimmed: false };
        self.data.push((end, 0, epoch));
        let waiting = core::mem::take(&mut self.waiting);
        if waiting > 0 {
            self.supply(params, waiting, 0);
        }
        true
    }

    /// Returns whether a random epoch is far from all numbers in use.
    fn is_fresh(&self, params: &EqdsParams, epoch: u32) -> bool {
        let first = params.numbers.random_epoch(epoch);
        let far =
            |number: u32| params.numbers.distance(first, number).unsigned_abs() > 3 * params.numbers.epoch_length();
        self.data.iter().all(|(data, ..)| far(data.seq))
            && self.control.iter().all(|control| far(control.number))
            && self.receiver.epoch().is_none_or(far)
    }

    /// Visits every state that one event leads to.
    fn successors(&self, bounds: &Bounds, params: &EqdsParams, mut visit: impl FnMut(World)) {
        let mut try_event = |accidents: u8, event: &dyn Fn(&mut World) -> bool| {
            if self.accidents < accidents {
                return;
            }
            let mut next = self.clone();
            next.accidents -= accidents;
            if event(&mut next) {
                visit(next);
            }
        };
        let (room_for_data, room_for_control) = (self.data.len() < bounds.data, self.control.len() < bounds.control);
        if room_for_data {
            try_event(0, &|world| world.send(params));
            if bounds.closes {
                try_event(1, &|world| world.close(params));
            }
        }
        for place in 0..self.data.len() {
            if room_for_control {
                try_event(0, &|world| world.arrive(params, place, false));
                try_event(1, &|world| world.data[place].0.payload > 0 && world.arrive(params, place, true));
            }
            try_event(0, &|world| world.lose_data(place));
            if room_for_data {
                try_event(1, &|world| world.double_data(place));
            }
        }
        for place in 0..self.control.len() {
            try_event(0, &|world| world.answer(params, place));
            try_event(0, &|world| world.lose_control(place));
            if room_for_control {
                try_event(1, &|world| world.double_control(place));
            }
        }
        if room_for_control {
            try_event(0, &|world| world.grant(params));
        }
        try_event(1, &|world| world.time_out(params));
        try_event(1, &|world| world.release(params));
        try_event(1, &|world| core::mem::take(&mut world.receiver) != Receiver::new());
        try_event(1, &|world| world.forget(params, Memory::Number, 0));
        // The random epoch is irrelevant to a sender that remembers its number.
        let remembers = self.sender.state() != crate::eqds::State::Closed(None);
        for (choice, epoch) in EPOCHS.into_iter().enumerate() {
            let fresh = self.is_fresh(params, epoch);
            if if remembers { choice == 0 } else { fresh } {
                try_event(0, &|world| world.supply_one(params, epoch));
            }
            if fresh {
                try_event(1, &|world| world.forget(params, Memory::Nothing, epoch));
            }
        }
    }

    /// Runs without losses until everything is done; returns the state in which it is stuck, if any.
    fn finish(mut self, params: &EqdsParams) -> Option<Self> {
        for _ in 0..60 {
            for _ in 0..40 {
                let mut moved = false;
                while self.data.len() < 8 && self.send(params) {
                    moved = true;
                }
                while !self.data.is_empty() {
                    self.arrive(params, 0, false);
                    moved = true;
                }
                while self.grant(params) {
                    moved = true;
                }
                while !self.control.is_empty() {
                    self.answer(params, 0);
                    moved = true;
                }
                if !moved {
                    break;
                }
            }
            if self.waiting == 0 && self.sender.is_done() && self.receiver.waiting() == 0 {
                return None;
            }
            let any = self.time_out(params) | self.release(params);
            if !any {
                break;
            }
        }
        Some(self)
    }
}

/// Explores every state; returns their number.
fn explore(bounds: Bounds) -> usize {
    let params = EqdsParams { bursts: bounds.bursts, ..small() };
    let first = World::new(&bounds);
    let (mut seen, mut frontier) = (BTreeSet::new(), VecDeque::from([first]));
    while let Some(world) = frontier.pop_front() {
        if let Some(stuck) = world.clone().finish(&params) {
            panic!("stuck: {:?} {:?}, {} wait", stuck.sender, stuck.receiver, stuck.waiting);
        }
        world.successors(&bounds, &params, |mut next| {
            if seen.insert(next.fingerprint()) {
                frontier.push_back(next);
            }
        });
    }
    seen.len()
}

/// Explores bounds given as packets, data and control packets in the network, and accidents, with and without bursts;
/// `closes`: the sender may close the tunnel.
fn explore_all(closes: bool, all: &[(u8, usize, usize, u8)]) {
    for &(packets, data, control, accidents) in all {
        for bursts in [true, false] {
            let states = explore(Bounds { packets, data, control, accidents, bursts, closes });
            assert!(states > 10_000, "{states} states are not what was meant");
        }
    }
}

#[test]
fn no_state_is_stuck_and_no_epoch_mixed_with_another() {
    explore_all(true, &[(2, 1, 1, 3), (2, 2, 1, 2)]);
}

#[test]
#[ignore = "three minutes: seventeen million states"]
fn larger_state_spaces_hold_too() {
    explore_all(false, &[(2, 2, 2, 2), (3, 2, 1, 2)]);
}

/// FNV, a hash that is equal on all platforms.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
