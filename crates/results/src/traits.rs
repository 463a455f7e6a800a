//! Traits of series that results depend on, and the metrics by which series are compared.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use selvedge_units::words::all_of;
use serde::{Deserialize, Serialize};

use crate::metric::{COMPARED, FLOW_COMPLETION, GROUP_COMPLETION, Metric};

/// A series of the plan, as the caller declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesInfo {
    /// Name of the series, unique in the study.
    pub name: String,
    /// Name of the series within its case; equal to `name` without cases.
    pub series: String,
    /// Case in which the series runs, such as one load of several.
    pub case: Option<String>,
    /// Traits of the series, for the verdict.
    pub traits: SeriesTraits,
    /// The cause that ends the series' runs before all flows are done, for hints on unfinished flows.
    pub cut: Cut,
}

/// The cause that ends a run before all flows are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cut {
    /// The scenario's `stop`.
    #[default]
    Written,
    /// The scenario's `stop`, for traffic that always has flows in flight when it ends.
    Always,
    /// The built-in study's own `stop`, not chosen by the user.
    BuiltIn,
}

/// Traits that matter for the question whether PFC is needed. Verdicts rest on these traits, never on names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesTraits {
    /// Whether switches pause their neighbours instead of dropping.
    pub pfc: bool,
    /// Loss recovery, by its registry name: "irn", "go-back-n"; "netrt" where switches repair losses.
    pub recovery: String,
    /// Congestion control, by its registry name; "none" for none.
    pub congestion: String,
    /// Which data packets RDMA's loss recovery acknowledges: "per-packet", "coalesced", "none"; empty for other
    /// transports.
    #[serde(default)]
    pub acks: String,
    /// Name, among the series of its case, of its control: the one that is equal but for PFC, or the name it would have
    /// in the study. None where it cannot be had, or where no series of the case has the other setting of PFC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Workloads with groups, in the scenario's order; a repetition completes as a whole.
    #[serde(default)]
    pub groups: Vec<GroupTraits>,
    /// Whether the series also has workloads without groups.
    #[serde(default)]
    pub ungrouped: bool,
}

/// A workload whose flows belong to groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroupTraits {
    /// Key of the workload in the scenario.
    pub workload: String,
    /// Kind of its groups.
    pub kind: GroupKind,
}

/// Kind of a workload's repetitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// All hosts send to one.
    Incast,
    /// All hosts send to all.
    AllToAll,
    /// Hosts compute and communicate in turn.
    Job,
}

impl GroupKind {
    /// Returns the name of one repetition of this kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Incast => "incast",
            Self::AllToAll => "all-to-all",
            Self::Job => "job",
        }
    }
}

/// A metric by which series are compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Compared {
    /// Name of the metric in `summary.json`.
    pub(crate) metric: String,
    /// Displayed name of the metric.
    pub(crate) title: String,
    /// The kind of thing that completes in this time, if the metric is a decisive one: "flows", "jobs of collective".
    pub(crate) completes: Option<String>,
}

impl SeriesTraits {
    /// Returns whether groups count rather than single flows: there is nothing but groups, or there are jobs.
    pub(crate) fn goes_by_groups(&self) -> bool {
        let has_jobs = self.groups.iter().any(|group| group.kind == GroupKind::Job);
        has_jobs || !(self.ungrouped || self.groups.is_empty())
    }

    /// Returns the metrics by which the series is compared with others. If several workloads have groups, each has its
    /// own.
    pub(crate) fn compared(&self) -> Vec<Compared> {
        if !self.goes_by_groups() {
            let of_flows = |metric: &str| Compared {
                metric: metric.to_owned(),
                title: Metric::find(metric).map_or(metric, |metric| metric.title).to_owned(),
                completes: (metric == FLOW_COMPLETION).then(|| "flows".to_owned()),
            };
            return COMPARED.map(of_flows).into();
        }
        let of_groups = |group: &GroupTraits| {
            let (kind, workload) = (group.kind.name(), &group.workload);
            let is_only = self.groups.iter().filter(|other| other.kind == group.kind).count() == 1;
            Compared {
                metric: match self.groups.len() {
                    1 => GROUP_COMPLETION.to_owned(),
                    _ => format!("{workload}.{GROUP_COMPLETION}"),
                },
                title: format!("{kind} completion time") + &if_many(!is_only, || format!(" ({workload})")),
                completes: Some(format!("{kind}s") + &if_many(!is_only, || format!(" of {workload}"))),
            }
        };
        self.groups.iter().map(of_groups).collect()
    }

    /// Returns the compared metrics that decide.
    pub(crate) fn decisive(&self) -> impl Iterator<Item = Compared> {
        self.compared().into_iter().filter(|compared| compared.completes.is_some())
    }

    /// Returns what must complete: "flows", "incasts and jobs".
    pub(crate) fn awaited(&self) -> String {
        if self.goes_by_groups() { self.kinds_of_groups() } else { "flows".into() }
    }

    /// Returns the kinds of groups: "incasts and jobs"; "groups" if no kind is known.
    pub(crate) fn kinds_of_groups(&self) -> String {
        let kinds: BTreeSet<GroupKind> = self.groups.iter().map(|group| group.kind).collect();
        let names: Vec<String> = kinds.into_iter().map(|kind| format!("{}s", kind.name())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if names.is_empty() { "groups".into() } else { all_of(&names) }
    }

    /// Returns the kind of a workload's groups.
    pub(crate) fn kind_of(&self, workload: &str) -> Option<GroupKind> {
        self.groups.iter().find(|group| group.workload == workload).map(|group| group.kind)
    }
}

fn if_many(many: bool, text: impl FnOnce() -> String) -> String {
    if many { text() } else { String::new() }
}
