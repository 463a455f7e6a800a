//! `selvedge check`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use selvedge_results::{
    CheckedFigure, ClaimsInput, Expectations, Summary, check as hold, check_smoke, measure, render_claims,
    render_claims_html, render_claims_markdown, render_measured,
};
use selvedge_scenario::{Changes, Plan, World};
use selvedge_study::{Batch, Completed, Marker, ResultsFolder, Worlds, check_writable};
use selvedge_units::words::plural;

use crate::args::CheckArgs;
use crate::clock::{Stopwatch, timed_run};
use crate::output::{Failure, json, print, say};
use crate::progress::Progress;
use crate::real;
use crate::run::{VERSION, command_line, conduct, threads};

pub(crate) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let mut figures = Vec::new();
    for path in &args.paths {
        let before = figures.len();
        find(path, &mut figures)?;
        if figures.len() == before {
            return Err(Failure::input(format!(
                "{}: no figure here; expected a folder with a scenario.toml and an expect.toml",
                path.display()
            )));
        }
    }
    // While there is one thread, and only if some figure wants it.
    let mut reality = Reality::default();
    // All of them are read before the first runs: a typing error in the last costs no time.
    let prepared: Vec<Prepared> =
        figures.iter().map(|figure| prepare(figure, args, &mut reality)).collect::<Result<_, _>>()?;
    let tables = Tables::of(args, prepared.len())?;
    let began = Stopwatch::start();
    let checked = match &args.out {
        Some(place) => keep(&prepared, place, args)?,
        None => judge(&prepared, began, args)?,
    };
    if args.json {
        print(&(json(&checked) + "\n"))?;
    }
    let input = ClaimsInput {
        figures: &checked,
        wall_s: began.seconds(),
        threads: threads(&args.manner),
        version: &args.revision.as_ref().map_or(VERSION.into(), |revision| format!("{VERSION}, {revision}")),
        command: &command_line(),
    };
    tables.write(&input, args.manner.quiet)?;
    let failing = checked.iter().flat_map(|checked| &checked.claims).filter(|claim| claim.fails).count();
    match failing {
        0 => Ok(()),
        1 => Err(Failure::outcome("1 claim fails")),
        n => Err(Failure::outcome(format!("{n} claims fail"))),
    }
}

/// A figure that can run.
struct Prepared {
    figure: PathBuf,
    expectations: Expectations,
    plan: Plan,
}

/// Whether figures can run in the real world: asked once.
#[derive(Default)]
struct Reality(Option<Result<(), String>>);

impl Reality {
    fn acquire(&mut self) -> Result<(), String> {
        self.0.get_or_insert_with(real::acquire).clone()
    }
}

/// The worlds of a figure that wants both. Where the real one cannot be had, says so, and what is skipped for it.
fn worlds(figure: &Path, expectations: &mut Expectations, reality: &mut Reality) -> &'static [World] {
    match reality.acquire() {
        Ok(()) => &[World::Simulated, World::Real],
        Err(why) => {
            for claim in expectations.set_aside(World::Real.case()) {
                say(&format!("skipped: {}: \"{claim}\": {why}", figure.display()));
            }
            &[World::Simulated]
        }
    }
}

fn prepare(figure: &Path, args: &CheckArgs, reality: &mut Reality) -> Result<Prepared, Failure> {
    let path = figure.join(EXPECT);
    let text = read(&path)?;
    let mut expectations =
        Expectations::parse(&text, &path.display().to_string()).map_err(|error| Failure::input(error.to_string()))?;
    let changes = Changes { smoke: args.smoke, ..Changes::default() };
    let mut plan = Plan::from_file(&figure.join(SCENARIO), &changes)?;
    if expectations.real {
        plan = plan.in_worlds(worlds(figure, &mut expectations, reality))?;
    }
    let series: Vec<_> = plan.series.iter().map(|series| (series.case.as_deref(), &*series.series)).collect();
    expectations.check_names(&series).map_err(|error| Failure::input(error.to_string()))?;
    Ok(Prepared { figure: figure.to_owned(), expectations, plan })
}

