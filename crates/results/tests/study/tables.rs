//! Tables of rows, written to Parquet and read back.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use crate::{common, synthetic};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Field, Row, RowAccessor};
use parquet::schema::parser::parse_message_type;
use parquet::schema::printer::print_schema;
use selvedge_results::{
    Bound, Fabric, Filter, FlowSummary, Labels, LinkRow, Metric, PointFiles, PointRecorder, PointSummary, Query,
    QueryError, Relation, StoredFlow, StudyInfo, Swept, Table, WantedRun, merge, read_flows, summarise, write_links,
};
use selvedge_telemetry::{FlowRow, GroupParts, Observer, PortInfo, PortKind, PortRow, PortTotals, RunRecord};
use selvedge_testkit::Scratch;
use selvedge_units::{Bytes, Duration, HostId, Instant, PortId, Rate};

fn flow(id: u64) -> FlowRow {
    let start = Instant::from_ps(id * 1_000);
    FlowRow {
        id,
        workload: 3,
        group: u32::MAX,
        src: HostId(u32::MAX - 1),
        dst: HostId(7),
        // Large values that no encoding makes small.
        size: Bytes::new(u64::MAX - id.wrapping_pow(5).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        packets: 1 + id % 2,
        start,
        finish: (!id.is_multiple_of(5)).then(|| start + Duration::from_us(id + 1)),
        ideal: Duration::from_us(1),
        spurious: 2,
        measured: !id.is_multiple_of(3),
    }
}

fn record(folder: &Path, position: usize, series: &str, seed: u64, flows: std::ops::Range<u64>) -> PointFiles {
    let files = PointFiles::new(folder, position, seed);
    let mut recorder = PointRecorder::create(files.clone(), series, seed, &ports()).unwrap();
    let rows: Vec<FlowRow> = flows.map(flow).collect();
    recorder.on_flows(&rows);
    recorder.finish(&RunRecord::default()).unwrap();
    files
}

/// Returns the ports of a host and its switch.
fn ports() -> Vec<PortInfo> {
    let switch = PortKind::Switch { tier: 0 };
    let port = |id, node: &str, peer: &str, kind, peer_kind| PortInfo {
        id: PortId(id),
        node: node.into(),
        peer: peer.into(),
        peer_id: PortId(1 - id),
        kind,
        peer_kind,
        rate: Rate::from_gbps(40),
    };
    vec![port(0, "h0", "tor", PortKind::Host, switch), port(1, "tor", "h0", switch, PortKind::Host)]
}

fn read(path: &Path) -> Vec<StoredFlow> {
    read_flows(path).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn flows_come_back_as_they_went() {
    let folder = Scratch::new("results-round-trip");
    let files = record(folder.path(), 0, "irn", u64::MAX, 0..70_000);
    let found = read(&files.flows);
    assert_eq!(found.len(), 70_000);
    for (id, stored) in found.iter().enumerate() {
        assert_eq!((&*stored.series, stored.seed, stored.flow), ("irn", u64::MAX, flow(id as u64)));
    }
}

/// With more flows than are kept in memory, quantiles come from the file.
#[test]
fn quantiles_of_tens_of_thousands_of_flows_are_exact() {
    let folder = Scratch::new("results-exact");
    for (flows, is_exact) in [(20_000, true), (90_000, true), (200_000, false)] {
        let files = PointFiles::new(folder.path(), 0, 1);
        let workloads = [("a", None), ("b", Some(GroupParts::Flows(1))), ("c", None), ("d", None)];
        let recorder = PointRecorder::create(files, "irn", 1, &ports()).unwrap();
        let mut recorder = recorder.with_workloads(&workloads);
        let rows: Vec<FlowRow> = (0..flows).map(flow).collect();
        rows.chunks(100).for_each(|rows| recorder.on_flows(rows));
        // The run ends after the last finish.
        let end = Instant::ZERO + Duration::from_us(300_000);
        let summary = recorder.finish(&RunRecord { end, ..RunRecord::default() }).unwrap();

        let counted = || rows.iter().filter(|row| row.measured);
        let taken = |row: &FlowRow| row.fct().unwrap_or(end.since(row.start)).as_us_f64();
        let mut all: Vec<f64> = counted().map(taken).collect();
        let mut single: Vec<f64> = counted().filter(|row| row.packets == 1).map(taken).collect();
        all.sort_by(f64::total_cmp);
        single.sort_by(f64::total_cmp);
        let (_, own) = &summary.workloads[3];
        assert_eq!(*own, summary.flows, "they are all of this workload");
        let FlowSummary { fct_us, slowdown, single_packet_fct_us, .. } = own;
        for (found, values) in [(fct_us, &all), (slowdown, &all), (single_packet_fct_us, &single)] {
            assert_eq!(found.count, values.len() as u64);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!((found.mean.unwrap() / mean - 1.0).abs() < 1e-9);
            // A fifth never finish: the median does not depend on their times, and everything beyond 80 % is a bound.
            assert!(found.open.p99 && found.open.p999, "{found:?}");
            for (found, level) in [(found.p50, 500), (found.p99, 990), (found.p999, 999)] {
                // Nearest rank; the values are sorted.
                let expected = values[(values.len() * level).div_ceil(1_000) - 1];
                let error = (found.unwrap() - expected).abs() / expected;
                assert!(error < 2e-4 && (error == 0.0 || !is_exact && values.len() > 1 << 16), "{flows}: {error}");
            }
        }
    }
}

/// Unfinished flows do not make the median a bound if it is the same for any completion times of theirs.
#[test]
fn a_quantile_is_a_bound_only_where_flows_that_had_not_finished_can_move_it() {
    let folder = Scratch::new("results-open");
    let found = |open: u64| {
        let files = PointFiles::new(folder.path(), 0, 1);
        let mut recorder = PointRecorder::create(files, "irn", 1, &ports()).unwrap();
        let end = Instant::ZERO + Duration::from_us(1_000);
        for id in 0..1_000 {
            let start = if id < open { Instant::ZERO + Duration::from_us(999) } else { Instant::ZERO };
            // Completion times as similar as those near the median of many flows.
            let finish = (id >= open).then(|| start + Duration::from_ns(500_000 + id));
            recorder.on_flows(&[FlowRow { start, finish, measured: true, ..flow(id) }]);
        }
        recorder.finish(&RunRecord { end, ..RunRecord::default() }).unwrap()
    };
    let names = ["fct_p50_us", "fct_p99_us", "fct_p999_us", "fct_mean_us", "throughput_jain", "drop_rate"];
    let bounds = |open| {
        let point = found(open);
        let info = common::series("irn", "irn", false, 1.0, 0.0).info;
        let summary = summarise(&StudyInfo::default(), &[info], &[point]);
        names.map(|name| summary.series[0].metric(name).unwrap().bound)
    };
    let (least, none) = (Some(Bound::AtLeast), Some(Bound::Undecided));
    assert_eq!(bounds(0), [None; 6]);
    // Five of 1,000: quantiles beyond 99.5 % are bounds.
    assert_eq!(bounds(5), [None, None, least, least, none, None]);
    assert_eq!(bounds(20), [None, least, least, least, none, None]);
    assert_eq!(bounds(600), [least, least, least, least, none, None]);
    // An age of 1 us each.
    let mean = found(20).flows.fct_us.mean.unwrap();
    assert!((mean - (980.0 * 500.0 + (20..1_000).sum::<u64>() as f64 / 1e3 + 20.0) / 1e3).abs() < 1e-9, "{mean}");
}

/// The memory that a file needs is proportional to its row groups, of which there are few.
#[test]
fn millions_of_flows_are_few_row_groups() {
    let folder = Scratch::new("results-groups");
    let flows = (1 << 22) + 70_001;
    let files = PointFiles::new(folder.path(), 0, 1);
    let mut recorder = PointRecorder::create(files.clone(), "irn", 1, &ports()).unwrap();
    (0..flows).for_each(|id| recorder.on_flows(&[flow(id)]));
    recorder.finish(&RunRecord::default()).unwrap();
    let other = record(folder.path(), 1, "roce", 1, 0..5);
    let target = folder.path().join("flows.parquet");
    merge([&files.flows, &other.flows], &target, Table::Flows).unwrap();

    let metadata = SerializedFileReader::new(File::open(&target).unwrap()).unwrap().metadata().clone();
    let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [1 << 22, 70_001, 5]);
    let expected = (0..flows).map(|id| ("irn", flow(id))).chain((0..5).map(|id| ("roce", flow(id))));
    let mut found = read_flows(&target).unwrap();
    for (series, flow) in expected {
        let stored = found.next().unwrap().unwrap();
        assert_eq!((&*stored.series, stored.flow), (series, flow));
    }
    assert!(found.next().is_none());
}

/// Some columns have few values, and dictionaries; others have too many for a dictionary.
#[test]
fn samples_of_ports_come_back_as_they_went() {
    let folder = Scratch::new("results-ports");
    let files = PointFiles::new(folder.path(), 0, 1);
    let mut recorder = PointRecorder::create(files.clone(), "irn", 1, &ports()).unwrap();
    let samples = 300_000;
    for n in 1..=samples {
        let row = |port| PortRow {
            time: Instant::ZERO + Duration::from_us(n),
            port: PortId(port),
            egress_queue: Bytes::new(n * u64::from(port)),
            ingress_buffer: Bytes::new(n % 3),
            paused: Duration::ZERO,
            busy: Duration::ZERO,
            drops: 0,
            trims: 0,
        };
        recorder.on_ports(&[row(0), row(1)]);
    }
    recorder.finish(&RunRecord::default()).unwrap();

    let reader = SerializedFileReader::new(File::open(&files.ports).unwrap()).unwrap();
    assert_eq!(reader.num_row_groups(), 2);
    let mut seen = [0, 0];
    for row in reader {
        let row = row.unwrap();
        let port = row.get_int(4).unwrap();
        // Each port's samples are in order.
        let n = &mut seen[port as usize];
        *n += 1;
        let names = if port == 0 { ("h0", "tor") } else { ("tor", "h0") };
        assert_eq!((row.get_string(5).unwrap().as_str(), row.get_string(6).unwrap().as_str()), names);
        let numbers = [3, 8, 9].map(|column| row.get_long(column).unwrap().cast_unsigned());
        assert_eq!(numbers, [*n * 1_000_000, *n * port as u64, *n % 3]);
    }
    assert_eq!(seen, [samples; 2]);
}

/// More port numbers than a dictionary can hold; each comes several times in a row, also across the end of a page.
#[test]
fn samples_of_very_many_ports_come_back() {
    const PORTS: u32 = 20_001;
    let switch = PortKind::Switch { tier: 0 };
    let info = |id| PortInfo {
        id: PortId(id),
        node: format!("h{id}").into(),
        peer: format!("tor{}", id / 7).into(),
        peer_id: PortId(id),
        kind: PortKind::Host,
        peer_kind: switch,
        rate: Rate::from_gbps(40),
    };
    let infos: Vec<PortInfo> = (0..PORTS).map(info).collect();
    let folder = Scratch::new("results-many-ports");
    let files = PointFiles::new(folder.path(), 0, 1);
    let mut recorder = PointRecorder::create(files.clone(), "irn", 1, &infos).unwrap();
    for n in 1..=7 {
        let row = |port| PortRow {
            time: Instant::ZERO + Duration::from_us(n),
            port: PortId(port),
            egress_queue: Bytes::new(n * u64::from(port)),
            ..PortRow::default()
        };
        recorder.on_ports(&(0..PORTS).map(row).collect::<Vec<_>>());
    }
    recorder.finish(&RunRecord::default()).unwrap();

    let mut seen = vec![0; PORTS as usize];
    for row in SerializedFileReader::new(File::open(&files.ports).unwrap()).unwrap() {
        let row = row.unwrap();
        let port = row.get_int(4).unwrap();
        let n = &mut seen[port as usize];
        *n += 1;
        assert_eq!(row.get_string(5).unwrap(), &format!("h{port}"));
        assert_eq!(row.get_string(6).unwrap(), &format!("tor{}", port / 7));
        assert_eq!([3, 8].map(|column| row.get_long(column).unwrap()), [*n * 1_000_000, *n * i64::from(port)]);
    }
    assert!(seen.iter().all(|n| *n == 7));
}

#[test]
fn a_point_without_rows_is_a_valid_file() {
    let folder = Scratch::new("results-empty");
    let files = record(folder.path(), 0, "irn", 1, 0..0);
    assert_eq!(read(&files.flows), []);
    let target = folder.path().join("flows.parquet");
    merge([&files.flows, &files.flows], &target, Table::Flows).unwrap();
    assert_eq!(read(&target), []);
}

#[test]
fn merging_keeps_every_row_in_the_order_of_the_parts() {
    let folder = Scratch::new("results-merge");
    let parts = [
        record(folder.path(), 0, "irn", 1, 0..66_000),
        record(folder.path(), 0, "irn", 2, 5..10),
        record(folder.path(), 1, "roce", 1, 0..0),
        record(folder.path(), 1, "roce", 2, 20..25),
    ];
    let target = folder.path().join("flows.parquet");
    merge(parts.iter().map(|part| &part.flows), &target, Table::Flows).unwrap();
    let separate: Vec<StoredFlow> = parts.iter().flat_map(|part| read(&part.flows)).collect();
    assert!(read(&target) == separate, "the merged rows differ");
    let first = fs::read(&target).unwrap();
    merge(parts.iter().map(|part| &part.flows), &target, Table::Flows).unwrap();
    assert!(fs::read(&target).unwrap() == first, "merging twice gives different bytes");
    merge(parts.iter().map(|part| &part.ports), &folder.path().join("ports.parquet"), Table::Ports).unwrap();
}

#[test]
fn a_part_alone_is_the_whole() {
    let folder = Scratch::new("results-alone");
    let part = record(folder.path(), 0, "irn", 1, 0..100);
    let target = folder.path().join("flows.parquet");
    for _ in 0..2 {
        merge([&part.flows], &target, Table::Flows).unwrap();
        assert_eq!(read(&target), read(&part.flows));
        assert!(!folder.path().join("flows.parquet.partial").exists());
    }
    fs::remove_file(&part.flows).unwrap();
    assert_eq!(read(&target).len(), 100);
}

#[test]
fn a_truncated_part_is_named_with_a_remedy_and_leaves_nothing() {
    let folder = Scratch::new("results-truncated");
    let good = record(folder.path(), 0, "irn", 1, 0..1_000);
    let bad = record(folder.path(), 0, "irn", 2, 0..1_000);
    let bytes = fs::read(&bad.flows).unwrap();
    let target = folder.path().join("flows.parquet");
    for len in [0, 3, 12, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&bad.flows, &bytes[..len]).unwrap();
        let error = merge([&good.flows, &bad.flows], &target, Table::Flows).unwrap_err();
        assert_eq!(error.path(), bad.flows);
        let text = error.to_string();
        assert!(text.contains("truncated or damaged") && text.contains("--resume"), "{text}");
        assert!(read_flows(&bad.flows).is_err());
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name != "flows.parquet" && name != "flows.parquet.partial"), "{left:?}");
    }
}

