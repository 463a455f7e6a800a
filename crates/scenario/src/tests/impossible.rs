//! Tests that values which cannot be, alone or together, are answered with their place, their key and a remedy.

use expect_test::{ExpectFile, expect_file};
use selvedge_testkit::Answers;

use super::messages::LONG_CHAIN;
use super::{BASE, FAT_TREE, extended, impossible, plan, with_sets};

/// Checks that each scenario is refused, and that the errors are the committed ones.
fn check(committed: &ExpectFile, scenarios: &[String]) {
    let mut answers = Answers::beside(&[BASE, &extended("")]);
    for scenario in scenarios {
        answers.add("", scenario, &impossible(scenario));
    }
    committed.assert_eq(answers.text());
}

/// Like [`check`], for scenarios that end in `more`.
fn check_more(committed: &ExpectFile, more: &[&str]) {
    check(committed, &more.iter().map(|more| extended(more)).collect::<Vec<_>>());
}

#[test]
fn switches_and_nics() {
    check_more(
        &expect_file!["../snapshots/impossible/switches-and-nics.txt"],
        &[
            "[nic]\nmtu = '10KB'\n",
            "[nic]\ndata-class = 9\n",
            "[nic]\nclock-skew = '2%'\n",
            "[nic]\nclock-skew = 100\n",
            "[nic]\nclock-skew = '20000ppm'\n",
            "[nic]\njitter = '2ms'\n",
            "[switch.pfc]\nenabled = true\nheadroom = '250KB'\n",
            "[switch.pfc]\nenabled = true\nheadroom = '0B'\n",
            "[switch.pfc]\nenabled = true\nheadroom = '25KB'\n[switch.buffer.shared-buffer]\ntotal = '100KB'\n",
            "[switch.pfc]\nenabled = true\nquanta = 1\n",
            "[switch.pfc]\nenabled = true\nxon-gap = '219KB'\n",
            "[switch.buffer.input-queued]\nper-port = '1KB'\n",
            "[switch.ecn]\nenabled = true\nk-min = '500KB'\n",
            "[nic]\nmtu = '18446744073709551615B'\n",
            "[switch.buffer]\ntrimming = 'on'\n",
            "[switch.buffer.shared-buffer]\ntotal = '9000000TB'\n",
            "[switch.buffer.trimming.flow-queues]\nqueues = 0\n",
            "[switch.buffer.trimming.flow-queues]\nquantum = '20B'\n",
            "[switch.buffer.trimming.flow-queues]\nper-flow = '500B'\n",
            "[switch]\nweights = [1, 2]\n",
            "[switch]\nweights = [1, 2, 0, 0, 0, 0, 0, 0]\n[switch.buffer.input-queued]\ncrossbar-speed-up = 2\n",
            "[switch]\nweights = [1, 0, 0, 0, 0, 0, 2, 0]\n[switch.buffer.trimming]\n",
        ],
    );
}

