//! Figures: how they are found, runs shared by several of them, and the files written about them.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge_results::{CheckedFigure, ClaimsInput};
use selvedge_study::{Checked, ClaimsFiles, Figure, FigureCheck, Figures, StudyError, Worlds};
use selvedge_testkit::{Scratch, texts};

use crate::{Spectator, VERSION, stand_in};

/// Returns an expectation on the slowdown, which is a little above 1 in the stand-in.
fn expect(bound: &str) -> String {
    format!("[[expect]]\nsay = 'it works'\nmetric = 'slowdown_mean'\nof = 'irn'\nvalue = {bound}\n")
}

/// Returns a paper's folder with a nested figure that is reproduced, and one that is not.
fn paper(name: &str) -> Scratch {
    Scratch::new(name)
        .with("paper/deep/good/scenario.toml", texts::SCENARIO)
        .with("paper/deep/good/expect.toml", &expect("{ at-least = 0.5 }"))
        .with("paper/bad/scenario.toml", texts::SCENARIO)
        .with("paper/bad/expect.toml", &expect("{ at-most = 0.5 }"))
        .with("paper/notes/readme", "")
}

fn read(scratch: &Scratch, path: &str) -> Result<Figures, StudyError> {
    Figures::read(&[scratch.join(path)], false, || panic!("no figure asks for the real world"))
}

fn check(figures: &[Figure], watch: &Spectator, complete: &(dyn Fn(&CheckedFigure) + Sync)) -> Checked {
    let worlds = Worlds { simulated: &stand_in, real: &stand_in };
    let check = FigureCheck { figures, threads: 2, worlds, watch, elapsed: &|| 1.5, version: VERSION };
    check.run(complete).expect("a check")
}

fn input(figures: &[CheckedFigure]) -> ClaimsInput<'_> {
    ClaimsInput { figures, wall_s: 60.0, threads: 2, version: VERSION, command: "selvedge check" }
}

#[test]
fn figures_are_found_at_any_depth_and_what_they_share_runs_once() {
    let scratch = paper("study-figures");
    let figures = read(&scratch, "paper").expect("two figures").all;
    let names: Vec<String> = figures.iter().map(Figure::name).collect();
    assert_eq!(names, ["paper-bad", "deep-good"]);

    let told = Mutex::new(Vec::new());
    let watch = Spectator::until(usize::MAX);
    let ended = check(&figures, &watch, &|checked| told.lock().unwrap().push(checked.title.clone()));
    let Checked::Complete(checked) = ended else { panic!("expected a complete study") };
    assert_eq!(*told.lock().unwrap(), ["small", "small"]);
    assert_eq!(watch.complete.load(Ordering::Relaxed), 4, "two series with two seeds, for both");
    let of = |checked: &CheckedFigure| (checked.runs, checked.shared, checked.claims[0].fails);
    assert_eq!(checked.iter().map(of).collect::<Vec<_>>(), [(4, 0, true), (4, 4, false)]);

    let ended = check(&figures, &Spectator::until(1), &|_| ());
    assert!(matches!(ended, Checked::Interrupted { done: 1..4, of: 4 }), "{ended:?}");
}

#[test]
fn figures_get_seeds_until_their_claims_are_decided_or_their_limit_is_reached() {
    // Seed n takes 1 + n/10 times the ideal: on 13 seeds the mean of 1.7 is significantly above 1.15.
    let claim = |limit: &str| format!("{limit}{}", expect("{ at-least = 1.15 }"));
    let scratch = Scratch::new("study-more-seeds")
        .with("paper/a/scenario.toml", texts::SCENARIO)
        .with("paper/a/expect.toml", &claim("max-seeds = 20\n"))
        .with("paper/b/scenario.toml", texts::SCENARIO)
        .with("paper/b/expect.toml", &claim("max-seeds = 6\n"))
        .with("paper/c/scenario.toml", texts::SCENARIO)
        .with("paper/c/expect.toml", &claim(""));
    let figures = read(&scratch, "paper").expect("three figures").all;
    assert_eq!(figures.iter().map(Figure::max_seeds).collect::<Vec<_>>(), [Some(20), Some(6), None]);
    let watch = Spectator::until(usize::MAX);
    let Checked::Complete(checked) = check(&figures, &watch, &|_| ()) else { panic!("expected a complete study") };
    let of = |checked: &CheckedFigure| (checked.seeds, checked.runs, checked.shared, checked.claims[0].fails);
    let found: Vec<_> = checked.iter().map(of).collect();
    assert_eq!(found, [(13, 26, 0, false), (6, 12, 12, false), (2, 4, 4, true)]);
    assert_eq!(watch.complete.load(Ordering::Relaxed), 26, "no run is done twice");
    // Interrupted in the second round: the runs done so far are counted.
    let ended = check(&figures, &Spectator::until(5), &|_| ());
    assert!(matches!(ended, Checked::Interrupted { done: 4..8, of: 6..9 }), "{ended:?}");

    // A smoke run judges nothing, and requests no more seeds.
    let smoke =
        Figures::read(&[scratch.join("paper")], true, || panic!("nobody asks")).expect("the figures are valid").all;
    assert!(smoke.iter().all(|figure| figure.max_seeds().is_none()));
}

