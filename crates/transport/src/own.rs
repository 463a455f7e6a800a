//! Algorithms of a user's own, without a line in a registry: objects that live as long as the program.

use crate::fabric::{Fabric, SettingError};

/// Settings of an algorithm of a user's own: the algorithm, and the network once it is known. Two are equal if their
/// algorithm is one and the same object.
#[derive(Debug)]
pub struct OwnConfig<T: ?Sized + 'static> {
    own: &'static T,
    fabric: Option<Fabric>,
}

/// Parameters of an algorithm of a user's own. Two are equal if their algorithm is one and the same object, on equal
/// networks.
#[derive(Debug)]
pub struct OwnParams<T: ?Sized + 'static> {
    /// The algorithm.
    pub own: &'static T,
    /// The network.
    pub fabric: Fabric,
}

impl<T: ?Sized> OwnConfig<T> {
    /// Returns the settings of `own`, which lives as long as the program; [`Box::leak`](alloc::boxed::Box::leak) makes
    /// such a reference.
    pub const fn new(own: &'static T) -> Self {
        Self { own, fabric: None }
    }
    pub(crate) const fn own(&self) -> &'static T {
        self.own
    }
    pub(crate) const fn set_fabric(&mut self, fabric: &Fabric) {
        self.fabric = Some(*fabric);
    }
    /// Returns the network, if it is known.
    pub(crate) const fn fabric(&self) -> Option<&Fabric> {
        self.fabric.as_ref()
    }
    pub(crate) fn to_params(self) -> Result<OwnParams<T>, SettingError> {
        let fabric = self.fabric.ok_or_else(|| SettingError::left_auto("fabric"))?;
        Ok(OwnParams { own: self.own, fabric })
    }
}

impl<T: ?Sized> Clone for OwnConfig<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for OwnConfig<T> {}
impl<T: ?Sized> PartialEq for OwnConfig<T> {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.own, other.own) && self.fabric == other.fabric
    }
}

impl<T: ?Sized> Clone for OwnParams<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for OwnParams<T> {}
impl<T: ?Sized> PartialEq for OwnParams<T> {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.own, other.own) && self.fabric == other.fabric
    }
}
