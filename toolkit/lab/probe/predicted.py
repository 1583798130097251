"""What played groups predict for training: how each design's gradient varies, and its drift.

Groups of both designs are played on the same tasks by one policy; their gradients are exact and unscaled, so
that groups that were played once serve every scaling, batch and optimizer.

1. A cell of settings makes gradients of the played groups: scaled or not, constant groups kept or dropped.
2. Where a step's sum is divided by its own decisions and tokens (`dapo`), groups are put together to steps,
   B at a time, and a step counts as a group does otherwise. A divisor that is the same for every step
   (`dr_grpo`) cancels in every ratio; variances are then those of groups over B.
3. Blocks of tasks are the unit: all groups of a block in both designs are resampled, or left out, together.
4. Progress is measured along the mean unscaled gradient of both designs, the direction in which the expected
   reward rises. Products of different blocks keep it unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import IncompleteError, UsageError
from toolkit.estimators import drift_interval, task_uncertainties
from toolkit.estimators.advantages import EPSILON
from toolkit.estimators.coordinates import TaskSums
from toolkit.estimators.taskwise import TaskUncertainty
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Choice, Policy
from toolkit.lab.probe.advice import DesignCounts, Optimizer, Uncertain, uncertain
from toolkit.lab.tasks.pools import POOLS, load_task
from toolkit.noise.draws import DESIGNS, Design, group_seeds
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import Stream, drift_seed, order_seed, rollout_seed, row_seed
from toolkit.structs import Document, Shown, about, inlined

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

    Adam takes a step of full size along a coordinate however small its gradient is. The error of a sum of n
    products is at most n · 2^-53 times the sum of their absolute values.
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
        # ∇ log π of every option of every choice met, shape (options, P).
        each = np.zeros((self._options, self._size))
        for choice, first in self._first.items():
            on = np.zeros((len(choice.probabilities), self._size))
            for option, places in enumerate(choice.positions):
                on[option, list(places)] = 1.0
            each[first : first + len(on)] = on - np.array(choice.probabilities) @ on
        sums = np.zeros((groups, self._size))
        rows, columns = (np.array(of, dtype=np.int64) for of in (self._groups, self._columns))
        weights = np.array(self._weights)
        for start in range(0, groups, CHUNK):
            within = slice(*np.searchsorted(rows, [start, start + CHUNK]))
            height = min(CHUNK, groups - start)
            at = (rows[within] - start) * self._options + columns[within]
            table: Array = np.bincount(at, weights[within], minlength=height * self._options).astype(float)
            sums[start : start + height] = weighted_sums(table.reshape(height, self._options), each)
        return sums


BLOCK = 8
"""Tasks of a block at least: 250 blocks of the training pool, which keeps resampling quick."""
EPOCHS = 6
"""Times that a block's tasks are met so that, with half of its groups dropped, it holds some steps."""
STRONGEST = 20
"""Coordinates with most signal; they hold 96 % of it in the untrained policy under faults."""
LEVEL, RESAMPLES, RNG_SEED = 0.95, 2000, 24
SPREAD = ("trace", "along", "strongest")
ALLOWED = {
    "regime": REGIMES,
    "scale_rewards": ("group", "none"),
    "constant_groups": ("kept", "resampled"),
    "loss_type": ("dapo", "dr_grpo"),
    "optimizer": ("adam", "gradient", "sign"),
}


class Cell(Document, frozen=True):
    """Settings of training whose drift is predicted, named as in a run's specification."""

    regime: Annotated[str, about("The noise.")] = "faults_p025"
    group_size: Annotated[int, about("Rollouts a group, G.")] = 8
    surface_tokens: Annotated[int, about("V.")] = 16
    scale_rewards: Annotated[
        str,
        Shown(
            "scale_rewards",
            Literal["group", "none"],
            "Whether advantages are divided by their group's standard deviation.",
        ),
    ] = "group"
    constant_groups: Annotated[
        str,
        Shown(
            "constant_groups",
            Literal["kept", "resampled"],
            "What becomes of groups whose rewards are constant.",
        ),
    ] = "kept"
    loss_type: Annotated[
        str, Shown("loss_type", Literal["dapo", "dr_grpo"], "What divides a step's sum.")
    ] = "dapo"
    prompts_per_step: Annotated[int, about("Groups a step, B.")] = 24
    optimizer: Annotated[str, Shown("optimizer", Optimizer, "What takes a step.")] = "adam"

    @property
    def played(self) -> tuple[str, int, int]:
        """Noise, G and V: what has to be played for it."""
        return self.regime, self.group_size, self.surface_tokens


class DesignFigures(Document, frozen=True):
    """Figures of one design."""

    groups: Annotated[int, about("That were played.")]
    constant: Annotated[float, about("Share of them whose rewards are constant.")]
    draws: Annotated[float, about("Groups played for one that counts.")]
    symbols: Annotated[float, about("Decisions and tokens a group.")]
    trace: Annotated[float, about("Covariance trace of a group's gradient.")]
    along: Annotated[float, about("Its variance along the mean gradient.")]
    strongest: Annotated[float, about("Its variance on the coordinates with most signal, summed.")]
    drift: Annotated[float, about("Expected progress a step, in units of the learning rate.")]


