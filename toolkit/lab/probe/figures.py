"""From the evidence of a checkpoint to its figures, their intervals, and the identities that tie them."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, VerificationError
from toolkit.estimators import (
    debiased_between_share,
    enumerated_outcome_moments,
    exact_conditions,
    noise_within_share,
    norm_over_floor,
    pooled_trace,
    task_uncertainties,
)
from toolkit.estimators.moments import LARGEST_ENUMERATION
from toolkit.estimators.taskwise import Figures, PooledTrace
from toolkit.lab.probe.design import (
    CLEAN_TASKS,
    DERIVED,
    DESIGNS,
    DIAGNOSTIC_TASKS,
    INDEPENDENT,
    INTERVALS,
    OUTCOME,
    PAIRED,
    PROBE,
    STRATIFIED,
    TRANSITION,
    Design,
    Listed,
    RolloutSet,
)
from toolkit.lab.probe.evidence import GramEvidence, Place
from toolkit.lab.probe.moments import ESTIMATORS, MC, SW, ByEstimator, moments
from toolkit.registers.arrow import Row

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """What one estimator gives under one noise."""

    second: dict[str, Array]  # design → E‖g_t‖² of each task, shape (T,), in score² (SW: score²/token²)
    # (design, design) → inner products of the tasks' mean gradients, shape (T, T)
    products: dict[tuple[str, str], Array]
    contrasts: dict[str, float]  # design → variance of a reward contrast, in reward²

    def trace(self, design: str, counts: Array | None = None) -> PooledTrace:
        """Return the pooled trace of a design, or one a resample of tasks."""
        return pooled_trace(self.second[design], self.products[design, design], counts)


@dataclass(frozen=True)
class Sides:
    """Both sides of the exact condition, clean group by clean group."""

    successes: NDArray[np.int64]  # true successes, shape (T,)
    left: Array  # ‖g_c‖², shape (T,), in score²
    right: Array  # score spread of the successes over G², shape (T,), in score²


def estimates(evidence: GramEvidence, by_design: ByEstimator, reference_tokens: float) -> dict[str, Estimate]:
    """Return estimator → what it gives."""
    designs = DESIGNS[evidence.noise]
    by_estimator = {}
    for estimator in ESTIMATORS:
        scale = reference_tokens**2 if estimator == SW else 1.0
        products = evidence.products[estimator]
        by_estimator[estimator] = Estimate(
            {design: by_design[estimator][design].second / scale for design in designs},
            {
                (design, other): products[i, :, j, :] / scale
                for i, design in enumerate(designs)
                for j, other in enumerate(designs)
            },
            {design: float(by_design[estimator][design].contrast.mean()) for design in designs},
        )
    return by_estimator


def sides(evidence: GramEvidence) -> Sides:
    """Return both sides of the exact condition for every clean group."""
    left, right = exact_conditions(evidence.rewards, evidence.gram)
    # Both are sums of squares, which rounding must not make negative.
    return Sides(evidence.rewards.sum(axis=1).astype(int), np.maximum(left, 0.0), np.maximum(right, 0.0))


def probe_row(evidence: GramEvidence, estimator: str, estimate: Estimate, flip_rate: float) -> Row:
    """Return the figures of a row of `probe`, without the checkpoint that they belong to."""
    row: Row = {"noise": evidence.noise, "estimator": estimator}
    row |= dict.fromkeys(("condition_left", "condition_right", "identity_residual"))
    pooled = {design: estimate.trace(design) for design in estimate.second}
    if (evidence.noise, estimator) == (OUTCOME, MC):
        both = sides(evidence)
        left, right = float(both.left.mean()), float(both.right.mean())
        difference = float(pooled[PAIRED].total - pooled[INDEPENDENT].total)
        row["condition_left"], row["condition_right"] = left, right
        row["identity_residual"] = difference - flip_rate * (1 - flip_rate) * (left - right)
    for design in (PAIRED, INDEPENDENT, STRATIFIED):
        trace, parts = pooled.get(design), dict[str, float | None]()
        for name, part in (("trace", "total"), ("trace_within", "within"), ("trace_between", "between")):
            # Rounding must not make a variance negative.
            parts[name] = None if trace is None else max(0.0, float(getattr(trace, part)))
        parts["mean_norm"] = None if trace is None else math.sqrt(max(0.0, float(trace.squared_norm)))
        parts["reward_contrast"] = estimate.contrasts.get(design)
        row |= {f"{name}_{design}": value for name, value in parts.items()}
    row["cosine"] = _cosine(estimate)
    return row


def _cosine(estimate: Estimate) -> float | None:
    own = [float(estimate.products[design, design].sum()) for design in (PAIRED, INDEPENDENT)]
    if min(own) <= 0:
        return None
    inner = float(estimate.products[PAIRED, INDEPENDENT].sum())
    return max(-1.0, min(1.0, inner / math.sqrt(own[0] * own[1])))


DIGITS = 6
"""Significant digits of what was resampled: more than its Monte Carlo error leaves."""

CLEAN_COLUMNS = ("task_id", "successes", "condition_left", "condition_right")
CONDITION = "condition_ratio"
RATIO, WITHIN_RATIO, STRATIFIED_RATIO = "trace_ratio", "within_ratio", "trace_ratio_stratified"
SHARE, FLOOR = "within_share", "norm_over_floor"
RESAMPLED = ("low", "high", "standard_error", "corrected")


class Resampling(NamedTuple):
    """How tasks are resampled."""

    level: float  # confidence level
    resamples: int  # resamples of the bootstrap
    rng_seed: int  # its seed
    groups: int  # disjoint groups a task, N, that the scored rollouts make


def interval_rows(
    noise: str, estimator: str, estimate: Estimate, both: Sides | None, how: Resampling
) -> list[Row]:
    """Return the rows of `probe_intervals` of one checkpoint, noise and estimator, without the checkpoint."""
    designs, tasks = DESIGNS[noise], len(estimate.second[PAIRED])

    def figures(counts: Array) -> dict[str, Array]:
        traces = {design: estimate.trace(design, counts) for design in designs}
        values = {}
        if both is not None:
            # Not by the library that starts threads for it, as in `pooled_trace`.
            left, right = (np.einsum("bt,t->b", counts, side) for side in (both.left, both.right))
            values[CONDITION] = left / right
        values |= {
            RATIO: traces[PAIRED].total / traces[INDEPENDENT].total,
            WITHIN_RATIO: traces[PAIRED].within / traces[INDEPENDENT].within,
        }
        if STRATIFIED in traces:
            values[STRATIFIED_RATIO] = traces[PAIRED].total / traces[STRATIFIED].total
        return values | {f"{SHARE}_{name}": trace.within / trace.total for name, trace in traces.items()}

    plain = {design: estimate.trace(design) for design in designs}
    rows = resampled_rows(figures, tasks, how)
    if noise != OUTCOME:
        rows = [row | _share_beside(row["figure"], plain, tasks, how.groups) for row in rows]
    rows += [
        floor_row(design, plain[design].squared_norm, plain[design].between, tasks) for design in designs
    ]
    common = {"noise": noise, "estimator": estimator, "tasks": tasks, "level": how.level}
    return [common | row for row in rows]


def resampled_rows(figures: Figures, tasks: int, how: Resampling) -> list[Row]:
    """Return a row a figure, resampled; one that some resample does not define has its value alone."""
    figures_of = task_uncertainties(
        figures, tasks, level=how.level, resamples=how.resamples, rng_seed=how.rng_seed
    )
    return [
        {"figure": name}
        | {
            part: None if (number := getattr(figure, part)) is None else _rounded(number)
            for part in ("value", *RESAMPLED)
        }
        | {"pure_noise": None, "debiased": None}
        for name, figure in figures_of.items()
    ]


def _share_beside(figure: str, plain: Mapping[str, PooledTrace], tasks: int, groups: int) -> Row:
    """Return what stands beside a within-task share: that of pure noise, and the debiased one."""
    design = figure.removeprefix(f"{SHARE}_")
    if design not in plain or not float(plain[design].within) > 0:
        return {}
    between = debiased_between_share(float(plain[design].within), float(plain[design].between), tasks, groups)
    return {"pure_noise": _rounded(noise_within_share(tasks, groups)), "debiased": _rounded(1 - between)}


def floor_row(design: str, squared_norm: Array, between: Array, tasks: int) -> Row:
    """Return the squared norm of a mean gradient over its sampling variance, tasks being the unit."""
    columns = ("value", *RESAMPLED, "pure_noise", "debiased")
    row: Row = {"figure": f"{FLOOR}_{design}"} | dict.fromkeys(columns)
    if not float(between) > 0:
        return row
    value, pure = norm_over_floor(float(squared_norm), float(between), tasks), tasks / (tasks - 1)
    return row | {
        "value": _rounded(value),
        "pure_noise": _rounded(pure),
        "debiased": _rounded(1 - pure / value) if value > 0 else None,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Estimated:
    """What the evidence of one checkpoint gives under one noise."""

    rollouts: RolloutSet  # the set that was scored
    evidence: GramEvidence  # its evidence
    by_design: ByEstimator  # estimator → design → moments
    by_estimator: Mapping[str, Estimate]  # estimator → estimate
    counts: Mapping[str, int]  # design → groups a task, under transition noise


def reference_tokens(evidence: Mapping[str, GramEvidence], design: Design) -> float:
    """Return T_ref: the tokens of a training step's rollouts, at the mean of all that were scored."""
    tokens = [evidence[rollouts.noise].tokens for rollouts in design.sets]
    total, number = sum(int(part.sum()) for part in tokens), sum(part.size for part in tokens)
    if not total:
        raise DamagedError("no rollout of the probe has a token", expected="tokens that the loss counts")
    return design.rollouts_per_step * total / number


