//! Transports that Selvedge does not have: a user's own, without a line in the registry.
//!
//! Calls of such transports are dispatched dynamically; those of the registry are not.

use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

use selvedge_units::Duration;

use super::{Endpoint, EndpointParams, EndpointSettings};
use crate::fabric::{Fabric, SettingError};

/// A transport of a user's own: its properties, and a way to create its state on a host.
pub trait OwnTransport: fmt::Debug + Sync {
    /// Returns the transport's name in results, such as "my-transport".
    fn name(&self) -> &'static str;
    /// Creates the state of a host on `fabric`.
    fn endpoint(&self, fabric: &Fabric) -> Box<dyn OwnEndpoint>;
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

/// State of a transport of a user's own on one host. Its settings are its own: [`Context::params`](super::Context::params)
/// holds nothing that it needs.
pub trait OwnEndpoint: Endpoint<Params = EndpointParams> + Send {}

impl<E: Endpoint<Params = EndpointParams> + Send> OwnEndpoint for E {}

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
pub struct Host(Box<dyn OwnEndpoint>);

impl Host {
    /// Creates the state of a host.
    pub fn new(params: &Params) -> Self {
        Self(params.transport.endpoint(&params.fabric))
    }
}

impl Deref for Host {
    type Target = dyn OwnEndpoint;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}
