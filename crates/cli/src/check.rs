//! `selvedge check`.

use std::fs;
use std::path::{Path, PathBuf};

use selvedge_results::{ClaimVerdict, Expectations, check as hold, check_smoke, render_claims};
use selvedge_scenario::{Changes, Plan};
use selvedge_study::{Marker, ResultsFolder};
use serde::Serialize;

use crate::args::CheckArgs;
use crate::output::{Failure, json, print, say};
use crate::run::{VERSION, command_line, conduct};

/// One figure and what came of its claims.
#[derive(Serialize)]
struct Checked {
    figure: String,
    smoke: bool,
    claims: Vec<ClaimVerdict>,
}

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
    // All of them are read before the first runs: a typing error in the last costs no time.
    let prepared: Vec<Prepared> = figures.iter().map(|figure| prepare(figure, args)).collect::<Result<_, _>>()?;
    let mut checked = Vec::new();
    for prepared in prepared {
        let claims = run(&prepared, args)?;
        if !args.manner.json {
            print(&format!("{}\n{}\n", prepared.figure.display(), render_claims(&claims)))?;
        }
        checked.push(Checked { figure: prepared.figure.display().to_string(), smoke: args.smoke, claims });
    }
    if args.manner.json {
        print(&(json(&checked) + "\n"))?;
    }
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
    plan: Plan,
    expectations: Expectations,
}

fn prepare(figure: &Path, args: &CheckArgs) -> Result<Prepared, Failure> {
    let path = figure.join(EXPECT);
    let text = fs::read_to_string(&path).map_err(|error| Failure::unreadable(&path, &error))?;
    let expectations =
        Expectations::parse(&text, &path.display().to_string()).map_err(|error| Failure::input(error.to_string()))?;
    let changes = Changes { smoke: args.smoke, ..Changes::default() };
    let plan = Plan::from_file(&figure.join(SCENARIO), &changes)?;
    Ok(Prepared { figure: figure.to_owned(), plan, expectations })
}

/// Runs a figure and holds its claims against the results.
fn run(prepared: &Prepared, args: &CheckArgs) -> Result<Vec<ClaimVerdict>, Failure> {
    let Prepared { figure, plan, expectations } = prepared;
    let place =
        args.out.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("selvedge-check-{}", std::process::id())));
    let target = place.join(name_of(figure));
    let marker = Marker::new(plan, VERSION, &command_line());
    let folder = ResultsFolder::create(&target, plan, &marker, true)?;
    let summary = conduct(plan, &folder, &args.manner);
    if args.out.is_none() {
        // Nobody knows the folder; what cannot be removed is the system's to clear.
        let _ = fs::remove_dir_all(&place);
    } else if !args.manner.quiet {
        say(&format!("report: {}", target.join("report.html").display()));
    }
    let hold = if args.smoke { check_smoke } else { hold };
    Ok(hold(expectations, &summary?))
}

/// The figures in `path`, at any depth, by name.
fn find(path: &Path, figures: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.join(EXPECT).is_file() {
        figures.push(path.to_owned());
        return Ok(());
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

const EXPECT: &str = "expect.toml";
const SCENARIO: &str = "scenario.toml";
