//! Size and speed, read from the logs of [`super::synthesise`], beside the paper's table 2.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::module::{Build, Module};
use super::output;
use crate::page;
use crate::workspace::root;

/// Lookup tables and flip-flops of the paper's device, a Kintex UltraScale XCKU060.
const LUTS: f64 = 331_680.0;
const FLIP_FLOPS: f64 = 663_360.0;

/// Of one build; what no log tells is missing.
struct Numbers {
    build: Build,
    luts: Option<u64>,
    flip_flops: Option<u64>,
    /// Longest path by abc9's estimate, in ps.
    delay: Option<f64>,
    /// Routed on ECP5, in MHz.
    frequency: Option<f64>,
}

/// Table 2: flip-flops and lookup tables in percent, latency in ns, Mpps.
const fn paper(module: Module) -> (f64, f64, &'static str, f64) {
    match module {
        Module::ReceiveData => (0.62, 1.93, "16.5", 45.45),
        Module::TxFree => (0.32, 0.95, "15.9", 47.17),
        Module::ReceiveAck => (0.40, 1.05, "15.96", 46.99),
        Module::Timeout => (0.01, 0.08, "< 6.3", 318.47),
    }
}

/// Writes the table of docs/rtl.md.
///
/// # Errors
/// When there are no logs.
pub(super) fn write() -> Result<()> {
    let folder = output("synth")?;
    let text = table(&folder)?;
    page::write(&root().join("docs/rtl.md"), "rtl", &text)
}

fn table(folder: &Path) -> Result<String> {
    let mut text = String::new();
    let mut any = false;
    for (bitmap, pipelined, title) in [
        (128, true, "Pipelined, W = 128"),
        (128, false, "Like for like, W = 128"),
        (320, true, "Pipelined, W = 320 (100 Gb/s)"),
        (320, false, "Like for like, W = 320 (100 Gb/s)"),
    ] {
        let rows: Vec<Numbers> = Module::ALL
            .into_iter()
            .map(|module| {
                // It has one variant and no bitmap.
                let pipelined = pipelined || !module.has_parameters();
                Numbers::read(folder, Build { module, pipelined, bitmap })
            })
            .collect();
        if rows.iter().all(|row| row.luts.is_none() && row.frequency.is_none()) {
            continue;
        }
        any = true;
        text += &format!("### {title}\n\n{}\n", section(&rows, bitmap));
    }
    ensure!(any, "{} holds no logs: run `cargo xtask rtl synthesise` before", folder.display());
    Ok(text.trim_end().to_owned())
}

fn section(rows: &[Numbers], bitmap: u32) -> String {
    let is_papers = bitmap == 128;
    let mut text = String::from(
        "| module | LUTs | % of KU060 | FFs | % of KU060 | abc9, ns | latency by abc9, ns | ECP5, MHz | II | Mpps on ECP5 | the paper's LUT %, FF %, ns, Mpps |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let cycles = row.build.latency();
        let (ff, lut, latency, rate) = paper(row.build.module);
        let paper = if is_papers { format!("{lut}, {ff}, {latency}, {rate}") } else { "-".to_owned() };
        text += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {paper} |\n",
            row.build.module.name(),
            shown(row.luts.map(|luts| luts.to_string())),
            shown(row.luts.map(|luts| share(luts, LUTS))),
            shown(row.flip_flops.map(|ffs| ffs.to_string())),
            shown(row.flip_flops.map(|ffs| share(ffs, FLIP_FLOPS))),
            shown(row.delay.map(|ps| format!("{:.2}", ps / 1e3))),
            shown(row.delay.map(|ps| format!("{cycles} x {:.2} = {:.1}", ps / 1e3, f64::from(cycles) * ps / 1e3))),
            shown(row.frequency.map(|mhz| format!("{mhz:.1}"))),
            row.build.interval(),
            shown(row.frequency.map(|mhz| format!("{:.1}", mhz / f64::from(row.build.interval())))),
        );
    }
    let sum = |of: fn(&Numbers) -> Option<u64>| rows.iter().map(of).sum::<Option<u64>>();
    let (luts, flip_flops) = (sum(|row| row.luts), sum(|row| row.flip_flops));
    let least = rows
        .iter()
        .map(|row| row.frequency.map(|mhz| mhz / f64::from(row.build.interval())))
        .collect::<Option<Vec<_>>>()
        .and_then(|rates| rates.into_iter().min_by(f64::total_cmp));
    text += &format!(
        "| all | {} | {} | {} | {} | | | | | {} | {} |\n",
        shown(luts.map(|luts| luts.to_string())),
        shown(luts.map(|luts| share(luts, LUTS))),
        shown(flip_flops.map(|ffs| ffs.to_string())),
        shown(flip_flops.map(|ffs| share(ffs, FLIP_FLOPS))),
        shown(least.map(|rate| format!("{rate:.1}"))),
        if is_papers { "4.01, 1.35, -, 45.45" } else { "9.5, 2.66 (100 Gb/s, width not stated)" },
    );
    text
}

