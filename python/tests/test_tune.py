"""Searches with Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import selvedge as sv

optuna = pytest.importorskip("optuna", reason="optuna is not installed: searches")

STUDY = sv.Study(
    topology=sv.FatTree(k=4, link=sv.Link("40Gbps", "2us")),
    workload=sv.Poisson(load=0.6, sizes="irn-heavy-tailed"),
    series=["roce+dcqcn", "irn"],
    stop=sv.Stop(flows=30),
    seeds=2,
)
KNOBS: dict[str, Any] = {
    "switch.ecn.k-min": {"from": "5KB", "to": "150KB", "log": True},
    "workload.poisson.load": {"from": 0.2, "to": 0.6},
    "nic.mtu": ["1000B", "2KB"],
    "stop.flows": {"from": 20, "to": 40, "step": 10},
}


def test_a_search_is_the_same_each_time_and_continues(tmp_path: Path) -> None:
    told: list[float] = []
    first = sv.tune(STUDY, KNOBS, "fct_p99", 4, tmp_path, progress=told.append)
    assert len(first.trials) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"trial-00{at}" for at in range(1, 5)]
    made = [(tmp_path / f"trial-00{at}" / "summary.json").stat().st_mtime_ns for at in range(1, 5)]
    again = sv.tune(STUDY, KNOBS, sv.Goal("fct_p99", of="roce+dcqcn"), 6, tmp_path)
    assert again.table[:4] == first.table
    assert made == [(tmp_path / f"trial-00{at}" / "summary.json").stat().st_mtime_ns for at in range(1, 5)]
    assert again.table == sv.tune(STUDY, KNOBS, "fct_p99", 6).table
    assert again.best.metric == min(row["fct_p99"] for row in again.table)
    assert sv.tune(STUDY, KNOBS, "fct_p99", 4, seed=2).table != first.table
    for trial in again.trials:
        assert 0.2 <= trial.values["workload.poisson.load"] <= 0.6
        assert trial.values["stop.flows"] in {20, 30, 40}
        assert trial.values["switch.ecn.k-min"].endswith("KB")
        assert trial.result is not None
        assert trial.result.series == ["roce+dcqcn"]
    with pytest.raises(sv.StudyError, match="trial-001: results of another scenario"):
        sv.tune(STUDY, KNOBS, "fct_p99", 4, tmp_path, seed=2)


def test_the_best_is_within_the_bounds() -> None:
    loads = {"workload.poisson.load": [0.1, 0.3, 0.5]}
    goal = sv.Goal("utilisation", of="irn", maximise=True)
    free = sv.tune(STUDY, loads, goal, 10)
    assert len(free.trials) == 3, "there are no more points"
    limit = sorted(row["utilisation"] for row in free.table)[1]
    bound = sv.tune(STUDY, loads, sv.Goal("utilisation", "irn", True, {"utilisation": {"at-most": limit}}), 10)
    assert free.best.metric is not None
    assert bound.best.metric == limit < free.best.metric
    assert "with utilisation at-most" in repr(bound)
    assert bound._repr_html_().count("<tr>") == 4
    none = sv.tune(STUDY, loads, sv.Goal("utilisation", "irn", False, {"utilisation": {"at-least": 2}}), 2)
    with pytest.raises(sv.StudyError, match="none of 2 points has a value within the bounds; widen"):
        _ = none.best
    assert "none" in repr(none)


def test_a_search_is_drawn() -> None:
    figure = sv.tune(STUDY, KNOBS, "fct_p99", 3).plot()
    names = [axes.get_xlabel() for axes in figure.axes]
    assert names == ["trial, and the best so far", *KNOBS]
    assert figure.axes[0].get_ylabel() == "99th percentile of completion time (µs)"


def test_refused_points_are_trials_that_do_not_fit() -> None:
    found = sv.tune(STUDY, {"switch.ecn.k-min": ["5KB", "900MB"]}, "fct_p99", 2)
    [refused] = [trial for trial in found.trials if trial.refusal]
    assert refused.values == {"switch.ecn.k-min": "900MB"}
    assert found.best.values == {"switch.ecn.k-min": "5KB"}


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"switch.ecn.k-mim": ["5KB"]}, "switch.ecn.k-mim: .*k-min"),
        ({"nic.mtu": "1000B"}, "is no knob; expected a list, or a range"),
        ({"nic.mtu": {"from": "1KB"}}, "is no knob"),
        ({"nic.mtu": {"from": "1KB", "to": 3}}, "is no range; expected values of one kind"),
        ({"nic.mtu": {"from": "2KB", "to": "1KB"}}, "the lower one first"),
        ({"nic.mtu": {"from": "a", "to": "b"}}, "neither a number, a size, a time nor a rate"),
        ({"workload.poisson.load": {"from": 0.0, "to": 0.5, "log": True}}, '"log" needs values above zero'),
    ],
)
def test_wrong_knobs_are_refused(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(sv.ScenarioError, match=message):
        sv.tune(STUDY, knobs, "fct_p99", 2)


def test_wrong_goals_are_refused() -> None:
    knobs = {"workload.poisson.load": [0.1, 0.3]}
    for goal, message in (
        (sv.Goal("speed"), "no metric 'speed'; there are "),
        (sv.Goal("fct_p99", subject_to={"drop_rate": {"below": 3}}), 'expected "at-most" or "at-least"'),
    ):
        with pytest.raises(sv.StudyError, match=message):
            sv.tune(STUDY, knobs, goal, 2)
    with pytest.raises(sv.ScenarioError, match="irm"):
        sv.tune(STUDY, knobs, sv.Goal("fct_p99", of="irm"), 2)
    with pytest.raises(sv.StudyError, match="a budget of at least 1"):
        sv.tune(STUDY, knobs, "fct_p99", 0)
