//! Command `cargo xtask deep`: threads in every interleaving, by loom, and tests with AddressSanitizer.
//!
//! 1. Sanitizers are parts of nightly compilers. The standard library comes without them; its sources (`rust-src`),
//!    from which `-Zbuild-std` would make one with them, are not required here.
//! 2. AddressSanitizer bears that: it checks each access of the code that is compiled here, and each allocation.
//! 3. ThreadSanitizer does not. Compilers refuse to mix it with an ordinary standard library; when they are made to
//!    (`-Cunsafe-allow-abi-mismatch=sanitizer`, 1.97.0-nightly), it reports races in correct programs: among threads
//!    that add under one contended `Mutex` (its slow path is precompiled), between two that take turns by a
//!    `Condvar`, at the last owner of an `Arc` that frees it, at a thread that ends and is joined, and between two that
//!    meet at the simulator's barrier. Suppressing reports of the standard library would hide races of the code that
//!    waits there. With `rust-src`, `-Zbuild-std` would remove them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::command::{cargo, run};
use crate::tools::NIGHTLY;
use crate::workspace::root;

#[derive(Args)]
pub(crate) struct Options {
    /// Run only what takes a few minutes
    #[arg(long)]
    quick: bool,
    /// Fail if the nightly compiler is missing, rather than skip (for CI)
    #[arg(long)]
    all: bool,
}

/// A sanitizer of the nightly compiler.
struct Sanitizer {
    /// Name for `-Zsanitizer`.
    name: &'static str,
    /// File name of its runtime.
    runtime: &'static str,
    /// The environment variable that sets options, and their values.
    options: (&'static str, &'static str),
}

const ADDRESS: Sanitizer = Sanitizer {
    name: "address",
    runtime: "librustc-nightly_rt.asan.a",
    // Devices and the NIC live as long as the process, and are reachable from statics, so that leaks are faults.
    options: ("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"),
};

/// Runs the tests under loom and with sanitizers.
///
/// # Errors
/// Returns an error if a test fails, a sanitizer complains, or, with `--all`, the nightly compiler is missing.
pub(crate) fn deep(options: &Options) -> Result<()> {
    interleavings()?;
    let Some(nightly) = Nightly::find() else {
        if options.all {
            bail!("no nightly compiler with sanitizers: `{NIGHTLY}`");
        }
        println!("skipped: no nightly compiler with sanitizers: `{NIGHTLY}` installs it");
        return Ok(());
    };
    // The exported functions of libibverbs and librdmacm, called as C calls them, and the unit tests of what they use.
    nightly.test(&ADDRESS, &["--package", "selvedge-ibverbs", "--lib", "--test", "in_process"])?;
    if !options.quick {
        nightly.test(&ADDRESS, &["--package", "selvedge-dataplane", "--lib", "--tests"])?;
    }
    println!("no complaints");
    Ok(())
}

/// Runs the tests of threads under loom.
fn interleavings() -> Result<()> {
    for package in ["selvedge-sim", "selvedge-native"] {
        let mut command = cargo(["test", "--package", package, "--lib", "loom_"]);
        command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", root().join("target/deep/loom"));
        run(&mut command).context("loom")?;
    }
    Ok(())
}

/// Returns whether there is a nightly compiler with sanitizers.
pub(crate) fn is_possible() -> bool {
    Nightly::find().is_some()
}

/// The nightly compiler.
struct Nightly {
    /// Target for which it compiles.
    host: String,
}

impl Nightly {
    /// Returns the nightly compiler, if there is one with the runtimes of the sanitizers.
    fn find() -> Option<Self> {
        let told = |what: &[&str]| {
            let done = rustup().arg("rustc").args(what).stdin(Stdio::null()).output().ok()?;
            done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
        };
        let sysroot = PathBuf::from(told(&["--print", "sysroot"])?.trim());
        let version = told(&["--version", "--verbose"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "))?.to_owned();
        let runtime = sysroot.join("lib/rustlib").join(&host).join("lib").join(ADDRESS.runtime);
        runtime.is_file().then_some(Self { host })
    }

    /// Runs tests with a sanitizer.
    fn test(&self, sanitizer: &Sanitizer, what: &[&str]) -> Result<()> {
        let mut command = rustup();
        command.args(["cargo", "test", "--target", &self.host]).args(what);
        command.env("RUSTFLAGS", format!("-Zsanitizer={}", sanitizer.name));
        command.env("CARGO_TARGET_DIR", root().join("target/deep").join(sanitizer.name));
        command.env(sanitizer.options.0, sanitizer.options.1);
        run(&mut command).with_context(|| format!("-Zsanitizer={}", sanitizer.name))
    }
}

/// Returns the beginning of a command of the nightly toolchain, without the variables that the stable cargo, which runs
/// this program, has set.
fn rustup() -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", "nightly"]);
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}
