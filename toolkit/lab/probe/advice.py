"""Whether to pair, from rollouts of both designs: what was measured, and the advice that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import ceil, isfinite
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import drift_interval, signal_interval, task_sums, task_uncertainties
from toolkit.estimators.drifts import DriftInterval
from toolkit.estimators.signal import SMALLEST_TASKS
from toolkit.estimators.taskwise import TaskUncertainty, is_nonzero
from toolkit.structs import Document, Shown, about, replace

Array = NDArray[np.float64]
Optimizer = Literal["adam", "gradient", "sign"]

MARGIN = 0.05
"""Ratios this near to one are taken for no difference: learning is a twentieth faster or slower at most."""
LARGEST_BATCH = 1024
LEVEL, RESAMPLES, RNG_SEED = 0.95, 2000, 24

NO_VECTORS = "neither scores, gradients nor inner products were given"
NO_COORDINATES = "inner products hold no second moment of a coordinate: give scores or gradients"
FEW_TASKS = f"takes groups of {SMALLEST_TASKS} tasks at least"
NO_DRIFT = "The independent design's drift is not told from zero: more tasks, or more groups of them."


@dataclass(frozen=True)
class GroupEvidence:
    """Groups of both designs, which each have groups of every task: N of them, with P coordinates."""

    paired: NDArray[np.bool_]
    tasks: NDArray[np.int64]
    varied: NDArray[np.bool_]
    group_size: int
    gram: Array | None = None
    gradients: Array | None = None  # with advantages as in training
    direction: Array | None = None  # progress is along the mean of these; of `gradients` if left out
    common_mean: bool = False  # whether both designs have one mean gradient, as without scaling


class Uncertain(Document, frozen=True):
    """A figure over tasks, with a 95% interval."""

    value: Annotated[float | None, about("Null where the tasks do not define it.")]
    low: Annotated[float | None, about("Null without an interval.")]
    high: Annotated[float | None, about("Null without an interval.")]
    standard_error: Annotated[float | None, about("The jackknife's.")]
    corrected: Annotated[float | None, about("The value, its bias of order 1/tasks taken off.")]


class DesignCounts(Document, frozen=True):
    """A number of each design."""

    paired: Annotated[int, about("Of the paired design.")]
    independent: Annotated[int, about("Of the independent design.")]


def uncertain(figures: Mapping[str, TaskUncertainty]) -> dict[str, dict[str, float | None]]:
    """Return figures over tasks as they are printed."""
    return {name: asdict(figure) for name, figure in figures.items()}


class Advice(Document, frozen=True):
    """Whether to pair, from rollouts of both designs."""

    tasks: Annotated[int, about("Tasks of both designs.")]
    groups: Annotated[Mapping[str, int], Shown("groups", DesignCounts, "")]
    group_size: Annotated[int, about("Rollouts a group, G.")]
    optimizer: Annotated[str, Shown("optimizer", Optimizer, "What takes a step.")]
    batch: Annotated[int, about("Groups a step.")]
    figures: Annotated[
        Mapping[str, TaskUncertainty],
        Shown(
            "figures",
            dict[str, Uncertain],
            "By name; those that could not be had have no entry.",
            uncertain,
        ),
    ]
    not_evaluable: Annotated[dict[str, str], about("Why a figure could not be had.")]
    verdict: Annotated[
        str,
        Shown(
            "verdict",
            Literal["pair", "do_not_pair", "either", "undecided", "not_evaluable"],
            "`either`: learning is as fast to a twentieth; `undecided`: the interval leaves it open.",
        ),
    ]
    tasks_needed: Annotated[int | None, about("Tasks that are likely to settle what is undecided.")]
    batch_needed: Annotated[int | None, about("Groups a step at which pairing loses nothing.")]
    sentences: Annotated[tuple[str, ...], about("The advice in words.")] = ()
    level: Annotated[float, about("Confidence level.")] = LEVEL


def advise(evidence: GroupEvidence, optimizer: str = "adam", batch: int = 24) -> Advice:
    """Say whether to pair, by `drift_interval` and `signal_interval` over tasks."""
    missing: dict[str, str] = {}
    figures = _constant(evidence) | _signal(evidence, missing)
    verdict, needed_tasks, needed_batch = "not_evaluable", None, None
    tasks = len(np.unique(evidence.tasks))
    if evidence.gradients is None:
        reason = NO_VECTORS if evidence.gram is None else NO_COORDINATES
        missing |= dict.fromkeys(("drift_ratio", "drift_ratio_resampled"), reason)
        if evidence.gram is not None and evidence.common_mean and optimizer == "gradient":
            missing["drift_ratio"] = "is one: without scaling both designs have one mean gradient"
            verdict = "either"
    else:
        drifts, can_resample = _drifts(evidence, evidence.gradients, optimizer)
        drift = drifts(batch)
        figures["drift_ratio"] = drift.ratio
        verdict, needed_tasks = _judged(drift, tasks)
        if verdict in ("do_not_pair", "undecided") and (drift.ratio.best or 0) < 1 - MARGIN:
            needed_batch = _needed(lambda size: drifts(size).ratio.best, batch)
        if evidence.varied.all():
            missing["drift_ratio_resampled"] = "no group is constant"
        elif can_resample:
            figures["drift_ratio_resampled"] = drifts(batch, resampled=True).ratio
        else:
            missing["drift_ratio_resampled"] = "a design has varied groups of fewer than two tasks"
    sizes = {"paired": int(evidence.paired.sum()), "independent": int((~evidence.paired).sum())}
    advice = Advice(
        *(tasks, sizes, evidence.group_size, optimizer, batch),
        *(figures, missing, verdict, needed_tasks, needed_batch),
    )
    return replace(advice, sentences=tuple(_sentences(advice)))


def _constant(evidence: GroupEvidence) -> dict[str, TaskUncertainty]:
    """Return both designs' shares of constant groups, and how many groups one that varies takes."""
    tasks, at = np.unique(evidence.tasks, return_inverse=True)
    number, varied = len(tasks), evidence.varied.astype(float)
    counted = {
        name: [np.bincount(at[of], weights[of], number) for weights in (np.ones(len(at)), varied)]
        for name, of in (("paired", evidence.paired), ("independent", ~evidence.paired))
    }

    def figures(counts: Array) -> dict[str, Array]:
        found = {}
        for name, (groups, varied) in counted.items():
            found[f"constant_{name}"] = 1 - (counts @ varied) / (counts @ groups)
            found[f"draws_{name}"] = (counts @ groups) / (counts @ varied)
        return found

    resampled = task_uncertainties(figures, number, level=LEVEL, resamples=RESAMPLES, rng_seed=RNG_SEED)
    return {name: figure for name, figure in resampled.items() if figure.value is not None}


