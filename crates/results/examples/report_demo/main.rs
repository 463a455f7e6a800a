//! Draws the report of a made-up study: `cargo run -p selvedge-results --example report_demo [FILE]`.

use std::error::Error;
use std::path::PathBuf;

use selvedge_results::{ReportInput, SeriesInfo, StudyInfo, render_report, render_table, summarise};

mod synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args().nth(1).map_or_else(|| PathBuf::from("report.html"), PathBuf::from);
    let parts = target.with_extension("parts");
    std::fs::create_dir_all(&parts)?;

    let profiles = synthetic::irn_study();
    let mut points = Vec::new();
    for (position, profile) in profiles.iter().enumerate() {
        for seed in 1..=5 {
            points.push(synthetic::record(&parts, position, profile, seed, 11_000)?);
        }
    }
    let series: Vec<SeriesInfo> = profiles.iter().map(synthetic::Profile::info).collect();
    let study = StudyInfo {
        title: "Does RDMA need a lossless fabric?".into(),
        scenario: "54 hosts, fat-tree k = 6, 40 Gb/s, 2 us per link, 70 % load, heavy-tailed flow sizes".into(),
        threads: 2,
        version: env!("CARGO_PKG_VERSION").into(),
        wall_s: 41.3,
    };
    let summary = summarise(&study, &series, &points);
    let report = render_report(&ReportInput {
        summary: &summary,
        points: &points,
        scenario_toml: "title = \"Does RDMA need a lossless fabric?\"\nseeds = [1, 2, 3, 4, 5]\n\n[topology.fat-tree]\nk = 6\nlink = { rate = \"40Gbps\", delay = \"2us\" }\n",
        command: "selvedge run",
    });
    std::fs::write(&target, report)?;
    std::fs::remove_dir_all(&parts)?;
    eprint!("{}", render_table(&summary, 100, false));
    eprintln!("wrote {}", target.display());
    Ok(())
}
