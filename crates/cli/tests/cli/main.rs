//! Tests of the program from outside: exit status, messages and their streams, files left behind.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use expect_test::expect_file;
use selvedge_testkit::texts::{NS3_FLOWS as FLOWS, NS3_TOPOLOGY as TOPOLOGY, SCENARIO as SMALL};
use selvedge_testkit::{Answers, command_line};
use serde_json::Value;

mod compare;
mod files;
mod open;
mod replay;
mod running;
mod schema;
mod serve;
mod studies;
mod sweeps;
mod terminal;

/// Folder to work in.
struct Scratch(selvedge_testkit::Scratch);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(selvedge_testkit::Scratch::new(&format!("cli-{name}")))
    }
    fn with(self, name: &str, content: &str) -> Self {
        Self(self.0.with(name, content))
    }
    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.current_dir(self.0.path()).args(arguments).env_remove("COLUMNS");
        command
    }
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }
    /// Runs the program and expects this exit status; returns its standard output and error.
    fn expect(&self, status: i32, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{out}\n{error}");
        (out, error)
    }
    /// Begins a study with `seeds` seeds, whose results go to `out`, and interrupts it, like Ctrl-C, when some of its
    /// points are complete. If the study ends before, because other processes had the processor, a longer study is
    /// begun. Returns the study's output, and the number of seeds.
    #[cfg(unix)]
    #[expect(clippy::disallowed_methods, reason = "a test of a process waits for it")]
    fn interrupt(&self, signal: &str, seeds: u32, begin: impl Fn(&str) -> Command) -> (Output, usize) {
        let is_under_way = || fs::read_dir(self.join("out.partial/parts")).is_ok_and(|parts| parts.count() > 3);
        for seeds in [1, 4, 16].map(|longer| seeds * longer) {
            let mut study = begin(&seeds.to_string());
            let mut child = study.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
            let has_ended = |child: &mut Child| child.try_wait().expect("a child process").is_some();
            while !has_ended(&mut child) && !is_under_way() {
                std::thread::sleep(Duration::from_millis(10));
            }
            // The process id is not reused before the child is waited for.
            if !has_ended(&mut child) {
                let pid = child.id().to_string();
                assert!(Command::new("kill").args([signal, &pid]).status().expect("kill exists").success());
            }
            let output = child.wait_with_output().expect("the program ends");
            if !self.join("out").exists() {
                return (output, seeds as usize);
            }
            fs::remove_dir_all(self.join("out")).expect("a removable folder");
        }
        panic!("each of three studies ended before it was interrupted");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

#[test]
fn wrong_input_is_answered_in_one_line_with_status_2() {
    let scratch = Scratch::new("wrong")
        .with("ok.toml", SMALL)
        .with("typo.toml", &SMALL.replace("load =", "laod ="))
        .with("topology.txt", TOPOLOGY)
        .with("flow.txt", FLOWS)
        .with("strange.txt", "1\n1 9 3 100 10000 0.001\n")
        .with("unlinked.txt", "5 1 3\n4\n0 4 40Gbps 1us 0\n2 4 40Gbps 1us 0\n3 4 40Gbps 1us 0\n")
        .with("broken.txt", "4 1 3\n0\n0 1 10Gbps\n")
        .with("bytes.bin", "\u{0}\u{1}")
        .with("empty/readme", "")
        .with("half.partial/unfinished.json", "{}")
        .with("figure/scenario.toml", SMALL)
        .with("figure/expect.toml", "[[expect]]\nsay='x'\nmetric='speed'\nof='irn'\nvalue={at-most=1}\n");
    let cases: &[&[&str]] = &[
        &["run", "missing.toml"],
        &["run", "empty"],
        &["run", "typo.toml"],
        &["run", "ok.toml", "--set", "switch.pfc.headrom=1KB"],
        &["run", "ok.toml", "--set", "topology.fat-tree.k=5"],
        &["run", "ok.toml", "--set", "workload.poisson.load=1e-300"],
        &["run", "ok.toml", "--set", "workload.poisson.load=1e-6", "--set", "stop.time=10us"],
        &["run", "ok.toml", "--seeds", "0"],
        &["run", "ok.toml", "--seeds", "1,1"],
        &["run", "ok.toml", "--seeds", "1,1", "--set", "seeds=2"],
        &["run", "ok.toml", "--set", "seeds=0"],
        &["run", "ok.toml", "--topology", "missing.txt"],
        &["run", "ok.toml", "--topology", "broken.txt"],
        &["run", "ok.toml", "--flows", "broken.txt"],
        &["run", "ok.toml", "--seeds", "x"],
        &["run", "ok.toml", "--series", "irn,rocee"],
        &["run", "ok.toml", "--series", "irn,irn"],
        &["run", "ok.toml", "--series", "irn,irn+dynamic-rto", "--set", "transport.recovery.irn.rto-low=0us"],
        &["run", "ok.toml", "--set", "transport.recovery.roce.timeouts=on"],
        &["run", "ok.toml", "--series", "irn,irn+hls", "--set", "transport.recovery.irn.sack=false"],
        &["run", "ok.toml", "--series", "irn,irn+pfc", "--set", "switch.buffer={fair-queued={}}"],
        &["run", "ok.toml", "--out", "ok.toml"],
        &["run", "ok.toml", "--out", "ok.toml/below"],
        &["run", "ok.toml", "--out", "empty"],
        &["run", "ok.toml", "--threads", "0"],
        &["run", "ok.toml", "--seeds", "-1"],
        &["run", "--topology", "topology.txt"],
        &["run", "--flows", "flow.txt"],
        &["run", "--topology", "flow.txt", "--flows", "topology.txt"],
        &["run", "--topology", "topology.txt", "--flows", "strange.txt"],
        &["run", "--topology", "unlinked.txt", "--flows", "flow.txt"],
        &["run", "--topology", "broken.txt", "--flows", "flow.txt"],
        &["run", "--topology", "topology.txt", "--flows", "missing.txt"],
        &["run", "--resume", "empty"],
        &["run", "--resume", "empty", "ok.toml"],
        &["run", "ok.toml", "--trace", "flow"],
        &["run", "ok.toml", "--trace", "flow=99999999"],
        &["run", "ok.toml", "--trace", "flow=1:0"],
        &["run", "ok.toml", "--trace", "port=h99:core0"],
        &["run", "ok.toml", "--trace-dir", "here"],
        &["topology", "--topology", "bytes.bin"],
        &["check", "empty"],
        &["check", "ok.toml"],
        &["check", "figure"],
        &["replay", "irn-receiver", "missing"],
        &["explain", "missing"],
        &["explain", "empty"],
        &["explain", "half"],
        &["explain", "half.partial"],
        &["explain", "empty", "--flow", "first"],
        &["explain", "empty", "--flow", "1", "--worst", "2"],
        &["explain", "empty", "--worst", "0"],
        &["footprint", "missing.toml"],
        &["footprint", "--cache", "0B"],
        &["footprint", "--cache", "4"],
        &["footprint", "--qps", "99999999999"],
        &["footprint", "--series", "irn,bogus"],
        &["footprint", "--series", "roce+eqds"],
        &["footprint", "--series", "irn,tcp"],
        &["frobnicate"],
    ];
    let mut answers = Answers::default();
    for arguments in cases {
        let (out, error) = scratch.expect(2, arguments);
        assert!(out.is_empty(), "{arguments:?}: {out}");
        answers.add_command(&command_line("selvedge", arguments), &scratch.0.normalised(&error));
    }
    expect_file!["../snapshots/wrong-input.txt"].assert_eq(answers.text());
    assert!(!scratch.join("results").exists(), "nothing was written");
}

#[test]
fn looking_before_running() {
    let scratch = Scratch::new("look").with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS);
    let (out, _) = scratch.expect(0, &["topology"]);
    assert!(out.contains("base RTT          24 us") && out.contains("BDP               120000 bytes"), "{out}");
    let (out, _) = scratch.expect(0, &["topology", "--topology", "topology.txt", "--json"]);
    let facts = parsed(&out);
    assert_eq!((&facts["hosts"], &facts["base_rtt_us"]), (&3.into(), &4.0.into()));
    // Headers are those of a series, 62 B and the gap by itself; those of --set and of a scenario count, too.
    let highest = |more: &[&str]| {
        let (out, error) = scratch.expect(0, &[&["topology", "--topology", "topology.txt", "--json"], more].concat());
        assert_eq!(error, "", "{more:?}");
        parsed(&out)["highest_uniform_load"].as_f64().expect("a share")
    };
    assert_eq!(highest(&[]), 1_024.0 / 1_106.0);
    assert_eq!(highest(&["--series", "irn,tcp"]), 1_024.0 / 1_106.0);
    assert_eq!(highest(&["--series", "tcp"]), 1_024.0 / (1_024.0 + 70.0 + 20.0));
    assert_eq!(highest(&["--set", "nic.mtu=4096B"]), 4_096.0 / 4_178.0);
    assert_eq!(highest(&["--series", "eqds", "--set", "nic.mtu=4096B"]), 4_096.0 / (4_096.0 + 70.0 + 20.0));
    for scheme in ["roce+pfc", "irn+hpcc", "tcp+eqds", "roce+eqds", "ndp", "netrt", "melo", "mptcp", "irn+overheads"] {
        assert!((0.88..0.93).contains(&highest(&["--series", scheme])), "{scheme}");
    }
    for (more, wrong) in [
        (["--series", "irn+what"], "error: --series irn+what"),
        (["--set", "nic.mtu=0B"], "error: --set nic.mtu=0B: "),
        (["--set", "workload.poisson.load=2"], "error: --set workload.poisson.load=2: "),
    ] {
        let (_, error) = scratch.expect(2, &[&["topology", "--topology", "topology.txt"][..], &more].concat());
        assert!(error.starts_with(wrong), "{error}");
    }
    let (out, _) = scratch.expect(0, &["topology", "--series", "irn+hpcc", "--json"]);
    let (other, _) = scratch.expect(0, &["topology", "--series", "irn", "--json"]);
    assert!(parsed(&out)["highest_uniform_load"].as_f64() < parsed(&other)["highest_uniform_load"].as_f64());
    // The facts of a network do not depend on the traffic.
    let (out, error) = scratch.expect(0, &["topology", "--set", "stop.flows=0"]);
    assert!(out.contains("hosts             54"), "{out}");
    assert!(error.starts_with("warning: a run of this scenario would be refused: --set stop.flows=0: "), "{error}");
    let (_, error) = scratch.expect(2, &["topology", "--set", "topology.fat-tree.k=5"]);
    assert!(error.starts_with("error: --set topology.fat-tree.k=5: "), "{error}");
    let (out, _) = scratch.expect(0, &["workload", "--set", "stop.flows=10"]);
    assert!(out.contains(" us\nflows per run     10"), "{out}");
    let (out, _) = scratch.expect(0, &["workload", "--set", "workload.poisson.load=0.35"]);
    assert!(out.contains("load 35.0 %") && out.contains("first flows"), "{out}");
    let (out, _) = scratch.expect(0, &["workload", "--set", "workload.poisson.load=0.0005"]);
    assert!(out.contains("load 0.05 %"), "{out}");
    let (out, _) = scratch.expect(0, &["workload", "--topology", "topology.txt", "--flows", "flow.txt", "--json"]);
    let facts = parsed(&out);
    assert_eq!((&facts["flows"], &facts["first_flows"][1]["src"]), (&2.into(), &"3".into()));
}