def estimate(evidence: Mapping[str, GramEvidence], design: Design, groups: Listed) -> tuple[Estimated, ...]:
    """Estimate what figures are made of, noise by noise."""
    normalizer = reference_tokens(evidence, design)
    estimated = []
    for rollouts in design.sets:
        of_noise, regrouped = evidence[rollouts.noise], groups if rollouts.noise == TRANSITION else None
        parts = (of_noise.noise, of_noise.rewards, of_noise.weights, of_noise.gram)
        by_design = moments(*parts, flip_rate=design.flip_rate, groups=regrouped)
        by_estimator = estimates(of_noise, by_design, normalizer)
        counts = {name: len(next(iter(tasks.values()))) for name, tasks in (regrouped or {}).items()}
        estimated.append(Estimated(rollouts, of_noise, by_design, by_estimator, counts))
    return tuple(estimated)


def figure_rows(
    place: Place, estimated: Sequence[Estimated], design: Design, tables: Collection[str] = DERIVED
) -> dict[str, list[Row]]:
    """Return the rows of one checkpoint and what was scored, of every table that is asked for."""
    at = place._asdict()
    return {
        name: [at | row for of_noise in estimated for row in _rows(name, of_noise, design)] for name in tables
    }


def _rows(table: str, estimated: Estimated, design: Design) -> Iterator[Row]:
    rollouts, by_estimator, noise = estimated.rollouts, estimated.by_estimator, estimated.rollouts.noise
    ids = [f"{rollouts.pool}:{task}" for task in range(rollouts.tasks)]
    if table == PROBE:
        for name in ESTIMATORS:
            yield probe_row(estimated.evidence, name, by_estimator[name], design.flip_rate)
    elif table == INTERVALS:
        both = sides(estimated.evidence) if noise == OUTCOME else None
        how = Resampling(design.level, design.resamples, design.rng_seed, rollouts.schedules)
        for name in ESTIMATORS:
            yield from interval_rows(noise, name, by_estimator[name], both if name == MC else None, how)
    elif table == CLEAN_TASKS and noise == OUTCOME:
        both = sides(estimated.evidence)
        columns = (both.successes.tolist(), both.left.tolist(), both.right.tolist())
        for values in zip(ids, *columns, strict=True):
            yield dict(zip(CLEAN_COLUMNS, values, strict=True))
    elif table == DIAGNOSTIC_TASKS and noise == TRANSITION:
        for task, task_id in enumerate(ids):
            # Sums over groups, as the published register has them.
            yield {"task_id": task_id} | {
                f"squared_norms_{name}": max(0.0, float(second[task])) * estimated.counts[name]
                for name, second in by_estimator[MC].second.items()
            }


