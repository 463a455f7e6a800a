//! Both ends of an EQDS tunnel, with a network that loses, duplicates, reorders and trims, and with a peer that sends
//! arbitrary packets.

use std::collections::VecDeque;

use selvedge_transport::eqds::{
    EqdsParams, Event, Interest, Life, Loss, Memory, Messages, Numbers, Policy, Receiver, Sender, Source, State,
};
use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::{Control, Data, Flags};

use super::Script;

/// Bytes of a full packet; headers have no bytes in these tests.
const MTU: u32 = 1_000;
/// The payload identifier of forged packets, which the application never supplied.
const FORGED: u32 = u32::MAX;

/// Detection of losses in all ways.
const ALL_WAYS: Loss = Loss {
    measured: Some((Duration::from_us(10), Duration::from_ms(10))),
    path_margin: Some(Duration::from_us(3)),
    gap_wait: Some(Duration::from_us(20)),
};

/// Tunnels that end.
const MORTAL: Life = Life {
    idle: Some(Duration::from_us(700)),
    memory: Memory::Nothing,
    unreachable: Some(Duration::from_us(3_000)),
    ..Life::FOR_EVER
};

impl Script<'_> {
    fn tunnel(&mut self) -> EqdsParams {
        let flags = self.byte();
        let is = |bit: u8| flags >> bit & 1 != 0;
        EqdsParams {
            numbers: Numbers::new(if is(0) { 16 } else { 32 }, 10),
            quantum: MTU,
            header: 0,
            window: MTU * [1, 2, 10, 100][usize::from(self.byte()) % 4],
            reorder: [2, 20, 64, 512][usize::from(self.byte()) % 4],
            bursts: is(1),
            first_window: MTU * [1, 100][usize::from(is(3))],
            ordered: is(2),
            reliable: is(2) || !is(6),
            rto: Duration::from_us(100),
            loss: if is(7) { ALL_WAYS } else { Loss::BY_TIMEOUT },
            reorder_timeout: is(3).then_some(Duration::from_us(400)),
            bounds: Source::Fixed,
            busy_ceiling: Duration::MAX,
            life: if is(7) { MORTAL } else { Life::FOR_EVER },
            housekeeping: false,
            max_timeouts: 1 + u32::from(self.byte() % 20),
            ack_after: if is(4) { 3 * MTU } else { 0 },
            paths: 16,
            control_frame: 64,
            pull_interval: Duration::from_us(1),
            pull_catch_up: Duration::ZERO,
            pull_quanta: [1, 3, 1, 8][usize::from(flags >> 5) % 4],
            gap: 0,
            policy: Policy::Fair,
            messages: Messages::Turns,
        }
    }
    /// Returns a number near `base`, before or behind it, or sometimes an arbitrary one.
    fn near(&mut self, params: &EqdsParams, base: u32) -> u32 {
        let distance = match self.byte() {
            0xff => u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()]),
            small @ 0..=0x7f => u32::from(small),
            before => u32::from(before - 0x7f).wrapping_neg(),
        };
        params.numbers.add(base, distance)
    }
}

struct World {
    params: EqdsParams,
    sender: Sender<u32>,
    receiver: Receiver<u32>,
    now: Instant,
    /// Packets that wait to be sent: identifier and size.
    queue: VecDeque<(u32, u32)>,
    /// Whether the sender has released each packet.
    freed: Vec<bool>,
    data: Vec<(Data, u32)>,
    control: Vec<Control>,
    last: Data,
}

/// Runs a tunnel whose events `bytes` determine.
pub(crate) fn torment_tunnel(bytes: &[u8]) {
    let mut script = Script(bytes);
    let params = script.tunnel();
    let last = Data {
        seq: 0,
        pull_target: 0,
        index: 0,
        payload: 0,
        flags: Flags::NONE,
        eqif: 0,
        class: 0,
        retransmission: false,
        trimmed: false,
    };
    let (queue, now) = (VecDeque::new(), Instant::ZERO);
    let (sender, receiver) = (Sender::new(), Receiver::new());
    let (freed, data, control) = (Vec::new(), Vec::new(), Vec::new());
    let mut world = World { params, sender, receiver, now, queue, freed, data, control, last };
    while !script.is_over() {
        world.step(&mut script);
        world.check();
    }
}

impl World {
    fn step(&mut self, script: &mut Script<'_>) {
        match script.byte() % 16 {
            0..=2 => self.supply(script),
            3..=6 => self.send(),
            7..=8 => self.take_data(script),
            9 => self.forge_data(script),
            10..=11 => self.take_control(script),
            12 => self.forge_control(script),
            13 => {
                let quanta = self.receiver.owed(&self.params).min(self.params.pull_quanta);
                let granted = (quanta > 0).then(|| self.receiver.grant(&self.params, quanta));
                self.control.extend(granted.flatten());
            }
            14 => {
                self.now += Duration::from_us(u64::from(script.byte()) * 4);
                self.time_out();
            }
            _ => self.forget(script),
        }
    }

    fn supply(&mut self, script: &mut Script<'_>) {
        let bytes = 1 + u32::from(script.byte()) * (MTU - 1) / 255;
        self.queue.push_back((self.freed.len() as u32, bytes));
        self.freed.push(false);
        self.sender.supply(&self.params, self.now, bytes.into(), self.freed.len() as u32);
    }

