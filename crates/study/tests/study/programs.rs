//! Figures of real programs: small shell programs stand in for measurements.
#![expect(clippy::disallowed_methods, reason = "real programs take real time")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use selvedge_results::{CheckedFigure, Outcome};
use selvedge_study::{Figures, Measured, StudyError};
use selvedge_testkit::Scratch;

use crate::{Spectator, VERSION};

const HEAD: &str = "title = 'two programs'\nruns = 3\nseconds = 0.1\nneeds = ['sh']\n[series]\n";
const EXPECT: &str =
    "[[expect]]\nsay = 'twice'\nmetric = 'x.us'\nof = 'b'\nthan = 'a'\nratio = { near = 2, tolerance = 0.1 }\n";

fn figure(name: &str, series: &str) -> Scratch {
    Scratch::new(name).with("paper/one/program.toml", &format!("{HEAD}{series}")).with("paper/one/expect.toml", EXPECT)
}

/// Returns the command of a series: a line of a shell.
fn shell(name: &str, line: &str) -> String {
    format!("{name} = ['sh', '-c', '''{line}''']\n")
}

/// Returns the command of a series that prints this number of microseconds.
fn prints(name: &str, us: &str) -> String {
    shell(name, &format!("echo \"{{\\\"figure\\\": \\\"x\\\", \\\"us\\\": {us}}}\""))
}

fn read(scratch: &Scratch, smoke: bool, real: &dyn Fn() -> Result<(), String>) -> Result<Figures, StudyError> {
    Figures::read(&[scratch.join("paper")], smoke, real)
}

fn run(scratch: &Scratch, smoke: bool, watch: &Spectator, keep: Option<&Path>) -> Result<Measured, StudyError> {
    let began = Instant::now();
    let figures = read(scratch, smoke, &|| Ok(())).expect("a figure");
    figures.programs[0].run(Path::new("/nowhere/selvedge"), watch, &|| began.elapsed().as_secs_f64(), VERSION, keep)
}

fn complete(measured: Result<Measured, StudyError>) -> CheckedFigure {
    match measured {
        Ok(Measured::Complete(checked)) => *checked,
        other => panic!("expected a complete figure: {other:?}"),
    }
}

#[test]
fn series_run_in_turn_and_what_they_print_is_judged_and_kept() {
    let series = prints("a", "10$SELVEDGE_RUN") + &prints("b", "20$SELVEDGE_RUN");
    let scratch = figure("study-programs", &series);
    let (watch, kept) = (Spectator::until(usize::MAX), scratch.join("kept/one.jsonl"));
    let checked = complete(run(&scratch, false, &watch, Some(&kept)));
    assert_eq!((checked.runs, checked.seeds, checked.claims[0].outcome), (6, 3, Outcome::Reproduced));
    let lines = fs::read_to_string(&kept).expect("the lines are kept");
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first, serde_json::json!({"series": "a", "case": null, "run": 0, "figure": "x", "us": 100}));
    let order: Vec<_> = lines.lines().map(|line| &line[line.find("\"series\"").expect("a series")..][..12]).collect();
    assert_eq!(order, ["\"series\":\"a\"", "\"series\":\"b\""].repeat(3));

    // A short run is judged by nobody, and runs once.
    let smoke = complete(run(&scratch, true, &watch, None));
    assert_eq!((smoke.runs, smoke.smoke, smoke.claims[0].fails), (2, true, false));
}

#[test]
fn programs_learn_the_path_of_this_one_and_whether_to_be_short() {
    let line = "[ $SELVEDGE = /nowhere/selvedge ] && [ \"$SELVEDGE_SMOKE\" = 1 ] && [ -e program.toml ] && \
                echo \"{\\\"figure\\\": \\\"x\\\", \\\"us\\\": 1}\"";
    let scratch = figure("study-programs-told", &(shell("a", line) + &shell("b", line)));
    complete(run(&scratch, true, &Spectator::until(usize::MAX), None));
    let error = run(&scratch, false, &Spectator::until(usize::MAX), None).expect_err("without SELVEDGE_SMOKE it fails");
    assert!(error.to_string().contains("paper/one: a, run 1 of 3: sh has failed (exit status: 1)"), "{error}");
}

#[test]
fn what_fails_says_why_and_leaves_no_file() {
    let refused = |name: &str, line: &str| {
        let scratch = figure(name, &(shell("a", line) + &prints("b", "1")));
        let kept = scratch.join("kept.jsonl");
        let error = run(&scratch, false, &Spectator::until(usize::MAX), Some(&kept)).expect_err(line).to_string();
        assert!(!kept.exists());
        error
    };
    let error = refused("study-programs-fail", "echo no cable >&2; exit 3");
    assert!(error.contains("sh has failed (exit status: 3): no cable"), "{error}");
    let error = refused("study-programs-text", "echo hello");
    assert!(error.contains("line 1 of its output is no object of JSON"), "{error}");

    let scratch = Scratch::new("study-programs-missing")
        .with("paper/one/program.toml", &format!("{HEAD}a = ['./gone.sh']\nb = ['./gone.sh']\n"))
        .with("paper/one/expect.toml", EXPECT);
    let error = run(&scratch, false, &Spectator::until(usize::MAX), None).expect_err("there is no such program");
    assert!(error.to_string().contains("gone.sh"), "{error}");
}

#[test]
fn an_interrupt_ends_the_program_and_what_it_has_started() {
    let mark = "sleep 61 & echo $! > child; exec sleep 62";
    let scratch = figure("study-programs-interrupt", &(shell("a", mark) + &shell("b", mark)));
    let began = Instant::now();
    let ended = run(&scratch, false, &Spectator::until(0), None).expect("it ends");
    assert!(matches!(ended, Measured::Interrupted { done: 0, of: 6 }), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn processes_left_behind_do_not_hold_a_figure_up() {
    let line = "sleep 63 & echo \"{\\\"figure\\\": \\\"x\\\", \\\"us\\\": 1}\"";
    let scratch = figure("study-programs-left", &(shell("a", line) + &shell("b", line)));
    let began = Instant::now();
    complete(run(&scratch, true, &Spectator::until(usize::MAX), None));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_machine_that_lacks_something_skips_the_claims_with_the_reason() {
    let series = prints("a", "1") + &prints("b", "2");
    let scratch = figure("study-programs-skipped", &series);
    let skipped = |scratch: &Scratch, real: &dyn Fn() -> Result<(), String>| {
        let figures = read(scratch, false, real).expect("a figure");
        assert!(figures.programs.is_empty());
        figures.skipped
    };
    let place = scratch.join("paper/one").display().to_string();
    assert_eq!(skipped(&scratch, &|| Err("no namespaces".to_owned())), [format!("{place}: \"twice\": no namespaces")]);
    let head = HEAD.replace("'sh'", "'no-such-program'");
    let scratch = scratch.with("paper/one/program.toml", &format!("{head}{series}"));
    assert_eq!(
        skipped(&scratch, &|| panic!("not asked")),
        [format!("{place}: \"twice\": no-such-program is not installed")]
    );
}

#[test]
fn claims_name_series_that_there_are() {
    let scratch = figure("study-programs-names", &prints("a", "1"));
    let error = read(&scratch, false, &|| Ok(())).expect_err("there is no series b").to_string();
    assert!(error.contains("expect.toml") && error.contains('b'), "{error}");
}
