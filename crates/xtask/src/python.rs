//! Command `cargo xtask python`: the Python package, built beside its sources and tested.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::command::{cargo, quiet, run};
use crate::workspace::root;

#[derive(Args)]
pub(crate) struct Options {
    /// Step to do [default: write the classes, and build]
    #[arg(value_enum)]
    step: Option<Step>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Step {
    /// Check that the classes are current, build, and run ruff, mypy and the tests
    Test,
    /// Make the wheel, in target/wheels
    Wheel,
}

/// Packages from PyPI that each step needs.
const TESTING: [&str; 11] = [
    "ruff>=0.6",
    "mypy>=1.11",
    "pytest>=8",
    "pyarrow>=14",
    "matplotlib>=3.7",
    // The notebooks.
    "pandas>=2",
    "nbclient>=0.10",
    "ipykernel>=6",
    // Searches, and executors but Ray, which is large: where it is installed by hand, its tests run, too.
    "optuna>=3.5",
    "submitit>=1.5",
    "distributed>=2023.5",
];
/// Zig links with the symbols of an old glibc, so that the wheel runs on older systems than the one that builds it.
const WHEEL: [&str; 2] = ["maturin>=1.9,<2", "ziglang>=0.13"];
/// Name of the library that Cargo builds, and of the module.
const LIBRARY: &str = "libselvedge_py.so";
const MODULE: &str = "python/selvedge/_native.abi3.so";

pub(crate) fn python(options: &Options) -> Result<()> {
    let Some(host) = host_python() else {
        println!("skipped: the Python package: no python3 with venv; install it, e.g. `sudo apt install python3-venv`");
        return Ok(());
    };
    match options.step {
        None => {
            quiet(in_root(&host).arg("python/generate.py"))?;
            build()?;
            println!("built; to use it: PYTHONPATH={}", root().join("python").display());
            Ok(())
        }
        Some(Step::Test) => test(&host),
        Some(Step::Wheel) => wheel(None, &root().join("target/wheels")),
    }
}

/// Makes the wheel in a folder: manylinux2014, for any CPython from 3.10 on.
///
/// # Errors
/// Returns an error if there is no Python, or the build fails.
pub(crate) fn wheel(target: Option<&str>, to: &Path) -> Result<()> {
    let python = tools("python-wheel", &WHEEL)?;
    let mut build = in_root(&python);
    build.args(["-m", "maturin", "build", "--release", "--zig", "--compatibility", "manylinux2014", "--out"]).arg(to);
    if let Some(target) = target {
        build.args(["--target", target]);
        if crate::dist::builds_std(target)? {
            build.args(["-Z", "build-std"]).env("RUSTUP_TOOLCHAIN", "nightly").env_remove("CARGO").env_remove("RUSTC");
        }
    }
    // The environment's programs: maturin looks for Zig by the `python3` on the path.
    let own = python.parent().unwrap_or(&python).to_owned();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    build.env("PATH", std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&rest)))?);
    run(&mut build)
}

/// Returns the Python of an environment with these packages from PyPI.
///
/// # Errors
/// Returns an error if there is no Python with venv.
pub(crate) fn tools(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let host = host_python().context("no python3 with venv; install it, e.g. `sudo apt install python3-venv`")?;
    environment(&host, name, packages)
}

fn test(host: &Path) -> Result<()> {
    let python = environment(host, "python", &TESTING)?;
    run(in_root(&python).args(["python/generate.py", "--check"]))?;
    build()?;
    run(in_root(&python).args(["-m", "ruff", "check", "python"]))?;
    run(in_root(&python).args(["-m", "mypy"]))?;
    run(in_root(&python).args(["-m", "pytest", "-rs"]).env("PYTHONPATH", root().join("python")))
}

/// Builds the native module and puts it beside the package's sources.
fn build() -> Result<()> {
    // With the features that tests of the whole workspace have, so that nothing is compiled a second time after them.
    run(&mut cargo(["build", "--workspace", "--lib"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let from = target.join("debug").join(LIBRARY);
    // Renamed into its place: a process that uses the old one keeps it.
    let (new, module) = (root().join(format!("{MODULE}.new")), root().join(MODULE));
    fs::copy(&from, &new).with_context(|| from.display().to_string())?;
    fs::rename(&new, &module).with_context(|| module.display().to_string())
}

/// Returns a Python with venv, if there is one.
pub(crate) fn host_python() -> Option<PathBuf> {
    let answers = |python: &&str| {
        let mut command = Command::new(python);
        command.args(["-c", "import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 10))"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(answers).map(PathBuf::from)
}

/// Returns the Python of the environment `target/<name>`, which has these packages.
fn environment(host: &Path, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = root().join("target").join(name);
    let (python, done) = (folder.join("bin/python"), folder.join("packages.txt"));
    let wanted = packages.join("\n");
    if fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    quiet(Command::new(host).args(["-m", "venv", "--clear"]).arg(&folder))?;
    quiet(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    fs::write(&done, wanted).with_context(|| done.display().to_string())?;
    Ok(python)
}

/// Returns a command that runs at the root of the workspace.
pub(crate) fn in_root(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}
