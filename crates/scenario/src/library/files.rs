//! Content of files, each read once, because a pipe cannot be read a second time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_formats::Warning;
use selvedge_sim::ConfigError;

use crate::input;

/// Folder, below that of results, for the contents that came through pipes.
const KEPT: &str = "inputs";

/// Files of one study.
#[derive(Clone, Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// Whether the folder holds results: relative paths then name inputs that are kept there.
    of_results: bool,
    shared: Arc<Mutex<Shared>>,
}

/// Files read so far.
#[derive(Debug, Default)]
struct Shared {
    /// Contents, indexed by the name that the resolved scenario has for a file.
    contents: BTreeMap<PathBuf, Arc<Vec<u8>>>,
    /// Path of each pipe, and its name.
    pipes: Vec<(PathBuf, PathBuf)>,
    /// Questionable points of files, prefixed with the file's name; each once.
    warnings: Vec<String>,
}

impl Files {
    pub(super) fn new(folder: PathBuf, of_results: bool) -> Self {
        Self { folder, of_results, shared: Arc::default() }
    }

    /// Returns the name that the resolved scenario has for the file at `path`, which the folder completes: its absolute
    /// path, or, for a pipe, the path at which results keep its content.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        let known = self.shared().contents.contains_key(Path::new(path));
        if known || self.of_results && Path::new(path).is_relative() {
            return path.into();
        }
        let place = self.folder.join(path);
        match fs::metadata(&place) {
            Ok(meta) if !meta.is_file() && !meta.is_dir() => self.pipe(place),
            _ => fs::canonicalize(&place).unwrap_or(place),
        }
    }

    pub(super) fn content(&self, path: &str) -> Result<Arc<Vec<u8>>, ConfigError> {
        let name = self.resolve(path);
        let mut shared = self.shared();
        if let Some(content) = shared.contents.get(&name) {
            return Ok(Arc::clone(content));
        }
        let place = self.folder.join(path);
        let content = input::read(&place).map_err(|error| {
            let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
            let missing = folder.map(|folder| format!("; there is no folder {}", folder.display()));
            let message = format!("cannot read {}: {error}{}", place.display(), missing.unwrap_or_default());
            ConfigError::new("", message)
        })?;
        let content = Arc::new(content);
        shared.contents.insert(name, Arc::clone(&content));
        Ok(content)
    }

    /// Returns everything read so far, by name.
    pub(super) fn contents(&self) -> Vec<(PathBuf, Arc<Vec<u8>>)> {
        self.shared().contents.iter().map(|(name, content)| (name.clone(), Arc::clone(content))).collect()
    }

    /// Returns the contents that came through pipes, with the names under which results keep them.
    pub(super) fn kept(&self) -> Vec<(PathBuf, Arc<Vec<u8>>)> {
        let mut contents = self.contents();
        contents.retain(|(name, _)| !self.of_results && name.is_relative() && name.starts_with(KEPT));
        contents
    }

    pub(super) fn note(&self, path: &str, warnings: impl IntoIterator<Item = Warning>) {
        let mut shared = self.shared();
        for Warning { line, message } in warnings {
            let text = format!("{path}:{line}: {message}");
            if !shared.warnings.contains(&text) {
                shared.warnings.push(text);
            }
        }
    }

    /// Returns the place of `word` in a line of a file that was read, as in "flow.txt:3:5", or the begin of the line if
    /// the word is not in it.
    pub(super) fn place(&self, path: &str, line: u64, word: &str) -> String {
        let content = self.content(path).unwrap_or_default();
        let nth = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
        let text = content.split(|&byte| byte == b'\n').nth(nth).map(String::from_utf8_lossy).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let in_word = |c: char| c.is_alphanumeric();
        let is_whole = |&(at, found): &(usize, &str)| {
            !text[..at].ends_with(in_word) && !text[at + found.len()..].starts_with(in_word)
        };
        let at = text.match_indices(word).find(is_whole).map_or(0, |(at, _)| at);
        format!("{path}:{line}:{}", text[..at].chars().count() + 1)
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.shared().warnings.clone()
    }

    /// Returns the name of the pipe at `place`: its path in one word, "inputs/dev-fd-63".
    fn pipe(&self, place: PathBuf) -> PathBuf {
        let mut shared = self.shared();
        if let Some((_, name)) = shared.pipes.iter().find(|(known, _)| *known == place) {
            return name.clone();
        }
        let text = place.to_string_lossy();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut name = Path::new(KEPT).join(words.join("-"));
        while shared.pipes.iter().any(|(_, taken)| *taken == name) {
            name.as_mut_os_string().push("-2");
        }
        shared.pipes.push((place, name.clone()));
        name
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
