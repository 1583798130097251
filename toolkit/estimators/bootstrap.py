"""The registered interval: percentile bootstrap over seed pairs and tasks, and what checks it.

A task stands for all its schedules: its differences are averaged over schedules and steps before anything is
resampled, and episodes are never pooled as independent samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_SAMPLE = 2
LARGEST_ENUMERATION = 8
# An end's error is the slope of the order statistics over this many errors on either side: over one, sums of
# few episodes, which lie on a lattice, often have no slope at all, or half of it.
ERRORS_AROUND = 4
# An end of an interval nearer to a threshold than this many of its Monte Carlo errors could fall on the
# other side with other random numbers: a normal deviate exceeds it about once in 370 times.
CLOSE_ERRORS = 3
# Doubles hold every whole number up to here.
LARGEST_WHOLE = 2**53


@dataclass(frozen=True)
class BootstrapWeights:
    """One set of resamples, to be shared by every endpoint on the same seeds and tasks."""

    seeds: NDArray[np.float64]  # weight of each seed pair in each resample, shape (B, S); rows sum to one
    tasks: NDArray[np.float64]  # weight of each task in each resample, shape (B, T); rows sum to one
    rng_seed: int  # seed that the resamples were drawn with


@dataclass(frozen=True)
class BootstrapInterval:
    """A percentile interval of the mean difference."""

    estimate: float  # mean difference, in the unit of the differences
    low: float  # lower end
    high: float  # upper end
    low_error: float | None  # Monte Carlo standard error of the lower end; None where it is not estimated
    high_error: float | None  # Monte Carlo standard error of the upper end; None where it is not estimated
    level: float  # confidence level
    unit: str  # what was resampled


def draw_weights(seeds: int, tasks: int, resamples: int, rng_seed: int) -> BootstrapWeights:
    """Draw resamples of S >= 2 seed pairs and T >= 2 tasks, with replacement, independent of each other.

    Source: registered analysis plan: 10,000 resamples; seeds with replacement as (paired, independent) pairs;
    tasks with replacement with all their schedules.
    """
    if min(seeds, tasks) < SMALLEST_SAMPLE or resamples < 1:
        raise ValueError(
            f"expected two seeds and tasks at least, found {seeds}, {tasks}, {resamples} resamples"
        )
    stream = np.random.SeedSequence(rng_seed).spawn(2)[0]
    drawn = _counts(np.random.default_rng(stream), seeds, resamples) / seeds
    return BootstrapWeights(drawn, draw_tasks(tasks, resamples, rng_seed) / tasks, rng_seed)


def draw_tasks(tasks: int, resamples: int, rng_seed: int) -> NDArray[np.float64]:
    """Draw T >= 2 tasks with replacement, as `draw_weights` draws them with this seed.

    Returns how often each task occurs in each resample, shape (B, T): whole numbers; rows sum to T.

    Source: as `draw_weights`.
    """
    if tasks < SMALLEST_SAMPLE or resamples < 1:
        raise ValueError(f"expected two tasks and a resample at least, found {tasks} and {resamples}")
    stream = np.random.SeedSequence(rng_seed).spawn(2)[1]
    return _counts(np.random.default_rng(stream), tasks, resamples)


def crossed_bootstrap(differences: ArrayLike, weights: BootstrapWeights, level: float) -> BootstrapInterval:
    """Percentile interval with one draw of tasks shared by all seeds: the registered interval.

    `differences` are paired minus independent, shape (S, T): seed pair, task; `weights` are for S and T.

    Source: paper sec:protocol, "Evaluation". Crossed, because every run is evaluated on the same tasks and
    schedules.
    """
    return crossed_bootstraps([differences], weights, level)[0]


def crossed_bootstraps(
    tables: Sequence[ArrayLike], weights: BootstrapWeights, level: float
) -> tuple[BootstrapInterval, ...]:
    """The intervals of `crossed_bootstrap` for tables that share their resamples, in order, to rounding.

    One matrix product serves all endpoints; it takes E × S × B numbers of memory for E tables.

    Source: as `crossed_bootstrap`.
    """
    checked = [_differences(table, level) for table in tables]
    fitting = (weights.seeds.shape[1], weights.tasks.shape[1])
    for d in checked:
        if d.shape != fitting:
            raise ValueError(f"the weights are for {fitting[0]} × {fitting[1]}, found {d.shape}")
    if not checked:
        return ()
    # Tasks first: a product with S rows a table instead of one with T.
    by_seed = np.concatenate(checked) @ weights.tasks.T
    by_seed = by_seed.reshape(len(checked), fitting[0], -1)
    means = np.einsum("esb,sb->eb", by_seed, weights.seeds.T)
    estimates = [float(d.mean()) for d in checked]
    return percentiles(estimates, means, level, "seed pairs and tasks, crossed")


def nested_bootstrap(
    differences: ArrayLike, resamples: int, rng_seed: int, level: float
) -> BootstrapInterval:
    """Percentile interval with tasks drawn anew for every drawn seed: the other reading, shown beside.

    `differences` are paired minus independent, shape (S, T).

    Source: registered analysis plan, read seed by seed.
    """
    d = _differences(differences, level)
    seeds, tasks = d.shape
    if resamples < 1:
        raise ValueError(f"expected a resample at least, found {resamples}")
    seed_stream, task_stream = (np.random.default_rng(s) for s in np.random.SeedSequence(rng_seed).spawn(2))
    drawn = seed_stream.integers(0, seeds, (resamples, seeds))
    means = np.zeros(resamples)
    for slot in range(seeds):  # a slot at a time, so that memory stays at B × T
        within = _counts(task_stream, tasks, resamples) / tasks
        means += np.einsum("bt,bt->b", d[drawn[:, slot]], within) / seeds
    return percentiles([float(d.mean())], means[None], level, "seed pairs, and tasks within each")[0]


def bootstrap_variance(differences: ArrayLike) -> tuple[float, float]:
    """Variance of the bootstrap mean of differences (S, T), crossed and nested, without random numbers.

    Crossed v_seed/S + v_task/T + v_resid/(ST), and nested v_seed/S + (mean within-seed variance)/(ST), with
    plug-in variances (divisor n), in squared units.

    Source: moments of multinomial weights; exact for infinitely many resamples.
    """
    d = _differences(differences, 0.5)
    seeds, tasks = d.shape
    by_seed, by_task, mean = d.mean(axis=1), d.mean(axis=0), d.mean()
    residual = d - by_seed[:, None] - by_task[None, :] + mean
    crossed = by_seed.var() / seeds + by_task.var() / tasks + (residual**2).mean() / d.size
    nested = by_seed.var() / seeds + d.var(axis=1).mean() / d.size
    return float(crossed), float(nested)


def seed_enumerated_bootstrap(
    differences: ArrayLike, weights: BootstrapWeights, level: float
) -> BootstrapInterval:
    """The crossed interval of differences (S, T), S <= 8, with every draw of seeds listed instead of sampled.

    There is less Monte Carlo noise; only the task weights are used.

    Source: the S^S equally likely draws of seeds, grouped by how often each seed occurs.
    """
    d = _differences(differences, level)
    seeds = len(d)
    if seeds > LARGEST_ENUMERATION or d.shape[1] != weights.tasks.shape[1]:
        raise ValueError(
            f"expected at most {LARGEST_ENUMERATION} seeds and the weights' tasks, found {d.shape}"
        )
    by_seed = weights.tasks @ d.T
    values, chances = [], []
    for draw in combinations_with_replacement(range(seeds), seeds):
        counts = np.bincount(draw, minlength=seeds)
        ways = math.factorial(seeds) / math.prod(math.factorial(int(c)) for c in counts)
        values.append(by_seed @ counts / seeds)
        chances.append(np.full(len(by_seed), ways / seeds**seeds / len(by_seed)))
    means, weight = np.concatenate(values), np.concatenate(chances)
    order = np.argsort(means, kind="stable")
    cumulative = np.cumsum(weight[order])
    ends = [float(means[order][np.searchsorted(cumulative, tail)]) for tail in _tails(level)]
    unit = "seed pairs listed, tasks crossed"
    return BootstrapInterval(float(d.mean()), ends[0], ends[1], None, None, level, unit)


def _differences(differences: ArrayLike, level: float) -> NDArray[np.float64]:
    d = np.asarray(differences, dtype=float)
    if d.ndim != 2 or min(d.shape) < SMALLEST_SAMPLE:  # noqa: PLR2004 - a table
        raise ValueError(f"expected seed pairs × tasks, two of each at least, found shape {d.shape}")
    if not np.isfinite(d).all():
        raise ValueError("a difference is missing or not finite")
    check_level(level)
    return d


def check_level(level: float) -> None:
    """Check that a confidence level lies between zero and one."""
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, found {level}")


def _counts(rng: np.random.Generator, size: int, resamples: int) -> NDArray[np.float64]:
    """Return how often each of `size` members occurs in each resample, shape (B, size).

    Resamples lie side by side in memory: sums over members then run along them.
    """
    drawn = rng.integers(0, size, (size, resamples)) * resamples + np.arange(resamples)
    counts = np.bincount(drawn.ravel(), minlength=resamples * size).astype(float)
    return counts.reshape(size, resamples).T


def _tails(level: float) -> tuple[float, float]:
    return (1 - level) / 2, (1 + level) / 2


def percentiles(
    estimates: Sequence[float], means: NDArray[np.float64], level: float, unit: str
) -> tuple[BootstrapInterval, ...]:
    """Percentile intervals of E estimates by their numbers on each resample, shape (E, B), sorted in place.

    The ends' errors come from the slope of the order statistics around them.
    """
    shares = _tails(level)
    errors = [math.sqrt(means.shape[1] * tail * (1 - tail)) for tail in shares]
    ends = ends_at(means, shares, errors)
    return tuple(BootstrapInterval(e, *of, level, unit) for e, of in zip(estimates, ends, strict=True))


def ends_at(
    means: NDArray[np.float64], below: Sequence[float], errors_below: Sequence[float]
) -> list[tuple[float, float, float, float]]:
    """Ends of intervals of numbers (E, B), sorted in place, with given shares of the resamples below them.

    `errors_below` are the shares' Monte Carlo standard errors, times B. Returns lower and upper end and their
    errors, a row each.
    """
    last = means.shape[1] - 1
    positions: list[int] = []
    shares: list[float] = []
    errors: list[float] = []  # in positions around an end
    for tail, error in zip(below, errors_below, strict=True):
        around = (-ERRORS_AROUND * error, ERRORS_AROUND * error)
        under, over = (min(max(round(tail * last + step), 0), last) for step in around)
        positions += [math.floor(tail * last), math.ceil(tail * last), under, over]
        shares.append(tail * last - math.floor(tail * last))
        errors.append(error / max(over - under, 1))
    # Numpy sorts numbers with vector instructions and partitions them at several places without: on
    # 10,000 resamples the sort takes a third of the time.
    means.sort(axis=1)
    found = []
    for ends in means[:, positions].reshape(-1, 2, 4).tolist():
        low, high = (
            under + share * (over - under) for share, (under, over, _, _) in zip(shares, ends, strict=True)
        )
        low_error, high_error = (
            error * (above - beneath) for error, (_, _, beneath, above) in zip(errors, ends, strict=True)
        )
        found.append((low, high, low_error, high_error))
    return found


def counted_bootstrap(
    numerators: ArrayLike, denominator: int, weights: BootstrapWeights, level: float
) -> BootstrapInterval:
    """The interval of `crossed_bootstrap` for whole numerators (S, T) that share a denominator >= 1.

    A resample's sum over seeds and tasks is a whole number and exact in any order of summation, which a
    matrix product chooses by processor: only the percentile and one division round. Sums beyond 2^53 are
    refused.

    Source: paper sec:protocol, "Evaluation", as `crossed_bootstrap`.
    """
    table = np.asarray(numerators, dtype=float)
    size = weights.seeds.shape[1] * weights.tasks.shape[1]
    if denominator < 1 or not np.array_equal(table, np.rint(table)):
        raise ValueError("expected whole numerators over a denominator of at least one")
    if table.size and np.abs(table).max() * size >= LARGEST_WHOLE:
        raise ValueError("the sums are too large to be exact")
    times = BootstrapWeights(
        np.rint(weights.seeds * weights.seeds.shape[1]),
        np.rint(weights.tasks * weights.tasks.shape[1]),
        weights.rng_seed,
    )
    interval = crossed_bootstrap(table, times, level)
    estimate = float(table.sum()) / (table.size * denominator)
    return replace(divided(interval, size * denominator), estimate=estimate)


def divided(interval: BootstrapInterval, denominator: int) -> BootstrapInterval:
    """Return an interval of sums as one of means."""
    return replace(
        interval,
        estimate=interval.estimate / denominator,
        low=interval.low / denominator,
        high=interval.high / denominator,
        low_error=None if interval.low_error is None else interval.low_error / denominator,
        high_error=None if interval.high_error is None else interval.high_error / denominator,
    )


def draw_seeds(seeds: int, resamples: int, rng_seed: int) -> NDArray[np.int64]:
    """Draw S >= 2 seeds with replacement, as `draw_weights` draws seed pairs with the seed: positions (B, S).

    Source: Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979).
    """
    if seeds < SMALLEST_SAMPLE or resamples < 1:
        raise ValueError(f"expected two seeds and a resample at least, found {seeds} and {resamples}")
    stream = np.random.SeedSequence(rng_seed).spawn(2)[0]
    return np.random.default_rng(stream).integers(0, seeds, (seeds, resamples)).T


def percentile_interval(estimate: float, values: ArrayLike, level: float) -> BootstrapInterval:
    """Percentile interval of an estimate by its values (B,) on every resample, with Monte Carlo errors.

    Source: as `crossed_bootstrap`: the same ends of the same order statistics.
    """
    given = np.array(values, dtype=float)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all():
        raise ValueError(f"expected one finite value a resample, found shape {given.shape}")
    check_level(level)
    return percentiles([estimate], given[None], level, "seeds")[0]