#[test]
fn folders_without_figures_and_files_are_told_so() {
    let scratch = paper("study-no-figures");
    let refused = |path: &str| read(&scratch, path).expect_err("should be refused").to_string();
    assert!(
        refused("paper/notes").contains("no figure here; expected a folder with an expect.toml and a scenario.toml")
    );
    assert!(refused("paper/bad/scenario.toml").contains("is a file; a figure is a folder"));
    assert!(refused("missing").contains("missing: cannot read it"));
    // The first is fine, and nothing has run.
    let paths: Vec<PathBuf> = ["paper", "paper/notes"].iter().map(|path| scratch.join(path)).collect();
    assert!(Figures::read(&paths, false, || Ok(())).is_err());
}

#[test]
fn figures_with_one_name_are_not_kept_in_one_folder() {
    let scratch = paper("study-names")
        .with("other/paper/bad/scenario.toml", texts::SCENARIO)
        .with("other/paper/bad/expect.toml", &expect("{ at-least = 1 }"));
    read(&scratch, "paper").expect("two figures").check_apart().expect("the figures have different names");
    let figures = read(&scratch, "").expect("three figures");
    let error = figures.check_apart().expect_err("one would replace the other").to_string();
    assert!(error.contains("paper/bad would both be kept as paper-bad; check one of them at a time"), "{error}");
}

#[test]
fn without_the_real_world_its_claims_are_skipped_and_it_is_asked_for_once() {
    let of_world = |world: &str| format!("{}case = '{world}'\n", expect("{ at-least = 1 }"));
    let both = format!("real = true\n{}{}", of_world("simulated"), of_world("real").replace("it works", "there, too"));
    let scratch = paper("study-real-figures").with("paper/bad/expect.toml", &both).with("one/expect.toml", &both);
    let scratch = scratch.with("one/scenario.toml", texts::SCENARIO);
    let paths = [scratch.join("paper"), scratch.join("one")];
    let asked = AtomicUsize::new(0);
    let Figures { all, skipped, .. } = Figures::read(&paths, false, || {
        asked.fetch_add(1, Ordering::Relaxed);
        Err("no such world".to_owned())
    })
    .expect("the figures are valid");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let bad = scratch.join("paper/bad");
    assert_eq!(skipped[0], format!("{}: \"there, too\": no such world", bad.display()));
    assert_eq!((all.len(), skipped.len()), (3, 2));
    assert!(all[0].plan.series.iter().all(|series| series.case.as_deref() == Some("simulated")));
}

#[test]
fn tables_of_claims_keep_the_sections_of_other_papers() {
    let scratch = paper("study-claims");
    let figures = read(&scratch, "paper/bad").expect("a figure").all;
    let Checked::Complete(checked) = check(&figures, &Spectator::until(usize::MAX), &|_| ()) else {
        panic!("expected a complete study")
    };
    let (html, markdown) = (scratch.join("new/claims.html"), scratch.join("claims.md"));
    let before = "# Claims\n\n| [else](#else) | 1 | 1 | 0 | 0 | 1.0.0 |\n\n## else\n\nsomething\n";
    fs::write(&markdown, before).expect("writable");
    let files = ClaimsFiles::new(Some(html.clone()), Some(markdown.clone())).expect("both files can be written");
    assert!(!html.exists());
    files.write(&input(&checked)).expect("the tables are written");
    let text = fs::read_to_string(&markdown).expect("a readable text file");
    assert!(text.contains("## else\n\nsomething") && text.contains("## paper\n\n1 claim"), "{text}");
    assert!(fs::read_to_string(html).expect("a readable text file").contains("it works"));
}

#[test]
fn what_is_no_table_of_claims_is_not_replaced_by_one() {
    let scratch = Scratch::new("study-no-claims").with("notes.md", "# Claims of mine\n").with("empty.md", "\n");
    let files = |name: &str| ClaimsFiles::new(None, Some(scratch.join(name)));
    let error = files("notes.md").expect_err("should be refused").to_string();
    assert!(error.contains("holds something else than claims, which would be lost"), "{error}");
    files("empty.md").expect("an empty file can be replaced");
    files("missing.md").expect("a missing file can be created");
    assert!(files("notes.md/below.md").is_err());
}
