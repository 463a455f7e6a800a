//! Both state machines of appendix A, explored exhaustively.
//!
//! The model *is* the engine: its states are the engine's own, hashed, with what the network holds. A tunnel carries
//! a few packets with a window of two; the network holds a few data and control packets ([`Bounds`]), in no order, and
//! may lose and double any of them; either end may forget everything, or refuse to know; timeouts come whenever they
//! like, and lead to new epochs, of which [`REOPENINGS`] in a row are looked at. Of epochs drawn at random it is supposed that they are not, by chance, next to one that is still
//! in use somewhere: with 22 bits, one in a million or so.
//!
//! In every state: no packet of one epoch is taken for one of another. From every state: once the network loses nothing
//! more and nobody forgets, everything is sent and acknowledged, and nothing waits in the reorder queue.

extern crate std;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::{Control, Data};

use super::*;
use crate::eqds::Memory;

/// How much of the world is looked at.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Packets to carry.
    packets: u8,
    /// Data and control packets that the network holds.
    data: usize,
    control: usize,
    /// How often an end forgets everything.
    forgets: u8,
    bursts: bool,
}

/// Epochs that random numbers choose.
const EPOCHS: [u32; 3] = [20, 10, 30];
/// Epochs from those on.
const REOPENINGS: u32 = 2;

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

/// A packet, and in which epoch its sender was.
type InFlight = (Data, u8, u32);

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    sender: Sender<u8>,
    receiver: Receiver<u8>,
    data: Vec<InFlight>,
    control: Vec<Control>,
    /// Packets that have not been supplied, and that wait with the owner.
    unsupplied: u8,
    waiting: u8,
    /// The name of the first of these.
    next: u8,
    forgets: u8,
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
            forgets: bounds.forgets,
        }
    }

    /// What the order of packets in the network does not change.
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
        let data = Data { seq, pull_target, index: 0, payload, flags, retransmission: false };
        self.data.push((data, cargo.unwrap_or(0), self.sender.epoch()));
        true
    }

    fn arrive(&mut self, params: &EqdsParams, place: usize, trimmed: bool) {
        let (data, cargo, epoch) = self.data.remove(place);
        let (fate, control) = self.receiver.handle_data(params, Instant::ZERO, &data, trimmed, cargo, |_| {});
        assert!(fate != Fate::Taken || self.receiver.epoch() == Some(epoch), "{data:?} of epoch {epoch} taken");
        self.control.extend(control);
    }

    fn answer(&mut self, params: &EqdsParams, place: usize) {
        let control = self.control.remove(place);
        self.sender.handle_control(params, Instant::ZERO, &control, |_| {});
        self.sender.turn_back_time(params);
    }

    fn grant(&mut self, params: &EqdsParams) -> bool {
        let owed = self.receiver.owed(params) > 0;
        if owed {
            self.control.extend(self.receiver.grant(params));
        }
        owed
    }

    fn time_out(&mut self, params: &EqdsParams) -> bool {
        if self.sender.poll_timeout() == Instant::NEVER {
            return false;
        }
        // Later than any deadline: all that was waited for long enough is given up.
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

    /// Whether a random epoch is far from every number that is in use.
    fn is_fresh(&self, params: &EqdsParams, epoch: u32) -> bool {
        let first = params.numbers.random_epoch(epoch);
        let far = |number: u32| params.numbers.distance(first, number).unsigned_abs() > 3 * params.numbers.epoch_length();
        self.data.iter().all(|(data, ..)| far(data.seq))
            && self.control.iter().all(|control| far(control.number))
            && self.receiver.epoch().is_none_or(far)
    }

    /// Every state that one event leads to.
    fn successors(&self, bounds: &Bounds, params: &EqdsParams, mut visit: impl FnMut(World)) {
        let mut try_event = |event: &dyn Fn(&mut World) -> bool| {
            let mut next = self.clone();
            if event(&mut next) {
                visit(next);
            }
        };
        if self.data.len() < bounds.data {
            try_event(&|world| world.send(params));
        }
        for place in 0..self.data.len() {
            if self.control.len() < bounds.control {
                let whole = self.data[place].0.payload > 0;
                for trimmed in [false, true] {
                    try_event(&|world| (whole || !trimmed) && { world.arrive(params, place, trimmed); true });
                }
            }
            try_event(&|world| { world.data.remove(place); true });
            if self.data.len() < bounds.data {
                try_event(&|world| { world.data.push(world.data[place]); true });
            }
        }
        for place in 0..self.control.len() {
            try_event(&|world| { world.answer(params, place); true });
            try_event(&|world| { world.control.remove(place); true });
            if self.control.len() < bounds.control {
                try_event(&|world| { world.control.push(world.control[place]); true });
            }
        }
        if self.control.len() < bounds.control {
            try_event(&|world| world.grant(params));
        }
        try_event(&|world| world.time_out(params));
        try_event(&|world| world.release(params));
        let is_closed = matches!(self.sender.state(), crate::eqds::State::Closed(_));
        let chosen = if is_closed { &EPOCHS[..] } else { &EPOCHS[..1] };
        for &epoch in chosen {
            if self.unsupplied > 0 && (!is_closed || self.is_fresh(params, epoch)) {
                try_event(&|world| { world.unsupplied -= 1; world.supply(params, 1, epoch); true });
            }
        }
        if self.forgets > 0 {
            try_event(&|world| {
                world.forgets -= 1;
                world.receiver = Receiver::new();
                true
            });
            for (memory, epoch) in EPOCHS.map(|epoch| (Memory::Nothing, epoch)).into_iter().chain([(Memory::Number, 0)]) {
                if memory == Memory::Nothing && !self.is_fresh(params, epoch) {
                    continue;
                }
                try_event(&|world| {
                    world.forgets -= 1;
                    world.sender.forget(params, memory);
                    if world.waiting > 0 {
                        let waiting = core::mem::take(&mut world.waiting);
                        world.supply(params, waiting, epoch);
                    }
                    true
                });
            }
        }
    }

    /// Runs on without losses until nothing is left to do.
    fn finish(mut self, params: &EqdsParams) -> Result<(), Self> {
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
                return Ok(());
            }
            let any = self.time_out(params) | self.release(params);
            if !any {
                break;
            }
        }
        Err(self)
    }
}

