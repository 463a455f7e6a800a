//! Command `selvedge run`.

use std::path::{Path, PathBuf, absolute};

use selvedge_results::{Summary, render_table};
use selvedge_scenario::{Changes, Plan, Point, World};
use selvedge_study::{
    Available, Marker, Outcome, ResultsFolder, Stopwatch, Study, StudyEstimate, Tracing, Worlds, free_name,
    measured_rate, timed_run,
};
use selvedge_units::words::{all_of, plural};

use crate::args::{Input, RunArgs, RunOptions, TraceArgs};
use crate::exhausted;
use crate::output::{Failure, has_color, json, print, say, width};
use crate::progress::Progress;
use crate::real;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    if args.real {
        real::acquire().map_err(Failure::input)?;
    }
    if args.estimate {
        return say_estimate(args);
    }
    let (plan, folder, estimate) = match &args.resume {
        Some(path) => {
            let (plan, folder) = resumed(path)?;
            let estimate = estimate(&plan, &Study::left(&plan, &folder), &args.options)?;
            (plan, folder, estimate)
        }
        None => begun(args)?,
    };
    let summary =
        conduct(&plan, &folder, &estimate, &args.options, None).map_err(|failure| with_way_on(failure, &folder))?;
    if args.json {
        return print(&summary.to_json());
    }
    print(&render_table(&summary, width(), has_color()))?;
    if !args.options.quiet {
        say(&format!("\nreport: {}", folder.target().join("report.html").display()));
        if !folder.tracing().is_off() {
            let place = folder.tracing().folder(folder.target());
            let taken = Tracing::taken(&place).map_or(String::new(), |taken| format!(" ({taken})"));
            say(&format!("traces: {}{taken}", place.display()));
        }
    }
    Ok(())
}

/// Prints the cost of a study: packets, memory, time.
fn say_estimate(args: &RunArgs) -> Result<(), Failure> {
    let (plan, points) = match &args.resume {
        Some(path) => {
            let (plan, folder) = resumed(path)?;
            let points = Study::left(&plan, &folder);
            (plan, points)
        }
        None => {
            let plan = plan_with(&args.input, !args.no_controls)?;
            let points = plan.points().collect();
            (plan, points)
        }
    };
    let threads = threads(&args.options);
    let estimate = StudyEstimate::new(&plan, &points, threads)?.with_available(Available::of_this_process());
    let estimate = with_rate(estimate, threads);
    if args.json {
        return print(&(json(&estimate) + "\n"));
    }
    let tracing = tracing_of(&args.tracing)?;
    tracing.check(&plan)?;
    print(&format!("{}: {}\n{estimate}\n", plan.title, plan.in_one_line()))?;
    tracing.size(&plan, &estimate).map_or(Ok(()), |size| print(&format!("{size}\n")))?;
    // A study that would be refused is no failure here: the estimate itself is the answer.
    estimate.check().map_or_else(|error| print(&format!("does not fit: {error}\n")), |()| Ok(()))
}

/// Estimates packet-hops, memory and time of the runs of `points`.
///
/// # Errors
/// Returns an error if the runs need more memory than there is, unless this was declared not to matter.
pub(crate) fn estimate(plan: &Plan, points: &[Point], options: &RunOptions) -> Result<StudyEstimate, Failure> {
    completed(StudyEstimate::new(plan, points, threads(options))?, options)
}

/// Returns an estimate with the available memory, and with the time if that is going to be shown.
///
/// # Errors
/// Returns an error under the conditions of [`estimate`].
pub(crate) fn completed(estimate: StudyEstimate, options: &RunOptions) -> Result<StudyEstimate, Failure> {
    let estimate = estimate.with_available(Available::of_this_process());
    if !options.ignore_memory {
        estimate.check()?;
    }
    let threads = threads(options);
    Ok(if options.quiet { estimate } else { with_rate(estimate, threads) })
}

