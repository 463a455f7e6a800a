//! Controls: series that differ from one of a study in PFC alone.
//!
//! A difference between two schemes, one with PFC and one without, says nothing about PFC if they differ in other
//! settings, too. The effect of PFC is the difference between a series and its control. A study that has series of both
//! kinds is given the controls that it lacks.

use std::iter;

use selvedge_sim::config::PfcConfig;
use selvedge_transport::Scheme;

use super::PlannedSeries;
use super::builder::Builder;
use crate::digest;
use crate::draft::Variant;
use crate::written::written_values;

/// Maximum number of series of a case to which controls are added.
const MOST_SERIES: usize = 4;
/// Maximum payload that all controls together may carry, in bytes: some minutes of one core.
const CHEAP: f64 = 1e12;

impl PlannedSeries {
    /// Returns a hash of all settings of the series except PFC and the timeouts that follow from it. Two series of a
    /// case for which it is equal differ in PFC alone.
    pub fn apart_from_pfc(&self) -> u64 {
        let mut scenario = self.scenario.clone();
        scenario.switch.pfc = PfcConfig::default();
        if let Some(rdma) = scenario.transport.rdma_mut() {
            rdma.recovery.forget_pfc();
        }
        digest::of(written_values(&scenario).as_bytes())
    }

    /// Returns which data packets RDMA's loss recovery acknowledges: "per-packet", "coalesced" or "none"; empty for
    /// other transports.
    pub fn acks(&self) -> &'static str {
        let Some(recovery) = self.scenario.transport.recovery() else { return "" };
        match () {
            () if recovery.acknowledges_each() => "per-packet",
            () if recovery.acknowledges() => "coalesced",
            () => "none",
        }
    }

    /// Returns whether the series has PFC.
    pub fn has_pfc(&self) -> bool {
        self.scenario.switch.pfc.enabled
    }
}

impl Builder<'_> {
    /// Notes for each series, in studies where some have PFC and some have not, the name of its control. With `add`,
    /// adds the controls that are missing and cheap behind the series of their case.
    pub(super) fn control(&mut self, series: &mut Vec<PlannedSeries>, variants: &[Variant], seeds: &[u64], add: bool) {
        let mut added = Vec::new();
        for at in 0..series.len() {
            let own = &series[at];
            let of_case = || series.iter().filter(|other| other.case == own.case);
            if of_case().all(|other| other.has_pfc() == own.has_pfc()) {
                continue;
            }
            let scheme = own.apart_from_pfc();
            let is_control =
                |other: &PlannedSeries| other.has_pfc() != own.has_pfc() && other.apart_from_pfc() == scheme;
            let control = match of_case().find(|other| is_control(other)) {
                Some(other) => Some(other.series.clone()),
                None => self.switched(&variants[at], seeds).filter(is_control).map(|mut control| {
                    let taken = |name: &str| of_case().any(|other| other.series == name);
                    let name = iter::successors(Some(control.series.clone()), |name| Some(format!("{name}'")));
                    control.rename(name.into_iter().find(|name| !taken(name)).unwrap_or_default());
                    let name = control.series.clone();
                    if of_case().count() <= MOST_SERIES {
                        added.push(control);
                    }
                    name
                }),
            };
            series[at].control = control;
        }
        let payload = |series: &PlannedSeries| {
            let mean = series.workloads.iter().map(|workload| workload.mean_size).fold(1.0, f64::max);
            series.flows.map_or(0.0, |flows| flows as f64 * mean) * seeds.len() as f64
        };
        if !add || added.iter().map(payload).sum::<f64>() > CHEAP {
            return;
        }
        for mut control in added {
            let last = series.iter().rposition(|other| other.case == control.case).unwrap_or(0);
            let scheme = control.apart_from_pfc();
            let own = series.iter().find(|own| own.case == control.case && own.apart_from_pfc() == scheme);
            control.control = own.map(|own| own.series.clone());
            control.is_added = true;
            series.insert(last + 1, control);
        }
    }

    /// Returns the series with PFC switched; `None` if such a series is impossible.
    fn switched(&mut self, variant: &Variant, seeds: &[u64]) -> Option<PlannedSeries> {
        let mut variant = variant.clone();
        let enabled = &mut variant.scenario.switch.pfc.enabled;
        *enabled = !*enabled;
        variant.name = switched_name(&variant.name, *enabled);
        // The warnings of a control are those of the series that it belongs to.
        self.series(variant, seeds, &mut Vec::new()).ok()
    }
}

impl PlannedSeries {
    fn rename(&mut self, name: String) {
        self.name = match &self.case {
            Some(case) => format!("{case}: {name}"),
            None => name.clone(),
        };
        self.series = name;
    }
}

/// Returns the name of the control of the series `name`, with or without PFC.
fn switched_name(name: &str, with_pfc: bool) -> String {
    const PFC: &str = "+pfc";
    match name.find(PFC) {
        _ if with_pfc => format!("{name}{PFC}"),
        Some(at) => format!("{}{}", &name[..at], &name[at + PFC.len()..]),
        None => format!("{name} without PFC"),
    }
}

#[cfg(test)]
mod tests {
    use super::switched_name;

    #[test]
    fn controls_are_called_after_their_series() {
        assert_eq!(switched_name("irn", true), "irn+pfc");
        assert_eq!(switched_name("roce+dcqcn+pfc", false), "roce+dcqcn");
        assert_eq!(switched_name("roce+pfc+spray", false), "roce+spray");
        assert_eq!(switched_name("today", false), "today without PFC");
    }
}
