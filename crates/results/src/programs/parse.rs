//! Parser of `program.toml`.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::expect::{ExpectError, position};

/// Programs that measure, and how they are run: the content of `program.toml`.
#[derive(Clone, PartialEq, Debug)]
pub struct Programs {
    /// Title of the figure.
    pub title: String,
    /// Number of runs of each series, 1 to 1000.
    pub runs: usize,
    /// Time that a run takes, about, in seconds.
    pub seconds: f64,
    /// Programs that must be installed.
    pub needs: Vec<String>,
    /// Whether programs run by `selvedge verbs`, for which Selvedge's RDMA libraries must be there.
    pub verbs: bool,
    /// Fields that tell lines of one figure apart.
    pub apart: Vec<String>,
    /// Each series in each case: cases outermost, in the order of names.
    pub commands: Vec<Command>,
}

/// Command of one series in one case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Name of the series.
    pub series: String,
    /// Name of the case, if there are cases.
    pub case: Option<String>,
    /// Program and arguments; at least one word.
    pub words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    title: String,
    runs: Spanned<usize>,
    seconds: f64,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    verbs: bool,
    #[serde(default)]
    apart: Vec<String>,
    series: BTreeMap<String, Spanned<Vec<String>>>,
    #[serde(default)]
    cases: BTreeMap<String, BTreeMap<String, String>>,
}

impl Programs {
    /// Parses `text`, the content of `file`; the name is used in messages.
    ///
    /// # Errors
    /// Returns an error with file, line and column when the text is not TOML, a key is unknown or missing, there is no
    /// series, or a command has no words or a word that its case does not know.
    pub fn parse(text: &str, file: &str) -> Result<Self, ExpectError> {
        let fail = |at: Option<Range<usize>>, what: String| {
            let (line, column) = position(text, at.map_or(0, |span| span.start));
            ExpectError { file: file.into(), line, column, what }
        };
        let File { title, runs, seconds, needs, verbs, apart, series, cases } =
            toml::from_str(text).map_err(|error| fail(error.span(), error.message().to_owned()))?;
        if !(1..=1_000).contains(runs.get_ref()) {
            return Err(fail(Some(runs.span()), format!("runs is from 1 to 1000, found {}", runs.get_ref())));
        }
        if !(seconds > 0.0 && seconds.is_finite()) {
            return Err(fail(None, format!("seconds is the time of a run, above 0, found {seconds}")));
        }
        if series.is_empty() {
            return Err(fail(None, "no series: expected [series] with a command for each".to_owned()));
        }
        let mut commands = Vec::new();
        let none = BTreeMap::new();
        let cases: Vec<(Option<&String>, &BTreeMap<String, String>)> = match cases.is_empty() {
            true => vec![(None, &none)],
            false => cases.iter().map(|(name, words)| (Some(name), words)).collect(),
        };
        for (case, known) in cases {
            for (name, words) in &series {
                let filled: Result<Vec<_>, _> = words.get_ref().iter().map(|word| fill(word, known)).collect();
                let filled = filled.map_err(|what| fail(Some(words.span()), what))?;
                if filled.is_empty() {
                    return Err(fail(Some(words.span()), format!("series \"{name}\" has no command")));
                }
                commands.push(Command { series: name.clone(), case: case.cloned(), words: filled });
            }
        }
        Ok(Self { title, runs: *runs.get_ref(), seconds, needs, verbs, apart, commands })
    }
}

/// Replaces each `{name}` by the case's word of this name. Names are lower-case letters, digits and hyphens: other
/// braces belong to the word, as in a shell's `${HOME}`.
fn fill(word: &str, known: &BTreeMap<String, String>) -> Result<String, String> {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
            filled.push('{');
            rest = after;
            continue;
        };
        filled += known.get(name).ok_or_else(|| {
            format!("\"{word}\" names {{{name}}}, which a case lacks: add it to each, as in {name} = \"...\"")
        })?;
        rest = after;
    }
    Ok(filled + rest)
}
