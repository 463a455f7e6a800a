//! RDMA programs on a network that loses, repeats, reorders and damages packets: every byte must arrive.

use std::process::Command;

use selvedge_dataplane::impair::{Class, Impairment, Loss, Plan, Report, Testbed};
use selvedge_units::{Chance, Duration, TwoStates};

use crate::support::{FIRST, Pair, Place, build, have};

fn percent(p: f64) -> Chance {
    Chance::from_f64(p / 100.0).expect("a probability")
}

/// Returns all impairments of RoCE's packets, each with this percentage.
fn everything(p: f64) -> Impairment {
    Impairment {
        loss: Loss::Random(percent(p)),
        duplicate: percent(p),
        corrupt: percent(p),
        corrupt_payload: percent(p),
        reorder: percent(p),
        delay: Duration::from_us(50),
        ..only_roce()
    }
}

/// Returns no impairments, restricted to RoCE's packets: TCP, by which the programs find each other, is left alone,
/// because its timeouts would take most of the time.
pub(crate) fn only_roce() -> Impairment {
    Impairment { concerns: [true, true, true, false], ..Impairment::default() }
}

/// Creates a network with this impairment in both directions; prints the reason if it cannot.
pub(crate) fn network(name: &str, impairment: &Impairment) -> Option<Bed> {
    let names = ["a", "b"].map(|end| format!("sv-{name}-{}-{end}", std::process::id()));
    let impairments = [impairment.clone(), impairment.clone()];
    let plan = Plan { names: names.clone(), mtu: 1_500, impairments, seed: 7 };
    match Testbed::open(&plan) {
        Ok(testbed) => Some(Bed { names, testbed }),
        Err(problem) => {
            eprintln!("skipped: no impairment device here: {problem}");
            None
        }
    }
}

pub(crate) struct Bed {
    names: [String; 2],
    testbed: Testbed,
}

impl Bed {
    pub(crate) fn pair<'a>(&'a self, environment: &'a [(&'a str, &'a str)]) -> Pair<'a> {
        let place = |at: usize| Place { namespace: Some(&self.names[at]), device: "sv_eth0" };
        Pair { server: place(0), client: place(1), address: FIRST, environment }
    }
    pub(crate) fn close(self) -> Report {
        self.testbed.close().expect("each device closes without error")
    }
}

/// Runs the program that checks contents; returns how many of its thousand datagrams arrived, and the report of the
/// network.
fn check(name: &str, impairment: &Impairment, recovery: &str) -> Option<(u64, Report)> {
    check_in(name, impairment, &[("SELVEDGE_RECOVERY", recovery)])
}
/// Runs the program that checks contents in this environment; returns how many of its thousand datagrams arrived, and
/// the report of the network.
fn check_in(name: &str, impairment: &Impairment, environment: &[(&str, &str)]) -> Option<(u64, Report)> {
    let program = build("integrity.c", &["-lrdmacm", "-libverbs"])?;
    let bed = network(name, impairment)?;
    eprintln!("{environment:?}: {impairment:?}");
    let said = bed.pair(environment).connect(&[&program], &[&program, FIRST], 7_777);
    let expected = "writes and reads: same\nadditions: each once\nsends: 0 wrong\ndatagrams: 0 wrong\narrived: ";
    let arrived = said.strip_prefix(expected).unwrap_or_else(|| panic!("{said}"));
    Some((arrived.trim().parse().expect("a number"), bed.close()))
}

#[test]
fn every_byte_arrives_without_impairments() {
    let Some((arrived, report)) = check("pure", &only_roce(), "irn") else { return };
    assert_eq!(arrived, 1_000);
    for counts in report.counts.as_flattened() {
        assert_eq!((counts.sent, counts.reordered), (counts.delivered, 0), "{counts:?}");
    }
}

#[test]
fn every_byte_arrives_whatever_happens_to_packets() {
    let cases = [("irn", 1.0), ("irn", 5.0), ("irn-paper", 1.0), ("go-back-n", 1.0), ("melo", 1.0), ("melo", 5.0)];
    for (recovery, p) in cases {
        let Some((arrived, report)) = check("all", &everything(p), recovery) else { return };
        assert!((800..1_200).contains(&arrived), "{recovery} {p}: {arrived}");
        for direction in &report.counts {
            let data = direction[Class::Data as usize];
            let each = [data.lost, data.duplicated, data.corrupted, data.corrupted_payload, data.reordered];
            assert!(each.iter().all(|&count| count > 0), "{recovery} {p}: {data:?}");
        }
    }
}

