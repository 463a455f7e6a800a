//! Libraries of RDMA programs, linked with the names and versions of symbols that such programs expect.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::build::Build;
use crate::command::run;
use crate::workspace::read;

/// Numbers of rdma-core's private interface, and the versions that have it: 22, 25 (28-30), 34 (35-56: Debian 12 and
/// 13, Ubuntu 22.04 and 24.04, RHEL 9), 57, 59 (60-62), 64, 65.
const PRIVATE: &[u32] = &[17, 22, 25, 34, 57, 59, 64, 65];
/// Version of the private interface whose functions are more than stubs.
const CURRENT: u32 = 34;

/// Symbols that the other libraries of Selvedge call, as a version script.
const OURS: &str = "SELVEDGE_1 {\n    global:\n        selvedge_r*;\n        selvedge_path_*;\n};\n";

/// Links all libraries, from what Cargo has built to the folder `to`.
pub(super) fn link(build: &Build, to: &Path) -> Result<()> {
    let scratch = build.folder().join("ibverbs-link");
    fs::create_dir_all(&scratch)?;
    link_verbs(build, &scratch, to)?;
    link_rdmacm(build, &scratch, to)?;
    link_paths(build, &scratch, to)
}

/// Links `libibverbs.so.1` with the versions of its symbols.
fn link_verbs(build: &Build, scratch: &Path, to: &Path) -> Result<()> {
    let private = read("crates/ibverbs/private.txt")?;
    let archive = build.folder().join("libselvedge_ibverbs.a");
    let (map, stubs) = (scratch.join("exports.map"), scratch.join("private.c"));
    let exports = read("crates/ibverbs/exports.map")? + &private_nodes(&private) + OURS;
    fs::write(&map, exports)?;
    fs::write(&stubs, private_stubs(&private))?;
    let mut link = build.c_compiler();
    link.args(["-shared", "-fPIC", "-O2"]).arg(&stubs);
    link.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive");
    link.arg(format!("-Wl,--version-script={}", map.display()));
    // The library's thread must not be unloaded while it runs: with this option, `dlclose` keeps the library.
    link.args([
        "-Wl,-soname,libibverbs.so.1",
        "-Wl,--gc-sections",
        "-Wl,--strip-debug",
        "-Wl,-z,nodelete",
        "-Wl,-z,now",
    ]);
    link.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
    link_as(&mut link, &to.join("libibverbs.so.1"))
}

/// Runs the linker and replaces `file` atomically: a program that starts meanwhile loads the old file or the new one,
/// never a part.
fn link_as(link: &mut Command, file: &Path) -> Result<()> {
    let unfinished = file.with_extension(format!("{}.unfinished", std::process::id()));
    run(link.arg("-o").arg(&unfinished))?;
    fs::rename(&unfinished, file).with_context(|| file.display().to_string())
}

/// Links `librdmacm.so.1`, whose functions call those of `libibverbs.so.1`, because both share one NIC.
fn link_rdmacm(build: &Build, scratch: &Path, to: &Path) -> Result<()> {
    let symbols = read("crates/ibverbs/rdmacm.txt")?;
    let (map, stubs) = (scratch.join("rdmacm.map"), scratch.join("rdmacm.c"));
    let (mut nodes, mut text) = (BTreeMap::<&str, String>::new(), String::new());
    for line in symbols.lines().filter(|line| !line.starts_with('#')) {
        let [node, name, calls] = line.split(' ').collect::<Vec<_>>()[..] else { bail!("rdmacm.txt: {line}") };
        let _ = writeln!(nodes.entry(node).or_default(), "        {name};");
        let _ = writeln!(text, "FORWARD({name}, {calls})");
    }
    let nodes: String = nodes
        .iter()
        .enumerate()
        .map(|(at, (node, names))| {
            let local = if at == 0 { "    local:\n        *;\n" } else { "" };
            format!("{node} {{\n    global:\n{names}{local}}};\n")
        })
        .collect();
    fs::write(&map, nodes)?;
    fs::write(&stubs, FORWARD.to_owned() + &text)?;
    link_forwards(build, "librdmacm.so.1", &stubs, to, &[&format!("-Wl,--version-script={}", map.display())])
}

