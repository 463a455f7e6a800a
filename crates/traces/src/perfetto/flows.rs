//! Tracks of flows: at the sender, and at the receiver.

use std::collections::BTreeMap;
use std::io::{self, Write};

use selvedge_sim::record::{Chosen, FlowKey, Focus};
use selvedge_sim::topology::Node;
use selvedge_telemetry::{FlowRow, Trace};
use selvedge_transport::{HoldReason, Limits};
use selvedge_units::{Bytes, HostId, Instant, PortId, Psn, QpNumber, Rate};
use selvedge_wire::{Packet, Repr};

use super::file::{Arrow, Detail, Track, TrackKind};
use super::{Rows, identity, title};

/// A queue pair: the host that sends its data, and its number at that host.
type QueuePair = (HostId, QpNumber);

/// Tracks of the followed flows.
pub(super) struct Flows {
    followed: Chosen<FlowKey>,
    /// Displayed names of all flows that have begun, by queue pair.
    names: BTreeMap<QueuePair, String>,
    senders: BTreeMap<QueuePair, Sender>,
    receivers: BTreeMap<QueuePair, Track>,
    by_key: BTreeMap<FlowKey, QueuePair>,
}

/// The state of a flow at its sender.
struct Sender {
    flow: FlowRow,
    track: Track,
    is_open: bool,
    waits: Track,
    hold: Option<&'static str>,
    recovery: Track,
    is_recovering: bool,
    hears: Track,
    limits: [Limit; 3],
}

/// A number that limits a sender, over time.
#[derive(Clone, Copy)]
struct Limit {
    name: &'static str,
    kind: TrackKind,
    track: Option<Track>,
    value: Option<u64>,
}

impl Flows {
    pub(super) fn new(focus: &Focus) -> Self {
        Self {
            followed: focus.flows.clone(),
            names: BTreeMap::new(),
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
            by_key: BTreeMap::new(),
        }
    }

    /// Returns the name of a packet's flow; empty if it is unknown.
    pub(super) fn name_of(&self, packet: &Packet) -> &str {
        pair_of(packet).and_then(|pair| self.names.get(&pair)).map_or("", String::as_str)
    }

    /// Returns whether the flow of a packet is followed.
    pub(super) fn follows(&self, packet: &Packet) -> bool {
        pair_of(packet).is_some_and(|pair| self.senders.contains_key(&pair))
    }

    pub(super) fn on_started(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        flow: &FlowRow,
        pair: QueuePair,
        queue_pairs: u32,
    ) -> io::Result<()> {
        let key = FlowKey::from(flow);
        let number = if key.workload == 0 { key.id.to_string() } else { format!("{}:{}", key.workload, key.id) };
        let pairs = (0..queue_pairs).map(|n| (pair.0, QpNumber(pair.1.0.wrapping_add(n))));
        self.names.extend(pairs.clone().map(|pair| (pair, number.clone())));
        if !self.followed.contains(&key) {
            return Ok(());
        }
        let name = format!("flow {number}");
        let to = format!("{name} to {}", rows.graph.name(Node::Host(flow.dst)));
        let from = format!("{name} from {}", rows.graph.name(Node::Host(flow.src)));
        let track = rows.below(Node::Host(pair.0), &to)?;
        let receiver = rows.below(Node::Host(flow.dst), &from)?;
        self.receivers.extend(pairs.map(|pair| (pair, receiver)));
        let details = [
            Detail::Number("bytes", flow.size.get()),
            Detail::Number("packets", flow.packets),
            Detail::Number("queue pair", u64::from(pair.1.0)),
        ];
        rows.file.begin_slice(track, at, &name, None, &details)?;
        let mut below = |rank, name| rows.file.track(name, Some(track), rank, TrackKind::Events);
        let sender = Sender {
            flow: *flow,
            track,
            is_open: true,
            waits: below(1, "waits for")?,
            hold: None,
            recovery: below(2, "recovery")?,
            is_recovering: false,
            hears: below(3, "hears")?,
            limits: [
                Limit { name: "window", kind: TrackKind::Bytes, track: None, value: None },
                Limit { name: "rate", kind: TrackKind::Count("Mb/s"), track: None, value: None },
                Limit { name: "in flight", kind: TrackKind::Count("packets"), track: None, value: None },
            ],
        };
        self.senders.insert(pair, sender);
        self.by_key.insert(key, pair);
        Ok(())
    }

    pub(super) fn on_finished(&mut self, rows: &mut Rows<impl Write>, at: Instant, flow: &FlowRow) -> io::Result<()> {
        let pair = self.by_key.get(&FlowKey::from(flow));
        let Some((pair, sender)) = pair.and_then(|pair| Some((pair, self.senders.get_mut(pair)?))) else {
            return Ok(());
        };
        rows.file.instant(self.receivers[pair], at, "complete", None, &[])?;
        sender.close(rows, at)
    }

    /// Draws the arrival of a packet at a host.
    pub(super) fn on_arrived(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        host: HostId,
        packet: &Packet,
    ) -> io::Result<()> {
        let Some(pair) = pair_of(packet) else { return Ok(()) };
        let Some(sender) = self.senders.get_mut(&pair) else { return Ok(()) };
        let track = if pair.0 == host { sender.hears } else { self.receivers[&pair] };
        let arrow = Arrow::End(identity(packet, PortId(host.0)));
        rows.file.instant(track, at, &title(packet), Some(arrow), &[])?;
        match packet.repr {
            Repr::Ack(ack) if ack.expected == Psn::new(sender.flow.packets as u32) => sender.rest(rows, at),
            _ => Ok(()),
        }
    }

