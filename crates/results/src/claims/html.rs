//! `claims.html`: one file that opens offline.

use std::fmt::Write;

use super::paper::{Paper, papers};
use super::{CheckedFigure, ClaimsInput, RULE, grid, ours, range, sentence, why};
use crate::number::digits;
use crate::report::{STYLE, escape};
use crate::{Bound, ClaimVerdict, NotRun, Outcome};

/// Returns the tables of claims as one HTML document without references to anything outside the document.
pub fn render_claims_html(input: &ClaimsInput<'_>) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Claims</title>\n";
    let _ = write!(page, "<style>\n{STYLE}\n{OWN_STYLE}</style>\n</head>\n<body>\n<main>\n<header>");
    let minutes = digits(input.wall_s / 60.0, 2);
    let _ = write!(page, "<h1>Claims</h1><p class=\"scenario\">{minutes} minutes on {} threads</p>", input.threads);
    let _ = writeln!(page, "<p class=\"lead\">{}</p></header>", escape(RULE));
    for paper in papers(input.figures) {
        page += &section(&paper);
    }
    let (command, version) = (escape(input.command), escape(input.version));
    let _ =
        write!(page, "<p class=\"note\">Selvedge {version}: <code>{command}</code></p>\n</main>\n</body>\n</html>\n");
    page
}

fn section(paper: &Paper<'_>) -> String {
    let mut out = format!(
        "<section id=\"{name}\"><h2>{name}</h2><p class=\"lead\">{} {}</p>{}",
        escape(&paper.in_one_line()),
        escape(&paper.effort()),
        overview(paper),
        name = escape(&paper.name),
    );
    paper.figures.iter().for_each(|figure| out += &one(figure, paper));
    out + "</section>\n"
}

fn overview(paper: &Paper<'_>) -> String {
    let mut table = String::from(
        "<div class=\"scroll\"><table><thead><tr><th>figure</th><th></th><th class=\"n\">reproduced</th>\
         <th class=\"n\">by construction</th><th class=\"n\">direction only</th><th class=\"n\">not</th><th class=\"n\">runs</th><th class=\"n\">CPU s</th>\
         </tr></thead><tbody>",
    );
    for &figure in &paper.figures {
        let of = |outcome| figure.count(outcome);
        let _ = write!(
            table,
            "<tr><td><a href=\"#{}\">{}</a></td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.0}</td></tr>",
            escape(&paper.anchor(figure)),
            escape(figure.name()),
            escape(&figure.title),
            of(Outcome::Reproduced),
            of(Outcome::ByConstruction),
            of(Outcome::DirectionOnly),
            of(Outcome::NotReproduced),
            figure.runs,
            figure.cpu_s,
        );
    }
    table + "</tbody></table></div>\n"
}

fn one(figure: &CheckedFigure, paper: &Paper<'_>) -> String {
    let mut out = format!(
        "<article id=\"{}\"><h3>{} {}</h3><p class=\"lead\">{}. {} runs with {} seeds.</p>",
        escape(&paper.anchor(figure)),
        escape(&paper.name),
        escape(figure.name()),
        escape(&figure.title),
        figure.runs,
        figure.seeds,
    );
    if !figure.claims.is_empty() {
        out += "<div class=\"scroll\"><table><thead><tr><th>claim</th><th>paper</th><th>ours</th><th></th><th>verdict</th>\
                </tr></thead><tbody>";
        figure.claims.iter().for_each(|claim| out += &row(claim));
        out += "</tbody></table></div>";
    }
    let explanations = why::explanations(figure, paper);
    if !explanations.is_empty() {
        out += "<aside class=\"warnings\"><h2>Why not</h2><ul>";
        for (claims, reasons) in explanations {
            let reasons = if reasons.is_empty() { "not known yet".to_owned() } else { reasons.join(". ") };
            let _ = write!(out, "<li><b>{}.</b> {}.</li>", escape(&claims.join("; ")), escape(&reasons));
        }
        out += "</ul></aside>";
    }
    let constructions = why::constructions(figure);
    if !constructions.is_empty() {
        out += "<aside class=\"warnings\"><h2>By construction</h2><ul>";
        for (claims, reason) in constructions {
            let _ = write!(out, "<li><b>{}.</b> {}.</li>", escape(&claims.join("; ")), escape(&reason));
        }
        out += "</ul></aside>";
    }
    if !figure.not_run.is_empty() {
        out += "<h4>Not run, and counted nowhere</h4><div class=\"scroll\"><table><thead><tr><th>says</th><th>paper</th>\
                <th>why there is no run</th></tr></thead><tbody>";
        for NotRun { say, source, paper, because } in &figure.not_run {
            let _ = write!(
                out,
                "<tr><td>{}<br><small>{}</small></td><td>{}</td><td>{}</td></tr>",
                escape(say),
                escape(source),
                escape(paper.as_deref().unwrap_or("-")),
                escape(because)
            );
        }
        out += "</tbody></table></div>";
    }
    for grid in grid::grids(&figure.measured) {
        let _ = write!(out, "<h4>{}</h4><div class=\"scroll\"><table><thead><tr><th></th>", escape(grid.say));
        grid.columns.iter().for_each(|column| {
            let _ = write!(out, "<th class=\"n\">{}</th>", escape(column));
        });
        out += "</tr></thead><tbody>";
        for (label, cells) in grid.rows {
            let cells: String = cells.iter().map(|cell| format!("<td class=\"n\">{}</td>", escape(cell))).collect();
            let _ = write!(out, "<tr><td>{}</td>{cells}</tr>", escape(&label));
        }
        out += "</tbody></table></div>";
    }
    out + "</article>\n"
}