#[test]
fn a_file_whose_middle_is_missing_is_refused() {
    let folder = Scratch::new("results-hole");
    let part = record(folder.path(), 0, "irn", 1, 0..60_000);
    let bytes = fs::read(&part.flows).unwrap();
    // The footer is whole, but what it points at lies beyond the end of the file.
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize + 8;
    let mut short = bytes[..64].to_vec();
    short.extend_from_slice(&bytes[bytes.len() - footer..]);
    fs::write(&part.flows, short).unwrap();
    let error = merge([&part.flows], &folder.path().join("flows.parquet"), Table::Flows).unwrap_err().to_string();
    assert!(error.contains("--resume") && error.contains("000-seed-1.flows.parquet"), "{error}");
    let found: Result<Vec<_>, _> = read_flows(&part.flows).and_then(Iterator::collect);
    assert!(found.unwrap_err().to_string().contains("damaged"));
}

#[test]
fn a_point_is_resumed_only_if_all_of_it_is_there() {
    let folder = Scratch::new("results-resume");
    let files = record(folder.path(), 0, "irn", 1, 0..100);
    assert!(files.completed("irn", 1).is_ok());
    assert!(files.completed("irn", 2).is_err() && files.completed("roce", 1).is_err(), "another point");
    let bytes = fs::read(&files.ports).unwrap();
    fs::write(&files.ports, &bytes[..bytes.len() - 1]).unwrap();
    let error = files.completed("irn", 1).unwrap_err();
    assert_eq!(error.path(), files.ports, "a truncated part");
    fs::write(&files.ports, &bytes).unwrap();
    assert!(files.completed("irn", 1).is_ok());
    // Only the content differs: one bit, another valid file, and another number.
    for path in [&files.flows, &files.ports] {
        let bytes = fs::read(path).unwrap();
        for at in [bytes.len() / 20, bytes.len() / 2] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            fs::write(path, flipped).unwrap();
            assert_eq!(files.completed("irn", 1).unwrap_err().path(), path, "a bit flipped in byte {at}");
        }
        fs::write(path, &bytes).unwrap();
    }
    let other = record(folder.path(), 0, "irn", 2, 100..200);
    let bytes = fs::read(&files.flows).unwrap();
    fs::copy(&other.flows, &files.flows).unwrap();
    let error = files.completed("irn", 1).unwrap_err();
    assert!(error.path() == files.flows && error.to_string().contains("not as it was written"), "{error}");
    fs::write(&files.flows, &bytes).unwrap();
    let text = fs::read_to_string(&files.summary).unwrap();
    fs::write(&files.summary, text.replacen("\"flows_started\":0", "\"flows_started\":1", 1)).unwrap();
    assert_ne!(fs::read_to_string(&files.summary).unwrap(), text);
    assert_eq!(files.completed("irn", 1).unwrap_err().path(), files.summary);
    fs::write(&files.summary, text).unwrap();
    assert!(files.completed("irn", 1).is_ok());
    // A new attempt removes the results of the previous one.
    drop(PointRecorder::create(files.clone(), "irn", 1, &ports()).unwrap());
    assert!(files.completed("irn", 1).is_err(), "an attempt that was given up");
}

