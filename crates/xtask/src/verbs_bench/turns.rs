//! Trials that take turns, so that other load of the machine affects all of them alike.

use anyhow::Result;

use super::trial::Measured;

/// Trials, each of which runs once in every turn.
#[derive(Default)]
pub(super) struct Turns<'a>(Vec<Trial<'a>>);

struct Trial<'a> {
    name: String,
    run: Box<dyn Fn() -> Result<Measured> + 'a>,
    /// Values of the trial, one per turn; none once a turn failed.
    values: Option<Vec<f64>>,
}

/// Number of a trial.
#[derive(Clone, Copy)]
pub(super) struct Id(usize);

impl<'a> Turns<'a> {
    /// Adds a trial to every turn.
    pub(super) fn add(&mut self, name: String, run: impl Fn() -> Result<Measured> + 'a) -> Id {
        self.0.push(Trial { name, run: Box::new(run), values: Some(Vec::new()) });
        Id(self.0.len() - 1)
    }

    /// Runs `repeat` turns and prints the result of each trial. A trial that fails is left out of later turns.
    pub(super) fn run(&mut self, repeat: usize) {
        for turn in 1..=repeat {
            eprintln!("turn {turn} of {repeat}");
            for trial in &mut self.0 {
                let Some(values) = &mut trial.values else { continue };
                match (trial.run)() {
                    Ok(measured) => values.push(measured.value),
                    Err(problem) => {
                        eprintln!("{}: left out: {problem:#}", trial.name);
                        trial.values = None;
                    }
                }
            }
        }
        for Trial { name, values, .. } in &self.0 {
            if let Some(values) = values {
                let rounded: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
                eprintln!("{name}: {}", rounded.join(" "));
            }
        }
    }

    /// Returns the median of a trial; `None` if it failed.
    pub(super) fn median(&self, id: Id) -> Option<f64> {
        median(self.0[id.0].values.clone()?)
    }

    /// Returns the median, over turns, of the ratio of one trial to another in the same turn; `None` if either failed.
    pub(super) fn ratio(&self, id: Id, other: Id) -> Option<f64> {
        let (ours, theirs) = (self.0[id.0].values.as_ref()?, self.0[other.0].values.as_ref()?);
        median(ours.iter().zip(theirs).map(|(one, other)| one / other).collect())
    }
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::bail;

    use super::*;

    #[test]
    fn each_trial_runs_once_in_a_turn_and_ratios_are_of_one_turn() {
        let time = Cell::new(0.0);
        let tick = |value: f64| {
            time.set(time.get() + 1.0);
            Ok(Measured { value })
        };
        let mut turns = Turns::default();
        // The machine becomes slower from turn to turn, for both alike.
        let ours = turns.add("ours".to_owned(), || tick(50.0 - time.get()));
        let twice = turns.add("twice".to_owned(), || tick(2.0 * (51.0 - time.get())));
        let broken = turns.add("broken".to_owned(), || bail!("not installed"));
        turns.run(3);
        assert_eq!(time.get(), 6.0);
        assert_eq!((turns.median(ours), turns.median(twice)), (Some(48.0), Some(96.0)));
        assert_eq!(turns.ratio(twice, ours), Some(2.0));
        assert!(turns.median(broken).is_none() && turns.ratio(ours, broken).is_none());
    }
}
