//! Tests that every command of README.md, the tour, the tutorial and the gallery runs as it is written there, in a
//! folder like a fresh clone.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use selvedge_testkit::Scratch;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// RoCE without PFC is among the controls, and loses most of what it sends.
const SLOW: &str = "it simulates for minutes where nothing is optimised";

/// Commands that are not run here, with the reason, and the command to run instead.
const NOT_RUN: &[(&str, &str, &[&str])] = &[
    (
        "cargo run --release -- run",
        "it compiles everything and simulates for half a minute",
        &["selvedge topology", "selvedge workload"],
    ),
    ("cargo xtask test", "this test is a part of it", &[]),
    ("selvedge run examples/our-pod.toml", SLOW, &["selvedge run examples/our-pod.toml --no-controls"]),
    (
        "selvedge run examples/our-pod.toml --set workload.poisson.load=0.5 --seeds 10",
        SLOW,
        &["selvedge run examples/our-pod.toml --set workload.poisson.load=0.5 --seeds 3 --no-controls"],
    ),
    (
        "selvedge run examples/our-pod.toml --series irn,roce+pfc --json",
        SLOW,
        &["selvedge run examples/our-pod.toml --series irn,roce+pfc --json --no-controls"],
    ),
    (
        "selvedge run examples/our-pod.toml --seeds 1 --trace flow=12 --trace port=leaf0:h0",
        SLOW,
        &["selvedge run examples/our-pod.toml --seeds 1 --trace flow=12 --trace port=leaf0:h0 --no-controls"],
    ),
    (
        "selvedge run figures/irn/default --set switch.preset=trident-2 --set nic.preset=connectx-4",
        SLOW,
        &[
            "selvedge run figures/irn/default --set switch.preset=trident-2 --set nic.preset=connectx-4 --set stop.flows=50",
        ],
    ),
    ("cargo install --path crates/cli", "it compiles everything", &[]),
    (
        "selvedge run figures/compare/random-loss",
        "it simulates for minutes",
        &["selvedge workload figures/compare/random-loss"],
    ),
    (
        "selvedge check figures/irn/fig1",
        "it simulates for minutes where nothing is optimised",
        &["selvedge check figures/irn/fig1 --smoke"],
    ),
    (
        "selvedge run examples/our-pod.toml --sweep workload.poisson.load=0.2,0.4,0.6,0.8 --no-controls --out results/loads",
        SLOW,
        &["selvedge run examples/our-pod.toml --sweep workload.poisson.load=0.2,0.4 --seeds 1 --no-controls"],
    ),
    ("selvedge run", "it simulates for half a minute", &["selvedge run --estimate"]),
    ("selvedge check figures/irn", "it simulates for hours", &["selvedge topology figures/irn/fig1"]),
    ("selvedge check figures --smoke", "it simulates for minutes; CI runs it", &[]),
    (
        "selvedge check figures/parity",
        "its claims are about a machine that has little else to do",
        &["selvedge check figures/parity --smoke"],
    ),
    (
        "selvedge check figures/switch-parity",
        "its claims are about a machine that has little else to do",
        &["selvedge check figures/switch-parity --smoke"],
    ),
    (
        "selvedge check figures/eqds-real",
        "it measures for an hour, on a machine that has nothing else to do; CI runs it shortly",
        &["selvedge check figures/eqds-real --help"],
    ),
    ("cargo xtask dist", "it compiles everything", &[]),
    ("export PATH=$PWD/dist/bin:$PATH", "there is no dist", &[]),
    ("selvedge verbs --info", "it needs what `cargo xtask dist` makes", &["selvedge verbs --help"]),
    ("selvedge verbs -- ib_write_bw -d sv_lo", "it waits for the other, and needs perftest", &[]),
    ("selvedge verbs -- ib_write_bw -d sv_lo 127.0.0.1", "it needs perftest and the other", &[]),
    (
        "cargo run --release -p selvedge-sim --example permutation -- 16 2MB roce+pfc",
        "it compiles everything and simulates for long",
        &[],
    ),
];

/// Commands that need root or user namespaces: without, they report it.
const IN_NAMESPACES: &[&str] = &[
    "selvedge run --real",
    "selvedge check figures/parity",
    "selvedge check figures/switch-parity",
    "selvedge impair",
];

/// Returns the commands of a text, in order: the lines of its blocks of `sh`, without comments.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

fn run(command: &str, folder: &Path) -> Output {
    let own = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().expect("the path of an executable has a parent");
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default());
    Command::new("sh").args(["-c", command]).current_dir(folder).env("PATH", path).output().expect("the shell starts")
}

/// The text of a document.
fn read(document: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(document)).expect("the document is part of the repository")
}

/// Runs a command, which must succeed, or print why it cannot work here.
fn must_run(command: &str, folder: &Path) {
    let output = run(command, folder);
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return;
    }
    let lacks =
        ["no permission to make network namespaces", "ip netns", "ping: not found", "No such file", "not permitted"];
    if IN_NAMESPACES.iter().any(|begin| command.starts_with(begin)) && lacks.iter().any(|lack| said.contains(lack)) {
        eprintln!("skipped: `{command}`: {}", said.trim());
        return;
    }
    panic!("`{command}` ends with {}:\n{said}", output.status);
}

#[test]
fn every_command_of_the_documents_runs_as_written() {
    let documents =
        ["README.md", "docs/tour.md", "docs/tutorial.md", "docs/gallery.md"].map(|page| commands(&read(page)));
    let counts: Vec<usize> = documents.iter().map(Vec::len).collect();
    assert!(counts[0] > 10 && counts[1] > 25 && counts[2] > 5 && counts[3] > 3, "all have commands: {documents:?}");
    // The others go through commands of README.md, too.
    let all = documents.concat();
    let commands: Vec<String> =
        all.iter().enumerate().filter(|(at, one)| !all[..*at].contains(one)).map(|(_, one)| one.clone()).collect();
    for (command, ..) in NOT_RUN {
        assert!(commands.iter().any(|one| one == command), "no document has `{command}`: strike it from the list");
    }
    let clone = Scratch::new("readme");
    for folder in ["examples", "figures"] {
        let from = fs::canonicalize(Path::new(ROOT).join(folder)).expect("part of the repository");
        std::os::unix::fs::symlink(from, clone.path().join(folder)).expect("a link");
    }
    for command in &commands {
        match NOT_RUN.iter().find(|(listed, ..)| listed == command) {
            Some((_, why, instead)) => {
                println!("not run: {command} ({why})");
                instead.iter().for_each(|command| must_run(command, clone.path()));
            }
            None => must_run(command, clone.path()),
        }
    }
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let example = read("examples/our-pod.toml");
    assert!(read("README.md").contains(&format!("```toml\n{example}```")), "README.md shows another example");
}
