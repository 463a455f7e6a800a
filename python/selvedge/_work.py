"""What all long calls have in common: threads and the display of progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ._errors import StudyError

Progress = bool | Callable[[float], object]


def threads_or_all(threads: int | None) -> int:
    """Return the number of threads, or that of processors."""
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def teller(progress: Progress) -> Callable[[float], object] | None:
    """Return the function that is told the part done, 0 to 1; None if nobody wants to know."""
    if callable(progress):
        return progress
    return _show if progress else None


def _show(part: float) -> None:
    print(f"\r{100 * part:5.1f} %", end="", file=sys.stderr, flush=True)


def over(progress: Progress) -> None:
    """Clear the line of progress."""
    if progress is True:
        print("\r        \r", end="", file=sys.stderr, flush=True)


def missing(error: ModuleNotFoundError, what: str, extra: str) -> StudyError:
    """Return the exception for `what`, which needs a package that is not installed but comes with an extra."""
    return StudyError(f"{what}: the package {error.name!r} is not installed; pip install 'selvedge[{extra}]'")
