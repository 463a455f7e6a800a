//! One colour ("ink") per name of a series, the same in every chart and case. The colours are those of Okabe and Ito,
//! distinguishable with any common colour blindness, without their yellow, which cannot be seen on white, and with
//! variants for dark backgrounds. When colours run out, they repeat with other dashes.

/// Each colour for a white background and for a dark one.
const COLORS: [(&str, &str); 7] = [
    ("#0072b2", "#2f86dd"),
    ("#d55e00", "#f0652a"),
    ("#009e73", "#00b386"),
    ("#cc79a7", "#dd7fb5"),
    ("#16202b", "#f4f6f8"),
    ("#e69f00", "#f7c23c"),
    ("#56b4e9", "#8fd6ff"),
];

/// Lengths of strokes and gaps in pixels, without and with PFC; the second row is for repeated colours.
const DASHES: [(&str, &str); 2] = [("", "7 4"), ("2 3", "9 3 2 3")];

/// Returns whether `inks` exceeds the number of colours, so that colours repeat.
pub(super) fn repeats(inks: usize) -> bool {
    inks > COLORS.len()
}

/// Returns the lengths of strokes and gaps of this ink; empty if its strokes are solid.
pub(super) fn dash(ink: usize, pfc: bool) -> &'static str {
    let (without, with) = DASHES[usize::from(ink >= COLORS.len())];
    if pfc { with } else { without }
}

/// Returns custom properties and classes for `inks` inks, in both themes.
pub(super) fn css(inks: usize) -> String {
    let color = |ink: usize| {
        let (light, dark) = COLORS[ink % COLORS.len()];
        format!("--s{ink}:light-dark({light},{dark});")
    };
    let colors: String = (0..inks).map(color).collect();
    let classes: String = (0..inks)
        .map(|at| {
            format!(
                ".ink{at}{{stroke:var(--s{at});fill:none}}.fill{at}{{fill:var(--s{at})}}.off-{at} .s{at}{{display:none}}"
            )
        })
        .collect();
    format!(":root{{{colors}}}{classes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matrices for normal sight and for each missing kind of cones (Machado, Oliveira and Fernandes, 2009), in linear
    /// RGB.
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];

    /// Returns CIE L*a*b* of "#rrggbb" as seen with this matrix.
    fn seen(color: &str, eyes: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = [1, 3, 5].map(|at| {
            let part = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        let times = |row: &[f64; 3], of: &[f64; 3]| row.iter().zip(of).map(|(a, b)| a * b).sum::<f64>();
        let [r, g, b] = [0, 1, 2].map(|at| times(&eyes[at], &linear).clamp(0.0, 1.0));
        let xyz = [
            (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
            0.2126 * r + 0.7152 * g + 0.0722 * b,
            (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
        ];
        let [x, y, z] = xyz.map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn no_two_colours_look_alike_to_anyone() {
        let themes = [COLORS.map(|(light, _)| light), COLORS.map(|(_, dark)| dark)];
        for (theme, eyes) in themes.iter().flat_map(|theme| EYES.iter().map(move |eyes| (theme, eyes))) {
            for (at, one) in theme.iter().enumerate() {
                for other in &theme[..at] {
                    let (a, b) = (seen(one, eyes), seen(other, eyes));
                    let distance = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    // The distance of colours that are hard to tell apart is 5, of neighbours in a rainbow of ten 15.
                    assert!(distance > 15.0, "{one} and {other}: {distance}");
                }
            }
        }
    }

    #[test]
    fn series_of_one_colour_have_other_dashes() {
        let dashes = |ink| [false, true].map(|pfc| dash(ink, pfc));
        let (first, again) = (dashes(0), dashes(COLORS.len()));
        assert!(first[0].is_empty() && first.iter().all(|dash| !again.contains(dash)) && again[0] != again[1]);
    }
}
