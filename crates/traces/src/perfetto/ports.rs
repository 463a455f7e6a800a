//! Tracks of ports.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};

use selvedge_sim::record::{Chosen, Focus};
use selvedge_telemetry::DropReason;
use selvedge_units::{Bytes, Duration, Instant, PortId};

use super::file::{Arrow, Detail, Track, TrackKind};
use super::{Drawn, Rows};

/// Tracks of the ports with events, and the pauses of all ports.
pub(crate) struct Ports {
    /// Selected ports, all of whose events are shown.
    watched: Chosen<PortId>,
    shown: BTreeMap<PortId, Shown>,
    /// Paused ports: begin of the pause, and the frame that caused it.
    pauses: BTreeMap<PortId, Pause>,
    /// Last pause frame that reached each port.
    frames: BTreeMap<PortId, u64>,
}

/// The tracks of a port.
struct Shown {
    packets: Track,
    incoming: Option<Track>,
    paused: Option<Track>,
    queues: BTreeMap<u8, Queue>,
    filled: Instant,
}

struct Queue {
    track: Track,
    depth: Bytes,
}

struct Pause {
    since: Instant,
    classes: u8,
    frame: Option<u64>,
}

/// A packet at a port, and the time.
#[derive(Clone, Copy)]
pub(crate) struct PortEvent<'a> {
    pub(crate) at: Instant,
    pub(crate) port: PortId,
    pub(crate) packet: &'a dyn Drawn,
}

/// Order of the tracks below the port.
mod rank {
    pub(super) const INCOMING: u32 = 1;
    pub(super) const PAUSED: u32 = 2;
    pub(super) const QUEUE: u32 = 3;
}

impl Ports {
    pub(super) fn new(focus: &Focus) -> Self {
        Self { watched: focus.ports.clone(), shown: BTreeMap::new(), pauses: BTreeMap::new(), frames: BTreeMap::new() }
    }

    pub(crate) fn on_sent(
        &mut self,
        rows: &mut Rows<impl Write>,
        place: PortEvent<'_>,
        flow: &str,
        serialisation: Duration,
        waiting: Bytes,
    ) -> io::Result<()> {
        let PortEvent { at, port, packet } = place;
        let track = self.show(rows, port)?.packets;
        let mut details = vec![Detail::Number("frame bytes", u64::from(packet.frame()))];
        if !flow.is_empty() {
            details.push(Detail::Text("flow", flow));
        }
        if packet.is_marked() {
            details.push(Detail::Text("ECN", "congestion experienced"));
        }
        rows.file.begin_slice(track, at, &packet.title(), Some(Arrow::Through(packet.identity(port))), &details)?;
        rows.file.end_slice(track, at + serialisation)?;
        if self.shown.get(&port).is_some_and(|shown| shown.queues.contains_key(&packet.class())) {
            self.set_queue(rows, at, port, packet.class(), waiting)?;
        }
        Ok(())
    }

    /// Draws that a packet, which may be `followed`, waits behind `ahead` bytes.
    pub(crate) fn on_queued(
        &mut self,
        rows: &mut Rows<impl Write>,
        place: PortEvent<'_>,
        ahead: Bytes,
        followed: bool,
    ) -> io::Result<()> {
        let PortEvent { at, port, packet } = place;
        // Packets from a selected port are reported here, too, but not when they leave.
        if !followed && !self.watched.contains(&port) {
            return Ok(());
        }
        self.show(rows, port)?;
        self.set_queue(rows, at, port, packet.class(), ahead + Bytes::new(u64::from(packet.frame())))
    }

    /// Draws that a packet, which may be `followed`, is trimmed to its headers; `waiting` bytes of its `class` remain.
    pub(crate) fn on_trimmed(
        &mut self,
        rows: &mut Rows<impl Write>,
        place: PortEvent<'_>,
        class: u8,
        waiting: Bytes,
        followed: bool,
    ) -> io::Result<()> {
        let PortEvent { at, port, packet } = place;
        if !followed && !self.watched.contains(&port) {
            return Ok(());
        }
        let track = self.show(rows, port)?.packets;
        let title = format!("{} trimmed", packet.title());
        rows.file.instant(track, at, &title, Some(Arrow::Through(packet.identity(port))), &[])?;
        self.set_queue(rows, at, port, class, waiting)
    }

    pub(crate) fn on_arrived(&mut self, rows: &mut Rows<impl Write>, place: PortEvent<'_>) -> io::Result<()> {
        let PortEvent { at, port, packet } = place;
        let id = packet.identity(rows.names.info(port).peer_id);
        if packet.is_pause() {
            self.frames.insert(port, id);
        }
        // If all ports are shown, incoming packets are shown where they are sent.
        if self.watched == Chosen::All || !self.watched.contains(&port) {
            return Ok(());
        }
        let shown = self.show(rows, port)?;
        let track = child(rows, &mut shown.incoming, shown.packets, "in", rank::INCOMING)?;
        rows.file.instant(track, at, &packet.title(), Some(Arrow::Through(id)), &[])
    }

