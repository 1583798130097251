"""Whether to pair, from rollouts of both designs: what was measured, and what may be said of it.

1. Groups are the unit of a gradient, tasks the unit of uncertainty: both designs have groups of every task.
2. From rewards alone: the share of constant groups. From inner products besides: the covariance trace, and
   the variance along the mean gradient. From gradients, coordinate by coordinate: the drift.
3. The advice follows from the interval of the drift ratio. What the interval leaves open stays open, with the
   number of tasks that would be likely to settle it.

What divides a step's gradient is taken to be the same for every step of either design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil, isfinite
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import drift_interval, signal_interval, task_sums, task_uncertainties
from toolkit.estimators.coordinates import TaskSums
from toolkit.estimators.drifts import DriftInterval
from toolkit.estimators.signal import SMALLEST_TASKS
from toolkit.estimators.taskwise import TaskUncertainty, is_told_from_zero
from toolkit.lab.probe.drift import Array

if TYPE_CHECKING:
    from toolkit.documents.probe import AdviceDocument

MARGIN = 0.05
"""Ratios this near to one are taken for no difference: learning is a twentieth faster or slower at most."""
LARGEST_BATCH = 1024
LEVEL, RESAMPLES, RNG_SEED = 0.95, 2000, 24

NO_VECTORS = "neither scores, gradients nor inner products were given"
NO_COORDINATES = "inner products hold no second moment of a coordinate: give scores or gradients"
FEW_TASKS = f"takes groups of {SMALLEST_TASKS} tasks at least"
NO_DRIFT = "the independent design's drift is not told from zero: more tasks, or more groups of them"


@dataclass(frozen=True)
class GroupEvidence:
    """Groups of both designs, which each have groups of every task: N of them, with P coordinates.

    `gradients` have advantages as in training; progress is along their mean, or that of `direction`.
    `common_mean`: both designs have one mean gradient, as without scaling.
    """

    paired: NDArray[np.bool_]
    tasks: NDArray[np.int64]
    varied: NDArray[np.bool_]
    group_size: int
    gram: Array | None = None
    gradients: Array | None = None
    direction: Array | None = None
    common_mean: bool = False


@dataclass(frozen=True)
class Advice:
    """What is said to somebody who trains; `not_evaluable` says which figure could not be had, and why.

    `tasks_needed` are likely to settle what is undecided; from `batch_needed` groups a step on, the ratio is
    above 1 - `MARGIN`.
    """

    tasks: int
    groups: Mapping[str, int]
    group_size: int
    optimizer: str
    batch: int
    figures: Mapping[str, TaskUncertainty]
    not_evaluable: Mapping[str, str]
    verdict: str
    tasks_needed: int | None
    batch_needed: int | None
    sentences: tuple[str, ...] = field(default=())

    def document(self) -> AdviceDocument:
        """Return it as JSON values."""
        figures = {name: asdict(figure) for name, figure in self.figures.items()}
        said = {**vars(self), "figures": figures, "level": LEVEL, "sentences": list(self.sentences)}
        return cast("AdviceDocument", said)  # its own fields by name


def advise(evidence: GroupEvidence, optimizer: str = "adam", batch: int = 24) -> Advice:
    """Say whether to pair.

    Source:
        `toolkit.estimators.drift_interval` and `signal_interval`; over tasks.
    """
    figures, missing = _constant(evidence), dict[str, str]()
    figures |= _signal(evidence, missing)
    verdict, needed_tasks, needed_batch = "not_evaluable", None, None
    tasks = len(np.unique(evidence.tasks))
    if evidence.gradients is None:
        reason = NO_VECTORS if evidence.gram is None else NO_COORDINATES
        missing |= dict.fromkeys(("drift_ratio", "drift_ratio_resampled"), reason)
        if evidence.gram is not None and evidence.common_mean and optimizer == "gradient":
            missing["drift_ratio"] = "is one: without scaling both designs have one mean gradient"
            verdict = "either"
    else:
        measured = _Drifts(evidence, evidence.gradients, optimizer)
        found = measured.at(batch)
        figures["drift_ratio"] = found.ratio
        verdict, needed_tasks = _judged(found, tasks)
        if verdict in ("do_not_pair", "undecided") and (found.ratio.best or 0) < 1 - MARGIN:
            needed_batch = _needed(measured.value, batch)
        if evidence.varied.all():
            missing["drift_ratio_resampled"] = "no group is constant"
        elif measured.can_resample:
            figures["drift_ratio_resampled"] = measured.at(batch, resampled=True).ratio
        else:
            missing["drift_ratio_resampled"] = "a design has varied groups of fewer than two tasks"
    sizes = {"paired": int(evidence.paired.sum()), "independent": int((~evidence.paired).sum())}
    advice = Advice(
        *(tasks, sizes, evidence.group_size, optimizer, batch),
        *(figures, missing, verdict, needed_tasks, needed_batch),
    )
    return Advice(**{**vars(advice), "sentences": tuple(_sentences(advice))})


def _constant(evidence: GroupEvidence) -> dict[str, TaskUncertainty]:
    """Return both designs' shares of constant groups, and how many groups one that varies takes."""
    tasks, at = np.unique(evidence.tasks, return_inverse=True)
    number = len(tasks)
    counted = {
        name: [
            np.bincount(at[of], weights=weights[of], minlength=number)
            for weights in (np.ones(len(at)), evidence.varied.astype(float))
        ]
        for name, of in (("paired", evidence.paired), ("independent", ~evidence.paired))
    }

    def figures(counts: Array) -> dict[str, Array]:
        found = {}
        for name, (groups, varied) in counted.items():
            found[f"constant_{name}"] = 1 - (counts @ varied) / (counts @ groups)
            found[f"draws_{name}"] = (counts @ groups) / (counts @ varied)
        return found

    return _resampled(figures, number)


