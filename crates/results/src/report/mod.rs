//! `report.html`: one file that opens offline, in light and dark, on screen and on paper.
//!
//! Charts that a reader zooms and reads (curves, links over time) are data in the page, as JSON, and drawn by the
//! page's script, with uPlot (`vendor/`); charts that do not move are SVG, drawn here. Without a script, the values of
//! curves are in folded tables. Every curve has a few hundred points at most, whatever the study's size.

mod axis;
mod cases;
mod chart;
mod compare;
mod completion;
mod heat;
mod html;
mod lines;
mod links;
mod palette;
mod pauses;
mod provenance;
mod served;
mod split;
mod sweep;
mod tables;
mod times;
mod trouble;

pub(crate) use html::escape;
pub use served::{ComparedResults, render_side_by_side, with_tables};

use std::cell::RefCell;

use serde_json::{Value, json};

use crate::{Answer, Fabric, PointSummary, SeriesSummary, Summary};

/// The input of a report.
pub struct ReportInput<'a> {
    /// The study's summary.
    pub summary: &'a Summary,
    /// The study's points, in any order.
    pub points: &'a [PointSummary],
    /// Links over time; `None` if there are no tables of links and ports.
    pub fabric: Option<&'a Fabric>,
    /// The scenario with every default filled in, as TOML.
    pub scenario_toml: &'a str,
    /// The command that ran the study.
    pub command: &'a str,
}

/// Returns the report as one HTML document without references to anything outside the document.
pub fn render_report(input: &ReportInput<'_>) -> String {
    let summary = input.summary;
    let study = Study::new(input);
    let of_points = || {
        [
            cases::across(&study),
            tables::metrics(&study),
            split::split(&study),
            compare::ratios(&study),
            completion::times(&study),
            completion::by_size(&study),
            times::queues(&study),
            times::utilisation(&study),
            pauses::spread(&study),
            links::links(input.fabric),
            tables::drops(&study),
        ]
        .concat()
    };
    // A sweep has more points than anybody reads one by one.
    let sections = summary.sweep.as_ref().map_or_else(of_points, |grid| sweep::sweep(&study, grid));
    let sections = [sections, provenance::how(input)];
    // One pass from left to right, so that inserted text is never searched for further placeholders.
    let mut page = String::with_capacity(1 << 20);
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (mark, after) = after.split_once("}}").unwrap_or((after, ""));
        page += before;
        match mark {
            "style" => page += STYLE,
            "script" => page += SCRIPT,
            "uplot" => page.extend(["/*\n", UPLOT_LICENSE, "*/\n", UPLOT]),
            "uplot-style" => page += UPLOT_STYLE,
            "data" => page += &html::json_in_script(&json!({ "charts": study.charts.take(), "fabric": input.fabric })),
            "palette" => page += &palette::css(study.names.len()),
            "title" => page += &escape(&summary.title),
            "scenario" => page += &escape(&summary.scenario),
            "answer" => page += answer(summary.verdict.answer),
            "verdict" => page += &soften_intervals(&without_answer(summary)),
            "trouble" => page += &trouble::trouble(&study),
            "contents" => page += &contents(&sections),
            "sections" => sections.iter().for_each(|section| page += section),
            _ => {}
        }
        rest = after;
    }
    page + rest
}

const TEMPLATE: &str = include_str!("template.html");
pub(crate) const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(include_str!("script.js"), include_str!("fabric.js"));
const UPLOT: &str = include_str!("vendor/uplot.js");
const UPLOT_LICENSE: &str = include_str!("vendor/LICENSE");
const UPLOT_STYLE: &str = include_str!("vendor/uplot.css");

/// The study with each series' points. A series is identified by its index in the summary.
struct Study<'a> {
    summary: &'a Summary,
    /// Points of each series, in the order of seeds.
    points: Vec<Vec<&'a PointSummary>>,
    /// Names of the series, each once however many cases it runs in; the index of a name here is its ink.
    names: Vec<&'a str>,
    /// Ink of each series; series of one name share it.
    inks: Vec<usize>,
    /// Data of the charts so far, in their order in the page.
    charts: RefCell<Vec<Value>>,
}

