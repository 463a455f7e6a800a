//! EQDS: tunnels to and from other hosts, in place of queue pairs.
//!
//! Design notes.
//! 1. *Native messages.* A flow is a message of a transport that uses EQDS itself (section 6 of the paper). All
//!    messages to one host share one tunnel, hence one window of credit. They take turns, packet by packet, or are sent
//!    in order ([`Messages`](selvedge_transport::eqds::Messages)).
//! 2. *Entries.* Messages are senders and receivers; turns at the link, deadlines and packets name tunnels.
//! 3. *One pacer* for all tunnels that end here. Its pulls leave on time or behind other control packets.
//!
//! Tunnels that carry packets of other stacks are in [`crate::eqif`].

mod receiving;
mod sending;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_prefetch::PrefetchRange;
use selvedge_transport::endpoint::{
    Closed, Completion, Context, Endpoint, Expected, Frames, Handled, Message, Received, Standing,
};
use selvedge_transport::eqds::{EqdsParams, Pacer};
use selvedge_transport::places::Places;
use selvedge_transport::table::Table;
use selvedge_transport::{HoldReason, Limits};
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber, Rate};
use selvedge_wire::{Packet, Repr};

use crate::nic::{Nic, NicParams};
use crate::slot::TUNNELS;

pub(crate) use receiving::{Arrival, End, Origin, Outward, control_packet, name, teardown};
use receiving::{Arriving, Inbound};
use sending::{Outbound, Outgoing};

/// Queue pair number under which tunnels are stored.
const TUNNEL: QpNumber = QpNumber(0);
/// Entry of the first tunnel that ends here, in deadlines. Tunnels that begin here have the entries from zero.
const ENDS: u32 = 1 << 27;

/// All tunnels for native messages of one NIC.
#[derive(Debug)]
pub(crate) struct Tunnels {
    outbound: Vec<Outbound>,
    by_destination: Table<(HostId, QpNumber)>,
    inbound: Vec<Inbound>,
    by_source: Table<(HostId, QpNumber)>,
    /// Messages being sent. `arriving` holds those being received.
    messages: Places<Outgoing>,
    arriving: Places<Arriving>,
    /// Pacer of credit, for all tunnels that end here; `None` before the first.
    pub(crate) pacer: Option<Pacer>,
    /// Minimum time between two pulls that the host's own link permits.
    least_interval: Duration,
    /// Completions that are not yet reported.
    pub(crate) completions: VecDeque<Completion>,
}

impl Default for Tunnels {
    fn default() -> Self {
        Self {
            outbound: Vec::new(),
            by_destination: Table::new(),
            inbound: Vec::new(),
            by_source: Table::new(),
            messages: Places::default(),
            arriving: Places::default(),
            pacer: None,
            least_interval: Duration::ZERO,
            completions: VecDeque::new(),
        }
    }
}

impl Tunnels {
    /// Returns all tunnel state, see [`Nic::state`].
    #[inline]
    pub(crate) fn state(&self) -> [PrefetchRange; 3] {
        [PrefetchRange::of(&self.outbound), PrefetchRange::of(&self.inbound), self.by_source.state()]
    }

    /// Returns the tunnel state that handling `packet` will touch first, see [`Nic::state_of`].
    pub(crate) fn state_of(&self, packet: &Packet) -> PrefetchRange {
        match packet.repr {
            Repr::EqdsData(_) => self.by_source.state_of((packet.src, TUNNEL)),
            _ => {
                let tunnel = TUNNELS.place(packet.slot) as usize;
                PrefetchRange::of_entry(&self.outbound, tunnel, size_of::<Outbound>())
            }
        }
    }

    /// Returns the pacer, which is created when the first tunnel ends here.
    #[inline]
    pub(crate) fn pacer(&mut self, eqds: &EqdsParams) -> &mut Pacer {
        let least = self.least_interval;
        self.pacer.get_or_insert_with(|| {
            let interval = eqds.pull_interval.max(least);
            Pacer::new(eqds.pulls(interval), eqds.policy)
        })
    }

    fn message(&self, entry: u32, qp: QpNumber) -> Option<&Outgoing> {
        self.messages.get(entry).filter(|message| message.qp == qp)
    }
}

impl Endpoint for Tunnels {
    type Params = EqdsParams;

    #[cold]
    fn open_sender(&mut self, cx: &mut Context<'_, '_, EqdsParams>, qp: QpNumber, message: &Message) -> u32 {
        self.open(cx, qp, message)
    }

    #[cold]
    fn open_receiver(
        &mut self,
        cx: &mut Context<'_, '_, EqdsParams>,
        src: HostId,
        _qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32 {
        self.expect(src, cx.frames.packets(size), context)
    }

    /// Has no effect: the tunnel sends the whole message.
    fn close_sender(&mut self, _entry: u32, _qp: QpNumber) -> Option<u32> {
        None
    }

    fn close_receiver(&mut self, entry: u32) -> Option<Closed> {
        self.close_arriving(entry)
    }

    fn handle_packet(&mut self, cx: &mut Context<'_, '_, EqdsParams>, packet: &Packet, entry: u32) -> Handled {
        match &packet.repr {
            Repr::EqdsData(data) => self.handle_data(cx, packet, data),
            Repr::EqdsControl(control) => self.handle_control(cx, packet, control, entry),
            _ => Handled::Unknown,
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_, EqdsParams>, entry: u32, packet: &mut Packet) -> bool {
        self.transmit(cx, entry, packet)
    }

    #[inline(never)]
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_, EqdsParams>, entry: u32, at: Instant) {
        match entry.checked_sub(ENDS) {
            Some(tunnel) => self.on_inbound_deadline(cx, at, tunnel),
            None => self.on_outbound_deadline(cx, at, entry),
        }
    }

    fn class(&self, entry: u32, _frames: &Frames) -> Option<u8> {
        self.outbound.get(entry as usize)?.first(&self.messages).map(|message| message.class)
    }

    #[cold]
    fn standing(&self, entry: u32, qp: QpNumber, _now: Instant) -> Option<Standing> {
        let message = self.message(entry, qp)?;
        let state = &self.outbound[message.tunnel as usize];
        let hold = match () {
            () if state.queued => HoldReason::Link,
            () if state.sender.demand() > 0 => HoldReason::Window,
            () => HoldReason::Acks,
        };
        let (unsent, has_lost) = (u64::from(message.packets - message.next), state.sender.has_lost());
        Some(Standing { hold, sent: None, unsent, has_lost, timeouts: 0, resent: 0 })
    }

    #[cold]
    fn received(&self, entry: u32) -> Option<Received> {
        let Arriving { context, pieces, .. } = self.arriving.get(entry)?;
        Some(Received { context: *context, count: None, missing: pieces.missing(), next: Expected::Any })
    }

    #[cold]
    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits> {
        let message = self.message(entry, qp)?;
        let sender = &self.outbound[message.tunnel as usize].sender;
        Some(Limits {
            window: Bytes::new(sender.credit().into()),
            rate: Rate::MAX,
            in_flight: u64::from(message.missing - (message.packets - message.next)),
        })
    }
}

impl Nic {
    /// Sets the rate of the host's link: receivers grant no more credit than their own links carry (EQDS). Must be
    /// called before anything is sent.
    pub fn set_link_rate(&mut self, params: &NicParams, rate: Rate) {
        if let Some(eqds) = &params.eqds {
            let frame = u64::from(eqds.quantum) + u64::from(params.frames.gap);
            self.tunnels.least_interval = rate.time_for(Bytes::new(frame));
        }
    }

    /// Returns the next completed message; one packet may complete several.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.tunnels.completions.pop_front()
    }
}
