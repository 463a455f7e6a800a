"""Search for the values of keys at which a metric is best, by Optuna (extra `selvedge[tune]`)."""

from __future__ import annotations

import html
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import ScenarioError, StudyError
from ._result import Result
from ._study import Study, resume, run_plan
from ._work import Progress, missing, over, teller

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Significant digits of tuned values: enough, and short to read.
_DIGITS = 3
# Units that tuned quantities are written in, by kind.
_WRITTEN = {"bytes": (1e3, "KB"), "ps": (1e6, "us"), "bps": (1e9, "Gbps")}
# Proposals in a row that were tried before, after which the search ends: what is left is not worth a run.
_MOST_REPEATS = 200


@dataclass(frozen=True)
class Goal:
    """What `tune` looks for: the least or greatest value of a metric of a series."""

    metric: str
    of: str | None = None
    """Name of the series, or a scheme; None for the first of the study."""
    maximise: bool = False
    subject_to: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Bounds of other metrics of the series: `{"drop_rate": {"at-most": 0.01}}`; also "at-least"."""

    def __str__(self) -> str:
        """Return the goal in words."""
        aim = f"{'greatest' if self.maximise else 'least'} {self.metric}"
        pairs = ((name, *pair) for name, bounds in self.subject_to.items() for pair in bounds.items())
        bounds = (f"{name} {bound} {limit:g}" for name, bound, limit in pairs)
        return " with ".join([aim, *bounds])


@dataclass(frozen=True)
class Trial:
    """One point of a search."""

    number: int
    """Counted from 1."""
    values: dict[str, Any]
    """By dotted key, as for `Study.set`."""
    metric: float | None
    """Mean of the goal's metric over the seeds; None where there is none."""
    excess: float
    """How far bounds are exceeded, relative to them; 0 where all hold."""
    study: Study
    result: Result | None
    """None where the scenario is refused."""
    refusal: str | None = None

    @property
    def fits(self) -> bool:
        """Whether there is a value and all bounds hold."""
        return self.metric is not None and self.excess == 0.0