/// The series of one case.
struct Case<'a> {
    /// Name of the case; `None` in a study without cases.
    name: Option<&'a str>,
    series: Vec<usize>,
}

impl<'a> Study<'a> {
    fn new(input: &ReportInput<'a>) -> Self {
        let of = |name: &str| {
            let mut points: Vec<_> = input.points.iter().filter(|point| point.series == name).collect();
            points.sort_by_key(|point| point.seed);
            points
        };
        let series = &input.summary.series;
        let points = series.iter().map(|series| of(&series.name)).collect();
        let mut names: Vec<&str> = Vec::new();
        let ink = |one: &'a SeriesSummary| {
            names.iter().position(|name| *name == one.series).unwrap_or_else(|| {
                names.push(&one.series);
                names.len() - 1
            })
        };
        let inks = series.iter().map(ink).collect();
        Self { summary: input.summary, points, names, inks, charts: RefCell::default() }
    }

    /// Returns the cases in order, each with its series.
    fn cases(&self) -> Vec<Case<'a>> {
        let of = |name: Option<&'a str>| {
            let series = self.summary.series.iter().enumerate();
            let series = series.filter(|(_, series)| series.case.as_deref() == name).map(|(at, _)| at).collect();
            Case { name, series }
        };
        self.summary.cases().into_iter().map(of).collect()
    }

    /// Returns the first series of each ink, which represents all series of its name in legends.
    fn firsts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.names.len()).filter_map(|ink| self.inks.iter().position(|&other| other == ink))
    }

    /// Returns the first seed's point of each series that has points, for plots over time.
    fn first_points(&self) -> impl Iterator<Item = (usize, &'a PointSummary)> + '_ {
        self.points.iter().enumerate().filter_map(|(at, points)| points.first().map(|&point| (at, point)))
    }

    /// Returns the lengths of strokes and gaps of a series' curves; empty if they are solid.
    fn dash(&self, series: usize) -> &'static str {
        palette::dash(self.inks[series], self.summary.series[series].traits.pfc)
    }

    /// Returns an explanation of the dashes.
    fn about_dashes(&self) -> &'static str {
        if palette::repeats(self.names.len()) {
            "dashed: PFC on; dotted, or dotted and dashed with PFC on: further series of a colour"
        } else {
            "dashed: PFC on"
        }
    }
}

/// Returns links to the sections.
fn contents(sections: &[String]) -> String {
    let of_one = |section: &str| {
        let (id, rest) = section.split_once("\"><h2>")?;
        Some(format!("<a href=\"#{id}\">{}</a>", rest.split_once("</h2>")?.0))
    };
    sections.iter().flat_map(|html| html.split("<section id=\"").skip(1)).filter_map(of_one).collect()
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::No => "No",
        Answer::Yes => "Yes",
        Answer::Depends => "It depends",
        Answer::Undecided => "Not decided",
        Answer::NotPut => "Not tested",
        Answer::NotAsked => "Not asked",
    }
}

/// Returns the sentence as HTML, with intervals set in smaller type.
fn soften_intervals(sentence: &str) -> String {
    let mut html = String::new();
    for (at, part) in escape(sentence).split("(95 % CI ").enumerate() {
        match part.split_once(')').filter(|_| at > 0) {
            Some((interval, rest)) => html += &format!("<small>(95 % CI {interval})</small>{rest}"),
            None => html += part,
        }
    }
    html
}

/// Returns the sentence without its leading answer, which the headline shows already.
fn without_answer(summary: &Summary) -> String {
    let sentence = &summary.verdict.sentence;
    let after = sentence.strip_prefix(answer(summary.verdict.answer));
    let rest = after.and_then(|after| after.strip_prefix(": ").or_else(|| after.strip_prefix(", ")));
    let rest = rest.unwrap_or(sentence);
    // The rest is now a sentence: a metric's title gets a capital letter, names of series and cases stay unchanged.
    let names = summary.series.iter().map(|series| series.name.as_str());
    let is_name = names.chain(summary.cases().into_iter().flatten()).any(|name| rest.starts_with(name));
    match rest.chars().next().filter(|_| !is_name) {
        Some(first) => first.to_uppercase().chain(rest.chars().skip(1)).collect(),
        None => rest.to_owned(),
    }
}
