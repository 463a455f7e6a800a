//! Tests of replayed event traces.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{SMALL, Scratch, text};

#[test]
fn traces_are_replayed_as_they_come() {
    let scratch = Scratch::new("replay")
        .with("in.txt", "4\n0 1 0\n0 1 2\n0 1 1\n0 1 2\n")
        .with("broken.txt", "3\n0 1 0\n0 1 x\n0 1 2\n");
    let (out, error) = scratch.expect(0, &["replay", "irn-receiver", "in.txt"]);
    assert_eq!(out, "0 1 0 0 0\n1 1 2 0 0\n0 3 1 0 0\n0 3 2 0 0\n");
    assert_eq!(error, "");
    // A trace through standard input, with a wrong count.
    let mut child = scratch
        .command(&["replay", "irn-receiver", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(b"9\n0 1 0\n").expect("the program reads its input");
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(text(&output.stdout), "0 1 0 0 0\n");
    assert!(text(&output.stderr).starts_with("warning: standard input:1:"), "{}", text(&output.stderr));
    // Output before an error is shown.
    let (out, error) = scratch.expect(2, &["replay", "irn-receiver", "broken.txt"]);
    assert_eq!(out, "0 1 0 0 0\n");
    assert!(error.starts_with("error: broken.txt:3:5:"), "{error}");
    // Senders.
    let scratch = scratch.with("sender.txt", "2\n7 0\n7 1 1 0 0\n");
    let (out, _) = scratch.expect(0, &["replay", "irn-sender", "sender.txt"]);
    assert_eq!(out.lines().count(), 2);
    assert!(out.starts_with("0 1 0 1 "), "{out}");
}

#[test]
fn whoever_waits_for_an_answer_gets_it() {
    let mut child = Scratch::new("live")
        .command(&["replay", "irn-receiver", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("piped");
    let mut output = child.stdout.take().expect("piped");
    input.write_all(b"2\n").expect("the program reads its input");
    for (event, expected) in [("0 1 0\n", "0 1 0 0 0\n"), ("0 1 2\n", "1 1 2 0 0\n")] {
        input.write_all(event.as_bytes()).expect("the program reads its input");
        let mut answer = vec![0; expected.len()];
        output.read_exact(&mut answer).expect("an answer before the next event");
        assert_eq!(text(&answer), expected);
    }
    drop(input);
    assert!(child.wait().expect("the program ends").success());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let scratch = Scratch::new("pipe");
    let mut input = String::from("100000\n");
    (0..100_000).for_each(|psn| input += &format!("0 1 {psn}\n"));
    let scratch = scratch.with("long.txt", &input);
    let mut child = scratch
        .command(&["replay", "irn-receiver", "long.txt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut first = [0; 10];
    child.stdout.take().expect("piped").read_exact(&mut first).unwrap();
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn the_authors_trace_comes_out_identical() {
    let shared = std::env::var_os("SELVEDGE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let folder = shared.join("traces/irn-receiver");
    let find = |prefix: &str| -> Option<PathBuf> {
        let mut entries: Vec<_> = fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.into_iter().find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
    };
    let (Some(input), Some(output)) = (find("recvInput"), find("recvOutput")) else {
        eprintln!("skipped: the traces of the IRN authors are not in {}", folder.display());
        return;
    };
    let scratch = Scratch::new("trace");
    let (out, error) = scratch.expect(0, &["replay", "irn-receiver", &input.display().to_string()]);
    assert_eq!(error, "");
    let expected = fs::read_to_string(output).expect("readable");
    assert_eq!(out.lines().count(), 140_361);
    assert!(out.lines().eq(expected.lines().map(str::trim_end)), "every line");
}

#[test]
fn hardware_can_be_wider_wrap_and_show_its_bitmaps() {
    let scratch = Scratch::new("hardware")
        .with("data.txt", "5\n0 1 2\n0 2 3\n0 8 200\n0 1 16777215\n0 1 0\n")
        .with("acks.txt", "5\n0 0\n0 0\n0 1 0 1 1\n0 1 16777215 0 0\n0 0\n");
    let (out, _) = scratch.expect(0, &["replay", "irn-receiver", "--bitmap", "16", "--wrap", "--state", "data.txt"]);
    // Packets beyond the bitmap are not kept; packets before its first one are old.
    assert_eq!(
        out,
        "1 0 2 0 0 0004 0000\n1 0 3 0 0 000c 0008\n1 0 200 0 0 000c 0008\n0 0 16777215 0 0 000c 0008\n\
         0 1 0 0 0 0006 0004\n"
    );
    let (out, _) = scratch.expect(0, &["replay", "irn-receiver", "--bitmap", "256", "data.txt"]);
    // The authors' numbers do not wrap: the fourth packet lies ahead.
    assert_eq!(out.lines().nth(3), Some("1 0 16777215 0 0"));
    let sender = ["replay", "irn-sender", "--cap", "2", "--bitmap", "16", "--low-packets", "1", "--wrap", "--state"];
    let (out, _) = scratch.expect(0, &[&sender[..], &["acks.txt"]].concat());
    assert_eq!(
        out,
        "0 1 0 1 0 0 0 0 0 0 0000\n0 1 1 2 0 0 0 0 0 0 0000\n1 2 0 0 0 1 0 0 0002\n1 2 0 0 0 1 0 0 0002\n\
         0 1 0 2 0 0 1 0 1 0 0002\n"
    );
    let (_, error) = scratch.expect(2, &["replay", "irn-sender", "--cap", "129", "acks.txt"]);
    assert!(error.contains("--cap 129: a bitmap holds 128 packets"), "{error}");
}

#[test]
fn events_of_a_simulation_are_replayed_and_threads_change_no_byte() {
    let scratch = Scratch::new("events").with("small.toml", SMALL);
    for threads in ["1", "3"] {
        let (out, folder) = (format!("out{threads}"), format!("events{threads}"));
        let run = ["run", "small.toml", "--series", "irn,tcp", "--seeds", "1", "--threads", threads, "--out", &out];
        let (_, said) = scratch.expect(0, &[&run[..], &["--trace-events", "irn", "--trace-dir", &folder]].concat());
        assert!(said.contains("traces: "), "{said}");
    }
    let names = |folder: &str| {
        let files = fs::read_dir(scratch.join(folder)).expect("the folder of traces");
        let mut names: Vec<String> =
            files.map(|file| file.expect("readable").file_name().into_string().expect("the text is UTF-8")).collect();
        names.sort();
        names
    };
    let files = names("events1");
    assert_eq!(files, names("events3"));
    assert!(files.iter().all(|file| file.starts_with("irn-seed1-h")), "TCP has no such events: {files:?}");
    let [mut sent, mut received] = [0, 0];
    for file in files {
        let [one, three] = [1, 3].map(|threads| scratch.join(&format!("events{threads}/{file}")));
        let text = fs::read_to_string(&one).expect("readable");
        assert!(text == fs::read_to_string(three).expect("readable"), "{file}");
        let (engine, count) = match &*file {
            _ if file.ends_with("-receiver.txt") => ("irn-receiver", &mut received),
            _ if file.ends_with("-sender.txt") => ("irn-sender", &mut sent),
            _ => continue,
        };
        let (out, error) = scratch.expect(0, &["replay", engine, &one.display().to_string()]);
        assert_eq!((error, out.lines().count()), (String::new(), text.lines().count() - 1), "{file}");
        *count += text.lines().count();
    }
    assert!(sent > 100 && received > 100, "{sent} {received}");
}

#[test]
fn events_of_one_host_are_those_of_the_whole_run() {
    let scratch = Scratch::new("events-of-one").with("small.toml", SMALL);
    let run = ["run", "small.toml", "--series", "irn", "--seeds", "1", "--quiet", "--trace-events"];
    scratch.expect(0, &[&run[..], &["irn", "--out", "all"]].concat());
    scratch.expect(0, &[&run[..], &["irn=h1", "--trace-events", "irn=h0", "--out", "two"]].concat());
    let files: Vec<_> = fs::read_dir(scratch.join("two/traces")).expect("the folder of traces").collect();
    assert_eq!(files.len(), 6, "three files for each of two hosts");
    for file in files {
        let name = file.expect("readable").file_name();
        let [all, two] =
            ["all", "two"].map(|run| fs::read(scratch.join(run).join("traces").join(&name)).expect("readable"));
        assert_eq!(all, two, "{name:?}");
    }
}
