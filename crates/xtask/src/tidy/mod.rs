//! Command `cargo xtask tidy`: rules that the compiler does not check.

mod algorithms;
mod contributing;
mod documents;
mod layers;
mod sources;
mod words;

use std::fmt;

use anyhow::{Result, bail};

use crate::workspace::packages;

/// Violation of a rule of ARCHITECTURE.md or CONTRIBUTING.md.
pub(crate) struct Complaint {
    /// Place of the violation: a crate, or a file and perhaps a line.
    place: String,
    message: String,
}

impl Complaint {
    fn new(place: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { place: place.to_string(), message: message.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

pub(crate) fn tidy() -> Result<()> {
    let packages = packages()?;
    let mut complaints = layers::check(&packages);
    complaints.extend(sources::check(&packages)?);
    complaints.extend(algorithms::check()?);
    complaints.extend(contributing::check()?);
    complaints.extend(documents::check()?);
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => println!("tidy"),
        1 => bail!("1 complaint"),
        n => bail!("{n} complaints"),
    }
    Ok(())
}
