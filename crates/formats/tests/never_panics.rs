//! Tests that readers return for any bytes, and that errors name a place within the file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use selvedge_formats::{
    FormatError, cdf, detect, fct, goal, htsim_cm, htsim_topo, irn_trace, loss_trace, ns3_flow, ns3_topology,
};
use selvedge_units::{Bytes, Duration, Instant};

/// Feeds `bytes` to every reader.
fn read_all(bytes: &[u8]) -> Vec<Result<(), FormatError>> {
    let flow_options = ns3_flow::Options { size_unit: ns3_flow::SizeUnit::Packets(Bytes::new(1000)) };
    vec![
        detect(bytes, "f").map(drop),
        ns3_topology::read(bytes, "f").map(drop),
        ns3_flow::read(bytes, "f", ns3_flow::Options::default()).map(drop),
        ns3_flow::read(bytes, "f", flow_options).map(drop),
        htsim_cm::read(bytes, "f", htsim_cm::StartUnit::Auto).map(drop),
        htsim_topo::read(bytes, "f").map(|parsed| parsed.value.links().take(1000).for_each(drop)),
        goal::read(bytes, "f").map(drop),
        cdf::read(bytes, "f", cdf::SizeUnit::Auto).map(|parsed| assert!(parsed.value.mean().get() <= 1 << 60)),
        cdf::read(bytes, "f", cdf::SizeUnit::Packets(Bytes::new(1460))).map(drop),
        fct::Records::new(bytes, "f", fct::Style::Hpcc).try_for_each(|record| record.map(drop)),
        fct::Records::new(bytes, "f", fct::Style::ConWeave).try_for_each(|record| record.map(drop)),
        irn_trace::receiver_events(bytes, "f").try_for_each(|event| event.map(drop)),
        irn_trace::sender_events(bytes, "f").try_for_each(|event| event.map(drop)),
        loss_trace::read(bytes, "f").map(drop),
    ]
}

fn check(bytes: &[u8]) {
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
    for error in read_all(bytes).into_iter().filter_map(Result::err) {
        assert!(error.line >= 1 && error.line <= lines + 1 && error.column >= 1, "{error}");
        assert!(error.message.contains("expected"), "{error}");
    }
}

/// Returns a strategy for words that are close to valid input of the readers.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => (0u64..20).prop_map(|n| n.to_string()),
        1 => any::<u64>().prop_map(|n| n.to_string()),
        1 => any::<f64>().prop_map(|n| n.to_string()),
        4 => prop::sample::select(vec![
            "0->1", "1->0", "3->2", "Nodes", "Connections", "Triggers", "trigger", "failure", "start", "size", "id",
            "msg", "send_done_trigger", "recv_done_trigger", "oneshot", "barrier", "count", "Tiers", "Podsize", "Tier",
            "Downlink_speed_Gbps", "Downlink_Latency_ns", "Radix_Down", "Radix_Up", "Bundle", "Oversubscribed", "100Gbps",
            "1000ns", "num_ranks", "rank", "{", "}", "l1:", "l1", "requires", "irequires", "send", "recv", "calc", "8b", "to", "from", "tag", "//", "/*", "*/", "0.001ms", "A100", "0.5", "1", "100", "-1", "NaN", "0b000001", "é", "#", "\u{feff}", "1e400",
        ]).prop_map(str::to_owned),
    ];
    let line = prop::collection::vec(word, 0..9).prop_map(|words| words.join(" "));
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\r\n"))
}

/// Returns the seeds of the fuzz targets: valid files, and inputs that once caused failures.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
    let list = |folder: &Path| {
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let of_formats =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("formats_"));
    let folders = list(folder).into_iter().filter(of_formats);
    folders.flat_map(|folder| list(&folder)).map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn the_corpus_of_the_fuzz_targets() {
    let corpus = corpus();
    assert!(corpus.len() >= 11);
    for bytes in corpus {
        check(&bytes);
        // Each seed is a file without a fault to one reader at least.
        assert!(read_all(&bytes).iter().any(Result::is_ok));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    #[test]
    fn almost_files(text in words()) {
        check(text.as_bytes());
    }

    #[test]
    fn damaged_files(
        (file, cut) in (prop::sample::select(corpus()), any::<prop::sample::Index>()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = file;
        for (at, byte) in damage {
            *at.get_mut(&mut bytes) = byte;
        }
        check(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        check(&bytes);
    }

    #[test]
    fn numbers_of_trees(hosts in 1u32..200, podsize in 1u32..200, numbers in prop::collection::vec(1u32..20, 16)) {
        let mut text = format!("Nodes {hosts}\nTiers 3\nPodsize {podsize}\n");
        for (tier, keys) in numbers.chunks(5).take(3).enumerate() {
            let [down, up, ratio, bundle, speed] = *keys else { unreachable!("chunks of five") };
            writeln!(text, "Tier {tier}\nRadix_Down {down}\nOversubscribed {ratio}\nDownlink_Latency_ns 1").unwrap();
            writeln!(text, "Downlink_speed_Gbps {}", 100 * speed).unwrap();
            if tier < 2 { writeln!(text, "Radix_Up {up}").unwrap(); }
            if tier > 0 { writeln!(text, "Bundle {bundle}").unwrap(); }
        }
        check(text.as_bytes());
    }

    #[test]
    fn fct_lines_read_as_written(
        (src, dst) in (0u32..65_536, 0u32..65_536),
        (src_port, dst_port) in any::<(u16, u16)>(),
        size in 1u64..=1_000_000_000_000_000,
        times in prop::array::uniform3(0u64..u64::MAX / 1000),
    ) {
        let [start, fct, standalone] = times.map(|ns| ns * 1000);
        let record = fct::Record {
            src,
            dst,
            src_port,
            dst_port,
            size: Bytes::new(size),
            start: Instant::from_ps(start),
            fct: Duration::from_ps(fct),
            standalone: Duration::from_ps(standalone),
        };
        for style in [fct::Style::Hpcc, fct::Style::ConWeave] {
            let mut text = Vec::new();
            fct::write(&mut text, style, &record).unwrap();
            let back: Vec<_> = fct::Records::new(&*text, "fct.txt", style).collect();
            prop_assert_eq!(back, vec![Ok(record)]);
        }
    }
}