/// Runs all figures together, and prints each as soon as it is complete.
fn judge(prepared: &[Prepared], began: Stopwatch, args: &CheckArgs) -> Result<Vec<CheckedFigure>, Failure> {
    let threads = threads(&args.manner);
    let plans: Vec<Plan> = prepared.iter().map(|prepared| prepared.plan.clone()).collect();
    if !args.manner.quiet {
        let points: usize = plans.iter().map(|plan| plan.points().count()).sum();
        let (figures, runs) = (plural(plans.len() as u64, "figure"), plural(points as u64, "run"));
        say(&format!("{figures}, {runs} on {}", plural(threads as u64, "thread")));
        let warnings = prepared.iter().flat_map(|one| one.plan.warnings.iter().map(move |text| (one, text)));
        warnings.for_each(|(one, text)| say(&format!("warning: {}: {text}", one.figure.display())));
    }
    let scratch = std::env::temp_dir().join(format!("selvedge-check-{}", std::process::id()));
    fs::create_dir_all(&scratch)
        .map_err(|error| Failure::input(format!("{}: cannot be made: {error}", scratch.display())))?;
    let progress = Progress::new(args.manner.quiet);
    let done: Mutex<Vec<Option<CheckedFigure>>> = Mutex::new(vec![None; plans.len()]);
    let unprinted: Mutex<Option<Failure>> = Mutex::new(None);
    let complete = |Completed { plan, summary, shared }| {
        let checked = checked(&prepared[plan], &summary, shared, args.smoke);
        if !args.json {
            progress.suspend(|| {
                if let Err(failure) = print(&text_of(&checked, began)) {
                    unprinted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                }
            });
        }
        done.lock().unwrap_or_else(PoisonError::into_inner)[plan] = Some(checked);
    };
    let batch = Batch {
        plans: &plans,
        scratch: &scratch,
        threads,
        worlds: Worlds { simulated: &timed_run(threads), real: &real::run() },
        watch: &progress,
        elapsed: &move || began.seconds(),
        version: VERSION,
    };
    let ended = batch.run(&complete);
    progress.clear();
    // Nobody knows the folder; what cannot be removed is the system's to clear.
    let _ = fs::remove_dir_all(&scratch);
    let ended = ended?;
    if ended.done < ended.runs {
        return Err(Failure::interrupted(format!("interrupted: {} of {} runs were complete", ended.done, ended.runs)));
    }
    if let Some(failure) = unprinted.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect())
}

/// Runs one figure after the other, each into a results folder in `place`.
fn keep(prepared: &[Prepared], place: &Path, args: &CheckArgs) -> Result<Vec<CheckedFigure>, Failure> {
    let mut all = Vec::new();
    for prepared in prepared {
        let began = Stopwatch::start();
        let plan = &prepared.plan;
        let target = place.join(name_of(&prepared.figure));
        let marker = Marker::new(plan, VERSION, &command_line());
        let folder = ResultsFolder::create(&target, plan, &marker, true)?;
        let summary = conduct(plan, &folder, &args.manner)?;
        if !args.manner.quiet {
            say(&format!("report: {}", target.join("report.html").display()));
        }
        let checked = checked(prepared, &summary, 0, args.smoke);
        if !args.json {
            print(&text_of(&checked, began))?;
        }
        all.push(checked);
    }
    Ok(all)
}

/// Holds a figure's claims against its results.
fn checked(prepared: &Prepared, summary: &Summary, shared: usize, smoke: bool) -> CheckedFigure {
    let Prepared { figure, expectations, plan } = prepared;
    let hold = if smoke { check_smoke } else { hold };
    CheckedFigure {
        figure: figure.display().to_string(),
        title: plan.title.clone(),
        smoke,
        seeds: plan.seeds.len(),
        runs: plan.points().count(),
        shared,
        cpu_s: summary.run.cpu_s,
        claims: hold(expectations, summary),
        measured: measure(expectations, summary),
    }
}

