//! Option `cargo xtask dist --deb`: the folder as Debian packages, `selvedge` and `selvedge-verbs`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::build::Build;
use super::packages::date;
use super::{copy, write};
use crate::command::{output, quiet, run};

/// Debian package.
struct Package {
    name: &'static str,
    /// Fields of its control file beyond those that all have.
    control: &'static str,
    /// Files of an installation, or all of a folder, and their places in the system.
    files: &'static [(&'static str, &'static str)],
    /// Remarks of lintian that do not hold, each with a reason.
    overrides: &'static str,
}

/// The command line. Programs link `libselvedge-eqds.so`, which therefore lies where the system looks for libraries.
const SELVEDGE: Package = Package {
    name: "selvedge",
    control: "Section: net\nRecommends: iproute2\nSuggests: selvedge-verbs\n\
              Description: simulator of RDMA fabrics, and EQDS tunnels between hosts\n \
              \"selvedge run\" simulates RDMA traffic packet by packet through a data center\n \
              network, and compares loss recoveries with and without priority flow control.\n \
              \"selvedge eqds\" carries the traffic of hosts through receiver-driven tunnels.\n",
    files: &[
        ("bin/selvedge", "usr/bin/selvedge"),
        ("lib/libselvedge-eqds.so", "usr/lib/libselvedge-eqds.so"),
        ("lib/libselvedge-udp.so", "usr/lib/selvedge/libselvedge-udp.so"),
        ("include/selvedge-eqds.h", "usr/include/selvedge-eqds.h"),
        ("share/man/man1", "usr/share/man/man1"),
        ("share/man/man8", "usr/share/man/man8"),
        ("share/bash-completion/completions/selvedge", "usr/share/bash-completion/completions/selvedge"),
        ("share/zsh/site-functions/_selvedge", "usr/share/zsh/vendor-completions/_selvedge"),
        ("share/fish/vendor_completions.d/selvedge.fish", "usr/share/fish/vendor_completions.d/selvedge.fish"),
        ("share/selvedge/systemd/selvedge-eqds@.service", "usr/lib/systemd/system/selvedge-eqds@.service"),
        ("share/selvedge/wireshark/eqds.lua", "usr/share/selvedge/wireshark/eqds.lua"),
        ("share/doc/selvedge/sbom.cdx.json", "usr/share/doc/selvedge/sbom.cdx.json"),
    ],
    overrides: "# Programs link it by this name; no older version of it is to be kept apart.\n\
                selvedge: sharedobject-in-library-directory-missing-soname [usr/lib/libselvedge-eqds.so]\n",
};

/// The software RNIC, for programs that `selvedge verbs` runs.
const VERBS: Package = Package {
    name: "selvedge-verbs",
    control: "Section: net\nDepends: selvedge (= VERSION), LIBRARIES\nSuggests: perftest\n\
              Description: RDMA programs without RDMA hardware\n \
              libibverbs and librdmacm in user space, over UDP, with loss recovery after IRN.\n \
              \"selvedge verbs -- PROGRAM\" runs any program with them, without a kernel\n \
              module and without root. The libraries of rdma-core stay in place.\n",
    files: &[
        ("lib/libibverbs.so.1", "usr/lib/selvedge/libibverbs.so.1"),
        ("lib/librdmacm.so.1", "usr/lib/selvedge/librdmacm.so.1"),
        ("lib/libselvedge-paths.so", "usr/lib/selvedge/libselvedge-paths.so"),
        ("share/man/man7", "usr/share/man/man7"),
        ("share/selvedge/rdma-smoke.sh", "usr/share/selvedge/rdma-smoke.sh"),
    ],
    overrides: "# Their functions only call those of libibverbs.so.1.\n\
                selvedge-verbs: library-not-linked-against-libc [usr/lib/selvedge/librdmacm.so.1]\n\
                selvedge-verbs: library-not-linked-against-libc [usr/lib/selvedge/libselvedge-paths.so]\n",
};

/// Makes `NAME_VERSION_ARCHITECTURE.deb` of both packages.
///
/// # Errors
/// Returns an error if there is no dpkg.
pub(super) fn packages(build: &Build, time: &str, dist: &Path, to: &Path) -> Result<()> {
    let architecture = match build.architecture() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no name of Debian for {other}"),
    };
    for package in [SELVEDGE, VERBS] {
        let tree = to.join(package.name);
        for (from, place) in package.files {
            install(&dist.join(from), &tree.join(place))?;
        }
        documents(&package, dist, &tree)?;
        control(&package, architecture, &tree)?;
        let file = to.join(format!("{}_{}_{architecture}.deb", package.name, env!("CARGO_PKG_VERSION")));
        let mut pack = Command::new("dpkg-deb");
        pack.env("SOURCE_DATE_EPOCH", time).args(["--build", "--root-owner-group", "-Zxz"]).arg(&tree).arg(&file);
        run(&mut pack).context("Debian packages need dpkg, which Debian and Ubuntu have")?;
        fs::remove_dir_all(&tree)?;
    }
    Ok(())
}

