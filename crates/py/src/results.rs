//! Results: tables as Arrow streams, ratios, explanations, claims.

use std::fs::File;
use std::path::PathBuf;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, Float64Array, RecordBatchReader, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use selvedge_explain::{Names, Recording, Report, explain as split};
use selvedge_results::Summary;
use selvedge_sim::port_infos;
use selvedge_sim::record::{Chosen, FlowKey, Recording as Recorded};
use selvedge_study::{Checked, FigureCheck, Figures, Finished, Worlds};
use selvedge_telemetry::FlowRow;

use crate::work::interruptible;
use crate::{StudyError, VERSION, json, of_study};
use selvedge_study::{Stopwatch, timed_run};

/// Table on disk that Arrow's readers take without copies, batch by batch.
#[pyclass(frozen, module = "selvedge._native")]
pub(crate) struct Table {
    path: PathBuf,
}

#[pymethods]
impl Table {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let table = Self { path };
        table.reader()?;
        Ok(table)
    }
    #[getter]
    fn columns(&self) -> PyResult<Vec<String>> {
        Ok(self.reader()?.schema().fields().iter().map(|field| field.name().clone()).collect())
    }
    #[getter]
    fn rows(&self) -> PyResult<i64> {
        Ok(self.builder()?.metadata().file_metadata().num_rows())
    }
    /// Values of a column: numbers (NaN where there is none), or texts.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let builder = self.builder()?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), [name]);
        let wrong = |error: &dyn std::fmt::Display| StudyError::new_err(format!("{}: {error}", self.path.display()));
        let reader = builder.with_projection(mask).build().map_err(|error| wrong(&error))?;
        if reader.schema().fields().len() != 1 {
            let known = self.columns()?.join(", ");
            return Err(wrong(&format!("no column \"{name}\"; there are {known}")));
        }
        let list = PyList::empty(py);
        for batch in reader {
            let batch = batch.map_err(|error| wrong(&error))?;
            let column = batch.column(0);
            if let Some(texts) = column.as_any().downcast_ref::<StringArray>() {
                texts.iter().try_for_each(|text| list.append(text.unwrap_or_default()))?;
            } else {
                let numbers = cast(column, &DataType::Float64).map_err(|error| wrong(&error))?;
                let numbers = numbers.as_any().downcast_ref::<Float64Array>().ok_or_else(|| wrong(&"no numbers"))?;
                numbers.iter().try_for_each(|number| list.append(number.unwrap_or(f64::NAN)))?;
            }
        }
        Ok(list)
    }
    /// Stream of Arrow's C data interface. The schema that a consumer wishes for is not in use.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(self.reader()?));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

impl Table {
    fn builder(&self) -> PyResult<ParquetRecordBatchReaderBuilder<File>> {
        let wrong = |error: &dyn std::fmt::Display| StudyError::new_err(format!("{}: {error}", self.path.display()));
        let file = File::open(&self.path).map_err(|error| wrong(&error))?;
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(&error))
    }
    fn reader(&self) -> PyResult<ParquetRecordBatchReader> {
        let reader = self.builder()?.with_batch_size(65_536).build();
        reader.map_err(|error| StudyError::new_err(format!("{}: {error}", self.path.display())))
    }
}

/// Returns the ratio of two series of a summary in a metric, paired by seed, as JSON; `None` for unknown names.
#[pyfunction]
pub(crate) fn ratio(summary: &str, of: &str, to: &str, metric: &str) -> PyResult<Option<String>> {
    let summary: Summary =
        serde_json::from_str(summary).map_err(|error| StudyError::new_err(format!("summary.json: {error}")))?;
    summary.ratio(of, to, metric).as_ref().map(json).transpose()
}

/// Runs a run of the results in `folder` again and returns, as JSON, where the time of a flow went, or that of the
/// `worst` ones.
#[pyfunction]
#[pyo3(signature = (folder, series, seed, flow, worst, threads, tell=None))]
#[expect(clippy::too_many_arguments, reason = "each is a keyword of Python's")]
pub(crate) fn explain(
    py: Python<'_>,
    folder: PathBuf,
    series: Option<&str>,
    seed: Option<u64>,
    flow: Option<(u16, u64)>,
    worst: usize,
    threads: usize,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    let explained = interruptible(py, tell.as_ref(), |watch| {
        let results = Finished::open(&folder)?;
        let point = results.point(series, seed)?;
        let series = &results.plan().series[point.series];
        let flows = match flow {
            Some((workload, id)) => vec![results.flow(point, FlowKey { workload, id })?],
            None => results.slowest(point, worst, &series.sharing_workloads(point.seed))?,
        };
        let keys = Chosen::These(flows.iter().map(FlowKey::from).collect());
        let mut recording = Recording::of(keys, std::iter::empty());
        let focus = recording.focus();
        let record = Recorded { focus: &focus, recorder: &mut recording };
        let Some(record) = results.simulate_again(point, threads.max(1), &flows, None, record, watch)? else {
            return Ok(Vec::new());
        };
        if flows.iter().any(|flow| flow.finish.is_none()) {
            recording.end(&record);
        }
        let names = Names::new(port_infos(series.network.graph()));
        let mut explanations = split(&recording, &names);
        let place = |row: &FlowRow| flows.iter().position(|flow| FlowKey::from(flow) == FlowKey::from(row));
        explanations.sort_by_key(|explanation| place(&explanation.flow));
        Ok(explanations.iter().map(|explanation| serde_json::json!(Report::new(explanation, &names))).collect())
    })?;
    json(&explained.map_err(|error| of_study(&error))?)
}

/// Runs figures and returns, as JSON, each with the verdicts on its claims.
#[pyfunction]
#[pyo3(signature = (paths, smoke, threads, tell=None))]
pub(crate) fn check(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    smoke: bool,
    threads: usize,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    let no_real = || Err("figures of real hosts are run by the command line, `selvedge check`".to_owned());
    let figures = Figures::read(&paths, smoke, no_real).map_err(|error| of_study(&error))?;
    let checked = interruptible(py, tell.as_ref(), |watch| {
        let (threads, began) = (threads.max(1), Stopwatch::start());
        let simulated = timed_run(threads);
        let check = FigureCheck {
            figures: &figures.all,
            threads,
            worlds: Worlds { simulated: &simulated, real: &simulated },
            watch,
            elapsed: &move || began.seconds(),
            version: VERSION,
        };
        check.run(&|_| {})
    })?;
    match checked.map_err(|error| of_study(&error))? {
        Checked::Complete(all) => json(&all),
        Checked::Interrupted { done, of } => Err(StudyError::new_err(format!("interrupted: {done} of {of} runs"))),
    }
}
