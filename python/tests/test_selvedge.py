"""Tests of the package from outside, on studies of a second."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pyarrow
import pytest

import selvedge as sv

SMALL = """title = "small"
seeds = 2
stop = { flows = 50 }
series = ["irn", "irn+pfc"]
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.poisson]
load = 0.3
sizes = { fixed = "4KB" }
"""


def small(**keys: object) -> sv.Study:
    values = {
        "topology": sv.FatTree(k=4, link=sv.Link("40Gbps", "2us")),
        "workload": sv.Poisson(load=0.3, sizes={"fixed": "4KB"}),
        "series": ["irn", "irn+pfc"],
        "stop": sv.Stop(flows=50),
        "seeds": 2,
        **keys,
    }
    return sv.Study(**values)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def result() -> sv.Result:
    return small().run()


def test_objects_and_files_are_the_same_study(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    loaded, built = sv.load(file).run(), small(title="small").run()
    assert loaded.summary["run"]["fingerprint"] == built.summary["run"]["fingerprint"]
    assert sv.load(file).plan().toml() == small(title="small").plan().toml()


def test_results_are_those_of_the_command_line_in_form(result: sv.Result) -> None:
    assert result.series == ["irn", "irn+pfc"]
    assert result.seeds == [1, 2]
    assert result.metric("irn", "slowdown_mean") == pytest.approx(1.0, abs=0.2)
    assert {path.name for path in result.folder.iterdir()} >= {"summary.json", "report.html", "flows.parquet"}
    assert sv.load_results(result.folder).verdict == result.verdict
    assert "small" not in repr(result)
    assert "<table>" in result._repr_html_()


def test_tables_are_arrow_streams(result: sv.Result) -> None:
    flows = result.flows
    assert len(flows) == 200
    table = flows.to_arrow()
    assert isinstance(table, pyarrow.Table)
    assert table.num_rows == 200
    assert table.column_names == flows.columns
    assert flows.column("slowdown") == pytest.approx(table["slowdown"].to_pylist())
    assert set(flows.column("series")) == {"irn", "irn+pfc"}
    with pytest.raises(sv.StudyError, match='no column "colour"; there are series, '):
        flows.column("colour")


def test_series_are_compared_pair_by_pair(result: sv.Result) -> None:
    compared = result.compare("irn+pfc", "irn", "fct_p99")
    assert compared.metric == "fct_p99_us"
    assert compared.ratio == pytest.approx(1.0, abs=0.2)
    assert compared.verdict in {"open", "the same", "larger", "smaller"}
    assert "irn+pfc / irn" in str(compared)
    with pytest.raises(sv.StudyError, match="no series 'tcp'; there are irn, irn\\+pfc"):
        result.compare("tcp", "irn", "fct_p99")
    with pytest.raises(sv.StudyError, match="no metric 'speed'; there are "):
        result.compare("irn", "irn+pfc", "speed")


def test_charts_are_returned(result: sv.Result) -> None:
    assert len(result.plot.slowdown().axes[0].lines) == 2
    assert len(result.plot.metric("fct_mean_us").axes[0].patches) == 2
    by_size = result.plot.by_size(quantile=0.5).axes[0]
    assert [list(line.get_xdata()) for line in by_size.lines] == [[4000.0]] * 2
    assert result.plot.slowdown()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    with pytest.raises(sv.StudyError, match="not a sweep"):
        result.plot.sweep("fct_mean")


def test_sweeps_are_drawn_with_units() -> None:
    keys = {"workload.poisson.load": [0.1, 0.3], "nic.mtu": ["1000B", "2KB", "4KB"]}
    swept = sv.sweep(small(), keys, seeds=1)
    panels = swept.plot.sweep("fct_mean").axes
    assert [axes.get_title() for axes in panels] == ["load = 0.1", "load = 0.3"]
    assert list(panels[0].lines[0].get_xdata()) == [1000.0, 2000.0, 4000.0]
    assert panels[0].get_ylabel() == "mean completion time (µs)"
    with pytest.raises(sv.StudyError, match=r"'k' is not swept; there are workload\.poisson\.load, nic\.mtu"):
        swept.plot.sweep("fct_mean", x="k")


def test_a_missing_package_is_named_with_its_extra(result: sv.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "polars", "matplotlib.figure", "optuna", "ray", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "selvedge._plot", raising=False)
    monkeypatch.delattr(sv, "_plot", raising=False)
    for use, extra in (
        (result.flows.to_arrow, "arrow"),
        (result.flows.to_polars, "polars"),
        (lambda: result.plot, "plot"),
        (lambda: sv.tune(small(), {"nic.mtu": ["1KB"]}, "fct_p99", 1), "tune"),
        (lambda: small().run(executor="ray"), "ray"),
        (lambda: small().run(executor="dask"), "dask"),
    ):
        with pytest.raises(sv.StudyError, match=rf"is not installed; pip install 'selvedge\[{extra}\]'"):
            use()


def test_wrong_keys_fail_where_they_are_written_as_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(SMALL.replace("k = 4", "k = 4\nlinks = 3"))
    with pytest.raises(sv.ScenarioError) as in_file:
        sv.load(file)
    with pytest.raises(sv.ScenarioError) as in_code:
        sv.FatTree(k=4, link=sv.Link("40Gbps", "2us"), links=3)  # type: ignore[call-arg]
    message = str(in_code.value)
    assert message.startswith("topology.fat-tree.links: ")
    assert message.removeprefix("topology.fat-tree.links: ") in str(in_file.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"topology": sv.FatTree(k=5, link=sv.Link("40Gbps", "2us"))}, "k"),
        ({"workload": sv.Poisson(load=1.5, sizes={"fixed": "4KB"})}, "load"),
        ({"workload": sv.Poisson(load=0.5, sizes="no-such")}, "no-such"),
        ({"workload": [3]}, "no kind of traffic"),
        ({"series": ["irm"]}, "irm"),
        ({"seeds": 0}, "seed"),
        ({"description": object()}, "of type object"),
    ],
)
def test_wrong_values_have_one_clear_message(keys: dict[str, object], message: str) -> None:
    with pytest.raises(sv.ScenarioError, match=message):
        small(**keys)


def test_values_can_be_set_later() -> None:
    assert 'load = 0.1' in small().set({"workload.poisson.load": 0.1}).resolved()
    with pytest.raises(sv.ScenarioError, match="poisson"):
        small().set({"workload.poison.load": 0.1})


def test_studies_answer_questions() -> None:
    study = small()
    assert study.topology().hosts == 16
    assert study.footprint().schemes[0].name == "irn"
    assert study.workload() is not None
    assert study.estimate() is not None
    assert "load" in sv.key_help("workload.poisson")
    with pytest.raises(sv.ScenarioError):
        sv.key_help("workload.poison")


def test_flows_are_explained(result: sv.Result) -> None:
    [flow] = result.explain(3, series="irn", seed=1)
    assert json.dumps(flow)
    assert len(result.explain(worst=2)) == 2
    with pytest.raises(sv.StudyError, match="no flow 999"):
        result.explain(999)


GRID = {"workload.poisson.load": [0.1, 0.3], "nic.mtu": {"from": "1000B", "to": "2000B", "count": 2}}


def test_a_sweep_is_one_result(tmp_path: Path) -> None:
    here = sv.sweep(small(), GRID)
    assert [row["workload.poisson.load"] for row in here.grid] == [0.1] * 4 + [0.3] * 4
    assert {row["nic.mtu"] for row in here.grid} == {"1000B", "2000B"}
    with ProcessPoolExecutor(2) as executor:
        elsewhere = sv.sweep(small(), GRID, tmp_path / "grid", executor=executor)
    assert elsewhere.summary["run"]["fingerprint"] == here.summary["run"]["fingerprint"]
    assert elsewhere.grid == here.grid
    with pytest.raises(sv.StudyError, match="are here already; choose another folder, or give force=True"):
        sv.sweep(small(), GRID, tmp_path / "grid")
    with pytest.raises(sv.ScenarioError, match="one of step, factor, count"):
        sv.sweep(small(), {"nic.mtu": {"from": "1000B", "to": "2000B"}})


def test_a_sweep_overwrites_what_was_set() -> None:
    study = small().set({"workload.poisson.load": 0.2, "nic.mtu": "1000B"})
    rows = sv.sweep(study, {"workload.poisson.load": [0.1, 0.3]}).grid
    assert rows[0]["fct_mean_us"] != rows[2]["fct_mean_us"]
    with pytest.raises(sv.ScenarioError, match="set as a whole and swept in part"):
        sv.sweep(small().set({"nic": {"mtu": "1000B"}}), {"nic.mtu": ["1000B"]})


def test_a_study_has_a_sweep_of_its_own() -> None:
    loads = "workload.poisson.load"
    sweep = sv.Sweep(cross={loads: [0.1, 0.2, 0.3]}, skip=[{loads: {"at-least": 0.3}}])
    assert [row[loads] for row in small(sweep=sweep).run().grid] == [0.1, 0.1, 0.2, 0.2]
    with pytest.raises(sv.ScenarioError, match="is not swept"):
        small(sweep=sv.Sweep(cross={loads: [0.1]}, skip=[{"nic.mtu": "1000B"}]))


class Losing(Executor):
    """Loses every second task."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.count += 1
        future: Future[object] = Future()
        if self.count % 2:
            future.set_exception(RuntimeError("the worker is gone"))
        else:
            future.set_result(pickle.loads(pickle.dumps(fn))(*args, **kwargs))
        return future


