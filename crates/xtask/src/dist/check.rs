//! Option `cargo xtask dist --check`: what was made is used as its users do, in empty folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::SHELLS;
use super::packages::SUMS;
use crate::command::{output, quiet, run};
use crate::python::tools;
use crate::workspace::{read, root};

/// Packages from PyPI that know the formats of the files.
const FORMATS: [&str; 3] =
    ["cyclonedx-python-lib[json-validation]>=8", "kubernetes-validate>=1.28", "check-jsonschema>=0.29"];

/// Tries an installation and its packages. Prints what could not be tried, in lines that begin with `skipped: `.
///
/// # Errors
/// Returns an error that says what does not work.
pub(super) fn check(dist: &Path) -> Result<()> {
    let scratch = dist.join("check");
    let fresh = |name: &str| -> Result<PathBuf> {
        let folder = scratch.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let packages = dist.join("packages");
    manual(dist)?;
    completions(dist)?;
    formats(dist)?;
    image(dist)?;
    if packages.join(SUMS).exists() {
        quiet(Command::new("sha256sum").current_dir(&packages).args(["--check", "--strict", SUMS]))?;
    }
    for package in files(&packages)? {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".tar.gz") {
            archive(&package, &fresh("archive")?)?;
        } else if name.ends_with(".whl") {
            wheel(&package, &fresh("wheel")?)?;
        }
    }
    let debian: Vec<_> =
        files(&packages)?.into_iter().filter(|file| file.extension().is_some_and(|of| of == "deb")).collect();
    if !debian.is_empty() {
        self::debian(&debian, &fresh("debian")?)?;
    }
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    println!("the installation and its packages work");
    Ok(())
}

/// Returns the files of a folder, in order; none if there is no folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}

/// Whether a program is there; prints what is skipped if not.
fn has(program: &str, purpose: &str) -> bool {
    let there = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|out| out.status.success());
    if !there {
        println!("skipped: {purpose}: no {program} here");
    }
    there
}

/// Formats each manual page; whatever the formatter warns of is an error.
fn manual(dist: &Path) -> Result<()> {
    if !has("groff", "manual pages") {
        return Ok(());
    }
    for section in ["man1", "man7", "man8"] {
        for page in files(&dist.join("share/man").join(section))? {
            let done = Command::new("groff").args(["-man", "-Kutf8", "-Tutf8", "-ww", "-z"]).arg(&page).output()?;
            let warnings = String::from_utf8_lossy(&done.stderr);
            ensure!(done.status.success() && warnings.is_empty(), "{}: {warnings}", page.display());
        }
    }
    let overview = fs::read_to_string(dist.join("share/man/man1/selvedge.1"))?;
    ensure!(overview.contains("selvedge\\-run(1)"), "selvedge.1 names no selvedge-run(1)");
    Ok(())
}

/// Loads each shell's completions; Bash must complete the name of a command.
fn completions(dist: &Path) -> Result<()> {
    for (shell, place) in SHELLS.iter().filter(|(shell, _)| has(shell, "completions")) {
        let script = match *shell {
            "bash" => {
                "source \"$1\"; COMP_WORDS=(selvedge expl); COMP_CWORD=1; _selvedge selvedge expl selvedge; \
                       test \"${COMPREPLY[*]}\" = explain"
            }
            "zsh" => "zsh -n \"$1\"",
            _ => "fish --no-execute \"$1\"",
        };
        quiet(Command::new("bash").args(["-c", script, "bash"]).arg(dist.join(place)))?;
    }
    Ok(())
}

/// Compares files with the schemas of their formats.
fn formats(dist: &Path) -> Result<()> {
    let python = tools("python-packages", &FORMATS)?;
    let validate = "import sys\nfrom cyclonedx.schema import SchemaVersion\nfrom cyclonedx.validation.json import JsonStrictValidator\n\
                    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())\nsys.exit(error and str(error))";
    quiet(Command::new(&python).args(["-c", validate]).arg(dist.join("share/doc/selvedge/sbom.cdx.json")))?;
    let bin = python.parent().context("a Python in a folder")?;
    let packaging = root().join("packaging");
    quiet(Command::new(bin.join("kubernetes-validate")).arg("--strict").arg(packaging.join("kubernetes.yaml")))?;
    for (schema, file) in
        [("vendor.github-actions", "action/action.yml"), ("vendor.github-workflows", "action/example.yml")]
    {
        let mut check = Command::new(bin.join("check-jsonschema"));
        quiet(check.args(["--builtin-schema", schema]).arg(packaging.join(file)))?;
    }
    Ok(())
}

