//! The sentence of the verdict, for each possible outcome of a study.

use expect_test::{Expect, expect};

use crate::common::{Given, of_points, points, series, study};
use selvedge_results::{
    Answer, Bound, Cut, Estimate, GroupKind, GroupTraits, NetRtReport, SeriesSummary, Summary, Verdict, render_table,
};
use selvedge_units::Instant;

fn verdict(given: &[Given]) -> Verdict {
    study(given).verdict
}

fn assert_verdict(given: &[Given], answer: Answer, sentence: &Expect) {
    let found = verdict(given);
    assert_eq!(found.answer, answer, "{}", found.sentence);
    sentence.assert_eq(&lines(&found.sentence));
}

/// Breaks a sentence into lines of at most 100 characters. Each line break but the last stands for one blank.
fn lines(sentence: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > 100 {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines + "\n"
}

#[test]
fn irn_alone_wins_as_in_the_paper() {
    assert_verdict(
        &[
            series("a", "irn", false, 1.0, 0.0),
            series("b", "irn", true, 1.6, 0.01),
            series("c", "go-back-n", true, 2.9, 0.01),
            series("d", "go-back-n", false, 5.0, 0.01),
        ],
        Answer::No,
        &expect![[r#"
            No: IRN without PFC completes flows 2.9x faster (95 % CI 2.9-2.9) than RoCE (go-back-N) with PFC,
            and adding PFC to it makes it 1.60x slower (95 % CI 1.58-1.62); RoCE (go-back-N) with PFC differs in
            loss recovery as well: PFC by itself makes it 1.72x faster.
        "#]],
    );
}

/// Returns the series with another way of acknowledging, or none.
fn with_acks(given: Given, acks: &str) -> Given {
    let mut given = given;
    given.info.traits.acks = acks.into();
    given
}

/// Returns the series without losses and pauses.
fn without_congestion(given: &[Given]) -> Vec<Given> {
    let calm = |given: &Given| Given { pauses: 0, drops: 0, ..given.clone() };
    given.iter().map(calm).collect()
}

#[test]
fn where_nothing_is_lost_or_paused_the_question_is_not_put() {
    // The cause of the 7 %: RoCE with PFC sends no acknowledgements here.
    let irn = [series("irn", "irn", false, 1.07, 0.0), series("irn+pfc", "irn", true, 1.07, 0.0)];
    let roce = [
        with_acks(series("roce", "go-back-n", false, 1.07, 0.0), "per-packet"),
        with_acks(series("roce+pfc", "go-back-n", true, 1.0, 0.0), "none"),
    ];
    let all = without_congestion(&[irn.as_slice(), roce.as_slice()].concat());
    assert_verdict(
        &all,
        Answer::NotPut,
        &expect![[r#"
            This traffic does not put the question: no buffer was full, and nothing was paused. That RoCE
            (go-back-N) with PFC completes flows 1.07x faster (95 % CI 1.07-1.07) than RoCE (go-back-N) without
            PFC comes from what else differs: acknowledgements.
        "#]],
    );
    assert_verdict(
        &all[2..],
        Answer::NotPut,
        &expect![[r#"
            This traffic does not put the question: no buffer was full, and nothing was paused. That RoCE
            (go-back-N) with PFC completes flows 1.07x faster (95 % CI 1.07-1.07) than RoCE (go-back-N) without
            PFC comes from what else differs: acknowledgements.
        "#]],
    );
    // One pause is enough to raise the question, and so is one loss.
    let mut paused = all.clone();
    paused[1].pauses = 1;
    assert_ne!(verdict(&paused).answer, Answer::NotPut);
    let mut lost = all;
    lost[0].drops = 1;
    assert_ne!(verdict(&lost).answer, Answer::NotPut);
}

#[test]
fn congestion_control_is_no_merit_of_pfc_nor_its_fault() {
    let mut slow = series("roce+dcqcn+pfc", "go-back-n", true, 1.9, 0.0);
    slow.info.traits.congestion = "dcqcn".into();
    let pair = [series("irn", "irn", false, 1.0, 0.0), slow];
    let found = verdict(&without_congestion(&pair));
    assert_eq!(found.answer, Answer::NotPut);
    let why = "comes from what else differs: loss recovery and congestion control.";
    assert!(found.sentence.ends_with(why), "{}", found.sentence);
}

#[test]
fn a_winner_with_pfc_that_has_no_control_says_nothing_of_pfc() {
    let silent = with_acks(series("silent", "go-back-n", true, 1.0, 0.0), "none");
    let others = [
        series("irn", "irn", false, 1.07, 0.0),
        series("roce", "go-back-n", false, 1.08, 0.0),
        series("roce+pfc", "go-back-n", true, 1.08, 0.0),
    ];
    let found = verdict(&[others.as_slice(), std::slice::from_ref(&silent)].concat());
    expect![[r#"
        No: "roce+pfc" (with PFC) completes flows as "irn" (without PFC) does, within 5 % (95 % CI
        1.01-1.01). "silent" (with PFC) completes flows 1.07x faster (95 % CI 1.07-1.07) than "irn" (without
        PFC), but they differ in loss recovery as well, and "silent" (with PFC) cannot be had without PFC to
        tell them apart.
    "#]]
    .assert_eq(&lines(&found.sentence));
    assert_eq!(found.answer, Answer::No);
    let found = verdict(&[others[0].clone(), silent]);
    assert_eq!(found.answer, Answer::Undecided);
    assert!(found.sentence.starts_with("Not decided: RoCE (go-back-N) with PFC completes"), "{}", found.sentence);
}

#[test]
fn a_winner_whose_control_is_missing_decides_nothing() {
    let mut irn = series("irn", "irn", false, 1.0, 0.0);
    irn.info.traits.control = Some("irn+pfc".into());
    let roce = series("roce+pfc", "go-back-n", true, 1.9, 0.0);
    assert_verdict(
        &[irn, roce],
        Answer::Undecided,
        &expect![[r#"
            Not decided: IRN without PFC completes flows 1.90x faster (95 % CI 1.90-1.90) than RoCE (go-back-N)
            with PFC, but they differ in loss recovery as well, and the study lacks irn+pfc to tell them apart.
        "#]],
    );
}

#[test]
fn names_do_not_matter() {
    let mut misleading = [series("with-pfc", "irn", false, 1.0, 0.0), series("lossy", "irn", true, 2.0, 0.0)];
    let found = verdict(&misleading);
    assert_eq!((found.answer, found.best_without.as_deref()), (Answer::No, Some("with-pfc")));
    expect![[r#"
        No: IRN without PFC completes flows 2.0x faster (95 % CI 2.0-2.0) than IRN with PFC.
    "#]]
    .assert_eq(&lines(&found.sentence));
    misleading.swap(0, 1);
    assert_eq!(verdict(&misleading).sentence, found.sentence);
}

#[test]
fn go_back_n_needs_pfc() {
    assert_verdict(
        &[series("roce", "go-back-n", false, 2.5, 0.02), series("roce+pfc", "go-back-n", true, 1.0, 0.02)],
        Answer::Yes,
        &expect![[r#"
            Yes: RoCE (go-back-N) with PFC completes flows 2.5x faster (95 % CI 2.5-2.5) than RoCE (go-back-N)
            without PFC.
        "#]],
    );
}

#[test]
fn of_several_without_pfc_the_best_is_compared() {
    assert_verdict(
        &[
            series("a", "go-back-n", false, 9.0, 0.02),
            series("b", "irn", false, 2.0, 0.0),
            series("c", "go-back-n", true, 1.0, 0.0),
        ],
        Answer::Yes,
        &expect![[r#"
            Yes: RoCE (go-back-N) with PFC completes flows 2.0x faster (95 % CI 2.0-2.0) than IRN without PFC,
            the best without it.
        "#]],
    );
}

#[test]
fn a_rival_too_noisy_to_be_beaten_is_not_named() {
    assert_verdict(
        &[
            series("a", "irn", false, 1.0, 0.0),
            series("b", "irn", true, 1.3, 0.0),
            series("c", "go-back-n", true, 2.5, 0.97),
        ],
        Answer::No,
        &expect![[r#"
            No: IRN without PFC completes flows 1.30x faster (95 % CI 1.30-1.30) than IRN with PFC.
        "#]],
    );
}

#[test]
fn pfc_that_changes_nothing_is_not_needed() {
    assert_verdict(
        &[series("x", "irn", false, 1.0, 0.0), series("y", "irn", true, 1.01, 0.01)],
        Answer::No,
        &expect![[r#"
            No: IRN with PFC completes flows as IRN without PFC does, within 5 % (95 % CI 1.00-1.02).
        "#]],
    );
}

#[test]
fn overlapping_intervals_leave_it_open() {
    let found = verdict(&[series("x", "irn", false, 1.0, 0.0), series("y", "irn", true, 1.05, 0.5)]);
    assert_eq!(found.answer, Answer::Undecided);
    assert!(found.sentence.starts_with("Not decided: average FCT of IRN with PFC over IRN without PFC is 0.9"));
    assert!(
        found
            .sentence
            .ends_with("and the interval includes 1; more than 1,000 seeds would be needed to tell (--until-decided)."),
        "{}",
        found.sentence
    );
}

#[test]
fn an_interval_that_excludes_a_gain_of_five_per_cent_decides() {
    let lossy = series("x", "irn", false, 1.0, 0.0);
    let lossless = |spread| series("y", "irn", true, 1.03, spread);
    let found = verdict(&[lossy.clone(), lossless(0.05)]);
    assert_eq!((found.answer, found.needs_seeds), (Answer::No, false), "{}", found.sentence);
    expect![[r#"
        No: nothing with PFC is as much as 5 % faster; average FCT of IRN with PFC over IRN without PFC is
        1.03 (95 % CI 0.98-1.08).
    "#]]
    .assert_eq(&lines(&found.sentence));
    // Not if a tail favours PFC, nor if the interval is wider.
    let mut tail = lossless(0.05);
    tail.seeds.iter_mut().for_each(|seed| seed[2] /= 2.0);
    let found = [verdict(&[lossy.clone(), tail]), verdict(&[lossy, lossless(0.1)])];
    assert!(found.iter().all(|found| found.answer == Answer::Undecided && found.needs_seeds), "{found:?}");
}

#[test]
fn one_seed_never_decides() {
    let mut given = [series("x", "irn", false, 1.0, 0.0), series("y", "irn", true, 3.0, 0.0)];
    given.iter_mut().for_each(|series| series.seeds.truncate(1));
    assert_verdict(
        &given,
        Answer::Undecided,
        &expect![[r#"
            Not decided: average FCT of IRN with PFC over IRN without PFC is 3.0, from 1 seed; an interval needs
            three at least, as with --seeds 5.
        "#]],
    );
    given.iter_mut().for_each(|series| series.seeds.push(series.seeds[0]));
    assert_eq!(verdict(&given).answer, Answer::Undecided, "two seeds may agree by chance");
}

#[test]
fn metrics_that_contradict_each_other_are_both_named() {
    let lossy = series("x", "irn", false, 1.0, 0.0);
    let mut lossless = series("y", "irn", true, 1.3, 0.0);
    lossless.seeds.iter_mut().for_each(|seed| seed[2] = 450.0);
    assert_verdict(
        &[lossy, lossless],
        Answer::Depends,
        &expect![[r#"
            It depends: IRN with PFC against IRN without PFC is worse in one measure (average FCT 1.30 (95 % CI
            1.30-1.30)) and better in another (99th percentile FCT 0.50 (95 % CI 0.50-0.50)).
        "#]],
    );
}

#[test]
fn an_equal_average_lets_the_tail_speak() {
    let lossy = series("x", "irn", false, 1.0, 0.0);
    let mut lossless = series("y", "irn", true, 1.0, 0.0);
    lossless.seeds.iter_mut().for_each(|seed| seed[2] *= 2.0);
    assert_verdict(
        &[lossy, lossless],
        Answer::No,
        &expect![[r#"
            No: IRN without PFC has the same average FCT (within 5 %) and a 99th percentile FCT 2.0x lower (95 %
            CI 2.0-2.0) than IRN with PFC.
        "#]],
    );
}

#[test]
fn articles_suit_their_nouns() {
    let mut lossless = series("y", "irn", true, 1.0, 0.0);
    lossless.seeds.iter_mut().for_each(|seed| seed[1] *= 1.2);
    assert_verdict(
        &[series("x", "irn", false, 1.0, 0.0), lossless],
        Answer::No,
        &expect![[r#"
            No: IRN without PFC has the same average FCT (within 5 %) and an average slowdown 1.20x lower (95 %
            CI 1.20-1.20) than IRN with PFC.
        "#]],
    );
}

#[test]
fn a_deadlock_disqualifies() {
    let mut lossless = series("y", "go-back-n", true, 0.5, 0.0);
    lossless.deadlocks = vec![3];
    assert_verdict(
        &[series("x", "irn", false, 1.0, 0.0), lossless.clone()],
        Answer::No,
        &expect![[r#"
            No: RoCE (go-back-N) with PFC deadlocks with seed 3, while IRN without PFC completes its flows.
        "#]],
    );
    lossless.deadlocks = vec![1, 3];
    let healthy = series("z", "irn", true, 1.6, 0.0);
    assert_verdict(
        &[series("x", "irn", false, 1.0, 0.0), lossless, healthy],
        Answer::No,
        &expect![[r#"
            No: IRN without PFC completes flows 1.60x faster (95 % CI 1.60-1.60) than IRN with PFC; RoCE
            (go-back-N) with PFC deadlocks with 2 of 5 seeds.
        "#]],
    );
}

#[test]
fn every_series_that_stalls_is_named_whatever_the_answer() {
    let mut stalled = [series("y", "go-back-n", true, 0.5, 0.0), series("z", "go-back-n", false, 0.5, 0.0)];
    stalled[0].deadlocks = vec![3];
    stalled[1].unfinished = 20;
    let clause = "RoCE (go-back-N) with PFC deadlocks with seed 3 and RoCE (go-back-N) without PFC leaves 100 of 5,000 flows \
                  unfinished";
    let lossy = series("x", "irn", false, 1.0, 0.0);
    for (other, answer) in [
        (series("w", "irn", true, 1.01, 0.01), Answer::No),
        (series("w", "irn", true, 1.05, 0.5), Answer::Undecided),
        (series("w", "irn", true, 0.5, 0.01), Answer::Yes),
        (series("w", "irn", true, 1.6, 0.01), Answer::No),
    ] {
        let [first, second] = stalled.clone();
        let found = verdict(&[lossy.clone(), other, first, second]);
        assert_eq!(found.answer, answer);
        assert!(found.sentence.ends_with(&format!("; {clause}.")), "{}", found.sentence);
    }
    let [first, second] = stalled;
    assert_verdict(
        &[lossy, first.clone(), second],
        Answer::No,
        &expect![[r#"
            No: RoCE (go-back-N) with PFC deadlocks with seed 3, while IRN without PFC completes its flows; RoCE
            (go-back-N) without PFC leaves 100 of 5,000 flows unfinished.
        "#]],
    );
    let all_with = verdict(&[first, series("w", "irn", true, 1.0, 0.0)]).sentence;
    assert!(all_with.contains("runs with it; RoCE (go-back-N) with PFC deadlocks with seed 3; add"), "{all_with}");
}

#[test]
fn what_is_wrong_with_every_seed_is_said_once() {
    let mut lossless = series("y", "go-back-n", true, 0.5, 0.0);
    lossless.deadlocks = vec![1, 2, 3, 4, 5];
    let warnings = |lossless: &Given| study(&[lossless.clone(), series("x", "irn", false, 1.0, 0.0)]).warnings;
    let about = |lossless: &Given| -> Vec<String> {
        warnings(lossless).into_iter().filter(|text| text.contains("ended in a PFC deadlock")).collect()
    };
    let found = about(&lossless);
    assert!(found.len() == 1 && found[0].starts_with("y: seeds 1 to 5 ended in a PFC deadlock at "), "{found:?}");
    lossless.deadlocks = vec![2, 5];
    let found = about(&lossless);
    assert!(found.len() == 1 && found[0].starts_with("y: seeds 2 and 5 ended"), "{found:?}");
}

#[test]
fn series_that_send_most_packets_in_vain_are_told_of_congestion_control() {
    let mut given = [series("y", "irn", true, 0.5, 0.0), series("x", "go-back-n", false, 1.0, 0.0)];
    let about = |given: &[Given]| -> Vec<String> {
        study(given).warnings.into_iter().filter(|text| text.contains("congestion control")).collect()
    };
    assert_eq!(about(&given), Vec::<String>::new());
    given[1].retransmissions = 10_000;
    assert_eq!(
        about(&given),
        ["x sends more packets again than arrive, and has no congestion control here; `+dcqcn` adds one."]
    );
    given[1].info.traits.congestion = "dcqcn".into();
    assert_eq!(about(&given), Vec::<String>::new());
}

#[test]
fn requests_that_come_too_late_are_told() {
    let about = |unfulfilled| {
        let netrt = NetRtReport { requests: 100, unfulfilled, ..NetRtReport::default() };
        let given = Given { netrt, ..series("x", "netrt", false, 1.0, 0.0) };
        let found = study(&[given]).warnings.into_iter().find(|text| text.contains("found the duplicates gone"));
        found.map(|text| text.split(" gone: ").next().map(str::to_owned))
    };
    assert_eq!(about(50), None);
    let told = "x: 255 of 500 requests of NetRT found the duplicates";
    assert_eq!(about(51), Some(Some(told.to_owned())));
}

#[test]
fn flows_that_never_finish_disqualify() {
    let mut lossy = series("x", "go-back-n", false, 0.5, 0.0);
    lossy.unfinished = 20;
    assert_verdict(
        &[lossy.clone(), series("y", "go-back-n", true, 1.0, 0.0)],
        Answer::Yes,
        &expect![[r#"
            Yes: RoCE (go-back-N) without PFC leaves 100 of 5,000 flows unfinished, while RoCE (go-back-N) with
            PFC completes its flows.
        "#]],
    );
    let mut lossless = series("y", "go-back-n", true, 1.0, 0.0);
    lossless.deadlocks = vec![1];
    assert_verdict(
        &[lossy, lossless],
        Answer::Undecided,
        &expect![[r#"
            Not decided: RoCE (go-back-N) without PFC leaves 100 of 5,000 flows unfinished and RoCE (go-back-N)
            with PFC deadlocks with seed 1; nothing here completes its flows.
        "#]],
    );
}

#[test]
fn a_few_stragglers_warn_but_do_not_disqualify() {
    let mut lossy = series("x", "irn", false, 1.0, 0.0);
    lossy.unfinished = 2;
    let summary = study(&[lossy.clone(), series("y", "irn", true, 2.0, 0.0)]);
    assert_eq!(summary.verdict.answer, Answer::No);
    // The verdict mentions the unfinished flows: the mean is a lower bound, which cannot win, but the 99th percentile
    // is known.
    let sentence = &summary.verdict.sentence;
    expect![[r#"
        No: IRN without PFC has a 99th percentile FCT 2.0x lower (95 % CI 2.0-2.0) than IRN with PFC; IRN
        without PFC leaves 10 of 5,000 flows unfinished.
    "#]]
    .assert_eq(&lines(sentence));
    assert_eq!(
        summary.warnings,
        [
            "x: 10 of 5,000 measured flows never finished; they count with their age when the run ended, so that its completion \
          times are at least what is shown. Where stop.time or stop.flows ended the run, give more, unless a link that they need stays down."
        ]
    );
    // No hint to give more time after the end of simulated time.
    lossy.end_us = Instant::HORIZON.as_us_f64();
    let summary = study(&[lossy.clone(), series("y", "irn", true, 2.0, 0.0)]);
    let [warning] = &summary.warnings[..] else { panic!("{:?}", summary.warnings) };
    assert!(warning.contains("Simulated time ends after 53 days") && !warning.contains("stop.time"), "{warning}");
    lossy.hopeless = true;
    let summary = study(&[lossy.clone(), series("y", "irn", true, 2.0, 0.0)]);
    assert!(summary.warnings[0].contains("Nothing more would have arrived"), "{:?}", summary.warnings);
    assert!(summary.warnings[0].contains("a link is down"), "{:?}", summary.warnings);
    // The run was busy to its end.
    (lossy.retransmissions, lossy.drops) = (600, 500);
    let summary = study(&[lossy, series("y", "irn", true, 2.0, 0.0)]);
    assert!(summary.warnings[0].contains("packets were sent again all the time"), "{:?}", summary.warnings);
}

#[test]
fn a_bound_decides_where_even_the_bound_does() {
    let left = |mut given: Given, unfinished| {
        given.unfinished = unfinished;
        given
    };
    let [irn, slow] = [series("x", "irn", false, 1.0, 0.0), series("y", "irn", true, 2.0, 0.0)];
    let found = study(&[irn.clone(), left(slow.clone(), 2)]);
    expect![[r#"
        No: IRN without PFC completes flows at least 2.0x faster (95 % CI 2.0-2.0) than IRN with PFC; IRN
        with PFC leaves 10 of 5,000 flows unfinished.
    "#]]
    .assert_eq(&lines(&found.verdict.sentence));
    assert_eq!(found.verdict.with_over_without.as_ref().and_then(|ratio| ratio.bound), Some(Bound::AtLeast));
    // For both series only the 99th percentile is known; if that is a bound, too, nothing is known.
    let both = [left(irn, 2), left(slow, 2)];
    let found = study(&both);
    assert!(found.verdict.sentence.starts_with("No: IRN without PFC has a 99th percentile FCT 2.0x lower"));
    let mut points = points(&both);
    points.iter_mut().for_each(|point| point.flows.fct_us.open.p99 = true);
    let found = of_points(&both, &points);
    assert_eq!((found.verdict.answer, found.verdict.needs_seeds), (Answer::Undecided, false));
    expect![[r#"
        Not decided: average FCT of IRN with PFC over IRN without PFC may be above 1 or below: IRN without
        PFC leaves 10 of 5,000 flows unfinished and IRN with PFC leaves 10 of 5,000 flows unfinished when
        runs end, and takes longer than is known; give the runs more time.
    "#]]
    .assert_eq(&lines(&found.verdict.sentence));
    let table = render_table(&found, 100, false);
    let row = table.lines().find(|line| line.starts_with("average FCT")).expect("the table has this row");
    assert!(row.contains("≥ 100") && row.contains("≥ 200"), "{table}");
    let row = table.lines().find(|line| line.starts_with("y / x")).expect("the table has this ratio");
    assert_eq!(row.matches("undecided").count(), 3, "{table}");
}

/// Returns the summary of a study with these counts of unfinished flows, per seed, in place of its own.
fn with_unfinished(given: &[Given], unfinished: &[&[f64]]) -> Summary {
    let mut summary = study(given);
    for (series, counts) in summary.series.iter_mut().zip(unfinished) {
        let all = |of: &dyn Fn(f64) -> f64| Estimate::of_mean(counts.iter().map(|&count| Some(of(count))).collect());
        series.metrics.insert("unfinished_flows".into(), all(&|count| count));
        series.metrics.insert("measured_flows".into(), all(&|_| 300.0));
    }
    summary
}

#[test]
fn one_that_leaves_little_more_than_another_is_compared_with_it() {
    let mut given = [series("x", "irn", false, 1.0, 0.0), series("y", "go-back-n", true, 2.0, 0.01)];
    let found = |given: &[Given], unfinished: &[&[f64]]| {
        let found = selvedge_results::verdict(&with_unfinished(given, unfinished));
        (found.answer, found.sentence)
    };
    // 1.8 % and 1.0 %, not clearly different over the seeds: completion times decide, and the sentence says so.
    let (answer, sentence) = found(&given, &[&[1.0, 5.0, 0.0, 5.0, 4.0], &[6.0, 5.0, 5.0, 4.0, 7.0]]);
    assert_eq!(answer, Answer::No);
    assert!(sentence.starts_with("No: IRN without PFC completes flows 2.00x faster"), "{sentence}");
    let clause = "; RoCE (go-back-N) with PFC leaves 27 of 1,500 flows unfinished, not clearly more than IRN without PFC \
                  (15 of 1,500).";
    assert!(sentence.ends_with(clause), "{sentence}");
    // Equal shares, but more in every seed.
    let (answer, sentence) = found(&given, &[&[3.0, 2.0, 3.0, 4.0, 3.0], &[5.0, 5.0, 6.0, 6.0, 5.0]]);
    assert_eq!(answer, Answer::No);
    expect![[r#"
        No: RoCE (go-back-N) with PFC leaves 27 of 1,500 flows unfinished, while IRN without PFC leaves 15
        of 1,500 flows unfinished.
    "#]]
    .assert_eq(&lines(&sentence));
    // If both leave too many flows unfinished, the verdict is undecided.
    let (answer, sentence) = found(&given, &[&[30.0; 5], &[60.0; 5]]);
    assert_eq!(answer, Answer::Undecided);
    assert!(sentence.ends_with("nothing here completes its flows."), "{sentence}");

    // With one seed the number must be several times as large.
    given.iter_mut().for_each(|series| series.seeds.truncate(1));
    let (answer, sentence) = found(&given, &[&[3.0], &[6.0]]);
    assert_eq!(answer, Answer::Undecided);
    assert!(sentence.contains("leaves 6 of 300 flows unfinished, not clearly more than IRN"), "{sentence}");
    let (answer, sentence) = found(&given, &[&[3.0], &[11.0]]);
    assert_eq!(answer, Answer::No);
    assert!(sentence.ends_with("while IRN without PFC leaves 3 of 300 flows unfinished."), "{sentence}");
    // Seeds without effect count as one.
    let mut summary = with_unfinished(&given, &[&[3.0; 5], &[6.0; 5]]);
    summary.seeds = vec![1, 2, 3, 4, 5];
    summary.run.deterministic = true;
    let sentence = selvedge_results::verdict(&summary).sentence;
    assert!(sentence.contains("leaves 30 of 1,500 flows unfinished, not clearly more"), "{sentence}");
}

#[test]
fn who_wins_against_the_stalled_leaves_clearly_less() {
    let given = [
        series("fast", "irn", false, 1.0, 0.0),
        series("whole", "melo", false, 2.0, 0.0),
        series("y", "go-back-n", true, 0.5, 0.0),
    ];
    let found =
        selvedge_results::verdict(&with_unfinished(&given, &[&[1.0, 5.0, 0.0, 5.0, 4.0], &[0.0; 5], &[5.0; 5]]));
    assert_eq!(found.best_without.as_deref(), Some("whole"));
    expect![[r#"
        No: RoCE (go-back-N) with PFC leaves 25 of 1,500 flows unfinished, while MELO without PFC completes
        its flows.
    "#]]
    .assert_eq(&lines(&found.sentence));
}

#[test]
fn a_warning_about_many_series_is_one() {
    let unfinished = |name: &str, case: Option<&str>| {
        let full = case.map_or(name.to_owned(), |case| format!("{case}: {name}"));
        let mut given = series(&full, "irn", false, 1.0, 0.0);
        given.unfinished = 2;
        (given.info.series, given.info.case) = (name.to_owned(), case.map(str::to_owned));
        given
    };
    let hint = "They count with their age when the run ended, so that completion times are at least what is shown. Where stop.time or stop.flows \
                ended the run, give more, unless a link that they need stays down.";
    let given = [unfinished("a", None), series("b", "irn", true, 1.0, 0.0), unfinished("c", None)];
    let found = |given: &[Given]| study(given).warnings;
    let flows = |list: &str| format!("Some measured flows never finished: {list}. {hint}");
    assert_eq!(found(&given), [flows("a (10 of 5,000) and c (10 of 5,000)")]);
    let many: Vec<Given> = (0..9).map(|at| unfinished(&format!("s{at}"), None)).collect();
    let listed =
        "s0 (10 of 5,000), s1 (10 of 5,000), s2 (10 of 5,000), s3 (10 of 5,000), s4 (10 of 5,000) and 4 others";
    assert_eq!(found(&many), [flows(listed)]);
    let cases = ["0 %", "1 %", "2 %", "3 %", "4 %", "5 %", "6 %"];
    let in_cases: Vec<Given> = cases.map(|case| unfinished("a", Some(case))).into();
    assert_eq!(found(&in_cases[..2]), [flows("a (0 %: 10 of 5,000; 1 %: 10 of 5,000)")]);
    assert!(found(&in_cases)[0].contains("; 4 %: 10 of 5,000; and 2 others). They"), "{:?}", found(&in_cases));

    // A warning with another cause or another remedy is separate.
    let mut given = [unfinished("a", None), unfinished("b", None), unfinished("c", None)];
    given[1].hopeless = true;
    let warnings = found(&given);
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].starts_with("Some measured flows never finished: a (10 of 5,000) and c (10"), "{warnings:?}");
    assert!(warnings[1].starts_with("b: 10 of 5,000 measured flows never finished; they"), "{warnings:?}");

    let mut given = [series("y", "irn", true, 0.5, 0.0), series("x", "go-back-n", true, 1.0, 0.0)];
    given[0].deadlocks = vec![1, 2];
    given[1].deadlocks = vec![3];
    let told = "PFC deadlocks ended runs of y (seeds 1 and 2) and x (seed 3). Which ports wait in a cycle is told in \
                report.html and summary.json.";
    assert_eq!(found(&given), [told]);
}

#[test]
fn nobody_is_told_to_give_more_where_that_helps_nobody() {
    let warning = |cut| {
        let mut given = series("x", "irn", false, 1.0, 0.0);
        (given.unfinished, given.info.cut) = (2, cut);
        study(&[given]).warnings.concat()
    };
    assert!(warning(Cut::Written).contains("give more"));
    let always = warning(Cut::Always);
    assert!(always.ends_with("what is shown. Some are always in flight when a run of such traffic ends."), "{always}");
    let built_in = warning(Cut::BuiltIn);
    assert!(built_in.contains("what is not done by then does not keep up") && !built_in.contains("give more"));
}

#[test]
fn without_a_pair_the_question_is_not_asked() {
    assert_verdict(
        &[series("x", "irn", false, 1.0, 0.02)],
        Answer::NotAsked,
        &expect![[r#"
            No verdict on PFC: IRN without PFC completes flows in 2.0 times the ideal time on average (95 % CI
            2.0-2.0); add a series with PFC to compare.
        "#]],
    );
    assert_verdict(
        &[series("x", "irn", true, 1.0, 0.0), series("y", "go-back-n", true, 1.0, 0.0)],
        Answer::NotAsked,
        &expect![[r#"
            No verdict on PFC: every series runs with it; add one without PFC to compare.
        "#]],
    );
    assert_verdict(
        &[],
        Answer::NotAsked,
        &expect![[r#"
            No verdict: there is no series.
        "#]],
    );
}

#[test]
fn series_that_traits_cannot_tell_apart_go_by_name() {
    let found = verdict(&[
        series("big buffers", "irn", false, 1.0, 0.0),
        series("small buffers", "irn", false, 1.5, 0.0),
        series("paused", "irn", true, 3.0, 0.0),
    ]);
    expect![[r#"
        No: "big buffers" (without PFC) completes flows 3.0x faster (95 % CI 3.0-3.0) than "paused" (with
        PFC).
    "#]]
    .assert_eq(&lines(&found.sentence));
}

#[test]
fn many_cases_get_an_answer_each_in_a_headline() {
    let of_case = |(case, slower): (&str, f64)| {
        let named = |recovery: &str, pfc, scale| {
            let mut given = series(&format!("{case}: {recovery}"), recovery, pfc, scale, 0.0);
            (given.info.case, given.info.series) = (Some(case.to_owned()), recovery.to_owned());
            given
        };
        [named("irn", false, 1.0), named("go-back-n", true, slower), named("go-back-n, alone", false, 4.0)].map(
            |mut given| {
                given.info.traits.recovery = given.info.traits.recovery.replace(", alone", "");
                given
            },
        )
    };
    let all: Vec<Given> = [("a", 2.0), ("b", 0.5), ("c", 3.0)].into_iter().flat_map(of_case).collect();
    assert_verdict(
        &all,
        Answer::Depends,
        &expect![[r#"
            PFC is not needed with a and c. PFC is needed with b.
        "#]],
    );
    let same: Vec<Given> = [("a", 2.0), ("b", 1.5), ("c", 3.0)].into_iter().flat_map(of_case).collect();
    assert_verdict(
        &same,
        Answer::No,
        &expect![[r#"
            PFC is not needed in any case: a, b and c.
        "#]],
    );

    let noisy = |cases: [(&str, f64); 4]| -> Vec<Given> {
        let mut given: Vec<Given> = cases.into_iter().flat_map(of_case).collect();
        for one in &mut given[6..] {
            one.seeds.truncate(1);
        }
        given
    };
    // An undecided case contradicts no other.
    let cases = [("0.1 %", 2.0), ("1 %", 1.5), ("0.001 %", 2.0), ("0.01 %", 2.0)];
    assert_verdict(
        &noisy(cases),
        Answer::No,
        &expect![[r#"
            No, as far as the intervals tell. PFC is not needed at 0.1 % and 1 %. It is not decided at 0.001 %
            and 0.01 %.
        "#]],
    );
    let found = verdict(&noisy(cases.map(|(case, _)| (case, 0.5))));
    assert!(found.sentence.starts_with("Yes, as far as the intervals tell. PFC is needed at"), "{}", found.sentence);
    let mut none = noisy(cases);
    none.iter_mut().for_each(|one| one.seeds.truncate(1));
    assert_verdict(
        &none,
        Answer::Undecided,
        &expect![[r#"
            It is not decided in any case: 0.1 %, 1 %, 0.001 % and 0.01 %.
        "#]],
    );
    // The same rule applies to few cases.
    let found = verdict(&[&of_case(("a", 2.0))[..], &noisy(cases)[6..9]].concat());
    assert_eq!(found.answer, Answer::No);
    assert!(found.sentence.starts_with("No, as far as the intervals tell. a: No: IRN"), "{}", found.sentence);
    assert!(found.sentence.contains(" 0.001 %: Not decided: "), "{}", found.sentence);
}

#[test]
fn a_workload_or_jobs_that_stall_cannot_win() {
    let mut summary = study(&[series("a", "irn", false, 1.0, 0.0), series("b", "irn", true, 2.0, 0.0)]);
    assert_eq!(summary.verdict.answer, Answer::No);
    let count = |value: f64| Estimate::of_mean(vec![Some(value); 5]);
    let mut insert = |name: &str, value| summary.series[0].metrics.insert(name.into(), count(value));
    for (name, value) in [("fct_mean_us", 1.0), ("measured_flows", 6.0), ("unfinished_flows", 2.0)] {
        insert(&format!("incast.{name}"), value);
    }
    let found = selvedge_results::verdict(&summary);
    assert_eq!(found.answer, Answer::Yes);
    expect![[r#"
        Yes: IRN without PFC leaves 10 of 30 flows of incast unfinished, while IRN with PFC completes its
        flows.
    "#]]
    .assert_eq(&lines(&found.sentence));

    for series in &mut summary.series {
        series.traits.groups = vec![GroupTraits { workload: "collective".into(), kind: GroupKind::Job }];
        let unfinished = if series.name == "a" { 1.0 } else { 0.0 };
        for (name, value) in
            [("group_completion_mean_us", 1.0), ("measured_groups", 3.0), ("unfinished_groups", unfinished)]
        {
            series.metrics.insert(name.into(), count(value));
        }
    }
    expect![[r#"
        Yes: IRN without PFC leaves 5 of 15 jobs unfinished, while IRN with PFC completes its jobs.
    "#]]
    .assert_eq(&lines(&selvedge_results::verdict(&summary).sentence));
}

/// Gives a series groups of these workloads, each with its completion times per seed.
fn with_groups(series: &mut SeriesSummary, workloads: &[(&str, GroupKind, [f64; 3])]) {
    series.traits.groups =
        workloads.iter().map(|&(name, kind, _)| GroupTraits { workload: name.into(), kind }).collect();
    for (name, _, times) in workloads {
        let of_workload = if workloads.len() > 1 { format!("{name}.") } else { String::new() };
        for (metric, values) in
            [("group_completion_mean_us", *times), ("measured_groups", [4.0; 3]), ("unfinished_groups", [0.0; 3])]
        {
            let estimate = Estimate::of_mean(values.map(Some).to_vec());
            series.metrics.insert(format!("{of_workload}{metric}"), estimate);
        }
    }
}

/// Returns a study of IRN without PFC and with it, whose groups have these completion times.
fn pair(workloads: [&[(&str, GroupKind, [f64; 3])]; 2]) -> Summary {
    let mut summary = study(&[series("a", "irn", false, 1.0, 0.0), series("b", "irn", true, 2.0, 0.0)]);
    for (series, workloads) in summary.series.iter_mut().zip(workloads) {
        with_groups(series, workloads);
    }
    summary
}

#[test]
fn nothing_but_incasts_goes_by_their_completion() {
    let incasts = |time| [("incast", GroupKind::Incast, [time, time * 1.1, time * 1.05])];
    let mut summary = pair([&incasts(3.0), &incasts(2.0)]);
    let found = selvedge_results::verdict(&summary);
    expect![[r#"
        Yes: IRN with PFC completes incasts 1.50x faster (95 % CI 1.50-1.50) than IRN without PFC.
    "#]]
    .assert_eq(&lines(&found.sentence));
    assert!((found.with_over_without.unwrap().mean.unwrap() - 1.0 / 1.5).abs() < 1e-9);
    // Beside other traffic the flows decide, not the groups.
    summary.series.iter_mut().for_each(|series| series.traits.ungrouped = true);
    assert!(selvedge_results::verdict(&summary).sentence.starts_with("No: IRN without PFC completes flows 2.0x"));

    let mut alone = pair([&incasts(3.0), &incasts(2.0)]);
    alone.series.truncate(1);
    expect![[r#"
        No verdict on PFC: IRN without PFC completes incasts in 3.150 us (95 % CI 2.777-3.523) on average;
        add a series with PFC to compare.
    "#]]
    .assert_eq(&lines(&selvedge_results::verdict(&alone).sentence));
}

#[test]
fn workloads_with_groups_decide_together() {
    let of = |incast: f64, job: f64| {
        [
            ("collective", GroupKind::Job, [job, job * 1.1, job * 1.05]),
            ("incast", GroupKind::Incast, [incast, incast * 1.1, incast * 1.05]),
        ]
    };
    let sentence = |without: (f64, f64), with: (f64, f64)| {
        let found = selvedge_results::verdict(&pair([&of(without.0, without.1), &of(with.0, with.1)]));
        assert_eq!(found.with_over_without, None);
        found.sentence
    };
    expect![[r#"
        No: IRN without PFC completes jobs 1.20x faster (95 % CI 1.20-1.20) and incasts 1.50x faster (95 %
        CI 1.50-1.50) than IRN with PFC.
    "#]]
    .assert_eq(&lines(&sentence((2.0, 100.0), (3.0, 120.0))));
    expect![[r#"
        No: IRN without PFC completes jobs 1.20x faster (95 % CI 1.20-1.20) than IRN with PFC; incasts take
        as long, within 5 % (95 % CI 1.00-1.00).
    "#]]
    .assert_eq(&lines(&sentence((2.0, 100.0), (2.0, 120.0))));
    expect![[r#"
        No: IRN with PFC completes jobs and incasts as IRN without PFC does, within 5 % (95 % CI 1.00-1.00
        and 95 % CI 1.00-1.00).
    "#]]
    .assert_eq(&lines(&sentence((2.0, 100.0), (2.0, 100.0))));
    expect![[r#"
        It depends: IRN with PFC against IRN without PFC is worse in one measure (incast completion time
        1.50 (95 % CI 1.50-1.50)) and better in another (job completion time 0.83 (95 % CI 0.83-0.83)).
    "#]]
    .assert_eq(&lines(&sentence((2.0, 120.0), (3.0, 100.0))));
    let noisy = |incast: [f64; 3]| {
        let mut groups = of(2.0, 100.0);
        groups[1].2 = incast;
        groups
    };
    let found = selvedge_results::verdict(&pair([&of(2.0, 80.0), &noisy([2.0, 2.5, 2.2])]));
    assert_eq!(found.answer, Answer::Undecided, "{}", found.sentence);
    assert!(found.sentence.starts_with("Not decided: incast completion time of IRN with PFC"), "{}", found.sentence);
    let other = "seeds would tell (--until-decided). By job completion time it is 1.25 (95 % CI 1.25-1.25).";
    assert!(found.sentence.ends_with(other), "{}", found.sentence);
}

#[test]
fn workloads_of_a_kind_are_told_apart_by_name() {
    let of = |time: f64| ["collective", "pipeline"].map(|name| (name, GroupKind::Job, [time, time * 1.1, time * 1.05]));
    let found = selvedge_results::verdict(&pair([&of(2.0), &of(3.0)]));
    assert!(found.sentence.contains("completes jobs of collective 1.50x faster"), "{}", found.sentence);
    assert!(found.sentence.contains("and jobs of pipeline 1.50x faster"), "{}", found.sentence);
}

#[test]
fn where_seeds_change_nothing_there_are_no_intervals() {
    let mut summary = study(&[series("x", "irn", false, 1.0, 0.0), series("y", "irn", true, 1.6, 0.0)]);
    assert!(!summary.warnings.iter().any(|warning| warning.contains("the same run")), "{:?}", summary.warnings);
    summary.run.points.iter_mut().for_each(|point| point.fingerprint = "00000000000000aa".into());
    expect![[r#"
        No: IRN without PFC completes flows 1.60x faster than IRN with PFC. Nothing here depends on the
        seed.
    "#]]
    .assert_eq(&lines(&selvedge_results::verdict(&summary).sentence));
    // Runs on a real network have no fingerprint.
    summary.run.points.iter_mut().for_each(|point| point.fingerprint = "0000000000000000".into());
    assert!(selvedge_results::verdict(&summary).sentence.contains("95 % CI"));
}