#[test]
fn another_table_is_refused() {
    let folder = Scratch::new("results-other-table");
    let part = record(folder.path(), 0, "irn", 1, 0..10);
    let error = read_flows(&part.ports).err().unwrap().to_string();
    assert!(error.contains("not a table of flows") && error.contains("egress_queue_bytes"), "{error}");
    let error = read_flows(&folder.path().join("missing")).err().unwrap().to_string();
    assert!(error.contains("missing: cannot open it"), "{error}");
}

/// A table as other programs write it: every column may be null.
#[test]
fn a_table_whose_columns_are_of_other_types_is_refused_by_column() {
    let folder = Scratch::new("results-other-types");
    let part = record(folder.path(), 0, "irn", 1, 0..10);
    let own = SerializedFileReader::new(File::open(&part.flows).unwrap()).unwrap();
    let mut text = Vec::new();
    print_schema(&mut text, own.metadata().file_metadata().schema());
    let text = String::from_utf8(text).unwrap();
    for (own, other) in [("REQUIRED INT64 seed", "OPTIONAL INT64 seed"), ("DOUBLE slowdown", "FLOAT slowdown")] {
        assert!(text.contains(own), "{text}");
        let schema = Arc::new(parse_message_type(&text.replace(own, other)).unwrap());
        let path = folder.path().join("other.parquet");
        let writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        writer.close().unwrap();
        let error = read_flows(&path).err().unwrap().to_string();
        let column = own.rsplit(' ').next().unwrap();
        assert!(
            error.contains(&format!("not a table of flows by this version, or damaged: its column {column} is ")),
            "{error}"
        );
        let (found, expected) = error.split_once("; expected ").unwrap();
        assert!(found.contains(other) && expected.contains(own), "{error}");
    }
    // After the table's own columns, only columns for keys that cases change are accepted.
    for (column, complaint) in [
        ("REQUIRED INT32 strange;", "its column strange is REQUIRED INT32"),
        ("REQUIRED GROUP strange { REQUIRED INT32 inside; }", "its column strange is REQUIRED"),
        ("OPTIONAL DOUBLE strange;", "its column strange is OPTIONAL DOUBLE"),
        ("REQUIRED DOUBLE str\u{e4}nge;", "it has a column \"str\u{e4}nge\""),
    ] {
        let schema = format!("{} {column} }}", text.trim_end().trim_end_matches('}'));
        let path = folder.path().join("more.parquet");
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap().close().unwrap();
        let error = read_flows(&path).err().unwrap().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn an_unwritable_folder_is_one_clear_error() {
    let files = PointFiles::new(Path::new("/nonexistent/folder"), 0, 1);
    let error = PointRecorder::create(files, "irn", 1, &ports()).err().unwrap().to_string();
    assert!(error.starts_with("/nonexistent/folder/000-seed-1.flows.parquet: cannot create it"), "{error}");
}

#[test]
fn a_full_disk_is_reported() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: no /dev/full on this system");
        return;
    }
    let folder = Scratch::new("results-full");
    let files = PointFiles { flows: "/dev/full".into(), ..PointFiles::new(folder.path(), 0, 1) };
    let mut recorder = PointRecorder::create(files.clone(), "irn", 1, &ports()).unwrap();
    recorder.on_flows(&[flow(1)]);
    let error = recorder.finish(&RunRecord::default()).unwrap_err().to_string();
    assert!(error.starts_with("/dev/full: cannot write: No space") && error.contains("space left"), "{error}");
    assert!(!files.summary.exists(), "the point must not look complete");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_stops_the_run_and_is_reported() {
    let folder = Scratch::new("results-filling");
    let files = PointFiles::new(folder.path(), 0, 1);
    let mut recorder = PointRecorder::create(files.clone(), "irn", 1, &ports()).unwrap();
    assert!(recorder.on_progress(Instant::ZERO, 0));
    // The file for pages that exceed the memory limit.
    std::os::unix::fs::symlink("/dev/full", folder.path().join("000-seed-1.flows.spill")).unwrap();
    for id in 0..200_000 {
        recorder.on_flows(&[flow(id)]);
    }
    assert!(!recorder.on_progress(Instant::ZERO, 0), "a run whose rows are lost should stop");
    let error = recorder.finish(&RunRecord::default()).unwrap_err().to_string();
    let part = files.flows.display().to_string();
    assert!(error.starts_with(&format!("{part}: cannot write")) && error.contains("space left"), "{error}");
    assert!(!files.summary.exists(), "the point must not look complete");
}

/// The file of pages is unnamed, so that it vanishes however the run ends.
#[cfg(unix)]
#[test]
fn pages_on_disk_have_no_name() {
    let folder = Scratch::new("results-nameless");
    let files = PointFiles::new(folder.path(), 0, 1);
    let mut recorder = PointRecorder::create(files, "irn", 1, &ports()).unwrap();
    for id in 0..200_000 {
        recorder.on_flows(&[flow(id)]);
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.len() == 2 && names.iter().all(|name| name.to_string_lossy().ends_with(".parquet")), "{names:?}");
    let on_disk = || fs::metadata(folder.path().join("000-seed-1.flows.parquet")).unwrap().len();
    assert!(on_disk() < 100, "the row group is not complete");
    recorder.finish(&RunRecord::default()).unwrap();
    let len = on_disk();
    assert!(len > 1 << 20, "{len} bytes: no more than what stays in memory");
}

#[test]
fn recorders_may_move_to_other_threads() {
    fn assert_send<T: Send>() {}
    assert_send::<PointRecorder>();
}

#[test]
fn a_point_survives_its_file() {
    let folder = Scratch::new("results-json");
    let mut profile = synthetic::irn_study().remove(2);
    profile.deadlock = Some(4);
    let point = synthetic::record(folder.path(), 2, &profile, 4, 3_000).unwrap();
    let path = PointFiles::new(folder.path(), 2, 4).summary;
    let loaded = PointSummary::load(&path).unwrap();
    assert!(loaded == point, "the point read is not the point written");
    fs::write(&path, "{\"series\": 3}").unwrap();
    assert!(PointSummary::load(&path).unwrap_err().to_string().contains("--resume"));
}

#[test]
fn a_point_counts_what_it_saw() {
    let folder = Scratch::new("results-counts");
    let files = PointFiles::new(folder.path(), 0, 1);
    let mut recorder = PointRecorder::create(files, "irn", 1, &ports()).unwrap();
    for id in 0..30_000 {
        recorder.on_flows(&[FlowRow { size: Bytes::new(1_000), ..flow(id) }]);
    }
    // Two samples, 10 us apart; the switch's port is paused for half of the second.
    for (us, paused_us, depth) in [(10, 0, 4_000), (20, 5, 8_000)] {
        let row = |port, paused_us, depth| PortRow {
            time: Instant::ZERO + Duration::from_us(us),
            port: PortId(port),
            egress_queue: Bytes::new(depth),
            ingress_buffer: Bytes::ZERO,
            paused: Duration::from_us(paused_us),
            busy: Duration::from_us(5),
            drops: 0,
            trims: 0,
        };
        recorder.on_ports(&[row(0, 0, 0), row(1, paused_us, depth)]);
    }
    let totals = |id, paused_us, pauses_sent| PortTotals {
        id: PortId(id),
        frames: 1,
        bytes: Bytes::new(50_000),
        paused: Duration::from_us(paused_us),
        pauses_sent,
        egress_peak: Bytes::new(9_000),
        drops: 0,
        trims: 0,
    };
    let record = RunRecord {
        end: Instant::ZERO + Duration::from_us(20),
        paused: Duration::from_us(5),
        ports: vec![totals(0, 0, 3), totals(1, 5, 0)],
        fingerprint: 0xabc,
        ..RunRecord::default()
    };
    let point = recorder.finish(&record).unwrap();

    // Two thirds are measured, a fifth of those never finish; half have one packet.
    assert_eq!((point.flows.measured, point.flows.unfinished), (20_000, 4_000));
    // Unfinished flows count with their age.
    let age = |row: &FlowRow| if row.start < record.end { record.end.since(row.start) } else { Duration::ZERO };
    let measured = (0..30_000).map(flow).filter(|row| row.measured);
    let mut fcts: Vec<f64> = measured.map(|row| row.fct().unwrap_or(age(&row)).as_us_f64()).collect();
    fcts.sort_by(f64::total_cmp);
    let mean = fcts.iter().sum::<f64>() / fcts.len() as f64;
    assert!((point.flows.fct_us.mean.unwrap() - mean).abs() < 1e-6);
    assert_eq!((point.flows.fct_us.count, point.flows.by_size[0].unfinished), (20_000, 4_000));
    // The ideal time is 1 us, so slowdown is the FCT in microseconds.
    assert_eq!(point.flows.slowdown.p99, point.flows.fct_us.p99);
    assert_eq!(point.flows.fct_us.p99, Some(fcts[fcts.len() * 99 / 100 - 1]));
    assert_eq!(point.flows.single_packet_fct_us.count, 10_000);
    // 10,000 messages determine levels up to 1 - 1/10000; a fifth of them never finished, so that all levels are
    // bounds.
    assert_eq!((point.flows.single_packet_tail_us.len(), point.flows.open_tail), (61, Some(0)));
    assert_eq!(point.flows.by_size.len(), 1);
    assert_eq!((point.flows.by_size[0].above, point.flows.by_size[0].up_to), (512, 1024));
    assert_eq!((point.flows.groups, point.flows.group_completion_mean_us), (0, None), "its flows make no groups");

    assert_eq!(point.run.fingerprint, "0000000000000abc");
    // 50,000 B of the 100,000 B that 40 Gb/s carry in 20 us.
    assert_eq!(point.run.utilisation, Some(0.5));
    assert_eq!(point.queues.bin_us, 10.0);
    assert_eq!(point.queues.tiers[1].max, [4_000.0, 8_000.0]);
    assert_eq!((point.utilisation.bin_us, point.utilisation.tiers.len()), (10.0, 2));
    assert!(point.utilisation.tiers.iter().all(|tier| tier.max == [0.5, 0.5] && tier.mean == [0.5, 0.5]));
    let worst = &point.pauses.worst[0];
    assert_eq!((worst.node.as_str(), worst.peer.as_str(), worst.pauses), ("tor", "h0", 3));
    assert_eq!(worst.share, [0.0, 0.5]);
    assert_eq!((point.pauses.paused_ports, point.pauses.ports), (1, 2));
}

#[test]
fn copies_behind_the_end_of_a_flow_are_no_losses() {
    let per_loss = |link_loss, unknown_qp, trims, trimmed_drops| {
        let mut point = common::point(&common::series("irn", "irn", false, 1.0, 0.0), 1, [1.0; 3]);
        point.run.retransmissions = 6;
        point.run.data_drops.link_loss = link_loss;
        point.run.data_drops.unknown_qp = unknown_qp;
        (point.run.trims, point.run.trimmed_drops) = (trims, trimmed_drops);
        let metric = Metric::find("retransmissions_per_loss").expect("a metric");
        (metric.of)(&point)
    };
    assert_eq!(per_loss(4, 2, 0, 0), Some(1.5));
    assert_eq!(per_loss(4, 2, 8, 0), Some(0.5), "what was trimmed has to be sent again");
    assert_eq!(per_loss(4, 2, 6, 4), Some(1.0), "once, even if its header is dropped, too");
    assert_eq!(per_loss(0, 2, 0, 0), None);
}

#[test]
fn what_switches_send_again_can_be_dropped_too() {
    let mut point = common::point(&common::series("netrt", "netrt", false, 1.0, 0.0), 1, [1.0; 3]);
    point.run.data_sent = 1_000;
    // Packets on other paths only seemed to be lost: the retransmissions are spurious.
    point.run.netrt.retransmissions = 1_500;
    point.run.data_drops.surplus = 1_500;
    let metric = Metric::find("drop_rate").expect("a metric");
    assert_eq!((metric.of)(&point), Some(0.6));
}

/// Returns the column names of a table, and its rows as JSON.
fn rows(path: &Path) -> (Vec<String>, Vec<serde_json::Value>) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let names = fields.iter().map(|field| field.name().to_owned()).collect();
    let value = |field: &Field| match field {
        Field::Str(text) => text.as_str().into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::Double(number) => (*number).into(),
        _ => serde_json::Value::Null,
    };
    let row = |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect();
    (names, reader.into_iter().map(|found| row(found.unwrap())).collect())
}

