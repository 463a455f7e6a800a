//! Claims of a paper, checked against a study.
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
//! `metric`, `of` (with `than`) and `case` may be lists: then each combination has a verdict, unless `take` is "max" or
//! "min", which compares the largest or smallest with the range. `case = "*"` is every case of the study. `than-case`
//! compares a case with another: a ratio of two cases, or, with `than`, a ratio of ratios.
//!
//! `by-construction = "..."` states that a claim cannot fail, and why; `{ within = 0.05, because = "..." }` states this
//! for the case that the whole interval of a ratio is within 5 % of 1, because little happens there.
//!
//! `max-seeds` stands before all claims: where the seeds of the scenario leave some claim undecided, their number grows
//! by half until all claims are decided or `max-seeds` have run.
//!
//! `real = true` stands before all claims: the scenario runs in the simulator and between two processes of this
//! machine, as the cases "simulated" and "real". Where the machine does not allow the latter, claims that name "real"
//! are set aside.
//!
//! `[footprint]` counts state instead of simulating it, as `selvedge footprint` does: on a NIC, or a pair of
//! top-of-rack switches, with the given `queue-pairs`, `work-requests` and `cache`. Its metrics are in bytes: of each
//! item ("footprint.bitmap"), of queue pairs, of work queue elements and of shared state ("footprint.queue-pairs",
//! "footprint.work-requests", "footprint.shared"), in total ("footprint.total") and in total per queue pair
//! ("footprint.per-qp"); and the share of the cache ("footprint.cache-share").
//!
//! `[[measure]]` with the same keys, without range and source, shows numbers beside the claims.
//!
//! `[[not-run]]` with `say`, `source`, `because` and optionally `paper` lists a statement of a paper that no run can
//! show.
//!
//! # The rule
//! 1. A range on one side of 1 (`ratio` only) has a *direction*. *Reproduced*: the mean lies in the range, and the 95 %
//!    interval excludes 1. *Direction only*: the mean misses the range, but the whole interval lies on the claimed side
//!    of 1, by 0.5 % at least (a ratio shown as "1.00" has no direction). Where the middle of the range is within 10 %
//!    of 1, the whole interval must be, too: "99 % of the bandwidth" says that little is lost, and 38 % is no weaker
//!    form of it.
//! 2. A ratio's range around 1 claims sameness, and needs the evidence inside: *reproduced* when the
//!    whole interval lies in the range, *direction only* when the mean does and the interval is within 10 % of 1.
//! 3. A `value` is judged by its interval: *reproduced* when all of it lies in the range. Where the range is one around
//!    a value that the paper prints (`near`), it is also reproduced when the interval meets that value as rounded
//!    there, and its half-width is at most `tolerance`: a wide interval would meet anything. A value has no direction.
//!    For ratios with `near`, this test replaces the mean of rule 1.
//! 4. Flows (or groups) that had not finished when a run ended count with their age, so that a quantity taken over them
//!    may be known from one side only (`bound`): a lower bound if the numerator is one, an upper bound if the
//!    denominator is a lower one. Rules 1 to 3 then apply to all possible values: "at least 1.5" can be reproduced by a
//!    lower bound, "1.5 to 3" cannot, and the line says what is known. A ratio of two lower bounds is unknown: *not
//!    reproduced*, "undecided".
//! 5. A reproduced result that could not have been otherwise is *by construction* where the claim says so and why
//!    (`by-construction`): accounting that compares a constant with itself, or bounds on quantities that hardly differ.
//! 6. Everything else is *not reproduced*. With one seed there is no interval, and the mean alone
//!    decides; the line says so.
//!
//! A claim that is not fully reproduced fails the check, unless `known` gives the reason.

mod check;
mod footprint;
mod parse;
mod quantity;

pub(crate) use parse::position;

pub use check::{
    ClaimVerdict, Measured, Outcome, check, check_smoke, measure, needs_seeds, render_claims, render_measured,
};
pub use footprint::{FootprintNic, Footprints};
pub use parse::{ByConstruction, Claim, ExpectError, Expectations, Measurement, Near, NotRun, Take};
pub use quantity::{Cases, Quantities, Quantity};
