"""What played groups predict for training: how each design's gradient varies, and its drift.

1. A cell of settings makes gradients of the played groups: scaled or not, constant groups kept or dropped.
2. Where a step's sum is divided by its own decisions and tokens (`dapo`), groups are put together to steps,
   B at a time, and a step counts as a group does otherwise: the quotient is exact, for any B. A divisor that
   is the same for every step (`dr_grpo`) cancels in every ratio; variances are then those of groups over B.
3. Blocks of tasks are the unit: what the figures would be on other tasks follows from resampling them, or
   leaving them out (the drift), all their groups in both designs together. The task of a step is its block.
4. Progress is measured along the mean unscaled gradient of both designs, the direction in which the expected
   reward rises: scaled, divided or resampled gradients have means of another length, and maybe direction, in
   each design. Products of different blocks keep it unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import IncompleteError, UsageError
from toolkit.estimators import drift_interval, task_uncertainties
from toolkit.estimators.coordinates import TaskSums
from toolkit.estimators.taskwise import TaskUncertainty
from toolkit.lab.probe.drift import POOL, Array, Groups
from toolkit.lab.tasks.pools import POOLS
from toolkit.noise.draws import DESIGNS, Design

if TYPE_CHECKING:
    from toolkit.documents.probe import PredictionDocument

BLOCK = 8
"""Tasks of a block at least: 250 blocks of the training pool, which keeps resampling quick."""
EPOCHS = 6
"""Times that a block's tasks are met so that, with half of its groups dropped, it holds some steps."""
STRONGEST = 20
"""Coordinates with most signal; they hold 96 % of it in the untrained policy under faults."""
LEVEL, RESAMPLES, RNG_SEED = 0.95, 2000, 24


@dataclass(frozen=True)
class Cell:
    """Settings of training whose drift is predicted, named as in a run's specification."""

    regime: str = "faults_p025"
    group_size: int = 8
    surface_tokens: int = 16
    scale_rewards: str = "group"
    constant_groups: str = "kept"
    loss_type: str = "dapo"
    prompts_per_step: int = 24
    optimizer: str = "adam"

    @property
    def played(self) -> tuple[str, int, int]:
        """Noise, G and V: what has to be played for it."""
        return self.regime, self.group_size, self.surface_tokens


@dataclass(frozen=True)
class DesignFigures:
    """Figures of one design: variances of a group's gradient, and the drift in units of the learning rate.

    `draws` groups are played for one that counts; `symbols` are decisions and tokens a group.
    """

    groups: int
    constant: float
    draws: float
    symbols: float
    trace: float
    along: float
    strongest: float
    drift: float


@dataclass(frozen=True)
class Prediction:
    """What is predicted for a cell, on blocks of tasks.

    `steps` are groups, or steps of B groups where the divisor is a step's own, that give a design's drift;
    `ratios` are paired over independent.
    """

    cell: Cell
    blocks: int
    tasks: int
    steps: Mapping[str, int]
    designs: Mapping[Design, DesignFigures]
    ratios: Mapping[str, TaskUncertainty]

    def document(self) -> PredictionDocument:
        """Return it as JSON values."""
        said = {
            **asdict(self.cell),
            "level": LEVEL,
            "blocks": self.blocks,
            "tasks": self.tasks,
            "steps": dict(self.steps),
            "designs": {name: asdict(figures) for name, figures in self.designs.items()},
            "ratios": {name: asdict(ratio) for name, ratio in self.ratios.items()},
        }
        return cast("PredictionDocument", said)  # settings and figures by name


