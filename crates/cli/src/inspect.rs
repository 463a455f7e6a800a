//! Commands `selvedge topology`, `selvedge workload`, `selvedge footprint` and `selvedge presets`.

use selvedge_scenario::{
    Changes, Device, DeviceTable, FootprintFacts, NicUse, TopologyFacts, WorkloadFacts, network_from_file,
    network_of_scenario, scheme_names,
};

use crate::args::{FootprintArgs, Input, TopologyArgs, WorkloadArgs};
use crate::output::{Failure, json, print, say};
use crate::run::{plan_of, scenario_in};

pub(crate) fn topology(args: &TopologyArgs) -> Result<(), Failure> {
    let changes = Changes { sets: args.sets.clone(), series: args.series.clone(), ..Changes::default() };
    let (network, framing, warnings) = match (&args.file, &args.topology) {
        (None, Some(topology)) => network_from_file(topology, &changes)?,
        (file, topology) => {
            let file = file.as_deref().map(scenario_in);
            network_of_scenario(file.as_deref(), &Changes { topology: topology.clone(), ..changes })?
        }
    };
    warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    let facts = TopologyFacts::new(&network, framing);
    print(&if args.json { json(&facts) + "\n" } else { facts.to_string() })
}

pub(crate) fn workload(args: &WorkloadArgs) -> Result<(), Failure> {
    let plan = plan_of(&args.input)?;
    plan.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    let facts = WorkloadFacts::new(&plan);
    print(&if args.json { json(&facts) + "\n" } else { facts.to_string() })
}

pub(crate) fn footprint(args: &FootprintArgs) -> Result<(), Failure> {
    let plan = plan_of(&Input {
        sweeps: Vec::new(),
        file: args.file.clone(),
        topology: None,
        flows: None,
        series: Some(args.series.clone().unwrap_or_else(|| scheme_names().join(","))),
        sets: args.sets.clone(),
        seeds: None,
    })?;
    let nic = NicUse { cache: args.cache, queue_pairs: args.qps, work_requests: args.wqes };
    let facts = FootprintFacts::new(&plan, nic)
        .map_err(|what| Failure::input(format!("{what}; choose schemes by --series, as in --series irn,roce")))?;
    print(&if args.json { json(&facts) + "\n" } else { facts.to_string() })
}

pub(crate) fn presets(name: Option<&str>, as_json: bool) -> Result<(), Failure> {
    let Some(name) = name else {
        let all = DeviceTable::new();
        return print(&if as_json { json(&all) + "\n" } else { all.to_string() });
    };
    let device = Device::named(name)?;
    print(&if as_json { json(device) + "\n" } else { device.to_string() })
}
