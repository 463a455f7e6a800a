//! Lines that programs have printed, and the summary of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Programs;
use crate::summary::RunSummary;
use crate::verdict::Verdict;
use crate::{DropCounts, Estimate, SeriesSummary, SeriesTraits, Summary};

/// Numbers that the runs of a figure's programs have printed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Printed {
    /// Metrics of each run, by command and run.
    runs: BTreeMap<(usize, usize), BTreeMap<String, f64>>,
}

impl Printed {
    /// Adds the output of a run of the command at `command`; runs count from 0.
    ///
    /// # Errors
    /// Returns a message if a line is no object with a figure, a number was printed twice, or there is no line.
    pub fn add(&mut self, programs: &Programs, command: usize, run: usize, output: &str) -> Result<(), String> {
        let mut metrics = BTreeMap::new();
        for (number, line) in output.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = number + 1;
            let fields: Map<String, Value> = serde_json::from_str(line)
                .map_err(|error| format!("line {number} of its output is no object of JSON: {error}: {line}"))?;
            let Some(Value::String(figure)) = fields.get("figure") else {
                return Err(format!("line {number} of its output has no field \"figure\" with a name: {line}"));
            };
            let name = programs
                .apart
                .iter()
                .filter_map(|field| fields.get(field).map(text))
                .fold(figure.clone(), |name, part| format!("{name}.{part}"));
            let numbers = fields.iter().filter(|(field, _)| !programs.apart.contains(field));
            for (field, value) in numbers.filter_map(|(field, value)| Some((field, value.as_f64()?))) {
                let metric = format!("{name}.{field}");
                if metrics.insert(metric.clone(), value).is_some() {
                    return Err(format!(
                        "line {number} of its output has {metric} again: `apart` in program.toml names the fields that \
                         tell lines apart"
                    ));
                }
            }
        }
        if metrics.is_empty() {
            return Err("it printed no numbers".to_owned());
        }
        self.runs.insert((command, run), metrics);
        Ok(())
    }

    /// Returns the summary of all runs, each of which is a seed. A metric that a run of a series has not printed is
    /// unknown for the series. `cpu_s` and `wall_s` are the processor time and the
    /// time that they took, in seconds.
    pub fn summary(&self, programs: &Programs, cpu_s: f64, wall_s: f64, version: &str) -> Summary {
        let runs = self.runs.keys().map(|(_, run)| run + 1).max().unwrap_or(0);
        let series = programs.commands.iter().enumerate().map(|(at, command)| {
            let of: Vec<_> = (0..runs).map(|run| self.runs.get(&(at, run))).collect();
            let names: BTreeSet<&String> = of.iter().flatten().flat_map(|metrics| metrics.keys()).collect();
            let estimate = |name: &String| {
                let estimate =
                    Estimate::of_mean(of.iter().map(|run| run.and_then(|run| run.get(name)).copied()).collect());
                // A run without it is no run that may be left out: it may have measured that nothing arrived.
                match estimate.per_seed.contains(&None) {
                    true => Estimate { mean: None, ci95: None, ..estimate },
                    false => estimate,
                }
            };
            SeriesSummary {
                name: command.case.iter().fold(command.series.clone(), |name, case| format!("{name}, {case}")),
                series: command.series.clone(),
                case: command.case.clone(),
                traits: SeriesTraits::default(),
                metrics: names.into_iter().map(|name| (name.clone(), estimate(name))).collect(),
                drops: DropCounts::default(),
                deadlocks: Vec::new(),
            }
        });
        Summary {
            title: programs.title.clone(),
            scenario: "real programs".to_owned(),
            seeds: (0..runs as u64).collect(),
            series: series.collect(),
            ratios: Vec::new(),
            run: RunSummary {
                fingerprint: "0".repeat(16),
                packet_hops: 0,
                events: 0,
                cpu_s,
                wall_s,
                threads: 1,
                version: version.to_owned(),
                deterministic: false,
                points: Vec::new(),
            },
            verdict: Verdict::default(),
            warnings: Vec::new(),
            sweep: None,
        }
    }

    /// Returns the number of runs of all commands.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }
}

/// Returns a value as part of a name.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
