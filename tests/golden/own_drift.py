"""The drift and the trace of cells of the map once more, by brute force: no code of `probe` nor `estimators`.

Groups of both designs are played and scored by `own_training`, under seeds of their own; every figure is then
made here from the gradients, one group by the other.

1. A block is some tasks that follow each other. Only gradients of different blocks are multiplied: the mean
   product of two is then the square of the mean, without the noise that gradients of one task share.
2. A trace is the mean square of a group's gradient less the mean product of two, summed over coordinates.
3. What the optimizer gets is a step: the sum of B groups over their own decisions and tokens, where the loss
   divides by them; else B groups' mean, whose variance is a group's over B.
4. The drift is the progress of a step along the mean unscaled gradient of both designs: of Adam's, each
   coordinate over the root of its mean square; of the sign's, of the very signs of steps.
5. An error is the jackknife's, a block left out at a time.

`python -m tests.golden.own_drift` plays the training pool twice for each kind of group, writes
`own_drift.json`, and prints it beside what the map registered: three minutes on one core.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import CHECKOUT
from tests.golden import own_training
from tests.golden.own_training import Array
from toolkit import seeds
from toolkit.lab.tasks.pools import POOLS

FILE = Path(__file__).with_name("own_drift.json")
COMMAND = "python -m tests.golden.own_drift"
NAME, GROUPS, BLOCK = "own-drift", 4000, 24
ROUNDING = 1e-14
DESIGNS = ("paired", "independent")


@dataclass(frozen=True)
class Cell(own_training.Cell):
    """What is trained, and whether constant groups are dropped and drawn again."""

    is_resampled: bool = False


CELLS = {
    "faults-b2": Cell(),
    "faults-b24": Cell(prompts=24),
    "faults-unscaled": Cell(is_scaled=False),
    "faults-gradient": Cell(optimizer="gradient", is_scaled=False, by_symbols=False),
    "faults-sign": Cell(prompts=8, optimizer="sign"),
    "faults-resampled": Cell(is_resampled=True),
    "faults-v0": Cell(tokens=0),
    "outages-b2": Cell(regime="faults_p025_outage_heavy"),
    "flips-b2": Cell(regime="flips_q010"),
}


@dataclass(frozen=True)
class Groups:
    """Groups of one design: sums over rollouts of advantage times score, in the order of their tasks."""

    places: Array
    plain: Array
    scaled: Array
    symbols: Array
    varied: Array


def play(cell: Cell, design: str, numbers: Iterable[int], name: str = NAME) -> Groups:
    """Play groups of the untrained policy: number n has the n-th task of an order that starts again."""
    run, sampling = seeds.drift_seed(name), seeds.drift_seed(name, design)
    policy = own_training.Policy(own_training.start(cell.tokens), cell.tokens)
    found: list[tuple[int, Array, Array, int, bool]] = []
    for number in numbers:
        epoch, place = divmod(number, POOLS["train"].size)
        samples = [seeds.rollout_seed(sampling, epoch, place, slot) for slot in range(cell.rollouts)]
        task, row = own_training.task_at(run, place), seeds.row_seed(run, epoch, place)
        rewards, scores, symbols = own_training.play_group(policy, cell, design, task, row, samples)
        plain, scaled = (
            cleaned(own_training.advantages(rewards, is_scaled=on) @ scores) for on in (False, True)
        )
        found.append((place, plain, scaled, symbols, bool(np.ptp(rewards))))
    return Groups(*map(np.array, zip(*found, strict=True)))


def cleaned(gradient: Array) -> Array:
    """Return a gradient without what rounding leaves where it cancels: a step takes it for a direction."""
    return gradient * (np.abs(gradient) > ROUNDING)


def counted(groups: Groups, cell: Cell, block: Array) -> tuple[Array, Array]:
    """Return the gradients that count in a block, and their symbols."""
    rows = [at for at in block if groups.varied[at] or not cell.is_resampled]
    return (groups.scaled if cell.is_scaled else groups.plain)[rows], groups.symbols[rows]


def steps(gradients: Array, symbols: Array, batch: int) -> Array:
    """Return steps of B groups that follow each other, each over its own symbols."""
    made = [
        gradients[at : at + batch].sum(axis=0) / symbols[at : at + batch].sum()
        for at in range(0, len(gradients) - batch + 1, batch)
    ]
    return np.array(made).reshape(-1, gradients.shape[1])


def mean_product(ones: Sequence[Array], others: Sequence[Array]) -> Array:
    """Return the mean product of a gradient and one of another block, coordinate by coordinate."""
    total, pairs = np.zeros(ones[0].shape[1]), 0
    sums = np.array([other.sum(axis=0) for other in others])
    for at, one in enumerate(ones):
        total += one.sum(axis=0) * (sums[:at].sum(axis=0) + sums[at + 1 :].sum(axis=0))
        pairs += len(one) * sum(len(other) for place, other in enumerate(others) if place != at)
    return total / pairs


def progress(cell: Cell, direction: Sequence[Array], moved: Sequence[Array]) -> float:
    """Return the drift of steps, or of groups that make them."""
    if cell.optimizer == "sign":
        return float(mean_product(direction, [np.sign(cleaned(of)) for of in moved]).sum())
    towards = mean_product(direction, moved)
    if cell.optimizer == "gradient":
        return float(towards.sum())
    squared = mean_product(moved, moved)
    noise = np.maximum(np.mean(np.concatenate(moved) ** 2, axis=0) - squared, 0)
    root = np.sqrt(np.maximum(squared, 0) + noise / (1 if cell.by_symbols else cell.prompts))
    return float(sum(t / r for t, r in zip(towards, root, strict=True) if r > 0))


def ratios(played: Mapping[str, Groups], cell: Cell, size: int, without: int | None = None) -> Array:
    """Return trace and drift, paired over independent, of blocks of so many tasks, maybe without one."""
    number = (int(played["paired"].places.max()) + 1) // size
    blocks = [np.flatnonzero(played["paired"].places // size == at) for at in range(number) if at != without]
    direction = [np.concatenate([played[d].plain[block] for d in DESIGNS]) for block in blocks]
    traces, drifts = [], []
    for design in DESIGNS:
        parts = [counted(played[design], cell, block) for block in blocks]
        gradients = [gradient for gradient, _ in parts]
        square = (np.concatenate(gradients) ** 2).mean(axis=0)
        traces.append((square - mean_product(gradients, gradients)).sum())
        moved = [steps(*part, cell.prompts) for part in parts] if cell.by_symbols else gradients
        drifts.append(progress(cell, direction, moved))
    return np.array([traces[0] / traces[1], drifts[0] / drifts[1]])


def measured(played: Mapping[str, Groups], cell: Cell, size: int = BLOCK) -> dict[str, Any]:
    """Return both ratios as they are, without their bias of order 1/blocks, and their errors."""
    number = (int(played["paired"].places.max()) + 1) // size
    whole = ratios(played, cell, size)
    left_out = np.array([ratios(played, cell, size, at) for at in range(number)])
    error = np.sqrt((number - 1) * left_out.var(axis=0))
    corrected = number * whole - (number - 1) * left_out.mean(axis=0)
    return {
        name: {"value": float(whole[at]), "corrected": float(corrected[at]), "error": float(error[at])}
        for at, name in enumerate(("trace", "drift"))
    }


def registered() -> dict[str, dict[str, float]]:
    """Return what the map registered of its cells; a drift's error is its interval's, where it has one."""
    rules = tomllib.loads((CHECKOUT / "prereg/map/rules.toml").read_text("utf-8"))
    protocol = (CHECKOUT / "prereg/map/protocol.md").read_text("utf-8")
    found = {}
    for point in rules["pictures"]["map"]["points"]:
        cell = point["statistic"].removeprefix("ratio_").replace("_", "-")
        drift, trace = map(float, point["predicted"])
        ends = re.search(rf"`{cell}` \|.*\[([\d.]+), ([\d.]+)\]", protocol)
        error = (float(ends[2]) - float(ends[1])) / 3.92 if ends else 0.0
        found[cell] = {"trace": trace, "drift": drift, "drift_error": error}
    return found


def main(groups: int = GROUPS) -> None:
    """Play, write and print."""
    kinds: dict[tuple[str, int], dict[str, Groups]] = {}
    figures = {}
    for name, cell in CELLS.items():
        kind = cell.regime, cell.tokens
        if kind not in kinds:
            print(f"playing {kind[0]}, V = {kind[1]}", file=sys.stderr)
            kinds[kind] = {design: play(cell, design, range(groups)) for design in DESIGNS}
        figures[name] = {"cell": asdict(cell), **measured(kinds[kind], cell)}
    document = {"command": COMMAND, "name": NAME, "groups": groups, "block": BLOCK, "cells": figures}
    FILE.write_text(json.dumps(document, indent=1) + "\n")
    said = registered()
    print("| cell | trace | registered | drift | registered |\n| --- | --- | --- | --- | --- |")
    for name, of in figures.items():
        columns = (
            f"{of[k]['corrected']:.3f} ± {of[k]['error']:.3f} | {said[name][k]:.3f}"
            for k in ("trace", "drift")
        )
        print(f"| {name} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
