//! Option `cargo xtask dist --deb`: the folder as a Debian package.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{output, run};
use crate::workspace::root;

/// Makes `selvedge_VERSION_ARCHITECTURE.deb` beside the folder that `dist` has made.
///
/// # Errors
/// Returns an error if there is no dpkg.
pub(crate) fn package(dist: &Path) -> Result<()> {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))
        .context("a Debian package needs dpkg, which Debian and Ubuntu have")?;
    let version = env!("CARGO_PKG_VERSION");
    let tree = dist.join("deb");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    // The system looks for libraries in usr/lib, where the one is that programs link; `selvedge verbs` and LD_PRELOAD
    // use the others.
    for (from, to) in [
        ("bin/selvedge", "usr/bin/selvedge"),
        ("lib/libibverbs.so.1", "usr/lib/selvedge/libibverbs.so.1"),
        ("lib/librdmacm.so.1", "usr/lib/selvedge/librdmacm.so.1"),
        ("lib/libselvedge-paths.so", "usr/lib/selvedge/libselvedge-paths.so"),
        ("lib/libselvedge-udp.so", "usr/lib/selvedge/libselvedge-udp.so"),
        ("lib/libselvedge-eqds.so", "usr/lib/libselvedge-eqds.so"),
        ("include/selvedge-eqds.h", "usr/include/selvedge-eqds.h"),
        ("share/man/man7/selvedge-verbs.7", "usr/share/man/man7/selvedge-verbs.7"),
        ("share/man/man8/selvedge-eqds.8", "usr/share/man/man8/selvedge-eqds.8"),
        ("share/selvedge/systemd/selvedge-eqds@.service", "usr/lib/systemd/system/selvedge-eqds@.service"),
        ("share/selvedge/wireshark/eqds.lua", "usr/share/selvedge/wireshark/eqds.lua"),
    ] {
        copy(&dist.join(from), &tree.join(to))?;
    }
    copy(&root().join("LICENSE"), &tree.join("usr/share/doc/selvedge/copyright"))?;
    let control = format!(
        "Package: selvedge\nVersion: {version}\nArchitecture: {}\nSection: net\nPriority: optional\n\
         Maintainer: The Selvedge authors <selvedge@localhost>\nDepends: libc6, libgcc-s1\n\
         Recommends: iproute2\n\
         Description: RDMA programs without RDMA hardware, and a simulator of RDMA fabrics\n \
         libibverbs and librdmacm in user space, over UDP, with loss recovery after IRN;\n \
         `selvedge verbs -- PROGRAM` runs any program with them. `selvedge run` simulates\n \
         RDMA traffic packet by packet. `selvedge eqds` carries traffic between hosts\n \
         through receiver-driven tunnels.\n",
        architecture.trim()
    );
    fs::create_dir_all(tree.join("DEBIAN"))?;
    fs::write(tree.join("DEBIAN/control"), control)?;
    let file = dist.join(format!("selvedge_{version}_{}.deb", architecture.trim()));
    run(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(&tree).arg(&file))?;
    Ok(fs::remove_dir_all(&tree)?)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file in a folder")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}
