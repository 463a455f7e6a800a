//! How a study goes, on standard error; and Ctrl-C.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use selvedge_results::PointSummary;
use selvedge_scenario::{Plan, Point};
use selvedge_study::Watch;

use crate::output::{allows_control, columns_of, say};

/// A progress bar with the time left; hidden when standard error is not a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    /// Where no bar can be drawn though somebody is looking: the tenths of the whole that were told, each in a line of
    /// its own.
    tenths: Option<AtomicU64>,
    /// Whether something was reported.
    begun: Once,
}

impl Progress {
    /// A bar at its beginning.
    pub(crate) fn new(quiet: bool) -> Self {
        catch_interrupts();
        let is_plain = !allows_control();
        let target = if quiet || is_plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let tenths = (!quiet && is_plain && io::stderr().is_terminal()).then(AtomicU64::default);
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        // The time left and the latest run come beside it; of that, what there is room for.
        let bar_width = columns_of(&Term::stderr()).map_or(WIDEST, |columns| (columns / 3).clamp(1, WIDEST));
        let style =
            ProgressStyle::with_template(&format!("{{bar:{bar_width}}} {{percent:>3}} %  {{left}}{{wide_msg}}"));
        bar.set_style(style.expect("a valid template").progress_chars("=> ").with_key("left", time_left));
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, quiet, tenths, begun: Once::new() }
    }
    /// Does something to the terminal while the bar is out of the way.
    pub(crate) fn suspend(&self, what: impl FnOnce()) {
        self.bar.suspend(what);
    }
    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn on_progress(&self, part: f64) {
        let position = (part * STEPS as f64) as u64;
        // What was complete before took no time now.
        self.begun.call_once(|| {
            self.bar.set_position(position);
            self.bar.reset_eta();
        });
        // Threads report out of turn; the bar only moves forward.
        if position > self.bar.position() {
            self.bar.set_position(position);
        }
        let tenth = position * 10 / STEPS;
        if let Some(told) = &self.tenths
            && told.fetch_max(tenth, Ordering::Relaxed) < tenth
            && tenth < 10
        {
            say(&format!("{tenth}0 % done"));
        }
    }
    fn on_point(&self, plan: &Plan, point: Point, summary: &PointSummary) {
        let name = &plan.series[point.series].name;
        self.bar.set_message(format!("{name}, seed {} done in {:.1} s", point.seed, summary.run.wall_s));
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

/// "1 min 12 s left", and nothing until that can be told.
fn time_left(state: &ProgressState, out: &mut dyn Write) {
    if state.per_sec() > 0.0 && state.elapsed() > SOON && state.pos() < STEPS {
        let seconds = state.eta().as_secs();
        // Nowhere to report that a line could not be made up.
        let _ = match seconds / 60 {
            0 => write!(out, "{seconds} s left  "),
            minutes @ 1..60 => write!(out, "{minutes} min {} s left  ", seconds % 60),
            minutes => write!(out, "{} h {} min left  ", minutes / 60, minutes % 60),
        };
    }
}

/// From now on the first Ctrl-C (or SIGTERM) asks studies to stop; the second ends the process.
fn catch_interrupts() {
    static CAUGHT: OnceLock<()> = OnceLock::new();
    CAUGHT.get_or_init(|| {
        if let Err(error) = catch_signals() {
            say(&format!("note: Ctrl-C will not stop cleanly: {error}"));
        }
    });
}

/// One thread waits for them, so that it learns which came; those that the others start leave them to it.
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

/// Whether we were told to stay when the terminal goes, as by `nohup`. Only Linux tells.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // The lowest bit is the first signal's.
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

/// The exit status of who was interrupted: 128 and the signal's number, as shells have it.
pub(crate) fn interrupted_status() -> u8 {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The exit status for what has interrupted us; zero: nothing.
static INTERRUPTED: AtomicU8 = AtomicU8::new(0);
const STEPS: u64 = 10_000;
/// Columns of the bar.
const WIDEST: usize = 40;
/// Sooner there is nothing to extrapolate from.
const SOON: Duration = Duration::from_secs(1);
