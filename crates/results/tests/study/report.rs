//! The report and the terminal table of a synthetic study.

use crate::common::{Given, series, study};
use crate::synthetic;
use selvedge_results::{
    Bound, Comparison, Estimate, FlowsMatch, GroupKind, GroupTraits, PointFiles, PointRecorder, PointSummary,
    ReportInput, RunTotals, SeriesInfo, StudyInfo, Summary, TimePart, render_comparison, render_report, render_table,
    summarise,
};
use selvedge_telemetry::{FlowRow, GroupParts, Observer, RunRecord};
use selvedge_testkit::Scratch;
use selvedge_units::{Bytes, Duration, HostId, Instant};

fn made_up(test: &str, trouble: bool) -> (Summary, Vec<PointSummary>) {
    let folder = Scratch::new(&format!("results-{test}"));
    let mut profiles = synthetic::irn_study();
    if trouble {
        profiles[2].deadlock = Some(2);
        profiles[3].unfinished = 0.1;
    }
    let mut points = Vec::new();
    for (position, profile) in profiles.iter().enumerate() {
        for seed in 1..=3 {
            points.push(synthetic::record(folder.path(), position, profile, seed, 2_000).unwrap());
        }
    }
    let series: Vec<SeriesInfo> = profiles.iter().map(synthetic::Profile::info).collect();
    let info = StudyInfo {
        title: "Lossless & <lossy>".into(),
        scenario: "54 hosts".into(),
        threads: 2,
        version: "0.1.0".into(),
        wall_s: 1.0,
        deterministic: false,
        sweep: None,
    };
    (summarise(&info, &series, &points), points)
}

fn render(summary: &Summary, points: &[PointSummary]) -> String {
    let scenario_toml = "name = \"</pre><script>alert(1)</script>\"";
    render_report(&ReportInput { summary, points, fabric: None, scenario_toml, command: "selvedge run --set 'a<b'" })
}

