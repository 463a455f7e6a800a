//! Tests of a study, of its files, and of later commands about it.

use std::fs;
#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};

use selvedge_testkit::texts::ring;
use serde_json::Value;

use crate::{SMALL, Scratch, parsed, text};

#[test]
fn a_study_prints_its_table_and_leaves_its_folder() {
    let scratch = Scratch::new("study").with("small.toml", SMALL);
    let (out, error) = scratch.expect(0, &["run", "small.toml", "--threads", "2"]);
    assert!(out.contains("average slowdown") && out.contains("roce+pfc / irn"), "{out}");
    assert!(error.contains("report: results/small-1/report.html"), "{error}");
    let mut names: Vec<_> = fs::read_dir(scratch.join("results/small-1"))
        .unwrap()
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["flows.parquet", "links.parquet", "ports.parquet", "report.html", "scenario.toml", "summary.json"]
    );

    // Again: the next number; by name: refused, then forced.
    scratch.expect(0, &["run", "small.toml", "-q"]);
    assert!(scratch.join("results/small-2/summary.json").exists());
    let (_, error) = scratch.expect(2, &["run", "small.toml", "--out", "results/small-1"]);
    assert!(error.contains("--force"), "{error}");
    scratch.expect(0, &["run", "small.toml", "--out", "results/small-1", "--force", "--seeds", "1"]);
    let summary = fs::read_to_string(scratch.join("results/small-1/summary.json")).expect("a summary");
    assert_eq!(parsed(&summary)["seeds"], serde_json::json!([1]));

    // A quiet run says nothing on standard error.
    let (_, error) = scratch.expect(0, &["run", "small.toml", "--quiet"]);
    assert_eq!(error, "");
}

