//! Recorder of what happens to each packet in a fabric.
//!
//! The thread that carries frames writes events into batches of fixed size; another thread, which the caller provides,
//! takes them. At most [`QUEUE`] batches wait: where events come faster than they are taken, the recording stops. A
//! recording with gaps would lead to wrong explanations.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use selvedge_switch::descriptor::{Descriptor, Slot};
use selvedge_switch::{FabricObserver, Note, Switches};
use selvedge_telemetry::{DropReason, FabricEvent, FabricStep, MadePacket, RecordingStop};
use selvedge_units::{Bytes, Duration, Instant, PortId};
use selvedge_wire::netrt::Message;

use super::frames::{Content, Frames};

/// Events of a batch.
const EVENTS: usize = 4_096;
/// Captured bytes after which a batch is complete.
const CAPTURED: usize = 256 << 10;
/// Batches that wait for the thread that takes them.
const QUEUE: usize = 64;

/// Events of a fabric, in the order of time.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events.
    pub events: Vec<FabricEvent>,
    /// First bytes of the frames that entered ([`FabricStep::Entered`]), one after the other.
    pub captured: Vec<u8>,
}

/// Observer of a fabric that records all its events.
#[derive(Debug)]
pub struct Recorder {
    snaplen: usize,
    to: SyncSender<Batch>,
    batch: Batch,
    /// Number of packets so far.
    count: u64,
    /// Packet of each slot.
    tracked: Vec<Tracked>,
    /// Number of the packet of which NetRT's switches keep each copy.
    kept: Vec<u64>,
    /// Stop of the recording.
    stopped: Option<Stopped>,
}

/// Packet of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Tracked {
    id: u64,
    class: u8,
    /// Original, for a copy; 0: the packet is none.
    of: u64,
    /// Whether no event has told of the packet, which a switch has made.
    is_new: bool,
    /// Whether the packet was marked, which no event has told.
    is_marked: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stopped {
    /// Events came too fast; the last event, which waits for room.
    Slow(FabricEvent),
    /// The receiver of the batches has gone.
    Gone,
}

impl Recorder {
    /// Creates a recorder that keeps the first `snaplen` bytes of each frame, and returns it with the receiver of the
    /// batches. The last batch comes when the recorder is dropped.
    pub fn new(snaplen: usize) -> (Self, Receiver<Batch>) {
        let (to, batches) = sync_channel(QUEUE);
        let (tracked, kept) = (Vec::new(), Vec::new());
        (Self { snaplen, to, batch: Batch::default(), count: 0, tracked, kept, stopped: None }, batches)
    }

    /// Records that a frame is handed to its host, `late` after it has arrived there.
    pub(super) fn record_delivery(&mut self, now: Instant, host: u32, slot: Slot, late: Duration) {
        // Ports of hosts are numbered like the hosts.
        let packet = self.tracked(slot).id;
        self.push(FabricEvent { at: now, packet, port: PortId(host), what: FabricStep::Delivered { late } }, &[]);
    }

    fn tracked(&mut self, slot: Slot) -> &mut Tracked {
        let slot = slot as usize;
        if slot >= self.tracked.len() {
            self.tracked.resize(slot + 1, Tracked::default());
        }
        &mut self.tracked[slot]
    }

    /// Begins to track a packet.
    fn begin(&mut self, packet: &Descriptor, of: u64, is_new: bool) -> u64 {
        self.count += 1;
        let id = self.count;
        *self.tracked(packet.slot) = Tracked { id, class: packet.class, of, is_new, is_marked: false };
        id
    }

