//! NetRT between two switches on real packets: `selvedge tor lab`.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/roce.py");

fn lab(options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(["tor", "lab", "--json"]).args(options);
    command.output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the PSNs that came to the receiver, and the counters; `None` if there can be no laboratory here.
fn run(name: &str, options: &[&str]) -> Option<(Vec<u64>, Value)> {
    let [first, second] = ["a", "b"].map(|end| format!("svt{}{name}-{end}", std::process::id()));
    let names = format!("{first},{second}");
    let program = ["--names", &names, "--", "python3", HOSTS, &first, &second];
    let output = lab(&[options, &program].concat());
    if said(&output).contains("permission") {
        eprintln!("skipped: no laboratory here: {}", said(&output));
        return None;
    }
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let (psns, counts) = text.split_once('\n').expect("a line of the program, and the counters");
    let psns = serde_json::from_str(psns).expect("a list of numbers");
    Some((psns, serde_json::from_str(counts).expect("JSON")))
}

/// Returns the sum of a counter over both switches.
fn count(counts: &Value, name: &str) -> u64 {
    let switches = counts["switches"].as_array().expect("two switches");
    switches.iter().map(|switch| switch[name].as_u64().unwrap_or_else(|| panic!("a counter {name}"))).sum()
}

#[test]
fn losses_are_repaired_on_the_way_and_the_host_sees_none() {
    let Some((psns, counts)) = run("with", &["--loss", "3%", "--packets", "data", "--rtt", "100us"]) else { return };
    let lost = counts["directions"][1]["packets"]["data"]["lost"].as_u64().expect("a counter");
    assert!((10..80).contains(&lost) && count(&counts, "copies_sent") > 0, "{counts}");
    assert_eq!((count(&counts, "refused"), count(&counts, "damaged")), (0, 0), "{counts}");
    // Of the first and the last ones, no packet that came tells that others are missing.
    assert!(psns.len() > 900, "{}", psns.len());
    // Where a machine stops for long, a switch gives up, and the NIC's own recovery would act.
    if count(&counts, "given_up") + count(&counts, "restarts") == 0 {
        assert!(psns.windows(2).all(|two| two[0] + 1 == two[1]), "a gap, or a packet out of order: {psns:?}");
    }
}

#[test]
fn without_netrt_the_host_sees_the_losses() {
    let options = ["--loss", "3%", "--packets", "data", "--rtt", "100us", "--without"];
    let Some((psns, counts)) = run("without", &options) else { return };
    assert!(psns.windows(2).any(|two| two[0] + 1 < two[1]), "there are gaps");
    assert_eq!((count(&counts, "copies_sent"), count(&counts, "held")), (0, 0));
}

#[test]
fn a_host_is_paused_after_a_burst_of_losses() {
    // Of 60 packets in a row, 36 of 560 bytes are more than K_l, 20 KB.
    let rate = ["--rate", "100Mbps", "--rtt", "1ms", "--pool", "1MB"];
    let options = [&rate[..], &["--loss", "10%", "--burst", "60", "--packets", "data"]].concat();
    let Some((_, counts)) = run("pause", &options) else { return };
    assert!(count(&counts, "pauses") > 0 && count(&counts, "paused_us") > 0, "{counts}");
    let Some((_, counts)) = run("goon", &[&options[..], &["--no-pause"]].concat()) else { return };
    assert_eq!((count(&counts, "pauses"), count(&counts, "headroom")), (0, 0), "{counts}");
}

#[test]
fn wrong_options_are_refused_before_anything_is_made() {
    for (options, message) in [
        (&["--interval", "0us", "--", "true"][..], "--interval"),
        (&["--rtt", "10us", "--delay", "5us", "--", "true"], "cannot be used with"),
        (&["--dscp", "64", "--", "true"], "64 is not in 1..64"),
        (&["--path-mtu", "100", "--", "true"], "100 is not in 256..=4096"),
        (&["--rtt", "10us", "--jitter", "20us", "--", "true"], "jitter above the delay"),
        (&["--rate", "0bps", "--", "true"], "rate"),
    ] {
        let output = lab(options);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{options:?}: {}", said(&output));
        assert!(said(&output).contains(message), "{options:?}: {}", said(&output));
    }
}
