"""Sessions: co-simulation and learning, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import _native
from ._errors import StudyError
from ._study import Study


@dataclass(frozen=True)
class Flow:
    """A flow of a session that is complete. Times are in picoseconds."""

    id: int
    source: int
    destination: int
    size: int
    start_ps: int
    finish_ps: int
    ideal_ps: int

    @property
    def fct_ps(self) -> int:
        """Completion time."""
        return self.finish_ps - self.start_ps

    @property
    def slowdown(self) -> float:
        """Completion time over that in an empty network."""
        return self.fct_ps / self.ideal_ps if self.ideal_ps else float("nan")


class Session:
    """A simulation that goes on when it is told to: inject flows, advance the time, drain what has completed.

    Equal calls give equal results, bit by bit.
    """

    def __init__(
        self, study: Study, *, series: str | None = None, seed: int | None = None, background: bool = False
    ) -> None:
        """Open a session on the network of a study.

        Args:
            study: the study, whose traffic runs only with `background`.
            series: name of the series, or a scheme; None for the first.
            seed: seed; None for the first.
            background: whether the traffic of the study runs beside injected flows.

        Raises:
            ScenarioError: there is no such series.
        """
        plan = study.plan(series=None if series is None else [series], seeds=None if seed is None else [seed])
        self._native: _native.Session | None = _native.Session(plan, background)
        self.hosts = self._native.hosts
        self._numbers = {name: number for number, name in enumerate(self.hosts)}

    @property
    def now_ps(self) -> int:
        """Time before which everything has happened."""
        return self._open().now_ps

    def inject(self, source: int | str, destination: int | str, size: int, start_ps: int | None = None) -> int:
        """Inject a flow of `size` bytes that begins at `start_ps`, or now; return its number.

        Raises:
            StudyError: a host does not exist, or a value is out of range.
        """
        session = self._open()
        start = session.now_ps if start_ps is None else start_ps
        number = session.inject([(self._host(source), self._host(destination), size, start)])
        assert number is not None
        return number

    def inject_all(self, flows: Sequence[tuple[int, int, int, int]]) -> int | None:
        """Inject flows, each (source, destination, bytes, start in picoseconds), all or none; return the first number.

        Raises:
            StudyError: one of them is wrong; the message has its place in the list.
        """
        return self._open().inject(list(flows))

    def advance(self, to_ps: int, *, until_completion: bool = False) -> int:
        """Simulate everything before `to_ps`, or until some flow completes; return the new time.

        Raises:
            StudyError: the time has passed.
        """
        return self._open().advance(to_ps, until_completion)

    def drain(self) -> list[Flow]:
        """Return the flows that have completed since the last call, in order of completion."""
        return [Flow(*row) for row in self._open().drain()]

    @property
    def under_way(self) -> int:
        """Number of flows that have begun and are not complete."""
        started, finished = self._open().flows()
        return started - finished

    def close(self) -> None:
        """End the session and free its memory."""
        self._native = None

    def __enter__(self) -> Session:
        """Return the session, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the session."""
        self.close()

    def _open(self) -> _native.Session:
        if self._native is None:
            raise StudyError("the session is closed; open another one")
        return self._native

    def _host(self, host: int | str) -> int:
        if isinstance(host, int):
            return host
        try:
            return self._numbers[host]
        except KeyError:
            raise StudyError(f"no host is called {host!r}; there are {self.hosts[0]} to {self.hosts[-1]}") from None
