//! Parity of one scenario in the simulator and between two processes of this machine.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

fn selvedge(words: &[&str]) -> Output {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    Command::new(env!("CARGO_BIN_EXE_selvedge")).args(words).current_dir(root).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn both_worlds_run_the_figures_or_it_says_why_one_cannot() {
    for figure in ["figures/parity", "figures/switch-parity", "figures/netrt-parity"] {
        let output = selvedge(&["check", "--smoke", figure]);
        let said = said(&output);
        said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| eprintln!("{line}"));
        assert!(output.status.success(), "{said}");
    }
}

#[test]
fn what_the_real_world_cannot_do_is_refused_by_its_key() {
    let refused = |sets: &[&str], key: &str| {
        let scratch = std::env::temp_dir().join(format!("selvedge-parity-{}-{}", std::process::id(), key));
        let place = scratch.display().to_string();
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let words: Vec<&str> = ["run", "--real", "figures/parity", "-q", "--seeds", "1", "--out", &place].into();
        let output = selvedge(&words.into_iter().chain(sets).collect::<Vec<_>>());
        assert!(!std::path::Path::new(&format!("{place}.partial")).exists(), "{key}: nothing was begun");
        let said = said(&output);
        if said.contains("no permission to make network namespaces") {
            eprintln!("skipped: {said}");
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(key), "{key}: {said}");
    };
    refused(&["workload.verbs.pairs=all-to-all"], "workload.verbs.pairs");
    refused(&["workload.verbs.load=0.001"], "workload.verbs.messages");
    refused(&["nic.ack-class=5"], "nic.ack-class");
    refused(&["stop.time='1ms'"], "stop.time");
}
