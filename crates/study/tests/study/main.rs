//! Studies with a stand-in for the simulator: files written, their order, and recovery from interruptions.

mod estimate;
mod events;
mod figures;
#[cfg(target_os = "linux")]
mod programs;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge_results::{Answer, PointSummary};
use selvedge_scenario::{Changes, Plan, Point, Seeds};
use selvedge_sim::record::Recording;
use selvedge_sim::{ConfigError, Library, Parallel, SimConfig};
use selvedge_study::{
    Marker, Outcome, ResultsFolder, Study, StudyError, Tracing, Watch, Worlds, check_writable, free_name,
};
use selvedge_telemetry::{FlowRow, Observer, RunRecord};
use selvedge_testkit::{Scratch, texts};
use selvedge_units::{Bytes, Duration, HostId, Instant};

const VERSION: &str = "1.2.3";

fn plan() -> Plan {
    plan_with(&[])
}

fn plan_with(sets: &[&str]) -> Plan {
    let sets = ["seeds=3"].iter().chain(sets).map(|&set| set.to_owned()).collect();
    let changes = Changes { sets, ..Changes::default() };
    Plan::from_text("stand-in.toml", texts::SCENARIO, Path::new(""), &changes).expect("the scenario is valid")
}

/// Simulates ten flows whose times depend on the seed.
fn stand_in(
    config: &SimConfig,
    _: &dyn Library,
    parallel: Parallel,
    observer: &mut dyn Observer,
    _: Option<Recording<'_>>,
) -> Result<RunRecord, ConfigError> {
    assert!(parallel.threads >= 1);
    for id in 0..10 {
        let start = Instant::from_ps(id * 1_000_000);
        let row = FlowRow {
            id,
            workload: 0,
            group: 0,
            src: HostId(0),
            dst: HostId(1),
            size: Bytes::from_kb(10),
            packets: 10,
            start,
            finish: Some(start + Duration::from_us(10 + config.seed)),
            ideal: Duration::from_us(10),
            spurious: 0,
            measured: true,
        };
        observer.on_flows(&[row]);
        if !observer.on_progress(start, id + 1) {
            break;
        }
    }
    Ok(RunRecord { fingerprint: config.seed, flows_finished: 10, wall_s: 0.1, ..RunRecord::default() })
}

/// Simulates the same run for every seed.
fn not_random(
    config: &SimConfig,
    library: &dyn Library,
    parallel: Parallel,
    observer: &mut dyn Observer,
    recording: Option<Recording<'_>>,
) -> Result<RunRecord, ConfigError> {
    let record = stand_in(config, library, parallel, observer, recording)?;
    Ok(RunRecord { fingerprint: 7, ..record })
}

/// A watch that interrupts once `allowed` points are complete, and records everything reported.
struct Spectator {
    allowed: usize,
    complete: AtomicUsize,
    parts: Mutex<Vec<f64>>,
    notices: Mutex<Vec<String>>,
}

impl Spectator {
    fn until(allowed: usize) -> Self {
        Self { allowed, complete: AtomicUsize::new(0), parts: Mutex::default(), notices: Mutex::default() }
    }
}
impl Watch for Spectator {
    fn on_progress(&self, part: f64) {
        self.parts.lock().unwrap().push(part);
    }
    fn on_point(&self, _: &Plan, _: Point, _: &PointSummary) {
        self.complete.fetch_add(1, Ordering::Relaxed);
    }
    fn on_notice(&self, text: &str) {
        self.notices.lock().unwrap().push(text.to_owned());
    }
    fn interrupted(&self) -> bool {
        self.complete.load(Ordering::Relaxed) >= self.allowed
    }
}

fn begin(plan: &Plan, target: &Path, force: bool) -> Result<ResultsFolder, StudyError> {
    ResultsFolder::create(target, plan, &Marker::new(plan, VERSION, "selvedge run"), force)
}

fn run(plan: &Plan, folder: &ResultsFolder, watch: &Spectator, threads: usize) -> Result<Outcome, StudyError> {
    run_in(Worlds { simulated: &stand_in, real: &stand_in }, plan, folder, watch, threads)
}

