//! The recording of a laboratory: the path of each packet, pauses, and what each port sent when.

use std::collections::BTreeMap;

use selvedge_telemetry::{FabricEvent, FabricStep, MadePacket, PortInfo, RecordingStop};
use selvedge_traces::FrameSummary;
use selvedge_units::{Duration, Instant, PortId};

use super::path::{Hop, PacketPath, PathEnd};
use super::streams::{Place, Streams};

/// Paths of all packets of a laboratory, from the recording of its switches.
#[derive(Debug)]
pub struct RealRecording {
    pub(super) ports: Vec<PortInfo>,
    pub(super) names: Vec<String>,
    pub(super) paths: Vec<PacketPath>,
    pub(super) streams: Streams,
    /// PacketPath of each packet, by the packet's number.
    by_number: BTreeMap<u64, u32>,
    /// By port: times at which the set of paused classes changed, and the set from then on.
    pauses: Vec<Vec<(Instant, u8)>>,
    /// By port: begin and end of each transmission, and its stream; `None` for packets of switches.
    pub(super) busy: Vec<Vec<(Instant, Instant, Option<u32>)>>,
    pub(super) end: Instant,
    pub(super) stopped: Option<RecordingStop>,
}

impl RealRecording {
    /// Creates the recording of a fabric with these ports, and their names.
    pub fn new(ports: Vec<PortInfo>, names: Vec<String>) -> Self {
        let count = ports.len();
        Self {
            ports,
            names,
            paths: Vec::new(),
            streams: Streams::default(),
            by_number: BTreeMap::new(),
            pauses: vec![Vec::new(); count],
            busy: vec![Vec::new(); count],
            end: Instant::ZERO,
            stopped: None,
        }
    }

    /// Adds an event, with the first bytes of a frame that entered. Events come in the order of time.
    pub fn add(&mut self, event: &FabricEvent, captured: &[u8]) {
        let FabricEvent { at, packet: number, port, what } = *event;
        self.end = self.end.max(at);
        match what {
            FabricStep::Entered { to, class, frame, .. } => {
                let summary = FrameSummary::read(captured);
                let place = self.streams.add(self.paths.len() as u32, port, to, &summary);
                self.begin(number, PacketPath::new(at, class, frame, summary.payload, place, None));
            }
            FabricStep::Made { class, frame, made: MadePacket::Copy { of } } => {
                let Some(&original) = self.by_number.get(&of) else { return };
                let first = &self.paths[original as usize];
                let place = Place { stream: first.stream, again: false, is_data: first.is_data };
                let path = PacketPath::new(at, class, frame, first.payload, place, Some(original));
                self.streams.all[path.stream as usize].copies.push(self.paths.len() as u32);
                self.begin(number, path);
            }
            FabricStep::Paused { classes } => self.pauses[port.index()].push((at, classes)),
            FabricStep::Stopped { why } => self.stopped = Some(why),
            FabricStep::Sent { serialisation, .. } => {
                let path = self.by_number.get(&number).map(|&at| &mut self.paths[at as usize]);
                let stream = path.as_ref().map(|path| path.stream);
                self.busy[port.index()].push((at, at + serialisation, stream));
                if let Some(path) = path {
                    path.send(at, port, serialisation);
                }
            }
            _ => {
                if let Some(&path) = self.by_number.get(&number) {
                    self.paths[path as usize].take(event);
                }
            }
        }
    }

    fn begin(&mut self, number: u64, path: PacketPath) {
        self.by_number.insert(number, self.paths.len() as u32);
        self.paths.push(path);
    }

    /// Returns how long packets of `class` at a port were paused between two times.
    pub(super) fn paused(&self, port: PortId, class: u8, from: Instant, to: Instant) -> Duration {
        let changes = &self.pauses[port.index()];
        let first = changes.partition_point(|&(at, _)| at <= from);
        let mut sum = Duration::ZERO;
        let mut since = (first > 0 && changes[first - 1].1 >> class & 1 == 1).then_some(from);
        for &(at, classes) in changes[first..].iter().take_while(|(at, _)| *at < to) {
            let is_paused = classes >> class & 1 == 1;
            if let Some(begin) = since.take() {
                sum += at - begin;
            }
            since = is_paused.then_some(at);
        }
        since.map_or(sum, |begin| sum + (to - begin))
    }

    /// Returns how long a port sent packets for which `which` is true between two times.
    pub(super) fn busy(
        &self,
        port: PortId,
        from: Instant,
        to: Instant,
        which: impl Fn(Option<u32>) -> bool,
    ) -> Duration {
        let times = &self.busy[port.index()];
        let first = times.partition_point(|&(_, end, _)| end <= from);
        let within = times[first..].iter().take_while(|(begin, ..)| *begin < to);
        within.filter(|(.., stream)| which(*stream)).map(|&(begin, end, _)| end.min(to).since(begin.max(from))).sum()
    }
}

impl PacketPath {
    fn new(at: Instant, class: u8, frame: u16, payload: u32, place: Place, copy_of: Option<u32>) -> Self {
        Self {
            stream: place.stream,
            entered: at,
            frame,
            payload,
            class,
            is_data: place.is_data,
            again: place.again,
            copy_of,
            marked: None,
            trimmed: None,
            hops: Vec::new(),
            end: PathEnd::UnderWay,
            reached: at,
            queued: None,
        }
    }

    fn send(&mut self, at: Instant, port: PortId, serialisation: Duration) {
        let ready = self.queued.take().unwrap_or(at);
        // A host's packets wait for its link from the beginning.
        let ready = if self.hops.is_empty() && self.copy_of.is_none() { self.entered } else { ready };
        self.hops.push(Hop { port, from: self.reached, ready, sent: at, serialisation, arrived: None });
    }

    /// Takes an event of a packet under way.
    fn take(&mut self, event: &FabricEvent) {
        let FabricEvent { at, port, what, .. } = *event;
        match what {
            FabricStep::Arrived => {
                self.reached = at;
                if let Some(hop) = self.hops.last_mut() {
                    hop.arrived = Some(at);
                }
            }
            FabricStep::Queued { .. } => self.queued = self.queued.or(Some(at)),
            FabricStep::Marked => self.marked = Some(port),
            FabricStep::Trimmed { frame, .. } => {
                self.trimmed = Some(port);
                self.frame = frame;
            }
            FabricStep::Dropped { reason } => self.end = PathEnd::Dropped(port, reason),
            FabricStep::Delivered { .. } => self.end = PathEnd::Delivered(at),
            // Of ports, or handled by the recording.
            FabricStep::Entered { .. }
            | FabricStep::Made { .. }
            | FabricStep::Sent { .. }
            | FabricStep::Paused { .. }
            | FabricStep::Link { .. }
            | FabricStep::Filled { .. }
            | FabricStep::Stopped { .. } => {}
        }
    }
}