/// Asserts that every tag is closed by its own kind, in order.
fn assert_well_nested(html: &str) {
    let void = ["meta", "br", "wbr", "link", "img", "input", "hr"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('!') {
            continue;
        }
        let end = rest.find('>').expect("every tag ends");
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        let name = tag.trim_start_matches('/').split(|c: char| c.is_whitespace() || c == '/').next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes another tag");
        } else if !tag.ends_with('/') && !void.contains(&name) {
            open.push(name);
            if name == "script" || name == "style" {
                rest = &rest[rest.find(&format!("</{name}>")).expect("every raw element is closed")..];
            }
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

#[test]
fn a_report_is_whole_and_refers_to_nothing_outside() {
    let (summary, points) = made_up("report", false);
    let html = render(&summary, &points);
    assert_well_nested(&html);
    let (before, after) =
        html.split_once("/*! https://github.com/leeoniya/uPlot").expect("the library names its source");
    let html_of_ours = format!("{before}{after}").replace("href=\"#", "").replace("http://www.w3.org/2000/svg", "");
    for reference in ["http:", "https:", "src=", "href=", "@import", "url(", "<link", "//cdn"] {
        assert!(!html_of_ours.contains(reference), "the report refers to something by {reference}");
    }
    let data = data_of(&html);
    let charts = data["charts"].as_array().expect("charts");
    assert_eq!(charts.len(), html.matches("data-chart=").count());
    let numbers = charts.iter().flat_map(|chart| chart["curves"].as_array().expect("curves"));
    let mut numbers = numbers.flat_map(|curve| ["x", "y"].map(|axis| curve[axis].as_array().expect("numbers")));
    assert!(numbers.all(|numbers| !numbers.is_empty() && numbers.iter().all(|number| number.is_number())));
    let (page, _) = html.split_once("<script>").expect("scripts come last");
    for text in ["NaN", "inf,", "{{", "null"] {
        assert!(!page.contains(text), "{text} in the report");
    }
    for id in ["numbers", "ratios", "completion", "size", "queues", "utilisation", "pauses", "drops", "how"] {
        assert_eq!(html.matches(&format!("<section id=\"{id}\">")).count(), 1, "section {id}");
    }
    assert!(html.contains("Lossless &amp; &lt;lossy&gt;"));
    assert!(html.contains("&lt;script&gt;alert(1)"), "the scenario is text, not markup");
    assert!(html.contains(&summary.run.fingerprint));
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
}

#[test]
fn trouble_comes_before_the_numbers() {
    let (summary, points) = made_up("trouble", true);
    let html = render(&summary, &points);
    assert_well_nested(&html);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("PFC deadlock in roce+pfc") < at("<section id=\"numbers\">"));
    assert!(at("measured flows never finished") < at("<section id=\"numbers\">"));
    assert!(html.contains("<b>edge0</b> port 61"), "the cycle is named");
}

#[test]
fn a_run_that_never_completes_leaves_the_others_room() {
    let (summary, mut points) = made_up("endless", false);
    assert!(!render(&summary, &points).contains("went on to"), "all end about together");
    for point in points.iter_mut().filter(|point| point.series == "roce") {
        point.run.flows_finished = point.run.flows_started - 1;
        point.run.end_us = point.run.begin_us + 1e6;
    }
    let html = render(&summary, &points);
    assert_well_nested(&html);
    let cut = "Drawn as far as runs go that complete their flows; roce went on to 1 s.";
    assert_eq!(html.matches(cut).count(), 2, "for queues and for utilisation");
    // If no run completes, the time axis is not cut.
    points.iter_mut().for_each(|point| point.run.flows_finished = 0);
    assert!(!render(&summary, &points).contains("went on to"));
}

#[test]
fn long_names_of_ports_have_room_or_are_shortened() {
    let (summary, mut points) = made_up("names", false);
    let paused = points.iter_mut().filter(|point| !point.pauses.worst.is_empty());
    paused.for_each(|point| point.pauses.worst[0].node = "spine-".repeat(30));
    let html = render(&summary, &points);
    assert_well_nested(&html);
    let shown = html.split("text-anchor=\"end\">").filter_map(|rest| rest.split_once('<')).map(|(text, _)| text);
    let longest = shown.filter(|text| text.contains('⇠')).max_by_key(|text| text.chars().count()).unwrap();
    assert!(longest.contains('…') && (60..70).contains(&longest.chars().count()), "{longest}");
}

#[test]
fn a_report_without_anything_to_draw_is_still_whole() {
    for given in [vec![], vec![series("only", "irn", false, 1.0, 0.0)]] {
        let summary = study(&given);
        let html = render(&summary, &[]);
        assert_well_nested(&html);
        assert!(!html.split_once("<script>").unwrap().0.contains("NaN"));
    }
}

#[test]
fn summaries_survive_json_and_keep_the_promised_names() {
    let (summary, _) = made_up("json", true);
    let text = summary.to_json();
    let back: Summary = serde_json::from_str(&text).unwrap();
    assert!(back == summary && back.to_json() == text, "the summary read is not the summary written");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for name in [
        "slowdown_mean",
        "fct_mean_us",
        "fct_p99_us",
        "drop_rate",
        "pause_time_us",
        "retransmissions",
        "spurious_retransmissions",
    ] {
        let metric = &json["series"][0]["metrics"][name];
        assert!(metric["mean"].is_f64(), "{name}: {metric}");
        assert_eq!(metric["ci95"].as_array().map(Vec::len), Some(2), "{name}");
        assert_eq!(metric["per_seed"].as_array().map(Vec::len), Some(3), "{name}");
    }
    for name in ["fingerprint", "packet_hops", "events", "cpu_s", "wall_s", "threads", "version", "points"] {
        assert!(!json["run"][name].is_null(), "{name}");
    }
    assert_eq!(json["series"][2]["deadlocks"][0]["seed"], 2);
    assert_eq!(json["ratios"].as_array().map(Vec::len), Some(6 * 3));
    assert!(json["verdict"]["sentence"].is_string());
}

#[test]
fn the_order_of_points_does_not_matter() {
    let (summary, mut points) = made_up("order", false);
    points.reverse();
    let series: Vec<SeriesInfo> = synthetic::irn_study().iter().map(synthetic::Profile::info).collect();
    let info = StudyInfo {
        title: summary.title.clone(),
        scenario: summary.scenario.clone(),
        threads: 2,
        version: "0.1.0".into(),
        wall_s: 1.0,
        deterministic: false,
        sweep: None,
    };
    assert_eq!(summarise(&info, &series, &points), summary);
}

#[test]
fn columns_of_the_report_are_as_wide_as_their_numbers() {
    let (mut summary, points) = made_up("width", false);
    let width = |summary: &Summary| -> usize {
        let html = render(summary, &points);
        let (_, rest) = html.split_once("class=\"metrics\" style=\"min-width:").unwrap();
        rest.split_once("px").expect("a width").0.parse().expect("a number")
    };
    let usual = width(&summary);
    let retransmissions = summary.series[3].metrics.get_mut("retransmissions").expect("a metric");
    (retransmissions.mean, retransmissions.ci95) = (Some(7_894_196.0), Some([7_603_006.0, 8_185_386.0]));
    assert_eq!(width(&summary), 210 + 4 * (36 + 8 * "retransm".len().max("7,894,196".len())));
    assert!(usual < width(&summary));
}

#[test]
fn series_that_do_not_fit_side_by_side_continue_below_in_the_report() {
    let tables = |given: &[Given]| {
        let html = render(&study(given), &[]);
        assert_well_nested(&html);
        let (main, _) = figure_of(&html, "numbers").split_once("<details>").unwrap();
        main.split("<thead>").skip(1).map(|table| table.matches("class=\"dot\"").count()).collect::<Vec<_>>()
    };
    let names: Vec<String> = (0..15).map(|at| format!("s{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let alike = |count: usize| {
        let given: Vec<_> = names[..count].iter().map(|name| series(name, "irn", false, 1.0, 0.1)).collect();
        tables(&given)
    };
    assert_eq!([1, 6, 7, 15].map(alike), [vec![1], vec![6], vec![4, 3], vec![5, 5, 5]]);
    // Cases are not split between tables where they fit.
    let of_cases = |count: usize| tables(&in_cases(&["a", "b"], &names[..count], 0.1));
    assert_eq!([3, 4, 8].map(of_cases), [vec![6], vec![4, 4], vec![4; 4]]);
    // In a sweep, each metric has the series of all cases in one table, or in as many tables as needed.
    let of_sweep = |count: usize| {
        let all = tables(&in_cases(&["a", "b", "c"], &names[..count], 0.1));
        all[..count.div_ceil(6)].to_vec()
    };
    assert_eq!([2, 6, 8].map(of_sweep), [vec![2], vec![6], vec![4, 4]]);
}

#[test]
fn the_curve_of_all_flows_ends_at_the_share_that_finished() {
    let (summary, mut points) = made_up("unfinished", false);
    let text = |points: &[PointSummary]| figure_of(&render(&summary, points), "completion").to_owned();
    assert!(!text(&points).contains("ends at the share"));
    for point in points.iter_mut().filter(|point| point.series == "roce") {
        point.flows.unfinished = point.flows.measured / 4;
    }
    let text = text(&points);
    assert!(text.contains("ends at the share that did: roce (75 %)."), "{text}");
    let data = data_of(&render(&summary, &points));
    let curves = data["charts"][0]["curves"].as_array().expect("curves");
    let curve = curves.iter().find(|curve| curve["name"] == "roce").expect("the series has a curve");
    let highest = curve["y"].as_array().unwrap().iter().filter_map(|y| y.as_f64()).fold(0.0, f64::max);
    assert_eq!(highest, 0.75);
}

#[test]
fn lower_bounds_are_arrowheads_and_have_a_sign() {
    let (summary, points) = made_up("bounds", true);
    let html = render(&summary, &points);
    let open = summary.series.iter().position(|series| series.metric("fct_mean_us").unwrap().bound.is_some());
    assert_eq!(open, Some(3), "one series leaves a tenth of its flows");
    let numbers = figure_of(&html, "numbers");
    assert!(numbers.contains(">≥ ") && numbers.contains("at least so much"), "{numbers}");
    // Slowdown by size has a point for each size, of which some are bounds.
    let sizes = figure_of(&html, "size");
    let (_, at) = sizes.split_once("data-chart=\"").expect("a chart");
    let at: usize = at.split_once('"').unwrap().0.parse().unwrap();
    let curves = data_of(&html)["charts"][at]["curves"].clone();
    assert!(curves[3]["bounds"].is_array() && curves[0]["bounds"].is_null(), "{curves}");
    // Three ratios of the series to others, in each of three metrics.
    let ratios = figure_of(&html, "ratios");
    assert!(ratios.contains("<path class=\"mean\" d=\"M") && ratios.contains(">≥ "), "{ratios}");
    let time = figure_of(&html, "time");
    assert!(time.contains(">≥ "), "the bar of a series that leaves flows: {time}");
    let table = render_table(&summary, 200, false);
    let row = table.lines().find(|line| line.starts_with("average FCT")).expect("the table has this row");
    assert_eq!(row.matches("≥ ").count(), 1, "{table}");
    // The study without bounds has no sign.
    let (summary, points) = made_up("whole", false);
    let html = render(&summary, &points);
    let (page, _) = html.split_once("<script>").expect("scripts come last");
    assert!(!page.contains("≥ ") && !page.contains("bound\"") && !data_of(&html).to_string().contains("bounds"));
    assert!(!summary.to_json().contains("\"bound\""), "JSON says nothing of what is whole");
}

#[test]
fn bounds_from_case_to_case_are_arrowheads_and_stretch_no_axis() {
    let mut given = in_cases(&["1 %", "2 %"], &["irn", "roce"], 0.01);
    let chart = |given: &[Given]| figure_of(&render(&study(given), &[]), "cases").to_owned();
    assert!(!chart(&given).contains(" bound\""));
    let ticks = |chart: &str| chart.matches("<path class=\"grid\"").count();
    let before = ticks(&chart(&given));
    // A tenth of one series' flows are unfinished, after a time a million times as long.
    given[3].unfinished = 100;
    given[3].seeds.iter_mut().flatten().for_each(|value| *value *= 1e6);
    let text = chart(&given);
    // Two of the three metrics are means.
    assert_eq!(text.matches("<path class=\"fill1 bound\"").count(), 2, "{text}");
    assert_eq!(ticks(&text), before, "the axes are those of the others");
}

#[test]
fn two_studies_are_compared_by_bounds() {
    let (whole, mut cut) = (series("irn", "irn", false, 1.0, 0.01), series("irn", "irn", false, 2.0, 0.01));
    cut.unfinished = 3;
    let (a, b) = (study(&[whole]), study(&[cut]));
    let compared = |pair: [(&str, &Summary); 2]| Comparison::new(pair, Vec::new(), |_| FlowsMatch::Same);
    let found = compared([("a", &a), ("b", &b)]);
    let fct = found.series[0].metrics.iter().find(|one| one.metric == "fct_mean_us").expect("a metric");
    assert_eq!((fct.a_bound, fct.b_bound, fct.ratio.bound), (None, Some(Bound::AtLeast), Some(Bound::AtLeast)));
    let text = render_comparison(&found, [&a, &b], 100, false);
    let row = text.lines().find(|line| line.starts_with("average FCT")).expect("the table has this row");
    assert!(row.contains("≥ 200 ") && row.ends_with("≥ 2"), "{text}");
    let text = render_comparison(&compared([("b", &b), ("b", &b)]), [&b, &b], 100, false);
    let row = text.lines().find(|line| line.starts_with("average FCT")).expect("the table has this row");
    assert!(row.ends_with(" undecided"), "{text}");
}

#[test]
fn what_eqifs_drop_is_named() {
    let mut summary = study(&[series("a", "irn", false, 1.0, 0.1), series("b", "irn", false, 1.0, 0.1)]);
    assert!(render(&summary, &[]).contains("No data packet was dropped in any run."));
    let drops = Estimate::of_mean(vec![Some(24.0); 5]);
    summary.series[1].metrics.insert("eqif_drops".into(), drops);
    let html = render(&summary, &[]);
    let drops = figure_of(&html, "drops");
    assert!(
        drops.contains("The network dropped no data packet in any run. EQIFs") && drops.contains(">120</td>"),
        "{drops}"
    );
    assert_well_nested(&html);
}

#[test]
fn every_case_has_its_pairs_in_the_terminal() {
    let of = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        render_table(&study(&in_cases(&["calm", "busy"], &names, 0.1)), 100, false)
    };
    let few = of(3);
    assert!(few.contains("busy: s2 / busy: s1") && !few.contains("more pair"), "{few}");
    let many = of(4);
    assert!(many.contains("calm: s3 / calm: s0") && many.contains("busy: s3 / busy: s0"), "{many}");
    assert!(!many.contains(" / busy: s1") && many.contains("… 6 more pairs in summary.json"), "{many}");
}

#[test]
fn groups_of_several_workloads_have_a_row_each() {
    let mut summary = study(&[series("a", "irn", false, 1.0, 0.1)]);
    let mut insert = |name: &str, value| {
        summary.series[0].metrics.insert(name.into(), Estimate::of_mean(vec![Some(value); 5]));
    };
    insert("measured_groups", 3.0);
    insert("group_completion_mean_us", 300.0);
    insert("incast.measured_groups", 3.0);
    insert("incast.group_completion_mean_us", 300.0);
    insert("poisson.measured_flows", 9.0);
    let kind = |workload: &str, kind| GroupTraits { workload: workload.into(), kind };
    summary.series[0].traits.groups = vec![kind("incast", GroupKind::Incast)];
    let table = render_table(&summary, 100, false);
    assert!(table.lines().any(|line| line.starts_with("incast completion, us  ")), "{table}");
    assert!(!table.contains("incast completion, incast"), "{table}");

    let mut insert = |name: &str, value| {
        summary.series[0].metrics.insert(name.into(), Estimate::of_mean(vec![Some(value); 5]));
    };
    insert("goal.measured_groups", 1.0);
    insert("goal.group_completion_mean_us", 900.0);
    summary.series[0].traits.groups.push(kind("goal", GroupKind::Job));
    let table = render_table(&summary, 100, false);
    assert!(!table.contains("incast or job completion"), "{table}");
    let html = render(&summary, &[]);
    let (main, more) = html.split_once("More metrics").unwrap();
    for row in ["incast completion", "job completion, goal", "measured incasts and jobs"] {
        assert!(table.contains(row) && main.contains(row), "no {row} in\n{table}");
    }
    assert!(more.contains("incast or job completion, all workloads"), "the mean over all is there for those who look");
}

#[test]
fn the_table_fits_and_is_plain_without_color() {
    let (summary, _) = made_up("table", true);
    let table = render_table(&summary, 100, false);
    for line in table.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    assert!(!table.contains('\x1b'));
    assert!(render_table(&summary, 100, true).contains("\x1b[1m"));
    for text in
        ["average slowdown", "99th percentile FCT", "roce+pfc / irn", "unfinished flows", "! roce+pfc: seed 2", " ± "]
    {
        assert!(table.contains(text), "no {text} in\n{table}");
    }
    let (headline, last) = (&summary.verdict.sentence[..20], table.trim_end().lines().rev().take(3));
    assert!(last.into_iter().any(|line| line.starts_with(headline)), "the verdict ends the table:\n{table}");
}

#[test]
fn where_time_goes_is_shown_for_each_series_that_was_looked_at() {
    let (summary, points) = made_up("split", true);
    for series in &summary.series {
        // The time of a measured flow, until the end of the run if it did not finish.
        let of = |part| series.time_of(part).and_then(|estimate| estimate.per_seed[0]).expect("flows were sampled");
        let sum: f64 = TimePart::ALL.into_iter().map(of).sum();
        let point = points.iter().find(|point| point.series == series.name && point.seed == 1).expect("a point");
        // Flows that had not finished count with their age in both.
        let mean = point.flows.fct_us.mean.expect("some flows were measured");
        assert!((sum / mean - 1.0).abs() < 1e-9, "{}: {sum} {mean}", series.name);
        assert!(of(TimePart::Queueing) > of(TimePart::Propagation) && of(TimePart::Outage) == 0.0);
    }
    for width in [60, 80, 100, 200] {
        let table = render_table(&summary, width, false);
        let (_, block) = table.split_once("where completion time goes, us").unwrap();
        let bars: Vec<&str> = block.lines().filter(|line| line.contains("sssQ") || line.contains("ppQQ")).collect();
        assert!(bars.iter().all(|bar| bar.chars().count() <= width), "{block}");
        assert!(
            width < 100 || block.contains("queueing 3") && block.contains("s serialisation, p propagation"),
            "{block}"
        );
    }
    // The verdict compares two series: what makes their difference is told below the bars.
    let (Some(with), Some(without)) = (&summary.verdict.best_with, &summary.verdict.best_without) else {
        panic!("{:?}", summary.verdict)
    };
    let table = render_table(&summary, 200, false);
    let (_, told) = table.split_once("Flows of ").expect("a sentence about the difference");
    assert!(told.contains(with.as_str()) && told.contains(without.as_str()) && told.contains("queueing "), "{told}");
    let html = render(&summary, &points);
    assert!(html.contains("<p>Flows of ") && html.contains(" longer than those of "), "the same in the report");
    assert!(html.contains("<section id=\"time\">") && html.contains("<title>pause: "), "bars with readings");
    assert!(!html.contains("<title>outage: "), "what no series has is not shown");
    let nobody = study(&[series("a", "irn", false, 1.0, 0.1)]);
    assert!(!render_table(&nobody, 100, false).contains("where completion time goes"));
    assert!(!render(&nobody, &[]).contains("<section id=\"time\">"), "nobody has looked");
}

/// The headline metrics leave out the flows of an incast beside other traffic.
#[test]
fn an_incast_beside_other_traffic_that_never_finishes_is_reported() {
    let folder = Scratch::new("results-grouped");
    let flow = |id, workload, finish| FlowRow {
        id,
        workload,
        group: 0,
        src: HostId(1),
        dst: HostId(0),
        size: Bytes::from_kb(10),
        packets: 10,
        start: Instant::ZERO,
        finish,
        ideal: Duration::from_us(1),
        spurious: 0,
        measured: true,
    };
    let recorder = PointRecorder::create(PointFiles::new(folder.path(), 0, 1), "irn", 1, &[]).unwrap();
    let mut recorder = recorder.with_workloads(&[("incast", Some(GroupParts::Flows(3))), ("poisson", None)]);
    recorder.on_flows(&[0, 1, 2].map(|id| flow(id, 0, None)));
    recorder.on_flows(&[0, 1].map(|id| flow(id, 1, Some(Instant::from_ps(9_000_000)))));
    let points = [recorder.finish(&RunRecord::default()).unwrap()];
    let info = series("irn", "irn", false, 1.0, 0.0).info;
    let summary = summarise(&StudyInfo::default(), &[info], &points);

    let warning = "irn: 3 of 3 measured flows of incast never finished; they count with their age when the run ended, \
                   so that its completion times are at least what is shown. Where stop.time or stop.flows ended the run, give more, unless a link \
                   that they need stays down.";
    assert!(summary.warnings.iter().any(|found| found == warning), "{:?}", summary.warnings);
    let warning = "irn: 1 of 1 incasts or jobs of incast never completed; they count with their age when the run ended, so that \
                   completion takes at least what is shown. Where stop.time \
                   or stop.flows ended the run, give more, unless a link that they need stays down.";
    assert!(summary.warnings.iter().any(|found| found == warning), "{:?}", summary.warnings);
    // The warning about a schedule that cannot continue names the waiting rank.
    let waits = "rank 0 waits for a message from rank 1 with tag 2 (its step 2)";
    let mut points = points;
    points[0].run = RunTotals { hopeless: true, stuck: Some(waits.into()), ..points[0].run.clone() };
    let info = series("irn", "irn", false, 1.0, 0.0).info;
    let stuck = summarise(&StudyInfo::default(), &[info], &points).warnings;
    let said =
        format!("With seed 1, {waits}: it has come, but a receive from any rank, or with any tag, has taken it.");
    assert!(stuck.iter().any(|found| found.contains(&said)), "{stuck:?}");
    let total = |name: &str| summary.series[0].metric(name).unwrap().mean;
    assert_eq!(["measured_flows", "unfinished_flows", "incast.unfinished_flows"].map(total), [2.0, 0.0, 3.0].map(Some));
    let table = render_table(&summary, 100, false);
    let row = table.lines().find(|line| line.starts_with("unfinished flows, incast"));
    assert!(row.is_some_and(|row| row.ends_with(" 3")), "{table}");
    assert!(!table.contains("unfinished flows, poisson"), "{table}");
    assert!(table.lines().any(|line| line.starts_with("unfinished incasts or jobs  ")), "{table}");
    let html = render(&summary, &points);
    for row in ["unfinished flows, incast", "average FCT, incast", "average FCT, poisson", "unfinished incasts or jobs"]
    {
        let (main, _) = html.split_once("More metrics").unwrap();
        assert!(main.contains(&format!(">{row}")), "no {row}");
    }
}

#[test]
fn series_that_do_not_fit_continue_below() {
    let given: Vec<_> = (0..7).map(|at| series(&format!("a-rather-long-name-{at}"), "irn", at > 3, 1.0, 0.1)).collect();
    let table = render_table(&study(&given), 100, false);
    let metrics = table.split("ratio, paired").next().unwrap();
    assert!(metrics.matches("average slowdown").count() >= 2, "{table}");
    assert!((0..7).all(|at| metrics.contains(&format!("a-rather-long-name-{at}"))));
    assert!(metrics.lines().all(|line| line.chars().count() <= 100), "{table}");
}

/// Returns the data of a page's charts.
fn data_of(html: &str) -> serde_json::Value {
    let (_, data) = html.split_once("id=\"data\">").expect("data");
    serde_json::from_str(data.split_once("</script>").expect("the end of the data").0).expect("JSON")
}

fn figure_of<'a>(html: &'a str, section: &str) -> &'a str {
    let (_, rest) = html.split_once(&format!("<section id=\"{section}\">")).unwrap();
    rest.split_once("</section>").expect("the section ends").0
}

