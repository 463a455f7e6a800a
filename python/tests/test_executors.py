"""Sweeps elsewhere: pools of processes, submitit, Dask, Ray; and what goes wrong there."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import selvedge as sv

STUDY = sv.Study(
    topology=sv.FatTree(k=4, link=sv.Link("40Gbps", "2us")),
    workload=sv.Poisson(load=0.3, sizes={"fixed": "40KB"}),
    series=["irn"],
    stop=sv.Stop(flows=400),
    seeds=2,
)
GRID = {"workload.poisson.load": [0.1, 0.2, 0.3, 0.4]}


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Any]]:
    return sv.sweep(STUDY, GRID).grid


def descendants(of: int) -> Iterator[tuple[int, str]]:
    """Yield the processes below a process, with their command lines."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == of:
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield from descendants(int(entry.name))


@contextlib.contextmanager
def killing(out: Path, pattern: str, after: int = 1) -> Iterator[list[int]]:
    """Kill a process below this one whose command line has `pattern`, when so many runs of `out` are complete."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.01):
            if len(list(out.with_name(f"{out.name}.partial").glob("parts/*.json"))) >= after:
                found = [pid for pid, line in descendants(os.getpid()) if pattern in line]
                if found:
                    os.kill(found[-1], signal.SIGKILL)
                    killed.append(found[-1])
                    return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_a_killed_process_of_a_pool_costs_its_runs_alone(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    out = tmp_path / "grid"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor, killing(out, "spawn_main") as killed:
        with pytest.warns(UserWarning, match="were lost by their workers and are done here"):
            result = sv.sweep(STUDY.set({"stop.flows": 2_000}), GRID, out, executor=executor)
        with pytest.raises(sv.StudyError, match="it takes no work"):
            sv.sweep(STUDY, GRID, tmp_path / "again", executor=executor)
    assert killed
    assert len(result.grid) == len(expected)
    assert list(tmp_path.iterdir()) == [out]


def test_submitit(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    submitit = pytest.importorskip("submitit", reason="submitit is not installed: its executor")
    executor = submitit.AutoExecutor(folder=tmp_path / "log", cluster="local")
    executor.update_parameters(timeout_min=5)
    out, told = tmp_path / "grid", list[float]()
    lost = pytest.warns(UserWarning, match="lost by their workers")
    with killing(out, "submitit.core._submit", after=0) as killed, lost:
        result = sv.sweep(STUDY, GRID, out, executor=executor, progress=told.append)
    assert killed
    assert result.grid == expected
    assert told[:8] == pytest.approx([at / 8 for at in range(1, 9)])


def test_a_worker_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submitit = pytest.importorskip("submitit", reason="submitit is not installed: a worker without the package")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if subprocess.run([sys.executable, "-c", "import selvedge"], capture_output=True, check=False).returncode == 0:
        pytest.skip("selvedge is installed: a worker without the package")
    executor = submitit.AutoExecutor(folder=tmp_path / "log", cluster="local")
    out = tmp_path / "grid"
    with pytest.raises(sv.StudyError, match=f"a worker has no package selvedge; install version {sv.__version__}"):
        sv.sweep(STUDY, GRID, out, executor=executor)
    assert not out.with_name("grid.partial").exists()


def test_dask(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: Dask")
    out = tmp_path / "grid"
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = [worker["pid"] for worker in client.run(lambda: {"pid": os.getpid()}).values()]
        assert len(workers) == 2
        with killing(out, "spawn_main") as killed:
            result = sv.sweep(STUDY, GRID, out, executor=client)
    assert killed
    assert result.grid == expected


def test_ray(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: its executor")
    out = tmp_path / "grid"
    with killing(out, "ray::do") as killed:
        result = sv.sweep(STUDY, GRID, out, executor="ray")
    assert killed
    assert not ray.is_initialized()
    assert result.grid == expected


@pytest.mark.parametrize("executor", [3, "slurm", object()])
def test_a_wrong_executor_is_refused(tmp_path: Path, executor: object) -> None:
    with pytest.raises(sv.StudyError, match=r'is none; expected a concurrent.futures.Executor, .* "dask" or "ray"'):
        sv.sweep(STUDY, GRID, tmp_path / "grid", executor=executor)
    assert not list(tmp_path.iterdir())


def test_two_sweeps_do_not_share_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "grid"
    first = STUDY.plan().create(out, False)
    with pytest.raises(sv.StudyError, match="in use by another process; wait until that ends"):
        sv.sweep(STUDY, GRID, out)
    del first
    with pytest.raises(sv.StudyError, match=r"continue them with selvedge.resume: .*, or give force=True"):
        sv.sweep(STUDY, GRID, out)
    assert len(sv.sweep(STUDY, GRID, out, force=True).grid) == 4


def test_unfinished_results_of_another_version_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "grid"
    STUDY.plan().create(out, False)
    marker = tmp_path / "grid.partial" / "unfinished.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "version": "0.0.1"}))
    with pytest.raises(sv.StudyError, match=r"begun by version 0\.0\.1, this is .*: begin anew"):
        sv.resume(out)
    # A worker of another version finds the same difference.
    from selvedge._sweep import work

    with pytest.raises(sv.StudyError, match="begun by version"):
        work(str(marker.parent), [0])


def test_a_folder_that_workers_do_not_see(tmp_path: Path) -> None:
    class Elsewhere(ProcessPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
            (partial,) = fn.args
            return super().submit(fn.func, f"/none{partial}", *args, **kwargs)

    with Elsewhere(1) as executor, pytest.raises(sv.StudyError, match="cannot use the results folder, which all must"):
        sv.sweep(STUDY, GRID, tmp_path / "grid", executor=executor)
    assert not list(tmp_path.iterdir())


def test_time_is_not_lost_waiting() -> None:
    begin = time.monotonic()
    with pytest.raises(sv.ScenarioError, match="poison"):
        sv.sweep(STUDY, {"workload.poison.load": [0.1]}, executor="ray")
    assert time.monotonic() - begin < 5
