//! Observers of a fabric.

use selvedge_telemetry::DropReason;

use crate::descriptor::{Descriptor, Slot};
use crate::environment::Note;
use crate::switches::Switches;

/// Observer of the packets of a [`Fabric`](crate::Fabric), whose memory of packets is a `P`.
///
/// A slot's packet is the one that was announced last, by `on_entered` or `on_made`. `()` observes nothing, and costs
/// nothing: [`LISTENS`](Self::LISTENS) is known at compile time.
pub trait FabricObserver<P> {
    /// Whether the methods are called.
    const LISTENS: bool;

    /// Handles that the host whose port is `at` sends `packet` at the time [`Switches::now`].
    fn on_entered(&mut self, packets: &P, switches: &Switches, at: u32, packet: &Descriptor);
    /// Handles that a switch has made a packet: of the copy numbered `copy`, or of nothing.
    fn on_made(&mut self, packet: &Descriptor, copy: Option<u32>);
    /// Handles that a switch keeps the packet in `slot` as the copy numbered `copy`.
    fn on_kept(&mut self, slot: Slot, copy: u32);
    /// Handles that the packet in `slot` is marked. A [`Note`] about the same packet follows.
    fn on_marked(&mut self, slot: Slot);
    /// Handles that the packet in `slot` is moved to `class`.
    fn on_class(&mut self, slot: Slot, class: u8);
    /// Handles that a packet that entered through port `at` is dropped.
    fn on_dropped(&mut self, packets: &P, switches: &Switches, at: u32, slot: Slot, reason: DropReason);
    /// Handles any other event.
    fn on_note(&mut self, packets: &P, switches: &Switches, note: Note<'_>);
}

impl<P> FabricObserver<P> for () {
    const LISTENS: bool = false;

    fn on_entered(&mut self, _: &P, _: &Switches, _: u32, _: &Descriptor) {}
    fn on_made(&mut self, _: &Descriptor, _: Option<u32>) {}
    fn on_kept(&mut self, _: Slot, _: u32) {}
    fn on_marked(&mut self, _: Slot) {}
    fn on_class(&mut self, _: Slot, _: u8) {}
    fn on_dropped(&mut self, _: &P, _: &Switches, _: u32, _: Slot, _: DropReason) {}
    fn on_note(&mut self, _: &P, _: &Switches, _: Note<'_>) {}
}