def _resampled(figures: Callable[[Array], dict[str, Array]], number: int) -> dict[str, TaskUncertainty]:
    found = task_uncertainties(figures, number, level=LEVEL, resamples=RESAMPLES, rng_seed=RNG_SEED)
    return {name: figure for name, figure in found.items() if figure.value is not None}


def _signal(evidence: GroupEvidence, missing: dict[str, str]) -> dict[str, TaskUncertainty]:
    names = ("trace_ratio", "along_ratio")
    gram = evidence.gram
    if gram is None and evidence.gradients is not None:
        gram = evidence.gradients @ evidence.gradients.T
    if gram is None or len(np.unique(evidence.tasks)) < SMALLEST_TASKS:
        missing |= dict.fromkeys(names, NO_VECTORS if gram is None else FEW_TASKS)
        return {}
    if not np.diagonal(gram).any():
        missing |= dict.fromkeys(names, "every gradient is zero")
        return {}
    found = signal_interval(
        gram, evidence.tasks, evidence.paired, level=LEVEL, resamples=RESAMPLES, rng_seed=RNG_SEED
    )
    figures = {}
    if found.trace_ratio.value is not None:
        figures["trace_ratio"] = found.trace_ratio
    else:
        missing["trace_ratio"] = "the independent design's gradients do not vary"
    if found.has_direction and found.along_ratio.value is not None:
        figures["along_ratio"] = found.along_ratio
    else:
        missing["along_ratio"] = "the mean gradient is not told from zero, and has no direction to speak of"
    return figures


class _Drifts:
    """Drift ratios of the same groups, for any batch, constant groups kept or drawn again."""

    def __init__(self, evidence: GroupEvidence, gradients: Array, optimizer: str) -> None:
        self._optimizer = optimizer
        paired, self._common = evidence.paired, evidence.common_mean
        names, at = np.unique(evidence.tasks, return_inverse=True)
        self._tasks = len(names)
        self._kept = [task_sums(gradients[of], at[of]) for of in (paired, ~paired)]
        towards = gradients if evidence.direction is None else evidence.direction
        self._direction = task_sums(towards, at)
        # A constant group has no gradient: sums stay as they are, and fewer groups make them.
        self._varied = [
            TaskSums(
                np.bincount(at[of & evidence.varied], minlength=self._tasks).astype(float),
                sums.totals,
                sums.squares,
            )
            for of, sums in zip((paired, ~paired), self._kept, strict=True)
        ]

    @property
    def can_resample(self) -> bool:
        """Whether both designs have varied groups of two tasks."""
        return all((sums.groups > 0).sum() > 1 for sums in self._varied)

    def at(self, batch: float, *, resampled: bool = False) -> DriftInterval:
        """Return the drifts of a batch and their ratio."""
        paired, independent = self._varied if resampled else self._kept
        common = self._common and not resampled
        return drift_interval(
            paired,
            independent,
            batch,
            self._optimizer,
            along=None if common else self._direction,
            common_mean=common,
            level=LEVEL,
        )

    def value(self, batch: float) -> float:
        """Return the ratio alone; not a number where it is not defined."""
        value = self.at(batch).ratio.best
        return float("nan") if value is None else value