TOLERANCE = 1e-9
SMALLEST = 1e-6
"""Part of the largest product of two scores: where all that is summed cancels, rounding is left."""


class Identity(NamedTuple):
    """An identity and how far it is from holding."""

    name: str  # the identity
    # |left - right| over the larger side, or over `SMALLEST` of the evidence if that is larger
    residual: float


def identities(
    evidence: GramEvidence, by_design: ByEstimator, found: Mapping[str, Estimate], flip_rate: float
) -> tuple[Identity, ...]:
    """Return the identities of one checkpoint's evidence under one noise."""
    least = SMALLEST * float(np.abs(evidence.gram).max())
    listed = list(_of_means(evidence, by_design, least))
    if evidence.noise == OUTCOME:
        listed += _of_outcome(evidence, found[MC], flip_rate, least)
        listed += _of_masks(evidence, by_design, flip_rate, least)
    return tuple(listed)


def tied(estimated: Sequence[Estimated], design: Design) -> tuple[Identity, ...]:
    """Return the identities of one checkpoint, noise by noise."""
    return tuple(
        identity
        for each in estimated
        for identity in identities(each.evidence, each.by_design, each.by_estimator, design.flip_rate)
    )


def check_identities(listed: tuple[Identity, ...], where: str) -> float:
    """Check that all identities hold to a relative 1e-9, and return the largest residual."""
    for identity in listed:
        if not identity.residual <= TOLERANCE:
            problem = f"the probe's figures are not tied: {identity.name}"
            expected = f"a relative residual of at most {TOLERANCE:g}"
            remedy = "the evidence was changed, or the code that computes from it"
            raise VerificationError(
                problem, expected=expected, found=f"{identity.residual:.3g}", where=where, remedy=remedy
            )
    return max(identity.residual for identity in listed)


