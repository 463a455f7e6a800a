//! Work without the interpreter's lock, which Ctrl-C interrupts and whose progress a function of Python is told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use selvedge_study::Watch;

/// Progress of some work, and whether to stop it.
#[derive(Default)]
pub(crate) struct Progress {
    stop: AtomicBool,
    /// Part done, 0 to 1, as the bits of an `f64`.
    part: AtomicU64,
}

impl Watch for Progress {
    fn on_progress(&self, part: f64) {
        // Numbers from 0 to 1 are in the order of their bits.
        self.part.fetch_max(part.to_bits(), Ordering::Relaxed);
    }
    fn on_notice(&self, _: &str) {}
    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Interval at which signals are looked at and progress is told.
const TICK: Duration = Duration::from_millis(50);

/// Does `work` on another thread, without the interpreter's lock. Meanwhile signals are handled, and `tell` is called
/// with the part done; an exception of either stops the work and is returned.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    tell: Option<&Py<PyAny>>,
    work: impl FnOnce(&Progress) -> T + Send,
) -> PyResult<T> {
    let progress = Progress::default();
    let tell = tell.map(|tell| tell.clone_ref(py));
    let (done, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            let progress = &progress;
            scope.spawn(move || {
                // The receiver waits until the thread is done.
                let _ = send.send(work(progress));
            });
            let mut raised = None;
            loop {
                match receive.recv_timeout(TICK) {
                    Ok(done) => return (Some(done), raised),
                    // The thread has panicked.
                    Err(RecvTimeoutError::Disconnected) => return (None, raised),
                    Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let part = f64::from_bits(progress.part.load(Ordering::Relaxed));
                        let told = Python::attach(|py| {
                            py.check_signals()?;
                            tell.as_ref().map_or(Ok(()), |tell| tell.call1(py, (part,)).map(drop))
                        });
                        if let Err(error) = told {
                            progress.stop.store(true, Ordering::Relaxed);
                            raised = Some(error);
                        }
                    }
                }
            }
        })
    });
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (Some(done), None) => Ok(done),
        (None, None) => Err(crate::StudyError::new_err("the simulator failed; please report it with the scenario")),
    }
}