fn labelled(series: &str, case: &str, load: f64, buffer: &str) -> Labels {
    Labels {
        name: format!("{case}: {series}"),
        series: series.into(),
        case: Some(case.into()),
        swept: vec![
            ("workload.poisson.load".into(), Swept::Number(load)),
            ("switch.buffer.shared-buffer.total".into(), Swept::Text(buffer.into())),
        ],
    }
}

#[test]
fn rows_have_their_case_and_what_it_changes() {
    let folder = Scratch::new("results-cases");
    let record = |at: usize, labels: Labels| {
        let files = PointFiles::new(folder.path(), at, 1);
        let mut recorder = PointRecorder::create(files.clone(), labels, 1, &ports()).unwrap();
        (0..3).for_each(|id| recorder.on_flows(&[FlowRow { src: HostId(0), ..flow(id) }]));
        recorder.on_ports(&[PortRow { time: Instant::from_ps(1_000), ..PortRow::default() }]);
        recorder.finish(&RunRecord::default()).unwrap();
        files
    };
    let parts = [
        record(0, labelled("irn", "30 %", 0.3, "1MB")),
        record(1, labelled("irn", "50 %", -0.5, "")),
        record(2, labelled("irn", "none", f64::NAN, "2MB")),
    ];
    let target = folder.path().join("flows.parquet");
    merge(parts.iter().map(|part| &part.flows), &target, Table::Flows).unwrap();
    let (names, found) = rows(&target);
    assert_eq!(names[..3], ["series", "case", "seed"]);
    assert_eq!(names[names.len() - 2..], ["load", "total"]);
    assert_eq!(found.len(), 9);
    let first = &found[0];
    assert_eq!((&first["series"], &first["case"], &first["load"]), (&"irn".into(), &"30 %".into(), &0.3.into()));
    assert_eq!((&first["total"], &first["src_node"], &first["dst_node"]), (&"1MB".into(), &"h0".into(), &"".into()));
    assert_eq!((&found[3]["case"], &found[3]["load"]), (&"50 %".into(), &(-0.5).into()));
    let stored = read(&target);
    assert_eq!((&*stored[3].series, &*stored[3].case, stored[3].flow.id), ("irn", "50 %", 0));

    let target = folder.path().join("ports.parquet");
    merge(parts.iter().map(|part| &part.ports), &target, Table::Ports).unwrap();
    let (names, found) = rows(&target);
    assert_eq!(names[names.len() - 2..], ["load", "total"]);
    assert_eq!(
        (&found[1]["case"], &found[1]["load"], &found[1]["node"]),
        (&"50 %".into(), &(-0.5).into(), &"h0".into())
    );

    // A part of another study does not fit.
    let other = record(3, "irn".into());
    let error = merge([&parts[0].flows, &other.flows], &target, Table::Flows).unwrap_err().to_string();
    assert!(error.contains("its columns are not those of the study's other parts"), "{error}");
}

