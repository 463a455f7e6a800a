//! Merge of several streams of flows into one.

use std::ops::Range;

use super::{Extent, FlowSpec, Generator, Measure};
use crate::ConfigError;

/// All flows that start at a time of their own, in ascending order of start (at the same time: by workload, then in the
/// order of that workload), with the limit on their number and the choice of the measured ones.
#[derive(Clone)]
pub struct Merged {
    generators: Vec<Box<dyn Generator>>,
    /// Next flow of each generator.
    heads: Vec<Option<FlowSpec>>,
    measure: Measure,
    counted: Range<u64>,
    given: u64,
    limit: Option<u64>,
}

impl Merged {
    /// Creates the stream of the flows of all `generators`, at most `limit` of them.
    ///
    /// # Errors
    /// `measure` does not fit the number of flows.
    pub fn new(
        mut generators: Vec<Box<dyn Generator>>,
        measure: Measure,
        limit: Option<u64>,
    ) -> Result<Self, ConfigError> {
        let extents = generators.iter().map(|generator| generator.extent());
        let extent = extents.fold(Extent::Known(0), Extent::plus).limited(limit);
        let counted = measure.numbers(extent)?;
        let heads = generators.iter_mut().map(|generator| generator.next_flow()).collect();
        Ok(Self { generators, heads, measure, counted, given: 0, limit })
    }
    /// Returns the next flow without taking it.
    pub fn peek(&self) -> Option<&FlowSpec> {
        if self.limit.is_some_and(|limit| self.given >= limit) {
            return None;
        }
        self.first().map(|(_, flow)| flow)
    }
    /// Returns the earliest head and the index of its generator.
    fn first(&self) -> Option<(usize, &FlowSpec)> {
        let heads = self.heads.iter().enumerate().filter_map(|(n, head)| Some((n, head.as_ref()?)));
        heads.min_by_key(|(_, flow)| (flow.start, flow.workload))
    }
}

impl Generator for Merged {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        if self.limit.is_some_and(|limit| self.given >= limit) {
            return None;
        }
        let (first, _) = self.first()?;
        let mut flow = std::mem::replace(&mut self.heads[first], self.generators[first].next_flow())?;
        flow.measured = self.counted.contains(&self.given) && self.measure.counts(flow.start);
        self.given += 1;
        Some(flow)
    }
    fn extent(&self) -> Extent {
        let held = Extent::Known(self.heads.iter().flatten().count() as u64);
        let extents = self.generators.iter().map(|generator| generator.extent());
        extents.fold(held, Extent::plus).limited(self.limit.map(|limit| limit - self.given))
    }
    fn boxed_clone(&self) -> Box<dyn Generator> {
        Box::new(self.clone())
    }
}