    pub(crate) fn on_dropped(
        &mut self,
        rows: &mut Rows<impl Write>,
        place: PortEvent<'_>,
        reason: DropReason,
    ) -> io::Result<()> {
        let PortEvent { at, port, packet } = place;
        let track = self.show(rows, port)?.packets;
        let arrow = Arrow::End(packet.identity(rows.names.info(port).peer_id));
        let title = format!("{} dropped", packet.title());
        rows.file.instant(track, at, &title, Some(arrow), &[Detail::Text("reason", reason.name())])
    }

    pub(crate) fn on_paused(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        port: PortId,
        classes: u8,
    ) -> io::Result<()> {
        if self.watched.contains(&port) {
            self.show(rows, port)?;
        }
        self.end_pause(rows, at, port)?;
        if classes != 0 {
            self.pauses.insert(port, Pause { since: at, classes, frame: self.frames.remove(&port) });
            self.begin_pause(rows, port)?;
        }
        Ok(())
    }

    pub(crate) fn on_filled(&mut self, rows: &mut Rows<impl Write>, at: Instant, port: PortId) -> io::Result<()> {
        match self.shown.get_mut(&port) {
            // One event per output; one mark for all of them.
            Some(shown) if shown.filled != at => {
                shown.filled = at;
                rows.file.instant(shown.packets, at, "input full", None, &[])
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn on_link(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        port: PortId,
        up: bool,
    ) -> io::Result<()> {
        self.end_pause(rows, at, port)?;
        let track = self.show(rows, port)?.packets;
        let shown = self.shown.get(&port).into_iter();
        let classes: Vec<u8> = shown.flat_map(|shown| shown.queues.keys().copied()).collect();
        for class in classes {
            self.set_queue(rows, at, port, class, Bytes::ZERO)?;
        }
        rows.file.instant(track, at, if up { "link up" } else { "link down" }, None, &[])
    }

    /// Ends everything that has not ended.
    pub(super) fn finish(&mut self, rows: &mut Rows<impl Write>, end: Instant) -> io::Result<()> {
        let ports: Vec<PortId> = self.pauses.keys().copied().collect();
        ports.into_iter().try_for_each(|port| self.end_pause(rows, end, port))
    }

    /// Returns the tracks of a port, which are created when first needed.
    fn show(&mut self, rows: &mut Rows<impl Write>, port: PortId) -> io::Result<&mut Shown> {
        if let Entry::Vacant(place) = self.shown.entry(port) {
            let packets = rows.port(port)?;
            place.insert(Shown {
                packets,
                incoming: None,
                paused: None,
                queues: BTreeMap::new(),
                filled: Instant::NEVER,
            });
            self.begin_pause(rows, port)?;
        }
        Ok(self.shown.get_mut(&port).expect("the entry has just been inserted"))
    }

    /// Draws the pause of a port, if it is paused and shown.
    fn begin_pause(&mut self, rows: &mut Rows<impl Write>, port: PortId) -> io::Result<()> {
        let (Some(shown), Some(pause)) = (self.shown.get_mut(&port), self.pauses.get(&port)) else { return Ok(()) };
        let track = child(rows, &mut shown.paused, shown.packets, "paused", rank::PAUSED)?;
        let classes = Detail::Number("classes", u64::from(pause.classes));
        rows.file.begin_slice(track, pause.since, "paused", pause.frame.map(Arrow::End), &[classes])
    }

    fn end_pause(&mut self, rows: &mut Rows<impl Write>, at: Instant, port: PortId) -> io::Result<()> {
        if self.pauses.remove(&port).is_some()
            && let Some(track) = self.shown.get(&port).and_then(|shown| shown.paused)
        {
            rows.file.end_slice(track, at)?;
        }
        Ok(())
    }

    fn set_queue(
        &mut self,
        rows: &mut Rows<impl Write>,
        at: Instant,
        port: PortId,
        class: u8,
        depth: Bytes,
    ) -> io::Result<()> {
        let Some(shown) = self.shown.get_mut(&port) else { return Ok(()) };
        if !shown.queues.contains_key(&class) {
            let name = if class == 0 { "queue".to_owned() } else { format!("queue of class {class}") };
            let track =
                rows.file.track(&name, Some(shown.packets), rank::QUEUE + u32::from(class), TrackKind::Bytes)?;
            shown.queues.insert(class, Queue { track, depth: Bytes::ZERO });
        }
        let queue = shown.queues.get_mut(&class).expect("the entry has just been inserted");
        if queue.depth != depth {
            queue.depth = depth;
            rows.file.count(queue.track, at, depth.get())?;
        }
        Ok(())
    }
}

/// Returns a track below a port's, which is created when first needed.
fn child(
    rows: &mut Rows<impl Write>,
    place: &mut Option<Track>,
    parent: Track,
    name: &str,
    rank: u32,
) -> io::Result<Track> {
    if let Some(track) = *place {
        return Ok(track);
    }
    let track = rows.file.track(name, Some(parent), rank, TrackKind::Events)?;
    *place = Some(track);
    Ok(track)
}
