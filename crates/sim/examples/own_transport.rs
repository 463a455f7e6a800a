//! Runs an incast over a transport that the library does not have, and over IRN: a fixed window per message, an
//! acknowledgement per packet, and a timeout after which everything in flight is sent again.
//!
//! ```text
//! cargo run --release -p selvedge-sim --example own_transport
//! ```

use std::error::Error;

use selvedge_sim::Simulation;
use selvedge_sim::topology::{FatTree, LinkConfig};
use selvedge_transport::endpoint::own::{Config, OwnEndpoint, OwnTransport};
use selvedge_transport::endpoint::{
    Alarm, Closed, Completion, Context, Endpoint, EndpointParams, Expected, Frames, Handled, Message, Received,
    Standing,
};
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::{Fabric, HoldReason, Limits};
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber, Rate};
use selvedge_wire::{Control, Label, Packet, Repr};

/// Kind of the only control packets: an acknowledgement of all packets before a number.
const ACK: Label = Label::new("ACK");

/// A window of packets for each message.
#[derive(Debug)]
struct FixedWindow {
    packets: u64,
}

impl OwnTransport for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed-window"
    }
    fn endpoint(&self, fabric: &Fabric) -> Box<dyn OwnEndpoint> {
        let timeout = self.longest_timeout(fabric);
        Box::new(Host { window: self.packets, timeout, senders: Vec::new(), receivers: Vec::new() })
    }
    fn longest_timeout(&self, fabric: &Fabric) -> Duration {
        fabric.congested_rtt * 2
    }
}

/// All messages of one host. Entries are never used again.
#[derive(Debug)]
struct Host {
    window: u64,
    timeout: Duration,
    senders: Vec<Option<Sending>>,
    receivers: Vec<Option<Receiving>>,
}

#[derive(Debug)]
struct Sending {
    message: Message,
    qp: QpNumber,
    packets: u64,
    /// Packets that are acknowledged, that were sent since the last timeout, and that were ever sent.
    acked: u64,
    next: u64,
    sent: u64,
    /// Whether the message waits for its turn at the link.
    queued: bool,
    busy: Instant,
    alarm: Alarm,
    timeouts: u64,
}

#[derive(Debug)]
struct Receiving {
    context: u32,
    packets: u64,
    /// Packets that have arrived in order; others are not kept.
    count: u64,
    duplicates: u32,
}

impl Sending {
    fn is_ready(&self, window: u64) -> bool {
        self.next < self.packets && self.next < self.acked + window
    }
}

impl Host {
    fn sending(&self, entry: u32, qp: QpNumber) -> Option<&Sending> {
        self.senders.get(entry as usize)?.as_ref().filter(|sending| sending.qp == qp)
    }

    /// Gives a message its turn if it can send, and sets its deadline.
    fn refresh(&mut self, cx: &mut Context<'_, '_>, entry: u32) {
        let Some(Some(sending)) = self.senders.get_mut(entry as usize) else { return };
        if !sending.queued && sending.is_ready(self.window) {
            sending.queued = true;
            cx.ready(entry);
        }
        let deadline = (sending.acked < sending.next).then(|| sending.busy + self.timeout);
        sending.alarm.set(cx, entry, deadline);
    }
}

impl Endpoint for Host {
    type Params = EndpointParams;

    fn open_sender(&mut self, cx: &mut Context<'_, '_>, qp: QpNumber, message: &Message) -> u32 {
        self.senders.push(Some(Sending {
            message: *message,
            qp,
            packets: cx.frames.packets(message.size),
            acked: 0,
            next: 0,
            sent: 0,
            queued: false,
            busy: cx.now(),
            alarm: Alarm::default(),
            timeouts: 0,
        }));
        let entry = self.senders.len() as u32 - 1;
        self.refresh(cx, entry);
        entry
    }

