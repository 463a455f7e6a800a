//! Folders for tests of programs.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of its own for one test, removed at the end.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder; `name` is unique among all tests.
    ///
    /// # Panics
    /// When temporary folders cannot be written, as everything below.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
    /// The folder with a file of this name, which may begin with folders, and content.
    #[must_use]
    pub fn with(self, name: &str, content: &str) -> Self {
        let path = self.join(name);
        fs::create_dir_all(path.parent().expect("inside the folder")).expect("writable");
        fs::write(path, content).expect("writable");
        self
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// The path of something in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