/// Returns the estimate with its time, where that is long enough to be worth a measurement.
fn with_rate(estimate: StudyEstimate, threads: usize) -> StudyEstimate {
    let quick = estimate.clone().with_rate(SLOW);
    if quick.seconds.is_some_and(|seconds| seconds < 1.0) {
        return quick;
    }
    measured_rate(&timed_run(threads)).map_or(estimate.clone(), |rate| estimate.with_rate(rate))
}

/// Runs `plan` into `folder`, and shows how it goes.
pub(crate) fn conduct(
    plan: &Plan,
    folder: &ResultsFolder,
    estimate: &StudyEstimate,
    options: &RunOptions,
    needs_seeds: Option<&(dyn Fn(&Summary) -> bool + Sync)>,
) -> Result<Summary, Failure> {
    let threads = threads(options);
    if !options.quiet {
        let (series, seeds) = (plan.series.len(), plan.seeds.len());
        say(&format!("{}: {}", plan.title, plan.in_one_line()));
        let (seeds, threads) = (plural(seeds as u64, "seed"), plural(threads as u64, "thread"));
        say(&format!("{series} series x {seeds} on {threads}, to {}", folder.target().display()));
        let added: Vec<&str> =
            plan.series.iter().filter(|series| series.is_added).map(|series| &*series.name).collect();
        if !added.is_empty() {
            say(&format!(
                "controls added, to tell what PFC does from what else differs: {} (--no-controls leaves them out)",
                all_of(&added)
            ));
        }
        plan.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        if !estimate.series.is_empty() {
            say(&format!("estimate: {estimate}"));
        }
        folder.tracing().size(plan, estimate).iter().for_each(|size| say(size));
    }
    let partial = quoted(&folder.partial().display().to_string());
    exhausted::advise(format!(
        "give it more, run fewer at once (--threads 1) or a smaller scenario; what is complete can be continued: selvedge run --resume {partial}"
    ));
    let began = Stopwatch::start();
    let progress = Progress::new(options.quiet, estimate.seconds);
    let study = Study {
        plan,
        folder,
        threads,
        worlds: Worlds { simulated: &timed_run(threads), real: &real::run() },
        watch: &progress,
        elapsed: &move || began.seconds(),
        version: VERSION,
        command: &command_line(),
        estimate: Some(estimate),
        needs_seeds,
    };
    let outcome = study.run();
    progress.clear();
    match outcome? {
        Outcome::Complete(summary) => Ok(*summary),
        Outcome::Interrupted { done, of } => Err(Failure::interrupted(format!(
            "interrupted: {done} of {of} runs are complete; to continue: selvedge run --resume {}",
            quoted(&folder.partial().display().to_string())
        ))),
    }
}

/// Returns the plan of the study that the arguments name.
pub(crate) fn plan_of(input: &Input) -> Result<Plan, Failure> {
    plan_with(input, false)
}

/// Returns the plan of the study that the arguments name. With `controls`, series are added that differ from another in
/// PFC alone, where they are missing and cheap.
fn plan_with(input: &Input, controls: bool) -> Result<Plan, Failure> {
    let changes = Changes {
        controls,
        sets: input.sets.clone(),
        series: input.series.clone(),
        sweeps: input.sweeps.clone(),
        seeds: input.seeds.clone(),
        ..Changes::default()
    };
    let plan = match (&input.file, &input.topology, &input.flows) {
        (None, None, None) => Plan::built_in(&changes),
        (None, Some(topology), Some(flows)) => Plan::from_files(topology, flows, &changes),
        (None, Some(_), None) => {
            return Err(Failure::input(
                "--topology says where, not what: add --flows FILE, or a scenario with a workload",
            ));
        }
        (None, None, Some(_)) => {
            return Err(Failure::input(
                "--flows says what, not where: add --topology FILE, or a scenario with a topology",
            ));
        }
        (Some(file), topology, flows) => {
            let changes = Changes { topology: topology.clone(), flows: flows.clone(), ..changes };
            Plan::from_file(&scenario_in(file), &changes)
        }
    };
    Ok(plan?)
}

