//! Sessions over a pair of streams: requests and answers are JSON, each behind its length (docs/serve.md).

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;

use selvedge_scenario::{Changes, Plan, Point, Seeds};
use selvedge_sim::{ConfigError, Injection, Session};
use selvedge_telemetry::FlowRow;
use selvedge_units::{Bytes, HostId, Instant};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::StudyError;

/// Name of the protocol and its version, which `open` answers.
const SCHEMA: &str = "selvedge-flow-session-v1";
/// Largest length of a request, in bytes.
const LONGEST: u32 = 1 << 20;
/// Number of completed flows in one answer unless the request says otherwise; some 150 bytes each.
const MOST: usize = 4_096;

/// Request: what to do, and its values.
#[derive(Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    /// Opens a session; replaces one that is open.
    Open(Open),
    /// Injects flows: all of them, or none.
    Inject { flows: Vec<Flow> },
    /// Advances the time.
    Advance {
        to_ps: u64,
        #[serde(default)]
        until_completion: bool,
    },
    /// Takes flows that have completed.
    Drain { most: Option<usize> },
    /// Answers totals and ends the conversation.
    Close {},
}

/// Scenario of a session, from a file or as a text.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Open {
    /// Path of the scenario.
    pub scenario: Option<PathBuf>,
    /// Text of the scenario, in place of a path.
    pub text: Option<String>,
    /// Folder that paths in the text are relative to; "" for the current one.
    pub folder: PathBuf,
    /// Values to set first, each as key=value.
    pub set: Vec<String>,
    /// Series, by name, or a scheme; the first of the scenario if not given.
    pub series: Option<String>,
    /// Seed; the first of the scenario if not given.
    pub seed: Option<u64>,
    /// Whether the traffic of the scenario runs, too.
    pub background: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
    source: Host,
    destination: Host,
    payload_bytes: u64,
    start_ps: u64,
}

/// Host by its number or its name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Host {
    Number(u32),
    Name(String),
}

/// Completed flow in an answer.
#[derive(Serialize)]
struct Completion {
    flow: u64,
    workload: u16,
    source: u32,
    destination: u32,
    payload_bytes: u64,
    start_ps: u64,
    finish_ps: u64,
    ideal_ps: u64,
}

impl From<&FlowRow> for Completion {
    fn from(row: &FlowRow) -> Self {
        Self {
            flow: row.id,
            workload: row.workload,
            source: row.src.0,
            destination: row.dst.0,
            payload_bytes: row.size.get(),
            start_ps: row.start.as_ps(),
            finish_ps: row.finish.unwrap_or(row.start).as_ps(),
            ideal_ps: row.ideal.as_ps(),
        }
    }
}

/// Session of a scenario, with the names of its hosts.
pub struct Opened {
    /// The session.
    pub session: Session,
    /// Name of the series that runs.
    pub series: String,
    /// Names of the hosts, by number.
    pub hosts: Vec<String>,
}

impl Open {
    /// Opens the session.
    ///
    /// # Errors
    /// Returns an error if the scenario is wrong, or has no such series.
    pub fn open(&self) -> Result<Opened, StudyError> {
        let changes = Changes {
            sets: self.set.clone(),
            series: self.series.clone(),
            seeds: self.seed.map(|seed| Seeds::List(vec![seed])),
            ..Changes::default()
        };
        let plan = match (&self.scenario, &self.text) {
            (Some(path), None) => {
                let inside = path.join("scenario.toml");
                Plan::from_file(if inside.is_file() { &inside } else { path }, &changes)
            }
            (None, Some(text)) => Plan::from_text("text", text, &self.folder, &changes),
            _ => return Err(StudyError::input("open: give either \"scenario\", a path, or \"text\", its content")),
        };
        Self::of_plan(&plan.map_err(StudyError::wrong)?, self.background)
    }

    /// Opens a session of the first series and seed of `plan`.
    ///
    /// # Errors
    /// Returns an error if the simulator refuses it.
    pub fn of_plan(plan: &Plan, background: bool) -> Result<Opened, StudyError> {
        let (point, series) = (Point { series: 0, seed: plan.seeds[0] }, &plan.series[0]);
        let session = Session::open(&plan.config(point), plan.library(point), background)
            .map_err(|error| StudyError::refused(&series.name, point.seed, &error))?;
        let hosts = series.network.graph().hosts.iter().map(|host| host.name.clone()).collect();
        Ok(Opened { session, series: series.name.clone(), hosts })
    }
}

/// Answers the requests that come through `input` until it ends or one of them closes the session. Requests that are
/// wrong are answered with an error, and the conversation goes on.
///
/// # Errors
/// Returns an error if a request is longer than 1 MiB or cut off, or a stream fails.
pub fn serve(input: &mut dyn Read, output: &mut dyn Write) -> Result<(), StudyError> {
    let mut state = None;
    let streams = |error: io::Error| StudyError::failure(format!("the conversation ends: {error}"));
    while let Some(frame) = read_frame(input)? {
        let verb = serde_json::from_slice::<Value>(&frame).ok();
        let verb = verb.as_ref().and_then(|value| value["verb"].as_str()).unwrap_or("?").to_owned();
        let answer = match serde_json::from_slice(&frame) {
            Ok(request) => answer(&mut state, request),
            Err(error) => Err(error.to_string()),
        };
        let is_over = answer.is_ok() && verb == "close";
        let (status, answer) = match answer {
            Ok(answer) => ("ok", answer),
            Err(message) => ("error", json!({ "error": { "message": message } })),
        };
        let mut whole = json!({ "schema": SCHEMA, "status": status, "verb": verb });
        if let (Value::Object(whole), Value::Object(more)) = (&mut whole, answer) {
            whole.extend(more);
        }
        write_frame(output, &whole).map_err(streams)?;
        if is_over {
            break;
        }
    }
    Ok(())
}

