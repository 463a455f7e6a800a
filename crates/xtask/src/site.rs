//! Command `cargo xtask site`: the documentation as a site, from the documents of the repository as they are.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::command::quiet;
use crate::python::{in_root, tools};
use crate::workspace::{files, read, root};

#[derive(Args)]
pub(crate) struct Options {
    /// Check it alone: no warnings, no dead links; nothing is left behind
    #[arg(long)]
    check: bool,
}

/// Packages from PyPI that make the site.
const PACKAGES: [&str; 3] = ["mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "mkdocstrings[python]>=0.26,<2"];
/// Documents and pictures of the site, in the layout of the repository; mkdocs.yml names it.
const PAGES: &str = "target/site-pages";
const REPOSITORY: &str = "https://github.com/selvedge-net/selvedge";

/// Runs `cargo xtask site`.
pub(crate) fn site(options: &Options) -> Result<()> {
    let Ok(python) = tools("python-site", &PACKAGES) else {
        println!("skipped: the site: no python3 with venv, or no PyPI");
        return Ok(());
    };
    pages()?;
    let to = root().join(if options.check { "target/site-check" } else { "target/site" });
    let mut build = in_root(&python);
    // No `--quiet`: it takes warnings for well. Material prints news about itself.
    build.args(["-m", "mkdocs", "build", "--strict", "--clean", "--config-file", "docs/mkdocs.yml"]);
    quiet(build.arg("--site-dir").arg(&to).env("NO_MKDOCS_2_WARNING", "1"))?;
    if options.check {
        fs::remove_dir_all(&to)?;
        println!("the site has no warnings and no dead links");
    } else {
        println!("{}", to.join("index.html").display());
    }
    Ok(())
}

/// Writes the pages: documents whose links to files outside of the site lead to the repository, and generated ones.
fn pages() -> Result<()> {
    let to = root().join(PAGES);
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    let all: Vec<PathBuf> = files()?.into_iter().filter(|file| is_page(file)).collect();
    for file in &all {
        let page = to.join(file);
        fs::create_dir_all(page.parent().context("a file in a folder")?)?;
        if file.extension().is_some_and(|of| of == "md") {
            fs::write(page, relinked(&read(file)?, file, &|target| all.contains(&target.to_owned())))?;
        } else {
            fs::copy(root().join(file), page)?;
        }
    }
    fs::write(to.join("docs/commands.md"), commands(&read("crates/cli/tests/snapshots/help.txt")?))?;
    fs::write(
        to.join("docs/python-reference.md"),
        "# Python\n\n[The guide](python.md) has examples.\n\n::: selvedge\n",
    )?;
    Ok(())
}

/// Returns whether a file is part of the site: documents, and pictures and scripts beside them.
fn is_page(file: &Path) -> bool {
    let of = |extensions: &[&str]| extensions.iter().any(|one| file.extension().is_some_and(|own| own == *one));
    of(&["md"]) || of(&["png", "svg", "js"]) && (file.starts_with("docs") || file.starts_with("rtl"))
}

/// Returns a document whose links to files that `has` denies lead to the repository.
fn relinked(text: &str, file: &Path, has: &dyn Fn(&Path) -> bool) -> String {
    let (mut out, mut in_code) = (String::new(), false);
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        let mut parts = line.split("](");
        out += parts.next().unwrap_or_default();
        for part in parts {
            out += "](";
            let (link, rest) = part.split_at(part.find(')').unwrap_or(0));
            out += &if in_code { link.to_owned() } else { place(link, file, has) };
            out += rest;
        }
        out.push('\n');
    }
    out
}

/// Returns the place to which a link of a document leads.
fn place(link: &str, file: &Path, has: &dyn Fn(&Path) -> bool) -> String {
    let path = link.split('#').next().unwrap_or_default();
    if path.is_empty() || link.contains("://") || link.starts_with("mailto:") {
        return link.to_owned();
    }
    let target = normal(&file.parent().unwrap_or(Path::new("")).join(path));
    match has(&target) || !root().join(&target).exists() {
        // Where there is no such file, the site's check reports the link.
        true => link.to_owned(),
        false if root().join(&target).is_dir() => format!("{REPOSITORY}/tree/main/{}", target.display()),
        false => format!("{REPOSITORY}/blob/main/{}", target.display()),
    }
}

/// Returns a path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// Returns a page with the help of each command, from the text that tests compare with.
fn commands(help: &str) -> String {
    let mut page =
        "# Commands\n\nAs `selvedge COMMAND --help` prints it; installations have a manual page for each, too.\n"
            .to_owned();
    let mut is_open = false;
    for line in help.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            page += if is_open { "```\n" } else { "" };
            page += &format!("\n## {}\n\n```text\n", command.trim_end_matches(" --help"));
            is_open = true;
        } else {
            page += line.strip_prefix("    ").unwrap_or(line);
            page.push('\n');
        }
    }
    page + if is_open { "```\n" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_outside_the_site_lead_to_the_repository() {
        let has = |target: &Path| target == Path::new("docs/a.md");
        let text = "[a](a.md#part) [b](../crates/xtask/Cargo.toml), [c](../figures) [d](#e)\n```\n[x](y)\n```\n";
        let expected = format!(
            "[a](a.md#part) [b]({REPOSITORY}/blob/main/crates/xtask/Cargo.toml), [c]({REPOSITORY}/tree/main/figures) \
             [d](#e)\n```\n[x](y)\n```\n"
        );
        assert_eq!(relinked(text, Path::new("docs/b.md"), &has), expected);
    }

    #[test]
    fn each_command_has_a_section() {
        let page = commands("$ selvedge --help\n    One\n\n$ selvedge run --help\n    Two\n");
        assert!(
            page.ends_with("\n## selvedge\n\n```text\nOne\n\n```\n\n## selvedge run\n\n```text\nTwo\n```\n"),
            "{page}"
        );
    }
}
