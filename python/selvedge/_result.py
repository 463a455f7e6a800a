"""Results: summary, tables for Arrow, comparisons, charts."""

from __future__ import annotations

import csv
import html
import json
import tempfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import _native
from ._errors import StudyError
from ._work import Progress, missing, over, teller, threads_or_all

if TYPE_CHECKING:
    from ._plot import Plots


@dataclass(frozen=True)
class Comparison:
    """The ratio of one series to another in a metric, paired by seed."""

    of: str
    to: str
    metric: str
    ratio: float | None
    """Mean over the seeds; None where a series lacks the metric."""
    interval: tuple[float, float] | None
    """Ends of the 95 % interval; None with one seed."""
    verdict: str
    """"larger", "smaller", "the same" (within 5 %), or "open"."""

    def __str__(self) -> str:
        """Return the comparison in one line."""
        ratio = "unknown" if self.ratio is None else f"{self.ratio:.3g}"
        interval = "" if self.interval is None else f" (95 % CI {self.interval[0]:.3g} to {self.interval[1]:.3g})"
        return f"{self.metric} of {self.of} / {self.to}: {ratio}{interval}, {self.verdict}"


class Table:
    """A table on disk in Arrow's form: pyarrow, pandas, Polars and DuckDB read it through `__arrow_c_stream__`."""

    def __init__(self, path: Path, keep: object = None) -> None:
        """Open the Parquet file at `path`; `keep` lives as long as the table."""
        self._native = _native.Table(path)
        self._keep = keep
        self.path = path

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._native.columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._native.rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a stream of Arrow's C data interface."""
        return self._native.__arrow_c_stream__(requested_schema)

    def column(self, name: str) -> list[Any]:
        """Return a column as a list; numbers that are absent are NaN. Needs no other library.

        Raises:
            StudyError: there is no such column.
        """
        return cast("list[Any]", self._native.column(name))

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table (extra `selvedge[arrow]`)."""
        try:
            import pyarrow
        except ModuleNotFoundError as error:
            raise missing(error, "Arrow tables", "arrow") from None
        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame (extra `selvedge[pandas]`)."""
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as error:
            raise missing(error, "data frames of pandas", "pandas") from None

    def to_polars(self) -> Any:
        """Return a polars.DataFrame (extra `selvedge[polars]`)."""
        try:
            import polars
        except ModuleNotFoundError as error:
            raise missing(error, "data frames of Polars", "polars") from None
        return polars.DataFrame(self)

    def __repr__(self) -> str:
        """Return the size and the columns."""
        return f"<{self.path.name}: {len(self)} rows; {', '.join(self.columns)}>"


