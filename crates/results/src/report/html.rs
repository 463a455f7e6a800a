//! Small pieces of HTML.

use super::Study;

/// Returns text escaped for use between tags and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            _ => safe.push(c),
        }
    }
    safe
}

/// Returns prose as HTML; text between backticks becomes code.
pub(super) fn prose(text: &str) -> String {
    let safe = escape(text);
    let parts: Vec<&str> = safe.split('`').collect();
    // A backtick without a counterpart stays a backtick.
    if parts.len().is_multiple_of(2) {
        return safe;
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => (*part).to_owned(),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Returns a section with its heading, a lead and a body.
pub(super) fn section(id: &str, title: &str, lead: &str, body: &str) -> String {
    format!("<section id=\"{id}\"><h2>{}</h2><p class=\"lead\">{}</p>{body}</section>\n", escape(title), escape(lead))
}

/// Returns a chart with its caption.
pub(super) fn figure(caption: &str, chart: &str) -> String {
    format!("<figure><figcaption>{}</figcaption>{chart}</figure>", escape(caption))
}

/// Returns JSON for a script element, which `</script>` in a text does not end.
pub(super) fn json_in_script(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Returns the width of chart `at` of `count` drawn in pairs: a last chart without a partner is twice as wide.
pub(super) fn width_of(at: usize, count: usize) -> f64 {
    if at + 1 == count && count % 2 == 1 { 1040.0 } else { 510.0 }
}

/// Returns a cell with a number as text, and the number itself, by which tables are sorted.
pub(super) fn number_cell(text: &str, value: Option<f64>) -> String {
    let value = value.map_or(String::new(), |value| format!(" data-v=\"{value}\""));
    format!("<td class=\"n\"{value}>{text}</td>")
}

/// A number as text, and the number itself.
pub(super) type Value = (String, f64);

/// Returns a folded table with the values of charts: one row for each of `rows`, which are series with their names.
pub(super) fn values(
    study: &Study<'_>,
    caption: &str,
    heads: &[String],
    rows: &[(usize, Vec<Option<Value>>)],
) -> String {
    let heads: String = heads.iter().map(|head| format!("<th class=\"n\">{}</th>", escape(head))).collect();
    let mut body = String::new();
    for (series, values) in rows {
        let name = escape(&study.summary.series[*series].name);
        body += &format!(
            "<tr><th scope=\"row\"><i class=\"dot\" style=\"background:var(--s{})\"></i>{name}</th>",
            study.inks[*series]
        );
        for value in values {
            body += &value
                .as_ref()
                .map_or("<td class=\"n\">–</td>".into(), |(text, value)| number_cell(text, Some(*value)));
        }
        body += "</tr>";
    }
    format!(
        "<details><summary>Values: {}</summary><div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>series</th>{heads}</tr>\
         </thead><tbody>{body}</tbody></table></div></details>",
        escape(caption)
    )
}

/// Returns a legend with one entry for each series name, which shows the series of that name alone, in all cases.
pub(super) fn legend(study: &Study<'_>) -> String {
    let mut keys = String::new();
    for first in study.firsts() {
        let (ink, dash) = (study.inks[first], study.dash(first));
        keys += &format!(
            "<button type=\"button\" class=\"key\" data-series=\"{ink}\" aria-pressed=\"true\">\
             <svg width=\"26\" height=\"10\" aria-hidden=\"true\">\
             <path d=\"M1 5H25\" class=\"ink{ink}\" stroke-dasharray=\"{dash}\"/></svg>{}</button>",
            escape(study.names[ink])
        );
    }
    format!(
        "<div class=\"legend\" role=\"group\" aria-label=\"Series\">{keys}<span class=\"note\">{}</span></div>",
        study.about_dashes()
    )
}
