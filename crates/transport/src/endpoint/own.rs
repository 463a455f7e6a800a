//! Transports that Selvedge does not have: a user's own, without a line in the registry.
//!
//! Calls of such transports are dispatched dynamically; those of the registry are not.

use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

use selvedge_units::Duration;

use super::{Endpoint, EndpointParams, EndpointSettings};
use crate::fabric::{Fabric, SettingError};
use crate::own::{OwnConfig, OwnParams};

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

/// State of a transport of a user's own on one host. Its settings are its own:
/// [`Context::params`](super::Context::params) holds nothing that it needs.
pub trait OwnEndpoint: Endpoint<Params = EndpointParams> + Send {}

impl<E: Endpoint<Params = EndpointParams> + Send> OwnEndpoint for E {}

/// Settings of a transport of a user's own.
pub type Config = OwnConfig<dyn OwnTransport>;

impl Config {
    /// Returns the transport's name.
    pub fn name(&self) -> &'static str {
        self.own().name()
    }
}

impl EndpointSettings for Config {
    type Params = OwnParams<dyn OwnTransport>;

    fn resolve(&mut self, fabric: &Fabric) {
        self.set_fabric(fabric);
    }
    fn params(&self) -> Result<Self::Params, SettingError> {
        self.to_params()
    }
    fn needs_trimming(&self) -> bool {
        self.own().needs_trimming()
    }
    fn priorities(&self) -> u8 {
        self.own().priorities()
    }
    fn chooses_paths(&self) -> bool {
        self.own().chooses_paths()
    }
    fn longest_timeout(&self) -> Duration {
        self.fabric().map_or(Duration::ZERO, |fabric| self.own().longest_timeout(fabric))
    }
}

/// State of a host, behind a pointer.
#[derive(Debug)]
pub struct Host(Box<dyn OwnEndpoint>);

impl Host {
    /// Creates the state of a host.
    pub fn new(params: &OwnParams<dyn OwnTransport>) -> Self {
        Self(params.own.endpoint(&params.fabric))
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