class Result:
    """The results of a study, in a folder."""

    def __init__(self, folder: str | PathLike[str], temporary: tempfile.TemporaryDirectory[str] | None = None) -> None:
        """Open the results in `folder`.

        Raises:
            StudyError: there are none, or they are not complete.
        """
        self.folder = Path(folder)
        # Removed with the last object that refers to it.
        self._temporary = temporary
        path = self.folder / "summary.json"
        try:
            self._text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise StudyError(f"{self.folder}: {self._why_none(error)}") from None
        try:
            self.summary: dict[str, Any] = json.loads(self._text)
            self.title, self.seeds = str(self.summary["title"]), list(self.summary["seeds"])
            self._series = {str(series["name"]): series for series in self.summary["series"]}
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path}: not a summary as this version writes it ({error}); run the study again"
            raise StudyError(message) from None

    def _why_none(self, error: OSError) -> str:
        partial = self.folder.with_name(self.folder.name + ".partial")
        if (partial / "unfinished.json").exists() or (self.folder / "unfinished.json").exists():
            return f"not complete yet; first: selvedge.resume({str(partial)!r})"
        if not self.folder.exists():
            return "no such folder; expected one that a run made, with a summary.json"
        return f"holds no results of a study: {error.strerror} (summary.json)"

    @property
    def series(self) -> list[str]:
        """Names of the series, case by case."""
        return list(self._series)

    @property
    def verdict(self) -> str:
        """Answer to the question whether PFC is needed, in a sentence."""
        return str(self.summary["verdict"]["sentence"])

    @property
    def warnings(self) -> list[str]:
        """What to know before trusting the numbers."""
        return list(self.summary["warnings"])

    @property
    def flows(self) -> Table:
        """One row for each flow."""
        return Table(self.folder / "flows.parquet", self)

    @property
    def ports(self) -> Table:
        """One row for each port and sample."""
        return Table(self.folder / "ports.parquet", self)

    @property
    def links(self) -> Table:
        """One row for each port, with the link that it is at."""
        return Table(self.folder / "links.parquet", self)

    @property
    def grid(self) -> list[dict[str, Any]]:
        """Rows of a sweep: the swept values, the series, and the metrics; empty without a sweep."""
        path = self.folder / "sweep.csv"
        if not path.exists():
            return []
        with path.open(encoding="utf-8", newline="") as file:
            return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(file)]

    @property
    def plot(self) -> Plots:
        """Charts, as matplotlib figures (extra `selvedge[plot]`).

        Raises:
            StudyError: matplotlib is missing.
        """
        try:
            from ._plot import Plots
        except ModuleNotFoundError as error:
            raise missing(error, "charts", "plot") from None
        return Plots(self)

    def metric(self, series: str, name: str) -> float | None:
        """Return the mean of a metric over the seeds; None where a series lacks it.

        Raises:
            StudyError: there is no such series or metric.
        """
        metrics = self._of(series)["metrics"]
        mean = metrics[self._metric_name(name)].get("mean")
        return None if mean is None else float(mean)

    def compare(self, of: str, to: str, metric: str) -> Comparison:
        """Return the ratio of series `of` to series `to` in a metric, paired by seed, with its 95 % interval.

        Raises:
            StudyError: there is no such series or metric.
        """
        self._of(of), self._of(to)
        metric = self._metric_name(metric)
        found = _native.ratio(self._text, of, to, metric)
        estimate: dict[str, Any] = {} if found is None else json.loads(found)
        ratio, ends = estimate.get("mean"), estimate.get("ci95")
        interval = None if ends is None else (float(ends[0]), float(ends[1]))
        return Comparison(of, to, metric, ratio, interval, _verdict(interval))

    def explain(
        self,
        flow: int | tuple[int, int] | None = None,
        *,
        series: str | None = None,
        seed: int | None = None,
        worst: int = 10,
        threads: int | None = None,
        progress: Progress = False,
    ) -> list[dict[str, Any]]:
        """Return where the completion time of flows went: of one, or of the `worst` ones. Times are in picoseconds.

        Args:
            flow: number of a flow, or (workload, number); None for the slowest ones.
            series: name of the series; None for the first.
            seed: seed of the run; None for the first.
            worst: number of flows without `flow`.
            threads: number of threads; None for one on every processor.
            progress: True to show the part done, or a function that is called with it.

        Raises:
            StudyError: there is no such flow, or the run does not come out as recorded.
        """
        key = (0, flow) if isinstance(flow, int) else flow
        try:
            text = _native.explain(self.folder, series, seed, key, worst, threads_or_all(threads), teller(progress))
        finally:
            over(progress)
        flows: list[dict[str, Any]] = json.loads(text)
        return flows

    def _of(self, series: str) -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", self._series[series])
        except KeyError:
            raise StudyError(f"{self.folder}: no series {series!r}; there are {', '.join(self.series)}") from None

    def _metric_name(self, name: str) -> str:
        known = next(iter(self._series.values()))["metrics"]
        for full in (name, f"{name}_us"):
            if full in known:
                return str(full)
        raise StudyError(f"no metric {name!r}; there are {', '.join(sorted(known))}")

    def __repr__(self) -> str:
        """Return the title and the verdict."""
        return f"<{self.title}: {len(self.series)} series, {len(self.seeds)} seeds. {self.verdict}>"

    def _repr_html_(self) -> str:
        """Show the main metrics and the verdict in a notebook."""
        shown = ["slowdown_mean", "fct_mean_us", "fct_p99_us", "drop_rate", "pause_time_us"]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ["series", *shown])
        rows = []
        for name, series in list(self._series.items())[:100]:
            cells = [_cell(series["metrics"].get(metric, {})) for metric in shown]
            rows.append(f"<tr><th>{html.escape(name)}</th>{''.join(cells)}</tr>")
        more = "" if len(self._series) <= 100 else f"<p>… {len(self._series) - 100} more series</p>"
        return (
            f"<p><b>{html.escape(self.title)}</b><br>{html.escape(self.verdict)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"
        )


def _verdict(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "open"
    low, high = interval
    if low >= 0.95 and high <= 1.05:
        return "the same"
    return "larger" if low > 1.0 else "smaller" if high < 1.0 else "open"


def _cell(estimate: dict[str, Any]) -> str:
    mean, ends = estimate.get("mean"), estimate.get("ci95")
    if mean is None:
        return "<td>-</td>"
    interval = "" if ends is None else f" <small>± {(ends[1] - ends[0]) / 2:.2g}</small>"
    return f"<td>{mean:.4g}{interval}</td>"


def _number(text: str) -> Any:
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def load_results(folder: str | PathLike[str]) -> Result:
    """Return the results in a folder that `selvedge run` or `Study.run` made.

    Raises:
        StudyError: there are none, or they are not complete.
    """
    return Result(folder)
