//! Figures of real programs: each series is a command that runs several times, in turn with the others, and prints what
//! it has measured.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use std::{env, fs, io};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use selvedge_dataplane::{lab, rnic};
use selvedge_results::{CheckedFigure, Expectations, Footprints, Printed, Programs, check, check_smoke, measure};

use crate::{StudyError, Watch, check_writable};

/// File with the programs of a figure.
pub(crate) const PROGRAMS: &str = "program.toml";
/// Name of this program in commands.
const SELVEDGE: &str = "selvedge";
/// Variable with the number of the run: what is random in a program follows from it.
const RUN: &str = "SELVEDGE_RUN";
/// Variable that tells programs to be short.
const SMOKE: &str = "SELVEDGE_SMOKE";
/// Most times its expected time that a run takes, and seconds beside.
const PATIENCE: f64 = 10.0;
const LEAST_PATIENCE: f64 = 60.0;
/// Time between two looks at a program.
const GLANCE: Duration = Duration::from_millis(20);
/// Looks at a program that should end, before it is killed: ten seconds.
const GLANCES_TO_END: usize = 500;
/// Bytes of a program's complaint that are shown.
const COMPLAINT: usize = 2_000;

/// A figure whose series are programs that run on real hosts, or in namespaces.
#[derive(Debug)]
pub struct ProgramFigure {
    /// Folder of the figure, in which the programs run.
    pub folder: PathBuf,
    /// Programs of the figure.
    pub programs: Programs,
    expectations: Expectations,
    /// Whether the runs are too short to judge.
    smoke: bool,
}

/// The end of a figure's runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Measured {
    /// All programs have run, and the claims are checked.
    Complete(Box<CheckedFigure>),
    /// The runs were interrupted.
    Interrupted {
        /// Number of complete runs.
        done: usize,
        /// Number of all runs.
        of: usize,
    },
}

impl ProgramFigure {
    /// Reads the figure in `folder`.
    ///
    /// # Errors
    /// Returns an error if a file is missing or wrong.
    pub(crate) fn read(folder: &Path, expect: &str, smoke: bool) -> Result<Self, StudyError> {
        let text = |name: &str| {
            let path = folder.join(name);
            let text = fs::read_to_string(&path).map_err(|error| StudyError::io(&path, "read it", &error))?;
            Ok::<_, StudyError>((text, path.display().to_string()))
        };
        let (written, name) = text(PROGRAMS)?;
        let mut programs = Programs::parse(&written, &name).map_err(StudyError::wrong)?;
        let (written, name) = text(expect)?;
        let expectations = Expectations::parse_of_programs(&written, &name).map_err(StudyError::wrong)?;
        let series: Vec<_> =
            programs.commands.iter().map(|command| (command.case.as_deref(), &*command.series)).collect();
        expectations.check_names(&series, &Footprints::default()).map_err(StudyError::wrong)?;
        if smoke {
            programs.runs = 1;
        }
        Ok(Self { folder: folder.to_owned(), programs, expectations, smoke })
    }

    /// Returns why the figure cannot run, if something is not installed.
    pub(crate) fn lacks(&self) -> Option<String> {
        let path = env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &str| env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let missing = self.programs.needs.iter().find(|name| !is_there(name));
        let missing = missing.map(|name| format!("{name} is not installed"));
        missing.or_else(|| if self.programs.verbs { rnic::libraries(None).err() } else { None })
    }

