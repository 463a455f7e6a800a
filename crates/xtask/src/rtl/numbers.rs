//! Size and speed, read from the logs of [`super::synthesise`], beside the paper's table 2.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::module::{Build, Module};
use super::output;
use super::simulate::{MELO_CONNECTIONS, Measured};
use super::synthesise::Flow;
use super::target::{QUEUE_PAIRS, Target};
use crate::page;
use crate::workspace::root;

/// Lookup tables and flip-flops of the paper's device, a Kintex UltraScale XCKU060.
const LUTS: f64 = 331_680.0;
const FLIP_FLOPS: f64 = 663_360.0;

/// Numbers of one target; a number is missing if no log of its present sources has it.
#[derive(Clone, Debug, Default)]
struct Numbers {
    cells: Option<Cells>,
    /// Longest path by abc9's estimate, in ps.
    delay: Option<f64>,
    /// Frequency when routed on ECP5, in MHz.
    frequency: Option<f64>,
}

/// Module with its numbers.
struct Row {
    build: Build,
    numbers: Numbers,
}

/// Table 2 of the paper: shares in percent, latency in ns, rate in Mpps.
struct Paper {
    flip_flops: f64,
    luts: f64,
    /// Upper bound of the latency in ns.
    latency: f64,
    rate: f64,
}

const fn paper(module: Module) -> Paper {
    let (flip_flops, luts, latency, rate) = match module {
        Module::ReceiveData => (0.62, 1.93, 16.5, 45.45),
        Module::TxFree => (0.32, 0.95, 15.9, 47.17),
        Module::ReceiveAck => (0.40, 1.05, 15.96, 46.99),
        Module::Timeout => (0.01, 0.08, 6.3, 318.47),
    };
    Paper { flip_flops, luts, latency, rate }
}

/// Goals of the whole: LUTs and flip-flops in percent, and MHz on ECP5.
const GOAL_LUTS: f64 = 2.5;
const GOAL_FLIP_FLOPS: f64 = 1.0;
const GOAL_FREQUENCY: f64 = 100.0;

/// Writes the table of docs/rtl.md, and figures/irn/table2.
///
/// # Errors
/// Returns an error if there are no logs of the present sources.
pub(super) fn write() -> Result<()> {
    let folder = output("synth")?;
    let numbers = |target: &Target| Numbers::read(&folder, target);
    let sections: Vec<Section> = SECTIONS.into_iter().map(|section| section.filled(&numbers)).collect();
    ensure!(
        sections.iter().flat_map(|section| &section.rows).any(|row| row.numbers.cells.is_some()),
        "{} holds no logs of the present sources: run `cargo xtask rtl synthesise` before",
        folder.display()
    );
    let tables: Vec<String> = sections.iter().filter(|section| !section.is_empty()).map(Section::text).collect();
    let goals = goals(&sections);
    let whole = whole(&numbers);
    let text = format!("## Goals\n\n{goals}\n{}\n{whole}\n{}", tables.join("\n"), cycles());
    page::write(&root().join("docs/rtl.md"), "rtl", text.trim_end())?;
    let figure = root().join("figures/irn/table2");
    page::write(&figure.join("README.md"), "rtl", goals.trim_end())?;
    fs::write(figure.join("measured.csv"), csv(&sections)).context("figures/irn/table2/measured.csv")
}

/// Group of the four modules in one variant and width.
struct Section {
    bitmap: u32,
    pipelined: bool,
    rows: Vec<Row>,
}

const SECTIONS: [Section; 6] = [
    Section::new(128, false),
    Section::new(128, true),
    Section::new(320, false),
    Section::new(320, true),
    Section::new(1_024, false),
    Section::new(1_024, true),
];

impl Section {
    const fn new(bitmap: u32, pipelined: bool) -> Self {
        Self { bitmap, pipelined, rows: Vec::new() }
    }

    fn filled(self, numbers: &impl Fn(&Target) -> Numbers) -> Self {
        let rows = Module::ALL.into_iter().map(|module| {
            // A module without parameters has one variant and no bitmap.
            let pipelined = self.pipelined || !module.has_parameters();
            let build = Build { module, pipelined, bitmap: self.bitmap };
            Row { build, numbers: numbers(&Target::of_build(build)) }
        });
        Self { rows: rows.collect(), ..self }
    }