fn answer(state: &mut Option<State>, request: Request) -> Result<Value, String> {
    if let Request::Open(open) = request {
        let opened = open.open().map_err(|error| error.to_string())?;
        let numbers = opened.hosts.iter().cloned().zip((0..).map(HostId)).collect();
        let answer = json!({ "series": opened.series, "hosts": opened.hosts, "now_ps": 0 });
        *state = Some(State { session: opened.session, numbers, waiting: Vec::new() });
        return Ok(answer);
    }
    let State { session, numbers, waiting } = state.as_mut().ok_or("no session is open: send \"open\" first")?;
    match request {
        Request::Open(_) => unreachable!("opened above"),
        Request::Inject { flows } => {
            let of_flow = |(at, flow): (usize, &Flow)| {
                let wrong = |error: ConfigError| format!("flows[{at}].{error}");
                let host = |host: &Host, end: &str| match host {
                    Host::Number(number) => Ok(HostId(*number)),
                    Host::Name(name) => numbers
                        .get(name)
                        .copied()
                        .ok_or_else(|| wrong(ConfigError::new(end, format!("no host is called \"{name}\"")))),
                };
                let injection = Injection {
                    src: host(&flow.source, "source")?,
                    dst: host(&flow.destination, "destination")?,
                    size: Bytes::new(flow.payload_bytes),
                    start: Instant::from_ps(flow.start_ps),
                };
                session.check(&injection).map_err(wrong).map(|()| injection)
            };
            let all: Vec<Injection> = flows.iter().enumerate().map(of_flow).collect::<Result<_, String>>()?;
            let ids = all.into_iter().map(|flow| session.inject(flow)).collect::<Result<Vec<u64>, ConfigError>>();
            let ids = ids.map_err(|error| error.to_string())?;
            Ok(json!({ "first": ids.first(), "count": ids.len() }))
        }
        Request::Advance { to_ps, until_completion } => {
            let to = Instant::from_ps(to_ps);
            let done = if until_completion { session.advance_to_completion(to).map(drop) } else { session.advance(to) };
            done.map_err(|error| format!("{}_ps: {}", error.key, error.message))?;
            let (started, finished) = session.flows();
            Ok(json!({ "now_ps": session.now().as_ps(), "started": started, "finished": finished }))
        }
        Request::Drain { most } => {
            waiting.extend(session.drain());
            let count = waiting.len().min(most.unwrap_or(MOST).max(1));
            let completed: Vec<Completion> = waiting[..count].iter().map(Completion::from).collect();
            let answer = json!({ "completed": completed, "more": waiting.len() > count });
            waiting.drain(..count);
            Ok(answer)
        }
        Request::Close {} => {
            let totals = session.totals();
            Ok(json!({
                "now_ps": session.now().as_ps(),
                "started": totals.flows_started,
                "finished": totals.flows_finished,
                "packet_hops": totals.packet_hops,
                "data_sent": totals.data_sent,
                "retransmissions": totals.retransmissions,
                "dropped": totals.data_drops.total(),
                "fingerprint": format!("{:016x}", totals.fingerprint),
            }))
        }
    }
}

struct State {
    session: Session,
    /// Number of each host by its name.
    numbers: BTreeMap<String, HostId>,
    /// Completed flows that did not fit into an answer.
    waiting: Vec<FlowRow>,
}

/// Reads a request; `None` if the stream ends before one.
fn read_frame(input: &mut dyn Read) -> Result<Option<Vec<u8>>, StudyError> {
    let wrong = |message: String| Err(StudyError::input(format!("standard input: {message}")));
    let mut length = [0; 4];
    let mut known = 0;
    while known < length.len() {
        match input.read(&mut length[known..]) {
            Ok(0) if known == 0 => return Ok(None),
            Ok(0) => return wrong(format!("ends after {known} of the 4 bytes of a length")),
            Ok(count) => known += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return wrong(error.to_string()),
        }
    }
    let length = u32::from_be_bytes(length);
    if length > LONGEST {
        return wrong(format!(
            "a request of {length} bytes; at most {LONGEST} can be, behind their number in 4 bytes, the highest first"
        ));
    }
    let mut frame = vec![0; length as usize];
    match input.read_exact(&mut frame) {
        Ok(()) => Ok(Some(frame)),
        Err(_) => wrong(format!("ends inside a request of {length} bytes")),
    }
}

fn write_frame(output: &mut dyn Write, answer: &Value) -> io::Result<()> {
    let text = answer.to_string();
    output.write_all(&(text.len() as u32).to_be_bytes())?;
    output.write_all(text.as_bytes())?;
    output.flush()
}
