//! Figures of real programs: `program.toml`, the lines that programs print, and claims about them.

use selvedge_results::{Command, Expectations, Footprints, Outcome, Printed, Programs, check};

const FILE: &str = "title = 'speeds'\nruns = 3\nseconds = 1\n";
const TWO: &str = "[series]\nfast = ['selvedge', '--hosts', '{n}']\nslow = ['./slow', 'of{n}.{n}']\n\
                   [cases]\nfew = { n = '2' }\nmany = { n = '9' }\n";

fn programs(rest: &str) -> Programs {
    Programs::parse(&format!("{FILE}{rest}"), "program.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Returns programs that print as in `of`: by command and run.
fn printed(programs: &Programs, of: &[[&str; 3]]) -> Printed {
    let mut all = Printed::default();
    for (command, runs) in of.iter().enumerate() {
        for (run, output) in runs.iter().enumerate() {
            all.add(programs, command, run, output).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    all
}

#[test]
fn each_series_runs_in_each_case_with_its_words() {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let command = |series: &str, case: &str, of: &[&str]| Command {
        series: series.to_owned(),
        case: Some(case.to_owned()),
        words: words(of),
    };
    let expected = [
        command("fast", "few", &["selvedge", "--hosts", "2"]),
        command("slow", "few", &["./slow", "of2.2"]),
        command("fast", "many", &["selvedge", "--hosts", "9"]),
        command("slow", "many", &["./slow", "of9.9"]),
    ];
    assert_eq!(programs(TWO).commands, expected);
    let other = programs("[series]\na = ['sh', '-c', 'echo ${N} {\"n\": 1} {']\n");
    assert_eq!(other.commands[0].case, None);
    assert_eq!(other.commands[0].words[2], "echo ${N} {\"n\": 1} {");
}

#[test]
fn wrong_files_are_refused_with_place_and_remedy() {
    let cases = [
        (format!("{FILE}[series]\n"), "no series: expected [series] with a command for each"),
        (format!("{FILE}[series]\na = []\n"), "program.toml:5:5: series \"a\" has no command"),
        (
            format!("{FILE}[series]\na = ['{{n}}']\n"),
            "names {n}, which a case lacks: add it to each, as in n = \"...\"",
        ),
        (format!("{FILE}run = 1\n[series]\na = ['true']\n"), "unknown field `run`"),
        ("title = 'x'\nruns = 0\nseconds = 1\n[series]\na = ['true']\n".to_owned(), "runs is from 1 to 1000, found 0"),
        ("title = 'x'\nruns = 1\nseconds = nan\n[series]\na = ['true']\n".to_owned(), "above 0, found NaN"),
        ("title = 'x'\n[series]\n".to_owned(), "missing field `runs`"),
    ];
    for (text, message) in cases {
        let error = Programs::parse(&text, "program.toml").expect_err(&text).to_string();
        assert!(error.contains(message), "{text}: {error}");
        assert!(error.starts_with("program.toml:"), "{error}");
    }
}

#[test]
fn claims_are_checked_on_what_was_printed_with_a_run_as_a_seed() {
    let programs = programs("apart = ['bytes']\n[series]\na = ['a']\nb = ['b']\n");
    let a = ["{'figure': 'x', 'bytes': 20, 'us': 1.0}", "{'figure': 'x', 'bytes': 20, 'us': 1.1}", ""];
    let b = ["{'figure': 'x', 'bytes': 20, 'us': 10, 'way': 'b'}", "{'figure': 'x', 'bytes': 20, 'us': 11}", ""];
    let json = |text: &str| text.replace('\'', "\"");
    let (a, b) = (a.map(json), b.map(json));
    let third =
        |us: f64| format!("\n{{\"figure\": \"x\", \"bytes\": 20, \"us\": {us}}}\n{{\"figure\": \"y\", \"z\": 1}}\n");
    let of = [[&*a[0], &a[1], &third(0.9)], [&*b[0], &b[1], &third(9.0)]];
    let summary = printed(&programs, &of).summary(&programs, 2.0, 3.0, "1");
    assert_eq!(summary.seeds, [0, 1, 2]);
    assert_eq!(summary.series[1].metrics["x.20.us"].mean, Some(10.0));
    // The runs that have not printed a metric cannot be left out.
    let partial = &summary.series[0].metrics["y.z"];
    assert_eq!((partial.mean, &partial.per_seed), (None, &vec![None, None, Some(1.0)]));
    assert!(
        !summary.series[0].metrics.contains_key("x.20.bytes") && !summary.series[1].metrics.contains_key("x.20.way")
    );

    let claim = |bounds: &str| {
        let text =
            format!("[[expect]]\nsay = 'ten times'\nmetric = 'x.20.us'\nof = 'b'\nthan = 'a'\nratio = {bounds}\n");
        let read = Expectations::parse_of_programs(&text, "expect.toml").unwrap_or_else(|error| panic!("{error}"));
        read.check_names(&[(None, "a"), (None, "b")], &Footprints::default()).unwrap_or_else(|error| panic!("{error}"));
        check(&read, &summary).remove(0)
    };
    assert_eq!(claim("{ near = 10, tolerance = 0.1 }").outcome, Outcome::Reproduced);
    assert!(claim("{ at-least = 11 }").fails);
}

#[test]
fn claims_about_programs_know_nothing_of_simulations() {
    let refused = |text: &str| Expectations::parse_of_programs(text, "expect.toml").expect_err(text).to_string();
    let claim =
        |metric: &str| format!("[[expect]]\nsay = 'x'\nmetric = '{metric}'\nof = 'a'\nvalue = {{ at-least = 1 }}\n");
    assert!(refused(&format!("real = true\n{}", claim("x.us"))).contains("`real` is about simulations"));
    assert!(refused(&format!("max-seeds = 20\n{}", claim("x.us"))).contains("`max-seeds` is about simulations"));
    assert!(refused(&claim("us")).contains("expected figure and field, as in \"incast.p99_us\""));
}

#[test]
fn a_claim_about_what_no_run_has_printed_is_not_reproduced() {
    let programs = programs("[series]\na = ['a']\n");
    let line = "{\"figure\": \"x\", \"us\": 1}";
    let summary = printed(&programs, &[[line; 3]]).summary(&programs, 0.0, 0.0, "1");
    let text = "[[expect]]\nsay = 'x'\nmetric = 'x.ms'\nof = 'a'\nvalue = { at-least = 1 }\n";
    let read = Expectations::parse_of_programs(text, "expect.toml").unwrap_or_else(|error| panic!("{error}"));
    assert!(check(&read, &summary)[0].fails);
}

#[test]
fn what_programs_print_is_checked() {
    let programs = programs("[series]\na = ['a']\n");
    let refused = |output: &str| Printed::default().add(&programs, 0, 0, output).expect_err(output);
    assert!(refused("").contains("it printed no numbers"));
    assert!(refused("{\"figure\": \"x\", \"way\": \"b\"}").contains("it printed no numbers"));
    assert!(refused("\nready\n").contains("line 2 of its output is no object of JSON"));
    assert!(refused("{\"us\": 1}").contains("line 1 of its output has no field \"figure\""));
    let twice = "{\"figure\": \"x\", \"us\": 1}\n{\"figure\": \"x\", \"us\": 2}\n";
    assert!(refused(twice).contains("line 2 of its output has x.us again: `apart` in program.toml"));
}
