"""What a plan of runs costs: episodes, tokens, operations, time. Numbers in, numbers out.

No throughput stands here: a rate comes from runs that were measured, or from the reader.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from toolkit.lab.training.architecture import Architecture
from toolkit.lab.training.recipe import Recipe

HOUR = 3600
# Passes over a rollout's tokens, in forward passes: sampled; scored again by the trainer before the step; the
# step's own forward, its recomputation, and the backward through frozen weights, which costs one forward.
PASSES_PLAYED = 1
PASSES_TRAINED = 5


@dataclass(frozen=True)
class RunCounts:
    """What a run plays.

    Args:
        run_id: its name.
        condition, arm, seed, tier: its place in the matrix.
        steps: training steps.
        groups: groups of training.
        rollouts: rollouts of training.
        periodic: episodes of the periodic evaluations.
        final: episodes of the final evaluation.
        diagnostic: episodes of the luck-share diagnostics.
        checkpoints: steps that leave one.
    """

    run_id: str
    condition: str
    arm: str
    seed: int
    tier: int
    steps: int
    groups: int
    rollouts: int
    periodic: int
    final: int
    diagnostic: int
    checkpoints: tuple[int, ...]

    @property
    def evaluated(self) -> int:
        """Episodes that are played to evaluate."""
        return self.periodic + self.final + self.diagnostic

    @property
    def episodes(self) -> int:
        """Episodes of training and evaluation together."""
        return self.rollouts + self.evaluated


class Range(NamedTuple):
    """A quantity that is known as a range: at least, in the mean, at most; None for what is not known."""

    low: float | None
    mean: float | None
    high: float

    def times(self, factor: float) -> Self:
        """Return the range, every number of it multiplied."""
        return type(self)(*(None if value is None else value * factor for value in self))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Rate:
    """How long an episode takes, everything of a run divided among its episodes.

    Args:
        seconds: GPU-seconds an episode.
        source: what gave it.
        gpus: GPUs that one run occupies.
    """

    seconds: Range
    source: str
    gpus: int = 1


@dataclass(frozen=True)
class Schedule:
    """Runs, one after the other, on some GPUs.

    Args:
        gpus: how many there are.
        slots: runs that are at work at once; 0 where no run fits.
        hours: from the first launch to the last end; None where no run fits.
        gpu_hours: of all runs; None where no run fits.
    """

    gpus: int
    slots: int
    hours: Range | None
    gpu_hours: Range | None


def measured_rate(runs: Iterable[tuple[float, int]], source: str) -> Rate:
    """Return the rate of runs that were measured on one GPU each."""
    measured = list(runs)
    each = [seconds / episodes for seconds, episodes in measured]
    mean = sum(seconds for seconds, _ in measured) / sum(episodes for _, episodes in measured)
    return Rate(Range(min(each), mean, max(each)), source)


def rate_of_step(recipe: Recipe, seconds: float, gpus: int) -> Rate:
    """Return the rate that the duration of a training step means, a whole step with its rollouts.

    An evaluation's episode is taken to cost what a training rollout does, which has a backward pass besides:
    so no less than it does.
    """
    each = gpus * seconds / (recipe.step.prompts * recipe.step.rollouts)
    return Rate(Range(None, None, each), f"{seconds:g} seconds a step, as given", gpus)


def rate_of_tokens(recipe: Recipe, tokens_per_second: float, gpus: int = 1) -> Rate:
    """Return the rate that a number of tokens a second means: at most, as every episode may end early."""
    each = gpus * recipe.sampling.max_completion_tokens / tokens_per_second
    return Rate(
        Range(None, None, each),
        f"{tokens_per_second:g} tokens a second, as given, and episodes of "
        f"{recipe.sampling.max_completion_tokens:,} tokens, the most that there can be",
        gpus,
    )


def rescaled(rate: Rate, measured: Architecture, other: Architecture, gpus: int) -> Rate:
    """Return a rate for another model: a range between two assumptions, as nothing was measured.

    One is that a run takes as long as it did, on as many GPUs as hold the model: where waiting and memory
    decide. The other is that GPU-seconds grow like operations a token: where computing decides.
    """
    operations = other.forward_operations() / measured.forward_operations()
    least, most = min(gpus, operations), max(gpus, operations)
    low = None if rate.seconds.low is None else rate.seconds.low * least
    return Rate(
        Range(low, None, rate.seconds.high * most),
        f"{rate.source}; from as long a run on {gpus} GPUs to {operations:.3g} times the operations a token",
        gpus,
    )


def run_hours(run: RunCounts, rate: Rate) -> Range:
    """Return how long a run takes, in hours."""
    return rate.seconds.times(run.episodes / rate.gpus / HOUR)


def schedule(runs: Sequence[RunCounts], rate: Rate, gpus: int) -> Schedule:
    """Return how long runs take on some GPUs, each run whole: nothing was measured of one on several."""
    slots = min(gpus // rate.gpus, len(runs))
    if not slots:
        return Schedule(gpus, 0, None, None)
    hours = [run_hours(run, rate) for run in runs]
    ends = [
        None if any(range_[i] is None for range_ in hours) else makespan([h[i] or 0.0 for h in hours], slots)
        for i in range(3)
    ]
    longest = Range(ends[0], ends[1], ends[2] or 0.0)
    busy = rate.seconds.times(sum(run.episodes for run in runs) / HOUR)
    return Schedule(gpus, slots, longest, busy)


def makespan(durations: Iterable[float], slots: int) -> float:
    """Return when the last of some jobs ends, the longest first, each where there is room first.

    Source:
        Graham 1969, longest processing time first: at most 4/3 - 1/(3 slots) of the shortest possible.
    """
    ends = [0.0] * slots
    for duration in sorted(durations, reverse=True):
        heapq.heapreplace(ends, ends[0] + duration)
    return max(ends)


def most_tokens(runs: Iterable[RunCounts], recipe: Recipe) -> tuple[int, int]:
    """Return the most tokens of sequences that training and evaluation can have, prompts included."""
    counted = list(runs)
    return (
        sum(run.rollouts for run in counted) * recipe.sampling.context,
        sum(run.evaluated for run in counted) * recipe.sampling.context,
    )


def most_operations(runs: Iterable[RunCounts], recipe: Recipe, model: Architecture) -> int:
    """Return the most operations that runs can need, each token of a sequence passed once a pass.

    What attention does between tokens is left out, as is what an engine computes again when a tool has
    answered and its cache was lost.
    """
    trained, evaluated = most_tokens(runs, recipe)
    passes = trained * PASSES_TRAINED + evaluated * PASSES_PLAYED
    return passes * model.forward_operations()