    /// Returns whether nothing was synthesised, `timeout` left out, which all widths share.
    fn is_empty(&self) -> bool {
        !self.rows.iter().any(|row| row.build.module.has_parameters() && row.numbers.cells.is_some())
    }

    fn title(&self) -> String {
        let variant = if self.pipelined { "Pipelined" } else { "Like for like" };
        let speed = match self.bitmap {
            128 => ", 40 Gb/s",
            320 => ", 100 Gb/s",
            _ => "",
        };
        format!("{variant}, W = {}{speed}", self.bitmap)
    }

    fn luts(&self) -> Option<u64> {
        self.rows.iter().map(Row::luts).sum()
    }
    fn flip_flops(&self) -> Option<u64> {
        self.rows.iter().map(Row::flip_flops).sum()
    }
    /// Returns the rate of the slowest module.
    fn rate(&self) -> Option<f64> {
        let rates: Option<Vec<f64>> = self.rows.iter().map(Row::rate).collect();
        rates.and_then(|rates| rates.into_iter().min_by(f64::total_cmp))
    }

    fn text(&self) -> String {
        let is_papers = self.bitmap == 128;
        let mut text = format!(
            "## {}\n\n\
             | module | LUTs | FFs | abc9: path, ns | abc9: latency, ns | ECP5: MHz | II | ECP5: Mpps | ECP5: latency, ns |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            self.title()
        );
        for row in &self.rows {
            let paper = paper(row.build.module);
            let beside = |value: Option<String>, papers: String| beside(value, is_papers.then_some(papers));
            let latency =
                if row.build.module == Module::Timeout { "< 6.3".to_owned() } else { paper.latency.to_string() };
            text += &format!(
                "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                row.build.module.name(),
                beside(row.luts().map(|luts| counted(luts, LUTS)), format!("{} %", paper.luts)),
                beside(row.flip_flops().map(|count| counted(count, FLIP_FLOPS)), format!("{} %", paper.flip_flops)),
                shown(row.numbers.delay.map(|ps| format!("{:.2}", ps / 1e3))),
                beside(row.estimated_latency().map(|ns| format!("{ns:.1}")), latency),
                shown(row.numbers.frequency.map(|mhz| format!("{mhz:.1}"))),
                row.build.interval(),
                beside(row.rate().map(|rate| format!("{rate:.1}")), paper.rate.to_string()),
                shown(row.numbers.frequency.map(|mhz| format!("{:.1}", f64::from(row.build.latency()) * 1e3 / mhz))),
            );
        }
        let papers = match self.bitmap {
            128 => Some(("4.01 %", "1.35 %", "45.45")),
            320 => Some(("9.5 %", "2.66 %", "-")),
            _ => None,
        };
        text += &format!(
            "| all | {} | {} | | | | | {} | |\n",
            beside(self.luts().map(|luts| counted(luts, LUTS)), papers.map(|papers| papers.0.to_owned())),
            beside(self.flip_flops().map(|count| counted(count, FLIP_FLOPS)), papers.map(|papers| papers.1.to_owned())),
            beside(self.rate().map(|rate| format!("{rate:.1}")), papers.map(|papers| papers.2.to_owned())),
        );
        text
    }
}

impl Row {
    fn luts(&self) -> Option<u64> {
        self.numbers.cells.as_ref().map(|cells| cells.luts)
    }
    fn flip_flops(&self) -> Option<u64> {
        self.numbers.cells.as_ref().map(|cells| cells.flip_flops)
    }
    /// Returns the latency estimated by abc9, in ns.
    fn estimated_latency(&self) -> Option<f64> {
        self.numbers.delay.map(|ps| f64::from(self.build.latency()) * ps / 1e3)
    }
    /// Returns the rate on ECP5, in Mpps.
    fn rate(&self) -> Option<f64> {
        self.numbers.frequency.map(|mhz| mhz / f64::from(self.build.interval()))
    }
}