def _signal(evidence: GroupEvidence, missing: dict[str, str]) -> dict[str, TaskUncertainty]:
    """Return the ratios of trace and of variance along the mean gradient; say which is missing."""
    reason, gram = None, evidence.gram
    if gram is None and evidence.gradients is not None:
        gram = evidence.gradients @ evidence.gradients.T
    if gram is None:
        reason = NO_VECTORS
    elif len(np.unique(evidence.tasks)) < SMALLEST_TASKS:
        reason = FEW_TASKS
    elif not np.diagonal(gram).any():
        reason = "every gradient is zero"
    if gram is None or reason:
        missing |= dict.fromkeys(("trace_ratio", "along_ratio"), reason or NO_VECTORS)
        return {}
    signal = signal_interval(
        gram, evidence.tasks, evidence.paired, level=LEVEL, resamples=RESAMPLES, rng_seed=RNG_SEED
    )
    figures = {}
    if signal.trace_ratio.value is not None:
        figures["trace_ratio"] = signal.trace_ratio
    else:
        missing["trace_ratio"] = "the independent design's gradients do not vary"
    if signal.has_direction and signal.along_ratio.value is not None:
        figures["along_ratio"] = signal.along_ratio
    else:
        missing["along_ratio"] = "the mean gradient is not told from zero, and has no direction to speak of"
    return figures


