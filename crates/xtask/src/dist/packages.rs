//! Packages of an installation: an archive, Debian packages, a wheel; and their checksums.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::build::Build;
use super::{copy, debian, write};
use crate::command::{output, run};
use crate::workspace::root;

/// Packages to make.
pub(super) struct Kinds {
    pub(super) tar: bool,
    pub(super) deb: bool,
    pub(super) wheel: bool,
}

/// File that lists the checksums of the others.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Makes packages in the folder `packages` of an installation, with their checksums.
///
/// # Errors
/// Returns an error if a program that makes packages is missing.
pub(super) fn make(build: &Build, kinds: &Kinds, dist: &Path) -> Result<()> {
    if !kinds.tar && !kinds.deb && !kinds.wheel {
        return Ok(());
    }
    let folder = dist.join("packages");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let time = time()?;
    if kinds.tar {
        archive(build, &time, dist, &folder)?;
    }
    if kinds.deb {
        debian::packages(build, &time, dist, &folder)?;
    }
    if kinds.wheel {
        crate::python::wheel(build.target.as_deref(), &folder)?;
    }
    let name = format!("selvedge-{}-linux-{}.cdx.json", env!("CARGO_PKG_VERSION"), build.architecture());
    copy(&dist.join("share/doc/selvedge/sbom.cdx.json"), &folder.join(name))?;
    let mut files: Vec<_> = fs::read_dir(&folder)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    files.sort();
    write(&folder.join(SUMS), &output(Command::new("sha256sum").current_dir(&folder).arg("--").args(files))?)
}

/// Returns the time that files in packages carry, in seconds since 1970, so that packages of one commit are the same
/// bytes: the value of `SOURCE_DATE_EPOCH` (reproducible-builds.org), or the commit's time.
pub(super) fn time() -> Result<String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let time = output(Command::new("git").current_dir(root()).args(["log", "-1", "--format=%ct"]));
    Ok(time.context("without Git, SOURCE_DATE_EPOCH must give the time of files in packages")?.trim().to_owned())
}

/// Returns the time that files in packages carry, in a format of `date`.
pub(super) fn date(format: &str) -> Result<String> {
    let date =
        output(Command::new("date").env("LC_ALL", "C").args(["--utc", &format!("--date=@{}", time()?), format]))?;
    Ok(date.trim().to_owned())
}

/// Makes the archive, in which all files are in one folder.
fn archive(build: &Build, time: &str, dist: &Path, to: &Path) -> Result<()> {
    let name = format!("selvedge-{}-linux-{}", env!("CARGO_PKG_VERSION"), build.architecture());
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{time}")).arg("--use-compress-program=gzip -9n");
    // Targets of symbolic links would be transformed, too; there are none.
    tar.arg(format!("--transform=s,^,{name}/,")).arg("--directory").arg(dist).arg("--file");
    run(tar.arg(to.join(format!("{name}.tar.gz"))).args(["bin", "include", "lib", "share"]))
}
