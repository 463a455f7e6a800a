//! Tests of `selvedge impair`: its errors, and its report.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

fn impair(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_selvedge")).arg("impair").args(words).output().expect("the program starts")
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
    let lost = data["lost"].as_u64().unwrap();
    assert!((5..40).contains(&lost) && data["delivered"] == 200 - lost, "{report}");
}

#[test]
fn a_program_is_asked_to_end_where_a_signal_reaches_us_alone() {
    let names = format!("sv-end{0}-a,sv-end{0}-b", std::process::id());
    let script = "trap 'echo cleaned up; exit 3' TERM; echo begun; while :; do sleep 0.1; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(["impair", "--names", &names, "--", "sh", "-c", script]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut said = BufReader::new(running.stdout.take().expect("a piped stream"));
    let mut first = String::new();
    said.read_line(&mut first).expect("the text is UTF-8");
    if first.is_empty() {
        let mut why = String::new();
        running.stderr.take().expect("a piped stream").read_to_string(&mut why).expect("the text is UTF-8");
        eprintln!("skipped: no impairment device here: {}", why.trim());
        running.wait().expect("a child process");
        return;
    }
    let asked = Command::new("sh").args(["-c", &format!("kill -TERM {}", running.id())]).status().expect("a shell");
    assert!(asked.success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("the text is UTF-8");
    let status = running.wait().expect("a child process");
    assert_eq!((first.as_str(), rest.as_str(), status.code()), ("begun\n", "cleaned up\n", Some(3)));
}
