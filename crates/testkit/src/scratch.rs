//! Temporary folders for tests of programs.

use std::fs;
use std::path::{Path, PathBuf};

/// A temporary folder for one test, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty folder; `name` must be unique among all tests.
    ///
    /// # Panics
    /// If temporary folders cannot be written; likewise the methods below.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
    /// Adds a file with this name, which may contain folders, and content.
    #[must_use]
    pub fn with(self, name: &str, content: &str) -> Self {
        let path = self.join(name);
        fs::create_dir_all(path.parent().expect("inside the folder")).expect("a writable folder");
        fs::write(path, content).expect("a writable folder");
        self
    }
    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// Returns the path of `name` in the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// Returns a message with the path of this folder, which differs from run to run, replaced by `$SCRATCH`, as
    /// committed messages have it.
    pub fn normalised(&self, message: &str) -> String {
        message.replace(&*self.0.to_string_lossy(), "$SCRATCH")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
