//! Builds of an installation: with the host's compiler, or for another target.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::command::{cargo, output, quiet, run};
use crate::product::Profile;
use crate::workspace::root;

/// Profile and target of a build.
pub(super) struct Build {
    pub(super) profile: Profile,
    /// Target as Rust names it; the host if `None`.
    pub(super) target: Option<String>,
}

impl Build {
    /// Returns the processor's architecture as Rust names it: x86_64, aarch64.
    pub(super) fn architecture(&self) -> &str {
        self.target.as_deref().and_then(|target| target.split('-').next()).unwrap_or(std::env::consts::ARCH)
    }

    /// Returns the folder to which Cargo builds.
    pub(super) fn folder(&self) -> PathBuf {
        let all = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let profile = if self.profile == Profile::Release { "release" } else { "debug" };
        self.target.as_ref().map_or(all.clone(), |target| all.join(target)).join(profile)
    }

    /// Runs `cargo build` with these arguments.
    ///
    /// # Errors
    /// Returns an error if the standard library of the target is not to be had, or the build fails.
    pub(super) fn cargo(&self, arguments: &[&str]) -> Result<()> {
        let mut build = match &self.target {
            None => cargo(["build"]),
            Some(target) => {
                let mut build = cargo_for(target)?;
                build.args(["--target", target]);
                let name = target.replace('-', "_");
                for variable in [format!("CC_{name}"), format!("CARGO_TARGET_{}_LINKER", name.to_uppercase())] {
                    if std::env::var_os(&variable).is_none() {
                        build.env(variable, self.tool("gcc"));
                    }
                }
                build
            }
        };
        build.args(arguments);
        if self.profile == Profile::Release {
            build.arg("--release");
        }
        run(&mut build)
    }

    /// Returns the C compiler: the value of `CC`, or of `CC_<target>`.
    pub(super) fn c_compiler(&self) -> Command {
        let variable =
            self.target.as_ref().map_or("CC".to_owned(), |target| format!("CC_{}", target.replace('-', "_")));
        Command::new(std::env::var_os(variable).unwrap_or_else(|| self.tool("gcc").into()))
    }

    /// Returns a program of GNU's tools, as Debian names those for other architectures: aarch64-linux-gnu-gcc.
    fn tool(&self, name: &str) -> String {
        match &self.target {
            None if name == "gcc" => "cc".to_owned(),
            None => name.to_owned(),
            Some(target) => format!("{}-{name}", target.replace("-unknown", "")),
        }
    }

    /// Takes symbols that only debuggers read out of a program or library.
    pub(super) fn strip(&self, file: &Path) -> Result<()> {
        quiet(Command::new(self.tool("strip")).arg("--strip-unneeded").arg(file))
    }
}

/// Returns a command `cargo build` for another target.
fn cargo_for(target: &str) -> Result<Command> {
    ensure!(target.contains("-linux-gnu"), "--target {target}: only targets of Linux with glibc have an installation");
    if !builds_std(target)? {
        return Ok(cargo(["build"]));
    }
    let mut build = Command::new("rustup");
    build.current_dir(root()).args(["run", "nightly", "cargo", "build", "-Zbuild-std"]);
    // The compiler that runs this program is another one.
    build.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC").env_remove("RUSTUP_TOOLCHAIN");
    Ok(build)
}

/// Returns whether a nightly compiler has to build the standard library for a target from its sources, because rustup
/// has none.
///
/// # Errors
/// Returns an error with the remedy if there are no sources, either.
pub(crate) fn builds_std(target: &str) -> Result<bool> {
    let folder = |command: &mut Command| output(command).map(|path| PathBuf::from(path.trim()));
    let library = folder(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if library.read_dir().is_ok_and(|mut files| files.next().is_some()) {
        return Ok(false);
    }
    let sysroot = folder(Command::new("rustup").args(["run", "nightly", "rustc", "--print", "sysroot"]));
    ensure!(
        sysroot.is_ok_and(|root| root.join("lib/rustlib/src/rust/library").is_dir()),
        "no standard library for {target}: `rustup target add {target}`, or `rustup component add rust-src --toolchain \
         nightly`, from which it is built"
    );
    Ok(true)
}
