//! Control of a running daemon: a socket in the file system, one line of JSON in each direction.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use std::{env, fs};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::error::EqdsError;
use super::status::DaemonStatus;

/// Longest line of a request in bytes.
const LONGEST: u64 = 4_096;
/// Time that a client has for its request, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that a client waits for an answer, or for the end of the daemon.
const ANSWERED: Duration = Duration::from_secs(10);

/// A request to a running daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Tell the state.
    Status,
    /// Read the settings anew.
    Reload,
    /// End.
    Down,
}

/// Answer of a running daemon.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// State of the daemon.
    Status(Box<DaemonStatus>),
    /// The request was fulfilled; a text for people.
    Done(String),
    /// The request was refused; reason and remedy.
    Error(String),
}

/// Returns the path of the control socket if none is chosen: of the system's daemon for root, else of the user's.
pub fn default_socket() -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").filter(|_| !nix::unistd::geteuid().is_root());
    runtime.map_or_else(|| PathBuf::from("/run"), PathBuf::from).join("selvedge/eqds.sock")
}

/// Sends a request to the daemon that listens at `path`, and returns its answer; to [`Command::Down`], once the daemon
/// has ended.
///
/// # Errors
/// Returns an error if no daemon listens or it does not answer.
pub fn ask(path: &Path, command: Command) -> Result<Answer, EqdsError> {
    let name = path.display();
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => EqdsError::failed(format!(
            "no daemon answers on {name}: `selvedge eqds up --config FILE` starts one; --socket PATH names another"
        )),
        io::ErrorKind::PermissionDenied => {
            EqdsError::input(format!("{name} is for the user who started the daemon: ask as that user, or as root"))
        }
        _ => EqdsError::failed(format!("cannot ask the daemon on {name}: {error}")),
    })?;
    let silent = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            EqdsError::failed(format!("the daemon on {name} does not answer"))
        }
        _ => EqdsError::failed(format!("cannot ask the daemon on {name}: {error}")),
    };
    stream.set_read_timeout(Some(ANSWERED)).map_err(silent)?;
    let request = serde_json::to_string(&command).expect("requests have text keys only") + "\n";
    stream.write_all(request.as_bytes()).map_err(silent)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).map_err(silent)?;
    let answer = serde_json::from_str(&line).map_err(|error| {
        EqdsError::failed(format!("the daemon on {name} gave an answer of another version of Selvedge: {error}"))
    })?;
    if command == Command::Down && matches!(answer, Answer::Done(_)) {
        // The connection ends with the process.
        reader.read_to_string(&mut line).map_err(silent)?;
    }
    Ok(answer)
}

/// A request, and the way back for its answer.
pub(super) struct Request {
    pub(super) command: Command,
    answer: Sender<Answer>,
}

impl Request {
    /// Answers the request.
    pub(super) fn answer(self, answer: Answer) {
        // A client that has gone wants no answer.
        let _ = self.answer.send(answer);
    }
}

/// The socket of this daemon, bound: no second daemon can have it. Dropping the value removes it.
pub(super) struct Control {
    path: PathBuf,
    listener: UnixListener,
    requests: Option<Receiver<Request>>,
    wake: Arc<EventFd>,
}

impl Control {
    /// Binds the socket at `path`, of which only its owner is a client. A socket that nobody listens to is replaced.
    pub(super) fn bind(path: &Path) -> Result<Self, EqdsError> {
        let name = path.display();
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                let message = format!("{name} is a file, not a control socket; choose another path by --socket");
                return Err(EqdsError::input(message));
            }
            Ok(_) => match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    // Left by a daemon that was killed.
                    fs::remove_file(path).map_err(EqdsError::system(&format!("cannot remove {name}")))?;
                }
                Ok(_) => {
                    return Err(EqdsError::input(format!(
                        "a daemon answers on {name} already: `selvedge eqds status --socket {name}` shows it, and `down` \
                         instead of `status` ends it; a second daemon needs another --socket"
                    )));
                }
                Err(error) => return Err(EqdsError::input(format!("{name}: {error}; --socket PATH chooses another"))),
            },
            Err(_) => {}
        }
        let unable = |error: io::Error| {
            EqdsError::input(format!("cannot make the control socket {name}: {error}; --socket PATH chooses another"))
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(unable)?;
        }
        let listener = private_listener(path).map_err(|error| unable(error.into()))?;
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let wake = Arc::new(wake.map_err(|error| unable(error.into()))?);
        Ok(Self { path: path.to_owned(), listener, requests: None, wake })
    }

    /// Starts the thread that talks to clients. Slow clients delay each other, never the daemon.
    pub(super) fn start(&mut self) -> Result<(), EqdsError> {
        let unable = EqdsError::system("cannot start a thread for the control socket");
        let listener = self.listener.try_clone().map_err(unable)?;
        let (send, requests) = channel();
        let wake = Arc::clone(&self.wake);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                // What fails is the client's affair.
                let _ = serve(stream, &send, &wake);
            }
        };
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(serve);
        thread.map_err(EqdsError::system("cannot start a thread for the control socket"))?;
        self.requests = Some(requests);
        Ok(())
    }

    /// Returns what becomes readable when there is a request.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
    /// Returns the next request.
    pub(super) fn next(&self) -> Option<Request> {
        let _ = self.wake.read();
        self.requests.as_ref()?.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Binds a socket that only its owner can connect to, from its first moment on.
fn private_listener(path: &Path) -> Result<UnixListener, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // Linux gives the file the mode of the socket.
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .map_err(|error| Errno::from_raw(error.raw_os_error()))?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&socket, Backlog::new(16)?)?;
    Ok(UnixListener::from(socket))
}

/// Passes one client's request on and brings the answer back.
fn serve(mut stream: UnixStream, requests: &Sender<Request>, wake: &EventFd) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut line)?;
    if line.is_empty() {
        // A second daemon that only looks whether this one lives.
        return Ok(());
    }
    let answer = match serde_json::from_str(&line) {
        Ok(command) => {
            let (answer, answers) = channel();
            let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
            requests.send(Request { command, answer }).map_err(gone)?;
            wake.write(1)?;
            let answer = answers.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            (command, answer)
        }
        Err(error) => {
            let text = format!("not a request ({error}); expected a line as {{\"command\":\"status\"}}");
            (Command::Status, Answer::Error(text))
        }
    };
    let (command, answer) = answer;
    let text = serde_json::to_string(&answer).map_err(io::Error::other)? + "\n";
    stream.write_all(text.as_bytes())?;
    if command == Command::Down {
        // The client waits for the end of the process, which closes the connection.
        std::mem::forget(stream);
    }
    Ok(())
}