fn share(part: u64, whole: f64) -> String {
    format!("{:.2}", 100.0 * part as f64 / whole)
}

fn shown(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not run".to_owned())
}

impl Numbers {
    fn read(folder: &Path, build: Build) -> Self {
        let text = |suffix: &str| fs::read_to_string(folder.join(format!("{}{suffix}", build.name()))).ok();
        let cells = text(".stat").map(|text| Cells::parse(&text));
        Self {
            build,
            luts: cells.as_ref().map(|cells| cells.luts),
            flip_flops: cells.as_ref().map(|cells| cells.flip_flops),
            delay: text("-xcu.log").and_then(|text| delay(&text).ok()),
            frequency: text("-route.log").and_then(|text| frequency(&text).ok()),
        }
    }
}

/// Counted in the output of yosys' `stat`.
#[derive(PartialEq, Eq, Debug, Default)]
struct Cells {
    /// LUT1 to LUT6, and shift registers, which take a lookup table each.
    luts: u64,
    flip_flops: u64,
}

impl Cells {
    fn parse(text: &str) -> Self {
        let mut cells = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [cell, count] = words[..] else { continue };
            let Ok(count) = count.parse::<u64>() else { continue };
            match cell {
                "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "SRL16E" | "SRLC32E" | "SRLC16E" => {
                    cells.luts += count;
                }
                "FDCE" | "FDRE" | "FDSE" | "FDPE" => cells.flip_flops += count,
                _ => {}
            }
        }
        cells
    }
}

/// abc9's last word on the longest path, in ps.
fn delay(log: &str) -> Result<f64> {
    let last = log.lines().filter_map(|line| line.split_once("Del =")).next_back().context("abc9 says no delay")?;
    let number = last.1.trim_start().split("  ").next().unwrap_or_default();
    number.trim().trim_end_matches('.').parse().with_context(|| format!("not a delay: {number:?}"))
}

/// nextpnr's last word on the clock, in MHz.
fn frequency(log: &str) -> Result<f64> {
    let last = log.lines().rfind(|line| line.contains("Max frequency for clock"));
    let last = last.context("nextpnr says no frequency")?;
    let (before, _) = last.split_once(" MHz").context("no MHz")?;
    let number = before.rsplit(' ').next().unwrap_or_default();
    number.parse().with_context(|| format!("not a frequency: {number:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_understood() {
        let stat = "   Number of cells:  9\n     CARRY4   21\n     FDCE     4\n     FDRE  1426\n     LUT2   215\n     LUT6  1039\n     SRL16E   73\n";
        assert_eq!(Cells::parse(stat), Cells { luts: 215 + 1_039 + 73, flip_flops: 1_430 });
        let abc = "ABC: A:  Del = 3000.00.  Ar =    8909.0.\nABC: A:  Del = 2895.00.  Ar =    8887.0.  Edge = 1\n";
        assert!((delay(abc).expect("a delay") - 2_895.0).abs() < 1e-9);
        let route = "Info: Max frequency for clock '$glbnet$clk_i': 90.10 MHz (FAIL at 150.00 MHz)\n\
                     Info: Max frequency for clock '$glbnet$clk_i': 137.42 MHz (FAIL at 150.00 MHz)\n";
        assert!((frequency(route).expect("a frequency") - 137.42).abs() < 1e-9);
        assert!(delay("nothing").is_err() && frequency("nothing").is_err());
    }

    #[test]
    fn a_module_that_was_not_synthesised_is_called_so() {
        let build = Build { module: Module::TxFree, pipelined: true, bitmap: 128 };
        let row = Numbers { build, luts: Some(945), flip_flops: None, delay: None, frequency: Some(120.0) };
        let text = section(&[row], 128);
        assert!(text.contains("| `tx_free` | 945 | 0.28 | not run | not run | not run |"), "{text}");
        assert!(text.contains("| all | 945 | 0.28 | not run |"), "{text}");
    }
}
