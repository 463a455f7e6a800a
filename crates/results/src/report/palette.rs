//! One colour per series, the same in every chart; its cases are shades of it. The first eight after Okabe and Ito,
//! distinguishable with any common colour blindness; lightened for dark backgrounds.

/// On white, on black.
const COLORS: [(&str, &str); 12] = [
    ("#0072b2", "#56a9e8"),
    ("#d55e00", "#ff8b4a"),
    ("#00805e", "#2fc79b"),
    ("#a8487f", "#e794c4"),
    ("#b07800", "#f0b93a"),
    ("#2f8fc4", "#8fd0f5"),
    ("#5f6670", "#b4bac2"),
    ("#7a6a1f", "#d2c069"),
    // For studies of many series, which had two of one colour.
    ("#7b3294", "#b98ae0"),
    ("#8c510a", "#d9a066"),
    ("#5f8a00", "#a6d854"),
    ("#b2182b", "#ff8f8f"),
];

/// Which colour a curve has.
pub(super) struct Ink {
    /// Its place among the colours.
    pub(super) color: usize,
    /// Of `shades`, from the colour itself to the palest.
    pub(super) shade: usize,
    pub(super) shades: usize,
}

impl Ink {
    /// How much of the colour there is, in per cent; the rest is paper.
    fn strength(&self) -> usize {
        let step = (55 / (self.shades - 1).max(1)).min(40);
        100 - self.shade * step
    }
}

/// Custom properties and classes for series of these inks, in both themes.
pub(super) fn css(inks: &[Ink]) -> String {
    let colors = |of: fn(&(&'static str, &'static str)) -> &'static str| {
        let color = |(at, ink): (usize, &Ink)| {
            let color = of(&COLORS[ink.color % COLORS.len()]);
            format!("--s{at}:color-mix(in srgb,{color} {}%,var(--paper));", ink.strength())
        };
        inks.iter().enumerate().map(color).collect::<String>()
    };
    let classes: String = (0..inks.len())
        .map(|at| {
            format!(
                ".ink{at}{{stroke:var(--s{at});fill:none}}.fill{at}{{fill:var(--s{at})}}.off-{at} .s{at}{{display:none}}"
            )
        })
        .collect();
    format!(
        ":root{{{}}}@media(prefers-color-scheme:dark){{:root{{{}}}}}@media print{{:root{{{}}}}}{classes}",
        colors(|color| color.0),
        colors(|color| color.1),
        colors(|color| color.0)
    )
}