    /// Returns the packet in `slot`, and tells of one that a switch has made.
    fn told(&mut self, packets: &Frames, at: Instant, port: PortId, slot: Slot) -> Tracked {
        let tracked = *self.tracked(slot);
        if tracked.is_new {
            self.tracked(slot).is_new = false;
            let (frame, made) = match packets.content(slot) {
                Content::Frame { frame, .. } => (frame, MadePacket::Copy { of: tracked.of }),
                Content::Pause(pause) => {
                    (super::frames::SHORTEST, MadePacket::Pause { classes: pause.classes, quanta: pause.quanta })
                }
                Content::Message(message) => {
                    let (is_request, psn) = match message {
                        Message::Request(request) => (true, request.expected()),
                        Message::Unfulfilled(psn) => (false, psn),
                    };
                    let frame = (selvedge_wire::Header::ROCE.get() as usize + message.length()) as u16;
                    (frame, MadePacket::NetRt { is_request, psn: psn.get() })
                }
                Content::Nothing => (super::frames::SHORTEST, MadePacket::Copy { of: tracked.of }),
            };
            let what = FabricStep::Made { class: tracked.class, frame, made };
            self.push(FabricEvent { at, packet: tracked.id, port, what }, &[]);
        }
        tracked
    }

    /// Records an event, with captured bytes.
    fn push(&mut self, event: FabricEvent, captured: &[u8]) {
        if self.stopped.is_some() {
            return;
        }
        self.batch.events.push(event);
        self.batch.captured.extend_from_slice(captured);
        if self.batch.events.len() >= EVENTS || self.batch.captured.len() >= CAPTURED {
            self.flush(event.at);
        }
    }

    fn flush(&mut self, now: Instant) {
        let next = Batch { events: Vec::with_capacity(EVENTS), captured: Vec::with_capacity(CAPTURED + self.snaplen) };
        match self.to.try_send(std::mem::replace(&mut self.batch, next)) {
            Ok(()) => {}
            Err(TrySendError::Full(batch)) => {
                let at = batch.events.first().map_or(now, |event| event.at);
                let what = FabricStep::Stopped { why: RecordingStop::Slow };
                self.stopped = Some(Stopped::Slow(FabricEvent { at, packet: 0, port: PortId(0), what }));
            }
            Err(TrySendError::Disconnected(_)) => self.stopped = Some(Stopped::Gone),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let last = match self.stopped {
            None => std::mem::take(&mut self.batch),
            Some(Stopped::Slow(event)) => Batch { events: vec![event], captured: Vec::new() },
            Some(Stopped::Gone) => return,
        };
        // A receiver that has gone has told why.
        let _ = self.to.send(last);
    }
}

impl FabricObserver<Frames> for Recorder {
    const LISTENS: bool = true;

    fn on_entered(&mut self, packets: &Frames, switches: &Switches, at: u32, packet: &Descriptor) {
        let (now, port) = (switches.now, switches.extras[at].id);
        if let Content::Frame { to, bytes, frame } = packets.content(packet.slot) {
            let id = self.begin(packet, 0, false);
            // Longer frames do not pass a link.
            let what = FabricStep::Entered { to, class: packet.class, frame, length: bytes.len() as u16 };
            self.push(FabricEvent { at: now, packet: id, port, what }, &bytes[..bytes.len().min(self.snaplen)]);
        } else {
            self.begin(packet, 0, true);
            self.told(packets, now, port, packet.slot);
        }
    }

    fn on_made(&mut self, packet: &Descriptor, copy: Option<u32>) {
        let of = copy.and_then(|copy| self.kept.get(copy as usize)).map_or(0, |of| *of);
        self.begin(packet, of, true);
    }

    fn on_kept(&mut self, slot: Slot, copy: u32) {
        let tracked = *self.tracked(slot);
        let copy = copy as usize;
        if copy >= self.kept.len() {
            self.kept.resize(copy + 1, 0);
        }
        self.kept[copy] = if tracked.of == 0 { tracked.id } else { tracked.of };
    }

    fn on_marked(&mut self, slot: Slot) {
        self.tracked(slot).is_marked = true;
    }

    fn on_class(&mut self, slot: Slot, class: u8) {
        self.tracked(slot).class = class;
    }