/// A figure for the terminal.
fn text_of(checked: &CheckedFigure, began: Stopwatch) -> String {
    let CheckedFigure { figure, runs, shared, cpu_s, .. } = checked;
    let others = if *shared > 0 { format!(", {shared} of them other figures' too") } else { String::new() };
    let at = began.seconds() / 60.0;
    format!(
        "{figure}: {}{others}, {cpu_s:.0} s of processor time, after {at:.1} min\n{}{}\n",
        plural(*runs as u64, "run"),
        render_claims(&checked.claims),
        render_measured(&checked.measured)
    )
}

/// Where the tables of claims go.
struct Tables<'a> {
    html: Option<PathBuf>,
    markdown: Option<&'a Path>,
}

impl<'a> Tables<'a> {
    /// Makes sure that they can be written there: to notice it when all has run would be late.
    fn of(args: &'a CheckArgs, figures: usize) -> Result<Self, Failure> {
        // Several figures are a paper's evaluation: its table is worth a page, asked for or not.
        let several = figures > 1 && !args.smoke && !args.json;
        let html = args.html.clone().or_else(|| several.then(|| PathBuf::from(HTML)));
        let markdown = args.markdown.as_deref();
        html.as_deref().into_iter().chain(markdown).try_for_each(check_writable)?;
        if let Some(path) = markdown {
            let before = sections(path)?;
            if !before.trim().is_empty() && !before.starts_with(CLAIMS) {
                let message = "holds something else than claims, which would be lost; choose another --markdown";
                return Err(Failure::input(format!("{}: {message}", path.display())));
            }
        }
        Ok(Self { html, markdown })
    }

    fn write(&self, input: &ClaimsInput<'_>, quiet: bool) -> Result<(), Failure> {
        if let Some(path) = &self.html {
            write_file(path, &render_claims_html(input))?;
        }
        if let Some(path) = self.markdown {
            write_file(path, &render_claims_markdown(input, &sections(path)?))?;
        }
        if !quiet {
            let minutes = input.wall_s / 60.0;
            let figures = plural(input.figures.len() as u64, "figure");
            say(&format!("{figures} in {minutes:.1} minutes on {}", plural(input.threads as u64, "thread")));
            let written = self.html.as_deref().into_iter().chain(self.markdown);
            written.for_each(|path| say(&format!("claims: {}", path.display())));
        }
        Ok(())
    }
}

/// What is in a file of claims, if there is one.
fn sections(path: &Path) -> Result<String, Failure> {
    if path.exists() { read(path) } else { Ok(String::new()) }
}

/// Writes a file, and the folder for it.
fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| Failure::input(format!("{}: cannot be written: {error}", path.display())))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::unreadable(path, &error))
}

/// The figures in `path`, at any depth, by name.
fn find(path: &Path, figures: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.join(EXPECT).is_file() {
        figures.push(path.to_owned());
        return Ok(());
    }
    if path.is_file() {
        return Err(Failure::input(format!(
            "{0}: is a file; a figure is a folder with a {SCENARIO} and an {EXPECT} (a scenario alone: selvedge run {0})",
            path.display()
        )));
    }
    let entries = fs::read_dir(path).map_err(|error| Failure::unreadable(path, &error))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().try_for_each(|folder| find(folder, figures))
}

/// "figures/irn/fig1" as "irn-fig1": a name for its results.
fn name_of(figure: &Path) -> String {
    let parts: Vec<String> =
        figure.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("-")
}

/// Where the page of several figures goes.
const HTML: &str = "results/claims.html";
/// How a page of claims begins.
const CLAIMS: &str = "# Claims\n";
const EXPECT: &str = "expect.toml";
const SCENARIO: &str = "scenario.toml";
