//! Command `cargo xtask bless`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, ensure};
use clap::Args;

use crate::command::{cargo, run};
use crate::workspace::{files, read};

/// Variable that makes `expect-test` write committed texts instead of comparing with them.
pub(crate) const UPDATE: &str = "UPDATE_EXPECT";

#[derive(Args)]
pub(crate) struct Options {
    /// Only the texts of these crates, as in "cli" or "scenario" [default: all]
    crates: Vec<String>,
}

/// Writes the texts that tests compare with: runs the tests that call a macro of `expect-test`, and no others.
pub(crate) fn bless(options: &Options) -> Result<()> {
    let mut tests: BTreeMap<Target, Vec<String>> = BTreeMap::new();
    for path in files()?.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let Some((target, modules)) = target(path) else { continue };
        let source = read(path)?;
        if has_committed_texts(&source) && (options.crates.is_empty() || options.crates.contains(&target.folder)) {
            let inner = if source.contains("\nmod tests {") { "tests::" } else { "" };
            let names = test_names(&source).map(|name| format!("{modules}{inner}{name}"));
            tests.entry(target).or_default().extend(names);
        }
    }
    ensure!(!tests.is_empty(), "no test of {} compares with a committed text", options.crates.join(", "));
    // As part of the workspace, so that nothing is built twice; names are exact, whichever program has them.
    let mut test = cargo(["test", "--workspace"]);
    let programs: BTreeSet<_> = tests.keys().map(|target| target.test.as_deref()).collect();
    for program in programs {
        match program {
            Some(name) => test.args(["--test", name]),
            None => test.args(["--lib", "--bins"]),
        };
    }
    test.args(["--", "--exact"]).args(tests.values().flatten()).env(UPDATE, "1");
    run(&mut test)
}

/// Test program that cargo builds.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Target {
    /// Folder of the crate in crates/.
    folder: String,
    /// Name of the integration test; `None` for the library's own tests.
    test: Option<String>,
}

/// Returns the test program that contains a source file, and the beginning of the names of the file's tests.
fn target(path: &Path) -> Option<(Target, String)> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let (folder, kind, modules) = match parts[..] {
        // This file names the macros.
        ["crates", "xtask", ..] => return None,
        ["crates", folder, kind @ ("src" | "tests"), ref modules @ ..] => (folder, kind, modules),
        _ => return None,
    };
    let mut modules: Vec<&str> = modules.iter().map(|module| module.trim_end_matches(".rs")).collect();
    let test = if kind == "tests" {
        let test = modules.remove(0);
        Some(test.to_owned())
    } else {
        None
    };
    modules.retain(|module| !["main", "mod", "lib"].contains(module));
    let prefix = modules.iter().map(|module| format!("{module}::")).collect();
    Some((Target { folder: folder.to_owned(), test }, prefix))
}

/// Returns whether a source file compares with texts that `expect-test` can write.
fn has_committed_texts(source: &str) -> bool {
    ["expect_file!", "expect!"].iter().any(|name| source.contains(&format!("{name}[")))
}

/// Returns the names of the test functions in a source file that contain such a macro.
fn test_names(source: &str) -> impl Iterator<Item = &str> {
    let functions = source.split("#[test]\n").skip(1).filter(|rest| has_committed_texts(rest));
    let names = functions.filter_map(|rest| rest.split_once("fn ")?.1.split_once('('));
    names.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_run_by_the_program_that_contains_it() {
        let named = |path: &str| target(Path::new(path)).map(|(target, prefix)| (target.folder, target.test, prefix));
        let expected = |folder: &str, test: Option<&str>, prefix: &str| {
            Some((folder.to_owned(), test.map(ToOwned::to_owned), prefix.to_owned()))
        };
        assert_eq!(named("crates/scenario/src/tests/messages.rs"), expected("scenario", None, "tests::messages::"));
        assert_eq!(named("crates/cli/tests/bad_input.rs"), expected("cli", Some("bad_input"), ""));
        assert_eq!(named("crates/cli/tests/cli/main.rs"), expected("cli", Some("cli"), ""));
        assert_eq!(named("crates/sim/tests/trust/determinism.rs"), expected("sim", Some("trust"), "determinism::"));
        assert_eq!(named("crates/nic/src/a/mod.rs"), expected("nic", None, "a::"));
        assert_eq!(named("fuzz/src/a.rs"), None);
    }

    #[test]
    fn macros_and_tests_are_recognised() {
        let source = "#[test]\nfn a() {\n    expect![\"\"];\n}\nfn b() {}\n    #[test]\n    #[cfg(unix)]\n    fn c() {\n    \
                      expect_file![\"c\"];\n}\n#[test]\nfn d() {}\n";
        assert!(test_names(source).eq(["a", "c"]));
        assert!(has_committed_texts("expect_file![\"a.txt\"].assert_eq(text)"));
        assert!(has_committed_texts("expect![[\"a\"]]"));
        assert!(!has_committed_texts("use expect_test::expect;\nx.expect(\"[\")"));
    }
}
