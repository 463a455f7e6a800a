//! Tests of the names of workloads and flows in messages.

use selvedge_sim::record::FlowKey;

use super::{BASE, extended, plan, with_sets};
use crate::{Changes, WorkloadFacts};

#[test]
fn several_workloads_share_the_flows_and_the_time_of_a_run() {
    let text = "title = 't'\nstop = { flows = 600 }\n[topology.dumbbell]\nleft = 2\nright = 2\nhost-link = { rate = \
                '25Gbps', delay = '600ns' }\nbottleneck = { rate = '100Gbps', delay = '1us' }\n[[workload.poisson]]\n\
                load = 0.1\nsizes = { fixed = '100KB' }\n[[workload.poisson]]\nload = 0.3\nsizes = { fixed = '1KB' }\n";
    let durations = |sets: &[&str]| {
        let facts = WorkloadFacts::new(&plan(text, &with_sets(sets)).expect("the scenario is valid"));
        facts.workloads.iter().map(|source| source.duration_us.expect("a finite duration")).collect::<Vec<f64>>()
    };
    // 12,500 and 3,750,000 flows in a second.
    let together = 600.0 / 3_762_500.0 * 1e6;
    assert!(durations(&[]).iter().all(|us| (us - together).abs() < 1e-6), "{:?}", durations(&[]));
    assert_eq!(durations(&["stop.time=100us"]), [100.0, 100.0]);
}

#[test]
fn operations_of_one_workload_are_one_in_titles_and_told_apart_in_what_is_shown() {
    let text = extended("[[workload.verbs]]\nsizes = { fixed = '4KB' }\noperations = ['write', 'read', 'send']\n");
    let plan = plan(&text, &Changes::default()).expect("the scenario is valid");
    assert!(plan.in_one_line().ends_with("poisson at 70 % load, verbs"), "{}", plan.in_one_line());
    let names: Vec<String> = crate::WorkloadFacts::new(&plan).workloads.into_iter().map(|source| source.name).collect();
    assert_eq!(names, ["poisson", "verbs.write", "verbs.read", "verbs.send"]);
}

#[test]
fn flows_of_schedules_can_be_traced() {
    let text = BASE.replace("[workload.poisson]\nload = 0.7\nsizes = \"cdf:irn-heavy-tailed\"\n", "");
    let text = format!("{text}[workload.collective]\noperation = 'ring-all-reduce'\nsize = '1MB'\nrepeat = 2\n");
    let plan = plan(&text, &Changes::default()).expect("the scenario is valid");
    let find = |id: u64| plan.series[0].find_flow(1, FlowKey { workload: 0, id });
    // Twice 2 x 15 steps of 16 hosts.
    assert_eq!((find(0), find(959)), (Ok(()), Ok(())));
    assert!(find(960).expect_err("should be refused").contains("has flows 0 to 959 of workload 0 (collective)"));
}
