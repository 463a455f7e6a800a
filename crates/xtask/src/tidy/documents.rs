//! Checks of documents against the files that they describe.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use clap::Parser;

use super::Complaint;
use crate::Xtask;
use crate::product::{Profile, selvedge};
use crate::workspace::{files, read, root};

const EXPECTED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "STYLE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "docs/design/simulator.md",
    "docs/glossary.md",
    "docs/notebook/README.md",
    "docs/papers.md",
    "docs/install.md",
    "docs/tour.md",
    "docs/tutorial.md",
    "schema/scenario.schema.json",
    "schema/summary.schema.json",
];

/// Words that README.md may have.
const README_WORDS: usize = 700;

/// Bytes that ARCHITECTURE.md may have.
const ARCHITECTURE_BYTES: usize = 12_000;

pub(super) fn check() -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    let (words, bytes) = (read("README.md")?.split_whitespace().count(), read("ARCHITECTURE.md")?.len());
    if words > README_WORDS {
        let message = format!("has {words} words, {README_WORDS} at most: examples belong in docs/tour.md");
        complaints.push(Complaint::new("README.md", message));
    }
    if bytes > ARCHITECTURE_BYTES {
        let message = format!("has {bytes} bytes, {ARCHITECTURE_BYTES} at most: designs belong in docs/design");
        complaints.push(Complaint::new("ARCHITECTURE.md", message));
    }
    for file in EXPECTED.iter().filter(|file| !root().join(file).is_file()) {
        complaints.push(Complaint::new(file, "is missing"));
    }
    if !read("CHANGELOG.md")?.lines().any(|line| line == "## Unreleased") {
        complaints.push(Complaint::new("CHANGELOG.md", "has no section \"## Unreleased\""));
    }
    for path in files()?.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let folder = path.parent().unwrap_or(Path::new(""));
        for (line, link) in links(&read(path)?) {
            if !root().join(folder).join(&link).exists() {
                complaints.push(Complaint::new(format!("{}:{line}", path.display()), format!("no {link} here")));
            }
        }
    }
    // Commands are passed to the program with `--help` at their end: they are parsed, not executed.
    let product = selvedge(Profile::Dev)?;
    for document in
        ["README.md", "docs/tour.md", "docs/tutorial.md", "docs/gallery.md", "docs/install.md", "CONTRIBUTING.md"]
    {
        for (line, command) in commands(&read(document)?) {
            if let Err(message) = check_command(product.get_program(), &command) {
                complaints.push(Complaint::new(format!("{document}:{line}"), message));
            }
        }
    }
    Ok(complaints)
}

/// Returns the targets of Markdown links and pictures within the project, with their line numbers.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for (_, rest) in line.match_indices("](").map(|(at, _)| line.split_at(at + 2)) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                links.push((number, target.to_owned()));
            }
        }
    }
    links
}

/// Returns the command lines in fenced `sh` blocks, without prompts and comments, with their line numbers.
fn commands(text: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut in_shell = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("```") {
            in_shell = line == "```sh";
        } else if in_shell {
            let command = line.split(" #").next().unwrap_or_default().trim().trim_start_matches("$ ");
            if !command.is_empty() && !command.starts_with('#') {
                commands.push((number, command.to_owned()));
            }
        }
    }
    commands
}

fn check_command(product: &OsStr, command: &str) -> Result<(), String> {
    // Simple splitting suffices: the examples quote nothing, and commands behind a pipe are not Selvedge's.
    let words: Vec<&str> = command.split(" | ").next().unwrap_or_default().split_whitespace().collect();
    for path in words.iter().filter(|word| ["crates/", "figures/", "docs/"].iter().any(|own| word.starts_with(own))) {
        if !root().join(path).exists() {
            return Err(format!("no {path} here"));
        }
    }
    match words[..] {
        ["cargo", "xtask", ref rest @ ..] => Xtask::try_parse_from(["xtask"].iter().chain(rest))
            .map(drop)
            .map_err(|error| first_line(&error.to_string())),
        ["cargo", "run", "--release", "--", ref rest @ ..] | ["selvedge", ref rest @ ..] => {
            let mut help = Command::new(product);
            // Words behind `--` belong to another program.
            let ours = rest.iter().take_while(|word| **word != "--");
            let output = help.args(ours).arg("--help").output().map_err(|error| error.to_string())?;
            if output.status.success() { Ok(()) } else { Err(first_line(&String::from_utf8_lossy(&output.stderr))) }
        }
        _ => Ok(()),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("fails").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_the_project_are_found() {
        let text = "See [a](docs/a.md#part), ![b](b.png) and [c](https://example.org).\n[d](#here)";
        assert_eq!(links(text), [(1, "docs/a.md".to_owned()), (1, "b.png".to_owned())]);
    }

    #[test]
    fn only_shell_blocks_hold_commands() {
        let text = "```toml\na = 1\n```\n```sh\n# all of it\ncargo xtask test --all   # slow\n```\ncargo xtask no\n";
        assert_eq!(commands(text), [(6, "cargo xtask test --all".to_owned())]);
    }

    #[test]
    fn commands_of_xtask_must_exist() {
        let check_command = |command| check_command(OsStr::new("selvedge"), command);
        assert_eq!(check_command("cargo xtask test --all"), Ok(()));
        assert!(check_command("cargo xtask test --some").is_err());
        assert!(check_command("cargo bench --manifest-path crates/nowhere/Cargo.toml").is_err());
        assert_eq!(check_command("git clone https://example.org | cat"), Ok(()));
    }
}
