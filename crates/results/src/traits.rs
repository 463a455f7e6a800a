//! What series are, as far as results depend on it, and by what they are compared.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use selvedge_units::words::all_of;
use serde::{Deserialize, Serialize};

use crate::metric::{COMPARED, FLOW_COMPLETION, GROUP_COMPLETION, Metric};

/// A series of the plan, as the caller declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesInfo {
    /// Its name; no other series of the study has it.
    pub name: String,
    /// Its name among the series of its case; the same as `name` without cases.
    pub series: String,
    /// The case of the study in which it runs: a load among several, say.
    pub case: Option<String>,
    /// What it is, for the verdict.
    pub traits: SeriesTraits,
    /// What ends its runs before all is done, for whoever wonders whether to give more.
    pub cut: Cut,
}

/// What ends a run before all is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cut {
    /// What the scenario says: `stop`.
    #[default]
    Written,
    /// The same; but whenever that is, there is traffic in flight: it never ends.
    Always,
    /// What the built-in study says, which nobody has written for this.
    BuiltIn,
}

/// What matters about a series when one asks whether PFC is needed. Verdicts rest on these, never
/// on names.
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
    /// Its control: the name, among the series of its case, of the one that is the same with PFC switched, or what that
    /// would be called if the study had it. None where it cannot be had, or where no series of the case has the other
    /// side of PFC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Its workloads with groups, in the scenario's order: each repetition is one thing to wait for.
    #[serde(default)]
    pub groups: Vec<GroupTraits>,
    /// Whether it has workloads without groups beside these.
    #[serde(default)]
    pub ungrouped: bool,
}

/// A workload whose flows belong to groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroupTraits {
    /// Its key in the scenario.
    pub workload: String,
    /// What its groups are.
    pub kind: GroupKind,
}

/// What a repetition of a workload is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// All send to one.
    Incast,
    /// All send to all.
    AllToAll,
    /// Hosts compute and communicate in turn.
    Job,
}

impl GroupKind {
    /// One of them.
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
    /// Its name in `summary.json`.
    pub(crate) metric: String,
    /// Its name for people.
    pub(crate) title: String,
    /// What it is the completion time of, if it is one of those that decide: "flows", "jobs of collective".
    pub(crate) completes: Option<String>,
}

impl SeriesTraits {
    /// Whether groups are what one waits for, not single flows: there is nothing but groups, or there are jobs.
    pub(crate) fn goes_by_groups(&self) -> bool {
        let has_jobs = self.groups.iter().any(|group| group.kind == GroupKind::Job);
        has_jobs || !(self.ungrouped || self.groups.is_empty())
    }

    /// The metrics by which it is compared with others. Of several workloads with groups, each has its own.
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

    /// Those of them that decide.
    pub(crate) fn decisive(&self) -> impl Iterator<Item = Compared> {
        self.compared().into_iter().filter(|compared| compared.completes.is_some())
    }

    /// What one waits for: "flows", "incasts and jobs".
    pub(crate) fn awaited(&self) -> String {
        if self.goes_by_groups() { self.kinds_of_groups() } else { "flows".into() }
    }

    /// "incasts and jobs"; "groups" where nobody said what they are.
    pub(crate) fn kinds_of_groups(&self) -> String {
        let kinds: BTreeSet<GroupKind> = self.groups.iter().map(|group| group.kind).collect();
        let names: Vec<String> = kinds.into_iter().map(|kind| format!("{}s", kind.name())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if names.is_empty() { "groups".into() } else { all_of(&names) }
    }

    /// What groups of a workload are.
    pub(crate) fn kind_of(&self, workload: &str) -> Option<GroupKind> {
        self.groups.iter().find(|group| group.workload == workload).map(|group| group.kind)
    }
}

fn if_many(many: bool, text: impl FnOnce() -> String) -> String {
    if many { text() } else { String::new() }
}
