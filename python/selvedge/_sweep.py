"""Sweeps: a study at every point of a grid, here or on the workers of an executor."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Generator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast

from . import _native
from ._errors import SelvedgeError, StudyError
from ._executors import outcomes
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
    executor: Any = None,
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
        executor: any `concurrent.futures.Executor`, an executor of submitit (Slurm), a `Client` of dask.distributed,
            "dask" (workers on this machine), or "ray" (the cluster that `ray.init` joined, or this machine). Runs
            that a worker loses are done here in the end.
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


def run_elsewhere(folder: _native.Folder, executor: Any, progress: Progress) -> None:
    """Run what is left of a folder on the workers of an executor; what they lose stays left.

    Raises:
        StudyError: the executor is of no known kind, or workers cannot do any of the work.
    """
    left, tell = folder.left(), teller(progress)
    size = -(-len(left) // _MOST_TASKS) or 1
    partial = Path(folder.partial).resolve()
    batches = [left[at : at + size] for at in range(0, len(left), size)]
    done, lost, last = 0, 0, None
    ended = outcomes(executor, functools.partial(work, str(partial)), batches)
    with contextlib.closing(cast("Generator[Any, None, None]", ended)):
        for batch, error in ended:
            if error is not None:
                refusal = _refusal(error, partial)
                if refusal is not None:
                    raise refusal from error
                lost, last = lost + len(batch), error
            done += len(batch)
            if tell is not None:
                tell(done / len(left))
    if lost:
        message = f"{lost} runs were lost by their workers and are done here: {str(last).splitlines()[0]}"
        warnings.warn(message, stacklevel=4)


def _refusal(error: Exception, partial: Path) -> StudyError | None:
    """Return what to tell the caller if a task failed in a way in which all of them do."""
    if f"No module named '{__package__}" in f"{error!r} {error} {error.__cause__!r}":
        from . import __version__

        return StudyError(f"a worker has no package selvedge; install version {__version__} there, as here")
    if isinstance(error, SelvedgeError):
        if not partial.exists() or str(partial) in str(error):
            return StudyError(f"a worker cannot use the results folder, which all must see: {error}")
        return StudyError(f"a worker refuses its runs: {error}")
    return None


def work(partial: str, numbers: list[int]) -> int:
    """Run these runs of unfinished results, on one thread; return how many are complete. Called in workers."""
    return _native.run_points(partial, numbers, 1)
