//! Tests of output to terminals that understand no control codes (`TERM=dumb`).
#![cfg(target_os = "linux")]

use std::process::Command;

use crate::{SMALL, Scratch, text};

/// Returns the output of `arguments` on a terminal, with `settings` in the environment; `None` where there is no
/// `script` to make a terminal.
fn in_terminal(scratch: &Scratch, settings: &[(&str, &str)], arguments: &str) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_selvedge");
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{program} {arguments}"), "/dev/null"]).current_dir(scratch.join("."));
    script.env_remove("NO_COLOR").env("TERM", "xterm").envs(settings.iter().copied());
    match script.output() {
        Ok(output) => Some(text(&output.stdout)),
        Err(error) => {
            eprintln!("skipped: no `script` to make a terminal: {error}");
            None
        }
    }
}

#[test]
fn dumb_terminals_and_those_without_colour_get_no_control_codes() {
    let scratch = Scratch::new("terminal").with("small.toml", SMALL);
    let run = "run small.toml --force --out out";
    let Some(coloured) = in_terminal(&scratch, &[], run) else { return };
    assert!(coloured.contains('\u{1b}'), "a terminal that shows colours gets some: {coloured}");
    for settings in [[("TERM", "dumb")], [("NO_COLOR", "1")], [("TERM", "")]] {
        for arguments in [run, "--help", "run --bogus", "footprint", "compare out out", "check small.toml"] {
            let said = in_terminal(&scratch, &settings, arguments).expect("a terminal by `script`");
            assert!(!said.is_empty() && !said.contains('\u{1b}'), "{settings:?}, {arguments}: {said:?}");
        }
    }
    // Output that goes to no terminal has no control codes, either.
    let (out, error) = scratch.expect(0, &["run", "small.toml", "--force", "--out", "out"]);
    assert!(!out.contains('\u{1b}') && !error.contains('\u{1b}'));
}
