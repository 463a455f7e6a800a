//! Text broken into lines, which SVG does not do by itself.

use selvedge_units::words;

use super::html::escape;

/// Breaks `text` into lines of at most `width` characters; only words that are longer are cut.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let cut = |line: String| {
        let characters: Vec<char> = line.chars().collect();
        characters.chunks(width).map(String::from_iter).collect::<Vec<_>>()
    };
    words::lines(text, width).into_iter().flat_map(cut).collect()
}

/// Returns one SVG text of several lines, the first at the height `y`.
pub(super) fn stack(lines: &[String], attributes: &str, x: f64, y: f64, leading: f64) -> String {
    let spans: String = lines
        .iter()
        .enumerate()
        .map(|(at, line)| format!("<tspan x=\"{x:.1}\" y=\"{:.1}\">{}</tspan>", y + at as f64 * leading, escape(line)))
        .collect();
    format!("<text {attributes}>{spans}</text>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_where_words_fit() {
        assert_eq!(wrap("60 % load, 240 KB buffers", 17), ["60 % load, 240 KB", "buffers"]);
        assert_eq!(wrap("roce+dcqcn+pfc / irn", 8), ["roce+dcq", "cn+pfc", "/ irn"]);
        assert_eq!(wrap("irn", 8), ["irn"]);
        assert!(wrap("", 8).is_empty());
    }
}