def _drifts(
    evidence: GroupEvidence, gradients: Array, optimizer: str
) -> tuple[Callable[..., DriftInterval], bool]:
    """Return the drifts by batch, constant groups kept or drawn again, and whether these can be."""
    names, at = np.unique(evidence.tasks, return_inverse=True)
    designs = (evidence.paired, ~evidence.paired)
    kept = [task_sums(gradients[of], at[of]) for of in designs]
    # A constant group has no gradient: sums stay as they are, and fewer groups make them.
    counts = [np.bincount(at[of & evidence.varied], minlength=len(names)).astype(float) for of in designs]
    varied = [replace(sums, groups=groups) for sums, groups in zip(kept, counts, strict=True)]
    direction = task_sums(gradients if evidence.direction is None else evidence.direction, at)

    def drifts(batch: float, *, resampled: bool = False) -> DriftInterval:
        common = evidence.common_mean and not resampled
        paired, independent = varied if resampled else kept
        along = None if common else direction
        return drift_interval(
            paired, independent, batch, optimizer, along=along, common_mean=common, level=LEVEL
        )

    return drifts, all((groups > 0).sum() > 1 for groups in counts)


def _judged(drift: DriftInterval, tasks: int) -> tuple[str, int | None]:
    """Return the verdict, and the tasks that would be likely to settle what is undecided."""
    ratio = drift.ratio
    if ratio.best is None or ratio.low is None or ratio.high is None:
        return "undecided", None
    if not is_nonzero(drift.independent):
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


def _needed(ratio: Callable[[float], float | None], batch: int) -> int | None:
    """Return the smallest batch found whose ratio is above 1 - `MARGIN`."""
    low, high = batch, batch
    while not (ratio(high) or 0) > 1 - MARGIN:
        low, high = high, high * 2
        if high > LARGEST_BATCH:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if (ratio(middle) or 0) > 1 - MARGIN else (middle, high)
    return high


def _span(figure: TaskUncertainty) -> str:
    if figure.low is None or figure.high is None:
        return f"{figure.best:.3f}"
    return f"{figure.best:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def _sentences(advice: Advice) -> list[str]:
    figures, verdict = advice.figures, advice.verdict
    step, ratio = f"{advice.optimizer}, {advice.batch} groups a step", figures.get("drift_ratio")
    drift, effect = "", ""
    if ratio is not None and ratio.best is not None:
        drift, effect = f"the drift ratio is {_span(ratio)}", f"{100 * abs(1 - ratio.best):.0f} %"
    reason = advice.not_evaluable.get("drift_ratio", NO_VECTORS)
    first = {
        "do_not_pair": f"Do not pair: {step}, pairing slows learning by about {effect}; {drift}.",
        "pair": f"Pair: {step}, pairing speeds learning up by about {effect}; {drift}.",
        "either": f"Either design: {step}, they differ by less than {MARGIN:.0%}; "
        f"{drift or 'both designs have one mean gradient'}.",
        "undecided": f"Undecided: {step}, {drift or 'the drift ratio is not defined'}.",
        "not_evaluable": f"Whether to pair cannot be said: {reason}.",
    }
    lines = [first[verdict]]
    if verdict == "undecided" and advice.tasks_needed is not None:
        lines.append(f"About {advice.tasks_needed:,} tasks are likely to settle it.")
    elif verdict == "undecided":
        lines.append(NO_DRIFT)
    along = figures.get("along_ratio")
    if verdict == "not_evaluable" and along is not None and along.low is not None and along.low > 1:
        lines.append(
            f"Pairing raises the variance along the mean gradient, {_span(along)} times: a sign, not a "
            "measure, that an optimizer which divides by it slows down."
        )
    if verdict in ("pair", "either"):
        return lines
    if advice.batch_needed is not None:
        lines.append(
            f"With about {advice.batch_needed} groups a step the estimated ratio comes above {1 - MARGIN:g}."
        )
    again, draws = figures.get("drift_ratio_resampled"), figures.get("draws_paired")
    if again is not None and again.best is not None and draws is not None:
        lines.append(
            "If constant groups are dropped and drawn again, a step's ratio is predicted to be "
            f"{_span(again)}, at {draws.value:.1f} paired groups played for one that counts "
            f"({figures['draws_independent'].value:.1f} independent)."
        )
    return lines