/// Copies a file or the files of a folder; manual pages are compressed.
fn install(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            install(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    copy(from, to)?;
    if to.parent().is_some_and(|folder| folder.parent().is_some_and(|parent| parent.ends_with("share/man"))) {
        quiet(Command::new("gzip").arg("-9nf").arg(to))?;
    }
    mode(
        to,
        if from.ends_with("bin/selvedge") || from.extension().is_some_and(|of| of == "sh") { "755" } else { "644" },
    )
}

/// Adds the license, the changelog and remarks on lintian's.
fn documents(package: &Package, dist: &Path, tree: &Path) -> Result<()> {
    let (name, version) = (package.name, env!("CARGO_PKG_VERSION"));
    let folder = tree.join("usr/share/doc").join(name);
    write(
        &folder.join("copyright"),
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Selvedge\n\
         Source: https://github.com/selvedge-net/selvedge\n\nFiles: *\nCopyright: 2026 The Selvedge authors\n\
         License: Apache-2.0\n On Debian systems, the text of the license is in\n \
         /usr/share/common-licenses/Apache-2.0.\n\nComment:\n The licenses of the Rust packages that are compiled in are \
         in the package\n selvedge, file /usr/share/doc/selvedge/sbom.cdx.json.\n",
    )?;
    let changelog = folder.join("changelog");
    let text = format!(
        "{name} ({version}) unstable; urgency=medium\n\n  * Made by \"cargo xtask dist --deb\". The changes are in \
         changelog.upstream.gz.\n\n -- The Selvedge authors <selvedge@localhost>  {}\n",
        date("+%a, %d %b %Y %H:%M:%S %z")?
    );
    write(&changelog, &text)?;
    let upstream = folder.join("changelog.upstream");
    copy(&dist.join("share/doc/selvedge/CHANGELOG.md"), &upstream)?;
    quiet(Command::new("gzip").arg("-9nf").args([changelog, upstream]))?;
    let anyone = format!(
        "# Made by whoever runs the command; nobody has an address for it.\n{name}: bogus-mail-host Maintainer \
         selvedge@localhost\n{name}: bogus-mail-host-in-debian-changelog selvedge@localhost *\n"
    );
    write(&tree.join("usr/share/lintian/overrides").join(name), &(anyone + package.overrides))
}

/// Writes what dpkg reads.
fn control(package: &Package, architecture: &str, tree: &Path) -> Result<()> {
    let (version, glibc) = (env!("CARGO_PKG_VERSION"), glibc(tree)?);
    let libraries = format!("libc6 (>= {glibc}), libgcc-s1");
    let mut control = format!(
        "Package: {}\nVersion: {version}\nArchitecture: {architecture}\nPriority: optional\n\
         Maintainer: The Selvedge authors <selvedge@localhost>\nHomepage: https://github.com/selvedge-net/selvedge\n{}",
        package.name, package.control
    )
    .replace("VERSION", version)
    .replace("LIBRARIES", &libraries);
    if !control.contains("\nDepends: ") {
        control = control.replace("\nRecommends: ", &format!("\nDepends: {libraries}\nRecommends: "));
    }
    write(&tree.join("DEBIAN/control"), &control)?;
    let sums = output(
        Command::new("sh").current_dir(tree).args(["-c", "find usr -type f -print0 | sort -z | xargs -0 md5sum"]),
    )?;
    write(&tree.join("DEBIAN/md5sums"), &sums)?;
    // The umask of who builds is of no concern.
    quiet(Command::new("chmod").args(["-R", "go=rX"]).arg(tree))
}

/// Returns the oldest version of glibc that has all symbols which files of a tree ask for.
fn glibc(tree: &Path) -> Result<String> {
    let find = "find usr -type f \\( -path '*/bin/*' -o -name '*.so*' \\) -exec readelf -VW {} + | grep -o 'GLIBC_2[.][0-9]*' \
                | sort -Vu | tail -1";
    let newest = output(Command::new("sh").current_dir(tree).args(["-c", find]))?;
    Ok(newest.trim().strip_prefix("GLIBC_").context("readelf, of binutils, finds no version of glibc")?.to_owned())
}

fn mode(file: &Path, mode: &str) -> Result<()> {
    // A page was replaced by its compressed form.
    let file = if file.exists() { file.to_owned() } else { file.with_added_extension("gz") };
    quiet(Command::new("chmod").arg(mode).arg(file))
}
