//! Moving the origin of time under running tunnels.
//!
//! [`Instant`] counts picoseconds in 64 bits, and the sums that engines compute with it hold up to
//! [`Instant::HORIZON`], 53 days. A driver that runs longer *rebases*: whenever its clock has passed a time of its
//! choice, say one day, it subtracts a span `by` from its clock and calls `rebase(by)` on each sender, receiver, pacer
//! and queue, in one step in which nothing else happens; from then on it passes times of the new clock. Deadlines that
//! it keeps itself move by the same span. `by` must not exceed the present time. Instants before the new origin become
//! the new origin: they only ever tell that something is over, or that it began at least so long ago. Later
//! instants, and [`Instant::NEVER`], keep their meaning exactly.

use selvedge_units::{Duration, Instant};

/// Moves `at` by `by` towards the origin.
#[inline]
pub(super) fn rebase(at: &mut Instant, by: Duration) {
    if *at != Instant::NEVER {
        *at = Instant::from_ps(at.as_ps().saturating_sub(by.as_ps()));
    }
}
