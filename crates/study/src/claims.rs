//! Files for the tables of claims.

use std::fs;
use std::path::{Path, PathBuf};

use selvedge_results::{ClaimsInput, is_claims_markdown, render_claims_html, render_claims_markdown};

use crate::{StudyError, check_writable};

/// The output files for the tables of claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimsFiles {
    html: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

impl ClaimsFiles {
    /// Sets the files for an HTML page, for Markdown, for both or neither. Sections of papers that are not run are kept
    /// in existing Markdown.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written, or `markdown` holds something else; this is checked before the
    /// runs, so that no time is lost.
    pub fn new(html: Option<PathBuf>, markdown: Option<PathBuf>) -> Result<Self, StudyError> {
        let files = Self { html, markdown };
        files.paths().try_for_each(check_writable)?;
        if let Some(path) = &files.markdown
            && !is_claims_markdown(&text_in(path)?)
        {
            let message = "holds something else than claims, which would be lost; choose another --markdown";
            return Err(StudyError::input(format!("{}: {message}", path.display())));
        }
        Ok(files)
    }

    /// Writes the tables.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn write(&self, input: &ClaimsInput<'_>) -> Result<(), StudyError> {
        if let Some(path) = &self.html {
            write(path, &render_claims_html(input))?;
        }
        if let Some(path) = &self.markdown {
            write(path, &render_claims_markdown(input, &text_in(path)?))?;
        }
        Ok(())
    }

    /// Returns the paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.html.iter().chain(&self.markdown).map(PathBuf::as_path)
    }
}

/// Returns the content of a file; empty if there is none, or if it is a device.
fn text_in(path: &Path) -> Result<String, StudyError> {
    if !path.is_file() {
        return Ok(String::new());
    }
    fs::read_to_string(path).map_err(|error| StudyError::io(path, "read it", &error))
}

/// Writes a file, creating its folder.
fn write(path: &Path, text: &str) -> Result<(), StudyError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| StudyError::io(path, "write it", &error))
}
