//! Many queue pairs with few resources: slow links, slow devices, busy processors. The tests configure no loss, and no
//! connection may break.

use std::process::{Child, Command, Stdio};

use selvedge_dataplane::impair::{Class, Impairment};

use crate::impaired::{network, only_roce};
use crate::support::{Namespaces, Pair, have, shell};

/// Programs of perftest with many queue pairs, each of which takes a few seconds at 100 Mb/s.
const MANY: &[(&str, &[&str])] = &[
    ("ib_write_bw", &["-q", "16", "-s", "1048576", "-n", "5"]),
    ("ib_read_bw", &["-q", "16", "-s", "65536", "-n", "20"]),
    ("ib_send_bw", &["-q", "16", "-s", "65536", "-n", "10", "-b"]),
];

/// Programs of perftest in the other modes, for which one connection is enough.
const OTHERS: &[(&str, &[&str])] = &[
    ("ib_write_bw", &["-s", "2097152", "-n", "5"]),
    ("ib_send_bw", &["-q", "4", "--use-srq", "-s", "65536", "-n", "20"]),
    ("ib_send_bw", &["-c", "UC", "-s", "65536", "-n", "50"]),
    ("ib_send_bw", &["-c", "UD", "-n", "2000"]),
    ("ib_atomic_bw", &["-q", "4", "-n", "200"]),
    ("ib_send_lat", &["-n", "200"]),
];

fn run(pair: &Pair<'_>, program: &str, words: &[&str]) {
    pair.run(program, &[&["-F"], words].concat());
}

fn has_programs() -> bool {
    have(&["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_send_lat"])
}

#[test]
fn perftest_completes_on_a_slow_link() {
    if !has_programs() || !have(&["tc"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("slow") else { return };
    for name in &namespaces.names {
        let shaper = "tc qdisc replace dev eth0 root tbf rate 100mbit burst 64kb latency 20ms";
        if let Err(problem) = shell(&format!("ip netns exec {name} {shaper}")) {
            eprintln!("skipped: no shaper here: `{shaper}`: {problem}");
            return;
        }
    }
    for recovery in ["irn", "melo", "go-back-n"] {
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        for (program, words) in MANY {
            run(&namespaces.pair(&environment), program, words);
        }
    }
    for (program, words) in OTHERS {
        run(&namespaces.pair(&[]), program, words);
    }
}

#[test]
fn nothing_floods_a_device_that_is_slow() {
    if !has_programs() {
        return;
    }
    /// Packets of 1,024 bytes that the program below transfers.
    const USEFUL: u64 = 16 * 1_024 * 4;
    let quiet = Impairment { ..only_roce() };
    for recovery in ["irn", "melo", "go-back-n"] {
        let Some(bed) = network("flood", &quiet) else { return };
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        run(&bed.pair(&environment), "ib_read_bw", &["-q", "16", "-s", "262144", "-n", "8"]);
        run(&bed.pair(&environment), "ib_write_bw", &["-q", "1", "-s", "1048576", "-n", "32"]);
        let report = bed.close();
        let sent: u64 = report.counts.iter().map(|direction| direction[Class::Data as usize].sent).sum();
        let dropped: u64 = report.overflowed.iter().sum();
        assert!(sent < USEFUL * 3 / 2, "{recovery}: {sent} packets for {USEFUL}");
        assert!(dropped < USEFUL / 4, "{recovery}: {dropped} of {sent} were too many for the device");
    }
}

/// Programs that only compute. Dropping the value ends them.
struct Busy(Vec<Child>);

impl Busy {
    fn new(loops: usize) -> Self {
        let begin = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Self((0..loops).map(|_| begin().expect("sh runs")).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn connections_outlast_processors_that_others_want() {
    if !has_programs() {
        return;
    }
    let Some(namespaces) = Namespaces::new("busy") else { return };
    let _busy = Busy::new(10);
    for recovery in ["irn", "melo"] {
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        let pair = namespaces.pair(&environment);
        run(&pair, "ib_read_bw", &["-q", "64", "-b", "-s", "4097", "-n", "20"]);
        run(&pair, "ib_write_bw", &["-q", "64", "-b", "-s", "16384", "-n", "10"]);
    }
}