    /// Returns what the figure claims.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &str> {
        self.expectations.claims.iter().map(|claim| &*claim.say)
    }

    /// Returns the name for the figure's results: "eqds-real-incast" for "figures/eqds-real/incast".
    pub fn name(&self) -> String {
        crate::figure::name_of(&self.folder)
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.programs.runs * self.programs.commands.len()
    }

    /// Returns the expected time of all runs in seconds; short runs are a fifth as long.
    pub fn seconds(&self) -> f64 {
        self.programs.seconds * self.runs() as f64 * if self.smoke { 0.2 } else { 1.0 }
    }

    /// Runs all programs, one at a time, and checks the claims. `selvedge` is the path of this program, `elapsed` the
    /// time since some moment in seconds. With `keep`, a file, the lines that the programs print are kept there, each
    /// with its series, case and run before it.
    ///
    /// # Errors
    /// Returns an error if a program cannot be started, fails, takes too long, or prints something else than numbers;
    /// or if the file cannot be written.
    pub fn run(
        &self,
        selvedge: &Path,
        watch: &dyn Watch,
        elapsed: &dyn Fn() -> f64,
        version: &str,
        keep: Option<&Path>,
    ) -> Result<Measured, StudyError> {
        keep.map_or(Ok(()), check_writable)?;
        let mut printed = Printed::default();
        let mut lines = String::new();
        let (began, cpu) = (elapsed(), cpu_of_children());
        // In turn: a machine that becomes slower then makes all series slower.
        for run in 0..self.programs.runs {
            for (at, command) in self.programs.commands.iter().enumerate() {
                let case = command.case.as_deref().map_or_else(String::new, |case| format!(", {case}"));
                let what = format!("{}: {}{case}, run {} of {}", self.folder.display(), command.series, run + 1, {
                    self.programs.runs
                });
                watch.on_notice(&what);
                let wrong = |why: String| StudyError::failure(format!("{what}: {why}"));
                let Some(output) = self.output(&command.words, run, selvedge, watch, elapsed).map_err(wrong)? else {
                    return Ok(Measured::Interrupted { done: printed.runs(), of: self.runs() });
                };
                printed.add(&self.programs, at, run, &output).map_err(wrong)?;
                for line in output.lines().filter(|line| line.starts_with('{')) {
                    let before = serde_json::json!({ "series": command.series, "case": command.case, "run": run });
                    let before = before.to_string();
                    lines += &format!("{},{}\n", before.trim_end_matches('}'), &line[1..]);
                }
            }
        }
        let summary = printed.summary(&self.programs, cpu_of_children() - cpu, elapsed() - began, version);
        let check = if self.smoke { check_smoke } else { check };
        let checked = CheckedFigure {
            figure: self.folder.display().to_string(),
            title: self.programs.title.clone(),
            smoke: self.smoke,
            seeds: self.programs.runs,
            runs: printed.runs(),
            shared: 0,
            cpu_s: summary.run.cpu_s,
            claims: check(&self.expectations, &summary),
            measured: measure(&self.expectations, &summary),
            not_run: self.expectations.not_run.clone(),
        };
        if let Some(path) = keep {
            let write = || {
                path.parent().map_or(Ok(()), fs::create_dir_all)?;
                fs::write(path, lines)
            };
            write().map_err(|error| StudyError::io(path, "write it", &error))?;
        }
        Ok(Measured::Complete(Box::new(checked)))
    }

    /// Runs a command to its end; returns what it printed, or `None` if it was interrupted.
    fn output(
        &self,
        words: &[String],
        run: usize,
        selvedge: &Path,
        watch: &dyn Watch,
        elapsed: &dyn Fn() -> f64,
    ) -> Result<Option<String>, String> {
        let (program, arguments) = words.split_first().ok_or("no command")?;
        let mut command = if program == SELVEDGE {
            Command::new(selvedge)
        } else if program.contains('/') {
            let path = self.folder.join(program);
            Command::new(path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?)
        } else {
            Command::new(program)
        };
        command.args(arguments).current_dir(&self.folder).env("SELVEDGE", selvedge).env(RUN, run.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a group of its own: what it starts ends with it.
        lab::end_with_parent(&mut command);
        if self.smoke {
            command.env(SMOKE, "1");
        }
        let mut child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let limit = elapsed() + (PATIENCE * self.programs.seconds).max(LEAST_PATIENCE);
        while !has_ended(&child) {
            if watch.interrupted() {
                let _ = end(&mut child);
                return Ok(None);
            }
            if elapsed() > limit {
                let _ = end(&mut child);
                return Err(format!("{program} has not ended in {PATIENCE} times the `seconds` of {PROGRAMS}"));
            }
            wait();
        }
        let status = end(&mut child).map_err(|error| error.to_string())?;
        let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
        let (out, err) = (text(out), text(err));
        if status.success() {
            return Ok(Some(out));
        }
        let err = err.trim_end();
        let from = err.len().saturating_sub(COMPLAINT);
        let last = err.get(from..).unwrap_or(err);
        Err(format!("{program} has failed ({status}): {last}"))
    }
}

/// Ends a program and what it has started, in order if that is soon: laboratories remove their namespaces.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    if !has_ended(child) {
        signal(child, Signal::SIGTERM);
    }
    for _ in 0..GLANCES_TO_END {
        if has_ended(child) {
            break;
        }
        wait();
    }
    // Its number is the group's until it is waited for.
    signal(child, Signal::SIGKILL);
    child.wait()
}

#[expect(clippy::disallowed_methods, reason = "an interruption is told by a flag, the end of a program by the kernel")]
fn wait() {
    thread::sleep(GLANCE);
}

/// Returns whether a program has ended; it still has to be waited for.
fn has_ended(child: &Child) -> bool {
    let id = Id::Pid(Pid::from_raw(child.id() as i32));
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(id, flags), Ok(WaitStatus::StillAlive))
}

/// Sends a signal to a program and to all that it has started in its group.
fn signal(child: &Child, signal: Signal) {
    let _ = killpg(Pid::from_raw(child.id() as i32), signal);
}

/// Reads a stream to its end in a thread.
fn reader(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _: io::Result<usize> = stream.map_or(Ok(0), |mut stream| stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Returns the processor time of all programs that have ended, in seconds.
fn cpu_of_children() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    })
}
