//! The links of a network and what happened on them over time, from `links.parquet` and `ports.parquet`.

use std::collections::BTreeMap;
use std::path::Path;

use selvedge_units::{Duration, Instant};
use serde::Serialize;

use crate::tables::Scan;
use crate::timeline::{Bin, Timeline};
use crate::{ResultsError, Summary, Table};

/// The networks of a study with one run of each of its series.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Fabric {
    /// Different networks.
    networks: Vec<Network>,
    /// Runs, in the order of series.
    runs: Vec<FabricRun>,
    /// Number of ports, if there are too many for the given room; there are no runs then.
    too_large: Option<usize>,
    /// Number of runs that are left out because there is no room.
    left_out: usize,
}

/// A run to read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WantedRun<'a> {
    /// Name of the series, without its case.
    pub series: &'a str,
    /// Case of the series; empty without cases.
    pub case: &'a str,
    /// Number of the series' colour in the report.
    pub ink: usize,
    /// Seed of the run.
    pub seed: u64,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct Network {
    /// Name and level of each node: 0 for hosts, 1 + tier for switches.
    nodes: Vec<(String, u8)>,
    /// Node, peer (indices of `nodes`) and rate in bits per second of each port.
    ports: Vec<(usize, usize, u64)>,
    /// Index of each port in `ports`, by its number in the tables.
    #[serde(skip)]
    places: BTreeMap<u64, usize>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct FabricRun {
    series: String,
    case: String,
    ink: usize,
    seed: u64,
    /// Index in `networks`.
    network: usize,
    /// Width of a bin, microseconds.
    bin_us: f64,
    /// Number of bins; 0 if the run took no samples.
    bins: usize,
    /// Share of each bin that a port was transmitting, in units of 0.01 %: mean of its samples. Like the columns below,
    /// a text for each port, with two characters for each bin; see [`Column`].
    busy: Vec<String>,
    /// Largest sample of the egress queue of each bin, bytes.
    queue: Vec<String>,
    /// Share of each bin that the port was paused, in units of 0.01 %.
    paused: Vec<String>,
    /// Packets that the port dropped in each bin.
    drops: Vec<String>,
}

/// Counters of a port in a bin.
#[derive(Clone, Copy, Default)]
struct LinkBin {
    samples: u32,
    busy: f64,
    queue: u64,
    paused_ps: u64,
    drops: u64,
}

impl Bin for LinkBin {
    fn absorb(&mut self, later: &Self) {
        self.samples += later.samples;
        self.busy += later.busy;
        self.queue = self.queue.max(later.queue);
        self.paused_ps += later.paused_ps;
        self.drops += later.drops;
    }
}

impl Fabric {
    /// Reads the run with the first seed of each series of a study, from the tables in `folder`; see [`Fabric::read`].
    ///
    /// # Errors
    /// Returns an error when a file is missing, damaged, or another kind of table.
    pub fn of(folder: &Path, summary: &Summary, room: usize) -> Result<Self, ResultsError> {
        let Some(&seed) = summary.seeds.first() else { return Ok(Self::default()) };
        let mut names: Vec<&str> = Vec::new();
        let runs = summary.series.iter().map(|one| {
            // A name has one colour in all cases.
            let ink = names.iter().position(|name| *name == one.series).unwrap_or_else(|| {
                names.push(&one.series);
                names.len() - 1
            });
            WantedRun { series: &one.series, case: one.case.as_deref().unwrap_or_default(), ink, seed }
        });
        let runs: Vec<_> = runs.collect();
        Self::read(&folder.join("links.parquet"), &folder.join("ports.parquet"), &runs, room)
    }

    /// Reads these runs, in bins as narrow as `room` permits, which is the number of characters of all of them.
    ///
    /// # Errors
    /// Returns an error when a file is missing, damaged, or another kind of table.
    pub fn read(links: &Path, ports: &Path, wanted: &[WantedRun<'_>], room: usize) -> Result<Self, ResultsError> {
        /// Characters for a port and a bin, on average: of four values, two have usually some.
        const CHARACTERS: usize = 5;
        /// Smallest number of bins that is worth to be looked at.
        const FEWEST: usize = 24;
        let (mut networks, of_runs) = networks(links, wanted)?;
        let most = networks.iter().map(|network| network.ports.len()).max().unwrap_or(0);
        let fitting = room / (CHARACTERS * FEWEST * most.max(1));
        if fitting == 0 || most == 0 {
            return Ok(Self { networks: Vec::new(), runs: Vec::new(), too_large: Some(most), left_out: 0 });
        }
        let shown = wanted.len().min(fitting);
        let bins = (room / (CHARACTERS * most * shown.max(1))).clamp(FEWEST, 96) / 2 * 2;
        let scan = Scan::open(Table::Ports, ports)?;
        let mut runs = Vec::new();
        for (run, &network) in wanted[..shown].iter().zip(&of_runs) {
            runs.push(FabricRun::read(&scan, run, network, &networks[network], bins)?);
        }
        let used = of_runs[..shown].iter().max().map_or(0, |last| last + 1);
        networks.truncate(used);
        Ok(Self { networks, runs, too_large: None, left_out: wanted.len() - shown })
    }

    /// Returns whether there is a run with samples.
    pub fn has_samples(&self) -> bool {
        self.runs.iter().any(|run| run.bins > 0)
    }

    /// Returns the number of ports, if there are too many to be shown.
    pub fn too_large(&self) -> Option<usize> {
        self.too_large
    }

    /// Returns the number of runs that are left out because there is no room.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

/// Returns the different networks of these runs, and the index of each run's network.
fn networks(path: &Path, wanted: &[WantedRun<'_>]) -> Result<(Vec<Network>, Vec<usize>), ResultsError> {
    let scan = Scan::open(Table::Links, path)?;
    let columns = columns(&scan, ["series", "case", "port", "node", "peer", "tier", "peer_tier", "rate_bps"]);
    let mut of_runs = vec![Network::default(); wanted.len()];
    let mut indices: Vec<BTreeMap<String, usize>> = vec![BTreeMap::new(); wanted.len()];
    scan.read(
        &columns,
        |_| false,
        |_, cells| {
            let at = |column: usize, row: usize| &cells[column][row];
            for row in 0..cells[0].len() {
                let [series, case] = [0, 1].map(|column| at(column, row).text());
                let is_it = |run: &&WantedRun<'_>| run.series == series && run.case == case;
                let Some(run) = wanted.iter().position(|run| is_it(&run)) else { continue };
                let (network, known) = (&mut of_runs[run], &mut indices[run]);
                let [node, peer] = [(3, 5), (4, 6)].map(|(name, tier)| {
                    let name = at(name, row).text();
                    *known.entry(name.to_owned()).or_insert_with(|| {
                        network.nodes.push((name.to_owned(), level(at(tier, row).text())));
                        network.nodes.len() - 1
                    })
                });
                network.places.insert(at(2, row).whole(), network.ports.len());
                network.ports.push((node, peer, at(7, row).whole()));
            }
            true
        },
    )?;
    let mut different: Vec<Network> = Vec::new();
    let place = |network: Network| {
        different.iter().position(|known| *known == network).unwrap_or_else(|| {
            different.push(network);
            different.len() - 1
        })
    };
    let places = of_runs.into_iter().map(place).collect();
    Ok((different, places))
}

/// Returns the level of a tier, which is "host" or "tier 0".
fn level(tier: &str) -> u8 {
    tier.strip_prefix("tier ").and_then(|tier| tier.parse::<u8>().ok()).map_or(0, |tier| tier.saturating_add(1))
}

fn columns<const N: usize>(scan: &Scan, names: [&str; N]) -> [usize; N] {
    names.map(|name| scan.names().iter().position(|other| other == name).expect("a column that every such table has"))
}

impl FabricRun {
    fn read(scan: &Scan, run: &WantedRun<'_>, network: usize, of: &Network, bins: usize) -> Result<Self, ResultsError> {
        let names =
            ["series", "case", "seed", "time_ps", "port", "utilisation", "egress_queue_bytes", "paused_ps", "drops"];
        let columns = columns(scan, names);
        let mut clock = None;
        let mut lines: Vec<Option<Timeline<LinkBin>>> = vec![None; of.ports.len()];
        let skip = |group: &crate::tables::Group<'_>| {
            group.lacks_text(columns[0], run.series) || group.lacks_text(columns[1], run.case)
        };
        scan.read(&columns, skip, |_, cells| {
            let mut own = (0..cells[0].len()).filter(|&row| {
                cells[2][row].whole() == run.seed
                    && cells[0][row].text() == run.series
                    && cells[1][row].text() == run.case
            });
            let Some(first) = own.next() else { return true };
            // Rows are sorted by port, so that the first two are the first two samples of a port.
            let &mut (begin, interval) = clock.get_or_insert_with(|| {
                let time = |row: usize| cells[3].get(row).map(super::tables::Cell::whole);
                let (first, second) = (time(first).unwrap_or(0), time(first + 1).unwrap_or(0));
                let interval = second.saturating_sub(first);
                if interval == 0 { (0, first.max(1)) } else { (first.saturating_sub(interval), interval) }
            });
            for row in std::iter::once(first).chain(own) {
                let Some(&port) = of.places.get(&cells[4][row].whole()) else { continue };
                let time = Instant::from_ps(cells[3][row].whole().saturating_sub(begin));
                let line = lines[port].get_or_insert_with(|| Timeline::new(bins, Duration::from_ps(interval)));
                line.at(time).absorb(&LinkBin {
                    samples: 1,
                    busy: cells[5][row].number().unwrap_or(0.0),
                    queue: cells[6][row].whole(),
                    paused_ps: cells[7][row].whole(),
                    drops: cells[8][row].whole(),
                });
            }
            true
        })?;
        let width = lines.iter().flatten().map(Timeline::width).max().unwrap_or(Duration::ZERO);
        lines.iter_mut().flatten().for_each(|line| line.widen_to(width));
        let share = |part: f64| (part * 1e4).round().clamp(0.0, 1e4) as u64;
        let of_all = |of: &dyn Fn(&LinkBin) -> u64| {
            let text = |line: &Option<Timeline<LinkBin>>| column(line.iter().flat_map(|line| line.bins()).map(of));
            lines.iter().map(text).collect()
        };
        Ok(Self {
            series: run.series.to_owned(),
            case: run.case.to_owned(),
            ink: run.ink,
            seed: run.seed,
            network,
            bin_us: width.as_us_f64(),
            bins: lines.iter().flatten().map(|line| line.bins().len()).max().unwrap_or(0),
            busy: of_all(&|bin| share(bin.busy / f64::from(bin.samples.max(1)))),
            queue: of_all(&|bin| bin.queue),
            paused: of_all(&|bin| share(bin.paused_ps as f64 / width.as_ps() as f64)),
            drops: of_all(&|bin| bin.drops),
        })
    }
}

/// Returns numbers with three digits as text: two characters each, without zeros at the end.
///
/// A number below 100 is its own code; others are 100 + 900 e + m - 100, where m, from 100 to 999, are the first three
/// digits and e is the number of digits that follow. A code c becomes characters c / 92 and c % 92, each an index in
/// the printable ASCII characters that JSON in HTML does not escape: all but `"`, `<` and `\`.
fn column(numbers: impl Iterator<Item = u64>) -> String {
    let code = |number: u64| {
        if number < 100 {
            return number;
        }
        let power = number.ilog10() - 2;
        let (digits, power) = match (number as f64 / 10_f64.powi(power as i32)).round() as u64 {
            1_000 => (100, power + 1),
            digits => (digits, power),
        };
        // 999 followed by eight digits is the largest code.
        if power > 8 { 100 + 900 * 8 + 899 } else { 900 * u64::from(power) + digits }
    };
    let character = |index: u64| {
        let plain = (b' '..=b'~').filter(|byte| !b"\"<\\".contains(byte));
        plain.map(char::from).nth(index as usize).expect("92 characters")
    };
    let text: String = numbers.map(code).flat_map(|code| [character(code / 92), character(code % 92)]).collect();
    let zeros = text.bytes().rev().take_while(|&byte| byte == b' ').count() / 2 * 2;
    text[..text.len() - zeros].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text as the page's script does.
    fn numbers(text: &str) -> Vec<u64> {
        let plain: String = (b' '..=b'~').filter(|byte| !b"\"<\\".contains(byte)).map(char::from).collect();
        let index = |byte: u8| plain.bytes().position(|other| other == byte).unwrap() as u64;
        let number = |pair: &[u8; 2]| match index(pair[0]) * 92 + index(pair[1]) {
            code @ ..100 => code,
            code => ((code - 100) % 900 + 100) * 10_u64.pow(((code - 100) / 900) as u32),
        };
        text.as_bytes().as_chunks::<2>().0.iter().map(number).collect()
    }

    #[test]
    fn columns_keep_three_digits_and_small_numbers() {
        let exact = [0, 1, 99, 100, 101, 999, 1_000, 1_230, 45_600, 99_900_000_000];
        assert_eq!(numbers(&column(exact.into_iter())), exact);
        assert_eq!(
            numbers(&column([1_234, 9_999, 123_456, u64::MAX].into_iter())),
            [1_230, 10_000, 123_000, 99_900_000_000]
        );
        assert_eq!(column([0, 0, 0].into_iter()), "");
        assert_eq!(numbers(&column([5, 0, 92, 0, 0].into_iter())), [5, 0, 92]);
        for number in 0..200_000 {
            let back = numbers(&column([number].into_iter())).first().copied().unwrap_or(0);
            assert!(back.abs_diff(number) * 200 <= number, "{number} {back}");
        }
    }

    #[test]
    fn levels_are_those_of_tiers() {
        assert_eq!(["host", "tier 0", "tier 2"].map(level), [0, 1, 3]);
    }
}
