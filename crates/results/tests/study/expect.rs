//! Claims: parsing, and the outcomes of checks.

use crate::common::{series, study};
use selvedge_results::{
    Bound, ClaimVerdict, Estimate, Expectations, Footprints, Outcome, Summary, check, check_smoke, measure,
    needs_seeds, render_claims, render_measured,
};

/// Returns a study of "irn" at level 1, "pfc" at about 2 and "same" at 1.
fn summary() -> Summary {
    study(&[
        series("irn", "irn", false, 1.0, 0.0),
        series("pfc", "irn", true, 2.0, 0.02),
        series("same", "irn", true, 1.0, 0.02),
        series("noisy", "irn", true, 2.0, 0.9),
    ])
}

fn expectations(claim: &str) -> Expectations {
    let text = format!("[[expect]]\nsay = \"it holds\"\nmetric = \"fct_mean_us\"\n{claim}\n");
    Expectations::parse(&text, "expect.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn one(claim: &str) -> ClaimVerdict {
    check(&expectations(claim), &summary()).remove(0)
}

fn outcome(claim: &str) -> Outcome {
    one(claim).outcome
}

#[test]
fn a_ratio_inside_its_range_with_an_interval_off_one_is_reproduced() {
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { between = [1.5, 2.5] }"), Outcome::Reproduced);
    assert_eq!(outcome("of = 'irn'\nthan = 'pfc'\nratio = { at-most = 1.0 }"), Outcome::Reproduced);
    assert_eq!(outcome("of = 'irn'\nthan = 'pfc'\nratio = { between = ['1/2.5', '1/1.5'] }"), Outcome::Reproduced);
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { near = 2, tolerance = 0.1 }"), Outcome::Reproduced);
}

#[test]
fn the_right_side_by_another_factor_is_direction_only() {
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { between = [2.8, 3.7] }"), Outcome::DirectionOnly);
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { between = [1.1, 1.3] }"), Outcome::DirectionOnly);
}

#[test]
fn a_direction_needs_the_whole_interval_on_its_side() {
    // The mean is in the range, but the interval includes 1.
    assert_eq!(outcome("of = 'noisy'\nthan = 'irn'\nratio = { at-least = 1.0 }"), Outcome::NotReproduced);
}

/// Returns the outcome of a claim about "loss" over "clean", whose ratio is `found` for every seed.
fn at(found: f64, range: &str) -> Outcome {
    let study = study(&[series("clean", "irn", false, 1.0, 0.0), series("loss", "irn", true, found, 0.0)]);
    let claim = format!("of = 'loss'\nthan = 'clean'\nratio = {{ {range} }}");
    check(&expectations(&claim), &study).remove(0).outcome
}

#[test]
fn what_is_shown_as_one_has_no_direction() {
    let claim = "near = 1.0337, tolerance = 0.02";
    assert_eq!(at(1.03, claim), Outcome::Reproduced);
    assert_eq!(at(1.08, claim), Outcome::DirectionOnly);
    assert_eq!(at(1.01, claim), Outcome::DirectionOnly);
    assert_eq!(at(1.003, claim), Outcome::NotReproduced);
    // A ratio near 1 has no direction where a large effect is claimed, either.
    assert_eq!(at(1.003, "between = [2.0, 2.4]"), Outcome::NotReproduced);
    assert_eq!(at(1.1, "between = [2.0, 2.4]"), Outcome::DirectionOnly);
}

#[test]
fn who_claims_a_share_near_one_does_not_mean_a_small_one() {
    let claim = "between = [0.985, 0.995]";
    assert_eq!(at(0.99, claim), Outcome::Reproduced);
    assert_eq!(at(0.95, claim), Outcome::DirectionOnly);
    assert_eq!(at(0.382, claim), Outcome::NotReproduced);
    // The claim "less" holds for any lower ratio.
    assert_eq!(at(0.382, "at-most = 0.99"), Outcome::Reproduced);
}

#[test]
fn the_wrong_side_is_not_reproduced() {
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { at-most = 1.0 }"), Outcome::NotReproduced);
    assert_eq!(outcome("of = 'noisy'\nthan = 'irn'\nratio = { at-least = 3.0 }"), Outcome::NotReproduced);
}

#[test]
fn sameness_needs_the_whole_interval_inside() {
    assert_eq!(outcome("of = 'same'\nthan = 'irn'\nratio = { between = [0.95, 1.05] }"), Outcome::Reproduced);
    assert_eq!(outcome("of = 'same'\nthan = 'irn'\nratio = { between = [0.999, 1.001] }"), Outcome::DirectionOnly);
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { between = [0.95, 1.05] }"), Outcome::NotReproduced);
}

#[test]
fn a_value_is_in_its_range_or_not() {
    assert_eq!(outcome("of = 'irn'\nvalue = { near = 101, tolerance = 0.02 }"), Outcome::Reproduced);
    assert_eq!(outcome("of = 'irn'\nvalue = { at-least = 90, at-most = 110 }"), Outcome::Reproduced);
    assert_eq!(outcome("of = 'irn'\nvalue = { at-least = 101 }"), Outcome::NotReproduced);
}

#[test]
fn a_known_failure_is_reported_and_does_not_fail() {
    let claim = "of = 'pfc'\nthan = 'irn'\nratio = { at-most = 1.0 }";
    assert!(one(claim).fails);
    let known = one(&format!("{claim}\nknown = 'our switch has shallower buffers'"));
    assert_eq!((known.outcome, known.fails), (Outcome::NotReproduced, false));
    let text = render_claims(&[known]);
    assert!(text.starts_with("know  not reproduced  it holds: found 2"), "{text}");
    assert!(text.contains("known: our switch has shallower buffers"), "{text}");
    let stale = one("of = 'irn'\nthan = 'pfc'\nratio = { at-most = 1.0 }\nknown = 'x'");
    assert!(render_claims(&[stale]).contains("remove `known`"));
}

#[test]
fn a_smoke_run_fails_only_what_has_no_value() {
    let smoke = |claim: &str| check_smoke(&expectations(claim), &summary()).remove(0);
    let missed = smoke("of = 'pfc'\nthan = 'irn'\nratio = { at-most = 1.0 }\nknown = 'x'");
    assert_eq!((missed.outcome, missed.fails), (Outcome::NotJudged, false));
    let missing = smoke("of = 'roce'\nthan = 'irn'\nratio = { at-most = 1.0 }\nknown = 'x'");
    assert_eq!((missing.outcome, missing.fails), (Outcome::NotReproduced, true));
    let text = render_claims(&[missed, missing]);
    assert!(text.starts_with("runs  not judged      it holds: found 2"), "{text}");
    assert!(text.contains("FAIL  not reproduced  it holds: the study has no series"), "{text}");
    assert!(text.ends_with("2 claims: 1 with a value, not judged after a smoke run; 1 without\n"), "{text}");
}

#[test]
fn a_missing_series_fails_with_the_ones_there_are() {
    let verdict = one("of = 'roce'\nthan = 'irn'\nratio = { at-most = 1.0 }");
    assert_eq!((verdict.outcome, verdict.fails), (Outcome::NotReproduced, true));
    assert_eq!(verdict.note.as_deref(), Some("the study has no series \"roce\", only irn, pfc, same, noisy"));
}

#[test]
fn verdicts_are_machine_readable() {
    let json =
        serde_json::to_value(one("of = 'irn'\nthan = 'pfc'\nratio = { at-most = 1.0 }\npaper = '1.5-2x'")).unwrap();
    assert_eq!(json["outcome"], "reproduced");
    assert_eq!(json["accepted"], serde_json::json!([null, 1.0]));
    assert_eq!(json["paper"], "1.5-2x");
    assert!((json["mean"].as_f64().unwrap() - 0.5).abs() < 1e-3);
}

#[track_caller]
fn assert_error(text: &str, place: &str, what: &str) {
    let error = Expectations::parse(text, "figures/e.toml").unwrap_err().to_string();
    assert!(error.starts_with(&format!("figures/e.toml:{place}: ")), "{error}");
    assert!(error.contains(what), "{error}");
}

#[test]
fn errors_name_file_line_column_and_remedy() {
    let head = "[[expect]]\nsay = \"x\"\n";
    assert_error("", "1:1", "no claims: expected at least one [[expect]]");
    assert_error("[[expect]\n", "1:10", "unclosed");
    assert_error(
        &format!("{head}metric = \"fct_mean\"\nof = \"a\"\nvalue = {{ at-most = 1 }}"),
        "3:10",
        "expected one of slowdown_mean",
    );
    assert_error(&format!("{head}metrik = \"fct_mean_us\"\n"), "3:1", "unknown field `metrik`");
    let head = "[[expect]]\nsay = \"x\"\nmetric = \"drop_rate\"\nof = \"a\"\n";
    assert_error(&format!("{head}ratio = {{ at-most = 1 }}"), "5:9", "add than = ");
    assert_error(&format!("{head}than = \"b\"\nvalue = {{ at-most = 1 }}"), "6:9", "`than` belongs to a ratio");
    assert_error(head, "4:6", "nothing is claimed");
    assert_error(&format!("{head}value = {{ at-most = 1, at-least = 2 }}"), "5:9", "empty range");
    assert_error(&format!("{head}value = {{ near = 1 }}"), "5:9", "tolerance");
    assert_error(&format!("{head}value = {{ near = 1, tolerance = -1 }}"), "5:9", "zero or above, found -1");
    assert_error(
        &format!("{head}value = {{ between = [0.5, 1, 2] }}"),
        "5:9",
        "between takes two bounds, [low, high], found 3",
    );
    assert_error(&format!("{head}value = {{ near = 1, at-most = 2 }}"), "5:9", "exclude each other");
    assert_error(&format!("{head}value = {{ at-most = \"much\" }}"), "5:21", "\"much\" is not a number");
    assert_error(&format!("{head}value = {{ at-most = true }}"), "5:21", "expected a number");
    assert_error(&format!("{head}value = {{ at-most = \"1/0\" }}"), "5:21", "not a number");
}

/// Returns a study of "irn" and "pfc" in the cases "calm" (levels 1 and 2) and "busy" (1 and 6).
fn cases() -> Summary {
    let at = |case: &str, name: &str, pfc, level| {
        let mut given = series(&format!("{case}: {name}"), "irn", pfc, level, 0.0);
        (given.info.series, given.info.case) = (name.into(), Some(case.into()));
        given
    };
    study(&[
        at("calm", "irn", false, 1.0),
        at("calm", "pfc", true, 2.0),
        at("busy", "irn", false, 1.0),
        at("busy", "pfc", true, 6.0),
    ])
}

fn in_cases(claim: &str) -> Vec<ClaimVerdict> {
    check(&expectations(claim), &cases())
}

#[test]
fn a_claim_about_every_case_has_a_verdict_for_each() {
    let verdicts = in_cases("of = 'pfc'\nthan = 'irn'\ncase = '*'\nratio = { at-least = 3.0 }");
    let found: Vec<_> = verdicts.iter().map(|verdict| (&*verdict.which, verdict.outcome)).collect();
    assert_eq!(found, [("calm", Outcome::DirectionOnly), ("busy", Outcome::Reproduced)]);
    let one = in_cases("of = 'pfc'\nthan = 'irn'\ncase = 'busy'\nratio = { at-least = 3.0 }");
    assert_eq!((one.len(), &*one[0].which, one[0].outcome), (1, "", Outcome::Reproduced));
}

#[test]
fn the_extreme_of_several_stands_for_all() {
    let claim = "of = 'pfc'\nthan = 'irn'\ncase = '*'\ntake = 'max'\nratio = { between = [1.0, 2.4] }";
    let verdicts = in_cases(claim);
    assert_eq!((verdicts.len(), &*verdicts[0].which), (1, "busy"));
    assert_eq!(verdicts[0].outcome, Outcome::DirectionOnly);
    assert_eq!(in_cases(&claim.replace("max", "min"))[0].which, "calm");
}

#[test]
fn cases_compare_with_each_other() {
    // Six-fold in "busy" against two-fold in "calm".
    let trend = in_cases("of = 'pfc'\nthan = 'irn'\ncase = 'busy'\nthan-case = 'calm'\nratio = { at-least = 1.0 }");
    assert!((trend[0].mean.unwrap() - 3.0).abs() < 1e-3, "{trend:?}");
    let same = in_cases("of = 'irn'\ncase = '*'\nthan-case = 'calm'\nratio = { between = [0.95, 1.05] }");
    assert_eq!((same.len(), same[0].outcome), (1, Outcome::Reproduced));
}

#[test]
fn measurements_have_numbers_and_no_verdict() {
    let text = "[[measure]]\nsay = 'x'\nmetric = ['fct_mean_us', 'fct_p99_us']\nof = 'pfc'\nthan = 'irn'\ncase = '*'\n";
    let expectations = Expectations::parse(text, "expect.toml").unwrap();
    let measured = measure(&expectations, &cases());
    assert_eq!(measured.len(), 4);
    assert_eq!(measured[2].which, "busy, average FCT");
    assert!(check(&expectations, &cases()).is_empty());
    assert!(render_measured(&measured).contains("busy, average FCT: 6"), "{}", render_measured(&measured));
}

#[test]
fn names_are_checked_before_anything_runs() {
    let known = [(Some("calm"), "irn"), (Some("calm"), "pfc"), (Some("busy"), "irn"), (Some("busy"), "pfc")];
    let error = |claim: &str| {
        expectations(claim).check_names(&known, &Footprints::default()).expect_err("should be refused").to_string()
    };
    let ratio = "ratio = { at-most = 1 }";
    assert!(error(&format!("of = 'a'\nthan = 'irn'\ncase = '*'\n{ratio}")).contains("no series \"a\", only irn, pfc"));
    assert!(
        error(&format!("of = 'pfc'\nthan = 'irn'\ncase = 'b'\n{ratio}")).contains("no case \"b\", only calm, busy")
    );
    assert!(error(&format!("of = 'pfc'\nthan = 'irn'\n{ratio}")).contains("say which"));
    assert!(
        expectations(&format!("of = 'pfc'\nthan = 'irn'\ncase = '*'\n{ratio}"))
            .check_names(&known, &Footprints::default())
            .is_ok()
    );
}

#[test]
fn a_series_that_the_study_lacks_is_told_where_it_is_named() {
    let text = "# two lines\n\n[[expect]]\nsay = 'x'\nmetric = 'fct_mean_us'\nof = 'roce'\nthan = 'irn'\nratio = { at-most = 1 }\n";
    let claims = Expectations::parse(text, "e.toml").unwrap();
    let error = claims.check_names(&[(None, "irn")], &Footprints::default()).unwrap_err().to_string();
    assert!(error.starts_with("e.toml:6:6: the study has no series \"roce\""), "{error}");
}

#[test]
fn a_series_is_not_compared_with_itself() {
    let text = "[[expect]]\nsay = 'x'\nmetric = 'fct_mean_us'\nof = ['a', 'b']\nthan = 'b'\nratio = { at-most = 1 }\n";
    assert_error(text, "5:8", "\"b\" is compared with itself");
}

#[test]
fn known_is_needless_where_all_of_a_claim_comes_out() {
    let text = |than: &str| {
        let claim =
            expectations(&format!("of = ['irn', 'same']\nthan = '{than}'\nratio = {{ at-most = 1.0 }}\nknown = 'x'"));
        render_claims(&check(&claim, &summary()))
    };
    assert!(text("pfc").contains("all of it comes out after all: remove `known`"), "{}", text("pfc"));
    assert!(!text("noisy").contains("after all"), "{}", text("noisy"));
}

#[test]
fn a_lower_bound_reproduces_a_claim_without_an_upper_end() {
    let mut slow = series("roce", "go-back-n", false, 2.0, 0.02);
    slow.unfinished = 20;
    let summary = study(&[series("irn", "irn", false, 1.0, 0.0), slow]);
    let found = |claim: &str| {
        let verdict = check(&expectations(claim), &summary).remove(0);
        assert_eq!(verdict.bound.is_some(), verdict.note.is_some(), "{verdict:?}");
        (verdict.outcome, verdict.bound, verdict.note.unwrap_or_default())
    };
    let left = "2 % of the flows of roce had not finished when runs ended and count with their age";
    let ratio = |range: &str| found(&format!("of = 'roce'\nthan = 'irn'\nratio = {{ {range} }}"));
    let of_ratio = |outcome, note: String| (outcome, Some(Bound::AtLeast), note);
    assert_eq!(ratio("at-least = 1.5"), of_ratio(Outcome::Reproduced, left.into()));
    // The lower bound leaves open whether the ratio is in the range or above.
    let open = format!("undecided: it is 2.00 or more; {left}");
    assert_eq!(ratio("between = [1.5, 2.5]"), of_ratio(Outcome::DirectionOnly, open.clone()));
    assert_eq!(ratio("at-most = 2.5"), of_ratio(Outcome::NotReproduced, open.clone()));
    assert_eq!(ratio("between = [0.9, 2.5]"), of_ratio(Outcome::NotReproduced, open));
    // The ratio is certainly above the range: another factor.
    assert_eq!(ratio("between = [1.1, 1.8]"), of_ratio(Outcome::DirectionOnly, left.into()));
    assert_eq!(ratio("at-most = 0.9"), of_ratio(Outcome::NotReproduced, left.into()));
    // In the inverse ratio the bound is an upper one.
    let (outcome, bound, _) = found("of = 'irn'\nthan = 'roce'\nratio = { at-most = 0.6 }");
    assert_eq!((outcome, bound), (Outcome::Reproduced, Some(Bound::AtMost)));
    let (outcome, _, note) = found("of = 'irn'\nthan = 'roce'\nratio = { between = [0.4, 0.6] }");
    assert_eq!(outcome, Outcome::DirectionOnly);
    assert!(note.starts_with("undecided: it is 0.500 or less"), "{note}");
    let text = render_claims(&check(&expectations("of = 'roce'\nthan = 'irn'\nratio = { at-least = 1.5 }"), &summary));
    assert!(text.contains("found ≥ 2.00 (1.96–2.04), accepted at least 1.50"), "{text}");
}

#[test]
fn a_ratio_of_two_lower_bounds_is_undecided() {
    let mut both = [series("irn", "irn", false, 1.0, 0.0), series("roce", "go-back-n", false, 2.0, 0.02)];
    both.iter_mut().for_each(|series| series.unfinished = 20);
    let claim = expectations("of = 'roce'\nthan = 'irn'\nratio = { at-least = 1.5 }");
    let verdicts = check(&claim, &study(&both));
    let verdict = &verdicts[0];
    assert_eq!((verdict.outcome, verdict.mean, verdict.bound), (Outcome::NotReproduced, None, Some(Bound::Undecided)));
    let text = render_claims(&verdicts);
    assert!(text.contains("found undecided, accepted at least 1.50; undecided: nothing bounds it"), "{text}");
    // A smoke run accepts a value that is only bounded.
    assert!(!check_smoke(&claim, &study(&both))[0].fails);
}

#[test]
fn the_largest_of_several_is_a_bound_if_another_may_be_larger() {
    let mut slow = series("slow", "go-back-n", false, 1.5, 0.0);
    slow.unfinished = 2;
    let summary = study(&[series("irn", "irn", false, 1.0, 0.0), slow, series("roce", "go-back-n", true, 2.0, 0.0)]);
    let found = |take: &str, range: &str| {
        let claim = format!("of = ['roce', 'slow']\nthan = 'irn'\ntake = '{take}'\nratio = {{ {range} }}");
        let verdict = check(&expectations(&claim), &summary).remove(0);
        (verdict.outcome, verdict.bound)
    };
    assert_eq!(found("max", "at-least = 1.9"), (Outcome::Reproduced, Some(Bound::AtLeast)));
    assert_eq!(found("max", "between = [1.9, 2.1]"), (Outcome::DirectionOnly, Some(Bound::AtLeast)));
    assert_eq!(found("min", "at-least = 1.4"), (Outcome::Reproduced, Some(Bound::AtLeast)));
}

/// An incast with unfinished flows, beside other traffic that finishes.
#[test]
fn completion_times_of_a_workload_or_of_groups_go_by_what_these_left_unfinished() {
    let mut summary = study(&[series("irn", "irn", false, 1.0, 0.0)]);
    for (name, value) in [
        ("incast.fct_mean_us", 100.0),
        ("incast.measured_flows", 64.0),
        ("incast.unfinished_flows", 16.0),
        ("group_completion_mean_us", 100.0),
        ("measured_groups", 4.0),
        ("unfinished_groups", 1.0),
    ] {
        let bound = name.ends_with("_us").then_some(Bound::AtLeast);
        summary.series[0].metrics.insert(name.into(), Estimate { bound, ..Estimate::of_mean(vec![Some(value); 5]) });
    }
    let found = |metric: &str| {
        let claim = format!(
            "[[expect]]\nsay = 'x'\nmetric = '{metric}'\nof = 'irn'\nvalue = {{ near = 100, tolerance = 0.1 }}"
        );
        let verdict = check(&Expectations::parse(&claim, "expect.toml").unwrap(), &summary).remove(0);
        (verdict.outcome, verdict.note)
    };
    assert_eq!(found("fct_mean_us"), (Outcome::Reproduced, None));
    for (metric, what) in [("incast.fct_mean_us", "flows of incast"), ("group_completion_mean_us", "groups")] {
        let note = format!(
            "undecided: it is 100 or more; 25 % of the {what} of irn had not finished when runs ended and count with their age"
        );
        assert_eq!(found(metric), (Outcome::NotReproduced, Some(note)));
    }
}

/// Returns outcome and note of a claim about the value of "x", whose seeds have the given values.
fn of_value(seeds: &[f64], range: &str) -> (Outcome, Option<String>) {
    let mut summary = study(&[series("x", "irn", false, 1.0, 0.0)]);
    let estimate = Estimate::of_mean(seeds.iter().copied().map(Some).collect());
    summary.series[0].metrics.insert("drop_rate".into(), estimate);
    let claim = format!("[[expect]]\nsay = 'x'\nmetric = 'drop_rate'\nof = 'x'\nvalue = {{ {range} }}");
    let verdict = check(&Expectations::parse(&claim, "expect.toml").unwrap(), &summary).remove(0);
    (verdict.outcome, verdict.note)
}

#[test]
fn values_are_judged_by_their_interval() {
    let open = || Some("undecided: the interval reaches beyond what is accepted".to_owned());
    // The estimate is 0.085 ± 0.0025.
    let some = [0.084, 0.085, 0.086];
    assert_eq!(of_value(&some, "near = 0.085, tolerance = 0.1"), (Outcome::Reproduced, None));
    assert_eq!(of_value(&some, "at-least = 0.08"), (Outcome::Reproduced, None));
    assert_eq!(of_value(&some, "at-least = 0.084"), (Outcome::NotReproduced, open()), "the mean alone is no evidence");
    assert_eq!(of_value(&some, "at-least = 0.09"), (Outcome::NotReproduced, None), "that is decided");
    // The interval meets 0.083 as printed, 0.0825 to 0.0835, but its half-width is 2.99 % of that.
    let tight = "near = 0.083, tolerance = 0.029";
    assert_eq!(of_value(&some, tight), (Outcome::NotReproduced, open()));
    let tight = "near = 0.083, tolerance = 0.031";
    assert_eq!(of_value(&some, tight), (Outcome::Reproduced, None));
    // A wide interval meets any value.
    let wide = [0.02, 0.085, 0.15];
    assert_eq!(of_value(&wide, "near = 0.085, tolerance = 0.1"), (Outcome::NotReproduced, open()));
    // A precise value need not equal the paper's to the last digit.
    let precise = [0.0870, 0.0871, 0.0872];
    assert_eq!(of_value(&precise, "near = 0.085, tolerance = 0.1"), (Outcome::Reproduced, None));
    // The rule applies to ratios as well: "pfc" over "irn" is 1.96 to 2.04.
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { near = 2.1, tolerance = 0.1 }"), Outcome::Reproduced);
    assert_eq!(outcome("of = 'pfc'\nthan = 'irn'\nratio = { near = 2.1, tolerance = 0.06 }"), Outcome::DirectionOnly);
}

#[test]
fn what_could_not_fail_holds_by_construction() {
    let same = |reason: &str, range: &str| {
        one(&format!("of = 'same'\nthan = 'irn'\nratio = {{ {range} }}\nby-construction = {reason}"))
    };
    let verdict = same("'a constant with itself'", "between = [0.9, 1.1]");
    assert_eq!((verdict.outcome, verdict.fails), (Outcome::ByConstruction, false));
    let text = render_claims(&[verdict]);
    assert!(text.starts_with("ok    by construction  it holds: found 1.00"), "{text}");
    assert!(text.contains("; by construction: a constant with itself\n"), "{text}");
    assert!(
        text.ends_with(
            "1 claim: 0 reproduced, 1 by construction, 0 in direction only, 0 not; 0 without a known reason\n"
        )
    );
    // A claim by construction must still hold.
    let verdict = same("'a constant with itself'", "at-least = 1.2");
    assert_eq!((verdict.outcome, verdict.fails, verdict.by_construction), (Outcome::NotReproduced, true, None));
    // Bounds hold by construction only where little happens.
    let little = "{ within = 0.05, because = 'little is lost' }";
    assert_eq!(same(little, "between = [0.5, 1.4]").outcome, Outcome::ByConstruction);
    let much = format!("of = 'pfc'\nthan = 'irn'\nratio = {{ between = [1.0, 2.4] }}\nby-construction = {little}");
    assert_eq!(outcome(&much), Outcome::Reproduced);
    assert_error(
        "[[expect]]\nsay = 'x'\nmetric = 'drop_rate'\nof = 'a'\nvalue = { at-most = 1 }\nby-construction = ' '\n",
        "6:19",
        "give the reason why it cannot fail",
    );
    assert_error(
        "[[expect]]\nsay = 'x'\nmetric = 'drop_rate'\nof = 'a'\nvalue = { at-most = 1 }\nby-construction = { within = 0.1, because = 'x' }\n",
        "6:19",
        "a value has none",
    );
    assert_error(
        "[[expect]]\nsay = 'x'\nmetric = 'drop_rate'\nof = 'a'\nthan = 'b'\nratio = { at-most = 1 }\nby-construction = { within = 5, because = 'x' }\n",
        "7:19",
        "above 0, below 1",
    );
}

/// Returns whether a claim on "loss" over "clean", with these ratios per seed, needs more seeds.
fn wants_seeds(ratios: &[f64], claim: &str) -> bool {
    let mut given = [series("clean", "irn", false, 1.0, 0.0), series("loss", "irn", true, 1.0, 0.0)];
    given[0].seeds = ratios.iter().map(|_| [100.0; 3]).collect();
    given[1].seeds = ratios.iter().map(|ratio| [100.0 * ratio; 3]).collect();
    needs_seeds(&expectations(&format!("of = 'loss'\nthan = 'clean'\n{claim}")), &study(&given))
}

#[test]
fn seeds_are_wanted_until_a_claim_is_decided_for_or_against_it() {
    let [many_above, few_above] = [[1.1, 1.12, 1.09, 1.11, 1.1, 1.12, 1.09, 1.11].as_slice(), &[1.1, 1.12, 1.09]];
    let worse = "ratio = { at-least = 1.0 }";
    assert!(wants_seeds(few_above, worse), "three seeds exclude 1 at 95 %, and not at 99.9 %");
    assert!(!wants_seeds(many_above, worse));
    // Equally strong evidence against the claim.
    let below = |ratios: &[f64]| ratios.iter().map(|ratio| 1.0 / ratio).collect::<Vec<f64>>();
    assert!(wants_seeds(&below(few_above), worse));
    assert!(!wants_seeds(&below(many_above), worse));
    // Inside the range, outside, and across its end.
    assert!(!wants_seeds(many_above, "ratio = { between = [1.0, 1.2] }"));
    assert!(!wants_seeds(many_above, "ratio = { between = [1.5, 2.0] }"));
    assert!(wants_seeds(many_above, "ratio = { between = [1.1, 2.0] }"));
    // One seed decides nothing; a claim that cannot fail needs no more.
    assert!(wants_seeds(&[1.1], worse));
    assert!(!wants_seeds(few_above, &format!("{worse}\nby-construction = 'x'")));
    // More seeds do not help if runs end too early.
    let mut open = [series("clean", "irn", false, 1.0, 0.0), series("loss", "irn", true, 1.1, 0.5)];
    open.iter_mut().for_each(|series| series.unfinished = 1);
    let claims = expectations("of = 'loss'\nthan = 'clean'\nratio = { at-least = 1.0 }");
    assert!(!needs_seeds(&claims, &study(&open)), "both are lower bounds");
    open[0].unfinished = 0;
    assert!(needs_seeds(&claims, &study(&open)), "a lower bound about 1 may come to lie above");
    open[1].seeds.iter_mut().for_each(|seed| seed[0] /= 2.0);
    assert!(!needs_seeds(&claims, &study(&open)), "one below never will");
}

#[test]
fn what_is_not_run_says_why() {
    let row = "[[not-run]]\nsay = 'x'\nsource = 'table 1'\nbecause = 'no such NIC'\n";
    let claims = Expectations::parse(row, "expect.toml").expect("a valid file without claims");
    assert_eq!((claims.claims.len(), &*claims.not_run[0].because), (0, "no such NIC"));
    assert_error("[[not-run]]\nsay = 'x'\nsource = 'table 1'\n", "1:1", "missing field `because`");
}

#[test]
fn the_number_of_seeds_has_a_limit() {
    let most = |written: &str| {
        let text = format!(
            "max-seeds = {written}\n[[expect]]\nsay = 'x'\nmetric = 'drop_rate'\nof = 'a'\nvalue = {{ at-most = 1 }}\n"
        );
        Expectations::parse(&text, "expect.toml").map(|claims| claims.max_seeds).map_err(|error| error.to_string())
    };
    assert_eq!(most("48"), Ok(Some(48)));
    assert_eq!(most("2"), Err("expect.toml:1:13: max-seeds is from 3 to 1000, found 2".to_owned()));
    assert!(most("-1").is_err() && most("1001").is_err());
}

/// Returns claims about the state of "irn" on 300 queue pairs.
fn of_state(metric: &str) -> Expectations {
    let claim =
        format!("[[expect]]\nsay = 'x'\nmetric = '{metric}'\nof = 'irn'\nvalue = {{ near = 23, tolerance = 0.05 }}");
    Expectations::parse(&format!("[footprint]\nqueue-pairs = 300\n{claim}\n"), "e.toml").unwrap()
}

#[test]
fn state_is_counted_for_series_and_judged_as_other_numbers() {
    let mut state = Footprints::default();
    state.add(None, "irn", [("per-qp", 22.5), ("bitmap", 4800.0)]);
    let claims = of_state("footprint.per-qp");
    claims.check_names(&[(None, "irn")], &state).expect("the study has the claimed state");
    let verdicts = check(&claims, &state.added_to(&summary()));
    let verdict = &verdicts[0];
    assert_eq!((verdict.outcome, verdict.mean, &verdict.note), (Outcome::Reproduced, Some(22.5), &None));
    // Seeds do not affect counted state: there is no interval to show.
    let text = render_claims(&verdicts);
    assert!(text.contains("found 22.5, accepted"), "{text}");

    let error = of_state("footprint.bitmaps").check_names(&[(None, "irn")], &state).unwrap_err().to_string();
    assert_eq!(error, "e.toml:6:6: the state of \"irn\" has no \"bitmaps\": expected one of bitmap, per-qp");
    let error = claims.check_names(&[(None, "irn")], &Footprints::default()).unwrap_err().to_string();
    assert_eq!(error, "e.toml:6:6: the state of \"irn\" is not counted: it has no queue pairs of its own");
}

#[test]
fn state_is_counted_on_a_nic_that_the_file_describes() {
    let claim = "[[expect]]\nsay = 'x'\nmetric = 'footprint.total'\nof = 'irn'\nvalue = { at-most = 1 }\n";
    assert_error(claim, "3:10", "say on what, as in [footprint] queue-pairs = 2000");
    assert_error(
        &format!("[footprint]\nqueue-pairs = 5_000_000_000\n{claim}"),
        "2:15",
        "expected a number of queue pairs, from 1 to 4294967295",
    );
    assert_error(&format!("[footprint]\nqueue-pairs = 0\n{claim}"), "2:15", "expected a number of queue pairs");
    assert_error(&format!("[footprint]\nwork-requests = 1\n{claim}"), "1:1", "missing field `queue-pairs`");
    assert_error(&format!("[footprint]\nqueue-pairs = 1\ncache = '0B'\n{claim}"), "3:9", "no share to give");
    assert_error(&format!("[footprint]\nqueue-pairs = 1\ncache = '4 apples'\n{claim}"), "3:9", "4 apples");
    let nic = of_state("footprint.total").footprint.expect("a NIC");
    assert_eq!((nic.queue_pairs.get(), nic.work_requests, nic.cache.get()), (300, 0, 4_000_000));
}