fn row(claim: &ClaimVerdict) -> String {
    let class = match claim.outcome {
        Outcome::Reproduced => "yes",
        Outcome::ByConstruction => "given",
        Outcome::DirectionOnly => "part",
        Outcome::NotReproduced => "no",
        Outcome::NotJudged => "open",
    };
    let source = claim.source.as_ref().map_or(String::new(), |source| format!("<br><small>{}</small>", escape(source)));
    format!(
        "<tr><td>{}{source}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"{class}\">{}</td></tr>",
        escape(&sentence(claim)),
        escape(&range(claim)),
        escape(&ours(claim.mean, claim.ci95, claim.bound)),
        picture(claim),
        claim.outcome,
    )
}

/// Returns a picture on a logarithmic axis: the accepted range as a bar, the mean as a dot with its interval.
fn picture(claim: &ClaimVerdict) -> String {
    let Some(mean) = claim.mean.filter(|&mean| mean > 0.0) else { return String::new() };
    let [low, high] = claim.ci95.unwrap_or([mean, mean]);
    // A bound is open on one side: the interval extends to the edge of the picture.
    let [from, to] = Bound::opened(claim.bound, [low, high]);
    let known = [
        claim.accepted[0],
        claim.accepted[1],
        Some(mean),
        Some(low),
        Some(high),
        claim.quantity.than.as_ref().map(|_| 1.0),
    ];
    let known = || known.into_iter().flatten().filter(|&value| value > 0.0).map(f64::ln);
    let (first, last) = (known().fold(f64::INFINITY, f64::min) - 0.1, known().fold(f64::NEG_INFINITY, f64::max) + 0.1);
    let x = |value: f64| (value.max(1e-9).ln() - first).clamp(0.0, last - first) / (last - first) * WIDTH;
    let bar = [claim.accepted[0].map_or(0.0, x), claim.accepted[1].map_or(WIDTH, x)];
    let one = if first < 0.0 && last > 0.0 {
        format!("<path class=\"grid\" d=\"M{0:.1} 0V16\"/>", x(1.0))
    } else {
        String::new()
    };
    format!(
        "<svg class=\"range\" viewBox=\"0 0 {WIDTH} 16\" aria-hidden=\"true\"><rect class=\"accepted\" x=\"{:.1}\" y=\"3\" width=\"{:.1}\" height=\"10\"/>{one}\
         <path class=\"whisker\" d=\"M{:.1} 8H{:.1}\"/><circle class=\"mean\" cx=\"{:.1}\" cy=\"8\" r=\"3.4\"/></svg>",
        bar[0],
        (bar[1] - bar[0]).max(1.0),
        x(from),
        x(to),
        x(mean),
    )
}

const WIDTH: f64 = 150.0;
const OWN_STYLE: &str = "\
main { padding-top: 40px; }
.range { width: 150px; height: 16px; }
.accepted { fill: var(--line); }
.yes, .given, .part, .no, .open { white-space: nowrap; font-weight: 600; }
.yes { color: var(--accent); }
.part { color: var(--warn); }
.no { color: var(--stop); }
td a { color: var(--accent); }
";
