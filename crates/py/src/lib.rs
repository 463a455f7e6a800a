//! Native module of the Python package `selvedge`: hands over to the crates, and decides nothing.
//!
//! Values cross the border as JSON, as TOML, or as Arrow tables without copies; `python/selvedge` makes
//! objects of them.
//! Work is done without the interpreter's lock, and Ctrl-C interrupts it.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "nothing but Python sees the items; pyo3 makes some of its own")]

mod plan;
mod results;
mod session;
mod work;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use selvedge_scenario::{KeyHelp, ScenarioError as Refused};
use selvedge_study::StudyError as Failed;
use selvedge_units::{Bytes, Duration, Rate};
use serde::Serialize;

create_exception!(
    selvedge,
    SelvedgeError,
    PyException,
    "Error of Selvedge: what is wrong, where, and what would be right."
);
create_exception!(
    selvedge,
    ScenarioError,
    SelvedgeError,
    "A scenario that is wrong: place, key, and what would be right."
);
create_exception!(selvedge, StudyError, SelvedgeError, "A study that cannot run or be read.");

/// Version of the program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns an exception for a wrong scenario.
fn of_scenario(error: &Refused) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// Returns an exception for a study that cannot run. Remedies are options of the command line; here they are arguments.
fn of_study(error: &Failed) -> PyErr {
    let words = [
        ("choose another --out", "choose another folder"),
        ("--force", "force=True"),
        ("with --resume ", "with selvedge.resume: "),
    ];
    let message = words.iter().fold(error.to_string(), |text, (option, argument)| text.replace(option, argument));
    StudyError::new_err(message)
}

/// Returns a value as JSON.
fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns why nothing can stand at the dotted path `path` of a scenario; `None` if something can.
#[pyfunction]
fn key_error(path: &str) -> Option<String> {
    let error = KeyHelp::of(path).err()?.to_string();
    // The message names its argument first, which the caller shows in words of its own.
    Some(error.strip_prefix(&format!("{path}: ")).map_or(error.clone(), str::to_owned))
}

/// Returns what may stand at the dotted path `path` of a scenario, as text.
#[pyfunction]
fn key_help(path: &str) -> PyResult<String> {
    KeyHelp::of(path).map(|help| help.to_string()).map_err(|error| of_scenario(&error))
}

/// Returns the number and the kind ("bytes", "ps" or "bps") of a size, a time or a rate; `None` for other texts.
#[pyfunction]
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let size = || Some((text.parse::<Bytes>().ok()?.get() as f64, "bytes"));
    let time = || Some((text.parse::<Duration>().ok()?.as_ps() as f64, "ps"));
    let rate = || Some((text.parse::<Rate>().ok()?.as_bps() as f64, "bps"));
    size().or_else(time).or_else(rate)
}

#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("VERSION", VERSION)?;
    module.add("SelvedgeError", py.get_type::<SelvedgeError>())?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("StudyError", py.get_type::<StudyError>())?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<plan::Folder>()?;
    module.add_class::<results::Table>()?;
    module.add_class::<session::Session>()?;
    module.add_function(wrap_pyfunction!(quantity, module)?)?;
    module.add_function(wrap_pyfunction!(key_error, module)?)?;
    module.add_function(wrap_pyfunction!(key_help, module)?)?;
    module.add_function(wrap_pyfunction!(plan::run_points, module)?)?;
    module.add_function(wrap_pyfunction!(results::ratio, module)?)?;
    module.add_function(wrap_pyfunction!(results::explain, module)?)?;
    module.add_function(wrap_pyfunction!(results::check, module)?)
}