def predict(played: Mapping[Design, Groups], cell: Cell, *, rng_seed: int = RNG_SEED) -> Prediction:
    """Predict a cell from groups that were played under its noise, group size and surface tokens."""
    _check(cell)
    blocks = _blocks(played["paired"].numbers, cell)
    number = int(blocks.max()) + 1
    unscaled = {design: (blocks, groups.gradients) for design, groups in played.items()}
    direction = _sums([unscaled[design] for design in DESIGNS], number)
    counted = {design: _counted(groups, blocks, cell) for design, groups in played.items()}  # 1
    sums = {design: _sums([of], number) for design, of in counted.items()}
    moved = {design: _steps(played[design], blocks, cell, number) for design in DESIGNS}  # 2
    for design, of in (*sums.items(), *moved.items()):
        _check_enough(of, number, design, cell)
    spread, ratios = _spread(sums, counted, direction, number, rng_seed)
    is_plain = (cell.scale_rewards, cell.constant_groups, cell.loss_type) == ("none", "kept", "dr_grpo")
    found = drift_interval(  # 3, 4
        moved["paired"],
        moved["independent"],
        1 if cell.loss_type == "dapo" else cell.prompts_per_step,
        cell.optimizer,
        along=None if is_plain else direction,
        common_mean=is_plain,
        level=LEVEL,
    )
    drifts = {"paired": found.paired, "independent": found.independent}
    return Prediction(
        cell,
        number,
        len(np.unique(_positions(played["paired"].numbers[blocks >= 0]))),
        {design: int(moved[design].groups.sum()) for design in DESIGNS},
        {
            design: DesignFigures(
                groups=len(groups.numbers),
                constant=float(1 - groups.varied.mean()),
                draws=float(len(groups.numbers) / groups.varied.sum())
                if cell.constant_groups == "resampled"
                else 1.0,
                symbols=float(groups.symbols.mean()),
                drift=_known(drifts[design]),
                **{name: _known(spread[f"{name} {design}"]) for name in ("trace", "along", "strongest")},
            )
            for design, groups in played.items()
        },
        {**ratios, "drift": found.ratio},
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
        raise IncompleteError(
            "too few groups were played to resample tasks",
            expected=f"two blocks of {size} tasks at least",
            found=f"{len(numbers)} groups",
            remedy="play more groups",
        )
    blocks = positions // size
    return np.where(blocks < whole, blocks, -1)


def _counted(groups: Groups, blocks: NDArray[np.int64], cell: Cell) -> tuple[NDArray[np.int64], Array]:
    """Return blocks and gradients of the groups that count."""
    kept = groups.varied if cell.constant_groups == "resampled" else np.ones_like(groups.varied)
    gradients = groups.gradients
    if cell.scale_rewards == "group":
        gradients = gradients / groups.divisors[:, None]
    return (blocks, gradients) if kept.all() else (np.where(kept, blocks, -1), gradients)


def _steps(groups: Groups, blocks: NDArray[np.int64], cell: Cell, number: int) -> TaskSums:
    """Return the sums of groups, or of steps of B groups divided by their own symbols."""
    placed, gradients = _counted(groups, blocks, cell)
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
) -> tuple[dict[str, TaskUncertainty], dict[str, TaskUncertainty]]:
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
        return values | {
            name: values[f"{name} paired"] / values[f"{name} independent"]
            for name in ("trace", "along", "strongest")
        }

    found = task_uncertainties(figures, number, level=LEVEL, resamples=RESAMPLES, rng_seed=rng_seed)
    ratios = {name: found.pop(name) for name in ("trace", "along", "strongest")}
    return found, ratios


def _variance(sums: TaskSums, counts: Array) -> Array:
    """Return the variance of one gradient, summed over coordinates, for every resample of the blocks."""
    groups = counts @ sums.groups
    pairs = groups**2 - counts**2 @ sums.groups**2
    own = (sums.totals**2).sum(axis=1)
    norm = ((counts @ sums.totals) ** 2).sum(axis=1)
    variance: Array = counts @ sums.squares.sum(axis=1) / groups - (norm - counts**2 @ own) / pairs
    return variance


def _check(cell: Cell) -> None:
    from toolkit.noise.regimes import REGIMES

    allowed = {
        "regime": REGIMES,
        "scale_rewards": ("group", "none"),
        "constant_groups": ("kept", "resampled"),
        "loss_type": ("dapo", "dr_grpo"),
        "optimizer": ("adam", "gradient", "sign"),
    }
    for name, values in allowed.items():
        if getattr(cell, name) not in values:
            raise UsageError(
                f"there is no such {name}", expected=", ".join(values), found=getattr(cell, name)
            )
    for name, least in (("group_size", 2), ("surface_tokens", 0), ("prompts_per_step", 1)):
        if getattr(cell, name) < least:
            raise UsageError(f"{name} is too small", expected=f"{least} at least", found=getattr(cell, name))


def _check_enough(sums: TaskSums, number: int, design: str, cell: Cell) -> None:
    if (filled := int((sums.groups > 0).sum())) < 2:  # noqa: PLR2004
        raise IncompleteError(
            f"too few groups of the {design} design count",
            expected="groups, or steps, of two blocks of tasks",
            found=f"{filled} of {number} blocks with any",
            where=f"{cell.regime}, {cell.prompts_per_step} groups a step",
            remedy="play more groups",
        )
