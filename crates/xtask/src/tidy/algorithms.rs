//! Files that must come with each algorithm and each fuzz target.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Complaint;
use crate::workspace::{files, read, root};

pub(super) fn check() -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    for family in ["recovery", "congestion"] {
        for folder in folders(&Path::new("crates/transport/src").join(family))? {
            if !root().join(&folder).join("README.md").is_file() {
                complaints
                    .push(Complaint::new(folder.display(), "has no README.md: which section is implemented where?"));
            }
        }
    }
    let targets: Vec<String> = names(Path::new("fuzz/fuzz_targets"))?;
    let tests: Vec<String> = files()?
        .iter()
        .filter(|path| path.starts_with("crates") && path.components().any(|part| part.as_os_str() == "tests"))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(read)
        .collect::<Result<_>>()?;
    for target in &targets {
        let folder = Path::new("fuzz/corpus").join(target);
        if !root().join(&folder).is_dir() {
            complaints
                .push(Complaint::new(format!("fuzz target {target}"), format!("has no corpus, {}", folder.display())));
        } else if !tests.iter().any(|text| is_replayed(target, text)) {
            complaints.push(Complaint::new(folder.display(), "no test replays it"));
        }
    }
    for corpus in folders(Path::new("fuzz/corpus"))? {
        let name = corpus.file_name().unwrap_or_default().to_string_lossy();
        if !targets.contains(&name.clone().into_owned()) {
            complaints.push(Complaint::new(corpus.display(), "no fuzz target uses it"));
        }
    }
    Ok(complaints)
}

/// Returns whether a test replays a corpus: it names the corpus, or reads all those with a prefix ("formats_").
fn is_replayed(target: &str, test: &str) -> bool {
    let prefix = target.split_once('_').map_or(target, |(prefix, _)| prefix);
    test.contains("fuzz/corpus")
        && [format!("\"{target}\""), format!("/{target}\""), format!("\"{prefix}_\"")]
            .iter()
            .any(|name| test.contains(name))
}

fn folders(within: &Path) -> Result<Vec<PathBuf>> {
    let mut folders: Vec<PathBuf> = entries(within)?.into_iter().filter(|path| root().join(path).is_dir()).collect();
    folders.sort();
    Ok(folders)
}

/// Returns the files in a folder, without their extensions.
fn names(within: &Path) -> Result<Vec<String>> {
    let name = |path: PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries(within)?.into_iter().map(name).collect();
    names.sort();
    Ok(names)
}

fn entries(within: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root().join(within)).with_context(|| within.display().to_string())?;
    entries.map(|entry| Ok(within.join(entry?.file_name()))).collect()
}
