//! Tests of explanations against known causes, and of their sums over whole runs.

mod causes;
mod profile;
mod support;
mod unfinished;
mod whole_runs;
