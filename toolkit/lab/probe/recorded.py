"""What was recorded of one task's rollouts when they were sampled: all that a score and its use need."""

from dataclasses import dataclass
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.probe.design import RolloutSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Transcript:
    """The tokens of one rollout, from the first of its prompt to its last."""

    tokens: tuple[int, ...]  # token numbers as the model's tokenizer gives them, each 0 or more
    # For each token, whether the policy sampled it: False for those of prompts and tool results
    chosen: tuple[bool, ...]

    def __post_init__(self) -> None:
        tokens, marks = f"{len(self.tokens)} tokens", f"{len(self.chosen)} marks"
        if len(self.tokens) != len(self.chosen):
            problem, remedy = "says of each token whether the policy chose it", "give a mark for every token"
        elif any(token < 0 for token in self.tokens):
            problem, remedy = "has a negative token number", "give token numbers as the tokenizer does"
        elif not any(self.chosen):
            problem, remedy = "in which the policy chose no token has no score", "leave out such rollouts"
        elif self.chosen[0]:
            problem = "begins with a chosen token, which has no prefix"
            remedy = "put the prompt before the tokens that the policy sampled"
        else:
            return
        raise UsageError(f"a transcript {problem}", found=f"{tokens}, {marks}", remedy=remedy)

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Return the position that each chosen token was predicted at, the one before it, and the token."""
        places = ((at, after) for at, (_, after) in enumerate(pairwise(self.tokens)))
        return tuple(compress(places, self.chosen[1:]))


@dataclass(frozen=True)
class Recorded:
    """The N rollouts of one task under one noise, schedule by schedule."""

    transcripts: tuple[Transcript, ...]  # their tokens
    rewards: tuple[float, ...]  # true outcome of each, 0 or 1; grader flips are put on afterwards, exactly
    # Importance weight of each as the sampler recorded it, 0 or more; 0 where it was masked
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        lengths = len(self.transcripts), len(self.rewards), len(self.weights)
        if len(set(lengths)) > 1:
            problem = "each rollout of a task has a transcript, a reward and an importance weight"
            found = "{} transcripts, {} rewards, {} weights".format(*lengths)
            remedy = "give all that was recorded of every rollout, in one order"
            raise UsageError(problem, expected="three lists of one length", found=found, remedy=remedy)
        check_rewards(self.rewards)
        check_weights(self.weights)

    @property
    def tokens(self) -> NDArray[np.int64]:
        """Return how many tokens of each rollout the policy chose and the loss counts, shape (N,)."""
        return np.array([len(transcript.choices) for transcript in self.transcripts], dtype=np.int64)


def check_rewards(rewards: tuple[float, ...] | Array) -> None:
    """Refuse a reward that is neither 0 nor 1."""
    values = np.asarray(rewards, dtype=float)
    _check(values, (values == 0) | (values == 1), "a reward is not an outcome", "0 or 1")


def check_weights(weights: tuple[float, ...] | Array) -> None:
    """Refuse an importance weight that is negative or not finite."""
    values = np.asarray(weights, dtype=float)
    good = np.isfinite(values) & (values >= 0)
    _check(values, good, "an importance weight is not a ratio", "a finite number, 0 or more")


def check_number(found: int, rollouts: RolloutSet, task: int, group: int) -> None:
    """Refuse another number of rollouts than a task of the set has."""
    if found == rollouts.rollouts:
        return
    where = f"{rollouts.noise} noise, task {rollouts.pool}:{task}"
    expected = f"{rollouts.rollouts} rollouts: {rollouts.schedules} schedules × {rollouts.per_schedule}"
    if found > rollouts.rollouts:
        raise UsageError(
            "a task has more rollouts than the probe's set", expected=expected, found=found, where=where
        )
    whole, part = divmod(found, rollouts.per_schedule)
    if found < group:
        problem = "a task has fewer rollouts than a group"
    elif part:
        problem = "a schedule of a task lacks rollouts"
    else:
        problem = f"a task lacks {rollouts.schedules - whole} of its schedules"
    remedy = "sample every rollout of the probe's set; one that was masked stays, with weight 0"
    raise IncompleteError(problem, expected=expected, found=found, where=where, remedy=remedy)


def _check(values: Array, good: NDArray[np.bool_], problem: str, expected: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        raise DamagedError(problem, expected=expected, found=float(values[at]), where=f"rollout {at}")