/// Programs subtract columns, and differences of unsigned columns would wrap around.
#[test]
fn whole_numbers_are_signed() {
    let folder = Scratch::new("results-signed");
    let part = record(folder.path(), 0, "irn", 1, 0..3);
    let links = folder.path().join("links.parquet");
    write_links(&links, &[]).unwrap();
    for path in [&part.flows, &part.ports, &links] {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let mut text = Vec::new();
        print_schema(&mut text, reader.metadata().file_metadata().schema());
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("INT64") && !text.contains("UINT") && !text.contains("INTEGER("), "{text}");
    }
}

#[test]
fn links_tell_what_the_numbers_of_ports_mean() {
    let folder = Scratch::new("results-links");
    let path = folder.path().join("links.parquet");
    let link = |port: PortInfo| LinkRow { link: 4, port, delay: Duration::from_ns(600), loss: 0.25 };
    let links: Vec<LinkRow> = ports().into_iter().map(link).collect();
    let networks = [(labelled("irn", "a", 0.3, "1MB"), links.clone()), (labelled("irn", "b", 0.5, "1MB"), links)];
    write_links(&path, &networks).unwrap();
    let (names, found) = rows(&path);
    let own = ["link", "port", "peer_port", "node", "peer", "tier", "peer_tier", "rate_bps", "delay_ps", "loss"];
    assert_eq!(names, [&["series", "case"][..], &own, &["load", "total"]].concat());
    assert_eq!(found.len(), 4);
    let row = &found[3];
    assert_eq!(
        (&row["case"], &row["link"], &row["port"], &row["peer_port"]),
        (&"b".into(), &4.into(), &1.into(), &0.into())
    );
    assert_eq!(
        (&row["node"], &row["peer"], &row["tier"], &row["peer_tier"]),
        (&"tor".into(), &"h0".into(), &"tier 0".into(), &"host".into())
    );
    assert_eq!(
        (&row["rate_bps"], &row["delay_ps"], &row["loss"]),
        (&40_000_000_000_u64.into(), &600_000.into(), &0.25.into())
    );
}