#[test]
fn transports() {
    check_more(
        &expect_file!["../snapshots/impossible/transports.txt"],
        &[
            "[transport.recovery.irn]\nbdp-cap = 0\n",
            "[transport.recovery.irn]\n[transport.congestion.dctcp]\n[switch.ecn]\nenabled = false\n",
            "[transport.recovery.irn]\n[transport.congestion.dctcp]\ng = 0.0\n",
            "[transport.recovery.irn]\n[transport.congestion.swift]\nbeta = 2.0\n",
            "[transport.recovery.irn]\n[transport.congestion.hpcc]\ntarget-utilisation = 1.5\n",
            "[transport.recovery.go-back-n]\nacks = 'none'\nrto = 'off'\n[transport.congestion.aimd]\n",
            "[transport.tcp]\nmss = '2KB'\n",
            "[transport.tcp]\nmin-rto = '1ms'\nmax-rto = '1us'\n",
            "[transport.tcp]\ndelayed-ack = '600ms'\n",
            "[transport.tcp]\nwindow-scaling = false\nreceive-buffer = '1MB'\n",
            "[transport.tcp]\necn = 'off'\n[transport.tcp.congestion.dctcp]\n",
            "[transport.tcp.congestion.cubic]\nbeta = 1.5\n",
            "[transport.tcp]\n[transport.eqds]\n",
            "[transport.recovery.irn]\n[transport.eqds]\n",
            "[transport.eqds.eqif.rdma]\n",
            "[transport.eqds.eqif.tcp]\n",
            "[transport.tcp]\n[transport.eqds.eqif.tcp]\nlimit = 0\n",
            "[transport.tcp]\n[transport.eqds.eqif.tcp.red]\nmin = 30\nmax = 20\n",
            "[transport.tcp]\n[transport.eqds.eqif.tcp.red]\nmax = 'off'\n",
            "[transport.tcp]\n[transport.eqds.eqif.tcp]\nlimit = 'off'\n",
            "[transport.tcp]\n[transport.eqds.eqif.tcp.share]\nweight = 0\n",
            "[transport.tcp]\n[transport.eqds.eqif.tcp]\n[switch.pfc]\nenabled = true\n",
            "[transport.recovery.go-back-n]\n[transport.eqds.eqif.rdma]\nback-pressure = { cnp = {} }\n",
            "[transport.recovery.go-back-n]\n[transport.eqds.eqif.rdma]\nback-pressure = { pause = { resume = '1MB' } }\n",
            "[transport.recovery.go-back-n]\n[transport.congestion.hpcc]\n[transport.eqds.eqif.rdma]\n",
            "[transport.recovery.go-back-n]\n[transport.eqds.eqif.rdma]\n[switch.netrt]\nenabled = true\n",
            "[transport.recovery.go-back-n]\n[switch.netrt]\nenabled = true\npriority = 3\n",
            "[transport.recovery.irn]\nrto-high = '0ps'\n",
            "[transport.eqds]\nheader = '70KB'\n",
            "[transport.eqds]\ncontrol-frame = '65600B'\n",
            "[transport.eqds]\nack-after = '4GB'\n",
            "[transport.tcp]\n[transport.eqds.eqif]\nencapsulation = '70KB'\ntcp = {}\n",
            "[transport.ndp]\ninitial-window = 5_000_000\n[switch.buffer.trimming]\n",
        ],
    );
}

#[test]
fn workloads() {
    check_more(
        &expect_file!["../snapshots/impossible/workloads.txt"],
        &[
            "[[workload.incast]]\nreceiver = 99\nsenders = 3\nsize = '1MB'\n",
            "[workload.closed-loop]\noutstanding = 4_000_000_000\nsizes = { fixed = '4KB' }\n",
            "[workload.closed-loop]\nflows-per-client = 18446744073709551615\nsizes = { fixed = '4KB' }\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\nqueue-depth = 0\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\noperations = []\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = [['h0', 'h0']]\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = [['h0', 'h99']]\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\nhosts = ['h0']\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = [['h0', 'h1']]\nhosts = ['h0']\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\nreads = 129\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\nretries = 8\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\nload = 0.5\nthink = '1us'\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\nqueue-pairs = 20_000\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\n[nic]\nmtu = '1000B'\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\n[transport.tcp]\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\n[transport.recovery.irn]\n[transport.congestion.hpcc]\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\n[transport.recovery.go-back-n]\n[transport.congestion.swift]\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\noperations = ['read']\n[transport.recovery.go-back-n]\n[transport.congestion.dcqcn]\n",
            "[workload.collective]\nsize = '1MB'\noperation = 'tree-all-reduce'\n",
            "[workload.incast]\nsize = '1MB'\nsenders = 99\n",
            "[workload.verbs]\nsizes = { fixed = '4KB' }\n[beside]\nworkloads = ['verbs']\n",
            "[workload.permutation]\nsize = '900000000GB'\n",
        ],
    );
}

