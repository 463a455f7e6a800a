//! Figures of real programs, for `selvedge check`.

use selvedge_results::CheckedFigure;
use selvedge_study::{Figures, Stopwatch};

use crate::args::CheckArgs;
use crate::output::Failure;

/// Returns the number of figures of programs.
#[cfg(target_os = "linux")]
pub(crate) fn count(figures: &Figures) -> usize {
    figures.programs.len()
}

/// Runs the figures of programs, one program at a time, and prints each figure as soon as it is complete. With `--out`,
/// what the programs print is kept.
#[cfg(target_os = "linux")]
pub(crate) fn run(figures: &Figures, began: Stopwatch, args: &CheckArgs) -> Result<Vec<CheckedFigure>, Failure> {
    use selvedge_study::{Measured, span};
    use selvedge_units::words::plural;

    use crate::check::text_of;
    use crate::output::{print, say};
    use crate::progress::Progress;
    use crate::run::VERSION;

    let figures = &figures.programs;
    if figures.is_empty() {
        return Ok(Vec::new());
    }
    let seconds: f64 = figures.iter().map(|figure| figure.seconds()).sum();
    if !args.options.quiet {
        let runs: usize = figures.iter().map(|figure| figure.runs()).sum();
        let (number, runs) = (plural(figures.len() as u64, "figure"), plural(runs as u64, "run"));
        say(&format!("{number} of real programs, {runs} one at a time, about {}", span(seconds)));
    }
    let selvedge = std::env::current_exe()
        .map_err(|error| Failure::outcome(format!("cannot find this program again: {error}")))?;
    let progress = Progress::new(args.options.quiet, Some(seconds));
    let mut all = Vec::new();
    for figure in figures {
        let place = args.out.as_ref().map(|out| out.join(figure.name()).join("measured.jsonl"));
        match figure.run(&selvedge, &progress, &|| began.seconds(), VERSION, place.as_deref())? {
            Measured::Interrupted { done, of } => {
                progress.clear();
                return Err(Failure::interrupted(format!("interrupted: {done} of {of} runs were complete")));
            }
            Measured::Complete(checked) => {
                let mut printed = Ok(());
                if !args.json {
                    progress.suspend(|| printed = print(&text_of(&checked, began)));
                }
                printed?;
                all.push(*checked);
            }
        }
    }
    progress.clear();
    Ok(all)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn count(_: &Figures) -> usize {
    0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Figures, _: Stopwatch, _: &CheckArgs) -> Result<Vec<CheckedFigure>, Failure> {
    Ok(Vec::new())
}