/// Returns series that differ from seed to seed by `spread`, in each of the cases.
fn in_cases(cases: &[&str], names: &[&str], spread: f64) -> Vec<Given> {
    let one = |case: &&str, name: &&str| {
        let mut given = series(&format!("{case}: {name}"), "irn", false, 1.0, spread);
        (given.info.series, given.info.case) = ((*name).to_owned(), Some((*case).to_owned()));
        given
    };
    cases.iter().flat_map(|case| names.iter().map(move |name| one(case, name))).collect()
}

#[test]
fn labels_of_pairs_stay_in_their_column_whatever_their_length() {
    let names =
        ["RoCE with PFC and DCQCN, as people run it today", "IRN-without-PFC-and-with-a-name-that-never-ends-at-all"];
    let html = render(&study(&names.map(|name| series(name, "irn", false, 1.0, 0.1))), &[]);
    let (_, label) = figure_of(&html, "ratios").split_once("<text class=\"name\">").expect("a label");
    let (label, _) = label.split_once("</text>").expect("the text ends");
    let lines: Vec<&str> = label.split("</tspan>").filter_map(|line| Some(line.split_once('>')?.1)).collect();
    assert!(lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= 45), "{lines:?}");
    assert_eq!(lines.concat().replace(' ', ""), format!("{}/{}", names[1], names[0]).replace(' ', ""));
}

