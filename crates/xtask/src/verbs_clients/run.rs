//! Pair of hosts, and a program on them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};

use super::clients::{Client, HOSTS, Packages};
use crate::verbs_bench::link::{CLIENT, Link, SERVER};
use crate::workspace::root;

/// Timeout of a program in seconds.
const PATIENCE: &str = "180";

/// Outcome of a program's run.
pub(super) enum Outcome {
    Well,
    Missing(String),
    Failed(String),
}

/// Pair of hosts, Selvedge's libraries, and a folder to write to.
pub(super) struct TestBed {
    link: Link,
    libraries: PathBuf,
    scratch: PathBuf,
}

impl TestBed {
    pub(super) fn new(libraries: PathBuf) -> Result<Self> {
        let scratch = root().join("target/verbs-clients");
        fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
        Ok(Self { link: Link::new()?, libraries, scratch })
    }

    /// Installs a program, unless `offline`, and runs it; returns its version, and the outcome.
    pub(super) fn run(&self, client: &Client, offline: bool) -> Result<(String, Outcome)> {
        let none = "-".to_owned();
        if let Err(why) = self.install(client, offline) {
            return Ok((none, Outcome::Missing(why)));
        }
        // Files of an earlier run.
        for old in ["descriptors", "metadata", "sum", "written", "address", "collective"] {
            let _ = fs::remove_file(self.scratch.join(old));
        }
        self.write_launcher()?;
        let version = shell(&self.filled(client, client.version, SERVER)).output()?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        if version.is_empty() {
            return Ok((none, Outcome::Missing("it is not installed".to_owned())));
        }
        let built = shell(&self.filled(client, client.build, SERVER)).output()?;
        if !built.status.success() {
            return Ok((version, Outcome::Failed(said(&built))));
        }
        let (server, client_command) =
            (self.filled(client, client.server, SERVER), self.filled(client, client.client, CLIENT));
        let running = (!server.is_empty()).then(|| self.on_host(0, &server).spawn()).transpose()?;
        // Servers need a moment to start; clients that find none try again.
        let patiently = format!("sleep 2; for n in 1 2 3; do {client_command} && exit 0; sleep 2; done; exit 1");
        let at = usize::from(!server.is_empty());
        let output = self.on_host(at, &patiently).output()?;
        let is_well = output.status.success();
        let mut text = said(&output);
        if let Some(mut running) = running {
            if running.try_wait()?.is_none() && !client.shows.contains("compared") {
                // The server would serve the next client.
                shell(&format!("kill {}", running.id())).status()?;
            }
            text += &said(&running.wait_with_output()?);
        }
        // A failed comparison of data shows in the output.
        let is_same = !text.contains("Traceback") && (!text.contains(" wrong\n") || text.contains(" 0 wrong\n"));
        Ok((version, if is_well && is_same { Outcome::Well } else { Outcome::Failed(text) }))
    }

    fn venv(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("venv-{}", name.replace([' ', ','], "-")))
    }

    fn install(&self, client: &Client, offline: bool) -> Result<(), String> {
        match client.packages {
            Packages::Debian(names) => {
                let names = names.join(" ");
                if succeeds(&format!("dpkg -s {names}")) {
                    return Ok(());
                }
                let apt = format!("DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {names}");
                let is_there = !offline && (succeeds(&apt) || succeeds(&format!("apt-get update && {apt}")));
                is_there.then_some(()).ok_or_else(|| "the packages cannot be had here".to_owned())
            }
            Packages::PyPi(names) => {
                let venv = self.venv(client.name).display().to_string();
                let named =
                    names.iter().map(|name| name.split('=').next().unwrap_or(name)).collect::<Vec<_>>().join(" ");
                let names = names.join(" ");
                if succeeds(&format!("{venv}/bin/pip show {named}")) {
                    return Ok(());
                }
                let pip = format!("python3 -m venv {venv} && {venv}/bin/pip install --quiet --no-deps {names}");
                (!offline && succeeds(&pip)).then_some(()).ok_or_else(|| "the packages cannot be had here".to_owned())
            }
        }
    }

    fn filled(&self, client: &Client, text: &str, own: &str) -> String {
        let at = |folder: &str| root().join(folder).display().to_string();
        text.replace("{hosts}", HOSTS)
            .replace("{peer}", SERVER)
            .replace("{other}", CLIENT)
            .replace("{own}", own)
            .replace("{venv}", &self.venv(client.name).display().to_string())
            .replace("{mpich}", &self.venv("MPICH over libfabric").display().to_string())
            .replace("{scripts}", &at("crates/xtask/src/verbs_clients"))
            .replace("{tests}", &at("crates/ibverbs/tests"))
            .replace("{scratch}", &self.scratch.display().to_string())
    }

    /// Returns the command of a shell on a host, with Selvedge's libraries.
    fn on_host(&self, end: usize, script: &str) -> Command {
        let libraries = self.libraries.display();
        let environment = format!(
            "export LD_LIBRARY_PATH={libraries} LD_PRELOAD={libraries}/libibverbs.so.1:{libraries}/libselvedge-paths.so"
        );
        let mut command = self.link.within(end, Path::new("timeout"));
        command.args([PATIENCE, "bash", "-c", &format!("{environment}; {script}")]);
        command.current_dir(&self.scratch).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Writes the program that MPI calls in the place of ssh.
    fn write_launcher(&self) -> Result<()> {
        let [first, second] = self.link.names();
        let text = format!(
            "#!/bin/bash\nwhile [[ \"$1\" == -* ]]; do shift; done\nhost=$1; shift\n\
             case $host in {SERVER}) name={first};; {CLIENT}) name={second};; *) exit 1;; esac\n\
             exec ip netns exec $name bash -c \"$*\"\n"
        );
        let file = self.scratch.join("launch");
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn succeeds(script: &str) -> bool {
    shell(script).output().is_ok_and(|output| output.status.success())
}

fn said(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{err}\n", output.status)
}
