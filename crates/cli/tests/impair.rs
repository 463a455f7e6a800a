//! `selvedge impair`: what it refuses, and what it says about what it did.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

fn impair(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_selvedge")).arg("impair").args(words).output().expect("it runs")
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    for (words, message) in [
        (&["--reorder", "1%", "--", "true"][..], "reordering lets packets overtake those that wait: it needs a delay"),
        (&["--delay", "5us", "--jitter", "6us", "--", "true"], "jitter above the delay"),
        (&["--names", "one", "--", "true"], "two names, as in sv-a,sv-b, not 1"),
        (&["--names", "one,one", "--", "true"], "two different names, not one twice"),
        (&["--packets", "dta", "--", "true"], "expected data, ack, management or other, did you mean \"data\"?"),
        (&["--loss", "2", "--", "true"], "expected a number from 0 to 1, or a percentage"),
        (&["--loss", "90%", "--burst", "2", "--", "true"], "lose at most PACKETS / (PACKETS + 1)"),
        (&["--gemodel", "1%", "--", "true"], "expected two to four chances, as in 1%,25%"),
        (&["--rate", "0bps", "--", "true"], "at a rate of zero nothing ever arrives"),
    ] {
        let output = impair(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(message), "{words:?}: {said}");
    }
}

#[test]
fn a_program_runs_between_two_namespaces_and_all_is_counted() {
    let script = "for n in $(seq 200); do echo datagram-with-a-header > /dev/udp/10.78.0.2/4791; done 2> /dev/null";
    let names = format!("sv-cli{0}-a,sv-cli{0}-b", std::process::id());
    let first = names.split(',').next().expect("two names");
    let inside = format!("ip netns exec {first} bash -c '{script}'; exit 5");
    let output = impair(&["--loss", "10%", "--json", "--names", &names, "--", "sh", "-c", &inside]);
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        eprintln!("skipped: no impairment device here: {}", said.trim());
        return;
    }
    assert_eq!(output.status.code(), Some(5), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let data = &report["directions"][0]["packets"]["data"];
    assert_eq!(data["sent"], 200, "{report}");
    let lost = data["lost"].as_u64().expect("a count");
    assert!((5..40).contains(&lost) && data["delivered"] == 200 - lost, "{report}");
}
