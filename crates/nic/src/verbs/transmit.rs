//! A packet on its way out.

use selvedge_wire::verbs::Headers;

use super::work::Route;

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transmit {
    /// Where to.
    pub route: Route,
    /// Its headers. The payload stands in the spans that came with it.
    pub headers: Headers,
    /// Bytes of payload.
    pub payload: u32,
}

impl Default for Transmit {
    /// Nothing, to nowhere.
    fn default() -> Self {
        Self { route: Route::NOWHERE, headers: Headers::default(), payload: 0 }
    }
}
