//! Checks of crates and source files.

use std::path::Path;

use anyhow::Result;

use super::Complaint;
use super::layers::PURE;
use super::words;
use crate::workspace::{Package, files, read, root};

/// Maximum number of lines of a file; a longer one covers several subjects.
const LONGEST: usize = 1_200;

/// Maximum number of characters of a line, as in `rustfmt.toml`; rustfmt leaves comments as they are.
const WIDEST: usize = 120;

/// First line of a crate whose documentation is its README.
const README: &str = "#![doc = include_str!(\"../README.md\")]";

/// Crates that may print.
const MAY_PRINT: &[&str] = &["selvedge", "selvedge-ibverbs", "xtask"];

pub(super) fn check(packages: &[Package]) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    for package in packages {
        check_package(package, &mut complaints)?;
    }
    for path in files()?.iter().filter(|path| is_written_by_hand(path)) {
        let text = read(path)?;
        let lines = text.lines().count();
        if lines > LONGEST {
            complaints.push(Complaint::new(path.display(), format!("{lines} lines; split it below {LONGEST}")));
        }
        if is_rust(path) {
            let wide = too_wide(&text).map(|number| {
                Complaint::new(format!("{}:{number}", path.display()), format!("a comment wider than {WIDEST}"))
            });
            complaints.extend(wide);
            let words = words::complaints(&text).into_iter();
            complaints.extend(words.map(|(line, what)| Complaint::new(format!("{}:{line}", path.display()), what)));
        }
    }
    Ok(complaints)
}

fn check_package(package: &Package, complaints: &mut Vec<Complaint>) -> Result<()> {
    let name = package.name.as_str();
    if package.description.is_empty() {
        complaints.push(Complaint::new(name, "has no description in its Cargo.toml"));
    }
    let manifest = read(package.folder.join("Cargo.toml"))?;
    if !manifest.contains("[lints]\nworkspace = true") {
        complaints.push(Complaint::new(name, "does not take the workspace's lints: [lints] workspace = true"));
    }
    for path in &package.roots {
        let text = read(path)?;
        let place = path.strip_prefix(root()).unwrap_or(path).display();
        if !["//! ", README].iter().any(|begin| text.starts_with(begin)) {
            let message = format!("does not begin with documentation: //!, or {README}");
            complaints.push(Complaint::new(place, message));
            continue;
        }
        if PURE.contains(&name) {
            for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
                if !text.lines().any(|line| line == attribute) {
                    complaints.push(Complaint::new(&place, format!("{name} is pure and says so: {attribute}")));
                }
            }
        }
    }
    let source = package.folder.join("src");
    let source = source.strip_prefix(root()).unwrap_or(&source);
    for path in files()?.iter().filter(|path| path.starts_with(source) && is_rust(path) && !is_test(path)) {
        check_source(name, path, &read(path)?, complaints);
    }
    Ok(())
}

/// Checks the part of a source file before its tests.
fn check_source(package: &str, path: &Path, text: &str, complaints: &mut Vec<Complaint>) {
    for (number, line) in (1..).zip(text.lines().take_while(|line| line.trim_start() != "#[cfg(test)]")) {
        let code = line.split("//").next().unwrap_or_default();
        let mut complain = |message: &str| {
            complaints.push(Complaint::new(format!("{}:{number}", path.display()), message));
        };
        if PURE.contains(&package) && names_std(code) {
            complain("a pure crate names std; core and alloc are what it has");
        }
        if !MAY_PRINT.contains(&package)
            && ["print!(", "println!(", "dbg!("].iter().any(|printer| code.contains(printer))
        {
            complain("libraries print nothing");
        }
    }
}

/// Returns the numbers of lines that are comments and too wide.
fn too_wide(text: &str) -> impl Iterator<Item = usize> + '_ {
    let is_wide = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > WIDEST;
    (1..).zip(text.lines()).filter(move |(_, line)| is_wide(line)).map(|(number, _)| number)
}

fn names_std(code: &str) -> bool {
    let word_before = |at: usize| code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    code.contains("extern crate std") || code.match_indices("std::").any(|(at, _)| !word_before(at))
}

/// Returns whether the file is neither generated nor data.
fn is_written_by_hand(path: &Path) -> bool {
    let kinds = ["rs", "md", "toml", "html", "css", "js", "sh"];
    let is_kind = path.extension().is_some_and(|extension| kinds.iter().any(|kind| extension == *kind));
    is_kind && ![Path::new("docs/claims.md"), Path::new("docs/keys.md")].contains(&path)
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Returns whether the file contains tests inside `src`.
fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| ["tests", "dialogue", "rounds"].contains(&&*stem.to_string_lossy()))
        || path.parent().is_some_and(|folder| folder.ends_with("tests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(package: &str, text: &str) -> usize {
        let mut complaints = Vec::new();
        check_source(package, Path::new("a.rs"), text, &mut complaints);
        complaints.len()
    }

    #[test]
    fn pure_crates_do_not_name_std() {
        assert_eq!(complaints("selvedge-nic", "use std::fs;"), 1);
        assert_eq!(complaints("selvedge-nic", "use core::fmt; // not std::fmt\nlet last::std::x = 1;"), 0);
        assert_eq!(complaints("selvedge-sim", "use std::fs;"), 0);
        assert_eq!(complaints("selvedge-nic", "fn f() {}\n#[cfg(test)]\nmod tests { use std::fs; }"), 0);
    }

    #[test]
    fn comments_fit_the_page() {
        let wide = |width: usize| format!("let a = 1;\n    // {}\n", "-".repeat(width - 7));
        assert_eq!(too_wide(&wide(120)).count(), 0);
        assert_eq!(too_wide(&wide(121)).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn libraries_print_nothing() {
        assert_eq!(complaints("selvedge-sim", "    println!(\"here\");\n    eprintln!(\"there\");"), 2);
        assert_eq!(complaints("selvedge", "println!(\"result\");"), 0);
    }
}
