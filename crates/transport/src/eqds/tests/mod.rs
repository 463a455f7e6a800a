mod clock;
mod credit;
mod dialogue;
mod life;
mod loss;
mod model;
mod service;
mod settings;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::{Control, Data};

use super::{
    Disposition, EqdsParams, Interest, Life, Loss, Messages, Numbers, Policy, Receiver, Sender, Source, Transmit,
};

/// Bytes of a full packet; the tests have headers of zero bytes.
const MTU: u32 = 1000;

/// Returns parameters with a window of ten packets.
fn params() -> EqdsParams {
    EqdsParams {
        numbers: Numbers::new(32, 10),
        quantum: MTU,
        header: 0,
        window: 10 * MTU,
        reorder: 64,
        bursts: true,
        first_window: u32::MAX,
        ordered: true,
        reliable: true,
        rto: Duration::from_us(100),
        loss: Loss::BY_TIMEOUT,
        reorder_timeout: Some(Duration::from_us(400)),
        bounds: Source::Fixed,
        busy_ceiling: Duration::MAX,
        life: Life::FOR_EVER,
        housekeeping: false,
        max_timeouts: 16,
        ack_after: 0,
        paths: 16,
        control_frame: 64,
        pull_interval: Duration::from_us(1),
        pull_catch_up: Duration::ZERO,
        pull_quanta: 1,
        gap: 0,
        policy: Policy::Fair,
        messages: Messages::Turns,
    }
}

/// Both ends of a tunnel, and the packets in the network.
struct Tunnel {
    params: EqdsParams,
    sender: Sender<u32>,
    receiver: Receiver<u32>,
    now: Instant,
    /// Sizes of the packets that wait to be sent.
    queue: VecDeque<u32>,
    /// Name of the next packet.
    name: u32,
    data: VecDeque<(Data, u32)>,
    control: VecDeque<Control>,
    delivered: Vec<u32>,
}

impl Tunnel {
    fn new(params: EqdsParams) -> Self {
        Self {
            params,
            sender: Sender::new(),
            receiver: Receiver::new(),
            now: Instant::ZERO,
            queue: VecDeque::new(),
            name: 0,
            data: VecDeque::new(),
            control: VecDeque::new(),
            delivered: Vec::new(),
        }
    }

    fn supply(&mut self, sizes: impl IntoIterator<Item = u32>) {
        let before = self.queue.len();
        self.queue.extend(sizes);
        let bytes = self.queue.iter().skip(before).map(|size| u64::from(*size)).sum();
        self.sender.supply(&self.params, self.now, bytes, 77);
    }

    /// Sends one packet, if the sender may.
    fn send(&mut self) -> Option<Transmit<u32>> {
        let (queue, name) = (&mut self.queue, &mut self.name);
        let head = queue.front().copied();
        let mut taken = None;
        let transmit = self.sender.poll_transmit(&self.params, self.now, head, || {
            let bytes = queue.pop_front().expect("a packet waits");
            taken = Some(bytes);
            *name += 1;
            (*name - 1, bytes)
        })?;
        let payload = if transmit.cargo.is_none() { 0 } else { taken.unwrap_or(MTU) as u16 };
        let Transmit { seq, pull_target, flags, retransmission, .. } = transmit;
        let data =
            Data { seq, pull_target, index: 0, payload, flags, eqif: 0, class: 0, retransmission, trimmed: false };
        self.data.push_back((data, transmit.cargo.unwrap_or(0)));
        Some(transmit)
    }

    /// Sends all packets that the sender may send; returns their number.
    fn send_all(&mut self) -> usize {
        core::iter::from_fn(|| self.send()).count()
    }

    /// Delivers the data packet at `place`.
    fn arrive(&mut self, place: usize, trimmed: bool) -> Disposition {
        let (data, cargo) = self.data.remove(place).expect("a packet");
        let deliver = |cargo| self.delivered.push(cargo);
        let (disposition, control) = self.receiver.handle_data(&self.params, self.now, &data, trimmed, cargo, deliver);
        self.control.extend(control);
        disposition
    }

    /// Delivers the control packet at `place`.
    fn answer(&mut self, place: usize) -> Control {
        let control = self.control.remove(place).expect("a control packet");
        self.sender.handle_control(&self.params, self.now, &control, |_| {});
        control
    }

    /// Grants one quantum, if any is owed; returns whether one was.
    fn grant(&mut self) -> bool {
        self.grant_up_to(1) > 0
    }

    /// Grants up to `most` quanta with one control packet; returns their number.
    fn grant_up_to(&mut self, most: u32) -> u32 {
        let quanta = self.receiver.owed(&self.params).min(most);
        if quanta > 0 {
            self.control.extend(self.receiver.grant(&self.params, quanta));
        }
        quanta
    }

    /// Delivers and answers everything until nothing is left to do.
    fn settle(&mut self) {
        loop {
            let mut moved = self.send_all() > 0;
            while !self.data.is_empty() {
                self.arrive(0, false);
                moved = true;
            }
            moved |= self.grant();
            while !self.control.is_empty() {
                self.answer(0);
                moved = true;
            }
            if !moved {
                break;
            }
        }
    }

    /// Advances the time to the next deadline of either end, and handles it.
    fn wait(&mut self) {
        let at = self.sender.poll_timeout().min(self.receiver.poll_timeout(&self.params));
        assert!(at != Instant::NEVER, "nothing is waited for");
        self.now = self.now.max(at);
        self.sender.handle_timeout(&self.params, self.now);
        let deliver = |cargo| self.delivered.push(cargo);
        self.receiver.handle_timeout(&self.params, self.now, deliver);
    }

    fn wants(&mut self) -> Interest {
        let head = self.queue.front().copied();
        self.sender.next(&self.params, head)
    }
}
