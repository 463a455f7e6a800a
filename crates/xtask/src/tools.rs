//! Programs that the chores need, and how to get them.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::command::text_of;

/// A program that must answer.
pub(crate) struct Tool {
    /// What needs it.
    pub(crate) purpose: &'static str,
    /// A command that succeeds if it is there.
    pub(crate) probe: &'static [&'static str],
    /// Commands that install it, tried in turn.
    pub(crate) install: &'static [&'static [&'static str]],
    /// What to tell people if none of them works.
    pub(crate) advice: &'static str,
}

/// The C compiler, for the Parquet writer's zstd.
pub(crate) const C_COMPILER: Tool = Tool {
    purpose: "zstd, in which tables are compressed",
    probe: &["cc", "--version"],
    install: &[&["apt-get", "install", "--yes", "gcc", "libc6-dev"], &["dnf", "install", "--assumeyes", "gcc"]],
    advice: "install a C compiler, e.g. `sudo apt install gcc`, or `xcode-select --install` on macOS",
};

impl Tool {
    /// Installs the program if it is not there.
    ///
    /// # Errors
    /// Says how to get it.
    pub(crate) fn require(&self) -> Result<()> {
        if self.answers() {
            return Ok(());
        }
        for install in self.install {
            let mut command = command(install);
            eprintln!("{} is missing ({}); trying `{}`", self.probe[0], self.purpose, text_of(&command));
            // Not every system has every installer, and not everybody may use it.
            if command.status().is_ok_and(|status| status.success()) && self.answers() {
                return Ok(());
            }
        }
        bail!("{} is missing; {} needs it: {}", self.probe[0], self.purpose, self.advice)
    }

    fn answers(&self) -> bool {
        command(self.probe).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}
