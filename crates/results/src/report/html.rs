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

/// Returns the width of chart `at` of `count` drawn in pairs: a last chart without a partner is twice as wide.
pub(super) fn width_of(at: usize, count: usize) -> f64 {
    if at + 1 == count && count % 2 == 1 { 1040.0 } else { 510.0 }
}

/// Returns a legend with one entry for each series name, which shows or hides the series of that name in all cases.
pub(super) fn legend(study: &Study<'_>) -> String {
    let mut keys = String::new();
    for first in study.firsts() {
        let (ink, dash) = (study.inks[first], study.dash(first));
        keys += &format!(
            "<button type=\"button\" class=\"key\" data-series=\"{ink}\" aria-pressed=\"true\">\
             <svg width=\"26\" height=\"10\" aria-hidden=\"true\"><path d=\"M1 5H25\" class=\"ink{ink}\"{dash}/></svg>{}</button>",
            escape(study.names[ink])
        );
    }
    format!("<div class=\"legend\">{keys}<span class=\"note\">{}</span></div>", study.about_dashes())
}
