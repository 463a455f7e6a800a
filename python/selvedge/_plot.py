"""Charts of results; imported with the first of them, since they need matplotlib."""

from __future__ import annotations

import bisect
import io
import math
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullLocator

from . import _native
from ._errors import StudyError

if TYPE_CHECKING:
    from ._result import Result

# Okabe and Ito's colours, which colour-blind people tell apart; markers differ, too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vPX"
# Units of quantities as the native module names them, each with the symbol on axes and the base unit's size.
_UNITS = {"ps": ("s", 1e-12), "bytes": ("B", 1.0), "bps": ("b/s", 1.0)}
# Words for names of metrics; the rest are shown by name. Endings of names are units.
_WORDS = {
    "slowdown_mean": "mean slowdown",
    "slowdown_p50": "median slowdown",
    "slowdown_p99": "99th percentile of slowdown",
    "fct_mean_us": "mean completion time",
    "fct_p50_us": "median completion time",
    "fct_p99_us": "99th percentile of completion time",
    "fct_p999_us": "99.9th percentile of completion time",
    "drop_rate": "share of packets dropped",
    "pause_time_us": "time paused, all ports",
    "goodput_gbps": "goodput",
}
_ENDINGS = {"_us": " (µs)", "_gbps": " (Gb/s)", "_kb": " (KB)"}


class Drawing(Figure):
    """A matplotlib figure that notebooks show as the value of a cell, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=80)
        return buffer.getvalue()


def drawing(columns: int = 1, *, width: float = 7.0, height: float = 4.2) -> tuple[Drawing, list[Any]]:
    """Return a figure of panels side by side with equal vertical axes, and the panels."""
    figure = Drawing(figsize=(max(width, 3.6 * columns), height), layout="constrained")
    panels: list[Any] = list(figure.subplots(1, columns, sharey=True, squeeze=False)[0])
    for axes in panels:
        axes.grid(visible=True, which="major", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def styles() -> Iterable[dict[str, Any]]:
    """Return a colour and a marker for each curve in turn."""
    return ({"color": colour, "marker": marker} for colour, marker in cycle(zip(_COLOURS, _MARKERS, strict=True)))


def label(metric: str) -> str:
    """Return words and unit for a metric's name."""
    unit = next((unit for ending, unit in _ENDINGS.items() if metric.endswith(ending)), "")
    return _WORDS.get(metric, metric.replace("_", " ")) + unit


def positions(values: Sequence[Any]) -> tuple[list[float], str | None]:
    """Return the places of a key's values on an axis, and their unit; None if the values are no numbers."""
    found = [(value, "") if isinstance(value, (int, float)) else _native.quantity(str(value)) for value in values]
    known = [(float(number), kind) for number, kind in filter(None, found)]
    if len(known) < len(values) or len({kind for _, kind in known}) != 1:
        order = list(dict.fromkeys(values))
        return [float(order.index(value)) for value in values], None
    unit, scale = _UNITS.get(known[0][1], ("", 1.0))
    return [number * scale for number, _ in known], unit


def name_axis(axes: Any, key: str, values: Sequence[Any]) -> list[float]:
    """Give the horizontal axis the name, the unit and the scale of a key; return the places of its values."""
    at, unit = positions(values)
    if unit is not None and min(at) > 0 and max(at) > 10 * min(at):
        axes.set_xlim(min(at) / 1.2, max(at) * 1.2)
        logarithmic(axes, "x")
    if unit is None:
        axes.xaxis.set_ticks(sorted(set(at)), [str(value) for value in dict.fromkeys(values)])
    elif unit:
        axes.xaxis.set_major_formatter(EngFormatter(unit))
    axes.set_xlabel(key)
    return at


def logarithmic(axes: Any, which: str) -> None:
    """Make the axis "x" or "y" logarithmic, with plain numbers at its ticks."""
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    low, high = axis.get_data_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 40 * low else (1,), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


