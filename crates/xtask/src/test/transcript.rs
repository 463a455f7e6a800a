//! Output of `cargo test -- --show-output`.

/// State after some lines of the output.
#[derive(Default)]
pub(crate) struct Transcript {
    /// Number of tests that passed and skipped nothing.
    pub(crate) passed: usize,
    /// Names, "suite test", of the tests that failed, and of suites that did not end.
    pub(crate) failed: Vec<String>,
    pub(crate) skipped: Vec<Skip>,
    /// Name of the running binary: "selvedge-wire tests/headers.rs".
    suite: String,
    /// Whether the suite has begun but not reported its result.
    open: bool,
    /// Test whose captured output is being read.
    test: Option<String>,
    section: Section,
}

/// Check that a test could not do.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Skip {
    pub(crate) suite: String,
    pub(crate) test: String,
    pub(crate) reason: String,
}

/// Whether a line is shown to the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Yes,
    No,
}

/// Parts of a suite's report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Section {
    #[default]
    Progress,
    /// Captured output of tests that passed.
    Successes,
    /// Captured output of tests that failed.
    Failures,
    /// Names of the failed tests.
    FailureNames,
}

impl Transcript {
    /// Processes the next line of the output, and returns whether to show it.
    pub(crate) fn read(&mut self, line: &str) -> Shown {
        if let Some(suite) = heading(line) {
            self.close();
            self.suite = suite;
            self.open = true;
            self.section = Section::Progress;
            return Shown::Yes;
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count(counts, "passed");
            self.open = false;
            self.section = Section::Progress;
            return Shown::Yes;
        }
        match (line, self.section) {
            ("successes:", _) => (self.section, self.test) = (Section::Successes, None),
            ("failures:", Section::Failures) => self.section = Section::FailureNames,
            ("failures:", _) => (self.section, self.test) = (Section::Failures, None),
            _ => return self.read_body(line),
        }
        if self.section == Section::Successes { Shown::No } else { Shown::Yes }
    }

    fn read_body(&mut self, line: &str) -> Shown {
        if let Some(test) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")) {
            self.test = Some(test.to_owned());
        } else if let Some(reason) = line.trim_start().strip_prefix("skipped: ")
            && self.section != Section::Failures
        {
            let test = self.test.clone().unwrap_or_else(|| "(unnamed)".to_owned());
            self.skip(test, reason);
        }
        match self.section {
            Section::Successes => Shown::No,
            Section::Failures => Shown::Yes,
            Section::FailureNames => {
                if let Some(test) = line.strip_prefix("    ") {
                    self.failed.push(format!("{} {test}", self.suite));
                }
                Shown::Yes
            }
            Section::Progress => self.read_progress(line),
        }
    }

    fn read_progress(&mut self, line: &str) -> Shown {
        let Some((test, outcome)) = line.strip_prefix("test ").and_then(|line| line.rsplit_once(" ... ")) else {
            let noise = line.is_empty() || line.starts_with("running ");
            return if noise { Shown::No } else { Shown::Yes };
        };
        if let Some(reason) = outcome.strip_prefix("ignored") {
            let reason = reason.strip_prefix(", ").unwrap_or("marked #[ignore]");
            self.skip(test.to_owned(), reason);
            // The suite's result counts a skipped test as passed; skipped tests are subtracted at the end.
            self.passed += 1;
        }
        if outcome == "FAILED" { Shown::Yes } else { Shown::No }
    }

    fn skip(&mut self, test: String, reason: &str) {
        self.skipped.push(Skip { suite: self.suite.clone(), test, reason: reason.to_owned() });
    }

    /// Ends a suite. A suite that did not report has crashed, or was never built.
    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.failed.push(format!("{} did not come to its end", self.suite));
        }
    }

    /// Returns the completed transcript. Unless `success`, cargo's own result, a failure is listed in it.
    pub(crate) fn finish(mut self, success: bool) -> Self {
        self.close();
        if !success && self.failed.is_empty() {
            self.failed.push("cargo test: see above".to_owned());
        }
        self.passed = self.passed.saturating_sub(self.skipped_tests());
        self
    }

    /// Returns the number of tests that skipped something.
    pub(crate) fn skipped_tests(&self) -> usize {
        let mut tests: Vec<_> = self.skipped.iter().map(|skip| (&skip.suite, &skip.test)).collect();
        tests.sort_unstable();
        tests.dedup();
        tests.len()
    }
}

/// Returns the suite that cargo announces: "Running tests/headers.rs (target/debug/deps/headers-1f)" or "Doc-tests
/// selvedge_units".
fn heading(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{name} (documentation)"));
    }
    let (source, binary) = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once(" (")?;
    let binary = binary.rsplit(['/', '\\']).next()?.rsplit_once('-')?.0;
    Some(format!("{binary} ({})", source.trim_start_matches("unittests ")))
}

/// Returns the number before `what` in "ok. 5 passed; 0 failed; ...".
fn count(counts: &str, what: &str) -> usize {
    let words: Vec<&str> = counts.split([' ', ';']).collect();
    let pair = words.windows(2).find(|pair| pair[1] == what);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(text: &str) -> Transcript {
        let mut transcript = Transcript::default();
        for line in text.lines() {
            transcript.read(line);
        }
        transcript
    }

    #[test]
    fn a_test_that_says_skipped_is_not_counted_as_passed() {
        let read = transcript(
            "     Running tests/headers.rs (target/debug/deps/headers-1f2e)\n\
             \n\
             running 3 tests\n\
             test absent ... ok\n\
             test present ... ok\n\
             test slow ... ignored, takes an hour\n\
             \n\
             successes:\n\
             \n\
             ---- absent stdout ----\n\
             skipped: a.pcap cannot be read\n\
             skipped: b.pcap cannot be read\n\
             \n\
             successes:\n\
             \x20   absent\n\
             \x20   present\n\
             \n\
             test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        )
        .finish(true);
        assert_eq!((read.passed, read.failed.len(), read.skipped_tests()), (1, 0, 2));
        let of = |test: &str, reason: &str| Skip {
            suite: "headers (tests/headers.rs)".into(),
            test: test.into(),
            reason: reason.into(),
        };
        assert_eq!(
            read.skipped,
            [of("slow", "takes an hour"), of("absent", "a.pcap cannot be read"), of("absent", "b.pcap cannot be read")]
        );
    }

    #[test]
    fn failures_are_named_once_and_shown() {
        let mut read = transcript(
            "   Doc-tests selvedge_units\n\
             running 2 tests\n\
             test one ... FAILED\n\
             test two ... ok\n\
             failures:\n\
             \n\
             ---- one stdout ----\n",
        );
        assert_eq!(read.read("skipped: half of it"), Shown::Yes);
        for line in [
            "",
            "failures:",
            "    one",
            "",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered",
        ] {
            read.read(line);
        }
        let read = read.finish(false);
        assert_eq!((read.passed, read.skipped_tests()), (1, 0));
        assert_eq!(read.failed, ["selvedge_units (documentation) one"]);
    }

    #[test]
    fn a_suite_without_result_and_a_build_that_fails_are_failures() {
        let crashed = "     Running unittests src/lib.rs (target/debug/deps/selvedge_sim-0a)\nrunning 1 test\n";
        assert_eq!(transcript(crashed).finish(false).failed, ["selvedge_sim (src/lib.rs) did not come to its end"]);
        assert_eq!(transcript("error[E0433]: cannot find").finish(false).failed.len(), 1);
        assert_eq!(transcript("").finish(true).failed.len(), 0);
    }
}