#[test]
fn the_highest_load_can_be_run() {
    let leaf_spine = "[topology.leaf-spine]\nleaves = 2\nhosts-per-leaf = 4\nspines = 2\n\
        host-link = { rate = \"100Gbps\", delay = \"1us\" }\nspine-link = { rate = \"100Gbps\", delay = \"1us\" }";
    let scenario =
        SMALL.replace("[topology.fat-tree]\nk = 4\nlink = { rate = \"40Gbps\", delay = \"2us\" }", leaf_spine);
    assert_ne!(scenario, SMALL);
    let scratch = Scratch::new("highest").with("s.toml", &scenario);
    // Four of seven receivers are below the other leaf: 7/8 of 1,024 B in 1,106.
    let (out, _) = scratch.expect(0, &["topology", "s.toml"]);
    assert!(out.contains("highest load      81.0 % (payload, "), "{out}");
    let load = |load: &str| [format!("workload.poisson.load={load}"), "workload.poisson.sizes.fixed=1MiB".to_owned()];
    let run = |status, at: &str| {
        let [load, sizes] = load(at);
        scratch.expect(status, &["workload", "s.toml", "--set", &load, "--set", &sizes]);
    };
    run(0, "0.81");
    run(2, "0.811");
}

#[test]
fn the_state_of_schemes_is_counted() {
    let scratch = Scratch::new("footprint").with("ok.toml", SMALL);
    // IRN section 6.1: 160 bits of variables, five bitmaps of 128; three bytes per WQE, ten in all. By default one more
    // sequence number at both ends.
    let (out, _) = scratch.expect(0, &["footprint"]);
    assert!(out.contains("irn                    848       24       80         272010      6.8 %"), "{out}");
    assert!(out.contains("irn+hls                800       24       80         260010      6.5 %"), "{out}");
    assert!(out.contains("IRN section 6.1 says 800 per QP, 24 per WQE, 80 shared"), "{out}");
    // All lines fit on one screen; the items of one scheme are listed.
    assert!(out.lines().count() <= 24 && out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let (out, _) = scratch.expect(0, &["footprint", "--series", "irn"]);
    assert!(out.contains(" per WQE ") && out.lines().count() <= 24, "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    // Two links of 2 us each way and four more of 2 us: the same RTT at twice the rate.
    let twice = ["footprint", "ok.toml", "--series", "irn+pfc", "--set", "topology.fat-tree.link.rate=80Gbps"];
    let (out, _) =
        scratch.expect(0, &[&twice[..], &["--cache", "8MB", "--qps", "1", "--wqes", "0", "--json"]].concat());
    let facts = parsed(&out);
    let scheme = &facts["schemes"][0];
    assert_eq!((&facts["bdp_bytes"], &facts["cache_bytes"]), (&240_000.into(), &8_000_000.into()));
    // 222 packets, in pieces of 32.
    assert_eq!((&scheme["name"], &scheme["queue_pair_bits"]), (&"irn+pfc".into(), &(160 + 48 + 5 * 224).into()));
    assert_eq!((&scheme["total_bytes"], &scheme["published"]["shared_bits"]), (&176.into(), &80.into()));
}

#[test]
fn figures_are_judged() {
    let expect =
        |bound: &str| format!("[[expect]]\nsay = 'it works'\nmetric = 'slowdown_mean'\nof = 'irn'\nvalue = {bound}\n");
    let smoke = format!("{SMALL}[smoke]\nseeds = 1\n'stop.flows' = 20\n");
    let scratch = Scratch::new("figures")
        .with("figures/paper/good/scenario.toml", &smoke)
        .with("figures/paper/good/expect.toml", &expect("{ at-least = 0.1 }"))
        .with("figures/paper/bad/scenario.toml", SMALL)
        .with("figures/paper/bad/expect.toml", &expect("{ at-most = 0.5 }"));
    let (out, _) = scratch.expect(0, &["check", "figures/paper/good", "-q"]);
    assert!(out.contains("reproduced") && out.contains("it works"), "{out}");
    let (out, error) = scratch.expect(1, &["check", "figures", "--json", "--out", "kept"]);
    let checked = parsed(&out);
    let (help, _) = scratch.expect(0, &["check", "--help"]);
    assert!(help.contains("claims and verdicts as a JSON list") && !help.contains("summary.json"), "{help}");
    assert_eq!(checked[0]["figure"], "figures/paper/bad");
    assert_eq!(checked[0]["claims"][0]["fails"], true);
    assert_eq!(checked[1]["claims"][0]["outcome"], "reproduced");
    assert!(error.contains("error: 1 claim fails"), "{error}");
    assert!(scratch.join("kept/paper-good/report.html").exists());
    // In one command, runs that both figures need are run once, and the table of claims is written.
    let (out, _) = scratch.expect(1, &["check", "figures", "-q", "--markdown", "tables/claims.md"]);
    assert!(out.contains("of them other figures' too"), "{out}");
    let table = fs::read_to_string(scratch.join("tables/claims.md")).expect("the table was written");
    assert!(table.contains("| [paper](#paper) | 2 | 1 | 0 | 0 | 1 |"), "{table}");
    assert!(table.contains("## paper\n\n2 claims: 1 reproduced, 0 in direction only, 1 not."), "{table}");
    assert!(table.contains("| it works |") && table.contains("**not reproduced**"), "{table}");
    let page = fs::read_to_string(scratch.join("results/claims.html")).expect("the page was written");
    assert!(page.contains("it works") && !page.contains("http"), "{page}");
    // Smoke runs only show that the figure runs.
    let (out, _) = scratch.expect(0, &["check", "figures", "--smoke", "-q"]);
    assert!(out.contains("runs  not judged") && !out.contains("FAIL"), "{out}");
}

/// Compares the help of the program and of each command with the committed text.
#[cfg(target_os = "linux")]
#[test]
fn help_is_printed_for_every_command() {
    let scratch = Scratch::new("help");
    let (all, error) = scratch.expect(0, &["--help"]);
    assert_eq!(error, "");
    let names = all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Lines that go on with a description are indented further.
    let names = names.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"run") && names.contains(&"impair"), "{all}");
    let mut answers = Answers::default();
    answers.add_command("$ selvedge --help", &all);
    for name in names.into_iter().filter(|name| *name != "help") {
        let (help, error) = scratch.expect(0, &[name, "--help"]);
        assert_eq!(error, "", "{name}");
        answers.add_command(&command_line("selvedge", &[name, "--help"]), &help);
    }
    expect_file!["../snapshots/help.txt"].assert_eq(answers.text());
}

