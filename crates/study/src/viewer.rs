//! `selvedge open`: results folders in a browser, served on this host alone.
//!
//! Requests are hostile until proven otherwise: a page of another site can send some, and a name that resolves to this
//! host can make them look like its own. Only requests whose `Host` is this host's are answered, only the methods and
//! paths below exist, and no part of a request becomes part of a file's name.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use selvedge_results::{
    ComparedResults, Comparison, Fabric, Query, QueryError, Scan, Summary, Table, render_side_by_side, with_tables,
};
use serde_json::json;
use tiny_http::{Header, Method, Request, Response, Server};

use crate::StudyError;
use crate::compare::between;
use crate::finished::{anew, check_complete, read_summary};
use crate::folder::without_trailing_slash;

/// A server of results folders to browsers on this host.
pub struct Viewer {
    server: Server,
    address: SocketAddr,
    results: Vec<Results>,
    /// The page that compares the results, made when it is asked for first.
    overview: OnceLock<Result<String, String>>,
}

struct Results {
    folder: PathBuf,
    summary: Summary,
}

/// Number of requests that are answered at a time.
const THREADS: usize = 4;
/// Largest request body, in bytes.
const MOST_BODY: u64 = 1 << 16;
/// Number of characters that links over time may have: enough for some ten thousand ports.
const FABRIC_ROOM: usize = 8_000_000;
/// Permissions of pages: to run their own scripts, and to ask this server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      frame-src 'self'; frame-ancestors 'self'; img-src data:; base-uri 'none'; form-action 'none'";

/// The answer to a request.
#[derive(Debug)]
struct Answer {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
    /// Where else to look, for a redirection.
    location: Option<String>,
}

impl Answer {
    fn page(html: String) -> Self {
        Self { status: 200, kind: "text/html; charset=utf-8", body: html.into_bytes(), location: None }
    }

    fn json(status: u16, value: &impl serde::Serialize) -> Self {
        let body = serde_json::to_vec(value).expect("our values have text keys only");
        Self { status, kind: "application/json", body, location: None }
    }

    fn text(status: u16, text: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: text.into().into_bytes(), location: None }
    }

    fn redirect(location: String) -> Self {
        Self { location: Some(location), ..Self::text(302, "") }
    }
}

impl Viewer {
    /// Opens results folders, and a port on the loopback interface; port 0 takes any that is free.
    ///
    /// # Errors
    /// Returns an error when a folder holds no results, incomplete results or those of another version, or the port is
    /// taken.
    pub fn open(folders: &[PathBuf], port: u16) -> Result<Self, StudyError> {
        let results = folders.iter().map(|folder| Results::open(folder)).collect::<Result<Vec<_>, _>>()?;
        let taken = |error: &dyn std::fmt::Display| {
            StudyError::input(format!("port {port}: cannot listen on 127.0.0.1: {error}; choose another with --port"))
        };
        let server = Server::http((Ipv4Addr::LOCALHOST, port)).map_err(|error| taken(&error))?;
        let address = server.server_addr().to_ip().ok_or_else(|| taken(&"not an address of IP"))?;
        Ok(Self { server, address, results, overview: OnceLock::new() })
    }

    /// Returns the address for a browser.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Answers requests until the process ends.
    pub fn serve(&self) {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Ok(request) = self.server.recv() {
                        self.respond(request);
                    }
                });
            }
        });
    }

    fn respond(&self, mut request: Request) {
        let header = |name: &'static str| {
            let found = request.headers().iter().find(|header| header.field.equiv(name));
            found.map(|header| header.value.as_str().to_owned())
        };
        let (host, origin) = (header("Host"), header("Origin"));
        let (method, url) = (request.method().clone(), request.url().to_owned());
        let answer = match is_own(host.as_deref(), origin.as_deref()) {
            false => Answer::text(403, "this server answers requests to 127.0.0.1 and localhost only"),
            true => self.answer(&method, &url, request.as_reader()),
        };
        let mut response = Response::from_data(answer.body).with_status_code(answer.status);
        let headers = [
            ("Content-Type", answer.kind),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ];
        let location = answer.location.as_deref().map(|location| ("Location", location));
        for (name, value) in headers.into_iter().chain(location) {
            response.add_header(Header::from_bytes(name, value).expect("our headers are ASCII"));
        }
        // A browser that has gone away is no failure.
        let _ = request.respond(response);
    }

    fn answer(&self, method: &Method, url: &str, body: &mut dyn Read) -> Answer {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let of = |number: &str| number.parse::<usize>().ok().and_then(|at| self.results.get(at));
        match (method, &parts[..]) {
            (Method::Get | Method::Head, [""]) if self.results.len() == 1 => Answer::redirect("/0/".into()),
            (Method::Get | Method::Head, [""]) => match self.overview() {
                Ok(page) => Answer::page(page.clone()),
                Err(error) => Answer::text(500, error.as_str()),
            },
            (Method::Get | Method::Head, [number]) if of(number).is_some() => Answer::redirect(format!("/{number}/")),
            (Method::Get | Method::Head, [number, ""]) => of(number).map_or_else(nothing, Results::report),
            (Method::Get, [number, "fabric.json"]) => of(number).map_or_else(nothing, Results::fabric),
            (Method::Post, [number, "table", name]) => match (of(number), table(name)) {
                (Some(results), Some(table)) => results.page(table, name, body),
                _ => nothing(),
            },
            (Method::Get | Method::Head | Method::Post, _) => nothing(),
            _ => Answer::text(405, "GET, HEAD and POST only"),
        }
    }

    /// Returns the page that compares all results with the first.
    fn overview(&self) -> Result<&String, &String> {
        let make = || -> Result<String, StudyError> {
            let folders: Vec<&Path> = self.results.iter().map(|one| one.folder.as_path()).collect();
            let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            let mut comparisons: Vec<Option<Comparison>> = vec![None];
            for other in &folders[1..] {
                let (comparison, _) = between([folders[0], other])?;
                comparisons.push(Some(comparison).filter(|comparison| !comparison.series.is_empty()));
            }
            let compared = self.results.iter().zip(&names).zip(&comparisons);
            let compared = compared.map(|((one, folder), comparison)| ComparedResults {
                folder,
                summary: &one.summary,
                comparison: comparison.as_ref(),
            });
            Ok(render_side_by_side(&compared.collect::<Vec<_>>()))
        };
        self.overview.get_or_init(|| make().map_err(|error| error.to_string())).as_ref()
    }
}