/// Returns the table of goals and results.
fn goals(sections: &[Section]) -> String {
    let mut text = String::from("| goal | measured | met |\n|---|---|---|\n");
    let mut add = |goal: String, measured: Option<(String, bool)>| {
        let (measured, met) =
            measured.map_or(("not run".to_owned(), "-"), |(text, met)| (text, if met { "yes" } else { "no" }));
        text += &format!("| {goal} | {measured} | {met} |\n");
    };
    for section in sections.iter().filter(|section| section.bitmap == 128) {
        let title = section.title();
        let of = |count: Option<u64>, all: f64, goal: f64| {
            count.map(|count| (counted(count, all), 100.0 * count as f64 / all < goal))
        };
        add(format!("{title}: all four modules under {GOAL_LUTS} % of the LUTs"), of(section.luts(), LUTS, GOAL_LUTS));
        add(
            format!("{title}: all four modules under {GOAL_FLIP_FLOPS} % of the FFs"),
            of(section.flip_flops(), FLIP_FLOPS, GOAL_FLIP_FLOPS),
        );
    }
    for section in sections.iter().filter(|section| section.pipelined && section.bitmap == 128) {
        for row in &section.rows {
            let measured = row.numbers.frequency.map(|mhz| (format!("{mhz:.1} MHz"), mhz > GOAL_FREQUENCY));
            add(format!("`{}`: II = 1 at more than {GOAL_FREQUENCY} MHz on ECP5", row.build.module.name()), measured);
        }
    }
    for section in sections.iter().filter(|section| !section.pipelined && section.bitmap == 128) {
        for row in &section.rows {
            let papers = paper(row.build.module).latency;
            let measured = row.estimated_latency().map(|ns| (format!("{ns:.1} ns"), ns <= papers));
            add(
                format!("`{}`: like for like within the paper's {papers} ns, by abc9", row.build.module.name()),
                measured,
            );
        }
    }
    text
}

/// Returns the section about the top and MELO's two halves.
fn whole(numbers: &impl Fn(&Target) -> Numbers) -> String {
    let targets = [
        (format!("`irn_top`, pipelined, {QUEUE_PAIRS} queue pairs"), Target::top(true)),
        (format!("`irn_top`, like for like, {QUEUE_PAIRS} queue pairs"), Target::top(false)),
        ("`melo_rx`, 128 blocks, 64 connections".to_owned(), Target::melo_receiver()),
        ("`melo_tx`, 128 blocks, 64 connections".to_owned(), Target::melo_sender()),
    ];
    let mut text = String::from(
        "## With memories, W = 128\n\n| | LUTs | FFs | block RAMs of 18 Kb | ECP5: MHz |\n|---|---|---|---|---|\n",
    );
    for (name, target) in targets {
        let Numbers { cells, frequency, .. } = numbers(&target);
        let cells = cells.as_ref();
        text += &format!(
            "| {name} | {} | {} | {} | {} |\n",
            shown(cells.map(|cells| counted(cells.luts, LUTS))),
            shown(cells.map(|cells| counted(cells.flip_flops, FLIP_FLOPS))),
            shown(cells.map(|cells| cells.block_rams.to_string())),
            shown(frequency.map(|mhz| format!("{mhz:.1}"))),
        );
    }
    text
}

/// Returns the cycle counts measured by simulations: `cargo xtask rtl simulate`.
fn cycles() -> String {
    let mut text = String::from(
        "## Cycles, simulated\n\n| | data: cycles per event | sender: cycles per event |\n|---|---|---|\n",
    );
    for (pipelined, variant) in [(true, "pipelined"), (false, "like for like")] {
        let measured = Measured::Rate { pipelined }.read();
        let rows = measured.as_deref().map(rates).unwrap_or_default();
        for (queue_pairs, data, sender) in &rows {
            text +=
                &format!("| `irn_top`, {variant}, events of {queue_pairs} queue pairs in turn | {data} | {sender} |\n");
        }
        if rows.is_empty() {
            text += &format!("| `irn_top`, {variant} | not run | not run |\n");
        }
    }
    type Measure = fn(u32) -> Measured;
    let melo: [(&str, Measure); 2] = [
        ("`melo_rx`, random packets of", |connections| Measured::MeloReceiver { connections }),
        ("`melo_tx`, events of", |connections| Measured::MeloSender { connections }),
    ];
    for (what, measure) in melo {
        text += &format!(
            "\n| {what} | events | in 3 cycles | 4 to 8 | 9 to 32 | more | most |\n|---|---|---|---|---|---|---|\n"
        );
        for connections in MELO_CONNECTIONS {
            let measured = measure(connections).read();
            let row = measured.as_deref().and_then(distribution);
            let row = row.unwrap_or_else(|| "not run | - | - | - | - | -".to_owned());
            text += &format!("| {connections} connections | {row} |\n");
        }
    }
    text
}

