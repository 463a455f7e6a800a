//! The split of completion time: a bar for each series, divided into parts.

use std::fmt::Write;

use super::Study;
use super::html::{escape, section};
use crate::number::{self, Scale};
use crate::split::{Split, difference, per_cent};
use crate::{SeriesSummary, TimePart, Unit};

const WIDTH: f64 = 1040.0;
/// Minimum and maximum space for the names of series.
const LEFT: [f64; 2] = [60.0, 330.0];
/// Width of a letter of a series' name.
const LETTER: f64 = 8.0;
/// Space for the time to the right of a bar.
const RIGHT: f64 = 96.0;
const ROW: f64 = 30.0;
const BAR: f64 = 20.0;
/// Space for the name of a case above its bars.
const CASE: f64 = 26.0;
/// Smallest width of a part that has its share written on it.
const WIDE: f64 = 40.0;

/// Returns the bars and a table of their numbers; empty if flows were not sampled.
pub(super) fn split(study: &Study<'_>) -> String {
    let series = &study.summary.series;
    let splits: Vec<Option<Split>> = series.iter().map(Split::of).collect();
    let has = |part: TimePart| splits.iter().flatten().any(|split| split.parts.iter().any(|&(other, _)| other == part));
    let parts: Vec<TimePart> = TimePart::ALL.into_iter().filter(|&part| has(part)).collect();
    if parts.is_empty() {
        return String::new();
    }
    let looks: f64 = series.iter().map(|series| series.total(crate::metric::TIME_SAMPLES)).sum();
    let lead = format!(
        "What a measured flow spends on average, until it is complete or the run ends, by cause; the causes are those of \
         selvedge explain. A sample: {} looks at flows under way, at moments chosen at random, each asking what the flow \
         waits for just then. Bars of a case have one scale.",
        number::fixed(looks, 0)
    );
    let difference = difference(study.summary).map_or(String::new(), |text| format!("<p>{}</p>", escape(&text)));
    let body = format!(
        "{}<div class=\"scroll\">{}</div>{difference}<details><summary>The numbers</summary>{}</details>",
        legend(&parts),
        bars(series, &splits),
        table(study, &parts)
    );
    section("time", "Where completion time goes", &lead, &body)
}

fn legend(parts: &[TimePart]) -> String {
    let mut keys = String::new();
    for part in parts {
        let name = part.name();
        let _ = write!(
            keys,
            "<span class=\"key\"><svg width=\"12\" height=\"12\" aria-hidden=\"true\" style=\"width:12px\">\
             <rect class=\"time-{name}\" width=\"12\" height=\"12\" rx=\"2\"/></svg>{name}</span>"
        );
    }
    format!("<div class=\"legend\">{keys}</div>")
}

/// Returns all bars, case by case; each case has a scale of its own.
fn bars(series: &[SeriesSummary], splits: &[Option<Split>]) -> String {
    let name = |series: &SeriesSummary| if series.case.is_some() { series.series.clone() } else { series.name.clone() };
    let longest = series.iter().map(|series| name(series).chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * LETTER + 14.0).clamp(LEFT[0], LEFT[1]);
    let (mut out, mut y, mut first) = (String::new(), 0.0, 0);
    for case in series.chunk_by(|a, b| a.case == b.case) {
        let splits = &splits[first..first + case.len()];
        first += case.len();
        if let Some(title) = &case[0].case {
            let _ = write!(out, "<text class=\"title\" x=\"0\" y=\"{:.1}\">{}</text>", y + CASE - 9.0, escape(title));
            y += CASE;
        }
        let largest = splits.iter().flatten().map(|split| split.total).fold(f64::MIN_POSITIVE, f64::max);
        let scale = Scale::of(Unit::Us, largest);
        for (one, split) in case.iter().zip(splits) {
            let _ = write!(
                out,
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 10.0,
                y + BAR - 5.0,
                escape(&name(one))
            );
            let width = |us: f64| us / largest * (WIDTH - left - RIGHT);
            let mut x = left;
            for &(part, us) in split.iter().flat_map(|split| &split.parts) {
                let share = per_cent(us / split.as_ref().map_or(us, |split| split.total));
                let (time, w) = (number::digits(us * scale.factor, 3), width(us));
                let (name, unit) = (part.name(), scale.unit);
                let _ = write!(
                    out,
                    "<rect class=\"time-{name}\" x=\"{x:.2}\" y=\"{y:.1}\" width=\"{w:.2}\" height=\"{BAR}\">\
                     <title>{name}: {time} {unit}, {share}</title></rect>"
                );
                if w >= WIDE {
                    let _ = write!(
                        out,
                        "<text class=\"on-{name}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{share}</text>",
                        x + w / 2.0,
                        y + BAR - 6.0
                    );
                }
                x += w;
            }
            let total = split.as_ref().map_or("–".into(), |split| {
                format!("{} {}", number::bounded(Some(split.total * scale.factor), split.bound, 3), scale.unit)
            });
            let _ = write!(out, "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{total}</text>", x + 7.0, y + BAR - 5.0);
            y += ROW;
        }
    }
    format!(
        "<svg class=\"split wide\" viewBox=\"0 0 {WIDTH} {y:.0}\" role=\"img\" \
         aria-label=\"Where completion time goes, series by series\">{out}</svg>"
    )
}

/// Returns the table of the parts: series as rows, parts as columns.
fn table(study: &Study<'_>, parts: &[TimePart]) -> String {
    let series = &study.summary.series;
    let largest = series.iter().filter_map(Split::of).map(|split| split.total).fold(0.0, f64::max);
    let scale = Scale::of(Unit::Us, largest);
    let mut out = format!("<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>{}</th>", scale.unit);
    for part in parts {
        let _ = write!(out, "<th class=\"n\">{}</th>", part.name());
    }
    out += "<th class=\"n\">all</th></tr></thead><tbody>";
    for (at, one) in series.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><th><i class=\"dot\" style=\"background:var(--s{})\"></i>{}</th>",
            study.inks[at],
            escape(&one.name)
        );
        for &part in parts {
            let text = one.time_of(part).map_or("–".into(), |estimate| number::estimate(estimate, scale));
            let text = text.replace(" ± ", " <small>± ");
            let end = if text.contains("<small>") { "</small>" } else { "" };
            let _ = write!(out, "<td class=\"n\">{text}{end}</td>");
        }
        let all = Split::of(one)
            .map_or("–".into(), |split| number::bounded(Some(split.total * scale.factor), split.bound, 4));
        let _ = write!(out, "<td class=\"n\">{all}</td></tr>");
    }
    out + "</tbody></table></div>"
}
