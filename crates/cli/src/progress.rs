//! Progress of a study, on standard error; and Ctrl-C.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use selvedge_results::PointSummary;
use selvedge_scenario::{Plan, Point};
use selvedge_study::{Stopwatch, Watch, span};

use crate::output::{allows_control, columns_of, say};

/// Display of the part done and the time left: a bar on a terminal, elsewhere a line every few seconds.
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    state: Arc<State>,
    /// Thread that redraws the bar or prints lines.
    ticker: Mutex<Option<JoinHandle<()>>>,
}

/// Progress so far, shared with the thread that shows it.
struct State {
    began: Stopwatch,
    /// Expected duration in seconds, if there is an estimate.
    expected: Option<f64>,
    /// Part done, 0 to 1, as the bits of an `f64`.
    part: AtomicU64,
    /// Part done before this process began, 0 to 1; unset until a first report.
    before: OnceLock<f64>,
    /// Description of the latest run.
    latest: Mutex<String>,
    is_over: Mutex<bool>,
    over: Condvar,
}

impl Progress {
    /// Starts the display; `expected` is the expected duration in seconds.
    pub(crate) fn new(quiet: bool, expected: Option<f64>) -> Self {
        catch_interrupts();
        let state = Arc::new(State {
            began: Stopwatch::start(),
            expected,
            part: AtomicU64::new(0),
            before: OnceLock::new(),
            latest: Mutex::default(),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        });
        let on_terminal = io::stderr().is_terminal() && allows_control();
        let is_hidden = quiet || !on_terminal;
        let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        // The time left and the latest run follow the bar, cut to the width.
        let bar_width = columns_of(&Term::stderr()).map_or(WIDEST, |columns| (columns / 3).clamp(1, WIDEST));
        let style = ProgressStyle::with_template(&format!("{{bar:{bar_width}}} {{done:>6}}  {{left}}{{wide_msg}}"));
        let style = style.expect("a valid template").progress_chars("=> ");
        let (done, left) = (Arc::clone(&state), Arc::clone(&state));
        // A failure to make the line cannot be reported here.
        let style = style.with_key("done", move |_: &ProgressState, out: &mut dyn Write| {
            let _ = out.write_str(&percent(done.part()));
        });
        bar.set_style(style.with_key("left", move |_: &ProgressState, out: &mut dyn Write| {
            let _ = left.left().map(|seconds| write!(out, "{} left  ", span(seconds)));
        }));
        let ticker = (!quiet).then(|| {
            let (bar, state) = (bar.clone(), Arc::clone(&state));
            let show = move || state.show(&bar, on_terminal);
            // Without a thread, no progress is shown.
            std::thread::Builder::new().name("progress".into()).spawn(show).ok()
        });
        Self { bar, quiet, state, ticker: Mutex::new(ticker.flatten()) }
    }
    /// Calls `what`, which writes to the terminal, while the bar is hidden.
    pub(crate) fn suspend(&self, what: impl FnOnce()) {
        self.bar.suspend(what);
    }
    /// Removes the bar.
    pub(crate) fn clear(&self) {
        *lock(&self.state.is_over) = true;
        self.state.over.notify_all();
        if let Some(ticker) = lock(&self.ticker).take() {
            // The thread returns nothing.
            let _ = ticker.join();
        }
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

impl State {
    fn part(&self) -> f64 {
        f64::from_bits(self.part.load(Ordering::Relaxed))
    }

    /// Returns the seconds left, extrapolated from the progress so far, and at the beginning from the expected
    /// duration.
    fn left(&self) -> Option<f64> {
        let elapsed = self.began.seconds();
        let before = self.before.get().copied().unwrap_or(0.0);
        let done = (self.part() - before) / (1.0 - before).max(f64::MIN_POSITIVE);
        let by_expectation = self.expected.map(|seconds| (seconds - elapsed).max(0.0));
        // Before, there is nothing to extrapolate from.
        let by_pace = (done > 0.0 && elapsed > SOON).then(|| elapsed * (1.0 - done) / done);
        match (by_pace, by_expectation) {
            (Some(pace), Some(expected)) => {
                let trust = (done / CERTAIN).min(1.0);
                Some(pace * trust + expected * (1.0 - trust))
            }
            (pace, expected) => pace.or(expected),
        }
    }

    /// Shows the progress until the study is complete.
    fn show(&self, bar: &ProgressBar, on_terminal: bool) {
        let mut wait = if on_terminal { TICK } else { FIRST_LINE };
        loop {
            let is_over = lock(&self.is_over);
            let (is_over, waited) = self
                .over
                .wait_timeout_while(is_over, wait, |is_over| !*is_over)
                .unwrap_or_else(PoisonError::into_inner);
            if *is_over || !waited.timed_out() {
                return;
            }
            drop(is_over);
            if on_terminal {
                bar.tick();
            } else {
                wait = LINES;
                say(&self.line());
            }
        }
    }

    /// Returns a line of progress, for output without a terminal.
    fn line(&self) -> String {
        let left = self.left().map_or(String::new(), |seconds| format!(", about {} left", span(seconds)));
        let latest = lock(&self.latest);
        let latest = if latest.is_empty() { String::new() } else { format!("; {latest}") };
        format!("progress: {} done after {}{left}{latest}", percent(self.part()), span(self.began.seconds()))
    }
}

/// Formats a percentage with as many decimals as show its progress. 100 % means complete: smaller parts are rounded
/// down.
fn percent(part: f64) -> String {
    match part * 100.0 {
        percent if percent < 0.995 => format!("{percent:.2} %"),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{:.0} %", percent.floor()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch for Progress {
    fn on_progress(&self, part: f64) {
        // The part that was complete before took no time in this process.
        self.state.before.get_or_init(|| part);
        // Threads report out of order; the display only moves forward. Numbers from 0 to 1 are in the order of their
        // bits.
        self.state.part.fetch_max(part.to_bits(), Ordering::Relaxed);
        let position = (part * STEPS as f64) as u64;
        if position > self.bar.position() {
            self.bar.set_position(position);
        }
    }
    fn on_point(&self, plan: &Plan, point: Point, summary: &PointSummary) {
        let name = &plan.series[point.series].name;
        let latest = format!("{name}, seed {} done in {:.1} s", point.seed, summary.run.wall_s);
        self.bar.set_message(latest.clone());
        *lock(&self.state.latest) = latest;
    }
    fn on_notice(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| say(&format!("note: {text}")));
        }
    }
    fn interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed) != 0
    }
}

