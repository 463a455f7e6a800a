//! Loss and failure of links.
//!
//! Configurations ([`LossConfig`], [`LinkFailure`]) name links by a [`LinkSelector`]; [`LossPlan`] and [`link_events`]
//! apply them to a network. State machines ([`selvedge_switch::loss`]) decide packet by packet which packets are lost.

mod corrupt;
mod failure;
mod loss;
mod selector;

pub use corrupt::BitErrors;
pub use failure::{LinkEvent, LinkFailure, link_events};
pub use loss::{Affected, Bursty, DropList, GilbertElliott, LossConfig, LossModel, LossPlan, RandomLoss};
pub use selector::{Direction, Lane, LinkSelector};