    fn open_receiver(
        &mut self,
        cx: &mut Context<'_, '_>,
        _src: HostId,
        _qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32 {
        let packets = cx.frames.packets(size);
        self.receivers.push(Some(Receiving { context, packets, count: 0, duplicates: 0 }));
        self.receivers.len() as u32 - 1
    }

    fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32> {
        self.sending(entry, qp)?;
        self.senders[entry as usize].take().map(|sending| sending.message.context)
    }

    fn close_receiver(&mut self, entry: u32) -> Option<Closed> {
        let receiving = self.receivers.get_mut(entry as usize)?.take()?;
        Some(Closed { context: receiving.context, duplicates: receiving.duplicates })
    }

    fn handle_packet(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, entry: u32) -> Handled {
        match &packet.repr {
            Repr::Data(data) => {
                let Some(Some(receiving)) = self.receivers.get_mut(entry as usize) else { return Handled::Unknown };
                cx.port.stats.data_received += 1;
                let index = u64::from(data.psn.get());
                let is_next = index == receiving.count;
                if is_next {
                    receiving.count += 1;
                    cx.port.stats.goodput += u64::from(data.payload);
                } else if index < receiving.count {
                    receiving.duplicates += 1;
                    cx.port.stats.duplicates += 1;
                }
                let (count, packets) = (receiving.count, receiving.packets);
                let (context, duplicates) = (receiving.context, receiving.duplicates);
                let ack = Control { label: ACK, to_receiver: false, words: [count as u32, 0, 0] };
                cx.echo(packet, Repr::Control(ack));
                if is_next && count == packets {
                    let (src, qp) = (packet.src, packet.qp);
                    return Handled::Completed(Completion::Received { src, qp, context, duplicates });
                }
                Handled::Taken
            }
            Repr::Control(control) if control.label == ACK => {
                if self.sending(entry, packet.qp).is_none() {
                    return Handled::Unknown;
                }
                let Some(Some(sending)) = self.senders.get_mut(entry as usize) else { return Handled::Unknown };
                cx.port.stats.acks_received += 1;
                sending.busy = cx.now();
                sending.acked = sending.acked.max(u64::from(control.words[0]));
                sending.next = sending.next.max(sending.acked);
                if sending.acked == sending.packets
                    && let Some(context) = self.close_sender(entry, packet.qp)
                {
                    return Handled::Completed(Completion::Sent { qp: packet.qp, context });
                }
                self.refresh(cx, entry);
                Handled::Taken
            }
            _ => Handled::Unknown,
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, entry: u32, packet: &mut Packet) -> bool {
        let Some(Some(sending)) = self.senders.get_mut(entry as usize) else { return false };
        sending.queued = false;
        if !sending.is_ready(self.window) {
            return false;
        }
        let index = sending.next;
        let retransmission = index < sending.sent;
        *packet = cx.data(entry, &sending.message, sending.qp, index, retransmission);
        sending.next += 1;
        sending.sent = sending.sent.max(sending.next);
        sending.busy = cx.now();
        self.refresh(cx, entry);
        true
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>, entry: u32, at: Instant) {
        let Some(Some(sending)) = self.senders.get_mut(entry as usize) else { return };
        if sending.alarm.take(at) && cx.now() >= sending.busy + self.timeout {
            (sending.next, sending.busy) = (sending.acked, cx.now());
            sending.timeouts += 1;
            cx.port.stats.timeouts += 1;
        }
        self.refresh(cx, entry);
    }

    fn class(&self, entry: u32, _frames: &Frames) -> Option<u8> {
        Some(self.senders.get(entry as usize)?.as_ref()?.message.class)
    }

    fn standing(&self, entry: u32, qp: QpNumber, _now: Instant) -> Option<Standing> {
        let sending = self.sending(entry, qp)?;
        let hold = match () {
            () if sending.is_ready(self.window) => HoldReason::Link,
            () if sending.sent < sending.packets => HoldReason::Window,
            () => HoldReason::Acks,
        };
        let (unsent, timeouts) = (sending.packets - sending.sent, sending.timeouts);
        Some(Standing { hold, sent: Some(sending.sent), unsent, has_lost: false, timeouts, resent: 0 })
    }

    fn received(&self, entry: u32) -> Option<Received> {
        let receiving = self.receivers.get(entry as usize)?.as_ref()?;
        Some(Received {
            context: receiving.context,
            count: None,
            missing: receiving.packets - receiving.count,
            next: Expected::Any,
        })
    }

    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits> {
        let sending = self.sending(entry, qp)?;
        Some(Limits { window: Bytes::MAX, rate: Rate::MAX, in_flight: sending.next - sending.acked })
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let own: &'static FixedWindow = Box::leak(Box::new(FixedWindow { packets: 4 }));
    let link = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(1) };
    let incast = || {
        let incast = Simulation::builder(FatTree { k: 4, link });
        (1..16).fold(incast, |all, src| all.flow(HostId(src), HostId(0), Bytes::from_kb(500), Duration::ZERO))
    };
    let runs =
        [("fixed-window", incast().messages(Config::new(own))), ("irn", incast().recovery(IrnConfig::default()))];
    for (name, simulation) in runs {
        let outcome = simulation.build()?.run()?;
        let slowest = outcome.completion_times().max().ok_or("no flow finished")?;
        let (drops, resent) = (outcome.totals.data_drops.total(), outcome.totals.retransmissions);
        println!("{name}: slowest {slowest}, {drops} drops, {resent} packets sent again");
    }
    Ok(())
}