/// A changed byte anywhere in a table never makes a reader return other flows.
#[test]
fn damage_anywhere_in_a_table_is_noticed_or_harmless() {
    let folder = Scratch::new("results-flipped");
    let part = record(folder.path(), 0, "irn", 1, 0..3_000);
    let (bytes, whole) = (fs::read(&part.flows).unwrap(), read(&part.flows));
    let (mut noticed, mut at) = (0, 4);
    while at + 8 < bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs::write(&part.flows, flipped).unwrap();
        match read_flows(&part.flows).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(found) => assert!(found == whole, "byte {at}: other flows"),
            Err(error) => {
                assert!(error.to_string().contains("damaged"), "byte {at}: {error}");
                noticed += 1;
            }
        }
        at += 1 + bytes.len() / 1_500;
    }
    assert!(noticed > 500, "{noticed} noticed");
}

/// Returns the numbers of flows on a page of a query.
fn page_of(path: &Path, query: &Query) -> (Vec<u64>, u64) {
    let page = query.run(Table::Flows, path).unwrap();
    assert!(page.rows.iter().all(|row| row.len() == page.columns.len()), "every row has all columns");
    let column = page.columns.iter().position(|name| name == "flow").unwrap();
    (page.rows.iter().map(|row| row[column].whole()).collect(), page.matching)
}