fn run_in(
    worlds: Worlds<'_>,
    plan: &Plan,
    folder: &ResultsFolder,
    watch: &Spectator,
    threads: usize,
) -> Result<Outcome, StudyError> {
    let study = Study {
        plan,
        folder,
        threads,
        worlds,
        watch,
        elapsed: &|| 1.5,
        version: VERSION,
        command: "selvedge run",
        estimate: None,
        needs_seeds: None,
    };
    study.run()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is readable");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn results_appear_whole() {
    let scratch = Scratch::new("study-whole");
    let (plan, target) = (plan(), scratch.join("out"));
    let folder = begin(&plan, &target, false).expect("the folder is readable");
    assert!(!target.exists());
    assert_eq!(files(folder.partial()), ["parts", "scenario.toml", "unfinished.json", "unfinished.lock"]);

    let watch = Spectator::until(usize::MAX);
    let Outcome::Complete(summary) = run(&plan, &folder, &watch, 2).expect("the study runs") else {
        panic!("expected a complete study")
    };
    assert_eq!(
        files(&target),
        ["flows.parquet", "links.parquet", "ports.parquet", "report.html", "scenario.toml", "summary.json"]
    );
    assert!(!folder.partial().exists());
    assert_eq!(summary.seeds, [1, 2, 3]);
    let fct = &summary.find("irn").unwrap().metrics["fct_mean_us"];
    assert_eq!(fct.per_seed, [Some(11.0), Some(12.0), Some(13.0)]);
    assert_eq!((summary.run.threads, summary.run.wall_s), (2, 1.5));
    assert_eq!(fs::read_to_string(target.join("scenario.toml")).expect("a readable text file"), plan.to_toml());

    let parts = watch.parts.lock().unwrap();
    assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)));
    assert_eq!(parts.iter().copied().fold(0.0, f64::max), 1.0);
}

