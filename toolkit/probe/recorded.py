"""What was recorded of one task's rollouts when they were sampled: all that a score and its use need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from toolkit.errors import DamagedError, IncompleteError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from toolkit.probe.design import RolloutSet
    from toolkit.probe.transcript import Transcript

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Recorded:
    """The N rollouts of one task under one noise, schedule by schedule.

    Args:
        transcripts: their tokens.
        rewards: true outcome of each, 0 or 1; grader flips are put on afterwards, exactly.
        weights: importance weight of each as the sampler recorded it, 0 or more; 0 where it was masked.

    Raises:
        UsageError: the three differ in length.
        DamagedError: a reward is neither 0 nor 1, or a weight is negative or not finite.

    Source:
        Paper app:probe, "Estimators": the recorded importance weight, "zero when masked".
    """

    transcripts: tuple[Transcript, ...]
    rewards: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        lengths = len(self.transcripts), len(self.rewards), len(self.weights)
        if len(set(lengths)) > 1:
            raise UsageError(
                "each rollout of a task has a transcript, a reward and an importance weight",
                expected="three lists of one length",
                found="{} transcripts, {} rewards, {} weights".format(*lengths),
                remedy="give all that was recorded of every rollout, in one order",
            )
        check_rewards(self.rewards)
        check_weights(self.weights)

    @property
    def tokens(self) -> NDArray[np.int64]:
        """Return how many tokens of each rollout the policy chose and the loss counts, shape (N,)."""
        return np.array([len(transcript.choices) for transcript in self.transcripts], dtype=np.int64)


def check_rewards(rewards: tuple[float, ...] | Array) -> None:
    """Refuse a reward that is neither 0 nor 1.

    Raises:
        DamagedError: naming the first such rollout.
    """
    values = np.asarray(rewards, dtype=float)
    _check(values, (values == 0) | (values == 1), "a reward is not an outcome", "0 or 1")


def check_weights(weights: tuple[float, ...] | Array) -> None:
    """Refuse an importance weight that is negative or not finite.

    Raises:
        DamagedError: naming the first such rollout.
    """
    values = np.asarray(weights, dtype=float)
    good = np.isfinite(values) & (values >= 0)
    _check(values, good, "an importance weight is not a ratio", "a finite number, 0 or more")


def check_number(found: int, rollouts: RolloutSet, task: int, group: int) -> None:
    """Refuse another number of rollouts than a task of the set has.

    Args:
        found: rollouts that were recorded.
        rollouts: the set.
        task: position of the task.
        group: rollouts in a group, G.

    Raises:
        IncompleteError: fewer than a group; or a schedule, or part of one, is missing.
        UsageError: there are more than the set has.
    """
    if found == rollouts.rollouts:
        return
    where = f"{rollouts.noise} noise, task {rollouts.pool}:{task}"
    expected = f"{rollouts.rollouts} rollouts: {rollouts.schedules} schedules × {rollouts.per_schedule}"
    if found > rollouts.rollouts:
        raise UsageError(
            "a task has more rollouts than the probe's set",
            expected=expected,
            found=found,
            where=where,
            remedy="give the rollouts of the set, and freeze a larger one for more",
        )
    whole, part = divmod(found, rollouts.per_schedule)
    if found < group:
        problem = "a task has fewer rollouts than a group"
    elif part:
        problem = "a schedule of a task lacks rollouts"
    else:
        problem = f"a task lacks {rollouts.schedules - whole} of its schedules"
    raise IncompleteError(
        problem,
        expected=expected,
        found=found,
        where=where,
        remedy="sample every rollout of the probe's set; one that was masked stays, with weight 0",
    )


def _check(values: Array, good: NDArray[np.bool_], problem: str, expected: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        raise DamagedError(problem, expected=expected, found=float(values[at]), where=f"rollout {at}")
