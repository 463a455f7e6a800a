//! Capture of a recording: an interface for each port, and comments for what the bytes of packets do not show.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use selvedge_telemetry::{DropReason, FabricEvent, FabricStep, MadePacket, PortInfo};
use selvedge_units::{Instant, PortId};
use selvedge_wire::{EtherType, Ethernet, MacAddress, Pfc};

use super::packet::FrameSummary;
use super::record::{RecordError, RecordReader, Recorded};
use crate::fate::is_lost_on_link;
use crate::pcapng::file::{Direction, Interface, LONGEST, Pcapng};

/// Bytes of the FCS, which frames of recordings are without.
const FCS: usize = 4;

/// Frame under way.
struct Held {
    bytes: Vec<u8>,
    /// Length of the whole frame, without FCS.
    length: usize,
    is_copy: bool,
    is_trimmed: bool,
    /// Whether the frame was marked, which no comment has told.
    is_marked: bool,
}

/// Capture in construction.
struct Capture<'a, W> {
    file: Pcapng<W>,
    ports: &'a [PortInfo],
    names: Vec<String>,
    interfaces: BTreeMap<PortId, Interface>,
    held: BTreeMap<u64, Held>,
}

/// Writes the capture of a recording. Packets without bytes, messages between NetRT's switches, are left out.
pub(super) fn write(
    path: &Path,
    mut reader: RecordReader,
    program: &str,
    failed: &dyn Fn(io::Error) -> RecordError,
) -> Result<(), RecordError> {
    let ports = reader.ports().to_vec();
    let out = BufWriter::new(File::create(path).map_err(failed)?);
    let file = Pcapng::begin(out, program, reader.snaplen().min(LONGEST)).map_err(failed)?;
    let names = reader.port_names();
    let mut capture = Capture { file, ports: &ports, names, interfaces: BTreeMap::new(), held: BTreeMap::new() };
    let mut next = reader.next_event()?;
    while let Some(Recorded { event, captured }) = next {
        next = reader.next_event()?;
        let fate = next.as_ref().and_then(|next| fate(&event, &next.event));
        capture.on_event(&event, captured, fate).map_err(failed)?;
    }
    capture.file.finish().map_err(failed)
}

/// Returns the reason for which the packet that has just arrived is dropped next, if it is.
fn fate(event: &FabricEvent, next: &FabricEvent) -> Option<DropReason> {
    match (event.what, next.what) {
        (FabricStep::Arrived, FabricStep::Dropped { reason })
            if (event.packet, event.port) == (next.packet, next.port) =>
        {
            Some(reason)
        }
        _ => None,
    }
}

impl<W: Write> Capture<'_, W> {
    fn on_event(&mut self, event: &FabricEvent, captured: Vec<u8>, fate: Option<DropReason>) -> io::Result<()> {
        let FabricEvent { at, packet, port, what } = *event;
        match what {
            FabricStep::Entered { length, .. } => {
                let held = Held {
                    bytes: captured,
                    length: length.into(),
                    is_copy: false,
                    is_trimmed: false,
                    is_marked: false,
                };
                self.held.insert(packet, held);
            }
            FabricStep::Made { made, .. } => {
                if let Some(held) = self.made(port, made) {
                    self.held.insert(packet, held);
                }
            }
            FabricStep::Sent { .. } => self.packet(port, at, Direction::Out, packet, None)?,
            // A packet lost on a link does not arrive at its end.
            FabricStep::Arrived if !fate.is_some_and(is_lost_on_link) => {
                self.packet(port, at, Direction::In, packet, fate)?;
            }
            FabricStep::Marked => {
                if let Some(held) = self.held.get_mut(&packet) {
                    FrameSummary::read(&held.bytes).mark(&mut held.bytes);
                    held.is_marked = true;
                }
            }
            FabricStep::Trimmed { frame, .. } => {
                if let Some(held) = self.held.get_mut(&packet) {
                    held.length = held.length.min(usize::from(frame).saturating_sub(FCS));
                    held.bytes.truncate(held.length);
                    held.is_trimmed = true;
                }
            }
            FabricStep::Delivered { .. } | FabricStep::Dropped { .. } => drop(self.held.remove(&packet)),
            FabricStep::Arrived
            | FabricStep::Queued { .. }
            | FabricStep::Paused { .. }
            | FabricStep::Link { .. }
            | FabricStep::Filled { .. }
            | FabricStep::Stopped { .. } => {}
        }
        Ok(())
    }

    /// Returns a packet that the owner of `port` has made, if it has bytes.
    fn made(&self, port: PortId, made: MadePacket) -> Option<Held> {
        match made {
            MadePacket::Copy { of } => {
                let original = self.held.get(&of)?;
                let (bytes, length) = (original.bytes.clone(), original.length);
                Some(Held { bytes, length, is_copy: true, is_trimmed: false, is_marked: false })
            }
            MadePacket::Pause { classes, quanta } => {
                let source = MacAddress::local(port.0);
                let header = Ethernet { destination: MacAddress::MAC_CONTROL, source, kind: EtherType::MAC_CONTROL };
                let mut bytes = [&header.emit()[..], &Pfc::new(classes, quanta).emit()].concat();
                bytes.resize(Ethernet::MINIMUM, 0);
                let length = bytes.len();
                Some(Held { bytes, length, is_copy: false, is_trimmed: false, is_marked: false })
            }
            MadePacket::NetRt { .. } => None,
        }
    }

    fn packet(
        &mut self,
        port: PortId,
        at: Instant,
        direction: Direction,
        packet: u64,
        fate: Option<DropReason>,
    ) -> io::Result<()> {
        let Some(held) = self.held.get_mut(&packet) else { return Ok(()) };
        let interface = match self.interfaces.get(&port) {
            Some(&interface) => interface,
            None => {
                let info = &self.ports[port.index()];
                let description = format!("port {} of {}, towards {}", port.0, info.node, info.peer);
                let interface = self.file.interface(&self.names[port.index()], &description, info.rate)?;
                self.interfaces.insert(port, interface);
                interface
            }
        };
        let is_marked = std::mem::take(&mut held.is_marked);
        let notes = [
            held.is_copy.then(|| "copy by NetRT".to_owned()),
            held.is_trimmed.then(|| "trimmed".to_owned()),
            is_marked.then(|| "marked here".to_owned()),
            fate.map(|reason| format!("dropped: {}", reason.name())),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        let comment = (!notes.is_empty()).then(|| notes.join("; "));
        self.file.packet(interface, at, direction, &held.bytes, held.length, comment.as_deref())
    }
}