#[test]
fn threads_do_not_show_in_the_results() {
    let scratch = Scratch::new("study-threads");
    let plan = plan();
    let rows: Vec<Vec<u8>> = [1, 2, 5, 16]
        .into_iter()
        .map(|threads| {
            let target = scratch.join(&format!("out{threads}"));
            let folder = begin(&plan, &target, false).expect("the folder is readable");
            run(&plan, &folder, &Spectator::until(usize::MAX), threads).expect("the study runs");
            fs::read(target.join("flows.parquet")).unwrap()
        })
        .collect();
    assert!(rows.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn go_back_n_behind_switches_that_repair_losses_is_called_netrt() {
    let scratch = Scratch::new("study-netrt");
    let changes = Changes { series: Some("netrt,irn+pfc".into()), ..Changes::default() };
    let plan =
        Plan::from_text("stand-in.toml", texts::SCENARIO, Path::new(""), &changes).expect("the scenario is valid");
    let folder = begin(&plan, &scratch.join("out"), false).expect("the folder is readable");
    let outcome = run(&plan, &folder, &Spectator::until(usize::MAX), 1).expect("the study runs");
    let Outcome::Complete(summary) = outcome else { panic!("expected a complete study") };
    assert_eq!(summary.series[0].traits.recovery, "netrt");
    assert_eq!(summary.verdict.answer, Answer::NotPut, "the stand-in loses nothing and pauses nothing");
}

/// A second seed is run to check that seeds make no difference, and no further ones.
#[test]
fn a_study_in_which_nothing_is_random_has_one_seed() {
    let scratch = Scratch::new("study-deterministic");
    let changes = Changes { seeds: Some(Seeds::Count(5)), ..Changes::default() };
    let plan =
        Plan::from_text("stand-in.toml", texts::SCENARIO, Path::new(""), &changes).expect("the scenario is valid");
    let target = scratch.join("out");
    let folder = begin(&plan, &target, false).expect("the folder is readable");
    let spectator = Spectator::until(usize::MAX);
    let outcome = run_in(Worlds { simulated: &not_random, real: &not_random }, &plan, &folder, &spectator, 1);
    assert_eq!(spectator.complete.load(Ordering::Relaxed), 2 * plan.series.len(), "a second seed was tried");
    let Outcome::Complete(summary) = outcome.expect("the study runs") else { panic!("expected a complete study") };
    assert_eq!((summary.seeds.as_slice(), summary.run.deterministic), ([1].as_slice(), true));
    assert_eq!(summary.run.points.len(), plan.series.len());
    let again = Plan::from_results(&target.join("scenario.toml")).expect("the scenario is valid");
    assert_eq!(again.seeds, [1]);
}

#[test]
fn what_was_interrupted_continues() {
    let scratch = Scratch::new("study-resume");
    let (plan, target) = (plan(), scratch.join("out"));
    let folder = begin(&plan, &target, false).expect("the folder is readable");
    let outcome = run(&plan, &folder, &Spectator::until(2), 1).expect("the study runs");
    assert_eq!(outcome, Outcome::Interrupted { done: 2, of: 6 });
    assert!(!target.exists());
    let parts = folder.partial().join("parts");
    drop(folder);

    // Opened by either name, using only the resolved scenario.
    for name in ["out", "out.partial", "out.partial/"] {
        let folder = ResultsFolder::open(&scratch.join(name)).expect("unfinished results");
        let again = Plan::from_file(&folder.scenario(), &Changes::default()).expect("the resolved scenario");
        folder.check(&again, VERSION).expect("the study is unchanged");
        assert_eq!(folder.target(), target);
    }

    // One point is damaged while the study is interrupted.
    let summary = files(&parts).into_iter().find(|name| name.ends_with("summary.json")).expect("a complete point");
    fs::write(parts.join(&summary), "{ \"series\": ").expect("writable");
    let watch = Spectator::until(usize::MAX);
    let folder = ResultsFolder::open(&target).expect("unfinished results");
    let Outcome::Complete(mut resumed) = run(&plan, &folder, &watch, 1).expect("the study runs") else {
        panic!("expected a complete study")
    };
    let notices = watch.notices.lock().unwrap();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains(&summary), "{}", notices[0]);
    assert_eq!(watch.complete.load(Ordering::Relaxed), 5, "one point was kept");

    // Equal to an uninterrupted study, except for the time of both sessions.
    assert_eq!(std::mem::replace(&mut resumed.run.wall_s, 1.5), 3.0);
    let other = begin(&plan, &scratch.join("straight"), false).expect("the folder is readable");
    let Outcome::Complete(straight) = run(&plan, &other, &Spectator::until(usize::MAX), 1).expect("the study runs")
    else {
        panic!("expected a complete study")
    };
    assert_eq!(resumed, straight);
    let rows = |name: &str| fs::read(scratch.join(name).join("flows.parquet")).unwrap();
    assert_eq!(rows("out"), rows("straight"));
}

/// A function that damages a file.
type Damage = fn(&Path);

/// Damage to any of a point's files.
#[test]
fn a_point_with_a_damaged_part_is_simulated_anew() {
    let scratch = Scratch::new("study-damaged-part");
    let plan = plan();
    let damages: [(&str, Damage); 5] = [
        ("ports.parquet", |part| fs::write(part, "PAR1").expect("writable")),
        ("ports.parquet", |part| fs::remove_file(part).expect("the part was written")),
        ("flows.parquet", |part| fs::write(part, "").expect("writable")),
        ("flows.parquet", |part| fs::remove_file(part).expect("the part was written")),
        ("flows.parquet", |part| {
            let mut bytes = fs::read(part).expect("the part was written");
            bytes[10] ^= 1;
            fs::write(part, bytes).expect("writable");
        }),
    ];
    for (n, (file, damage)) in damages.into_iter().enumerate() {
        let target = scratch.join(&format!("out-{n}"));
        let folder = begin(&plan, &target, false).expect("the folder is readable");
        run(&plan, &folder, &Spectator::until(2), 1).expect("the study runs");
        let parts = folder.partial().join("parts");
        drop(folder);
        let part = files(&parts).into_iter().find(|name| name.ends_with(file)).expect("a complete point");
        damage(&parts.join(&part));

        let folder = ResultsFolder::open(&target).expect("unfinished results");
        let watch = Spectator::until(usize::MAX);
        let outcome = run(&plan, &folder, &watch, 1).expect("the study runs");
        assert!(matches!(outcome, Outcome::Complete(_)), "{part}: {outcome:?}");
        let notices = watch.notices.lock().unwrap();
        assert!(notices.len() == 1 && notices[0].contains(&part), "{notices:?}");
        assert_eq!(watch.complete.load(Ordering::Relaxed), 5, "one point was kept");
    }
}

#[test]
fn points_that_somebody_has_thrown_away_are_simulated_anew() {
    let scratch = Scratch::new("study-without-parts");
    let (plan, target) = (plan(), scratch.join("out"));
    let folder = begin(&plan, &target, false).expect("the folder is readable");
    run(&plan, &folder, &Spectator::until(2), 1).expect("the study runs");
    fs::remove_dir_all(folder.partial().join("parts")).expect("the folder of parts exists");
    drop(folder);
    let folder = ResultsFolder::open(&target).expect("unfinished results");
    let watch = Spectator::until(usize::MAX);
    assert!(matches!(run(&plan, &folder, &watch, 1), Ok(Outcome::Complete(_))));
    assert_eq!(watch.complete.load(Ordering::Relaxed), 6);
}

#[test]
fn traces_of_an_interrupted_study_are_continued() {
    let scratch = Scratch::new("study-traces");
    let (plan, target) = (plan(), scratch.join("out"));
    let tracing = Tracing { what: vec!["flow=3".to_owned()], ..Tracing::default() };
    tracing.check(&plan).expect("the flow exists");
    let marker = Marker { tracing, ..Marker::new(&plan, VERSION, "selvedge run --trace flow=3") };
    let folder = ResultsFolder::create(&target, &plan, &marker, false).expect("the folder is readable");
    run(&plan, &folder, &Spectator::until(1), 1).expect("the study runs");
    let first = ["irn-seed1.pcapng", "irn-seed1.perfetto-trace"];
    assert_eq!(files(&folder.partial().join("traces")), first);
    drop(folder);

    let folder = ResultsFolder::open(&target).expect("unfinished results");
    let watch = Spectator::until(usize::MAX);
    run(&plan, &folder, &watch, 1).expect("the study runs");
    let all = [&first[..], &["roce+pfc-seed1.pcapng", "roce+pfc-seed1.perfetto-trace"]].concat();
    assert_eq!(files(&target.join("traces")), all);
    // The stand-in does not record.
    let notices = watch.notices.lock().unwrap();
    assert_eq!(*notices, ["--trace flow=3: has not begun in series \"roce+pfc\", seed 1"]);
}

#[test]
fn what_can_be_written_is_found_out_without_a_trace() {
    let scratch = Scratch::new("study-writable");
    let (old, below) = (scratch.join("old"), scratch.join("old/below"));
    fs::write(&old, "as it was").expect("writable");
    check_writable(&old).expect("the file exists and is writable");
    assert_eq!(fs::read_to_string(&old).expect("a readable text file"), "as it was");
    check_writable(&scratch.join("new/folder/file")).expect("the path can be created");
    assert_eq!(files(scratch.path()), ["old"]);

    let error = check_writable(&below).expect_err("a folder in a file");
    assert!(
        error.is_input() && error.to_string().starts_with(&format!("{}: cannot write it", below.display())),
        "{error}"
    );
    assert!(check_writable(scratch.path()).expect_err("should be refused").is_input());
    assert_eq!(files(scratch.path()), ["old"]);
}

/// The folder of traces is checked before there are results that could be continued.
#[test]
fn traces_that_cannot_be_written_are_refused_at_once() {
    let scratch = Scratch::new("study-trace-folder");
    fs::write(scratch.join("file"), "").expect("writable");
    let tracing = |folder: &str| Tracing {
        what: vec!["flow=3".to_owned()],
        folder: Some(scratch.join(folder)),
        ..Tracing::default()
    };
    tracing("new/traces").check(&plan()).expect("the path can be created");
    let error = tracing("file/traces").check(&plan()).expect_err("a folder in a file");
    assert!(error.is_input() && error.to_string().contains("file/traces/irn-seed1.pcapng: cannot write"), "{error}");
    assert_eq!(files(scratch.path()), ["file"]);
}

#[test]
fn another_version_or_scenario_is_refused() {
    let scratch = Scratch::new("study-refused");
    let (plan, target) = (plan(), scratch.join("out"));
    drop(begin(&plan, &target, false).expect("the folder is readable"));
    let folder = ResultsFolder::open(&target).expect("unfinished results");
    let error = folder.check(&plan, "9.9.9").expect_err("another version");
    assert!(error.is_input() && error.to_string().contains("1.2.3"), "{error}");
    let error = folder.check(&plan_with(&["workload.poisson.load=0.4"]), VERSION).expect_err("another scenario");
    assert!(error.to_string().contains("has changed"), "{error}");
}

#[test]
fn nothing_is_overwritten_by_accident() {
    let scratch = Scratch::new("study-overwrite");
    let (plan, target) = (plan(), scratch.join("out"));
    let refused = |force| begin(&plan, &target, force).expect_err("should be refused").to_string();

    drop(begin(&plan, &target, false).expect("the folder is readable"));
    assert!(refused(false).contains("--resume"), "unfinished results");
    let folder = ResultsFolder::open(&target).expect("unfinished results");
    run(&plan, &folder, &Spectator::until(usize::MAX), 2).expect("the study runs");
    assert!(refused(false).contains("--force"), "results");
    assert_eq!(free_name(scratch.path(), "out").file_name().and_then(|name| name.to_str()), Some("out-1"));

    // Results are replaced at the very end, and only on request; other files beside them are kept.
    fs::write(target.join("notes.md"), "mine").expect("a file");
    fs::write(target.join("fct-old.txt"), "").expect("a file");
    fs::create_dir(target.join("plots")).expect("the folder is readable");
    let folder = begin(&plan, &target, true).expect("results replaced by force");
    assert!(target.join("summary.json").exists());
    run(&plan, &folder, &Spectator::until(usize::MAX), 2).expect("the study runs");
    assert_eq!(files(scratch.path()), ["out"]);
    assert_eq!(fs::read_to_string(target.join("notes.md")).expect("the file is kept"), "mine");
    assert!(target.join("plots").is_dir() && !target.join("fct-old.txt").exists());

    // A folder without results is never changed.
    let photos = scratch.join("photos");
    fs::create_dir(&photos).expect("the folder is readable");
    fs::write(photos.join("beach.jpg"), "sand").expect("a file");
    let error = begin(&plan, &photos, true).expect_err("should be refused");
    assert!(error.to_string().contains("holds no results"), "{error}");
    let file = scratch.join("file");
    fs::write(&file, "").expect("a file");
    assert!(begin(&plan, &file, true).expect_err("should be refused").to_string().contains("is a file"));
    let error = begin(&plan, &file.join("below"), false).expect_err("a folder in a file");
    assert!(error.is_input() && error.to_string().ends_with("choose another --out"), "{error}");

    // Results go to a link's destination, and the link is kept; a dangling link is refused.
    #[cfg(unix)]
    {
        let (disk, link) = (scratch.join("disk"), scratch.join("to-disk"));
        fs::create_dir(&disk).expect("the folder is readable");
        std::os::unix::fs::symlink(&disk, &link).expect("a link");
        let folder = begin(&plan, &link, false).expect("the folder is readable");
        drop(folder);
        let folder = ResultsFolder::open(&link).expect("unfinished results");
        run(&plan, &folder, &Spectator::until(usize::MAX), 2).expect("the study runs");
        assert!(link.is_symlink() && disk.join("summary.json").exists());
        let link = scratch.join("link");
        std::os::unix::fs::symlink("nowhere", &link).expect("a link");
        let error = begin(&plan, &link, true).expect_err("should be refused").to_string();
        assert!(error.contains("link: is a link that leads nowhere"), "{error}");
        assert!(!scratch.join("link.partial").exists());
    }
}

#[test]
fn a_folder_that_somebody_writes_to_is_left_alone() {
    let scratch = Scratch::new("study-in-use");
    let (plan, target) = (plan(), scratch.join("out"));
    let assert_in_use = |result: Result<ResultsFolder, StudyError>| {
        let error = result.expect_err("should be refused as in use");
        assert!(error.is_input() && error.to_string().contains("out.partial: in use by another process"), "{error}");
    };
    let begun = begin(&plan, &target, false).expect("the folder is readable");
    run(&plan, &begun, &Spectator::until(1), 1).expect("the study runs");
    let before = files(&begun.partial().join("parts"));
    assert_in_use(ResultsFolder::open(&target));
    assert_in_use(begin(&plan, &target, false));
    assert_in_use(begin(&plan, &target, true));
    assert_eq!(files(&begun.partial().join("parts")), before);

    // A continuing process holds the lock as well.
    drop(begun);
    let resumed = ResultsFolder::open(&target).expect("no process holds the lock");
    assert_in_use(ResultsFolder::open(&target));
    run(&plan, &resumed, &Spectator::until(usize::MAX), 1).expect("the study runs");
    assert_eq!(
        files(&target),
        ["flows.parquet", "links.parquet", "ports.parquet", "report.html", "scenario.toml", "summary.json"]
    );
    let error = ResultsFolder::open(&target).expect_err("should be refused").to_string();
    assert!(error.contains("these results are complete"), "{error}");
}

/// The run was killed before there was a marker, at any step.
#[test]
fn a_run_that_was_killed_before_it_had_begun_is_begun_anew() {
    for left in [&[][..], &["unfinished.lock"], &["unfinished.lock", "unfinished.json.new", "old-input.txt"]] {
        let scratch = Scratch::new("study-stillborn");
        let (plan, target, partial) = (plan(), scratch.join("out"), scratch.join("out.partial"));
        fs::create_dir(&partial).expect("the folder is readable");
        left.iter().for_each(|name| fs::write(partial.join(name), "").expect("a file"));
        let error = ResultsFolder::open(&target).expect_err("nothing to resume").to_string();
        assert!(error.ends_with("nothing is lost: give the same command again"), "{error}");
        let folder = begin(&plan, &target, false).expect("the unfinished results are taken over");
        assert_eq!(files(&partial), ["parts", "scenario.toml", "unfinished.json", "unfinished.lock"]);
        assert!(begin(&plan, &target, false).expect_err("should be refused").to_string().contains("in use"));
        run(&plan, &folder, &Spectator::until(usize::MAX), 1).expect("the study runs");
    }

    // Folders of other origin, and results that only lack their final name, are not changed.
    let in_the_way = "out.partial: is in the way and holds no unfinished results";
    let complete = "out.partial: these results are complete and only lack their name; rename it to ";
    for (kept, said) in [
        (&["beach.jpg"][..], in_the_way),
        (&["unfinished.lock", "summary.json"], in_the_way),
        (&["unfinished.lock", "summary.json", "scenario.toml"], complete),
    ] {
        let scratch = Scratch::new("study-not-ours");
        let partial = scratch.join("out.partial");
        fs::create_dir(&partial).expect("the folder is readable");
        kept.iter().for_each(|name| fs::write(partial.join(name), "").expect("a file"));
        for force in [false, true] {
            let error = begin(&plan(), &scratch.join("out"), force).expect_err("should be refused").to_string();
            assert!(error.contains(said), "{error}");
        }
        if said == complete {
            let error = ResultsFolder::open(&partial).expect_err("nothing to resume").to_string();
            assert!(error.contains(complete), "{error}");
        }
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        assert_eq!(files(&partial), kept);
    }
}

#[test]
fn unfinished_results_beside_results_can_be_continued() {
    let scratch = Scratch::new("study-both");
    let (plan, target) = (plan(), scratch.join("out"));
    let complete = |folder: &ResultsFolder| run(&plan, folder, &Spectator::until(usize::MAX), 1).map(drop);
    complete(&begin(&plan, &target, false).expect("the folder is readable")).expect("the study runs");

    // An interrupted run that was to replace results must be continued first.
    drop(begin(&plan, &target, true).expect("results replaced by force"));
    let error = begin(&plan, &target, false).expect_err("should be refused").to_string();
    assert!(error.contains("continue them with --resume"), "{error}");
    complete(&ResultsFolder::open(&target).expect("unfinished results")).expect("the study runs");

    // Results that appear at the target meanwhile are reported before anything is simulated, and at the end.
    let in_the_way = |error: &StudyError| {
        let wanted = "out: results are here already, where the unfinished results are to go; move that away";
        assert!(error.is_input() && error.to_string().ends_with(wanted), "{error}");
    };
    fs::rename(&target, scratch.join("elsewhere")).expect("the results can be moved");
    let folder = begin(&plan, &target, false).expect("the folder is readable");
    fs::rename(scratch.join("elsewhere"), &target).expect("the results can be moved back");
    in_the_way(&complete(&folder).expect_err("should be refused"));
    drop(folder);
    in_the_way(&ResultsFolder::open(&target).expect_err("should be refused"));
    fs::rename(&target, scratch.join("elsewhere")).expect("the results can be moved");
    complete(&ResultsFolder::open(&target).expect("unfinished results")).expect("the study runs");
}

#[test]
fn a_failing_simulator_is_reported_with_its_point() {
    let scratch = Scratch::new("study-failing");
    let (plan, target) = (plan(), scratch.join("out"));
    let watch = Spectator::until(usize::MAX);
    let attempt = |simulate: &selvedge_study::Simulate, name: &str| {
        let folder = begin(&plan, &scratch.join(name), false).expect("the folder is readable");
        let study = Study {
            plan: &plan,
            folder: &folder,
            threads: 1,
            worlds: Worlds { simulated: simulate, real: simulate },
            watch: &watch,
            elapsed: &|| 0.0,
            version: VERSION,
            command: "selvedge run",
            estimate: None,
            needs_seeds: None,
        };
        study.run().expect_err("should fail")
    };
    let error = attempt(&|_, _, _, _, _| Err(ConfigError::new("nic.mtu", "too large")), "refusing");
    assert_eq!(error.to_string(), "series \"irn\", seed 1: nic.mtu: too large");
    assert!(error.is_input());
    let error = attempt(&|_, _, _, _, _| panic!("the sky fell"), "panicking");
    assert!(error.to_string().starts_with("series \"irn\", seed 1: the simulator failed (the sky fell)"), "{error}");
    assert!(!error.is_input());
    assert!(!target.exists());
}

/// The folder is intact after the disk was full: with space, the study continues.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_a_study_that_can_go_on_later() {
    let scratch = Scratch::new("study-full");
    let (plan, target) = (plan(), scratch.join("out"));
    let folder = begin(&plan, &target, false).expect("the folder is readable");
    let part = folder.partial().join("parts/001-seed-1.flows.parquet");
    std::os::unix::fs::symlink("/dev/full", &part).expect("a link");
    let error = run(&plan, &folder, &Spectator::until(usize::MAX), 1).expect_err("no space");
    assert!(!error.is_input() && error.is_storage_failure() && error.to_string().contains("space left"), "{error}");
    assert!(error.to_string().starts_with(&part.display().to_string()), "{error}");
    assert!(!target.exists());

    drop(folder);
    fs::remove_file(&part).expect("the part exists");
    let folder = ResultsFolder::open(&target).expect("unfinished results");
    folder.check(&plan, VERSION).expect("the study is unchanged");
    let outcome = run(&plan, &folder, &Spectator::until(usize::MAX), 1).expect("the study runs");
    assert!(matches!(outcome, Outcome::Complete(_)) && target.join("summary.json").exists());
}