/// Returns queue pairs, and cycles per event of the receiver and of the sender, from lines of `top rate`.
fn rates(text: &str) -> Vec<(&str, &str, &str)> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter_map(|words| match words[..] {
        ["queue-pairs", pairs, "data", data, "sender", sender] => Some((pairs, data, sender)),
        _ => None,
    })
    .collect()
}

/// Returns the number of packets, shares by cycles, and the most cycles, from lines of `melo`.
fn distribution(text: &str) -> Option<String> {
    let mut cycles: Vec<(u64, u64)> = Vec::new();
    for line in text.lines() {
        if let ["cycles", cycle, "packets", packets, ..] = line.split_whitespace().collect::<Vec<_>>()[..] {
            cycles.push((cycle.parse().ok()?, packets.parse().ok()?));
        }
    }
    let all: u64 = cycles.iter().map(|&(_, packets)| packets).sum();
    let share = |range: std::ops::RangeInclusive<u64>| {
        let part: u64 = cycles.iter().filter(|(cycle, _)| range.contains(cycle)).map(|&(_, packets)| packets).sum();
        format!("{:.3} %", 100.0 * part as f64 / all as f64)
    };
    let most = cycles.iter().map(|&(cycle, _)| cycle).max()?;
    Some(format!("{all} | {} | {} | {} | {} | {most}", share(0..=3), share(4..=8), share(9..=32), share(33..=u64::MAX)))
}

fn csv(sections: &[Section]) -> String {
    let mut text = String::from(
        "module,variant,bitmap,luts,flip_flops,abc9_path_ps,ecp5_mhz,interval,latency_cycles,paper_lut_percent,\
         paper_ff_percent,paper_latency_ns,paper_mpps\n",
    );
    for section in sections {
        let variant = if section.pipelined { "pipelined" } else { "like-for-like" };
        for row in &section.rows {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let papers = paper(row.build.module);
            text += &format!(
                "{},{variant},{},{},{},{},{},{},{},",
                row.build.module.name(),
                section.bitmap,
                number(row.luts().map(|count| count as f64)),
                number(row.flip_flops().map(|count| count as f64)),
                number(row.numbers.delay),
                number(row.numbers.frequency),
                row.build.interval(),
                row.build.latency(),
            );
            // The paper gives shares of single modules for 40 Gb/s alone.
            text += &match section.bitmap {
                128 => format!("{},{},{},{}\n", papers.luts, papers.flip_flops, papers.latency, papers.rate),
                _ => ",,,\n".to_owned(),
            };
        }
    }
    text
}

fn counted(part: u64, whole: f64) -> String {
    format!("{part}, {:.2} %", 100.0 * part as f64 / whole)
}

fn shown(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not run".to_owned())
}

/// Formats the value of Selvedge, and the paper's in parentheses.
fn beside(ours: Option<String>, papers: Option<String>) -> String {
    let ours = shown(ours);
    papers.map_or(ours.clone(), |papers| format!("{ours} ({papers})"))
}

impl Numbers {
    fn read(folder: &Path, target: &Target) -> Self {
        let text = |flow: Flow, suffix: &str| {
            let path = folder.join(format!("{}{suffix}", target.name));
            flow.is_current(folder, target).then(|| fs::read_to_string(path).ok()).flatten()
        };
        Self {
            cells: text(Flow::UltraScale, ".stat").map(|text| Cells::parse(&text)),
            delay: text(Flow::UltraScale, "-xcu.log").and_then(|text| delay(&text).ok()),
            frequency: text(Flow::Ecp5, "-route.log").and_then(|text| frequency(&text).ok()),
        }
    }
}

/// Cells counted in the output of yosys' `stat`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Cells {
    /// Lookup tables: LUT1 to LUT6, shift registers, which take a lookup table each, and those used as memories.
    luts: u64,
    flip_flops: u64,
    /// Block RAMs, counted in halves of 36 Kb.
    block_rams: u64,
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
                "RAM32X1S" | "RAM64X1S" => cells.luts += count,
                "RAM32X1D" | "RAM64X1D" | "RAM128X1S" => cells.luts += 2 * count,
                "RAM32M" | "RAM64M" | "RAM128X1D" | "RAM256X1S" => cells.luts += 4 * count,
                "RAM32M16" | "RAM64M8" => cells.luts += 8 * count,
                "FDCE" | "FDRE" | "FDSE" | "FDPE" => cells.flip_flops += count,
                "RAMB18E1" | "RAMB18E2" => cells.block_rams += count,
                "RAMB36E1" | "RAMB36E2" => cells.block_rams += 2 * count,
                _ => {}
            }
        }
        cells
    }
}