/// Installs handlers: the first Ctrl-C (or SIGTERM) asks studies to stop; the second ends the process.
fn catch_interrupts() {
    static CAUGHT: OnceLock<()> = OnceLock::new();
    CAUGHT.get_or_init(|| {
        if let Err(error) = catch_signals() {
            say(&format!("note: Ctrl-C will not stop cleanly: {error}"));
        }
    });
}

/// Starts a thread that waits for signals, so that it learns which one came. Threads started later inherit the blocked
/// signals and leave them to it.
#[cfg(unix)]
fn catch_signals() -> std::io::Result<()> {
    use nix::sys::signal::{SigSet, Signal};

    let hangup = (!ignores_hangups()).then_some(Signal::SIGHUP);
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().chain(hangup).collect();
    signals.thread_block()?;
    let wait = move || {
        while let Ok(signal) = signals.wait() {
            on_interrupt(128 + signal as u8);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait)?;
    Ok(())
}

/// Returns whether this process ignores hang-ups, as under `nohup`. Only Linux has this information.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // The lowest bit is that of signal 1.
    ignored & 1 << (nix::sys::signal::Signal::SIGHUP as u32 - 1) != 0
}

#[cfg(not(unix))]
fn catch_signals() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| on_interrupt(130))
}

fn on_interrupt(status: u8) {
    if INTERRUPTED.swap(status, Ordering::Relaxed) != 0 {
        std::process::exit(status.into());
    }
}

/// Returns the exit status after an interruption: 128 and the signal's number, as in shells.
pub(crate) fn interrupted_status() -> u8 {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Exit status for the signal that has interrupted the process; zero if none has.
static INTERRUPTED: AtomicU8 = AtomicU8::new(0);
const STEPS: u64 = 10_000;
/// Columns of the bar.
const WIDEST: usize = 40;
/// Seconds before which the time left is not extrapolated.
const SOON: f64 = 1.0;
/// Part done from which the time left is extrapolated from the rate of progress alone.
const CERTAIN: f64 = 0.1;
/// Interval at which the bar is drawn.
const TICK: Duration = Duration::from_millis(500);
/// Delay of the first line, where there is no terminal.
const FIRST_LINE: Duration = Duration::from_millis(1_500);
/// Interval of lines after the first, where there is no terminal.
const LINES: Duration = Duration::from_secs(10);
