//! The contract between what carries frames and what happens to them between two ports.

use selvedge_telemetry::PortRow;
use selvedge_units::Instant;
use selvedge_wire::Pfc;

use super::frame::Facts;

/// Engine of the switches between the ports of hosts: queues, links, losses, routes. Pure: bytes and times go in,
/// frames and deadlines come out.
///
/// Ports count from 0, one for each host. After any other call, the caller polls [`Engine::poll_transmit`] until `None`
/// and then asks for [`Engine::poll_timeout`]. Times never go back; frames of one turn of a loop have one time.
pub trait Engine {
    /// Handles a frame that a host has sent to another, which is at a port. The frame is lent for the time of the call.
    fn handle_packet(&mut self, now: Instant, arrival: Arrival<'_>);

    /// Handles a pause, or its end, that the host at `port` asks for.
    fn handle_pause(&mut self, now: Instant, port: usize, pause: &Pfc);

    /// Returns the next frame whose last bit has arrived at a host by `now`. The engine may reuse its memory at the
    /// next call.
    fn poll_transmit(&mut self, now: Instant) -> Option<Leaving<'_>>;

    /// Returns the time at which [`Engine::handle_timeout`] or [`Engine::poll_transmit`] has something to do.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Handles that time has passed.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes the state of all ports, those between switches included, and what happened there since the last call. An
    /// engine without such ports leaves `rows` empty.
    fn sample(&mut self, now: Instant, rows: &mut Vec<PortRow>);

    /// Calls `each` for all counters, with the place that is counted (`leaf0:spine1`; empty for the whole), the name of
    /// the counter, and its value.
    fn visit_counts(&self, each: &mut dyn FnMut(&str, &'static str, u64));
}

/// A frame of a host.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Port of the host that has sent the frame.
    pub from: usize,
    /// Port of the host that the frame is for, another one than `from`.
    pub to: usize,
    /// Facts of the frame.
    pub facts: &'a Facts,
    /// The frame, from its Ethernet header on, without FCS.
    pub frame: &'a [u8],
}

/// A frame for a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving<'a> {
    /// Port of the host.
    pub port: usize,
    /// The frame, from its Ethernet header on, without FCS. An engine that pauses a host sends it the frame of
    /// [`pause_frame`](super::pause_frame).
    pub frame: &'a [u8],
}