impl Results {
    fn open(folder: &Path) -> Result<Self, StudyError> {
        let folder = without_trailing_slash(folder);
        check_complete(&folder)?;
        let remedy = anew(&folder, false);
        let summary = read_summary(&folder, &remedy)?;
        for name in ["flows", "ports", "links"] {
            let opened = table(name).map(|table| Scan::open(table, &file(&folder, name)));
            opened.transpose().map_err(|error| error.with_remedy(remedy.clone()))?;
        }
        let report = folder.join(REPORT);
        report.metadata().map_err(|error| StudyError::io(&report, "read it", &error))?;
        Ok(Self { folder, summary })
    }

    fn report(&self) -> Answer {
        let path = self.folder.join(REPORT);
        match std::fs::read_to_string(&path) {
            Ok(report) => Answer::page(with_tables(&report)),
            Err(error) => Answer::text(500, format!("{}: cannot be read: {error}", path.display())),
        }
    }

    fn fabric(&self) -> Answer {
        match Fabric::of(&self.folder, &self.summary, FABRIC_ROOM) {
            Ok(fabric) => Answer::json(200, &fabric),
            Err(error) => Answer::json(500, &json!({ "error": error.to_string() })),
        }
    }

    fn page(&self, table: Table, name: &str, body: &mut dyn Read) -> Answer {
        let wrong = |status, error: String| Answer::json(status, &json!({ "error": error }));
        let mut text = Vec::new();
        if let Err(error) = body.take(MOST_BODY).read_to_end(&mut text) {
            return wrong(400, error.to_string());
        }
        let query: Query = match serde_json::from_slice(&text) {
            Ok(query) => query,
            Err(error) => return wrong(400, format!("not a query: {error}")),
        };
        match query.run(table, &file(&self.folder, name)) {
            Ok(page) => Answer::json(200, &page),
            Err(QueryError::Wrong(error)) => wrong(400, error),
            Err(QueryError::File(error)) => wrong(500, error.to_string()),
        }
    }
}

const REPORT: &str = "report.html";

fn nothing() -> Answer {
    Answer::text(404, "nothing here")
}

/// Returns the table of this name.
fn table(name: &str) -> Option<Table> {
    match name {
        "flows" => Some(Table::Flows),
        "ports" => Some(Table::Ports),
        "links" => Some(Table::Links),
        _ => None,
    }
}

/// Returns the file of a table; `name` is one that [`table`] knows.
fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.parquet"))
}

/// Returns whether a request was made to this host by its name or address, and by no page of another site. Forwarded
/// ports differ, so that any port is right.
fn is_own(host: Option<&str>, origin: Option<&str>) -> bool {
    let is_local = |host: &str| {
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        matches!(name.map_or(host, |(name, _)| name), "127.0.0.1" | "localhost" | "[::1]")
    };
    let from_here = |origin: &str| origin.strip_prefix("http://") == host;
    host.is_some_and(is_local) && origin.is_none_or(from_here)
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn only_requests_of_this_host_are_answered() {
        for host in ["127.0.0.1:8080", "localhost:1", "localhost", "[::1]:9", "127.0.0.1"] {
            assert!(is_own(Some(host), None), "{host}");
            assert!(is_own(Some(host), Some(&format!("http://{host}"))), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:80", "evil.example:127", "localhost:x", "", "127.0.0.2"] {
            assert!(!is_own(Some(host), None), "{host}");
        }
        assert!(!is_own(None, None));
        for origin in ["http://evil.example", "null", "https://localhost:1", "http://localhost:2"] {
            assert!(!is_own(Some("localhost:1"), Some(origin)), "{origin}");
        }
    }
}
