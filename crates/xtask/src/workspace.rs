//! Workspace as cargo sees it, and its files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::{cargo, output};

/// Returns the root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// Crate of the workspace.
pub(crate) struct Package {
    /// Name, as "selvedge-units".
    pub(crate) name: String,
    pub(crate) description: String,
    /// Folder of the package's Cargo.toml.
    pub(crate) folder: PathBuf,
    /// Root files of the package's library and binaries.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// Dependency of one package on another.
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only tests, examples and benches depend on it.
    pub(crate) dev: bool,
}

/// Returns all crates of the workspace, by name.
///
/// # Errors
/// Returns an error if `cargo metadata` fails.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let text = output(&mut cargo(["metadata", "--format-version=1", "--no-deps", "--offline"]))
        .or_else(|_| output(&mut cargo(["metadata", "--format-version=1", "--no-deps"])))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let mut packages: Vec<Package> = list(&metadata["packages"]).map(package).collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

fn package(value: &Value) -> Package {
    let is_root = |target: &&Value| list(&target["kind"]).any(|kind| kind == "lib" || kind == "bin");
    let mut folder = PathBuf::from(string(&value["manifest_path"]));
    folder.pop();
    Package {
        name: string(&value["name"]),
        description: string(&value["description"]),
        folder,
        roots: list(&value["targets"]).filter(is_root).map(|target| string(&target["src_path"]).into()).collect(),
        dependencies: list(&value["dependencies"])
            .map(|edge| Dependency { name: string(&edge["name"]), dev: edge["kind"] == "dev" })
            .collect(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the project's files, relative to the root, in order; files that builds or runs made are left out.
///
/// # Errors
/// Returns an error if a folder cannot be read.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let relative = path.strip_prefix(root()).unwrap_or(&path);
            if path.is_file() {
                files.push(relative.to_owned());
            } else if path.is_dir() && !is_output(relative) {
                folders.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns whether a folder holds files that .gitignore leaves out.
fn is_output(folder: &Path) -> bool {
    folder.ends_with("target")
        || [".git", "dist", "results", "fuzz/artifacts", "fuzz/coverage"]
            .iter()
            .any(|output| folder == Path::new(output))
        || folder.extension().is_some_and(|extension| extension == "partial")
}

/// Reads a file of the project.
///
/// # Errors
/// Returns an error that names the file.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(root().join(path)).with_context(|| path.display().to_string())
}