def _judged(found: DriftInterval, tasks: int) -> tuple[str, int | None]:
    """Return the verdict, and the tasks that would be likely to settle what is undecided."""
    ratio = found.ratio
    if ratio.best is None or ratio.low is None or ratio.high is None:
        return "undecided", None
    if not is_told_from_zero(found.independent):
        return "undecided", None
    if ratio.low >= 1 - MARGIN and ratio.high <= 1 + MARGIN:
        return "either", None
    if ratio.high < 1:
        return "do_not_pair", None
    if ratio.low > 1:
        return "pair", None
    # An interval narrows with the root of the tasks, until it leaves one, or lies within the margin.
    away, half = abs(ratio.best - 1), (ratio.high - ratio.low) / 2
    times = (half / max(away, MARGIN - away)) ** 2
    return "undecided", ceil(tasks * max(times, 1.0)) if isfinite(times) else None


def _needed(ratio: Callable[[float], float], batch: int) -> int | None:
    """Return the smallest batch found whose ratio is above 1 - `MARGIN`."""
    low, high = batch, batch
    while not ratio(high) > 1 - MARGIN:
        low, high = high, high * 2
        if high > LARGEST_BATCH:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ratio(middle) > 1 - MARGIN else (middle, high)
    return high


def _percent(value: float) -> str:
    return f"{100 * abs(1 - value):.0f} %"


def _span(figure: TaskUncertainty) -> str:
    if figure.low is None or figure.high is None:
        return f"{figure.best:.3f}"
    return f"{figure.best:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def _sentences(advice: Advice) -> list[str]:
    step = f"{advice.optimizer}, {advice.batch} groups a step"
    ratio = advice.figures.get("drift_ratio")
    told = f"the drift ratio is {_span(ratio)}" if ratio is not None and ratio.best is not None else ""
    if advice.verdict == "do_not_pair" and ratio is not None and ratio.best is not None:
        lines = [f"Do not pair: {step}, pairing slows learning by about {_percent(ratio.best)}; {told}."]
    elif advice.verdict == "pair" and ratio is not None and ratio.best is not None:
        lines = [f"Pair: {step}, pairing speeds learning up by about {_percent(ratio.best)}; {told}."]
    elif advice.verdict == "either":
        why = told or "both designs have one mean gradient"
        lines = [f"Either design: {step}, they differ by less than {MARGIN:.0%}; {why}."]
    elif advice.verdict == "undecided":
        lines = [f"Undecided: {step}, {told or 'the drift ratio is not defined'}."]
        if advice.tasks_needed is not None:
            lines.append(f"About {advice.tasks_needed:,} tasks are likely to settle it.")
        else:
            lines.append(f"{NO_DRIFT[0].upper()}{NO_DRIFT[1:]}.")
    else:
        reason = advice.not_evaluable.get("drift_ratio", NO_VECTORS)
        lines = [f"Whether to pair cannot be said: {reason}."]
    along = advice.figures.get("along_ratio")
    if advice.verdict == "not_evaluable" and along is not None and along.low is not None and along.low > 1:
        lines.append(
            f"Pairing raises the variance along the mean gradient, {_span(along)} times: a sign, not a "
            "measure, that an optimizer which divides by it slows down."
        )
    return lines + _changes(advice)


def _changes(advice: Advice) -> list[str]:
    """Say what to change, where pairing may slow learning."""
    if advice.verdict in ("pair", "either"):
        return []
    lines = []
    if advice.batch_needed is not None:
        lines.append(
            f"With about {advice.batch_needed} groups a step the estimated ratio comes above {1 - MARGIN:g}."
        )
    again, draws = advice.figures.get("drift_ratio_resampled"), advice.figures.get("draws_paired")
    if again is not None and again.best is not None and draws is not None:
        lines.append(
            "If constant groups are dropped and drawn again, a step's ratio is predicted to be "
            f"{_span(again)}, at {draws.value:.1f} paired groups played for one that counts "
            f"({advice.figures['draws_independent'].value:.1f} independent)."
        )
    return lines