def _of_outcome(evidence: GramEvidence, found: Estimate, q: float, least: float) -> Iterator[Identity]:
    both = sides(evidence)
    left, right = both.left.mean(), both.right.mean()
    paired, independent = found.trace(PAIRED), found.trace(INDEPENDENT)
    # Both designs' mean gradients are (1 - q) times the clean one.
    clean = found.products[PAIRED, PAIRED].sum() / len(both.left) ** 2 / (1 - q) ** 2
    yield _tied(least, "trace_P = (1-q) L - (1-q)² M", paired.total, (1 - q) * left - (1 - q) ** 2 * clean)
    removed = q * (1 - q) * (right - left)
    yield _tied(least, "trace_I = trace_P + q(1-q)(R - L)", independent.total, paired.total + removed)
    yield _tied(least, "within_P = q(1-q) L", paired.within, q * (1 - q) * left)
    yield _tied(least, "within_I = q(1-q) R", independent.within, q * (1 - q) * right)
    yield _tied(least, "between_P = between_I", paired.between, independent.between)
    own = found.products[PAIRED, PAIRED].sum()
    for name in ((PAIRED, INDEPENDENT), (INDEPENDENT, INDEPENDENT)):
        yield _tied(least, "mean gradients agree across designs", found.products[name].sum(), own)


def _of_masks(evidence: GramEvidence, by_design: ByEstimator, q: float, least: float) -> Iterator[Identity]:
    """Compare the closed form with every mask listed."""
    if evidence.rewards.shape[1] > LARGEST_ENUMERATION:
        return
    for estimator, closed in by_design.items():
        weights = evidence.weights if estimator == SW else None
        enumerated = enumerated_outcome_moments(
            evidence.rewards, evidence.gram, q, weights=weights, standardized=estimator == SW
        )
        for name, other in ((PAIRED, enumerated.paired), (INDEPENDENT, enumerated.independent)):
            title = f"closed form = all masks, {estimator} {name}"
            yield _tied(least, title, closed[name].second.mean(), other.second.mean())


def _of_means(evidence: GramEvidence, by_design: ByEstimator, least: float) -> Iterator[Identity]:
    """Compare each task's squared mean gradient with what its own Gram matrix gives."""
    for estimator, designs in by_design.items():
        for at, design in enumerate(DESIGNS[evidence.noise]):
            c = designs[design].coefficients
            own = (c[:, :, None] * evidence.gram * c[:, None, :]).sum(axis=(1, 2))
            stored = np.diagonal(evidence.products[estimator][at, :, at, :])
            yield _tied(least, f"‖E g_t‖² = c'Kc, {estimator} {design}", own.sum(), stored.sum())
            scale = max(float(np.abs(own).max()), float(np.abs(stored).max()), least)
            worst = float(np.abs(own - stored).max())
            yield Identity(f"‖E g_t‖² = c'Kc task by task, {estimator} {design}", worst and worst / scale)


def _tied(least: float, name: str, left: object, right: object) -> Identity:
    """Return an identity; `least` is the least size that a difference is held to."""
    value, other = float(left), float(right)  # type: ignore[arg-type]
    largest = max(abs(value), abs(other), least)
    return Identity(name, abs(value - other) / largest if largest else 0.0)
