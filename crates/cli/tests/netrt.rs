//! Tests of NetRT on real packets: `selvedge lab` with `switch.netrt`.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Output};

use selvedge_testkit::Scratch;
use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/roce.py");

/// Two switches of one host each, h0 that receives and h1 that sends.
const RACK: &str = r#"
[topology.dumbbell]
left = 1
right = 1
host-link = { rate = "100Mbps", delay = "10us" }
bottleneck = { rate = "100Mbps", delay = "50us" }

[switch.netrt]
enabled = true
"#;

fn selvedge(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_selvedge")).args(words).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a sender of a thousand packets in a laboratory with more settings. Returns the PSNs that came to the receiver,
/// and the counters of the switches; `None` if there can be no laboratory here.
fn run(purpose: &str, more: &str, sets: &[&str]) -> Option<(Vec<u64>, Value)> {
    let folder = Scratch::new(purpose);
    let rack = folder.path().join("rack.toml");
    fs::write(&rack, [RACK, more].concat()).expect("the folder can be written");
    let name = format!("svt{}{purpose}", std::process::id());
    let [first, second] = ["h0", "h1"].map(|host| format!("{name}-{host}"));
    let mut words = vec!["lab", rack.to_str().expect("a plain path"), "--json", "--name", &name];
    words.extend(sets.iter().flat_map(|set| ["--set", set]));
    words.extend(["--", "python3", HOSTS, &first, &second]);
    let output = selvedge(&words);
    if output.status.code() == Some(2) && said(&output).contains("permission") {
        eprintln!("skipped: no laboratory here: {}", said(&output));
        return None;
    }
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let (psns, counts) = text.split_once('\n').expect("a line of the program, and the counters");
    let psns = serde_json::from_str(psns).expect("a list of numbers");
    let counts: Value = serde_json::from_str(counts).expect("JSON");
    Some((psns, counts["switches"]["places"].clone()))
}

/// Returns the value of a counter; 0 where it is not counted.
fn count(places: &Value, place: &str, name: &str) -> u64 {
    places[place][name].as_u64().unwrap_or(0)
}

/// Returns loss of data on the link between the switches.
fn loss(model: &str) -> String {
    format!("[[loss]]\nlink = \"left - right\"\npackets = \"data\"\n{model}\n")
}

#[test]
fn losses_are_repaired_on_the_way_and_the_host_sees_none() {
    let Some((psns, places)) = run("with", &loss("model.random.rate = \"3%\""), &[]) else { return };
    assert!((10..80).contains(&count(&places, "data", "link-loss")), "{places}");
    assert!(count(&places, "right", "copies_sent") > 0 && count(&places, "left", "requests_sent") > 0, "{places}");
    // Of the first and the last ones, no packet that came tells that others are missing.
    assert!(psns.len() > 950, "{}", psns.len());
    // Where the sender stops for long, a switch gives up, and the NIC's own recovery would act.
    if count(&places, "left", "given_up") == 0 {
        assert!(psns.windows(2).all(|two| two[0] + 1 == two[1]), "a gap, or a packet out of order: {psns:?}");
    }
}

#[test]
fn without_netrt_the_host_sees_the_losses() {
    let sets = ["switch.netrt.enabled=false"];
    let Some((psns, places)) = run("without", &loss("model.random.rate = \"3%\""), &sets) else { return };
    assert!(psns.windows(2).any(|two| two[0] + 1 < two[1]), "there are gaps");
    assert!(places["left"].is_null(), "{places}");
}

#[test]
fn a_host_is_paused_after_a_burst_of_losses() {
    // 60 packets of 574 bytes in a row are more than K_l, 20 KB.
    let drops: Vec<String> = (100..160).map(|number: u32| number.to_string()).collect();
    let bursts = loss(&format!("model.trace.drops = [{}]", drops.join(", ")));
    let ample = [
        "switch.buffer.input-queued.per-port='1MB'",
        "switch.netrt.pool='1MB'",
        "switch.netrt.buffer='1MB'",
        "switch.netrt.lifetime='1s'",
    ];
    let Some((_, places)) = run("pause", &bursts, &ample) else { return };
    assert!(count(&places, "right", "pauses") > 0 && count(&places, "h1:right", "paused_us") > 0, "{places}");
    let Some((_, places)) = run("goon", &bursts, &[&ample[..], &["switch.netrt.pause=false"]].concat()) else { return };
    assert_eq!((count(&places, "right", "pauses"), count(&places, "h1:right", "paused_us")), (0, 0), "{places}");
}

#[test]
fn the_command_of_before_names_the_one_that_took_its_place() {
    for words in [&["tor"][..], &["tor", "lab", "--loss", "1%", "--", "true"]] {
        let output = selvedge(words);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{}", said(&output));
        assert!(said(&output).contains("selvedge lab") && said(&output).contains("switch.netrt.enabled"));
    }
}