/// Looks at every state; returns how many there are.
fn explore(bounds: Bounds) -> usize {
    let params = EqdsParams { bursts: bounds.bursts, ..small() };
    let first = World::new(&bounds);
    let (mut seen, mut frontier) = (BTreeSet::new(), VecDeque::from([first]));
    while let Some(world) = frontier.pop_front() {
        if let Err(stuck) = world.clone().finish(&params) {
            panic!("stuck: {:?} {:?}, {} wait", stuck.sender, stuck.receiver, stuck.waiting);
        }
        world.successors(&bounds, &params, |mut next| {
            let epoch = next.sender.epoch() / params.numbers.epoch_length();
            let near = EPOCHS.iter().any(|first| (*first..=first + REOPENINGS).contains(&epoch));
            if (near || epoch == 0) && seen.insert(next.fingerprint()) {
                frontier.push_back(next);
            }
        });
    }
    seen.len()
}

#[test]
fn no_state_is_stuck_and_no_epoch_mixed_with_another() {
    for bursts in [true, false] {
        for (packets, data, control, forgets) in [(2, 1, 1, 1), (2, 2, 1, 1), (2, 1, 2, 1), (2, 1, 1, 2), (3, 1, 1, 1)] {
            let bounds = Bounds { packets, data, control, forgets, bursts };
            let begin = std::time::Instant::now();
            std::eprintln!("{bounds:?}: {} states {:?}", explore(bounds), begin.elapsed());
        }
    }
}

/// A hash that is the same everywhere.
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
