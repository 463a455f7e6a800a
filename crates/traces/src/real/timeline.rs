//! Timeline of a recording for Perfetto: nodes, and below each its ports with packets, queues and pauses.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use selvedge_sim::record::{Chosen, Focus};
use selvedge_sim::topology::Graph;
use selvedge_telemetry::{FabricEvent, FabricStep, MadePacket};
use selvedge_units::{Instant, PortId, mix64};

use super::packet::FrameSummary;
use super::record::{RecordError, RecordReader};
use crate::names::PortNames;
use crate::perfetto::{Drawn, Lanes, PortEvent};

/// Packet under way, as it is drawn.
#[derive(Clone)]
struct Shape {
    number: u64,
    title: String,
    flow: String,
    frame: u16,
    class: u8,
    is_marked: bool,
    is_pause: bool,
}

impl Drawn for Shape {
    fn title(&self) -> String {
        self.title.clone()
    }
    fn identity(&self, _: PortId) -> u64 {
        mix64(self.number)
    }
    fn frame(&self) -> u16 {
        self.frame
    }
    fn class(&self) -> u8 {
        self.class
    }
    fn is_marked(&self) -> bool {
        self.is_marked
    }
    fn is_pause(&self) -> bool {
        self.is_pause
    }
}

/// Writes the timeline of a recording in switches of `graph`.
pub(super) fn write(
    path: &Path,
    mut reader: RecordReader,
    graph: &Graph,
    failed: &dyn Fn(io::Error) -> RecordError,
) -> Result<(), RecordError> {
    let out = BufWriter::new(File::create(path).map_err(failed)?);
    let focus = Focus { ports: Chosen::All, pauses: true, ..Focus::default() };
    let names = Arc::new(PortNames::new(graph));
    let mut lanes = Lanes::begin(out, graph, names, &focus).map_err(failed)?;
    let mut shapes: BTreeMap<u64, Shape> = BTreeMap::new();
    let mut end = Instant::ZERO;
    while let Some(recorded) = reader.next_event()? {
        end = end.max(recorded.event.at);
        draw(&mut lanes, &mut shapes, &recorded.event, &recorded.captured).map_err(failed)?;
    }
    lanes.finish(end).map_err(failed)
}

fn draw(
    lanes: &mut Lanes<BufWriter<File>>,
    shapes: &mut BTreeMap<u64, Shape>,
    event: &FabricEvent,
    captured: &[u8],
) -> io::Result<()> {
    let FabricEvent { at, packet: number, port, what } = *event;
    match what {
        FabricStep::Entered { class, frame, .. } => {
            let summary = FrameSummary::read(captured);
            let (title, flow) = (summary.title(), summary.to_string());
            let is_marked = summary.is_marked(captured);
            shapes.insert(number, Shape { number, title, flow, frame, class, is_marked, is_pause: false });
            return Ok(());
        }
        FabricStep::Made { class, frame, made } => {
            let (title, flow, is_pause) = match made {
                MadePacket::Copy { of } => match shapes.get(&of) {
                    Some(original) => (format!("{} again by NetRT", original.title), original.flow.clone(), false),
                    None => ("copy by NetRT".to_owned(), String::new(), false),
                },
                MadePacket::Pause { quanta: 0, .. } => ("PFC resume".to_owned(), String::new(), true),
                MadePacket::Pause { .. } => ("PFC pause".to_owned(), String::new(), true),
                MadePacket::NetRt { is_request: true, psn } => (format!("NetRT request {psn}"), String::new(), false),
                MadePacket::NetRt { psn, .. } => (format!("NetRT unfulfilled {psn}"), String::new(), false),
            };
            shapes.insert(number, Shape { number, title, flow, frame, class, is_marked: false, is_pause });
            return Ok(());
        }
        FabricStep::Paused { classes } => return lanes.ports.on_paused(&mut lanes.rows, at, port, classes),
        FabricStep::Link { up } => return lanes.ports.on_link(&mut lanes.rows, at, port, up),
        FabricStep::Filled { .. } => return lanes.ports.on_filled(&mut lanes.rows, at, port),
        FabricStep::Stopped { .. } => return Ok(()),
        _ => {}
    }
    let Some(shape) = shapes.get_mut(&number) else { return Ok(()) };
    let (rows, ports) = (&mut lanes.rows, &mut lanes.ports);
    let place = |shape| PortEvent { at, port, packet: shape };
    match what {
        FabricStep::Sent { serialisation, waiting } => {
            let flow = shape.flow.clone();
            ports.on_sent(rows, place(shape), &flow, serialisation, waiting)
        }
        FabricStep::Arrived => ports.on_arrived(rows, place(shape)),
        FabricStep::Queued { ahead, .. } => ports.on_queued(rows, place(shape), ahead, true),
        FabricStep::Marked => {
            shape.is_marked = true;
            Ok(())
        }
        FabricStep::Trimmed { frame, waiting } => {
            let class = shape.class;
            (shape.frame, shape.title) = (frame, format!("header of {}", shape.title));
            ports.on_trimmed(rows, place(shape), class, waiting, true)
        }
        FabricStep::Dropped { reason } => {
            let drawn = ports.on_dropped(rows, place(shape), reason);
            shapes.remove(&number);
            drawn
        }
        FabricStep::Delivered { .. } => {
            shapes.remove(&number);
            Ok(())
        }
        // Handled above.
        FabricStep::Entered { .. }
        | FabricStep::Made { .. }
        | FabricStep::Paused { .. }
        | FabricStep::Link { .. }
        | FabricStep::Filled { .. }
        | FabricStep::Stopped { .. } => Ok(()),
    }
}
