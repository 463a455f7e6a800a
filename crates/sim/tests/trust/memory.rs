//! Memory of a run: flows that have ended take none.

use std::process::Command;

use selvedge_sim::topology::FatTree;
use selvedge_sim::workload::{ClosedLoopConfig, Many, Sizes};
use selvedge_telemetry::{FlowRow, Observer, PortRow};
use selvedge_units::{Bytes, Duration};

use crate::support::{Scene, Series, link};

/// Environment variable with the child's arguments: the series, and the number of flows of each host.
const ORDERS: &str = "SELVEDGE_TEST_MEMORY";

#[test]
fn flows_that_come_and_go_leave_nothing_behind() {
    if let Ok(orders) = std::env::var(ORDERS) {
        let (series, flows) = orders.split_once(' ').expect("the variable holds a series and a number");
        let series = Series::ALL.into_iter().find(|known| format!("{known:?}") == series).expect("a known series");
        return child(series, flows.parse().expect("a number of flows"));
    }
    if !std::path::Path::new("/proc/self/status").exists() {
        eprintln!("skipped: peak memory is read from /proc/self/status, which this system does not have");
        return;
    }
    for series in [Series::Irn, Series::RocePfc] {
        // Pages of the program that are read count, too, and differ between runs.
        let few = (0..3).map(|_| peak_kb(series, 200)).max().expect("three peaks were measured");
        let many = peak_kb(series, 20_000);
        assert!(many < few + 512, "{series:?}: {few} kB for 3,200 flows, {many} kB for 320,000");
    }
}

/// Returns the peak memory, in kB, of a process that runs `flows` flows per host.
fn peak_kb(series: Series, flows: u64) -> u64 {
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "memory::flows_that_come_and_go_leave_nothing_behind", "--nocapture"])
        .env(ORDERS, format!("{series:?} {flows}"))
        .output()
        .expect("the child process starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let peak = text.lines().find_map(|line| line.split_once("VmHWM:")?.1.trim().strip_suffix(" kB")?.parse().ok());
    peak.unwrap_or_else(|| panic!("no peak in {text}"))
}

/// Observer that counts flows and keeps none.
struct Count(u64);

impl Observer for Count {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        self.0 += rows.len() as u64;
    }
    fn on_ports(&mut self, _: &[PortRow]) {}
}

/// Runs the child process: sixteen hosts send single packets to each other, one after another.
fn child(series: Series, flows: u64) {
    let scene = Scene::new(FatTree { k: 4, link: link(40, 200) }.build().unwrap(), series).with(|config| {
        config.workload.closed_loop = Many::from(ClosedLoopConfig {
            clients: None,
            servers: None,
            outstanding: 1,
            sizes: Sizes::Fixed(Bytes::new(1_000)),
            flows_per_client: Some(flows),
            think: Duration::ZERO,
            start: Duration::ZERO,
            jitter: Duration::ZERO,
        });
    });
    let mut count = Count(0);
    scene.run_with(&mut count);
    assert_eq!(count.0, 16 * flows);
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc/self/status is readable");
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM:")).expect("the kernel reports VmHWM"));
}
