//! `selvedge topology` and `selvedge workload`.

use selvedge_scenario::{Network, TopologyFacts, WorkloadFacts};

use crate::args::{Input, TopologyArgs, WorkloadArgs};
use crate::output::{Failure, json, print, say};
use crate::run::plan_of;

pub(crate) fn topology(args: &TopologyArgs) -> Result<(), Failure> {
    let facts = match &args.topology {
        Some(path) => {
            let (network, warnings) = Network::from_file(path)?;
            warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
            TopologyFacts::new(&network)
        }
        None => {
            let plan = plan_of(&Input {
                file: args.file.clone(),
                topology: None,
                flows: None,
                series: None,
                sets: args.sets.clone(),
                seeds: None,
            })?;
            plan.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
            TopologyFacts::new(&plan.series[0].network)
        }
    };
    print(&if args.json { json(&facts) + "\n" } else { facts.to_string() })
}

pub(crate) fn workload(args: &WorkloadArgs) -> Result<(), Failure> {
    let plan = plan_of(&args.input)?;
    plan.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    let facts = WorkloadFacts::new(&plan);
    print(&if args.json { json(&facts) + "\n" } else { facts.to_string() })
}
