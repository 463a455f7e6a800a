"""Sweeps: a study at every point of a grid, here or on the workers of an executor."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, as_completed
from os import PathLike
from pathlib import Path
from typing import Any

from . import _native
from ._part import toml
from ._result import Result
from ._study import Study, run_plan
from ._work import Progress, teller

# Number of tasks into which runs are divided at most: schedulers of clusters dislike thousands of short ones.
_MOST_TASKS = 400


def sweep(
    study: Study,
    grid: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    out: str | PathLike[str] | None = None,
    *,
    series: Sequence[str] | None = None,
    seeds: int | Sequence[int] | None = None,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: Progress = False,
    force: bool = False,
) -> Result:
    """Run a study at every point of a grid and return the results as one: `Result.grid` has a row for each.

    The same points in one process, on many, or continued after an interruption give the same results, bit by bit.

    Args:
        study: the study; its own `sweep`, if it has one, is crossed with `grid`.
        grid: by dotted key, a list of values or a range, as {"from": 0.1, "to": 0.9, "step": 0.2}.
        out: folder for the results; None for a temporary one. Workers on other machines must see it.
        series: names of series, or schemes, in place of those of the study.
        seeds: seeds, or how many, in place of those of the study.
        executor: any `concurrent.futures.Executor`. Runs that a worker loses are done here in the end.
        threads: number of threads here; None for one on every processor.
        progress: True to show the part done, or a function that is called with it.
        force: whether to replace results in `out`.

    Raises:
        ScenarioError: a key or a value of the grid is wrong.
        StudyError: the study cannot run: results exist already, or memory would not suffice.
    """
    sweeps = [f"{key}={toml(values)}" for key, values in grid.items()]
    plan = study.plan(series=series, seeds=seeds, sweeps=sweeps)
    return run_plan(plan, out, threads=threads, progress=progress, force=force, executor=executor)


def run_elsewhere(folder: _native.Folder, executor: Executor, progress: Progress) -> None:
    """Run what is left of a folder on the workers of an executor; what they lose stays left."""
    left, tell = folder.left(), teller(progress)
    size = -(-len(left) // _MOST_TASKS) or 1
    partial = str(Path(folder.partial).resolve())
    batches = [left[at : at + size] for at in range(0, len(left), size)]
    tasks = {executor.submit(work, partial, batch): batch for batch in batches}
    done, lost = 0, []
    for task in as_completed(tasks):
        try:
            task.result()
        except Exception as error:
            lost.append((tasks[task], error))
        done += len(tasks[task])
        if tell is not None:
            tell(done / len(left))
    if lost:
        count = sum(len(batch) for batch, _ in lost)
        warnings.warn(f"{count} runs were lost by their workers and are done here: {lost[0][1]!r}", stacklevel=4)


def work(partial: str, numbers: list[int]) -> int:
    """Run these runs of unfinished results, on one thread; return how many are complete. Called in workers."""
    return _native.run_points(partial, numbers, 1)