#[test]
fn flows_of_files_are_written_as_hpcc_writes_them() {
    let scratch = Scratch::new("study-fct");
    let (topology, flows) = (scratch.join("topology.txt"), scratch.join("flow.txt"));
    fs::write(&topology, "4 1 3\n0\n0 1 10Gbps 1us 0\n0 2 10Gbps 1us 0\n0 3 10Gbps 1us 0\n").expect("writable");
    fs::write(&flows, "1\n1 2 3 100 10000 0.001\n").expect("writable");
    let changes = Changes { series: Some("irn,roce+pfc".to_owned()), ..Changes::default() };
    let plan = Plan::from_files(&topology, &flows, &changes).expect("the scenario is valid");
    let target = scratch.join("out");
    let folder = begin(&plan, &target, false).expect("the folder is readable");
    run(&plan, &folder, &Spectator::until(usize::MAX), 2).expect("the study runs");
    let text = fs::read_to_string(target.join("fct.txt")).expect("a readable text file");
    // The stand-in sends from host 0, node 1 of the file, to host 1, node 2.
    assert_eq!(text.lines().next(), Some("0b000101 0b000201 10000 100 10000 0 11000 10000"));
    assert_eq!(text.lines().count(), 10);
    assert_eq!(fs::read_to_string(target.join("fct-irn.txt")).expect("a readable text file"), text);
    assert!(target.join("fct-roce+pfc.txt").exists());
}
