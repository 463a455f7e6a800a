"""Studies: a scenario, checked, run, and asked about."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import _native
from ._errors import ScenarioError, StudyError
from ._generated import StudyKeys
from ._part import document, toml
from ._result import Result
from ._work import Progress, over, teller, threads_or_all


class Study(StudyKeys):
    """A scenario: one network, its traffic, and the series that are compared on it.

    Takes the keys of a scenario file as arguments (`selvedge.key_help()` lists them). The scenario is checked as a
    whole here, with the messages that a file would get.

    Raises:
        ScenarioError: a key or a value is wrong; the message names it, and what would be right.
    """

    _file: Path | None = None
    _sets: tuple[str, ...] = ()

    def _check(self) -> None:
        self.plan()

    @classmethod
    def _of_file(cls, path: Path) -> Study:
        study = cls.__new__(cls)
        study._values = {}
        study._file = path
        study.plan()
        return study

    def set(self, values: Mapping[str, Any]) -> Study:
        """Return a copy with other values, by dotted keys: `study.set({"workload.poisson.load": 0.5})`.

        Raises:
            ScenarioError: a key or a value is wrong.
        """
        study = type(self).__new__(type(self))
        study._values, study._file = dict(self._values), self._file
        study._sets = (*self._sets, *(f"{key}={toml(value)}" for key, value in values.items()))
        study.plan()
        return study

    def text(self) -> str:
        """Return the scenario as written, as TOML."""
        if self._file is not None:
            return self._file.read_text(encoding="utf-8")
        return document({"title": "Study", **self.to_dict()})

    def resolved(self) -> str:
        """Return the scenario with every "auto" resolved, as TOML that gives the same results."""
        return self.plan().toml()

    def plan(
        self,
        *,
        series: Sequence[str] | None = None,
        seeds: int | Sequence[int] | None = None,
        sweeps: Sequence[str] = (),
    ) -> _native.Plan:
        """Return the checked scenario.

        Raises:
            ScenarioError: a key or a value is wrong.
        """
        # Values that were set are overwritten by those of a sweep.
        swept = {sweep.partition("=")[0] for sweep in sweeps}
        sets = {text: text.partition("=")[0] for text in self._sets}
        for key in sets.values():
            if any(one.startswith(f"{key}.") for one in swept):
                raise ScenarioError(f"{key}: set as a whole and swept in part; set its keys one by one")
        source: dict[str, Any] = {"path": self._file} if self._file else {"text": self.text(), "name": "Study"}
        return _native.Plan(
            **source,
            sets=[text for text, key in sets.items() if key not in swept],
            series=None if series is None else ",".join(series),
            seeds=list(range(1, seeds + 1)) if isinstance(seeds, int) else None if seeds is None else list(seeds),
            sweeps=list(sweeps),
        )

    def run(
        self,
        out: str | PathLike[str] | None = None,
        *,
        series: Sequence[str] | None = None,
        seeds: int | Sequence[int] | None = None,
        threads: int | None = None,
        progress: Progress = False,
        force: bool = False,
        executor: Any = None,
    ) -> Result:
        """Run all series and seeds, on all processors, and return the results.

        Args:
            out: folder for the results, which must not hold any; None for a temporary one, gone with the last object
                that refers to it.
            series: names of series, or schemes, in place of those of the scenario.
            seeds: seeds, or how many, in place of those of the scenario.
            threads: number of threads; None for one on every processor.
            progress: True to show the part done, or a function that is called with it.
            force: whether to replace results in `out`.
            executor: where to run, as in `selvedge.sweep`.

        Raises:
            StudyError: the study cannot run: results exist already, or memory would not suffice.
            KeyboardInterrupt: Ctrl-C; `selvedge.resume` continues from the complete runs.
        """
        plan = self.plan(series=series, seeds=seeds)
        return run_plan(plan, out, threads=threads, progress=progress, force=force, executor=executor)

    def topology(self) -> Any:
        """Return facts about the network: hosts, links, round-trip times, bandwidth-delay products."""
        return _facts(self.plan().topology())

    def workload(self) -> Any:
        """Return facts about the traffic: offered load, sizes, first flows."""
        return _facts(self.plan().workload())

    def footprint(self, *, cache: int = 4_000_000, queue_pairs: int = 2_000, work_requests: int = 20_000) -> Any:
        """Return what the loss recovery of each series keeps on a NIC with a cache of so many bytes."""
        return _facts(self.plan().footprint(cache, queue_pairs, work_requests))

    def estimate(self, threads: int | None = None) -> Any:
        """Return what a run will take: packet-hops and memory."""
        return _facts(self.plan().estimate(threads_or_all(threads)))

    def _repr_html_(self) -> str:
        """Show the scenario in a notebook."""
        import html

        plan = self.plan()
        lines = [plan.title, plan.summary, ", ".join(plan.series)]
        return "<br>".join(html.escape(line) for line in lines)


def run_plan(
    plan: _native.Plan,
    out: str | PathLike[str] | None,
    *,
    threads: int | None,
    progress: Progress,
    force: bool,
    executor: Any,
) -> Result:
    """Run a plan into a folder, which is a temporary one without `out`."""
    from ._sweep import run_elsewhere

    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="selvedge-")
        out = Path(temporary.name) / "results"
    folder = plan.create(Path(out), force)
    try:
        if executor is not None:
            run_elsewhere(folder, executor, progress)
        done = folder.run(threads_or_all(threads), teller(progress))
    except StudyError:
        # Nothing is left of a study that could not begin.
        if len(folder.left()) == plan.runs:
            shutil.rmtree(folder.partial, ignore_errors=True)
        raise
    finally:
        over(progress)
    return Result(Path(done), temporary)


def load(path: str | PathLike[str]) -> Study:
    """Return the study in a scenario file, or in a folder with a scenario.toml.

    Raises:
        ScenarioError: there is no such file, or something in it is wrong.
    """
    return Study._of_file(Path(path))


def resume(
    path: str | PathLike[str], *, threads: int | None = None, progress: Progress = False
) -> Result:
    """Continue an interrupted study from its complete runs, and return the results.

    Raises:
        StudyError: there are no unfinished results, or they are of another version.
    """
    try:
        return Result(Path(_native.Folder.resume(Path(path)).run(threads_or_all(threads), teller(progress))))
    finally:
        over(progress)


def check(
    path: str | PathLike[str], *, smoke: bool = False, threads: int | None = None, progress: Progress = False
) -> list[dict[str, Any]]:
    """Run a figure, or all in a folder, and return each with the verdicts on its paper's claims.

    Args:
        path: folder with a scenario.toml and an expect.toml, or with such folders.
        smoke: whether to run the short form, which tests that the figure runs.
        threads: number of threads; None for one on every processor.
        progress: True to show the part done, or a function that is called with it.
    """
    try:
        checked = _native.check([Path(path)], smoke, threads_or_all(threads), teller(progress))
    finally:
        over(progress)
    figures: list[dict[str, Any]] = json.loads(checked)
    return figures


def key_help(path: str = "") -> str:
    """Return what may stand at a dotted key of a scenario: `key_help("workload.incast")`.

    Raises:
        ScenarioError: nothing may stand there.
    """
    return _native.key_help(path)


def _facts(text: str) -> Any:
    """Return a table of JSON as an object with attributes."""

    def attributes(table: dict[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(**{key.replace("-", "_"): value for key, value in table.items()})

    return json.loads(text, object_hook=attributes)
