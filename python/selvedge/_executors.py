"""Where runs are done when not here: pools of processes, Slurm, Dask, Ray."""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from typing import Any, TypeVar

from ._errors import StudyError
from ._work import missing, threads_or_all

_Batch = TypeVar("_Batch")
Outcomes = Iterator[tuple[_Batch, Exception | None]]
# Seconds between looks at jobs of submitit, which are files.
_POLL = 0.2


def outcomes(executor: Any, work: Callable[[_Batch], object], batches: Sequence[_Batch]) -> Outcomes[_Batch]:
    """Do `work` with each batch on the workers of an executor; yield the batches as they end, with their exceptions.

    Work that has not begun is called off when the caller stops asking.

    Raises:
        StudyError: the executor is of no known kind, its package is missing, or it takes no work.
    """
    package = type(executor).__module__.partition(".")[0]
    if isinstance(executor, Executor):
        return _futures(executor, work, batches)
    if package == "submitit" and hasattr(executor, "batch"):
        return _submitit(executor, work, batches)
    if package == "distributed" and hasattr(executor, "get_executor"):
        return _futures(executor.get_executor(), work, batches)
    if executor == "dask":
        return _dask(work, batches)
    if executor == "ray":
        return _ray(work, batches)
    message = f"executor: {executor!r} is none; expected a concurrent.futures.Executor, an executor of submitit, "
    raise StudyError(f'{message}a Client of dask.distributed, "dask" or "ray"')


def _futures(executor: Executor, work: Callable[[_Batch], object], batches: Sequence[_Batch]) -> Outcomes[_Batch]:
    tasks, unsent = {}, []
    for batch in batches:
        try:
            tasks[executor.submit(work, batch)] = batch
        except Exception as error:
            # A pool whose worker died takes no more.
            if not tasks:
                raise StudyError(f"executor: it takes no work ({error}); make a new one") from error
            unsent.append((batch, error))
    yield from unsent
    try:
        for task in as_completed(tasks):
            yield tasks[task], _exception(task.result)
    finally:
        for task in tasks:
            task.cancel()


def _submitit(executor: Any, work: Callable[[_Batch], object], batches: Sequence[_Batch]) -> Outcomes[_Batch]:
    # Slurm queues an array itself; elsewhere every job is a process from the start.
    most = len(batches) if getattr(executor, "cluster", "") == "slurm" else threads_or_all(None)
    waiting: deque[_Batch] = deque(batches)
    jobs: list[tuple[Any, _Batch]] = []
    try:
        while waiting or jobs:
            if waiting and len(jobs) < most:
                now = [waiting.popleft() for _ in range(min(most - len(jobs), len(waiting)))]
                with executor.batch():
                    sent = [executor.submit(work, batch) for batch in now]
                jobs += zip(sent, now, strict=True)
            ended = [(job, batch) for job, batch in jobs if job.done()]
            jobs = [pair for pair in jobs if pair not in ended]
            for job, batch in ended:
                yield batch, _exception(job.result)
            if not ended:
                time.sleep(_POLL)
    finally:
        for job, _ in jobs:
            job.cancel()


def _dask(work: Callable[[_Batch], object], batches: Sequence[_Batch]) -> Outcomes[_Batch]:
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise missing(error, 'executor "dask"', "dask") from None
    return _dask_local(Client, work, batches)


def _dask_local(client: Any, work: Callable[[_Batch], object], batches: Sequence[_Batch]) -> Outcomes[_Batch]:
    with client(n_workers=threads_or_all(None), threads_per_worker=1, dashboard_address=None) as local:
        yield from _futures(local.get_executor(), work, batches)


def _ray(work: Callable[[_Batch], object], batches: Sequence[_Batch]) -> Outcomes[_Batch]:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise missing(error, 'executor "ray"', "ray") from None
    return _ray_tasks(ray, work, batches)


def _ray_tasks(ray: Any, work: Callable[[_Batch], object], batches: Sequence[_Batch]) -> Outcomes[_Batch]:
    begun_here = not ray.is_initialized()
    if begun_here:
        ray.init(num_cpus=threads_or_all(None), include_dashboard=False, log_to_driver=False, logging_level="warning")

    def do(batch: _Batch) -> None:
        work(batch)

    remote = ray.remote(num_cpus=1)(do)
    tasks = {remote.remote(batch): batch for batch in batches}
    left = list(tasks)
    try:
        while left:
            done, left = ray.wait(left)
            for task in done:
                yield tasks[task], _exception(functools.partial(ray.get, task))
    finally:
        for task in left:
            ray.cancel(task, force=True)
        if begun_here:
            ray.shutdown()


def _exception(result: Callable[[], object]) -> Exception | None:
    """Return the exception that a task ended with, if any."""
    try:
        result()
    except Exception as error:
        return error
    return None