#[test]
fn pairs_that_are_not_shown_are_counted() {
    let of = |count: usize| {
        let given: Vec<_> = (0..count).map(|at| series(&format!("s{at}"), "irn", false, 1.0, 0.1)).collect();
        render(&study(&given), &[])
    };
    assert!(figure_of(&of(8), "ratios").contains(" 24 of 28 pairs; the others are in summary.json."));
    assert!(!figure_of(&of(7), "ratios").contains("the others"), "all 21 are shown");
    let html = render(&study(&in_cases(&["calm", "busy", "full"], &["a", "b", "c", "d", "e"], 0.1)), &[]);
    let ratios = figure_of(&html, "ratios");
    assert!(ratios.contains(" 24 of 30 pairs") && ratios.contains("full: e / full: a"), "{ratios}");
}

#[test]
fn intervals_that_leave_the_axis_from_case_to_case_show_it() {
    let cut = |spread: f64| {
        let html = render(&study(&in_cases(&["calm", "busy"], &["irn"], spread)), &[]);
        figure_of(&html, "cases").matches(" cut\"").count()
    };
    assert_eq!(cut(0.2), 0, "the axis covers what is near the means");
    assert_eq!(cut(1.0), 6, "three metrics, two cases: all reach below zero");
}

#[test]
fn names_of_cases_stand_in_lines_or_upwards() {
    let figure = |cases: &[&str]| {
        let html = render(&study(&in_cases(cases, &["irn"], 0.1)), &[]);
        figure_of(&html, "cases").to_owned()
    };
    let long = "70 % load, and a very long name of a case that goes on";
    let three = figure(&["30 % load", long, "loss"]);
    assert!(!three.contains("rotate") && three.contains(">70 % load, and a very</tspan>"), "{three}");

    let names: Vec<String> = (0..12).map(|at| format!("{long} {at}")).collect();
    let many = figure(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(many.contains("rotate(-90") && many.contains(&format!(">{long} 11</tspan>")), "{many}");
    let height = |figure: &str| -> f64 {
        let (_, view) = figure.split_once("viewBox=\"0 0 510 ").expect("a chart");
        view.split_once('"').expect("the attribute ends").0.parse().expect("a number")
    };
    assert!(height(&many) > height(&three) + 250.0);
}

#[test]
fn each_case_has_a_chart_of_its_own_and_a_series_one_colour_in_all() {
    let cases: Vec<String> = (0..6).map(|at| format!("load {at}")).collect();
    let names: Vec<&str> = cases.iter().map(String::as_str).collect();
    let summary = study(&in_cases(&names, &["irn", "roce", "eqds"], 0.1));
    let (_, recorded) = made_up("cases", false);
    let of =
        |series: &selvedge_results::SeriesSummary| PointSummary { series: series.name.clone(), ..recorded[0].clone() };
    let points: Vec<PointSummary> = summary.series.iter().map(of).collect();
    let html = render(&summary, &points);
    assert_well_nested(&html);
    assert!(html.contains("--s2:") && !html.contains("--s3:"), "a colour for each of three names, none for eighteen");
    let curves = |section: &str| -> Vec<usize> {
        let data = data_of(&html);
        let numbers =
            section.split("data-chart=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0.parse().unwrap());
        numbers.map(|at: usize| data["charts"][at]["curves"].as_array().map_or(0, Vec::len)).collect()
    };
    for section in ["completion", "size"] {
        let section = figure_of(&html, section);
        assert_eq!(curves(section), [3; 12], "two charts for each case, with a curve for each of its series");
        assert!(names.iter().all(|name| section.contains(&format!("<figcaption>{name}</figcaption>"))));
    }
    let (numbers, _) = figure_of(&html, "numbers").split_once("<details>").unwrap();
    let slowdown = numbers.split("<table").find(|table| table.contains("average slowdown")).unwrap();
    assert_eq!(slowdown.matches("<tr>").count(), 7, "a head, and a row for each case");
    assert!(names.iter().all(|name| slowdown.contains(&format!("<th>{name}</th>"))), "{slowdown}");
    let queues = figure_of(&html, "queues");
    assert_eq!(queues.matches("<details").count(), 7, "one case at a time, and the values");
    assert_eq!(queues.matches("<details open").count(), 1);
    let most = curves(queues).into_iter().max();
    assert_eq!(most, Some(3));
}

#[test]
fn pauses_that_nobody_sampled_have_no_map() {
    let (summary, mut points) = made_up("unsampled", false);
    assert!(figure_of(&render(&summary, &points), "pauses").contains("class=\"heat wide\""));
    for port in points.iter_mut().flat_map(|point| &mut point.pauses.worst) {
        port.share.clear();
    }
    let html = render(&summary, &points);
    let pauses = figure_of(&html, "pauses");
    assert!(!pauses.contains("class=\"heat") && pauses.contains("for the run took no samples"), "{pauses}");
    assert_well_nested(&html);
}

#[test]
fn a_column_that_says_nothing_is_left_out() {
    let (summary, mut points) = made_up("hosts", false);
    assert!(figure_of(&render(&summary, &points), "pauses").contains(">peak queue<"));
    let worst = points.iter_mut().flat_map(|point| &mut point.pauses.worst);
    worst.for_each(|port| port.tier = selvedge_results::Tier::Host);
    let html = render(&summary, &points);
    assert!(!figure_of(&html, "pauses").contains("peak queue"));
    assert_well_nested(&html);
}

#[test]
fn what_warnings_quote_is_code() {
    let mut summary = study(&[series("a", "irn", false, 1.0, 0.1)]);
    summary.warnings = vec!["`+dcqcn` adds <one>.".into(), "One ` alone.".into()];
    let html = render(&summary, &[]);
    assert!(html.contains("<li><code>+dcqcn</code> adds &lt;one&gt;.</li><li>One ` alone.</li>"));
    assert_well_nested(&html);
}

#[test]
fn a_last_chart_alone_has_the_whole_row() {
    let html = render(&study(&in_cases(&["calm", "busy"], &["irn"], 0.1)), &[]);
    let of_cases = figure_of(&html, "cases");
    let widths: Vec<&str> =
        of_cases.split("viewBox=\"0 0 ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
    assert_eq!(widths, ["510", "510", "1040"], "three metrics");
    assert!(html.contains(".pair > figure:last-child:nth-child(odd) { grid-column: 1 / -1; }"));
}

#[test]
fn more_series_than_colours_have_other_dashes() {
    let names: Vec<String> = (0..9).map(|at| format!("s{at}")).collect();
    let (summary, points) = made_up("few-colours", false);
    assert!(figure_of(&render(&summary, &points), "completion").contains("\">dashed: PFC on</span>"));
    let cases: Vec<&str> = names.iter().map(String::as_str).collect();
    let many = render(&study(&in_cases(&["calm", "busy"], &cases, 0.1)), &[]);
    let legend = figure_of(&many, "cases");
    assert!(legend.contains("further series of a colour") && legend.contains("stroke-dasharray=\"2 3\""), "{legend}");
}
