//! Transports that Selvedge does not have: a user's own, without a line in the registry.
//!
//! Calls of such transports are dispatched dynamically; those of the registry are not.

use alloc::boxed::Box;
use core::fmt;

use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber};
use selvedge_wire::Packet;

use super::{Arriving, Context, Endpoint, EndpointParams, EndpointSettings, Frames, Handled, Message, Standing};
use crate::fabric::{Fabric, SettingError};
use crate::role::Limits;

/// A transport of a user's own: its properties, and a way to create its state on a host.
pub trait OwnTransport: fmt::Debug + Sync {
    /// Returns the transport's name in results, such as "my-transport".
    fn name(&self) -> &'static str;
    /// Creates the state of a host on `fabric`.
    fn endpoint(&self, fabric: &Fabric) -> Box<dyn Endpoint + Send>;
    /// Returns the longest time after which a sender or receiver acts on a loss. A run in which nothing arrives for
    /// much longer counts as stalled.
    fn longest_timeout(&self, fabric: &Fabric) -> Duration;
    /// Returns whether the transport needs trimming ([`EndpointSettings::needs_trimming`]).
    fn needs_trimming(&self) -> bool {
        false
    }
    /// Returns whether senders choose paths ([`EndpointSettings::chooses_paths`]).
    fn chooses_paths(&self) -> bool {
        false
    }
    /// Returns the number of priorities among which the transport chooses ([`EndpointSettings::priorities`]).
    fn priorities(&self) -> u8 {
        0
    }
}

/// Settings of a transport of a user's own. Two are equal if their transport is one and the same object.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    transport: &'static dyn OwnTransport,
    fabric: Option<Fabric>,
}

/// Parameters of a transport of a user's own.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    transport: &'static dyn OwnTransport,
    fabric: Fabric,
}

impl Config {
    /// Returns the settings of `transport`, which lives as long as the program; [`Box::leak`] makes such a reference.
    pub const fn new(transport: &'static dyn OwnTransport) -> Self {
        Self { transport, fabric: None }
    }

    /// Returns the transport's name.
    pub fn name(&self) -> &'static str {
        self.transport.name()
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.transport, other.transport) && self.fabric == other.fabric
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.transport, other.transport) && self.fabric == other.fabric
    }
}

impl EndpointSettings for Config {
    type Params = Params;

    fn resolve(&mut self, fabric: &Fabric) {
        self.fabric = Some(*fabric);
    }
    fn params(&self) -> Result<Params, SettingError> {
        let fabric = self.fabric.ok_or_else(|| SettingError::left_auto("fabric"))?;
        Ok(Params { transport: self.transport, fabric })
    }
    fn needs_trimming(&self) -> bool {
        self.transport.needs_trimming()
    }
    fn priorities(&self) -> u8 {
        self.transport.priorities()
    }
    fn chooses_paths(&self) -> bool {
        self.transport.chooses_paths()
    }
    fn longest_timeout(&self) -> Duration {
        self.fabric.map_or(Duration::ZERO, |fabric| self.transport.longest_timeout(&fabric))
    }
}

/// State of a host, behind a pointer.
#[derive(Debug)]
pub struct Host(Box<dyn Endpoint + Send>);

impl Host {
    /// Creates the state of a host.
    pub fn new(params: &Params) -> Self {
        Self(params.transport.endpoint(&params.fabric))
    }
}

impl Endpoint for Host {
    fn open_sender(
        &mut self,
        cx: &mut Context<'_, '_>,
        params: &EndpointParams,
        qp: QpNumber,
        message: &Message,
    ) -> u32 {
        self.0.open_sender(cx, params, qp, message)
    }
    fn open_receiver(&mut self, cx: &mut Context<'_, '_>, src: HostId, qp: QpNumber, size: Bytes, context: u32) -> u32 {
        self.0.open_receiver(cx, src, qp, size, context)
    }
    fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32> {
        self.0.close_sender(entry, qp)
    }
    fn close_receiver(&mut self, entry: u32) -> Option<(u32, u32)> {
        self.0.close_receiver(entry)
    }
    fn handle_packet(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, entry: u32) -> Handled {
        self.0.handle_packet(cx, packet, entry)
    }
    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, entry: u32, packet: &mut Packet) -> bool {
        self.0.poll_transmit(cx, entry, packet)
    }
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>, entry: u32, at: Instant) {
        self.0.handle_timeout(cx, entry, at);
    }
    fn class(&self, entry: u32, frames: &Frames) -> Option<u8> {
        self.0.class(entry, frames)
    }
    fn standing(&self, entry: u32, qp: QpNumber, now: Instant) -> Option<Standing> {
        self.0.standing(entry, qp, now)
    }
    fn arriving(&self, entry: u32) -> Option<Arriving> {
        self.0.arriving(entry)
    }
    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits> {
        self.0.limits(entry, qp)
    }
}
