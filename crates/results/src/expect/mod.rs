//! What a paper claims, and whether a study shows it.
//!
//! ```toml
//! [[expect]]
//! say    = "IRN without PFC completes flows 2.8 to 3.7 times faster than RoCE with PFC"
//! metric = "fct_mean_us"
//! of     = "roce+pfc"
//! than   = "irn"
//! ratio  = { between = [2.8, 3.7] }
//! source = "section 4.2, figure 1"
//! paper  = "2.8-3.7x"
//! ```
//!
//! A claim names a metric of one series (`value`), or the ratio of two (`ratio`, paired by seed), and
//! the range that counts as reproduced: `at-most`, `at-least`, both, `between`, or `near` with a
//! relative `tolerance`. Numbers may be written as fractions: `"1/3.7"`.
//!
//! `metric`, `of` (with `than`) and `case` may be lists: then each combination has a verdict, unless
//! `take` is "max" or "min", which holds the largest or smallest against the range. `case = "*"` is
//! every case of the study. `than-case` compares a case with another: a ratio of two cases, or, with
//! `than`, a ratio of ratios.
//!
//! `real = true` before all claims: the scenario runs in the simulator and between two processes of this machine, as
//! the cases "simulated" and "real". Where the machine does not allow that, claims that name "real" are set aside.
//!
//! `[footprint]` counts state instead of simulating it, as `selvedge footprint` does: on a NIC, or a pair of
//! top-of-rack switches, with so many `queue-pairs`, `work-requests` and so much `cache`. Its metrics are bytes of each
//! item ("footprint.bitmap"), of those of queue pairs, of work queue elements and of what all share
//! ("footprint.queue-pairs", "footprint.work-requests", "footprint.shared"), of all ("footprint.total") and of all for
//! each queue pair ("footprint.per-qp"), and the share of the cache ("footprint.cache-share").
//!
//! `[[measure]]` with the same keys, without range and source, shows numbers beside the claims.
//!
//! # The rule
//! 1. A range on one side of 1 (`ratio` only) has a *direction*. *Reproduced*: the mean lies in the
//!    range, and the 95 % interval excludes 1. *Direction only*: the mean misses the range, but the whole
//!    interval lies on the claimed side of 1, by 0.5 % at least (what is shown as "1.00" has no direction).
//!    Where the middle of the range is within 10 % of 1, so must the whole interval be: "99 % of the
//!    bandwidth" says that little is lost, and 38 % is no weaker form of it.
//! 2. A ratio's range around 1 claims sameness, and needs the evidence inside: *reproduced* when the
//!    whole interval lies in the range, *direction only* when the mean does and the interval is within 10 % of 1.
//! 3. A `value` is *reproduced* when the mean lies in the range; it has no direction.
//! 4. Where more than 1 % of what a metric is taken over never finishes (the measured flows of a series, or of one
//!    of its workloads; groups), completion times are those of the lucky ones: nothing about them is more than
//!    *direction only*.
//! 5. Everything else is *not reproduced*. With one seed there is no interval, and the mean alone
//!    decides; the line says so.
//!
//! A claim that is not fully reproduced fails the check, unless `known` gives the reason.

mod check;
mod footprint;
mod parse;
mod quantity;

pub use check::{ClaimVerdict, Measured, Outcome, check, check_smoke, measure, render_claims, render_measured};
pub use footprint::{FootprintNic, Footprints};
pub use parse::{Claim, ExpectError, Expectations, Measurement, Take};
pub use quantity::{Cases, Quantities, Quantity};
