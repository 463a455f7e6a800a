//! Checks that cause warnings: counts, ids and triggers that do not match.

use std::collections::BTreeMap;

use selvedge_units::words::plural;

use super::read::{COUNTS, Reader};
use super::{Flow, Start, Trigger, TriggerKind};
use crate::Warning;

impl<R> Reader<R> {
    pub(super) fn check_counts(&mut self) {
        let found = [self.flows.len(), self.triggers.len(), self.failures.len()];
        for ((key, thing), (declared, found)) in COUNTS.into_iter().zip(self.declared.into_iter().zip(found)) {
            let found = found as u64;
            match declared {
                Some((line, count)) if count != found => {
                    let message =
                        format!("\"{key} {count}\", but the file has {}: all are taken", plural(found, thing));
                    self.warnings.push(Warning::new(line, message));
                }
                None if found > 0 => {
                    let message = format!("the header has no \"{key} {found}\", which htsim needs");
                    self.warnings.push(Warning::new(1, message));
                }
                _ => {}
            }
        }
    }

    /// Warns about flows that have no id where htsim wants one.
    pub(super) fn check_ids(&mut self) {
        let is_nameless = |flow: &&Flow| flow.id.is_none() && matches!(flow.start, Start::Trigger(_));
        if let Some(flow) = self.flows.iter().find(is_nameless) {
            let message = "a flow that waits for a trigger has no id, without which htsim would not run it";
            self.warnings.push(Warning::new(flow.line, message));
        }
    }

    /// Warns about triggers that will never release the flows that wait for them.
    pub(super) fn check_triggers(&mut self) {
        let mut activations: BTreeMap<u32, u64> = BTreeMap::new();
        let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
        for flow in &self.flows {
            for id in [flow.on_sent, flow.on_received].into_iter().flatten() {
                *activations.entry(id).or_default() += 1;
            }
            if let Start::Trigger(id) = flow.start {
                *waiting.entry(id).or_default() += 1;
            }
        }
        for (id, waiting) in waiting {
            let Trigger { line, kind } = self.triggers[&id];
            let (activations, flows) = (activations.get(&id).copied().unwrap_or(0), plural(waiting, "flow"));
            let (needed, released) = match kind {
                TriggerKind::OneShot => (1, "none"),
                TriggerKind::MultiShot => (waiting, "not all"),
                TriggerKind::Barrier(count) => (u64::from(count), "none"),
            };
            let message = match activations {
                0 => format!("trigger {id} is activated by nobody: none of its {flows} will start"),
                _ if activations < needed => {
                    let times = plural(activations, "time");
                    format!(
                        "trigger {id} is activated {times} and needs {needed}: {released} of its {flows} will start"
                    )
                }
                _ => continue,
            };
            self.warnings.push(Warning::new(line, message));
        }
    }
}