#[test]
fn the_schema_and_completions_are_printed() {
    let scratch = Scratch::new("print");
    let (out, _) = scratch.expect(0, &["keys", "transport.congestion"]);
    assert!(out.contains("DCQCN: marked packets make CNPs") && out.contains("Swift: a window that keeps"), "{out}");
    let (out, _) = scratch.expect(0, &["schema"]);
    expect_file!["../../../../schema/scenario.schema.json"].assert_eq(&out);
    let (out, _) = scratch.expect(0, &["schema", "summary"]);
    expect_file!["../../../../schema/summary.schema.json"].assert_eq(&out);
    for shell in ["bash", "zsh", "fish"] {
        let (out, _) = scratch.expect(0, &["completions", shell]);
        assert!(out.contains("selvedge"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new("manual");
    scratch.expect(0, &["manual", "."]);
    for page in ["selvedge", "selvedge-run", "selvedge-eqds-up", "selvedge-replay-irn-sender", "selvedge-completions"] {
        assert!(scratch.join(&format!("{page}.1")).is_file(), "{page}");
    }
    assert!(!scratch.join("selvedge-manual.1").exists(), "hidden commands have no page");
    let run = fs::read_to_string(scratch.join("selvedge-run.1")).expect("the page was written");
    assert!(run.contains("selvedge\\-run \\- Run a study") && run.contains("\\-\\-until\\-decided"), "{run}");
    let verbs = fs::read_to_string(scratch.join("selvedge-verbs.1")).expect("the page was written");
    assert!(verbs.contains("selvedge\\-verbs(7)"), "{verbs}");
    let (_, error) = scratch.expect(1, &["manual", "no/such/folder"]);
    assert!(error.contains("no/such/folder"), "{error}");
}
