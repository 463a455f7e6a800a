//! Tests of `selvedge open`: what it answers, and what it refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::{SMALL, Scratch, parsed};

/// A program that serves results.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn new(scratch: &Scratch, folders: &[&str]) -> Self {
        let mut command = scratch.command(&[&["open"], folders].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("an address");
        let address = line.trim().strip_prefix("http://").expect("an address").trim_end_matches('/').to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        Self { child, address }
    }

    /// Sends a request; returns the status, the headers, and the body.
    fn ask(&self, method: &str, path: &str, host: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("the program listens");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("the program reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String, String) {
        self.ask("GET", path, "localhost", "")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn results_are_served_to_this_host_alone() {
    let scratch = Scratch::new("open").with("small.toml", SMALL);
    for (out, delay) in [("a", "2us"), ("b", "3us")] {
        let delay = format!("topology.fat-tree.link.delay={delay}");
        scratch.expect(0, &["run", "small.toml", "-q", "--no-controls", "--set", &delay, "--out", out]);
    }
    let one = Server::new(&scratch, &["a/"]);
    let (status, head, _) = one.get("/");
    assert!(status == 302 && head.contains("Location: /0/"), "{head}");
    let (status, head, page) = one.get("/0/");
    assert!(status == 200 && head.contains("Content-Security-Policy: default-src 'none'"), "{head}");
    assert!(page.contains("<section id=\"tables\">") && page.contains("<section id=\"links\">"), "{page}");

    // A page of a table.
    let query = json!({ "limit": 3, "sort": "fct_ps", "descending": true, "filters": [{ "column": "seed", "is": "equal", "value": "2" }] });
    let (status, _, body) = one.ask("POST", "/0/table/flows", "127.0.0.1:1", &query.to_string());
    let found = parsed(&body);
    assert_eq!((status, found["rows"].as_array().map(Vec::len)), (200, Some(3)), "{body}");
    let column = found["columns"].as_array().unwrap().iter().position(|name| name == "fct_ps").unwrap();
    let times: Vec<u64> = found["rows"].as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let (total, matching) = (found["total"].as_u64().unwrap(), found["matching"].as_u64().unwrap());
    assert!(matching > 0 && matching < total, "{matching} of {total}");
    let (status, _, body) = one.get("/0/fabric.json");
    assert_eq!((status, parsed(&body)["runs"].as_array().map(Vec::len)), (200, Some(2)));

    // Other hosts' names, other methods, other files, and what is no query.
    assert_eq!(one.ask("GET", "/0/", "evil.example", "").0, 403);
    assert_eq!(one.ask("DELETE", "/0/", "localhost", "").0, 405);
    for path in [
        "/0/summary.json",
        "/0/../a/summary.json",
        "/1/",
        "/etc/passwd",
        "/0/table/flows",
        "//",
        "/18446744073709551616/",
    ] {
        assert_eq!(one.get(path).0, 404, "{path}");
    }
    for body in ["", "{", "1", r#"{"limit":1001}"#, r#"{"sort":"nothing"}"#, r#"{"offset":-1}"#, r#"{"other":1}"#] {
        let (status, _, answer) = one.ask("POST", "/0/table/flows", "localhost", body);
        assert!(status == 400 && parsed(&answer)["error"].is_string(), "{body}: {status} {answer}");
    }
    assert_eq!(one.ask("POST", "/0/table/../summary", "localhost", "{}").0, 404);

    // Two side by side.
    let (status, _, page) = Server::new(&scratch, &["a", "b"]).get("/");
    assert_eq!((status, page.matches("<iframe ").count()), (200, 2));
    assert!(page.contains("topology.fat-tree.link.delay") && page.contains("B / A (95 %)"), "{page}");

    // A port that is taken.
    let (_, port) = one.address.rsplit_once(':').unwrap();
    let (_, error) = scratch.expect(2, &["open", "a", "--port", port]);
    assert!(error.contains("choose another with --port"), "{error}");
}

#[test]
fn folders_without_results_are_not_opened() {
    let scratch = Scratch::new("open-wrong").with("empty/readme", "nothing").with("small.toml", SMALL);
    let (_, error) = scratch.expect(2, &["open", "nowhere"]);
    assert!(error.contains("nowhere: no such folder; expected one that `selvedge run` made"), "{error}");
    let (_, error) = scratch.expect(2, &["open", "empty"]);
    assert!(error.contains("empty: holds no results of a study"), "{error}");
    let (_, error) = scratch.expect(2, &["open", "small.toml"]);
    assert!(error.contains("is a file; expected a folder"), "{error}");
    scratch.expect(0, &["run", "small.toml", "-q", "--no-controls", "--out", "out"]);
    std::fs::write(scratch.join("out/ports.parquet"), "PAR1").unwrap();
    let (_, error) = scratch.expect(2, &["open", "out"]);
    assert!(error.contains("ports.parquet") && error.contains("make these results anew"), "{error}");
    std::fs::remove_file(scratch.join("out/report.html")).unwrap();
    scratch.expect(2, &["open"]);
}
