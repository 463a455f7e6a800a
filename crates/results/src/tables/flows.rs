//! Flows, to disk.

use std::path::Path;

use parquet::data_type::ByteArray;
use selvedge_telemetry::FlowRow;

use super::ROW_GROUP;
use super::part::Part;
use super::schema::Table;
use crate::ResultsError;

/// Writes the flows of one point.
pub(crate) struct FlowWriter {
    part: Part,
    series: ByteArray,
    seed: u64,
    rows: Vec<FlowRow>,
}

impl FlowWriter {
    /// Creates or replaces the file.
    pub(crate) fn create(path: &Path, series: &str, seed: u64) -> Result<Self, ResultsError> {
        Ok(Self { part: Part::create(path, Table::Flows)?, series: series.into(), seed, rows: Vec::new() })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &FlowRow) -> Result<(), ResultsError> {
        self.rows.push(*row);
        if self.rows.len() == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered, and the footer.
    pub(crate) fn close(mut self) -> Result<(), ResultsError> {
        self.flush()?;
        self.part.close()
    }

    fn flush(&mut self) -> Result<(), ResultsError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.part.write_group(&self.rows, |group| {
            group.text(|_| self.series.clone())?;
            group.long(|_| self.seed)?;
            group.long(|row| row.id)?;
            group.int(|row| u32::from(row.workload))?;
            group.int(|row| row.group)?;
            group.int(|row| row.src.0)?;
            group.int(|row| row.dst.0)?;
            group.long(|row| row.size.get())?;
            group.long(|row| row.packets)?;
            group.long(|row| row.start.as_ps())?;
            group.optional_long(|row| row.finish.map(|finish| finish.as_ps()))?;
            group.optional_long(|row| row.fct().map(|fct| fct.as_ps()))?;
            group.long(|row| row.ideal.as_ps())?;
            group.optional_double(FlowRow::slowdown)?;
            group.int(|row| row.spurious)?;
            group.flag(|row| row.measured)
        })?;
        self.rows.clear();
        Ok(())
    }
}