def test_a_lost_worker_costs_its_points_alone() -> None:
    with pytest.warns(UserWarning, match=r"8 runs were lost by their workers.*is gone"):
        result = sv.sweep(small(), GRID, executor=Losing())
    assert result.grid == sv.sweep(small(), GRID).grid


def test_progress_is_told_and_the_lock_is_free() -> None:
    seen: list[float] = []
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.01):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    small(stop=sv.Stop(flows=20_000)).run(progress=seen.append, threads=1)
    stop.set()
    thread.join()
    assert seen == sorted(seen)
    assert len(ticks) > 3
    with ThreadPoolExecutor(1) as executor:
        assert small().run(executor=executor).seeds == [1, 2]


def test_an_exception_of_progress_stops_the_run(tmp_path: Path) -> None:
    def stop(part: float) -> None:
        raise ValueError(part)

    out = tmp_path / "stopped"
    with pytest.raises(ValueError, match="0"):
        small(stop=sv.Stop(flows=200_000)).run(out, progress=stop)
    assert not out.exists()
    with pytest.raises(sv.StudyError, match="resume"):
        sv.load_results(out)


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_ctrl_c_stops_and_a_study_continues(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL.replace("flows = 50", "flows = 5_000").replace("seeds = 2", "seeds = 12"))
    code = "import sys, selvedge as sv; print('go', flush=True); sv.load(sys.argv[1]).run(sys.argv[2], threads=2)"
    out = tmp_path / "out"
    command = [sys.executable, "-c", code, str(file), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "go\n"
        while child.poll() is None and len(list((tmp_path / "out.partial").glob("parts/*.json"))) < 1:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    assert not out.exists()
    assert sv.resume(tmp_path / "out.partial").seeds == list(range(1, 13))


def test_sessions_inject_advance_and_drain() -> None:
    def talk() -> list[sv.Flow]:
        with sv.Session(small(), series="irn") as session:
            assert session.hosts[:2] == ["h0", "h1"]
            assert session.inject("h0", "h5", 10_000) == 0
            assert session.inject(1, 5, 1_000_000, 5_000_000) == 1
            now = session.advance(10**10, until_completion=True)
            assert [flow.id for flow in session.drain()] == [0]
            assert session.inject_all([(2, 3, 1, now), (3, 2, 1, now + 1)]) == 2
            assert session.under_way >= 1
            session.advance(10**10)
            return session.drain()

    flows = talk()
    assert sorted(flow.id for flow in flows) == [1, 2, 3]
    assert flows == talk()
    assert all(flow.slowdown >= 1 for flow in flows)


def test_sessions_refuse_what_is_impossible() -> None:
    session = sv.Session(small())
    with pytest.raises(sv.StudyError, match="no host is called 'x'"):
        session.inject("x", 1, 1)
    with pytest.raises(sv.StudyError, match="flow 1: destination: host 99 does not exist"):
        session.inject_all([(0, 1, 1, 0), (0, 99, 1, 0)])
    session.advance(500)
    with pytest.raises(sv.StudyError, match="500 ps"):
        session.advance(499)
    assert session.under_way == 0
    session.close()
    with pytest.raises(sv.StudyError, match="closed"):
        session.drain()


def test_a_figure_is_checked(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SMALL)
    claim = "[[expect]]\nsay = 'it works'\nmetric = 'slowdown_mean'\nof = 'irn'\nvalue = { at-least = 1 }\n"
    (tmp_path / "expect.toml").write_text(claim)
    [figure] = sv.check(tmp_path)
    assert len(figure["claims"]) == 1
    with pytest.raises(sv.StudyError):
        sv.check(tmp_path / "none")


@pytest.mark.parametrize("content", ["{}", "[", '{"title": 3}'])
def test_results_of_another_version_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "summary.json").write_text(content)
    with pytest.raises(sv.StudyError, match="run the study again"):
        sv.load_results(tmp_path)


def test_folders_without_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sv.StudyError, match="no such folder"):
        sv.load_results(tmp_path / "none")
    with pytest.raises(sv.StudyError, match="holds no results"):
        sv.load_results(tmp_path)


def test_import_is_quick() -> None:
    # Time of the processor: other programs run, too.
    code = "import time; begin = time.process_time(); import selvedge; print(time.process_time() - begin)"
    seconds = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))
    assert seconds < 0.3, "150 ms where nothing else runs"