class DesignsFigures(Document, frozen=True):
    """Figures of both designs."""

    paired: DesignFigures
    independent: DesignFigures


class Ratios(Document, frozen=True):
    """Paired over independent."""

    trace: Uncertain
    along: Uncertain
    strongest: Uncertain
    drift: Uncertain


class Prediction(Document, frozen=True, kw_only=True):
    """What is predicted under some settings."""

    cell: Annotated[Cell, *inlined(Cell)]
    level: Annotated[float, about("Confidence level.")] = LEVEL
    blocks: Annotated[int, about("Blocks of tasks that the intervals rest on.")]
    tasks: Annotated[int, about("Tasks of the blocks.")]
    steps: Annotated[
        Mapping[str, int], Shown("steps", DesignCounts, "Groups, or steps, that give the drift.")
    ]
    designs: Annotated[Mapping[Design, DesignFigures], Shown("designs", DesignsFigures, "")]
    ratios: Annotated[Mapping[str, TaskUncertainty], Shown("ratios", Ratios, "", uncertain)]


class PlayingPolicy(Document, frozen=True):
    """A checkpoint that played."""

    study: Annotated[str, about("Name of the study.")]
    run: Annotated[str, about("Name of the run.")]
    step: Annotated[int, about("Of the checkpoint.")]


class PredictedDrift(Document, frozen=True):
    """How fast training with each design will learn, from played groups."""

    policy: Annotated[PlayingPolicy | None, about("Null for the untrained policy.")]
    seed: Annotated[str, about("The name that every seed is derived from.")]
    predictions: list[Prediction]


def predict(played: Mapping[Design, Groups], cell: Cell, *, rng_seed: int = RNG_SEED) -> Prediction:
    """Predict a cell from groups that were played under its noise, group size and surface tokens."""
    _check(cell)
    numbers = played["paired"].numbers
    blocks = _blocks(numbers, cell)
    number = int(blocks.max()) + 1
    direction = _sums([(blocks, played[design].gradients) for design in DESIGNS], number)
    counted = {design: _counted(groups, blocks, cell) for design, groups in played.items()}  # 1
    sums = {design: _sums([of], number) for design, of in counted.items()}
    moved = {design: _steps(played[design], counted[design], cell, number) for design in DESIGNS}  # 2
    for design, of in (*sums.items(), *moved.items()):
        if (filled := int((of.groups > 0).sum())) < 2:  # noqa: PLR2004
            raise IncompleteError(
                f"too few groups of the {design} design count",
                expected="groups, or steps, of two blocks of tasks",
                found=f"{filled} of {number} blocks with any",
                where=f"{cell.regime}, {cell.prompts_per_step} groups a step",
                remedy="play more groups",
            )
    spread = _spread(sums, counted, direction, number, rng_seed)
    is_plain = (cell.scale_rewards, cell.constant_groups, cell.loss_type) == ("none", "kept", "dr_grpo")
    drift = drift_interval(  # 3, 4
        *(moved["paired"], moved["independent"]),
        1 if cell.loss_type == "dapo" else cell.prompts_per_step,
        cell.optimizer,
        along=None if is_plain else direction,
        common_mean=is_plain,
        level=LEVEL,
    )
    spread |= {"drift paired": drift.paired, "drift independent": drift.independent}
    draws_again = cell.constant_groups == "resampled"
    designs = {
        design: DesignFigures(
            len(groups.numbers),
            float(1 - groups.varied.mean()),
            float(len(groups.numbers) / groups.varied.sum()) if draws_again else 1.0,
            float(groups.symbols.mean()),
            *(_known(spread[f"{name} {design}"]) for name in (*SPREAD, "drift")),
        )
        for design, groups in played.items()
    }
    return Prediction(
        cell=cell,
        blocks=number,
        tasks=len(np.unique(_positions(numbers[blocks >= 0]))),
        steps={design: int(moved[design].groups.sum()) for design in DESIGNS},
        designs=designs,
        ratios={name: spread[name] for name in SPREAD} | {"drift": drift.ratio},
    )


def _known(uncertain: TaskUncertainty) -> float:
    return float("nan") if uncertain.value is None else uncertain.value