#[test]
fn slow_flows_are_explained() {
    let scratch = Scratch::new("explain").with("small.toml", SMALL);
    scratch.expect(0, &["run", "small.toml", "--out", "out", "-q", "--no-controls"]);
    let (out, error) = scratch.expect(0, &["explain", "out", "--worst", "3"]);
    assert!(out.starts_with("irn, seed 1: the 3 slowest flows\n"), "{out}");
    assert!(out.contains("its time") && out.contains("s serialisation  p propagation"), "{out}");
    assert!(error.contains("choose with --series and --seed (irn, roce+pfc)"), "{error}");

    // The parts of each flow add up to its completion time, which is the one on record.
    let run = ["explain", "out", "--series", "roce+pfc", "--seed", "2"];
    let (out, error) = scratch.expect(0, &[&run[..], &["--json"]].concat());
    assert_eq!(error, "");
    let explained = parsed(&out);
    assert_eq!((&explained["series"], &explained["seed"]), (&"roce+pfc".into(), &2.into()));
    let flows = explained["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 10);
    for flow in flows {
        let parts = flow["parts"].as_object().unwrap();
        let sum: u64 = parts.values().filter_map(Value::as_u64).sum();
        assert_eq!(flow["fct_ps"], sum, "{flow}");
    }
    let slowest = flows[0]["flow"].to_string();
    let (out, _) = scratch.expect(0, &[&run[..], &["--flow", &slowest]].concat());
    assert!(out.contains("where the time went") && out.contains("the packet that finished it"), "{out}");

    // Messages that share a queue pair.
    let posted = SMALL.replace("poisson", "verbs");
    let scratch = scratch.with("posted.toml", &posted);
    scratch.expect(0, &["run", "posted.toml", "--out", "posted", "-q"]);
    for arguments in [&["explain", "posted"][..], &["explain", "posted", "--flow", "3"]] {
        let (_, error) = scratch.expect(2, arguments);
        assert!(error.contains("a queue pair of their own; look at a port instead"), "{error}");
    }
    fs::write(scratch.join("posted/summary.json"), "{").expect("writable");
    let (_, error) = scratch.expect(2, &["explain", "posted"]);
    assert!(error.contains("--out posted --force (and --real, if they are of the real world)"), "{error}");

    for (arguments, message) in [
        (["--flow", "50"], "out: no flow 50 in irn, seed 1; they are numbered 0 to 49"),
        (["--flow", "1:0"], "out: no flow 0 of workload 1 in irn, seed 1; there is no workload 1"),
        (["--series", "roce"], "out: no series \"roce\"; there are irn, roce+pfc"),
        (["--seed", "3"], "out: no seed 3; there are 1, 2"),
    ] {
        let (_, error) = scratch.expect(2, &[&["explain", "out"], &arguments[..]].concat());
        assert!(error.contains(message), "{arguments:?}: {error}");
    }

    // On another network than the one on which the flows were slow.
    let scenario = fs::read_to_string(scratch.join("out/scenario.toml")).expect("a scenario");
    fs::write(scratch.join("out/scenario.toml"), scenario.replace("\"2us\"", "\"3us\"")).expect("writable");
    let (_, error) = scratch.expect(2, &["explain", "out", "--flow", "7"]);
    assert!(error.contains("out: flow 7 took ") && error.contains("run the study again"), "{error}");
}

#[test]
fn a_flow_that_never_finished_is_explained_until_the_end_of_the_run() {
    let scratch = Scratch::new("unfinished").with("small.toml", &SMALL.replace("flows = 50", "time = \"30us\""));
    scratch.expect(0, &["run", "small.toml", "--out", "out", "-q", "--seeds", "1"]);
    let (out, _) = scratch.expect(0, &["explain", "out", "--worst", "1000"]);
    assert!(out.contains("had not finished (>) when the run ended at 30.000 us") && out.contains("  >"), "{out}");
    assert!(out.contains("what these waited for when the run ended"), "{out}");

    let (out, _) = scratch.expect(0, &["explain", "out", "--json", "--worst", "1000"]);
    let explained = parsed(&out);
    assert_eq!((&explained["end_ps"], &explained["deadlock"]), (&30_000_000.into(), &Value::Null));
    let flows = explained["flows"].as_array().unwrap();
    let (open, finished): (Vec<&Value>, Vec<&Value>) = flows.iter().partition(|flow| flow["fct_ps"].is_null());
    assert!(!open.is_empty() && !finished.is_empty(), "{out}");
    assert!(finished.iter().all(|flow| flow["waits_for"].is_null() && flow["unfinished_ps"].is_null()), "{out}");
    for flow in &open {
        let sum: u64 = flow["parts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        let start = flow["start_ps"].as_u64().expect("a time");
        assert_eq!((flow["unfinished_ps"].as_u64(), sum), (Some(30_000_000 - start), 30_000_000 - start), "{flow}");
        assert!(flow["waits_for"]["what"].is_string(), "{flow}");
    }

    let (out, _) = scratch.expect(0, &["explain", "out", "--flow", &open[0]["flow"].to_string()]);
    assert!(out.contains("had not finished after ") && out.contains("when the run ended, "), "{out}");
    assert!(!out.contains("the packet that finished it"), "{out}");
}

/// Checks an incast whose second half never begins, and a job that computes when the run ends.
#[test]
fn incasts_and_jobs_that_are_cut_off_are_unfinished() {
    let incast = "[workload.incast]\nsize = '40KB'\nsenders = 4\nstagger = '100us'\n";
    let job = "[workload.collective]\noperation = 'ring-all-reduce'\nsize = '40KB'\ncompute = '100us'\nrepeat = 3\n\
               team = { group-size = 2 }\n";
    for (workload, what, unfinished, complete) in [(incast, "incasts", 1, 0), (job, "jobs", 8, 16)] {
        let (head, rest) = SMALL.split_once("[workload.poisson]").expect("a workload");
        let (_, series) = rest.split_once("[[series]]").unwrap();
        let scenario = format!("{}\n{workload}\n[[series]]{series}", head.replace("flows = 50", "time = '250us'"));
        let scratch = Scratch::new("cut-off").with("cut.toml", &scenario);
        let (table, _) = scratch.expect(0, &["run", "cut.toml", "--out", "out", "-q", "--no-controls"]);
        assert!(table.contains(&format!("unfinished {what}")), "{table}");
        let (out, _) = scratch.expect(0, &["run", "cut.toml", "--json", "-q", "--no-controls"]);
        let summary = parsed(&out);
        let warning = format!("Some {what} never completed: ");
        let about: Vec<&str> = summary["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let about: Vec<&str> = about.into_iter().filter_map(|one| one.strip_prefix(&*warning)).collect();
        let names: Vec<&str> =
            summary["series"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
        // One seed is enough where nothing is random.
        let seeds = summary["seeds"].as_array().map_or(0, |seeds| seeds.len() as i32);
        let all = seeds * (complete + unfinished);
        let counts = format!("({} of {all})", seeds * unfinished);
        assert_eq!((about.len(), names.len()), (1, 2), "{out}");
        assert!(about[0].starts_with(&format!("{} {counts} and {} {counts}.", names[0], names[1])), "{about:?}");
        let metrics = &summary["series"][0]["metrics"];
        assert_eq!(metrics["unfinished_groups"]["mean"], f64::from(unfinished), "{out}");
        assert_eq!(metrics["measured_groups"]["mean"], f64::from(complete + unfinished), "{out}");
        // Unfinished groups count with their age.
        assert!(metrics["group_completion_mean_us"]["mean"].is_number(), "{out}");
        assert_eq!(metrics["group_completion_mean_us"]["bound"], "at-least", "{out}");
        assert!(table.contains("≥ "), "{table}");
    }
}

#[test]
fn a_schedule_without_messages_is_said_to_have_none() {
    let goal = "num_ranks 2\nrank 0 {\nl1: calc 1000\n}\nrank 1 {\nl1: calc 2000\n}\n";
    let (head, rest) = SMALL.split_once("[workload.poisson]").expect("a workload");
    let (_, series) = rest.split_once("[[series]]").unwrap();
    let scenario = format!("{head}\n[workload.goal]\npath = 'calc.goal'\n[[series]]{series}");
    let scratch = Scratch::new("no-messages").with("calc.goal", goal).with("goal.toml", &scenario);
    let (out, _) = scratch.expect(0, &["run", "goal.toml", "-q", "--json", "--no-controls"]);
    let warnings = parsed(&out)["warnings"].to_string();
    assert!(warnings.contains(": nothing is sent between hosts with seed 1: the schedule has no messages."), "{out}");
    assert!(warnings.contains("irn and ") && warnings.matches("nothing is sent").count() == 1, "{out}");
    assert!(!warnings.contains("no measured flow"), "{out}");
}

/// Returns a scenario of a ring whose flows all go two switches onward, and the list of the flows.
fn clockwise() -> (String, String) {
    let flows: String = (0..10).map(|n| format!("{n} {} 3 100 2000000 0\n", (n + 4) % 10)).collect();
    let scenario = "title = 'ring'\nseeds = 1\nswitch.buffer.input-queued.per-port = '50KB'\n\
                    workload.flows.path = 'flow.txt'\n[[series]]\npreset = 'roce+pfc'\n[[series]]\npreset = 'irn'\n";
    (scenario.to_owned() + &ring(), format!("10\n{flows}"))
}

#[test]
fn a_deadlock_is_explained_by_its_circle() {
    let (scenario, flows) = clockwise();
    let scratch = Scratch::new("deadlock").with("ring.toml", &scenario).with("flow.txt", &flows);
    scratch.expect(0, &["run", "ring.toml", "--out", "out", "-q"]);
    let (out, _) = scratch.expect(0, &["explain", "out"]);
    assert!(out.starts_with("roce+pfc, seed 1: PFC deadlock, found at 2000.000 us: nothing in this cycle"), "{out}");
    let ring = ["s0 -> s1", "s1 -> s2", "s2 -> s3", "s3 -> s4", "s4 -> s0"];
    let places: Vec<usize> = ring.iter().filter_map(|port| out.find(&format!("\n  {port} "))).collect();
    assert!(places.len() == 5 && places.is_sorted(), "{out}");
    assert!(out.contains("    flow 0: h0 -> h4 "), "{out}");
    assert!(out.contains("the 10 slowest flows; 10 had not finished (>) when the run ended at 2000.000 us"), "{out}");
    assert!(out.contains("a packet waits for s1 -> s2 since "), "{out}");

    let (out, _) = scratch.expect(0, &["explain", "out", "--json"]);
    let explained = parsed(&out);
    let ports = explained["deadlock"]["ports"].as_array().unwrap();
    assert_eq!(ports.iter().map(|stuck| stuck["port"].as_str()).collect::<Vec<_>>(), ring.map(Some));
    for stuck in ports {
        let flows = stuck["flows"].as_array().unwrap();
        let held: u64 = flows.iter().filter_map(|flow| flow["packets"].as_u64()).sum();
        assert!(held > 0 && stuck["packets"] == held && stuck["paused_since_ps"].is_u64(), "{stuck}");
    }
    let first = &explained["flows"][0];
    assert_eq!(first["waits_for"]["what"], "port");
    assert!(ring.map(Value::from).contains(&first["waits_for"]["port"]), "{first}");

    // One flow, and its counterpart without PFC.
    let (out, _) = scratch.expect(0, &["explain", "out", "--flow", "3"]);
    assert!(out.contains("PFC deadlock") && out.contains("the packet that it waits for"), "{out}");
    let (out, _) = scratch.expect(0, &["explain", "out", "--series", "irn"]);
    assert!(out.starts_with("irn, seed 1: the 10 slowest flows\n"), "{out}");
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let scratch = Scratch::new("json").with("small.toml", SMALL);
    let (out, _) = scratch.expect(0, &["run", "small.toml", "--json", "--out", "here"]);
    let summary = parsed(&out);
    assert_eq!(out, fs::read_to_string(scratch.join("here/summary.json")).expect("a summary"));
    for series in summary["series"].as_array().unwrap() {
        for metric in [
            "slowdown_mean",
            "fct_mean_us",
            "fct_p99_us",
            "drop_rate",
            "pause_time_us",
            "retransmissions",
            "spurious_retransmissions",
        ] {
            let estimate = &series["metrics"][metric];
            assert_eq!(estimate["per_seed"].as_array().map(Vec::len), Some(2), "{metric}: {estimate}");
            assert!(estimate["mean"].is_number() && estimate["ci95"].as_array().is_some_and(|ci| ci.len() == 2));
        }
    }
    for key in ["fingerprint", "packet_hops", "events", "cpu_s", "wall_s", "threads", "version"] {
        assert!(!summary["run"][key].is_null(), "{key}");
    }
}

#[test]
fn timeouts_outlast_full_queues_on_the_whole_way() {
    let scenario = "title = 'short'\nseeds = 1\n[topology.fat-tree]\nk = 4\nlink = { rate = '100Gbps', delay = '1us' }\n\
                    [workload.permutation]\nsize = '1MB'\n";
    let scratch = Scratch::new("short").with("short.toml", scenario);
    let (out, _) = scratch.expect(0, &["run", "short.toml", "--series", "eqds,ndp", "--json", "-q"]);
    for series in parsed(&out)["series"].as_array().unwrap() {
        let mean = |metric: &str| series["metrics"][metric]["mean"].as_f64().expect("a mean");
        assert!(mean("trims") > 100.0, "{series}");
        assert_eq!((mean("timeouts"), mean("spurious_retransmissions")), (0.0, 0.0), "{series}");
    }
}

/// Checks slow and short links, on which frames take longer than the propagation.
#[test]
fn netrt_repairs_a_loss_on_links_of_any_rate_and_length() {
    let mut study = r#"
        title = "one loss"
        seeds = 1
        sample = "off"
        workload.closed-loop = { clients = ["h0"], servers = ["h1"], flows-per-client = 1, sizes = { fixed = "400KB" } }
        series = [{ preset = "netrt" }]
        loss = [{ link = "s0:s1", direction = "a-to-b", packets = "data", model.trace.drops = [20] }]
        topology.chain.switches = 3
        "#
    .to_owned();
    for link in ["host-link", "switch-link"] {
        study += &format!("topology.chain.{link} = {{ rate = '100Gbps', delay = '1us' }}\n");
    }
    let all = ["10Gbps", "25Gbps", "100Gbps"].map(|rate| ["100ns", "500ns", "1us"].map(|delay| (rate, delay)));
    for (rate, delay) in all.into_iter().flatten() {
        for mtu in ["1024B", "4096B"] {
            study += &format!("[[case]]\nname = '{rate}, {delay}, {mtu}'\nset.'nic.mtu' = '{mtu}'\n");
            for link in ["host-link", "switch-link"] {
                study += &format!("set.'topology.chain.{link}' = {{ rate = '{rate}', delay = '{delay}' }}\n");
            }
        }
    }
    let scratch = Scratch::new("netrt").with("loss.toml", &study);
    let (out, _) = scratch.expect(0, &["run", "loss.toml", "--json", "-q"]);
    let summary = parsed(&out);
    let series = summary["series"].as_array().unwrap();
    assert_eq!(series.len(), 18);
    for series in series {
        let mean = |metric: &str| series["metrics"][metric]["mean"].as_f64().expect("a number");
        let found = ["netrt_retransmissions", "nacks", "retransmissions"].map(mean);
        assert_eq!(found, [1.0, 0.0, 0.0], "{}", series["name"]);
    }
}

#[test]
fn tcp_does_not_time_out_in_an_empty_network() {
    let scenario = "title = 'empty'\nseeds = 1\n[workload.incast]\nsenders = 1\nsize = '1KB'\n\
                    [topology.explicit]\nhosts = ['a', 'b']\n\
                    links = [{ between = ['a', 'b'], rate = '100Gbps', delay = '1us' }]\n";
    let scratch = Scratch::new("empty").with("empty.toml", scenario);
    let (out, _) = scratch.expect(0, &["run", "empty.toml", "--series", "tcp", "--json", "-q"]);
    for series in parsed(&out)["series"].as_array().unwrap() {
        assert_eq!(series["metrics"]["timeouts"]["mean"].as_f64(), Some(0.0), "{series}");
    }
}

/// Checks the timeout of a slow host, which is longer than those of hosts that it answers.
#[test]
fn tcp_through_tunnels_does_not_time_out_where_links_differ() {
    let scenario = r#"
        title = "unlike"
        seeds = 1
        workload.collective = { operation.tree-all-reduce.chunk = "20KB", size = "7777B", repeat = 1 }
        nic.mtu = "4096B"
        [topology.explicit]
        hosts = ["x0", "x1", "x2", "x3"]
        switches = ["w0", "w1", "w2"]
        links = [
            { between = ["x0", "w0"], rate = "400Gbps", delay = "50us" },
            { between = ["x1", "w1"], rate = "50Gbps", delay = "50us" },
            { between = ["x2", "w2"], rate = "10Gbps", delay = "50us" },
            { between = ["x3", "w0"], rate = "50Gbps", delay = "50us" },
            { between = ["w0", "w1"], rate = "100Gbps", delay = "1ns" },
            { between = ["w0", "w1"], rate = "400Gbps", delay = "1ns" },
            { between = ["w1", "w2"], rate = "100Gbps", delay = "50us" },
        ]
        "#;
    let scratch = Scratch::new("unlike").with("unlike.toml", scenario);
    for sets in [&[][..], &["--set", "transport.eqds.burst=false"]] {
        let run = ["run", "unlike.toml", "--series", "tcp,tcp+eqds", "--json", "-q"];
        let (out, _) = scratch.expect(0, &[&run[..], sets].concat());
        for series in parsed(&out)["series"].as_array().unwrap() {
            assert_eq!(series["metrics"]["timeouts"]["mean"].as_f64(), Some(0.0), "{sets:?}: {series}");
        }
    }
}

#[test]
fn the_resolved_scenario_runs_to_the_same_results() {
    let scratch = Scratch::new("resolved").with("small.toml", SMALL);
    let fingerprint = |file: &str, threads: &str| {
        let (out, _) = scratch.expect(0, &["run", file, "--json", "-q", "--threads", threads]);
        parsed(&out)["run"]["fingerprint"].clone()
    };
    let first = fingerprint("small.toml", "1");
    assert_eq!(fingerprint("results/small-1/scenario.toml", "2"), first);
    assert_eq!(fingerprint("results/small-2", "4"), first, "a folder with a scenario.toml will do");
}

/// Interrupts a study that takes a while, as by Ctrl-C, and continues it.
#[cfg(unix)]
#[test]
fn an_interrupted_study_continues_where_it_was() {
    let long = SMALL.replace("flows = 50", "flows = 2_000") + "\n[nic]\nack-class = 0\n";
    let scratch = Scratch::new("interrupt").with("long.toml", &long);
    let (output, seeds) = scratch.interrupt("-INT", 200, |seeds| {
        scratch.command(&["run", "long.toml", "--seeds", seeds, "--out", "out", "--threads", "1"])
    });
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("to continue: selvedge run --resume out.partial"), "{error}");
    assert!(scratch.join("out.partial/unfinished.json").exists() && !scratch.join("out").exists());

    let (_, error) = scratch.expect(2, &["run", "long.toml", "--out", "out"]);
    assert!(error.contains("--resume out.partial"), "{error}");
    let (out, _) = scratch.expect(0, &["run", "--resume", "out.partial", "--json"]);
    let summary = parsed(&out);
    assert_eq!(summary["seeds"].as_array().map(Vec::len), Some(seeds));
    // Warnings about the scenario name the file that the user wrote.
    let warnings: Vec<&str> =
        summary["warnings"].as_array().into_iter().flatten().filter_map(|one| one.as_str()).collect();
    assert!(warnings.iter().any(|one| one.starts_with("long.toml:")), "{warnings:?}");
    assert!(scratch.join("out/summary.json").exists() && !scratch.join("out.partial").exists());
    let (_, error) = scratch.expect(2, &["run", "--resume", "out"]);
    assert!(error.contains("these results are complete"), "{error}");
}

/// Checks that SIGTERM, which batch systems send when a job's time is up, ends a study that can be continued.
#[cfg(unix)]
#[test]
fn a_study_that_is_terminated_says_so_and_can_be_continued() {
    let scratch = Scratch::new("terminate").with("long.toml", &SMALL.replace("flows = 50", "flows = 2_000"));
    let (output, _) = scratch.interrupt("-TERM", 200, |seeds| {
        scratch.command(&["run", "long.toml", "--seeds", seeds, "--out", "out", "--threads", "1"])
    });
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(143), "{error}");
    assert!(error.contains("to continue: selvedge run --resume out.partial"), "{error}");
}

/// Checks that a study under nohup goes on when the terminal is closed.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::disallowed_methods, reason = "a test of a process waits for it")]
fn a_study_under_nohup_goes_on_when_the_terminal_goes() {
    let scratch = Scratch::new("nohup").with("long.toml", &SMALL.replace("flows = 50", "flows = 2_000"));
    let run = scratch.command(&["run", "long.toml", "--seeds", "40", "--out", "out", "--threads", "1", "-q"]);
    let mut nohup = Command::new("nohup");
    nohup.arg(run.get_program()).args(run.get_args()).current_dir(run.get_current_dir().expect("a working folder"));
    let mut child = nohup.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nohup exists");
    while !scratch.join("out.partial/parts").exists() && !scratch.join("out").exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().expect("kill exists").success());
    assert!(child.wait().expect("the program ends").success());
    assert!(scratch.join("out/summary.json").exists());
}

#[test]
fn a_schedule_in_which_a_receive_takes_anothers_message_says_who_waits() {
    let scenario = r#"
        title = "stuck"
        seeds = 1
        workload.goal.path = "stuck.goal"
        [topology.leaf-spine]
        leaves = 1
        spines = 1
        hosts-per-leaf = 3
        host-link = { rate = "40Gbps", delay = "1us" }
        spine-link = { rate = "40Gbps", delay = "1us" }
        "#;
    // Rank 1's message comes first, and both receives take it.
    let late = |rank, ns| format!("rank {rank} {{\nc: calc {ns}\nm: send 1000b to 0 tag 2\nm requires c\n}}\n");
    let first = "rank 0 {\nany: recv 1000b from -1 tag 2\nown: recv 1000b from 1 tag 2\nown requires any\n}\n";
    let of = |ns: [u32; 2]| format!("num_ranks 3\n{first}{}{}", late(1, ns[0]), late(2, ns[1]));
    let scratch = Scratch::new("stuck").with("stuck.toml", scenario);
    let warnings = |ns: [u32; 2]| {
        std::fs::write(scratch.join("stuck.goal"), of(ns)).expect("a writable folder");
        let (out, _) = scratch.expect(0, &["run", "stuck.toml", "--series", "irn", "--json", "-q"]);
        parsed(&out)["warnings"].to_string()
    };
    let found = warnings([10_000, 20_000]);
    assert!(
        found.contains("rank 0 waits for a message from rank 1 with tag 2 (its step 2), in line 4: it has"),
        "{found}"
    );
    assert!(!found.contains("stop.time"), "{found}");
    assert!(!warnings([20_000, 10_000]).contains("waits"), "the other order");
}