#[test]
fn pages_of_a_table_are_those_of_all_rows_sorted_and_filtered() {
    let folder = Scratch::new("results-query");
    let flows = 40_000_u64;
    let parts: Vec<PointFiles> = [("irn", 0..flows / 2), ("roce", flows / 2..flows)]
        .into_iter()
        .enumerate()
        .map(|(at, (name, ids))| record(folder.path(), at, name, 1, ids))
        .collect();
    let path = folder.join("flows.parquet");
    merge(parts.iter().map(|part| &part.flows), &path, Table::Flows).unwrap();
    let filter = |column: &str, is, value: &str| Filter { column: column.into(), is, value: value.into() };

    // In the order of the file, across its groups.
    let query = Query { offset: flows as usize / 2 - 3, limit: 6, ..Query::default() };
    assert_eq!(page_of(&path, &query), ((flows / 2 - 3..flows / 2 + 3).collect(), flows));
    let beyond = Query { offset: flows as usize + 5, limit: 6, ..Query::default() };
    assert_eq!(page_of(&path, &beyond), (vec![], flows));

    // Sorted by a column with missing values, which come last either way.
    let time = |id: u64| flow(id).fct().map(|fct| fct.as_ps());
    for descending in [false, true] {
        let mut all: Vec<u64> = (0..flows).collect();
        all.sort_by_key(|&id| match (time(id), descending) {
            (None, _) => (true, 0),
            (Some(time), false) => (false, time),
            (Some(time), true) => (false, u64::MAX - time),
        });
        for offset in [0, 7_777, flows as usize * 4 / 5 - 2] {
            let query = Query { offset, limit: 5, sort: Some("fct_ps".into()), descending, ..Query::default() };
            assert_eq!(page_of(&path, &query), (all[offset..offset + 5].to_vec(), flows), "{offset} {descending}");
        }
    }

    // Conditions of all kinds.
    let found = |filters: Vec<Filter>| page_of(&path, &Query { limit: 1_000, filters, ..Query::default() });
    let of = |holds: &dyn Fn(u64) -> bool| {
        let all: Vec<u64> = (0..flows).filter(|&id| holds(id)).collect();
        let count = all.len() as u64;
        (all.into_iter().take(1_000).collect::<Vec<_>>(), count)
    };
    assert_eq!(found(vec![filter("series", Relation::Equal, "roce")]), of(&|id| id >= flows / 2));
    assert_eq!(found(vec![filter("series", Relation::Contains, "oc")]), of(&|id| id >= flows / 2));
    assert_eq!(
        found(vec![filter("flow", Relation::Greater, "39_000"), filter("flow", Relation::Not, "39,500")]),
        of(&|id| id > 39_000 && id != 39_500)
    );
    assert_eq!(found(vec![filter("measured", Relation::Equal, "false")]), of(&|id| id.is_multiple_of(3)));
    // What never finished has no time, be it small or large.
    assert_eq!(found(vec![filter("fct_ps", Relation::Less, "1e30")]), of(&|id| !id.is_multiple_of(5)));

    // Wrong queries.
    let refused = |query: Query| match query.run(Table::Flows, &path) {
        Err(QueryError::Wrong(what)) => what,
        other => panic!("{other:?}"),
    };
    let unknown = refused(Query { sort: Some("nothing".into()), ..Query::default() });
    assert!(unknown.starts_with("no column \"nothing\"; there are series, case, seed"), "{unknown}");
    assert!(refused(Query { limit: 1_001, ..Query::default() }).contains("at most 1000"));
    assert!(
        refused(Query { filters: vec![filter("flow", Relation::Less, "much")], ..Query::default() })
            .contains("is a number")
    );
    let deep = Query { offset: 1_000_000, limit: 1, sort: Some("flow".into()), ..Query::default() };
    assert!(refused(deep).contains("add conditions"));
    assert!(matches!(Query::default().run(Table::Ports, &path), Err(QueryError::File(_))));
}