#[test]
fn every_byte_arrives_with_credits_and_with_the_drivers_fence() {
    for recovery in ["irn", "go-back-n"] {
        let environment = [("SELVEDGE_RECOVERY", recovery), ("SELVEDGE_CREDITS", "on"), ("SELVEDGE_FENCE", "on")];
        let Some((arrived, _)) = check_in("options", &everything(1.0), &environment) else { return };
        assert!((800..1_200).contains(&arrived), "{recovery}: {arrived}");
    }
}

#[test]
fn every_byte_arrives_when_packets_are_lost_in_bursts() {
    let states = TwoStates::bursts(8.0, percent(2.0)).expect("valid burst parameters");
    let impairment = Impairment { loss: Loss::TwoStates(states), ..only_roce() };
    for recovery in ["irn", "melo"] {
        let Some((arrived, report)) = check("burst", &impairment, recovery) else { return };
        // The thousand datagrams meet about three bursts; which packets a burst hits depends on earlier
        // retransmissions.
        assert!((800..=1_000).contains(&arrived), "{recovery}: {arrived}");
        assert!(report.counts.iter().all(|direction| direction[Class::Data as usize].lost > 0));
    }
}

#[test]
fn with_melo_memory_changes_in_the_order_of_writes() {
    // A hole lasts for a round trip, 2 ms, which a program that watches memory cannot miss.
    let impairment = Impairment { loss: Loss::Random(percent(5.0)), delay: Duration::from_us(1_000), ..only_roce() };
    let Some(program) = build("ordered.c", &["-lrdmacm", "-libverbs"]) else { return };
    for recovery in ["melo", "irn"] {
        let Some(bed) = network("order", &impairment) else { return };
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        let said = bed.pair(&environment).connect(&[&program], &[&program, FIRST], 7_778);
        let report = bed.close();
        let ahead = said.strip_prefix("wrong: 0\nahead: ").unwrap_or_else(|| panic!("{recovery}: {said}"));
        let ahead: u64 = ahead.trim().parse().expect("a number");
        assert!(report.counts[1][Class::Data as usize].lost > 20, "{recovery}: {:?}", report.counts);
        assert_eq!(ahead > 0, recovery == "irn", "{recovery}: {ahead} looks at memory saw a later Write first");
    }
}

#[test]
fn perftest_completes_whatever_happens_to_packets() {
    if !have(&["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_send_lat", "ibv_rc_pingpong", "rping"]) {
        return;
    }
    let Some(bed) = network("perf", &everything(1.0)) else { return };
    for recovery in ["irn", "melo"] {
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        let pair = bed.pair(&environment);
        for program in ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_send_lat"] {
            pair.run(program, &["-F", "-n", "100"]);
        }
    }
    let pair = bed.pair(&[]);
    pair.run("ibv_rc_pingpong", &["-g", "1", "-n", "100", "-s", "20000", "-c"]);
    let rping = |who: &'static str| ["rping", who, "-a", FIRST, "-p", "7330", "-C", "20", "-V", "-S", "20000"];
    pair.connect(&rping("-s"), &rping("-c"), 7_330);
    let report = bed.close();
    assert!(report.counts.as_flattened().iter().any(|counts| counts.lost > 0));
}

#[test]
fn seeds_decide_what_happens() {
    let send = |seed: u64| {
        let impairments = [everything(10.0), Impairment::default()];
        let names = ["a", "b"].map(|end| format!("sv-seed-{}-{end}", std::process::id()));
        let first = names[0].clone();
        let plan = Plan { names, mtu: 1_500, impairments, seed };
        let testbed = match Testbed::open(&plan) {
            Ok(testbed) => testbed,
            Err(problem) => {
                eprintln!("skipped: no impairment device here: {problem}");
                return None;
            }
        };
        // The bash of the first namespace sends datagrams to RoCE's port, which nobody has bound.
        let script = "for n in $(seq 500); do echo datagram-with-a-whole-transport-header > /dev/udp/10.78.0.2/4791; done 2> /dev/null";
        let namespace = ["netns", "exec", &first, "bash", "-c", script];
        Command::new("ip").args(namespace).status().expect("ip is installed");
        let report = testbed.close().expect("each device closes without error");
        let data = report.counts[0][Class::Data as usize];
        Some((data.sent, data.lost, data.duplicated, data.corrupted))
    };
    let (Some(first), Some(again), Some(other)) = (send(1), send(1), send(2)) else { return };
    assert_eq!(first.0, 500);
    assert_eq!(first, again);
    assert_ne!(first, other);
}
