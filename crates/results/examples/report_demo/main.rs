//! Writes the results folder of a synthetic study:
//! `cargo run -p selvedge-results --example report_demo [FOLDER [trouble]]`.
//! With `trouble`, one series deadlocks and another leaves flows unfinished.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use selvedge_results::{
    Fabric, Labels, PointFiles, ReportInput, SeriesInfo, StudyInfo, Table, WantedRun, merge, render_report,
    render_table, summarise, write_links,
};

mod synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).map_or_else(|| PathBuf::from("report_demo"), PathBuf::from);
    let parts = folder.join("points");
    fs::create_dir_all(&parts)?;

    let mut profiles = synthetic::irn_study();
    if std::env::args().nth(2).is_some_and(|word| word == "trouble") {
        profiles[2].deadlock = Some(3);
        profiles[3].unfinished = 0.03;
    }
    let mut points = Vec::new();
    let mut files = Vec::new();
    for (position, profile) in profiles.iter().enumerate() {
        for seed in 1..=5 {
            points.push(synthetic::record(&parts, position, profile, seed, 11_000)?);
            files.push(PointFiles::new(&parts, position, seed));
        }
    }
    let series: Vec<SeriesInfo> = profiles.iter().map(synthetic::Profile::info).collect();
    let study = StudyInfo {
        title: "Does RDMA need a lossless fabric?".into(),
        scenario: "54 hosts, fat-tree k = 6, 40 Gb/s, 2 us per link, 70 % load, heavy-tailed flow sizes".into(),
        threads: 2,
        version: env!("CARGO_PKG_VERSION").into(),
        wall_s: 41.3,
        deterministic: false,
        sweep: None,
    };
    let summary = summarise(&study, &series, &points);
    fs::write(folder.join("summary.json"), summary.to_json())?;
    merge(files.iter().map(|files| &files.flows), &folder.join("flows.parquet"), Table::Flows)?;
    merge(files.iter().map(|files| &files.ports), &folder.join("ports.parquet"), Table::Ports)?;
    let links: Vec<_> = profiles.iter().map(|profile| (Labels::from(profile.name), synthetic::links())).collect();
    write_links(&folder.join("links.parquet"), &links)?;
    let run = |(ink, profile): (usize, &synthetic::Profile)| WantedRun { series: profile.name, case: "", ink, seed: 1 };
    let wanted: Vec<_> = profiles.iter().enumerate().map(run).collect();
    let fabric = Fabric::read(&folder.join("links.parquet"), &folder.join("ports.parquet"), &wanted, 350_000)?;
    let report = render_report(&ReportInput {
        summary: &summary,
        points: &points,
        fabric: Some(&fabric),
        scenario_toml: "title = \"Does RDMA need a lossless fabric?\"\nseeds = [1, 2, 3, 4, 5]\n\n[topology.fat-tree]\nk = 6\nlink = { rate = \"40Gbps\", delay = \"2us\" }\n",
        command: "selvedge run",
    });
    fs::write(folder.join("report.html"), report)?;
    fs::remove_dir_all(&parts)?;
    eprint!("{}", render_table(&summary, 100, false));
    eprintln!("wrote {}", folder.display());
    Ok(())
}
