//! `selvedge run`.

use std::path::{Path, PathBuf, absolute};

use selvedge_results::{Summary, render_table};
use selvedge_scenario::{Changes, Plan, World};
use selvedge_study::{Marker, Outcome, ResultsFolder, Study, Tracing, Worlds, free_name};
use selvedge_units::words::{all_of, plural};

use crate::args::{Input, RunArgs, RunOptions, TraceArgs};
use crate::clock::{Stopwatch, timed_run};
use crate::output::{Failure, has_color, print, say, width};
use crate::progress::Progress;
use crate::real;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    if args.real {
        real::acquire().map_err(Failure::input)?;
    }
    let (plan, folder) = match &args.resume {
        Some(path) => resumed(path)?,
        None => begun(args)?,
    };
    let summary = conduct(&plan, &folder, &args.options).map_err(|failure| with_way_on(failure, &folder))?;
    if args.json {
        return print(&summary.to_json());
    }
    print(&render_table(&summary, width(), has_color()))?;
    if !args.options.quiet {
        say(&format!("\nreport: {}", folder.target().join("report.html").display()));
        if !folder.tracing().is_off() {
            say(&format!("traces: {}", folder.tracing().folder(folder.target()).display()));
        }
    }
    Ok(())
}

/// Runs `plan` into `folder` with a progress bar.
pub(crate) fn conduct(plan: &Plan, folder: &ResultsFolder, options: &RunOptions) -> Result<Summary, Failure> {
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
        let large = folder.tracing().warning(plan);
        plan.warnings.iter().chain(&large).for_each(|warning| say(&format!("warning: {warning}")));
    }
    let began = Stopwatch::start();
    let progress = Progress::new(options.quiet);
    let study = Study {
        plan,
        folder,
        threads,
        worlds: Worlds { simulated: &timed_run(threads), real: &real::run() },
        watch: &progress,
        elapsed: &move || began.seconds(),
        version: VERSION,
        command: &command_line(),
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

/// The plan of what the arguments name.
pub(crate) fn plan_of(input: &Input) -> Result<Plan, Failure> {
    plan_with(input, false)
}

/// The same; with `controls`, those that are missing and cheap are added.
fn plan_with(input: &Input, controls: bool) -> Result<Plan, Failure> {
    let changes = Changes {
        controls,
        sets: input.sets.clone(),
        series: input.series.clone(),
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

/// The scenario at `path`: that file, the scenario.toml of that folder, or for "-" standard input.
pub(crate) fn scenario_in(path: &Path) -> PathBuf {
    if path == Path::new("-") {
        return PathBuf::from("/dev/stdin");
    }
    let inside = path.join("scenario.toml");
    if inside.is_file() { inside } else { path.to_owned() }
}

fn begun(args: &RunArgs) -> Result<(Plan, ResultsFolder), Failure> {
    let mut plan = plan_with(&args.input, !args.no_controls && !args.real)?;
    if args.real {
        plan = plan.in_world(World::Real);
        real::check(&plan)?;
    }
    let tracing = tracing_of(&args.tracing)?;
    tracing.check(&plan)?;
    let target = args.out.clone().unwrap_or_else(|| free_name(Path::new("results"), &slug(&plan.title)));
    tracing.check_apart(&target)?;
    let until_decided = args.until_decided.map(usize::from);
    let marker = Marker { tracing, until_decided, ..Marker::new(&plan, VERSION, &command_line()) };
    let folder = ResultsFolder::create(&target, &plan, &marker, args.force)?;
    Ok((plan, folder))
}

/// What to trace. Its folder is made absolute: the study may be continued from elsewhere.
fn tracing_of(args: &TraceArgs) -> Result<Tracing, Failure> {
    let absolute = |folder: &PathBuf| {
        let folder = absolute(folder).map_err(|error| Failure::unreadable(folder, &error))?;
        // Unfinished results say where the traces go.
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
        snaplen: args.snaplen.map(|bytes| bytes as usize),
        folder: args.folder.as_ref().map(absolute).transpose()?,
    })
}

fn resumed(path: &Path) -> Result<(Plan, ResultsFolder), Failure> {
    let folder = ResultsFolder::open(path)?;
    let mut plan = Plan::from_results(&folder.scenario())?;
    folder.check(&plan, VERSION)?;
    // Those of the resolved scenario name places in a folder that will be gone.
    plan.warnings = folder.warnings().to_vec();
    plan.ends_as_built_in = folder.ends_as_built_in();
    plan.swept = folder.swept().to_vec();
    Ok((plan, folder))
}

/// A failure that something outside the study has caused, with what to do when that is put right.
fn with_way_on(failure: Failure, folder: &ResultsFolder) -> Failure {
    if failure.status != 2 {
        return failure;
    }
    let partial = quoted(&folder.partial().display().to_string());
    Failure::input(format!("{}; then continue: selvedge run --resume {partial}", failure.message))
}

pub(crate) fn threads(options: &RunOptions) -> usize {
    options.threads.map_or_else(cores, usize::from)
}

/// As many threads as can run at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// "Does RDMA need a lossless fabric?" as a folder's name.
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

/// The command as one could type it again.
pub(crate) fn command_line() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| quoted(&argument.to_string_lossy()));
    std::iter::once("selvedge".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// `text` as one word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
