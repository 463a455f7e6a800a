//! Loss and failure of links.
//!
//! Configurations ([`LossConfig`], [`LinkFailure`]) name links by a [`LinkSelector`]; [`LossPlan`] and [`link_events`]
//! apply them to a network. Pure state machines ([`LaneLoss`], [`LossProcess`], [`BitErrorProcess`]) decide packet by
//! packet, when the kernel asks, which packets are lost.

mod corrupt;
mod failure;
mod loss;
mod process;
mod selector;

pub use corrupt::{BitErrorProcess, BitErrors};
pub use failure::{LinkEvent, LinkFailure, link_events};
pub use loss::{Affected, Bursty, DropList, GilbertElliott, LaneLoss, LossConfig, LossModel, LossPlan, RandomLoss};
pub use process::LossProcess;
pub use selector::{Direction, Lane, LinkSelector};
