//! Image of a kernel with `rdma_rxe`, and the few programs that it runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{output, run};
use crate::workspace::root;

/// Image that qemu boots.
pub(super) struct Image {
    pub(super) kernel: PathBuf,
    pub(super) initial: PathBuf,
}

/// Programs in the guest.
const PROGRAMS: [&str; 18] = [
    "ibv_devinfo",
    "ibv_rc_pingpong",
    "ibv_uc_pingpong",
    "ibv_ud_pingpong",
    "ibv_srq_pingpong",
    "ib_write_bw",
    "ib_write_lat",
    "ib_read_bw",
    "ib_read_lat",
    "ib_send_bw",
    "ib_send_lat",
    "ib_atomic_bw",
    "ib_atomic_lat",
    "rping",
    "ucmatose",
    "udaddy",
    "mckey",
    "rdma",
];
/// Kernel modules that soft RoCE needs.
const MODULES: [&str; 5] = ["virtio_net", "virtio_pci", "crc32_generic", "rdma_ucm", "rdma_rxe"];
/// Provider that libibverbs loads for soft RoCE.
const PROVIDER: &str = "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so";

/// Library that threads load when they end.
const ENDING: &str = "/lib/x86_64-linux-gnu/libgcc_s.so.1";

/// First process of the guest: brings the network up, then executes scripts received on port 9999.
const INIT: &str = "\
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod $module; done
ip link set lo up
ip link set eth0 up
ip address add 10.77.0.2/24 dev eth0
export LD_LIBRARY_PATH=/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu
sleep 1
rdma link add rxe0 type rxe netdev eth0 && echo GUEST-READY
while true; do nc -l -p 9999 -e /bin/sh; done
";

/// Makes the image, unless there is one.
pub(super) fn image() -> Result<Image> {
    let folder = root().join("target/soft-roce");
    fs::create_dir_all(&folder)?;
    let image = Image { kernel: folder.join("vmlinuz"), initial: folder.join("initial.gz") };
    if image.kernel.exists() && image.initial.exists() {
        return Ok(image);
    }
    let package = unpack_kernel(&folder)?;
    let version = only_entry(&package.join("lib/modules"))?;
    fill(&folder.join("root"), &package, &version)?;
    let pack = "find . | cpio --create --format=newc --quiet | gzip -1 > ../initial.gz.new";
    run(Command::new("sh").args(["-c", pack]).current_dir(folder.join("root")))?;
    fs::rename(folder.join("initial.gz.new"), &image.initial)?;
    fs::copy(package.join(format!("boot/vmlinuz-{version}")), &image.kernel).context("the kernel")?;
    Ok(image)
}

/// Fetches the newest kernel of the distribution that has the module, and unpacks it.
fn unpack_kernel(folder: &Path) -> Result<PathBuf> {
    let depends = output(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
    let name = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let name = name.context("apt knows no linux-image-amd64: this chore needs Debian or one of its kin")?;
    run(Command::new("apt-get").args(["download", name]).current_dir(folder))?;
    let archive = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get has downloaded nothing")?;
    let package = folder.join("kernel");
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&package))?;
    fs::remove_file(archive)?;
    let version = only_entry(&package.join("lib/modules"))?;
    run(Command::new("depmod").arg("-b").arg(&package).arg(version))?;
    Ok(package)
}

fn only_entry(folder: &Path) -> Result<String> {
    let entry = fs::read_dir(folder)?.next().with_context(|| format!("{} is empty", folder.display()))??;
    Ok(entry.file_name().to_string_lossy().into_owned())
}

/// Fills `root` with all files of the guest.
fn fill(root: &Path, package: &Path, version: &str) -> Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    for folder in ["bin", "dev", "proc", "sys", "etc/libibverbs.d", "modules", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let mut files: BTreeSet<PathBuf> = [PROVIDER, ENDING, "/etc/libibverbs.d/rxe.driver"].map(PathBuf::from).into();
    for program in PROGRAMS.iter().chain(&["busybox"]) {
        let path = output(Command::new("sh").args(["-c", &format!("command -v {program}")]))
            .with_context(|| format!("{program} is not installed"))?;
        fs::copy(path.trim(), root.join("bin").join(program))?;
        files.extend(libraries(Path::new(path.trim())));
    }
    files.extend(libraries(Path::new(PROVIDER)));
    for file in files {
        let place = root.join(file.strip_prefix("/")?);
        fs::create_dir_all(place.parent().context("a file")?)?;
        fs::copy(&file, place).with_context(|| file.display().to_string())?;
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\n")?;
    fs::write(root.join("init"), INIT)?;
    run(Command::new("chmod").arg("+x").arg(root.join("init")))?;
    for (n, module) in modules(package, version)?.iter().enumerate() {
        let name = module.file_name().context("a module is a file")?.to_string_lossy();
        fs::copy(module, root.join(format!("modules/{n:02}-{name}")))?;
    }
    Ok(())
}

/// Returns the libraries that a program loads; none if it needs none.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let Ok(listed) = Command::new("ldd").arg(program).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// Returns the kernel modules, each after those that it needs.
fn modules(package: &Path, version: &str) -> Result<Vec<PathBuf>> {
    let mut modules = Vec::new();
    for module in MODULES {
        let mut show = Command::new("modprobe");
        let listed = output(show.arg("-d").arg(package).args(["-S", version, "--show-depends", module]))?;
        for path in listed.lines().filter_map(|line| line.split_whitespace().nth(1)).map(PathBuf::from) {
            if !modules.contains(&path) {
                modules.push(path);
            }
        }
    }
    Ok(modules)
}