    pub(super) fn on_engine(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        pair: QueuePair,
        trace: &Trace,
    ) -> io::Result<()> {
        let Some(sender) = self.senders.get_mut(&pair) else { return Ok(()) };
        let name = match *trace {
            Trace::RecoveryEntered { by_timeout, .. } => {
                return sender.begin_recovery(rows, at, if by_timeout { "timeout" } else { "NACK" });
            }
            Trace::RecoveryLeft { .. } => return sender.end_recovery(rows, at),
            Trace::Retransmitted { seq } => format!("again {}", seq.index()),
            Trace::TimedOut { acked, .. } => format!("timeout of {}", acked.index()),
            Trace::TimeoutExtended { .. } => "timeout extended".to_owned(),
            Trace::Searched => return Ok(()),
            Trace::AckIgnored { .. } => "meaningless ACK".to_owned(),
            Trace::OutOfOrder { expected, seq } => {
                let name = format!("{} before {}", seq.index(), expected.index());
                return rows.file.instant(self.receivers[&pair], at, &name, None, &[]);
            }
        };
        rows.file.instant(sender.recovery, at, &name, None, &[])
    }

    pub(super) fn on_held(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        pair: QueuePair,
        hold: HoldReason,
    ) -> io::Result<()> {
        let Some(sender) = self.senders.get_mut(&pair) else { return Ok(()) };
        let name = match hold {
            HoldReason::Link => "link",
            HoldReason::Pacing(_) => "pacing",
            HoldReason::Window => "congestion window",
            HoldReason::Cap => "cap on packets in flight",
            HoldReason::Recovery(_) => "retransmission",
            HoldReason::Acks => "last acknowledgements",
        };
        if sender.hold != Some(name) {
            sender.rest(rows, at)?;
            sender.hold = Some(name);
            rows.file.begin_slice(sender.waits, at, name, None, &[])?;
        }
        Ok(())
    }

    /// Draws a change of a sender's limits.
    pub(super) fn on_limits(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        pair: QueuePair,
        limits: Limits,
    ) -> io::Result<()> {
        let Some(sender) = self.senders.get_mut(&pair) else { return Ok(()) };
        let window = (limits.window < Bytes::MAX).then_some(limits.window.get());
        let rate = (limits.rate < Rate::MAX).then_some(limits.rate.as_bps() / 1_000_000);
        for (limit, value) in sender.limits.iter_mut().zip([window, rate, Some(limits.in_flight)]) {
            limit.set(rows, at, sender.track, value)?;
        }
        Ok(())
    }

    /// Ends everything that has not ended.
    pub(super) fn finish(&mut self, rows: &mut Rows<impl Write>, end: Instant) -> io::Result<()> {
        self.senders.values_mut().try_for_each(|sender| {
            sender.rest(rows, end)?;
            sender.end_recovery(rows, end)?;
            sender.close(rows, end)
        })
    }
}

impl Sender {
    /// Ends the sender's wait, if any.
    fn rest(&mut self, rows: &mut Rows<impl Write>, at: Instant) -> io::Result<()> {
        if self.hold.take().is_some() { rows.file.end_slice(self.waits, at) } else { Ok(()) }
    }

    fn close(&mut self, rows: &mut Rows<impl Write>, at: Instant) -> io::Result<()> {
        if std::mem::take(&mut self.is_open) { rows.file.end_slice(self.track, at) } else { Ok(()) }
    }

    fn begin_recovery(&mut self, rows: &mut Rows<impl Write>, at: Instant, reason: &str) -> io::Result<()> {
        self.end_recovery(rows, at)?;
        self.is_recovering = true;
        rows.file.begin_slice(self.recovery, at, "recovery", None, &[Detail::Text("reason", reason)])
    }

    fn end_recovery(&mut self, rows: &mut Rows<impl Write>, at: Instant) -> io::Result<()> {
        if std::mem::take(&mut self.is_recovering) { rows.file.end_slice(self.recovery, at) } else { Ok(()) }
    }
}

impl Limit {
    fn set(&mut self, rows: &mut Rows<impl Write>, at: Instant, parent: Track, value: Option<u64>) -> io::Result<()> {
        let Some(now) = value.filter(|_| self.value != value) else { return Ok(()) };
        let track = match self.track {
            Some(track) => track,
            None => rows.file.track(self.name, Some(parent), 4, self.kind)?,
        };
        (self.track, self.value) = (Some(track), value);
        rows.file.count(track, at, now)
    }
}

/// Returns the queue pair that a packet belongs to.
fn pair_of(packet: &Packet) -> Option<QueuePair> {
    match packet.repr {
        Repr::Data(_) | Repr::EqdsData(_) => Some((packet.src, packet.qp)),
        Repr::Control(control) if control.to_receiver => Some((packet.src, packet.qp)),
        Repr::Ack(_) | Repr::HoleNack(_) | Repr::Cnp | Repr::Control(_) | Repr::EqdsControl(_) => {
            Some((packet.dst, packet.qp))
        }
        Repr::Tcp(tcp) => Some((if tcp.is_backward() { packet.dst } else { packet.src }, packet.qp)),
        // Packets between switches.
        Repr::Pause(_) | Repr::NetRt(_) => None,
    }
}