#[test]
fn links_over_time_are_the_rows_of_their_ports() {
    let folder = Scratch::new("results-fabric");
    let (links, table) = (folder.join("links.parquet"), folder.join("ports.parquet"));
    let series = ["irn", "roce"];
    let mut parts = Vec::new();
    for (position, name) in series.into_iter().enumerate() {
        for seed in [1, 2] {
            let files = PointFiles::new(folder.path(), position, seed);
            let mut recorder = PointRecorder::create(files.clone(), name, seed, &ports()).unwrap();
            for sample in 1..=100_u64 {
                let row = |port| PortRow {
                    time: Instant::ZERO + Duration::from_us(10) * sample,
                    port: PortId(port),
                    egress_queue: Bytes::new(sample * 1_000 * u64::from(port) * seed),
                    ingress_buffer: Bytes::ZERO,
                    paused: Duration::from_us(if sample > 50 { 5 } else { 0 }),
                    busy: Duration::from_us(2 + 4 * position as u64),
                    drops: u32::from(sample == 100),
                    trims: 0,
                };
                recorder.on_ports(&[row(0), row(1)]);
            }
            recorder.finish(&RunRecord::default()).unwrap();
            parts.push(files);
        }
    }
    merge(parts.iter().map(|part| &part.ports), &table, Table::Ports).unwrap();
    let rows = || ports().into_iter().map(|port| LinkRow { link: 0, port, delay: Duration::from_us(1), loss: 0.0 });
    write_links(&links, &series.map(|name| (Labels::from(name), rows().collect()))).unwrap();

    let wanted = series.map(|series| WantedRun { series, case: "", ink: 0, seed: 2 });
    let fabric = Fabric::read(&links, &table, &wanted, 1_000_000).unwrap();
    assert!(fabric.has_samples() && fabric.too_large().is_none() && fabric.left_out() == 0);
    let json = serde_json::to_value(&fabric).unwrap();
    assert_eq!(json["networks"].as_array().map(Vec::len), Some(1), "both series have one network");
    assert_eq!(json["networks"][0]["nodes"], serde_json::json!([["h0", 0], ["tor", 1]]));
    assert_eq!((&json["runs"][0]["bins"], &json["runs"][0]["bin_us"]), (&50.into(), &20.0.into()));
    let decode = |run: usize, what: &str, port: usize| -> Vec<u64> {
        let plain: String = (b' '..=b'~').filter(|byte| !b"\"<\\".contains(byte)).map(char::from).collect();
        let text = json["runs"][run][what][port].as_str().unwrap();
        let index = |byte: u8| plain.bytes().position(|other| other == byte).unwrap() as u64;
        let number = |code: u64| {
            if code < 100 { code } else { ((code - 100) % 900 + 100) * 10_u64.pow(((code - 100) / 900) as u32) }
        };
        text.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| number(index(*a) * 92 + index(*b))).collect()
    };
    // Two samples to a bin: the deeper queue of the second seed; busy and paused shares in units of 0.01 %.
    assert_eq!(decode(0, "queue", 1)[..3], [4_000, 8_000, 12_000]);
    assert_eq!(decode(0, "queue", 1)[49], 200_000);
    assert!(decode(0, "queue", 0).is_empty(), "zeros need no room");
    assert!(
        decode(0, "busy", 0).iter().all(|&share| share == 2_000)
            && decode(1, "busy", 1).iter().all(|&share| share == 6_000)
    );
    assert_eq!((decode(1, "paused", 0)[24], decode(1, "paused", 0)[25]), (0, 5_000));
    assert_eq!(decode(1, "drops", 1).iter().sum::<u64>(), 1);

    // Little room: fewer runs, or none.
    let room = |room| Fabric::read(&links, &table, &wanted, room).unwrap();
    assert_eq!((room(300).left_out(), room(300).has_samples()), (1, true));
    assert_eq!((room(100).too_large(), room(100).has_samples()), (Some(2), false));
}
