//! Whole runs of every series: the parts of every flow add up to its completion time, and events of a run show in the
//! parts. `support` checks the sums.

use selvedge_telemetry::TimePart;
use selvedge_units::Duration;

use crate::support::{explain_point, plan};

const FAT_TREE: &str = r#"
title = "Whole runs"
seeds = 1
stop = { flows = 150, time = "6ms" }

[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }

[workload.poisson]
load = 0.8
sizes = "cdf:irn-heavy-tailed"

[[workload.incast]]
size = "150KB"
senders = 6
jitter = "1us"

[[series]]
preset = "irn"
[[series]]
preset = "irn+pfc"
[[series]]
preset = "roce+pfc"
[[series]]
preset = "roce"
"#;

#[test]
fn parts_add_up_in_every_series() {
    let plan = plan(FAT_TREE, &[]);
    for point in plan.points() {
        let run = explain_point(&plan, point);
        let name = &plan.series[point.series].name;
        let some = |part| run.sum(part) > Duration::ZERO;
        assert!(some(TimePart::Queueing) && some(TimePart::Nic), "{name}");
        assert_eq!(some(TimePart::Pause), run.record.pause_frames > 0, "{name}");
        // A retransmission need not have delayed a flow.
        assert!(!some(TimePart::Recovery) || run.record.retransmissions > 0, "{name}");
        assert!(!some(TimePart::Timeout) || run.record.timeouts > 0, "{name}");
        assert!(!some(TimePart::Pacing) && !some(TimePart::Window) && !some(TimePart::Outage), "{name}");
    }
}

#[test]
fn parts_add_up_for_tcp_whatever_it_is_set_to() {
    let all = r#"
[[series]]
preset = "tcp"
[[series]]
preset = "tcp+dctcp"
[[series]]
preset = "tcp+cubic+pfc"
[[series]]
name = "connecting"
preset = "tcp"
set.'transport.tcp.handshake' = true
set.'transport.tcp.initial-rto' = "500us"
set.'transport.tcp.fin' = true
[[series]]
name = "plain"
preset = "tcp"
set.'transport.tcp.sack' = false
set.'transport.tcp.timestamps' = false
set.'transport.tcp.limited-transmit' = false
set.'transport.tcp.receive-buffer' = "20KB"
"#;
    let plan = plan(&(FAT_TREE[..FAT_TREE.find("[[series]]").unwrap()].to_owned() + all), &[]);
    for point in plan.points() {
        let run = explain_point(&plan, point);
        let name = &plan.series[point.series].name;
        let some = |part| run.sum(part) > Duration::ZERO;
        assert!(some(TimePart::Queueing) && some(TimePart::Window), "{name}");
        assert!(!some(TimePart::Cap) && !some(TimePart::Pacing) && !some(TimePart::Outage), "{name}");
        assert_eq!(some(TimePart::Pause), run.record.pause_frames > 0, "{name}");
        assert_eq!(some(TimePart::Timeout), run.record.timeouts > 0, "{name}");
        assert_eq!(some(TimePart::Recovery), run.record.retransmissions > 0, "{name}");
    }
}

#[test]
fn parts_add_up_for_all_other_transports() {
    let presets =
        ["mptcp", "mptcp+cubic+spray", "netrt+spray", "melo+dcqcn", "ndp", "eqds", "eqds+rts", "irn+hpcc+flowlet"];
    let all: String = presets.iter().map(|preset| format!("[[series]]\npreset = \"{preset}\"\n")).collect();
    let plan = plan(&(FAT_TREE[..FAT_TREE.find("[[series]]").unwrap()].to_owned() + &all), &[]);
    for point in plan.points() {
        let run = explain_point(&plan, point);
        assert!(run.sum(TimePart::Queueing) > Duration::ZERO, "{}", plan.series[point.series].name);
    }
}
