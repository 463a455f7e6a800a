//! Flows, to disk.

use std::path::Path;

use selvedge_telemetry::FlowRow;

use super::PAGE;
use super::names::Name;
use super::part::Part;
use super::schema::Table;
use crate::ResultsError;

/// Rows that wait, at most; pages are a multiple.
const WAITING: usize = PAGE / 8;

/// Writes the flows of one point.
pub(crate) struct FlowWriter {
    part: Part,
    series: Name,
    seed: u64,
    rows: Vec<FlowRow>,
}

impl FlowWriter {
    /// Creates or replaces the file.
    pub(crate) fn create(path: &Path, series: &str, seed: u64) -> Result<Self, ResultsError> {
        Ok(Self {
            part: Part::create(path, Table::Flows)?,
            series: Name::only(series),
            seed,
            rows: Vec::with_capacity(WAITING),
        })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &FlowRow) -> Result<(), ResultsError> {
        self.rows.push(*row);
        if self.rows.len() == WAITING { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered, and the footer; returns a digest of the file.
    pub(crate) fn close(mut self) -> Result<u64, ResultsError> {
        self.flush()?;
        self.part.close()
    }

    fn flush(&mut self) -> Result<(), ResultsError> {
        self.part.write(&self.rows, |columns| {
            columns.text(|_| &self.series)?;
            columns.long(|_| self.seed)?;
            columns.long(|row| row.id)?;
            columns.int(|row| u32::from(row.workload))?;
            columns.int(|row| row.group)?;
            columns.int(|row| row.src.0)?;
            columns.int(|row| row.dst.0)?;
            columns.long(|row| row.size.get())?;
            columns.long(|row| row.packets)?;
            columns.long(|row| row.start.as_ps())?;
            columns.optional_long(|row| row.finish.map(|finish| finish.as_ps()))?;
            columns.optional_long(|row| row.fct().map(|fct| fct.as_ps()))?;
            columns.long(|row| row.ideal.as_ps())?;
            columns.optional_double(FlowRow::slowdown)?;
            columns.int(|row| row.spurious)?;
            columns.flag(|row| row.measured)
        })?;
        self.rows.clear();
        Ok(())
    }
}
