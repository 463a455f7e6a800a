//! Command `selvedge check`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use selvedge_results::{CheckedFigure, ClaimsInput, Summary, render_claims, render_measured};
use selvedge_study::{
    Checked, ClaimsFiles, Figure, FigureCheck, Figures, Marker, ResultsFolder, Stopwatch, StudyEstimate, Worlds,
    timed_run,
};
use selvedge_units::words::plural;

use crate::args::{CheckArgs, RunOptions};
use crate::output::{Failure, json, print, say};
use crate::programs;
use crate::progress::Progress;
use crate::real;
use crate::run::{VERSION, command_line, completed, conduct, estimate, threads};

pub(crate) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let all = Figures::read(&args.paths, args.smoke, real::acquire)?;
    if args.out.is_some() {
        all.check_apart()?;
    }
    let Figures { all: figures, skipped, .. } = &all;
    skipped.iter().for_each(|claim| say(&format!("skipped: {claim}")));
    let tables = tables(args, figures.len() + programs::count(&all))?;
    let began = Stopwatch::start();
    let mut checked = match &args.out {
        Some(place) => keep(figures, place, args)?,
        None if figures.is_empty() => Vec::new(),
        None => judge(figures, began, args)?,
    };
    checked.extend(programs::run(&all, began, args)?);
    if args.json {
        print(&(json(&checked) + "\n"))?;
    }
    let input = ClaimsInput {
        figures: &checked,
        wall_s: began.seconds(),
        threads: threads(&args.options),
        version: &args.revision.as_ref().map_or(VERSION.into(), |revision| format!("{VERSION}, {revision}")),
        command: &command_line(),
    };
    tables.write(&input)?;
    if !args.options.quiet {
        say_end(&input, &tables);
    }
    let failing = checked.iter().flat_map(|checked| &checked.claims).filter(|claim| claim.fails).count();
    match failing {
        0 => Ok(()),
        1 => Err(Failure::outcome("1 claim fails")),
        n => Err(Failure::outcome(format!("{n} claims fail"))),
    }
}

/// Returns the files that the tables of claims are written to.
fn tables(args: &CheckArgs, figures: usize) -> Result<ClaimsFiles, Failure> {
    // Several figures are a paper's evaluation: their table is written as a page even if not asked for.
    let several = figures > 1 && !args.smoke && !args.json;
    let html = args.html.clone().or_else(|| several.then(|| PathBuf::from(HTML)));
    Ok(ClaimsFiles::new(html, args.markdown.clone())?)
}

/// Runs all figures together, and prints each as soon as it is complete.
fn judge(figures: &[Figure], began: Stopwatch, args: &CheckArgs) -> Result<Vec<CheckedFigure>, Failure> {
    let threads = threads(&args.options);
    let estimates = figures.iter().map(|figure| {
        let points: Vec<_> = figure.plan.points().collect();
        StudyEstimate::new(&figure.plan, &points, threads)
    });
    let estimate = StudyEstimate::together(estimates.collect::<Result<_, _>>()?, threads);
    let estimate = completed(estimate, &args.options)?;
    if !args.options.quiet {
        say_begin(figures, &args.options);
        say(&format!("estimate: {estimate}"));
    }
    let progress = Progress::new(args.options.quiet, estimate.seconds);
    let check = FigureCheck {
        figures,
        threads,
        worlds: Worlds { simulated: &timed_run(threads), real: &real::run() },
        watch: &progress,
        elapsed: &move || began.seconds(),
        version: VERSION,
    };
    let unprinted: Mutex<Option<Failure>> = Mutex::new(None);
    let ended = check.run(&|checked| {
        if !args.json {
            progress.suspend(|| {
                if let Err(failure) = print(&text_of(checked, began)) {
                    unprinted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                }
            });
        }
    });
    progress.clear();
    match ended? {
        Checked::Interrupted { done, of } => {
            Err(Failure::interrupted(format!("interrupted: {done} of {of} runs were complete")))
        }
        Checked::Complete(checked) => {
            unprinted.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(checked), Err)
        }
    }
}

/// Runs one figure after the other, each into a results folder in `place`.
fn keep(figures: &[Figure], place: &Path, args: &CheckArgs) -> Result<Vec<CheckedFigure>, Failure> {
    let mut all = Vec::new();
    for figure in figures {
        let began = Stopwatch::start();
        let target = place.join(figure.name());
        let until_decided = figure.max_seeds();
        let marker = Marker { until_decided, ..Marker::new(&figure.plan, VERSION, &command_line()) };
        let points: Vec<_> = figure.plan.points().collect();
        let estimate = estimate(&figure.plan, &points, &args.options)?;
        let folder = ResultsFolder::create(&target, &figure.plan, &marker, true)?;
        let needs_seeds = |summary: &Summary| figure.needs_seeds(summary);
        let summary = conduct(&figure.plan, &folder, &estimate, &args.options, Some(&needs_seeds))?;
        if !args.options.quiet {
            say(&format!("report: {}", target.join("report.html").display()));
        }
        let checked = figure.checked(&summary, 0);
        if !args.json {
            print(&text_of(&checked, began))?;
        }
        all.push(checked);
    }
    Ok(all)
}

/// Reports the figures to be run, and their warnings.
fn say_begin(figures: &[Figure], options: &RunOptions) {
    let runs: usize = figures.iter().map(|figure| figure.plan.points().count()).sum();
    let (number, runs) = (plural(figures.len() as u64, "figure"), plural(runs as u64, "run"));
    say(&format!("{number}, {runs} on {}", plural(threads(options) as u64, "thread")));
    for Figure { folder, plan, .. } in figures {
        plan.warnings.iter().for_each(|text| say(&format!("warning: {}: {text}", folder.display())));
    }
    let growing = figures.iter().filter(|figure| figure.max_seeds().is_some()).count();
    if growing > 0 {
        let figures = plural(growing as u64, "figure");
        say(&format!("{figures} may take more seeds, until all claims are decided"));
    }
}

/// Reports the time that the figures took, and the files of the tables.
fn say_end(input: &ClaimsInput<'_>, tables: &ClaimsFiles) {
    let minutes = input.wall_s / 60.0;
    let figures = plural(input.figures.len() as u64, "figure");
    say(&format!("{figures} in {minutes:.1} minutes on {}", plural(input.threads as u64, "thread")));
    tables.paths().for_each(|path| say(&format!("claims: {}", path.display())));
}

/// Returns a figure as text for the terminal.
pub(crate) fn text_of(checked: &CheckedFigure, began: Stopwatch) -> String {
    let CheckedFigure { figure, runs, shared, cpu_s, .. } = checked;
    let others = if *shared > 0 { format!(", {shared} of them other figures' too") } else { String::new() };
    let at = began.seconds() / 60.0;
    let not_run = checked.not_run.iter().map(|one| format!("      not run: {}: {}\n", one.say, one.because));
    let not_run: String = not_run.collect();
    format!(
        "{figure}: {}{others}, {cpu_s:.0} s of processor time, after {at:.1} min\n{}{not_run}{}\n",
        plural(*runs as u64, "run"),
        render_claims(&checked.claims),
        render_measured(&checked.measured)
    )
}

/// Default file for the page of several figures.
const HTML: &str = "results/claims.html";
