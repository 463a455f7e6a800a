//! A window that grows by a step per round trip and is cut at congestion, shared by AIMD and DCTCP.

use selvedge_units::{Bytes, Setting};

use crate::fabric::{Fabric, SettingError, known, resolve};

/// Settings of a window that grows by a step per round trip.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct WindowConfig {
    /// Bytes on the wire that a flow may have in flight at first. Default: "auto", the amount that fills its empty
    /// path: the line rate, or a slower receiver's, times the round-trip time. Flows start at line rate.
    pub initial: Setting<Bytes>,
    /// The smallest window. Default: "auto", one full frame.
    pub min: Setting<Bytes>,
    /// The growth of the window per round trip. Default: "auto", one full frame (RFC 5681, section 3.1).
    pub step: Setting<Bytes>,
    /// Whether the window doubles per round trip until it is cut for the first time. Default: false, because flows
    /// start at line rate.
    pub slow_start: bool,
}

impl WindowConfig {
    pub(super) fn resolve(&mut self, fabric: &Fabric) {
        let frame = fabric.frame + fabric.gap;
        resolve(&mut self.initial, || Some(fabric.filling_window()));
        resolve(&mut self.min, || Some(frame));
        resolve(&mut self.step, || Some(frame));
    }
    /// Returns the window of a flow that has sent nothing.
    pub(super) fn params(&self) -> Result<Window, SettingError> {
        let bytes = |setting, key| match known(setting, key)? {
            Some(bytes) if !Bytes::is_zero(bytes) => Ok(bytes.get() as f64),
            _ => Err(SettingError::new(key, "give some bytes, or \"auto\"")),
        };
        Ok(Window {
            bytes: bytes(self.initial, "window.initial")?,
            min: bytes(self.min, "window.min")?,
            step: bytes(self.step, "window.step")?,
            slow_start: self.slow_start,
        })
    }
}

/// A window in bytes on the wire.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Window {
    bytes: f64,
    min: f64,
    step: f64,
    slow_start: bool,
}

impl Window {
    #[inline]
    pub(super) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes as u64)
    }
    /// Handles the arrival of `bytes`, with `in_flight` bytes still in flight. A window that the flow does not fill
    /// does not grow: it is unknown whether the path would carry more (RFC 7661).
    #[inline]
    pub(super) fn grow(&mut self, bytes: Bytes, in_flight: Bytes) {
        // The window was full before if it had no room for one more such packet.
        let is_full = (in_flight + bytes * 2).get() as f64 > self.bytes;
        if is_full {
            let bytes = bytes.get() as f64;
            self.bytes += if self.slow_start { bytes } else { bytes * self.step / self.bytes };
        }
    }
    pub(super) fn cut(&mut self, factor: f64) {
        self.slow_start = false;
        self.bytes = (self.bytes * factor).max(self.min);
    }
}