/// Returns abc9's final estimate of the longest path, in ps.
fn delay(log: &str) -> Result<f64> {
    let last = log.lines().filter_map(|line| line.split_once("Del =")).next_back().context("abc9 says no delay")?;
    let number = last.1.trim_start().split("  ").next().unwrap_or_default();
    number.trim().trim_end_matches('.').parse().with_context(|| format!("not a delay: {number:?}"))
}

/// Returns nextpnr's final value of the clock, in MHz.
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
        assert_eq!(Cells::parse(stat), Cells { luts: 215 + 1_039 + 73, flip_flops: 1_430, block_rams: 0 });
        let abc = "ABC: A:  Del = 3000.00.  Ar =    8909.0.\nABC: A:  Del = 2895.00.  Ar =    8887.0.  Edge = 1\n";
        assert!((delay(abc).expect("a delay") - 2_895.0).abs() < 1e-9);
        let route = "Info: Max frequency for clock '$glbnet$clk_i': 90.10 MHz (FAIL at 150.00 MHz)\n\
                     Info: Max frequency for clock '$glbnet$clk_i': 137.42 MHz (FAIL at 150.00 MHz)\n";
        assert!((frequency(route).expect("a frequency") - 137.42).abs() < 1e-9);
        assert!(delay("nothing").is_err() && frequency("nothing").is_err());
    }

    #[test]
    fn cycles_are_read_from_what_simulations_print() {
        let melo = "events 10 mismatches 0\ncycles 3 packets 8 share 80.0000 %\ncycles 40 packets 2 share 20.0000 %\n";
        let expected = "10 | 80.000 % | 0.000 % | 0.000 % | 20.000 % | 40";
        assert_eq!(distribution(melo).as_deref(), Some(expected));
        assert_eq!(distribution("nothing"), None);
        assert_eq!(rates("queue-pairs 64 data 1.000 sender 1.001\nelse\n"), [("64", "1.000", "1.001")]);
    }

    #[test]
    fn memories_count_as_what_they_are_made_of() {
        let stat = "     RAM64M8   3\n     RAMB36E2  4\n     RAMB18E2  1\n     RAM64X1D  2\n";
        assert_eq!(Cells::parse(stat), Cells { luts: 28, flip_flops: 0, block_rams: 9 });
    }

    fn section(numbers: Numbers) -> Section {
        Section::new(128, false).filled(&|_| numbers.clone())
    }

    #[test]
    fn a_module_that_was_not_synthesised_is_called_so() {
        let cells = Some(Cells { luts: 945, flip_flops: 500, block_rams: 0 });
        let half = section(Numbers { cells, delay: None, frequency: Some(120.0) });
        assert!(!half.is_empty() && section(Numbers::default()).is_empty());
        let text = half.text();
        let row = "| `tx_free` | 945, 0.28 % (0.95 %) | 500, 0.08 % (0.32 %) | not run | not run (15.9) | 120.0 | 4 | 30.0 (47.17) | 25.0 |";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains("| all | 3780, 1.14 % (4.01 %) | 2000, 0.30 % (1.35 %) | | | | | 30.0 (45.45) | |"),
            "{text}"
        );
        let goals = goals(&[half]);
        assert!(goals.contains("under 2.5 % of the LUTs | 3780, 1.14 % | yes |"), "{goals}");
        assert!(goals.contains("within the paper's 15.9 ns, by abc9 | not run | - |"), "{goals}");
    }

    #[test]
    fn a_goal_that_is_missed_is_called_so() {
        let slow = Numbers { delay: Some(6_000.0), ..Numbers::default() };
        let goals = goals(&[section(slow)]);
        assert!(
            goals.contains("`receive_data`: like for like within the paper's 16.5 ns, by abc9 | 18.0 ns | no |"),
            "{goals}"
        );
        assert!(
            goals.contains("`timeout`: like for like within the paper's 6.3 ns, by abc9 | 6.0 ns | yes |"),
            "{goals}"
        );
    }
}