class Plots:
    """Charts of results, as matplotlib figures (extra `selvedge[plot]`) that are returned and not shown."""

    def __init__(self, result: Result) -> None:
        """Take the results to draw."""
        self._result = result

    def slowdown(self) -> Figure:
        """Return the distribution of slowdowns of measured flows: for each slowdown, the share of flows above it."""
        figure, [axes] = drawing()
        for (name, rows), style in zip(self._flows("slowdown").items(), styles(), strict=False):
            values = sorted(slowdown for (slowdown,) in rows)
            above = [1 - at / len(values) for at in range(len(values))]
            axes.plot(values, above, drawstyle="steps-post", label=name, color=style["color"])
        logarithmic(axes, "x")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
        axes.set_xlabel("slowdown (completion time / that in an empty network)")
        axes.set_ylabel("flows with at least this slowdown")
        return _finished(figure, axes, self._result.title)

    def by_size(self, quantile: float = 0.99, bins: int = 10) -> Figure:
        """Return a quantile of the slowdown over the size of flows, a curve for each series.

        Args:
            quantile: 0 to 1.
            bins: number of groups of sizes with about equally many flows; fewer where there are few flows.
        """
        figure, [axes] = drawing()
        for (name, rows), style in zip(self._flows("size_bytes", "slowdown").items(), styles(), strict=False):
            axes.plot(*_quantiles(rows, quantile, bins), label=name, markersize=4, **style)
        logarithmic(axes, "x")
        axes.xaxis.set_major_formatter(EngFormatter("B"))
        logarithmic(axes, "y")
        axes.set(xlabel="size of flow", ylabel=f"slowdown, quantile {quantile:g}")
        return _finished(figure, axes, self._result.title)

    def metric(self, name: str) -> Figure:
        """Return a bar for each series, with its 95 % interval."""
        result = self._result
        full = result._metric_name(name)
        known = [(series, values["metrics"][full]) for series, values in result._series.items()]
        shown = [(series, one["mean"], one.get("ci95")) for series, one in known if one.get("mean") is not None]
        figure, [axes] = drawing(height=1.2 + 0.4 * max(len(shown), 2))
        below = [mean - max(ends[0], 0.0) if ends else 0.0 for _, mean, ends in shown]
        above = [ends[1] - mean if ends else 0.0 for _, mean, ends in shown]
        names, means = [name for name, _, _ in shown], [mean for _, mean, _ in shown]
        axes.barh(names, means, xerr=[below, above], capsize=3, color=_COLOURS[0], ecolor="0.3", height=0.6)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set(xlabel=label(full), title=result.title)
        return figure

    def sweep(self, metric: str, x: str | None = None) -> Figure:
        """Return a metric over the values of a swept key: a curve with 95 % intervals for each series.

        Args:
            metric: name of a metric.
            x: dotted key on the horizontal axis; None for the key with the most values. Other swept keys have a panel
                for each of their values.

        Raises:
            StudyError: the results are not those of a sweep, or there is no such metric or key.
        """
        result = self._result
        rows, metric = result.grid, result._metric_name(metric)
        if not rows:
            raise StudyError(f"{result.folder}: not a sweep; selvedge.sweep(study, grid) makes one")
        keys = list(rows[0])[: list(rows[0]).index("series")]
        if x is None:
            x = max(keys, key=lambda key: len({row[key] for row in rows}))
        elif x not in keys:
            raise StudyError(f"{result.folder}: {x!r} is not swept; there are {', '.join(keys)}")
        others = [key for key in keys if key != x]
        panels: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            panels.setdefault(tuple(row[key] for key in others), []).append(row)
        figure, places = drawing(len(panels))
        seen: list[float] = []
        for axes, (values, inside) in zip(places, panels.items(), strict=True):
            at = dict(zip(map(id, inside), name_axis(axes, x, [row[x] for row in inside]), strict=True))
            names = dict.fromkeys(row["series"] for row in inside)
            for name, style in zip(names, styles(), strict=False):
                curve = [row for row in inside if row["series"] == name and row[metric] is not None]
                xs, means = [at[id(row)] for row in curve], [row[metric] for row in curve]
                lows = [max(row.get(f"{metric}_low") or 0.0, 0.0) for row in curve]
                axes.plot(xs, means, label=name, markersize=4, **style)
                if all(row.get(f"{metric}_high") is not None for row in curve):
                    ends = [row[f"{metric}_high"] for row in curve]
                    axes.fill_between(xs, lows, ends, alpha=0.12, lw=0, color=style["color"])
                seen += means
            fixed = zip((key.rsplit(".", 1)[-1] for key in others), values, strict=True)
            axes.set_title(", ".join(f"{key} = {value}" for key, value in fixed), fontsize="medium")
        places[0].set_ylabel(label(metric))
        if seen and min(seen) > 0 and max(seen) > 10 * min(seen):
            places[0].set_ylim(min(seen) / 1.5, max(seen) * 1.5)
            logarithmic(places[0], "y")
        else:
            places[0].set_ylim(bottom=0)
        figure.suptitle(result.title)
        places[-1].legend(frameon=False)
        return figure

    def _flows(self, *columns: str) -> dict[str, list[tuple[float, ...]]]:
        """Return values of the measured flows that have them, by series."""
        flows = self._result.flows
        found: dict[str, list[tuple[float, ...]]] = {}
        taken = zip(*(flows.column(name) for name in ("case", "series", "measured", *columns)), strict=True)
        for case, series, measured, *values in taken:
            if measured and not any(math.isnan(value) for value in values):
                found.setdefault(f"{case}: {series}" if case else series, []).append(tuple(values))
        return found


def _quantiles(rows: list[tuple[float, ...]], quantile: float, bins: int) -> tuple[list[float], list[float]]:
    """Return the largest size of each group of flows, and the quantile of the slowdown in the group."""
    rows.sort()
    sizes = [size for size, _ in rows]
    bins = max(1, min(bins, len(rows) // 20))
    # Flows of one size are in one group.
    ends = sorted({bisect.bisect_right(sizes, sizes[(at + 1) * len(rows) // bins - 1]) for at in range(bins)})
    groups = [sorted(slowdown for _, slowdown in rows[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    values = [group[min(int(quantile * len(group)), len(group) - 1)] for group in groups]
    return [sizes[end - 1] for end in ends], values


def _finished(figure: Figure, axes: Any, title: str) -> Figure:
    axes.set_title(title)
    axes.legend(frameon=False)
    return figure
