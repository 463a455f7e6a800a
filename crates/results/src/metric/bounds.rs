//! Metrics of a run that are bounds, because some of its flows (or incasts, or jobs) had not finished.

use super::Metric;
use super::names::{FLOW_COMPLETION, GROUP_COMPLETION, TIMES};
use super::table::{LONG, SHORT, of_size};
use crate::{Bound, PointSummary};

impl Metric {
    /// Returns the bound that the value in one run is of the value with all measured flows finished; `None` if it is
    /// exact.
    pub(crate) fn bound(&self, point: &PointSummary) -> Option<Bound> {
        let flows = &point.flows;
        let is_open = flows.unfinished > 0;
        let at_least = |is_bound: bool| is_bound.then_some(Bound::AtLeast);
        let of_size = |above, up_to| of_size(point, above, up_to).any(|class| class.unfinished > 0);
        match self.name {
            "slowdown_mean" | FLOW_COMPLETION => at_least(is_open),
            "slowdown_p50" => at_least(flows.slowdown.open.p50),
            "slowdown_p99" => at_least(flows.slowdown.open.p99),
            "fct_p50_us" => at_least(flows.fct_us.open.p50),
            "fct_p99_us" => at_least(flows.fct_us.open.p99),
            "fct_p999_us" => at_least(flows.fct_us.open.p999),
            "single_packet_fct_p50_us" => at_least(flows.single_packet_fct_us.open.p50),
            "single_packet_fct_p90_us" => at_least(flows.open_tail == Some(0)),
            "single_packet_fct_p99_us" => at_least(flows.single_packet_fct_us.open.p99),
            "single_packet_fct_p999_us" => at_least(flows.single_packet_fct_us.open.p999),
            "short_fct_mean_us" => at_least(of_size(0, SHORT)),
            "long_fct_mean_us" => at_least(of_size(LONG, u64::MAX)),
            // Flows that take longer can make throughputs more alike, or less alike.
            "throughput_jain" => is_open.then_some(Bound::Undecided),
            GROUP_COMPLETION => at_least(flows.unfinished_groups > 0),
            name if TIMES.contains(&name) => at_least(is_open),
            _ => None,
        }
    }
}