    fn send(&mut self) {
        let head = self.queue.front().map(|(_, bytes)| *bytes);
        let interest = self.sender.next(&self.params, head);
        let queue = &mut self.queue;
        let sent = self.sender.poll_transmit(&self.params, self.now, head, || queue.pop_front().expect("non-empty"));
        assert_eq!(sent.is_some(), interest != Interest::Nothing, "one decision");
        let Some(sent) = sent else { return };
        assert_eq!(sent.cargo.is_none(), interest == Interest::Request);
        self.sender.note_path(&self.params, sent.seq, (self.now.as_ps() ^ u64::from(sent.seq)) as u16 % 4);
        let payload = if sent.cargo.is_some() { 1 } else { 0 };
        let data = Data { seq: sent.seq, pull_target: sent.pull_target, payload, flags: sent.flags, ..self.last };
        (self.last.seq, self.last.pull_target) = (sent.seq, sent.pull_target);
        self.data.push((data, sent.cargo.unwrap_or(FORGED)));
    }

    /// Delivers a packet in flight, once or more; its payload may be trimmed.
    fn take_data(&mut self, script: &mut Script<'_>) {
        let how = script.byte();
        let Some(place) = usize::from(script.byte()).checked_rem(self.data.len()) else { return };
        let (data, cargo) = if how & 1 == 0 { self.data.swap_remove(place) } else { self.data[place] };
        self.hear_data(&data, how & 6 == 6, cargo);
    }

    fn forge_data(&mut self, script: &mut Script<'_>) {
        let (seq, target) =
            (script.near(&self.params, self.last.seq), script.near(&self.params, self.last.pull_target));
        let (flags, payload) = (Flags::from_bits(script.byte()), script.byte());
        let data = Data { seq, pull_target: target, flags, payload: payload.into(), ..self.last };
        self.hear_data(&data, payload & 3 == 3, FORGED);
    }

    fn hear_data(&mut self, data: &Data, trimmed: bool, cargo: u32) {
        let known = self.freed.len() as u32;
        let deliver = |cargo: u32| assert!(cargo < known || cargo == FORGED);
        let (_, control) = self.receiver.handle_data(&self.params, self.now, data, trimmed, cargo, deliver);
        self.control.extend(control);
    }

    fn take_control(&mut self, script: &mut Script<'_>) {
        let how = script.byte();
        let Some(place) = usize::from(script.byte()).checked_rem(self.control.len()) else { return };
        let control = if how & 1 == 0 { self.control.swap_remove(place) } else { self.control[place] };
        self.hear_control(&control);
    }

    fn forge_control(&mut self, script: &mut Script<'_>) {
        let number = script.near(&self.params, self.last.seq);
        let pull = script.near(&self.params, self.sender.pull());
        let (flags, busy) = (Flags::from_bits(script.byte()), u32::from(script.byte()) << (script.byte() % 25));
        self.hear_control(&Control { flags, number, pull, busy, eqif: 0 });
    }

    fn hear_control(&mut self, control: &Control) {
        let freed = &mut self.freed;
        self.sender.handle_control(&self.params, self.now, control, |cargo| {
            assert!(!core::mem::replace(&mut freed[cargo as usize], true), "{cargo} is freed once");
        });
    }

    fn time_out(&mut self) {
        for _ in 0..2 {
            self.sender.handle_timeout(&self.params, self.now);
            match self.sender.poll_event() {
                None => {}
                Some(Event::Idle) => assert!(self.sender.is_done()),
                Some(Event::PeerUnreachable) => self.sender.retry(&self.params, self.now),
            }
            self.receiver.handle_timeout(&self.params, self.now, |_| {});
            self.control.extend(core::iter::from_fn(|| self.receiver.poll_missing(&self.params, self.now)));
        }
        assert!(self.sender.poll_timeout() > self.now, "a deadline that has come stays away");
        assert!(self.receiver.poll_timeout(&self.params) > self.now);
    }

    /// Drops the state of one end, which is allowed at any time.
    fn forget(&mut self, script: &mut Script<'_>) {
        match script.byte() % 8 {
            0 => self.control.extend(self.receiver.close(&self.params, |_| {})),
            3 => {
                // The sender tells of the end of its tunnel.
                if let Some(end) = self.sender.close(&self.params) {
                    self.data.push((Data { seq: end.seq, flags: end.flags, payload: 0, ..self.last }, FORGED));
                }
                self.supply_again(script);
            }
            1 | 2 => {
                let memory = if script.byte() & 1 == 0 { Memory::Number } else { Memory::Nothing };
                self.sender.forget(&self.params, memory);
                self.supply_again(script);
            }
            _ => {}
        }
    }

    /// Supplies the packets that wait to a sender that has dropped its state. Packets in flight are lost to it.
    fn supply_again(&mut self, script: &mut Script<'_>) {
        let waiting: u64 = self.queue.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        if waiting > 0 && matches!(self.sender.state(), State::Closed(_)) {
            self.sender.supply(&self.params, self.now, waiting, script.byte().into());
        }
    }

    fn check(&self) {
        assert!(self.sender.credit() <= self.params.window, "credit never exceeds a window");
        let waiting: u64 = self.queue.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        assert!(self.sender.demand() >= waiting, "what waits is demand");
        assert!(self.receiver.waiting() <= self.params.reorder as usize + 1, "the reorder queue is bounded");
        assert!(u64::from(self.sender.awaited(&self.params)) <= 1 << 31);
    }
}
