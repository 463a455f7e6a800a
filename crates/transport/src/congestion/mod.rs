//! Congestion control: how much, how fast?
//!
//! An algorithm is a folder with its settings (`Config`) and its state (`Control`, a
//! [`Congestion`]), and one line in the registry at the end of this file.

use selvedge_units::{Bytes, Duration, Instant, Rate};

use crate::fabric::{Fabric, SettingError};
use crate::registry::registry;
use crate::role::Cx;

pub mod fixed;
pub mod none;

/// A congestion control: hears signals, keeps a window and a rate.
///
/// What an algorithm does not read costs nothing: signals are plain values that the compiler
/// computes only where a match arm uses them.
pub trait Congestion {
    /// Something happened.
    fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal);
    /// Bytes on the wire that may be in flight; [`Bytes::MAX`] without a limit. One packet may
    /// always be in flight, however small the window.
    fn window(&self) -> Bytes;
    /// Rate on the wire, headers and gaps included; [`Rate::MAX`] without a limit.
    fn rate(&self) -> Rate;
    /// When to call [`Congestion::on_timeout`]; [`Instant::NEVER`] without a timer.
    fn deadline(&self) -> Instant;
    /// The deadline has passed.
    fn on_timeout(&mut self, cx: &mut Cx<'_>);
}

/// What a congestion control may hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// An acknowledgement, positive or negative.
    Acked {
        /// Bytes on the wire (full-sized packets assumed) that it newly reports as arrived.
        bytes: Bytes,
        /// From the data packet's departure to this acknowledgement's arrival.
        rtt: Duration,
    },
    /// The data packet behind an acknowledgement was ECN-marked. Follows its [`Signal::Acked`].
    EcnEcho,
    /// Loss recovery begins, because of a NACK. Once per episode.
    Lost,
    /// Loss recovery begins, because of a retransmission timeout.
    TimedOut,
}

/// What an algorithm's settings can say about themselves.
pub trait Tuning {
    /// Replaces every "auto".
    fn resolve(&mut self, fabric: &Fabric);
    /// What is wrong with the resolved settings, if anything is.
    fn check(&self) -> Result<(), SettingError>;
}

registry! {
    /// Which congestion control, with its settings.
    config CongestionConfig: Tuning {
        fn resolve(&mut self, fabric: &Fabric);
        fn check(&self) -> Result<(), SettingError>;
    }
    /// Any congestion control.
    run AnyCongestion: Congestion = Control {
        fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal);
        fn window(&self) -> Bytes;
        fn rate(&self) -> Rate;
        fn deadline(&self) -> Instant;
        fn on_timeout(&mut self, cx: &mut Cx<'_>);
    }
    algorithms {
        /// None: the loss recovery's own limits and the link.
        "none" => None(none),
        /// A window and a rate that never change.
        "fixed" => Fixed(fixed),
    }
}