/// Links `libselvedge-paths.so`, whose functions take precedence over those of the C library.
fn link_paths(build: &Build, scratch: &Path, to: &Path) -> Result<()> {
    let stubs = scratch.join("paths.c");
    let symbols = read("crates/ibverbs/paths.txt")?;
    let forwards: String = lines(&symbols).map(|(name, calls)| format!("FORWARD({name}, {calls})\n")).collect();
    fs::write(&stubs, FORWARD.to_owned() + &forwards)?;
    link_forwards(build, "libselvedge-paths.so", &stubs, to, &[])
}

/// Links a library whose functions only call those of `libibverbs.so.1`.
fn link_forwards(build: &Build, name: &str, stubs: &Path, to: &Path, arguments: &[&str]) -> Result<()> {
    let mut link = build.c_compiler();
    link.args(["-shared", "-fPIC"]).arg(stubs).arg(to.join("libibverbs.so.1")).args(arguments);
    link.arg(format!("-Wl,-soname,{name}"));
    link.args(["-Wl,-rpath,$ORIGIN", "-Wl,-z,now", "-Wl,--strip-debug"]);
    link_as(&mut link, &to.join(name))
}

/// Function that forwards to another one, with any arguments.
const FORWARD: &str = r#"#if defined(__x86_64__)
#define JUMP "jmp "
#define BEHIND "@PLT"
#elif defined(__aarch64__)
#define JUMP "b "
#define BEHIND ""
#endif
#define FORWARD(name, calls) \
    __asm__(".text\n.globl " #name "\n.type " #name ",%function\n" #name ": " JUMP #calls BEHIND "\n");
"#;

/// Returns the pairs of words in a file: the kind of a private symbol, and its name.
fn lines(private: &str) -> impl Iterator<Item = (&str, &str)> {
    private.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '))
}

/// Returns the version nodes of private symbols. Their symbols come by `.symver`, except for real functions in the
/// current node.
fn private_nodes(private: &str) -> String {
    let functions: String =
        lines(private).filter(|(kind, _)| *kind == "function").map(|(_, name)| format!("        {name};\n")).collect();
    PRIVATE
        .iter()
        .map(|&number| {
            let symbols = if number == CURRENT { format!("    global:\n{functions}") } else { String::new() };
            format!("IBVERBS_PRIVATE_{number} {{\n{symbols}}};\n")
        })
        .collect()
}

/// Returns a C file with every private symbol in every node.
fn private_stubs(private: &str) -> String {
    let mut text = "extern int selvedge_unsupported(void);\nextern void *selvedge_unsupported_pointer(void);\n\
                    int sv_unsupported(void) { return selvedge_unsupported(); }\n\
                    void *sv_pointer(void) { return selvedge_unsupported_pointer(); }\n\
                    void sv_ignored(void) {}\nchar sv_data = 0;\n"
        .to_owned();
    for &number in PRIVATE {
        for (at, (kind, name)) in lines(private).enumerate() {
            let name = name.replace("{N}", &number.to_string());
            let alias = format!("sv_{number}_{at}");
            let declaration = match kind {
                "function" if number == CURRENT => continue,
                "function" => format!(
                    "extern int {name}(void *, unsigned char, unsigned, int *);\nint {alias}(void *a, unsigned char b, \
                     unsigned c, int *d) {{ return {name}(a, b, c, d); }}"
                ),
                "pointer" => format!("extern void *{alias}(void) __attribute__((alias(\"sv_pointer\")));"),
                "ignored" => format!("extern void {alias}(void) __attribute__((alias(\"sv_ignored\")));"),
                "data" => format!("extern char {alias} __attribute__((alias(\"sv_data\")));"),
                _ => format!("extern int {alias}(void) __attribute__((alias(\"sv_unsupported\")));"),
            };
            let _ = writeln!(text, "{declaration}\n__asm__(\".symver {alias},{name}@IBVERBS_PRIVATE_{number}\");");
        }
    }
    text
}
