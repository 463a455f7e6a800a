//! Tests of conversations with `selvedge serve`.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::{SMALL, Scratch, text};

/// A program that answers requests.
struct Served {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Served {
    fn new(scratch: &Scratch) -> Self {
        let mut command = scratch.command(&["serve"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, input, output }
    }

    fn send(&mut self, frame: &[u8]) -> Value {
        let whole = [&(frame.len() as u32).to_be_bytes()[..], frame].concat();
        self.input.write_all(&whole).expect("the program reads its input");
        let mut length = [0; 4];
        self.output.read_exact(&mut length).expect("an answer");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.output.read_exact(&mut answer).expect("a whole answer");
        serde_json::from_slice(&answer).expect("an answer in JSON")
    }

    fn ask(&mut self, request: &Value) -> Value {
        let answer = self.send(request.to_string().as_bytes());
        assert_eq!(answer["status"], "ok", "{answer}");
        assert_eq!(answer["verb"], request["verb"], "{answer}");
        answer
    }

    /// Returns the message with which a request is refused.
    fn refused(&mut self, request: &str) -> String {
        let answer = self.send(request.as_bytes());
        assert_eq!(answer["status"], "error", "{answer}");
        answer["error"]["message"].as_str().expect("a message").to_owned()
    }

    /// Ends the input; returns the exit status and the messages.
    fn end(self) -> (i32, String) {
        drop((self.input, self.output));
        let output = self.child.wait_with_output().expect("the program ends");
        (output.status.code().expect("no signal"), text(&output.stderr))
    }
}

fn flow(source: &Value, destination: &Value, bytes: u64, start_ps: u64) -> Value {
    json!({ "source": source, "destination": destination, "payload_bytes": bytes, "start_ps": start_ps })
}

#[test]
fn a_program_injects_flows_and_gets_their_completions() {
    let scratch = Scratch::new("serve").with("small.toml", SMALL);
    let talk = || {
        let mut served = Served::new(&scratch);
        let opened = served.ask(&json!({ "verb": "open", "scenario": "small.toml", "series": "irn", "seed": 3 }));
        assert_eq!((opened["series"].as_str(), opened["hosts"][1].as_str()), (Some("irn"), Some("h1")));
        let flows = [flow(&json!(0), &json!("h5"), 10_000, 0), flow(&json!("h1"), &json!(5), 1_000_000, 5_000_000)];
        assert_eq!(served.ask(&json!({ "verb": "inject", "flows": flows }))["count"], 2);
        let step = json!({ "verb": "advance", "to_ps": 10_000_000_000_u64, "until_completion": true });
        let first = served.ask(&step);
        assert_eq!((&first["started"], &first["finished"]), (&json!(2), &json!(1)));
        let one = served.ask(&json!({ "verb": "drain" }));
        assert_eq!(one["completed"][0]["flow"], 0, "{one}");
        let later = first["now_ps"].as_u64().expect("a time") + 1;
        let third = json!({ "verb": "inject", "flows": [flow(&json!(2), &json!(3), 1, later)] });
        assert_eq!(served.ask(&third)["first"], 2);
        served.ask(&json!({ "verb": "advance", "to_ps": 10_000_000_000_u64 }));
        let part = served.ask(&json!({ "verb": "drain", "most": 1 }));
        assert_eq!(part["more"], true);
        let rest = served.ask(&json!({ "verb": "drain" }));
        assert_eq!(rest["more"], false);
        let closed = served.ask(&json!({ "verb": "close" }));
        assert_eq!(closed["finished"], 3);
        assert_eq!(served.end(), (0, String::new()));
        [one, part, rest, closed]
    };
    assert_eq!(talk(), talk(), "equal requests have equal answers");
}

#[test]
fn wrong_requests_are_answered_and_the_conversation_goes_on() {
    let scratch = Scratch::new("serve-wrong").with("small.toml", SMALL);
    let mut served = Served::new(&scratch);
    assert_eq!(served.refused(r#"{"verb":"drain"}"#), "no session is open: send \"open\" first");
    assert!(served.refused("{").contains("EOF"), "not JSON");
    assert!(served.refused("[1]").contains("expected"), "no object");
    assert!(served.refused(r#"{"verb":"fly"}"#).contains("unknown variant `fly`"));
    assert!(served.refused(r#"{"verb":"open"}"#).contains("either \"scenario\""));
    assert!(served.refused(r#"{"verb":"open","scenario":"none.toml"}"#).contains("none.toml: no such file"));
    assert!(served.refused(r#"{"verb":"open","scenario":"small.toml","series":"irm"}"#).contains("irm"));
    assert!(served.refused(r#"{"verb":"open","text":"titel = 1"}"#).contains("text:1:1"));
    served.ask(&json!({ "verb": "open", "scenario": "small.toml" }));
    let good = flow(&json!(0), &json!(1), 1, 0);
    let wrong = |flow: Value| json!({ "verb": "inject", "flows": [good.clone(), flow] }).to_string();
    assert!(served.refused(&wrong(flow(&json!(0), &json!(99), 1, 0))).starts_with("flows[1].destination: host 99"));
    assert!(served.refused(&wrong(flow(&json!("x"), &json!(1), 1, 0))).starts_with("flows[1].source: no host"));
    assert!(served.refused(&wrong(flow(&json!(1), &json!(1), 1, 0))).contains("would send to itself"));
    assert!(served.refused(&wrong(flow(&json!(0), &json!(1), 0, 0))).contains("at least one byte"));
    assert!(served.refused(r#"{"verb":"advance","to":5}"#).contains("unknown field `to`"));
    served.ask(&json!({ "verb": "advance", "to_ps": 500 }));
    assert!(served.refused(r#"{"verb":"advance","to_ps":499}"#).contains("500 ps (now)"));
    assert!(
        served
            .refused(&wrong(flow(&json!(0), &json!(1), 1, 499)))
            .starts_with("flows[0].start: 0 ps: give a time from 500 ps")
    );
    let closed = served.ask(&json!({ "verb": "close" }));
    assert_eq!(closed["started"], 0, "refused requests inject nothing");
    assert_eq!(served.end(), (0, String::new()));
}

#[test]
fn a_broken_stream_ends_the_conversation() {
    let scratch = Scratch::new("serve-broken");
    for (bytes, what) in [
        (&[0, 0][..], "ends after 2 of the 4 bytes of a length"),
        (&[0, 0, 0, 9, b'{'], "ends inside a request of 9 bytes"),
        (b"{\"verb\":\"close\"}", "a request of 2065856101 bytes; at most 1048576"),
    ] {
        let mut served = Served::new(&scratch);
        served.input.write_all(bytes).expect("the program reads its input");
        let (status, error) = served.end();
        assert_eq!(status, 2);
        assert!(error.starts_with("error: standard input: ") && error.contains(what), "{error}");
    }
    assert_eq!(Served::new(&scratch).end(), (0, String::new()), "no request at all");
}