    fn on_dropped(&mut self, packets: &Frames, switches: &Switches, at: u32, slot: Slot, reason: DropReason) {
        let (now, port) = (switches.now, switches.extras[at].id);
        let packet = self.told(packets, now, port, slot).id;
        self.push(FabricEvent { at: now, packet, port, what: FabricStep::Dropped { reason } }, &[]);
    }

    fn on_note(&mut self, packets: &Frames, switches: &Switches, note: Note<'_>) {
        let now = switches.now;
        let id_of = |at: u32| switches.extras[at].id;
        let waiting = |at: u32, class: u8| switches.lines[switches.line_of(at, class)].bytes;
        let (port, slot) = match note {
            Note::Sent { at, slot, .. } | Note::Arrived { at, slot } => (id_of(at), Some(slot)),
            Note::Queued { out, slot, .. } => (id_of(out), Some(slot)),
            Note::Trimmed { out, before, .. } => (id_of(out), Some(before.slot)),
            Note::Paused { at } | Note::Link { at, .. } | Note::Filled { at, .. } => (id_of(at), None),
        };
        let Tracked { id, class, is_marked, .. } =
            slot.map_or(Tracked::default(), |slot| self.told(packets, now, port, slot));
        let bytes_of = |slot: Slot| if let Content::Frame { frame, .. } = packets.content(slot) { frame } else { 0 };
        let what = match note {
            Note::Sent { at, serialisation, .. } => {
                FabricStep::Sent { serialisation, waiting: Bytes::new(waiting(at, class)) }
            }
            Note::Arrived { .. } => FabricStep::Arrived,
            Note::Queued { at, out, slot } => {
                let ahead = waiting(out, class).saturating_sub(bytes_of(slot).into());
                FabricStep::Queued { ingress: id_of(at), ahead: Bytes::new(ahead) }
            }
            Note::Trimmed { out, before, .. } => {
                let waiting = Bytes::new(waiting(out, before.class));
                FabricStep::Trimmed { frame: bytes_of(before.slot), waiting }
            }
            Note::Paused { at } => FabricStep::Paused { classes: switches.egress[at].paused },
            Note::Link { up, .. } => FabricStep::Link { up },
            Note::Filled { out, .. } => FabricStep::Filled { output: id_of(out) },
        };
        self.push(FabricEvent { at: now, packet: id, port, what }, &[]);
        if is_marked && let Some(slot) = slot {
            self.tracked(slot).is_marked = false;
            self.push(FabricEvent { at: now, packet: id, port, what: FabricStep::Marked }, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_nobody_takes_stops_and_says_when() {
        let (mut recorder, batches) = Recorder::new(64);
        let time = |event: usize| Instant::from_ps(event as u64);
        for event in 0..(QUEUE + 2) * EVENTS {
            recorder.record_delivery(time(event), 0, 0, Duration::ZERO);
        }
        let taken: Vec<Batch> = batches.try_iter().collect();
        assert_eq!((taken.len(), taken[QUEUE - 1].events.len()), (QUEUE, EVENTS));
        // There is room again, but events are missing: the recording does not go on.
        recorder.record_delivery(time(usize::MAX), 0, 0, Duration::ZERO);
        drop(recorder);
        let last = batches.recv().expect("a batch with the end");
        let what = FabricStep::Stopped { why: RecordingStop::Slow };
        assert_eq!(last.events, [FabricEvent { at: time(QUEUE * EVENTS), packet: 0, port: PortId(0), what }]);
        assert!(batches.recv().is_err());
    }

    #[test]
    fn a_recorder_whose_receiver_has_gone_records_nothing() {
        let (mut recorder, batches) = Recorder::new(64);
        drop(batches);
        for event in 0..3 * EVENTS {
            recorder.record_delivery(Instant::from_ps(event as u64), 0, 0, Duration::ZERO);
        }
        assert!(recorder.batch.events.is_empty());
    }
}
