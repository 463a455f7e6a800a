//! Congestion controls that Selvedge does not have: a user's own, without a line in the registry.
//!
//! Calls of such controls are dispatched dynamically; those of the registry are not.

use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

use selvedge_units::{Bytes, Duration};

use super::{Congestion, Needs, Tuning};
use crate::fabric::{Fabric, SettingError};
use crate::own::{OwnConfig, OwnParams};

/// A congestion control of a user's own: its properties, and a way to create its state of a flow.
pub trait OwnCongestion: fmt::Debug + Sync {
    /// Returns the control's name in results, such as "my-control".
    fn name(&self) -> &'static str;
    /// Creates the state of a flow that has sent nothing, on `fabric`.
    fn control(&self, fabric: &Fabric) -> Box<dyn OwnControl>;
    /// Returns what the control needs from receivers and switches ([`Tuning::needs`]). The default is acknowledgements.
    fn needs(&self) -> Needs {
        Needs { acks: true, ..Needs::default() }
    }
    /// Returns the longest pause between two packets that the control may ask for ([`Tuning::slowest_pace`]).
    fn slowest_pace(&self, frame: Bytes, round: Duration) -> Duration {
        let _ = (frame, round);
        Duration::ZERO
    }
}

/// State of a flow: any [`Congestion`] that can be copied and sent to another thread.
pub trait OwnControl: Congestion + fmt::Debug + Send {
    /// Returns a copy.
    fn boxed(&self) -> Box<dyn OwnControl>;
}

impl<C: Congestion + fmt::Debug + Send + Clone + 'static> OwnControl for C {
    fn boxed(&self) -> Box<dyn OwnControl> {
        Box::new(self.clone())
    }
}

/// Settings of a congestion control of a user's own.
pub type Config = OwnConfig<dyn OwnCongestion>;

impl Config {
    /// Returns the control's name.
    pub fn name(&self) -> &'static str {
        self.own().name()
    }
}

impl Tuning for Config {
    type Params = OwnParams<dyn OwnCongestion>;

    fn resolve(&mut self, fabric: &Fabric) {
        self.set_fabric(fabric);
    }
    fn params(&self) -> Result<Self::Params, SettingError> {
        self.to_params()
    }
    fn needs(&self) -> Needs {
        self.own().needs()
    }
    fn hears_cnps(&self) -> bool {
        self.needs().cnp_interval.is_some()
    }
    fn reads_acks(&self) -> bool {
        true
    }
    fn slowest_pace(&self, frame: Bytes, round: Duration) -> Duration {
        self.own().slowest_pace(frame, round)
    }
}

/// State of a flow, behind a pointer.
#[derive(Debug)]
pub struct Control(Box<dyn OwnControl>);

impl Control {
    /// Creates the state of a flow that has sent nothing.
    pub fn new(params: &OwnParams<dyn OwnCongestion>) -> Self {
        Self(params.own.control(&params.fabric))
    }
}

impl Clone for Control {
    fn clone(&self) -> Self {
        Self((*self.0).boxed())
    }
}

impl Deref for Control {
    type Target = dyn OwnControl;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Control {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}