/// Compares the container file with the installation, which is its context.
fn image(dist: &Path) -> Result<()> {
    let text = read("packaging/Containerfile")?;
    let copies: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("COPY ")).collect();
    ensure!(!copies.is_empty(), "packaging/Containerfile copies nothing");
    for copy in copies {
        let (sources, _) = copy.rsplit_once(' ').context("COPY has a source and a place")?;
        for source in sources.split(' ') {
            ensure!(dist.join(source).exists(), "packaging/Containerfile: no {source} in the installation");
        }
    }
    Ok(())
}

/// Installs an archive as the GitHub Action does, and runs its test.
fn archive(archive: &Path, folder: &Path) -> Result<()> {
    let paths = folder.join("paths.txt");
    let mut install = Command::new(root().join("packaging/action/install.sh"));
    let sum = output(Command::new("sha256sum").arg(archive))?;
    install.env("ARCHIVE", archive).env("SHA256", sum.split(' ').next().unwrap_or_default());
    quiet(install.env("RUNNER_TEMP", folder).env("GITHUB_PATH", &paths))?;
    let added = fs::read_to_string(&paths)?.trim().replace('\n', ":");
    let path = format!("{added}:{}", std::env::var("PATH").unwrap_or_default());
    quiet(Command::new("selvedge").env("PATH", &path).current_dir(folder).args(["run", "--estimate"]))?;
    if has("ib_write_bw", "perftest with the software RNIC") {
        // The first time both ends as a runner does, the second as the containers of a pod do.
        run(Command::new("rdma-smoke.sh").env("PATH", &path).current_dir(folder))?;
        let both = "rdma-smoke.sh client 127.0.0.1 & client=$!; rdma-smoke.sh server && wait $client";
        quiet(Command::new("sh").args(["-c", both]).env("PATH", &path).current_dir(folder))?;
    }
    Ok(())
}

/// Installs the wheel into an empty environment and simulates.
fn wheel(wheel: &Path, folder: &Path) -> Result<()> {
    let host = crate::python::host_python().context("no python3 with venv")?;
    quiet(Command::new(host).args(["-m", "venv"]).arg(folder))?;
    quiet(Command::new(folder.join("bin/pip")).args(["install", "--quiet", "--no-index"]).arg(wheel))?;
    let study = "import selvedge as sv\nstudy = sv.Study(topology=sv.FatTree(k=4), workload=sv.Poisson(load=0.3), seeds=1)\n\
                 print(study.topology())";
    quiet(Command::new(folder.join("bin/python")).current_dir(folder).args(["-c", study]))
}

/// Installs the Debian packages into a folder of their own, runs the program there, and removes them.
fn debian(packages: &[PathBuf], folder: &Path) -> Result<()> {
    if has("lintian", "lintian") {
        run(Command::new("lintian").args(["--fail-on", "error,warning"]).args(packages))?;
    }
    let database = folder.join("var/lib/dpkg");
    fs::create_dir_all(database.join("info"))?;
    fs::create_dir_all(database.join("updates"))?;
    fs::write(database.join("status"), "")?;
    let dpkg = |action: &str| {
        let mut dpkg = Command::new("dpkg");
        // libc6 and libgcc-s1 are not in the folder. Nothing runs as another root: the packages have no scripts.
        dpkg.arg(format!("--root={}", folder.display())).args([
            "--force-not-root",
            "--force-depends",
            "--log=/dev/null",
            action,
        ]);
        dpkg
    };
    quiet(dpkg("--install").args(packages))?;
    let program = folder.join("usr/bin/selvedge");
    let told = output(Command::new(&program).args(["verbs", "--info"]))?;
    let library = folder.join("usr/lib/selvedge/libibverbs.so.1").canonicalize()?;
    ensure!(told.contains(&library.display().to_string()), "`selvedge verbs` does not find its libraries:\n{told}");
    quiet(dpkg("--purge").args(["selvedge-verbs", "selvedge"]))?;
    let left = output(Command::new("find").arg(folder.join("usr")).args(["-type", "f"])).unwrap_or_default();
    ensure!(left.is_empty(), "removed packages leave files:\n{left}");
    Ok(())
}
