//! End-to-end credits, as the responder advertises them (InfiniBand architecture, volume 1, section 9.7.7.2).
//!
//! An acknowledgement counts the receive requests that are not completed: those that wait, and those begun by messages
//! that are still arriving, in any order. The requester adds that count to the messages that the same acknowledgement
//! counts as completed. A shared receive queue is not counted, because its requests belong to no particular queue pair.

use selvedge_wire::Syndrome;

use crate::verbs::attributes::Terms;
use crate::verbs::receives::Receives;

/// Number of receive requests that the other side has been informed of, since the beginning of the connection.
#[derive(Debug, Default)]
pub(super) struct Advertised(u64);

impl Advertised {
    fn is_on(terms: &Terms) -> bool {
        terms.init.options.credits && terms.init.srq.is_none()
    }
    /// Returns the syndrome of an acknowledgement that carries no new information about receive requests.
    pub(super) fn nothing_new(terms: &Terms) -> Syndrome {
        if Self::is_on(terms) { Syndrome::credits(0) } else { Syndrome::NO_CREDITS }
    }
    /// Returns the syndrome of an acknowledgement that is sent now. `begun` is the number of receive requests that
    /// messages have begun and not completed.
    pub(super) fn advertise(&mut self, terms: &Terms, receives: &Receives, begun: usize) -> Syndrome {
        if !Self::is_on(terms) {
            return Syndrome::NO_CREDITS;
        }
        let open = (receives.len() + begun) as u64;
        let syndrome = Syndrome::credits(u32::try_from(open).unwrap_or(u32::MAX));
        let said = u64::from(syndrome.advertised().unwrap_or(0));
        self.0 = self.0.max(receives.added().saturating_sub(open) + said);
        syndrome
    }
    /// Returns whether the other side has to be informed, unrequested, of receive requests that were just added: it
    /// does not know of half of those that are open.
    pub(super) fn is_due(&self, terms: &Terms, receives: &Receives, begun: usize) -> bool {
        let open = (receives.len() + begun) as u64;
        Self::is_on(terms) && open > 0 && 2 * receives.added().saturating_sub(self.0) >= open
    }
}
