//! Congestion notification packets (InfiniBand architecture, annex 17; DCQCN, section 3.1): a receiver of packets that
//! switches have marked notifies the sender, at a limited rate.
//!
//! A notification names a queue pair, not a packet: the queue pair's requests and responses slow down alike.

use selvedge_transport::{Feedback, FeedbackConfig, Needs};
use selvedge_units::{Bytes, Duration, Instant, Psn};
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::{Bth, Opcode};

use super::arrival::Arrival;
use super::attributes::Terms;
use super::transmit::Transmit;

/// Minimum time between two notifications of a queue pair (DCQCN, section 5), where paths control congestion.
const INTERVAL: Duration = Duration::from_us(50);

pub(super) const OPCODE: u8 = Opcode::CONGESTION_NOTIFICATION;

/// The notification point of a queue pair.
#[derive(Debug)]
pub(super) struct Notification {
    config: FeedbackConfig,
    point: Feedback,
    is_due: bool,
}

impl Notification {
    pub(super) fn new(terms: &Terms) -> Self {
        Self { config: terms.init.feedback, point: Feedback::default(), is_due: false }
    }
    /// Handles a received packet of a queue pair; `has_path`: the path has its own congestion control.
    pub(super) fn on_arrival(&mut self, now: Instant, terms: &Terms, arrival: &Arrival<'_>, has_path: bool) {
        let Arrival { headers, payload, .. } = *arrival;
        if has_path && headers.bth.fecn && self.config.is_silent() {
            let needs = Needs { cnp_interval: Some(INTERVAL), ..Needs::default() };
            self.config = FeedbackConfig::new(&needs, true);
        }
        if self.config.is_silent() || matches!(headers.bth.opcode, op::ACKNOWLEDGE | op::READ_ACKNOWLEDGE | OPCODE) {
            return;
        }
        let frame = Bytes::new(u64::from(payload)) + terms.init.overhead;
        self.is_due |= self.point.handle_data(&self.config, now, frame, headers.bth.fecn, false).cnp;
    }
    /// Returns the notification that is due.
    pub(super) fn poll(&mut self, terms: &Terms) -> Option<Transmit> {
        core::mem::take(&mut self.is_due).then(|| {
            let bth = Bth { becn: true, ..terms.bth(OPCODE, Psn::new(0)) };
            Transmit { route: terms.route, headers: Headers { bth, ..Headers::default() }, payload: 0 }
        })
    }
}
