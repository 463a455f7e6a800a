//! Command `cargo xtask dist`: an installation, as one folder that can be placed anywhere, and packages of it.

mod build;
mod check;
mod debian;
mod link;
mod packages;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::command::{output, quiet};
use crate::product::Profile;
use crate::workspace::root;
use build::Build;
pub(crate) use build::builds_std;

/// Options of `cargo xtask dist`.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Quick to build instead of quick to run
    #[arg(long)]
    debug: bool,
    /// Folder to write to
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    to: PathBuf,
    /// Build the libraries alone, without the command line: the simulator is not compiled
    #[arg(long, conflicts_with_all = ["tar", "deb", "wheel", "all", "check"])]
    libraries: bool,
    /// Build for another target of Linux, as in aarch64-unknown-linux-gnu, with the C compiler that Debian has for it
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Make an archive, packages/selvedge-VERSION-linux-ARCHITECTURE.tar.gz, too
    #[arg(long)]
    tar: bool,
    /// Make Debian packages, too: selvedge and selvedge-verbs
    #[arg(long)]
    deb: bool,
    /// Make the Python wheel, too: manylinux, for CPython 3.10 and later
    #[arg(long)]
    wheel: bool,
    /// Make all packages
    #[arg(long)]
    all: bool,
    /// Try what was made as a user does: unpack and run it, read manual pages, load completions, install and remove
    #[arg(long, conflicts_with = "target")]
    check: bool,
}

/// Libraries of native EQDS messages as Cargo calls them, and as programs do.
const NATIVE: [(&str, &str); 2] =
    [("libselvedge_native_c.so", "libselvedge-eqds.so"), ("libselvedge_udp.so", "libselvedge-udp.so")];

/// Files that an installation takes as they are, and their places in it.
const FILES: &[(&str, &str)] = &[
    ("crates/native/include/selvedge-eqds.h", "include/selvedge-eqds.h"),
    ("docs/selvedge-verbs.7", "share/man/man7/selvedge-verbs.7"),
    ("docs/selvedge-eqds.8", "share/man/man8/selvedge-eqds.8"),
    ("crates/tunnel/dist/selvedge-eqds@.service", "share/selvedge/systemd/selvedge-eqds@.service"),
    ("crates/tunnel/dist/eqds.lua", "share/selvedge/wireshark/eqds.lua"),
    ("packaging/rdma-smoke.sh", "share/selvedge/rdma-smoke.sh"),
    ("LICENSE", "share/doc/selvedge/LICENSE"),
    ("docs/install.md", "share/doc/selvedge/install.md"),
    ("CHANGELOG.md", "share/doc/selvedge/CHANGELOG.md"),
];

/// Shells with completions: their names, and the places where each looks.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/selvedge"),
    ("zsh", "share/zsh/site-functions/_selvedge"),
    ("fish", "share/fish/vendor_completions.d/selvedge.fish"),
];

/// Builds the libraries in the profile that is quick to run; returns their folder.
pub(crate) fn libraries() -> Result<PathBuf> {
    libraries_of(false)
}

/// Builds the libraries, in a profile that is quick to build (`debug`) or quick to run; returns their folder.
pub(crate) fn libraries_of(debug: bool) -> Result<PathBuf> {
    let to = if debug { "target/dist-debug" } else { "dist" };
    dist(&Options { debug, to: to.into(), libraries: true, ..Options::default() })?;
    Ok(root().join(to).join("lib"))
}

/// Runs `cargo xtask dist`.
pub(crate) fn dist(options: &Options) -> Result<()> {
    let profile = if options.debug { Profile::Dev } else { Profile::Release };
    let build = Build { profile, target: options.target.clone() };
    let to = root().join(&options.to);
    let libraries = to.join("lib");
    fs::create_dir_all(&libraries)?;
    // One build for all: two builds would have different features, and would compile common dependencies twice.
    let mut packages =
        vec!["--package", "selvedge-ibverbs", "--package", "selvedge-native-c", "--package", "selvedge-udp"];
    if !options.libraries {
        packages.extend(["--package", "selvedge", "--bin", "selvedge"]);
    }
    build.cargo(&[&["--lib"], &packages[..]].concat())?;
    link::link(&build, &libraries)?;
    for (built, name) in NATIVE {
        replace(&build.folder().join(built), &libraries.join(name))?;
    }
    if options.libraries {
        copy(&root().join(FILES[0].0), &to.join(FILES[0].1))?;
    } else {
        command_line(&build, &to)?;
        let kinds = packages::Kinds {
            tar: options.tar || options.all,
            deb: options.deb || options.all,
            wheel: options.wheel || options.all,
        };
        packages::make(&build, &kinds, &to)?;
        if options.check {
            check::check(&to)?;
        }
    }
    eprintln!("{}", to.display());
    Ok(())
}

/// Adds the program, its manual pages and completions, and the list of what it is made of.
fn command_line(build: &Build, to: &Path) -> Result<()> {
    let program = to.join("bin/selvedge");
    copy(&build.folder().join("selvedge"), &program)?;
    build.strip(&program)?;
    for library in fs::read_dir(to.join("lib"))? {
        build.strip(&library?.path())?;
    }
    // Its own description of itself: where the program is for another machine, that of this machine.
    let own = match &build.target {
        None => program,
        Some(_) => {
            let host = Build { profile: build.profile, target: None };
            host.cargo(&["--package", "selvedge", "--bin", "selvedge"])?;
            host.folder().join("selvedge")
        }
    };
    let pages = to.join("share/man/man1");
    if pages.exists() {
        fs::remove_dir_all(&pages)?;
    }
    fs::create_dir_all(&pages)?;
    quiet(Command::new(&own).arg("manual").arg(&pages))?;
    for (shell, place) in SHELLS {
        write(&to.join(place), &output(Command::new(&own).args(["completions", shell]))?)?;
    }
    for (from, place) in FILES {
        copy(&root().join(from), &to.join(place))?;
    }
    write(&to.join("share/doc/selvedge/sbom.cdx.json"), &sbom::sbom(build)?)
}

/// Writes a file, and the folders that it is in.
fn write(to: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file in a folder")?)?;
    fs::write(to, text).with_context(|| to.display().to_string())
}

/// Copies a file, and makes the folders that its copy is in.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file in a folder")?)?;
    replace(from, to)
}

/// Replaces `to` atomically by a copy of `from`.
fn replace(from: &Path, to: &Path) -> Result<()> {
    let unfinished = to.with_extension(format!("{}.unfinished", std::process::id()));
    fs::copy(from, &unfinished).with_context(|| from.display().to_string())?;
    fs::rename(&unfinished, to).with_context(|| to.display().to_string())
}
