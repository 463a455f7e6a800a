//! The switches of the simulator, for real frames: an [`Engine`] around [`selvedge_switch::Fabric`].

use selvedge_switch::descriptor::Slot;
use selvedge_switch::{Change, Fabric, FabricObserver, Parts};
use selvedge_telemetry::{DropReason, PacketKind, PortRow};
use selvedge_units::{Duration, Instant};
use selvedge_wire::{Pause, Pfc};

use super::engine::{Arrival, Engine, Leaving};
use super::frames::Frames;
use super::netrt;
use super::recorder::Recorder;

/// Bytes that may wait for the link of a host; frames beyond are dropped, as behind the queue of an interface.
const MOST_WAITING: u64 = 4 << 20;

/// Engine of a network's switches: queues, buffers, marks, trims, pauses, losses and routes are those of the simulator,
/// and links take their time. `O` is [`Recorder`] where all events are recorded.
pub struct FabricEngine<O = ()> {
    pub(super) fabric: Fabric<Frames, O>,
    class_of: [u8; 8],
    names: Vec<String>,
    /// Frame that was lent last.
    lent: Vec<u8>,
    /// Frames that hosts have sent while too many waited for their links, and forged messages between switches.
    pub(super) refused: u64,
    forged: u64,
}

impl FabricEngine {
    /// Creates the engine of a network in which nothing has happened before time zero; `names` are those of its ports,
    /// by number.
    pub fn new(parts: Parts, names: Vec<String>) -> Self {
        Self::observed(parts, names, ())
    }
}

impl FabricEngine<Recorder> {
    /// Creates an engine like [`FabricEngine::new`], whose events are recorded.
    pub fn recorded(parts: Parts, names: Vec<String>, recorder: Recorder) -> Self {
        Self::observed(parts, names, recorder)
    }
}

impl<O: FabricObserver<Frames>> FabricEngine<O> {
    fn observed(mut parts: Parts, names: Vec<String>, observer: O) -> Self {
        // Queue pairs of real NICs are reused.
        parts.switches.tors.iter_mut().flatten().for_each(|tor| tor.restart_flows());
        let (switches, mut class_of) = (&parts.switches, parts.class_of);
        let netrt = (!switches.tors.is_empty()).then_some(switches.params.netrt_class);
        // That class belongs to switches alone.
        let data = switches.params.data_classes.trailing_zeros() as u8;
        for class in class_of.iter_mut().filter(|class| netrt == Some(**class)) {
            *class = data;
        }
        let frames = Frames::new(parts.attachments.clone(), netrt.is_some());
        let fabric = Fabric::observed(parts, frames, observer);
        Self { fabric, class_of, names, lent: Vec::new(), refused: 0, forged: 0 }
    }
}

impl<O: FabricObserver<Frames>> FabricEngine<O> {
    /// Lets links fail and come back: the times of `changes`, latest first, count from `now`. They take the place of
    /// those that were to come.
    pub fn schedule(&mut self, now: Instant, mut changes: Vec<Change>) {
        changes.iter_mut().for_each(|change| change.at = now + change.at.since(Instant::ZERO));
        self.fabric.set_changes(changes);
    }
}

/// Observer of deliveries to hosts, which the fabric does not make.
trait DeliveryObserver: FabricObserver<Frames> {
    fn on_delivered(&mut self, now: Instant, host: u32, slot: Slot, late: Duration);
}

impl DeliveryObserver for () {
    fn on_delivered(&mut self, _: Instant, _: u32, _: Slot, _: Duration) {}
}

impl DeliveryObserver for Recorder {
    fn on_delivered(&mut self, now: Instant, host: u32, slot: Slot, late: Duration) {
        self.record_delivery(now, host, slot, late);
    }
}

impl<O: DeliveryObserver> Engine for FabricEngine<O> {
    fn handle_packet(&mut self, now: Instant, arrival: Arrival<'_>) {
        let Arrival { from, to, facts, frame } = arrival;
        let [from, to] = [from, to].map(|port| port as u32);
        if self.fabric.backlog(from) + u64::from(facts.bytes) > MOST_WAITING {
            self.refused += 1;
            return;
        }
        let class = self.class_of[usize::from(facts.class & 7)];
        match self.fabric.packets_mut().put([from, to], frame, facts, class) {
            Some(packet) => self.fabric.handle_packet(now, from, &packet),
            None => self.forged += 1,
        }
    }

    fn handle_pause(&mut self, now: Instant, port: usize, pause: &Pfc) {
        let mut left = pause.classes;
        while left != 0 {
            // Priorities with one time are one pause.
            let quanta = pause.quanta[left.trailing_zeros() as usize];
            let together = (0..8).filter(|p| left >> p & 1 == 1 && pause.quanta[*p] == quanta);
            let (priorities, classes) = together
                .fold((0_u8, 0_u8), |(priorities, classes), p| (priorities | 1 << p, classes | 1 << self.class_of[p]));
            left &= !priorities;
            let packet = self.fabric.packets_mut().pause(Pause { classes, quanta });
            self.fabric.handle_packet(now, port as u32, &packet);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Leaving<'_>> {
        self.fabric.handle_timeout(now);
        let delivery = self.fabric.poll_transmit()?;
        if O::LISTENS {
            let (host, slot) = (delivery.host, delivery.packet.slot);
            self.fabric.observer_mut().on_delivered(now, host, slot, now.since(delivery.at));
        }
        let frames = self.fabric.packets_mut();
        let frame = frames.take(delivery.packet.slot)?;
        frames.reuse(std::mem::replace(&mut self.lent, frame));
        Some(Leaving { port: delivery.host as usize, frame: &self.lent })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.fabric.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.fabric.handle_timeout(now);
    }

    fn sample(&mut self, now: Instant, rows: &mut Vec<PortRow>) {
        self.fabric.sample(now, rows);
    }

    fn visit_counts(&self, each: &mut dyn FnMut(&str, &'static str, u64)) {
        each("", "refused", self.refused);
        each("", "forged", self.forged);
        each("", "marks", self.fabric.marks());
        for kind in PacketKind::ALL {
            for reason in DropReason::ALL {
                let count = self.fabric.drops()[kind].by_reason[reason as usize];
                if count > 0 {
                    each(kind.name(), reason.name(), count);
                }
            }
        }
        let switches = self.fabric.switches();
        for (at, name) in (0..).zip(&self.names) {
            let (port, extra) = (&switches.egress[at], &switches.extras[at]);
            let peak = switches.lines_of(at).iter().map(|line| line.peak).sum();
            let paused = extra.paused_time(switches.now).as_ps() / 1_000_000;
            for (what, count) in [
                ("frames", port.frames),
                ("bytes", port.bytes),
                ("peak_bytes", peak),
                ("drops", extra.drops),
                ("trims", extra.trims),
                ("pauses", extra.pauses_sent),
                ("paused_us", paused),
            ] {
                each(name, what, count);
            }
        }
        netrt::visit_counts(switches, &self.names, each);
    }
}
