//! Flows of a run, without simulating the run.

use selvedge_sim::record::FlowKey;
use selvedge_sim::workload::{BuildEnv, Generator, Workload};
use selvedge_units::Instant;

use crate::plan::PlannedSeries;

impl PlannedSeries {
    /// Returns the numbers of the workloads whose messages share queue pairs: traces and explanations cannot attribute
    /// packets of such a queue pair to one of its messages.
    pub fn sharing_workloads(&self, seed: u64) -> Vec<u16> {
        let mut workload = self.workload(seed);
        let numbers = 0..workload.summaries.len() as u16;
        numbers.filter(|&number| workload.posting_of(number).is_some()).collect()
    }
    /// Returns the workload of a run with this seed.
    pub(crate) fn workload(&self, seed: u64) -> Workload {
        let scenario = &self.scenario;
        let env = BuildEnv {
            graph: self.network.graph(),
            routes: self.network.routes(),
            seed,
            library: self.library(),
            framing: scenario.nic.framing(&scenario.transport),
            measure: scenario.measure,
            stop_flows: scenario.stop.flows,
        };
        scenario.workload.build(&env).expect("the plan was checked with this workload")
    }

    /// Checks that a run with this seed may have the flow `key`.
    ///
    /// # Errors
    /// Returns an error if there is no such flow; the message lists the flows that there are.
    pub fn find_flow(&self, seed: u64, key: FlowKey) -> Result<(), String> {
        let FlowKey { workload: number, id } = key;
        let mut workload = self.workload(seed);
        let kinds: Vec<&str> = workload.summaries.iter().map(|summary| summary.kind).collect();
        let Some(kind) = kinds.get(usize::from(number)) else {
            let listed: Vec<String> = kinds.iter().enumerate().map(|(n, kind)| format!("{n} ({kind})")).collect();
            return Err(format!("there is no workload {number}: series \"{}\" has {}", self.name, listed.join(", ")));
        };
        if workload.posting_of(number).is_some() {
            return Err(format!(
                "flow {id} of workload {number} ({kind}) is a message that shares its queue pair with others: traces and explanations are of flows with one of their own; trace a port instead, as in --trace port=NODE:PEER"
            ));
        }
        let end = self.scenario.stop.time.map_or(Instant::NEVER, |time| Instant::ZERO + time);
        let scheduled = workload.executor_of(number).map(|executor| executor.numbers());
        let known = match workload.loop_of(number) {
            // Scheduled flows begin when their ranks reach them.
            _ if scheduled.is_some() => scheduled,
            // Closed loops start flows as long as the run lasts.
            Some(closed) => closed.extent().limited(self.scenario.stop.flows).known(),
            None => {
                let stream = std::iter::from_fn(|| workload.stream.next_flow()).take_while(|flow| flow.start < end);
                let timed = stream.filter(|flow| flow.workload == number).map(|flow| flow.id);
                let mut count = 0;
                let mut seen = timed.chain(workload.triggers.waiting(number)).inspect(|&id| count = count.max(id + 1));
                if seen.any(|seen| seen == id) {
                    return Ok(());
                }
                drop(seen);
                Some(count)
            }
        };
        match known {
            Some(count) if id >= count => Err(format!(
                "there is no flow {id}: with seed {seed}, series \"{}\" has flows 0 to {} of workload {number} ({kind})",
                self.name,
                count.saturating_sub(1),
            )),
            _ => Ok(()),
        }
    }
}
