//! Service that a tunnel gives its packets (section 5, requirement 5).

/// Service of a tunnel to the packets of one EQIF.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Service {
    /// As `ordered` of the tunnels says: ordered, or unordered.
    #[default]
    Auto,
    /// Lost packets are sent again, and packets are put in order before delivery.
    Ordered,
    /// Lost packets are sent again, and packets are delivered as they arrive.
    Unordered,
    /// Each packet is sent once and delivered when it arrives, if it does: for protocols that prefer least latency.
    Unreliable,
}

impl Service {
    /// Returns whether packets are put in order, if `auto` is the answer of the setting for all tunnels.
    pub(super) const fn is_ordered(self, auto: bool) -> bool {
        match self {
            Self::Auto => auto,
            Self::Ordered => true,
            Self::Unordered | Self::Unreliable => false,
        }
    }

    /// Returns whether lost packets are sent again.
    pub(super) const fn is_reliable(self) -> bool {
        !matches!(self, Self::Unreliable)
    }
}
