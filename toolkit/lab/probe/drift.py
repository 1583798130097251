"""Training groups of both designs, played by one policy: what a step's gradient is made of, group by group.

1. Both designs meet the same tasks: all of the training pool in a random order, then all again in the same
   order. A row's schedules are those of its design; what the policy samples is each design's own.
2. A group's gradient is (1/G) Σ_i (r_i - mean r) S_i, exact and unscaled. The divisor that scaling takes is
   kept beside it, so that groups that were played once serve every scaling, batch and optimizer.

Memory: 8 bytes a coordinate and group, both designs together 16; 6,000 groups of 414 coordinates take 40 MB.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators.advantages import EPSILON
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Choice, Policy
from toolkit.lab.tasks.pools import POOLS, load_task
from toolkit.noise.draws import DESIGNS, Design, group_seeds
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import Stream, drift_seed, order_seed, rollout_seed, row_seed

Array = NDArray[np.float64]

POOL = "train"
ROUNDING = 2.0**-40
"""More than a sum of thousands of products rounds, and far less than any probability leaves of them."""
CHUNK = 256
"""Groups whose weights are multiplied at a time: a few megabytes."""


@dataclass(frozen=True)
class Groups:
    """Groups of one design."""

    numbers: NDArray[np.int64]  # which groups they are, shape (N,); the task follows from it
    # (1/G) Σ_i (r_i - mean r) S_i of each, shape (N, P); zero where its rewards are constant
    gradients: Array
    divisors: Array  # standard deviation of its rewards plus ε, shape (N,); 1 where they are constant
    symbols: Array  # decisions and tokens of its rollouts, shape (N,)
    varied: NDArray[np.bool_]  # whether its rewards vary, shape (N,)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return parts as one, in their order."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def play_groups(policy: Policy, regime: str, size: int, name: str, numbers: range) -> dict[Design, Groups]:
    """Play training groups of both designs on the same tasks."""
    return {design: _played(policy, regime, size, name, numbers, design=design) for design in DESIGNS}


def _played(policy: Policy, regime: str, size: int, name: str, numbers: range, *, design: Design) -> Groups:
    run, sampling = drift_seed(name), drift_seed(name, design)
    scores = _Scores(policy)
    divisors, symbols = np.ones(len(numbers)), np.zeros(len(numbers))
    varied = np.zeros(len(numbers), dtype=bool)
    for at, number in enumerate(numbers):
        epoch, position = divmod(number, POOLS[POOL].size)
        task = load_task(f"{POOL}:{_order(run)[position]}")
        rollouts, rewards = [], []
        for slot, schedule in enumerate(group_seeds(design, row_seed(run, epoch, position), size)):
            rollout = Rollout(policy, rollout_seed(sampling, epoch, position, slot))
            rewards.append(play(task, REGIMES[regime], schedule, rollout).observed_reward)
            rollouts.append(rollout)
        symbols[at] = sum(len(rollout.decisions) + len(rollout.tokens) for rollout in rollouts)
        ones = sum(rewards)
        varied[at] = 0 < ones < size
        if varied[at]:
            divisors[at] = sqrt(ones * (size - ones) / (size * (size - 1))) + EPSILON
            for rollout, reward in zip(rollouts, rewards, strict=True):
                scores.add(at, rollout, (reward - ones / size) / size)
    return Groups(np.array(numbers), scores.weighted(len(numbers)), divisors, symbols, varied)


def weighted_sums(weights: Array, vectors: Array) -> Array:
    """Return weighted sums of vectors, exactly zero where what is left is within rounding.

    Adam takes a step of full size along a coordinate however small its gradient is: rounding where a sum
    cancels must not be taken for one.

    Source:
        The error of a sum of n products is at most n · 2^-53 times the sum of their absolute values.
    """
    sums: Array = weights @ vectors
    sums[np.abs(sums) <= ROUNDING * (np.abs(weights) @ np.abs(vectors))] = 0.0
    return sums


@lru_cache(maxsize=8)
def _order(run: int) -> tuple[int, ...]:
    return tuple(Stream(order_seed(run, 0)).shuffled(range(POOLS[POOL].size)))


class _Scores:
    """Weighted sums of scores, group by group: weights by option of a choice first, then one product."""

    def __init__(self, policy: Policy) -> None:
        self._size = policy.layout.size
        self._first: dict[Choice, int] = {}
        self._options = 0
        self._groups: list[int] = []
        self._columns: list[int] = []
        self._weights: list[float] = []

    def add(self, group: int, rollout: Rollout, weight: float) -> None:
        """Add a rollout's score to a group's sum, weighted."""
        for choices in (rollout.decisions, rollout.tokens):
            for choice, at in choices:
                first = self._first.get(choice)
                if first is None:
                    first = self._first[choice] = self._options
                    self._options += len(choice.probabilities)
                self._columns.append(first + at)
            self._groups += [group] * len(choices)
            self._weights += [weight] * len(choices)

    def weighted(self, groups: int) -> Array:
        """Return the sums, shape (groups, P)."""
        each, sums = self._of_options(), np.zeros((groups, self._size))
        rows, columns = (np.array(of, dtype=np.int64) for of in (self._groups, self._columns))
        weights = np.array(self._weights)
        for start in range(0, groups, CHUNK):
            within = slice(*np.searchsorted(rows, [start, start + CHUNK]))
            height = min(CHUNK, groups - start)
            at = (rows[within] - start) * self._options + columns[within]
            table: Array = np.bincount(at, weights[within], minlength=height * self._options).astype(float)
            sums[start : start + height] = weighted_sums(table.reshape(height, self._options), each)
        return sums

    def _of_options(self) -> Array:
        """Return ∇ log π of every option of every choice met, shape (options, P)."""
        each = np.zeros((self._options, self._size))
        for choice, first in self._first.items():
            on = np.zeros((len(choice.probabilities), self._size))
            for option, places in enumerate(choice.positions):
                on[option, list(places)] = 1.0
            each[first : first + len(on)] = on - np.array(choice.probabilities) @ on
        return each