/// Returns the path of the scenario at `path`: that file, the scenario.toml of that folder, or "-" for standard input.
pub(crate) fn scenario_in(path: &Path) -> PathBuf {
    if path == Path::new("-") {
        return PathBuf::from("/dev/stdin");
    }
    let inside = path.join("scenario.toml");
    if inside.is_file() { inside } else { path.to_owned() }
}

fn begun(args: &RunArgs) -> Result<(Plan, ResultsFolder, StudyEstimate), Failure> {
    let mut plan = plan_with(&args.input, !args.no_controls && !args.real)?;
    if args.real {
        plan = plan.in_world(World::Real);
        real::check(&plan)?;
    }
    let tracing = tracing_of(&args.tracing)?;
    tracing.check(&plan)?;
    let target = args.out.clone().unwrap_or_else(|| free_name(Path::new("results"), &slug(&plan.title)));
    tracing.check_apart(&target)?;
    let points: Vec<Point> = plan.points().collect();
    let estimate = estimate(&plan, &points, &args.options)?;
    let until_decided = args.until_decided.map(usize::from);
    let marker = Marker { tracing, until_decided, ..Marker::new(&plan, VERSION, &command_line()) };
    let folder = ResultsFolder::create(&target, &plan, &marker, args.force)?;
    Ok((plan, folder, estimate))
}

/// Returns the selection to trace. The folder is made absolute: the study may be continued from elsewhere.
fn tracing_of(args: &TraceArgs) -> Result<Tracing, Failure> {
    let absolute = |folder: &PathBuf| {
        let folder = absolute(folder).map_err(|error| Failure::unreadable(folder, &error))?;
        // The folder of traces is recorded in unfinished results.
        match folder.to_str() {
            Some(_) => Ok(folder),
            None => Err(Failure::input(format!(
                "--trace-dir {}: not a text in UTF-8; give a folder whose name is",
                folder.display()
            ))),
        }
    };
    Ok(Tracing {
        what: args.what.clone(),
        events: args.events.clone(),
        payload: args.payload,
        snaplen: args.snaplen.map(|bytes| bytes as usize),
        folder: args.folder.as_ref().map(absolute).transpose()?,
    })
}

fn resumed(path: &Path) -> Result<(Plan, ResultsFolder), Failure> {
    let folder = ResultsFolder::open(path)?;
    let mut plan = Plan::from_results(&folder.scenario())?;
    folder.check(&plan, VERSION)?;
    // Warnings of the resolved scenario would name places in a folder that is going to be removed.
    plan.warnings = folder.warnings().to_vec();
    plan.ends_as_built_in = folder.ends_as_built_in();
    plan.swept = folder.swept().to_vec();
    plan.grid = folder.grid()?;
    Ok((plan, folder))
}

/// Returns a failure that has a cause outside of the study, with advice on how to continue after its removal.
fn with_way_on(failure: Failure, folder: &ResultsFolder) -> Failure {
    if failure.status != 2 && !failure.storage {
        return failure;
    }
    let partial = quoted(&folder.partial().display().to_string());
    Failure { message: format!("{}; then continue: selvedge run --resume {partial}", failure.message), ..failure }
}

pub(crate) fn threads(options: &RunOptions) -> usize {
    options.threads.map_or_else(cores, usize::from)
}

/// Returns the number of threads that can run at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns a title such as "Does RDMA need a lossless fabric?" as a folder's name.
fn slug(title: &str) -> String {
    let words: Vec<String> =
        title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() > 40 {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug += &word;
    }
    if slug.is_empty() { "study".to_owned() } else { slug }
}

/// Returns the command line, ready to be typed again.
pub(crate) fn command_line() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| quoted(&argument.to_string_lossy()));
    std::iter::once("selvedge".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns `text` as one word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Lower bound of packet-hops per second on any machine.
const SLOW: f64 = 5e6;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