#[test]
fn whole_scenarios() {
    let base = extended("");
    let with = |extra: &str| format!("{base}{extra}");
    check(
        &expect_file!["../snapshots/impossible/whole-scenarios.txt"],
        &[
            BASE.to_owned(),
            base.replace("k = 4", "k = 5"),
            base.replace("40Gbps", "0Gbps"),
            base.replace("load = 0.7", "load = 1.7"),
            base.replace("load = 0.7", "load = 0.97"),
            base.replace("irn-heavy-tailed", "web-serch"),
            base.replace("cdf:irn-heavy-tailed", "file:missing.txt"),
            base.replace("[topology.fat-tree]\nk = 4\nlink", "[topology.fat-tree]\nk = 0\nlink"),
            with("[transport.recovery.irn]\n[transport.congestion.hpcc]\n")
            .replace(FAT_TREE, LONG_CHAIN)
            .replace("link = { rate = \"", "switch-link = { rate = \""),
            with("[[loss]]\nlink = 'core99'\nmodel.random.rate = 0.1\n"),
            with("[[failures]]\nlink = 'core0'\nat = '1ms'\nuntil = '1us'\n"),
            with("[measure]\nmiddle = 0\n"),
            with("sample = '0us'\n").replace("sample = '0us'\n", "").replacen("stop", "sample = '0us'\nstop", 1),
            base.replace("stop = { flows = 1000 }", "sample = '10ns'\nstop = { flows = 1_000_000_000 }"),
            with("[[loss]]\nlink = 'all'\nmodel.random.rate = '0.1%'\npackets = ['data']\n"),
            base.replace("stop = { flows = 1000 }", "stop = { flows = 0 }"),
            base.replace("stop = { flows = 1000 }", "stop = { time = '5000000s' }"),
            base.replace("2us", "1000s"),
            base.replace("stop = { flows = 1000 }", "stop = { flows = 1000 }\nseeds = []"),
            base.replace("stop = { flows = 1000 }", "stop = { flows = 1000 }\nseeds = 0"),
            base.replace("stop = { flows = 1000 }", "stop = { flows = 1000 }\nseeds = [1, 2, 1]"),
            with("[[series]]\npreset = 'irn'\n[[series]]\nname = 'low'\nset.'workload.poisson.load' = 1.5\n"),
            with("[[series]]\npreset = 'irn'\n[[series]]\nname = 'hot'\nset.'workload.poisson.load' = 0.98\n"),
            with("[[series]]\npreset = 'irn'\n[[case]]\nname = 'heavy'\nset.'workload.poisson.load' = 0.98\n"),
            "stop = { flows = 9 }\ntitle = 'narrow'\n[topology.dumbbell]\nleft = 2\nright = 2\nhost-link = { rate = '40Gbps', delay = '2us' }\n\
         bottleneck = { rate = '80Gbps', delay = '2us' }\n[workload.poisson]\nload = 0.7\nsizes = { fixed = '4KB' }\n\
         [[series]]\nname = 'slow'\npreset = 'eqds'\nset.'topology.dumbbell.bottleneck.rate' = '20Gbps'\n".to_owned(),
            with(&format!("[[series]]\npreset = 'irn'\nname = '{}'\n", "long".repeat(75))),
            with(&format!("[[case]]\nname = '{}'\n", "long".repeat(75))),
            base.replace("\"cdf:irn-heavy-tailed\"", "{ fixed = '1500.5B' }"),
            base.replace("load = 0.7", "load = 0.7\nstart = '1ms'").replace("stop = { flows = 1000 }", "stop = { time = '10us' }"),
            base.replace("stop = { flows = 1000 }", "stop = { flows = 10 }\nmeasure = { middle = 0.01 }"),
            with("[switch.buffer.shared-buffer]\ntotal = '9MB'\n").replace("40Gbps", "1bps"),
            base.replace("\"cdf:irn-heavy-tailed\"", "{ fixed = '1000TB' }"),
            base.replace("40Gbps", "101Tbps"),
            with("[transport.ndp]\n[switch.buffer.trimming]\npackets = 4_000_000_000\n").replace("40Gbps", "1Mbps"),
        ],
    );
}

#[test]
fn changes_on_the_command_line() {
    let mut answers = Answers::default();
    for set in ["topology.fat-tree.k=3", "switch.pfc={enabled=true, headroom='off'}", "seeds=0", "stop={}"] {
        let error = plan(&extended(""), &with_sets(&[set])).expect_err(set);
        answers.add("", format!("--set {set}\n"), &error);
    }
    expect_file!["../snapshots/impossible/changes.txt"].assert_eq(answers.text());
}
