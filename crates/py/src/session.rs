//! Sessions: flows are injected, time advances on demand.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use selvedge_sim::{ConfigError, Injection, Session as Simulated};
use selvedge_study::Open;
use selvedge_telemetry::FlowRow;
use selvedge_units::{Bytes, HostId, Instant};

use crate::plan::Plan;
use crate::{StudyError, of_study};

/// Flow of a session that is complete: number, source, destination, bytes, start, finish and ideal time in picoseconds.
type Completed = (u64, u32, u32, u64, u64, u64, u64);

#[pyclass(frozen, module = "selvedge._native")]
pub(crate) struct Session {
    session: Mutex<Simulated>,
    #[pyo3(get)]
    hosts: Vec<String>,
    #[pyo3(get)]
    series: String,
}

#[pymethods]
impl Session {
    /// Opens a session of the first series and seed of `plan`.
    #[new]
    fn new(plan: &Plan, background: bool) -> PyResult<Self> {
        let opened = Open::of_plan(&plan.0, background).map_err(|error| of_study(&error))?;
        Ok(Self { session: Mutex::new(opened.session), hosts: opened.hosts, series: opened.series })
    }
    #[getter]
    fn now_ps(&self) -> u64 {
        self.lock().now().as_ps()
    }
    /// Injects flows, each source, destination, bytes and start in picoseconds: all of them, or none. Returns the first
    /// number.
    fn inject(&self, py: Python<'_>, flows: Vec<(u32, u32, u64, u64)>) -> PyResult<Option<u64>> {
        let of = |(src, dst, size, start): (u32, u32, u64, u64)| Injection {
            src: HostId(src),
            dst: HostId(dst),
            size: Bytes::new(size),
            start: Instant::from_ps(start),
        };
        let flows: Vec<Injection> = flows.into_iter().map(of).collect();
        let all = py.detach(|| {
            let mut session = self.lock();
            let check = |(at, flow): (usize, &Injection)| session.check(flow).map_err(|error| (at, error));
            flows.iter().enumerate().try_for_each(check)?;
            let inject = |(at, flow): (usize, &Injection)| session.inject(*flow).map_err(|error| (at, error));
            flows.iter().enumerate().map(inject).collect::<Result<Vec<u64>, (usize, ConfigError)>>()
        });
        let all = all.map_err(|(at, error)| StudyError::new_err(format!("flow {at}: {error}")))?;
        Ok(all.first().copied())
    }
    fn advance(&self, py: Python<'_>, to_ps: u64, until_completion: bool) -> PyResult<u64> {
        let to = Instant::from_ps(to_ps);
        let now = py.detach(|| {
            let mut session = self.lock();
            if until_completion { session.advance_to_completion(to) } else { session.advance(to).map(|()| to) }
        });
        now.map(Instant::as_ps).map_err(|error| StudyError::new_err(error.message))
    }
    fn drain(&self) -> Vec<Completed> {
        let of = |row: &FlowRow| {
            let finish = row.finish.unwrap_or(row.start).as_ps();
            (row.id, row.src.0, row.dst.0, row.size.get(), row.start.as_ps(), finish, row.ideal.as_ps())
        };
        self.lock().drain().iter().map(of).collect()
    }
    /// Numbers of flows that have begun, and that are complete.
    fn flows(&self) -> (u64, u64) {
        self.lock().flows()
    }
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, Simulated> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
