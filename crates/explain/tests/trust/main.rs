//! Reasons to trust explanations: causes that are known beforehand, and sums over whole runs.

mod causes;
mod profile;
mod support;
mod unfinished;
mod whole_runs;