class Tuning:
    """A search that is done."""

    def __init__(self, goal: Goal, trials: Sequence[Trial], knobs: Sequence[str]) -> None:
        """Take the trials in their order."""
        self.goal = goal
        self.trials = list(trials)
        self.knobs = list(knobs)

    @property
    def best(self) -> Trial:
        """The best trial within the bounds; of equally good ones, the first.

        Raises:
            StudyError: none is within the bounds.
        """
        best = self._best_of(self.trials)
        if best is None:
            refusals = [trial.refusal for trial in self.trials if trial.refusal]
            why = f"; one was refused: {refusals[-1]}" if refusals else ""
            message = f"none of {len(self.trials)} points has a value within the bounds{why}; widen knobs or bounds, "
            raise StudyError(f"{message}or give a larger budget")
        return best

    def _best_of(self, trials: Sequence[Trial]) -> Trial | None:
        sign = -1.0 if self.goal.maximise else 1.0
        fitting = [trial for trial in trials if trial.fits]
        return min(fitting, key=lambda trial: sign * (trial.metric or 0.0), default=None)

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row for each trial: values, the goal's metric and those with bounds, and whether it fits."""
        rows = []
        for trial in self.trials:
            row: dict[str, Any] = {"trial": trial.number, **trial.values, self.goal.metric: trial.metric}
            for name in self.goal.subject_to:
                row[name] = None if trial.result is None else trial.result.metric(trial.result.series[0], name)
            rows.append({**row, "fits": trial.fits})
        return rows

    def plot(self) -> Figure:
        """Return a chart with a panel for each knob: the metric over its values, with the best trial marked.

        Raises:
            StudyError: matplotlib is missing, or no trial has a value.
        """
        try:
            from . import _plot
        except ModuleNotFoundError as error:
            raise missing(error, "charts", "plot") from None
        trials = [trial for trial in self.trials if trial.metric is not None]
        if not trials:
            raise StudyError("no trial has a value to draw")
        figure, panels = _plot.drawing(len(self.knobs) + 1)
        metrics = [trial.metric or 0.0 for trial in trials]
        best = self._best_of(trials)
        places = [_plot.name_axis(axes, knob, [trial.values[knob] for trial in trials])
                  for axes, knob in zip(panels[1:], self.knobs, strict=True)]
        numbers = [float(trial.number) for trial in trials]
        panels[0].set_xlabel("trial, and the best so far")
        so_far = [self._best_of(trials[: at + 1]) for at in range(len(trials))]
        panels[0].step(numbers, [one.metric if one else math.nan for one in so_far], where="post", color="0.6")
        for axes, at in zip(panels, [numbers, *places], strict=True):
            for fits, style in ((True, {"color": "#0072B2"}), (False, {"color": "#D55E00", "marker": "x"})):
                shown = [(x, y) for x, y, trial in zip(at, metrics, trials, strict=True) if trial.fits == fits]
                if shown:
                    name = "within the bounds" if fits else "beyond the bounds"
                    axes.scatter(*zip(*shown, strict=True), s=22, label=name, **style)
            if best is not None:
                index = trials.index(best)
                star = {"s": 160, "marker": "*", "color": "#E69F00", "ec": "k", "zorder": 3}
                axes.scatter(at[index], metrics[index], label="best", **star)
        if min(metrics) > 0 and max(metrics) > 10 * min(metrics):
            _plot.logarithmic(panels[0], "y")
        result = trials[0].result
        panels[0].set_ylabel(_plot.label(self.goal.metric if result is None else result._metric_name(self.goal.metric)))
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)
        return figure

    def __repr__(self) -> str:
        """Return the goal and the best trial."""
        best = self._best_of(self.trials)
        found = "none" if best is None else f"{best.metric:.4g} at {best.values} (trial {best.number})"
        return f"<{self.goal}: {found}; {len(self.trials)} trials>"

    def _repr_html_(self) -> str:
        """Show the ten best trials in a notebook."""
        sign = -1.0 if self.goal.maximise else 1.0
        rows = sorted(self.table, key=lambda row: (not row["fits"], sign * (row[self.goal.metric] or math.inf)))[:10]
        def cell(value: Any) -> str:
            return f"<td>{html.escape(f'{value:.4g}' if isinstance(value, float) else str(value))}</td>"
        head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
        body = "".join(f"<tr>{''.join(map(cell, row.values()))}</tr>" for row in rows)
        return (
            f"<p><b>{html.escape(str(self.goal))}</b>, {len(self.trials)} trials</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def tune(
    study: Study,
    knobs: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    goal: str | Goal,
    budget: int,
    out: str | PathLike[str] | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    seed: int = 1,
    executor: Any = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Tuning:
    """Search for the values of `knobs` at which the goal is best, and return all trials.

    Equal arguments give equal trials, bit by bit. Only the goal's series runs.

    Args:
        study: the study, with neither cases nor a sweep.
        knobs: by dotted key, a list of values, or a range as {"from": "20KB", "to": "1MB", "log": True}; of numbers,
            sizes, times or rates; "step" is possible. Whole numbers stay whole.
        goal: a `Goal`, or the name of a metric of the first series, to be minimised.
        budget: number of points to run; fewer if there are no more.
        out: folder for the results, one folder for each trial. Trials that are there already, of the same scenario,
            are not run again, so that an interrupted search continues, as does one with a larger budget.
        seeds: seeds of each point, or how many, in place of those of the study.
        seed: seed of the search itself.
        executor: where to run, as in `selvedge.sweep`.
        threads: number of threads here; None for one on every processor.
        progress: True to show the part done, or a function that is called with it.

    Raises:
        ScenarioError: a knob is wrong.
        StudyError: Optuna is missing, the goal is wrong, or results of something else are in `out`.
    """
    try:
        with warnings.catch_warnings():
            # In notebooks, some package below Optuna asks for widgets.
            warnings.simplefilter("ignore")
            import optuna
    except ModuleNotFoundError as error:
        raise missing(error, "tune", "tune") from None
    goal = Goal(goal) if isinstance(goal, str) else goal
    if budget < 1 or not knobs:
        raise StudyError("tune: expected at least one knob, and a budget of at least 1 point")
    for metric, bounds in goal.subject_to.items():
        if not bounds or not set(bounds) <= {"at-most", "at-least"}:
            raise StudyError(f'goal: {metric}: {dict(bounds)} are no bounds; expected "at-most" or "at-least"')
    first = study.plan(series=goal.of and [goal.of], seeds=seeds)
    if len(first.series) != 1 and goal.of is None:
        goal = replace(goal, of=first.series[0])
        first = study.plan(series=[first.series[0]], seeds=seeds)
    if len(first.series) != 1:
        raise StudyError("tune: the study has cases or a sweep; expected one without, whose knobs are changed here")
    ranges = {key: _Knob.of(key, values) for key, values in knobs.items()}
    tell = teller(progress)

    def trial(number: int, values: dict[str, Any]) -> Trial:
        told = False if tell is None else lambda part: tell((number - 1 + part) / budget)
        at = None if out is None else Path(out) / f"trial-{number:03}"
        options = {"executor": executor, "threads": threads, "progress": told}
        return _trial(study, number, values, goal, seeds=seeds, out=at, options=options)

    loud = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return Tuning(goal, _search(ranges, goal, budget, seed, trial), list(knobs))
    finally:
        optuna.logging.set_verbosity(loud)
        over(progress)


def _search(
    knobs: Mapping[str, _Knob], goal: Goal, budget: int, seed: int, trial: Callable[[int, dict[str, Any]], Trial]
) -> list[Trial]:
    """Return the trials at the points that Optuna proposes, each point once."""
    import optuna

    # Optuna 5 has a method for bounds and will drop the function for them.
    by_method = hasattr(optuna.trial.Trial, "set_constraint")
    options: dict[str, Any] = {} if by_method else {"constraints_func": lambda frozen: (frozen.user_attrs["excess"],)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(10, max(3, budget // 3)), **options)
    search = optuna.create_study(direction="maximize" if goal.maximise else "minimize", sampler=sampler)
    distributions = {key: knob.distribution() for key, knob in knobs.items()}
    seen: dict[str, Trial] = {}
    repeats = 0
    while len(seen) < budget and repeats < _MOST_REPEATS:
        asked = search.ask(distributions)
        values = {key: knob.value(asked.params[key]) for key, knob in knobs.items()}
        repeats = repeats + 1 if repr(values) in seen else 0
        if not repeats:
            seen[repr(values)] = trial(len(seen) + 1, values)
        done = seen[repr(values)]
        if by_method:
            asked.set_constraint("excess", done.excess)
        else:
            asked.set_user_attr("excess", done.excess)
        search.tell(asked, done.metric, state=optuna.trial.TrialState.FAIL if done.metric is None else None)
    return list(seen.values())


def _trial(
    study: Study,
    number: int,
    values: dict[str, Any],
    goal: Goal,
    *,
    seeds: int | Sequence[int] | None,
    out: Path | None,
    options: dict[str, Any],
) -> Trial:
    """Run the study with these values, or take its results from `out`, where a search left them."""
    try:
        study = study.set(values)
        plan = study.plan(series=goal.of and [goal.of], seeds=seeds)
    except ScenarioError as error:
        return Trial(number, values, None, math.inf, study, None, str(error))
    if out is None or not (out.exists() or out.with_name(f"{out.name}.partial").exists()):
        result = run_plan(plan, out, force=False, **options)
    else:
        if not out.exists():
            resume(f"{out}.partial", threads=options["threads"], progress=options["progress"])
        result = Result(out)
        if (out / "scenario.toml").read_text(encoding="utf-8") != plan.toml():
            raise StudyError(f"{out}: results of another scenario than this trial's; give another folder")
    name = result.series[0]
    excess = [
        math.inf if (has := result.metric(name, metric)) is None else _excess(has, bound, limit)
        for metric, bounds in goal.subject_to.items()
        for bound, limit in bounds.items()
    ]
    metric = result.metric(name, goal.metric) if math.inf not in excess else None
    return Trial(number, values, metric, sum(excess), study, result)


def _excess(value: float, bound: str, limit: float) -> float:
    return max(0.0, value - limit if bound == "at-most" else limit - value) / (abs(limit) or 1.0)


@dataclass(frozen=True)
class _Knob:
    """The values that a key may take."""

    choices: Sequence[Any] = ()
    kind: str = ""
    """"int", "float", or a kind of quantity; of ranges alone."""
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False

    @classmethod
    def of(cls, key: str, values: Any) -> _Knob:
        """Return the knob that a list or a range stands for."""
        wrong = _native.key_error(key)
        if wrong is not None:
            raise ScenarioError(f"{key}: {wrong}")
        if isinstance(values, Sequence) and not isinstance(values, str) and values:
            return cls(choices=list(values))
        if not isinstance(values, Mapping) or not {"from", "to"} <= set(values) <= {"from", "to", "step", "log"}:
            expected = 'expected a list, or a range {"from": ..., "to": ...}, with "step" or "log" if you like'
            raise ScenarioError(f"{key}: {values!r} is no knob; {expected}")
        ends = {end: _number(key, value) for end, value in values.items() if end != "log"}
        kinds = {kind for _, kind in ends.values()}
        kind = "float" if kinds == {"int", "float"} else kinds.pop()
        knob = cls((), kind, ends["from"][0], ends["to"][0], ends.get("step", (None, ""))[0], bool(values.get("log")))
        if (kinds and kind != "float") or knob.low > knob.high:
            raise ScenarioError(f"{key}: {dict(values)} is no range; expected values of one kind, the lower one first")
        if knob.log and (knob.low <= 0 or knob.step is not None):
            raise ScenarioError(f'{key}: {dict(values)}: "log" needs values above zero, and no "step"')
        return knob

    def distribution(self) -> Any:
        """Return the knob as Optuna has it."""
        from optuna import distributions

        if self.choices:
            return distributions.CategoricalDistribution(range(len(self.choices)))
        if self.kind == "int":
            low, high, step = int(self.low), int(self.high), int(self.step or 1)
            return distributions.IntDistribution(low, high, log=self.log, step=step)
        return distributions.FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def value(self, number: float) -> Any:
        """Return the value that a number of Optuna's stands for."""
        if self.choices:
            return self.choices[int(number)]
        if self.kind == "int":
            return int(number)
        if self.step is None:
            number = min(max(float(f"{number:.{_DIGITS}g}"), self.low), self.high)
        if self.kind == "float":
            return number
        scale, unit = _WRITTEN[self.kind]
        return f"{round(number) / scale:.12g}{unit}"


def _number(key: str, value: Any) -> tuple[float, str]:
    """Return the number that a value stands for, and its kind."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value), "int" if isinstance(value, int) else "float"
    found = _native.quantity(value) if isinstance(value, str) else None
    if found is None:
        raise ScenarioError(f"{key}: {value!r} is neither a number, a size, a time nor a rate; give a list of values")
    return found