def _positions(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return numbers % POOLS[POOL].size


def _blocks(numbers: NDArray[np.int64], cell: Cell) -> NDArray[np.int64]:
    """Return each group's block; -1 for tasks that fill none."""
    epochs = -(-len(numbers) // POOLS[POOL].size)
    size = BLOCK
    if cell.loss_type == "dapo":
        batch = cell.prompts_per_step
        size = batch * -(-BLOCK // batch)
        if cell.constant_groups == "resampled":
            size = max(size, batch * -(-EPOCHS // epochs))
    positions = _positions(numbers)
    whole = (int(positions.max()) + 1) // size
    if whole < 2:  # noqa: PLR2004 - blocks are compared with one another
        problem, found = "too few groups were played to resample tasks", f"{len(numbers)} groups"
        raise IncompleteError(
            problem, expected=f"two blocks of {size} tasks at least", found=found, remedy="play more groups"
        )
    blocks = positions // size
    return np.where(blocks < whole, blocks, -1)


def _counted(groups: Groups, blocks: NDArray[np.int64], cell: Cell) -> tuple[NDArray[np.int64], Array]:
    kept = groups.varied if cell.constant_groups == "resampled" else np.ones_like(groups.varied)
    gradients = groups.gradients
    if cell.scale_rewards == "group":
        gradients = gradients / groups.divisors[:, None]
    return (blocks, gradients) if kept.all() else (np.where(kept, blocks, -1), gradients)


def _steps(groups: Groups, counted: tuple[NDArray[np.int64], Array], cell: Cell, number: int) -> TaskSums:
    """Return the sums of groups, or of steps of B groups divided by their own symbols."""
    placed, gradients = counted
    if cell.loss_type != "dapo":
        return _sums([(placed, gradients)], number)
    batch = cell.prompts_per_step
    members = [np.flatnonzero(placed == block) for block in range(number)]
    whole = [of[: len(of) // batch * batch].reshape(-1, batch) for of in members]
    steps = np.concatenate(whole)
    divided = np.zeros((len(steps), gradients.shape[1]))
    for slot in range(batch):
        divided += gradients[steps[:, slot]]
    # The sum over rollouts, not their mean, is divided.
    divided *= (cell.group_size / groups.symbols[steps].sum(axis=1))[:, None]
    return _sums([(np.repeat(np.arange(number), list(map(len, whole))), divided)], number)


def _sums(parts: list[tuple[NDArray[np.int64], Array]], number: int) -> TaskSums:
    """Sum gradients block by block; a block may have none."""
    totals = np.zeros((number, parts[0][1].shape[1]))
    squares, counts = np.zeros_like(totals), np.zeros(number)
    for blocks, gradients in parts:
        for block in range(number):
            of = gradients[blocks == block]
            totals[block] += of.sum(axis=0)
            squares[block] += (of**2).sum(axis=0)
            counts[block] += len(of)
    return TaskSums(counts, totals, squares)


def _spread(
    sums: Mapping[Design, TaskSums],
    counted: Mapping[Design, tuple[NDArray[np.int64], Array]],
    direction: TaskSums,
    number: int,
    rng_seed: int,
) -> dict[str, TaskUncertainty]:
    """Return each design's variances by name and design, and their ratios by name."""
    strongest = np.argsort(direction.moments.squared_mean)[-STRONGEST:]
    # The direction comes from the other half of the blocks: noise that it shared with what is projected on it
    # would be taken for variance.
    odd = np.arange(number) % 2 == 1
    halves = np.stack([direction.totals[odd].sum(axis=0), direction.totals[~odd].sum(axis=0)])
    halves /= np.linalg.norm(halves, axis=1, keepdims=True)
    chosen: dict[str, TaskSums] = {}
    for design, (blocks, gradients) in counted.items():
        along = (gradients @ halves.T)[np.arange(len(blocks)), blocks % 2]
        of = sums[design]
        chosen |= {
            f"trace {design}": of,
            f"along {design}": _sums([(blocks, along[:, None])], number),
            f"strongest {design}": TaskSums(of.groups, of.totals[:, strongest], of.squares[:, strongest]),
        }

    def figures(counts: Array) -> dict[str, Array]:
        values = {name: _variance(of, counts) for name, of in chosen.items()}
        return values | {name: values[f"{name} paired"] / values[f"{name} independent"] for name in SPREAD}

    return task_uncertainties(figures, number, level=LEVEL, resamples=RESAMPLES, rng_seed=rng_seed)


def _variance(sums: TaskSums, counts: Array) -> Array:
    """Return the variance of one gradient, summed over coordinates, for every resample of the blocks."""
    groups = counts @ sums.groups
    pairs = groups**2 - counts**2 @ sums.groups**2
    own = (sums.totals**2).sum(axis=1)
    norm = ((counts @ sums.totals) ** 2).sum(axis=1)
    variance: Array = counts @ sums.squares.sum(axis=1) / groups - (norm - counts**2 @ own) / pairs
    return variance


def _check(cell: Cell) -> None:
    for name, values in ALLOWED.items():
        if getattr(cell, name) not in values:
            raise UsageError(
                f"there is no such {name}", expected=", ".join(values), found=getattr(cell, name)
            )
    for name, least in (("group_size", 2), ("surface_tokens", 0), ("prompts_per_step", 1)):
        if getattr(cell, name) < least:
            raise UsageError(f"{name} is too small", expected=f"{least} at least", found=getattr(cell, name))
