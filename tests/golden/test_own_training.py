"""The trainer beside an implementation of its own: the same parameters, and what pairing does to learning."""

import json
from typing import Any

import numpy as np
import pytest

from tests.golden import own_training
from tests.golden.own_training import FILE, Cell
from toolkit.lab.policies.loglinear import untrained
from toolkit.lab.training import checkpoint, grpo
from toolkit.specification import Specification

DESIGNS = ("paired", "independent")
CELLS = {
    "map": Cell(),
    "b1-g4-v0": Cell(prompts=1, rollouts=4, tokens=0),
    "g16-v2-flips": Cell(rollouts=16, tokens=2, regime="flips_q010"),
    "decay": Cell(square_decay=0.9, is_scaled=False),
    "gradient": Cell(optimizer="gradient", rate=20.0, is_scaled=False, by_symbols=False),
    "sign": Cell(optimizer="sign", rate=0.002, by_symbols=False, prompts=3),
}


def specified(cell: Cell, design: str, seed: int) -> Specification:
    """Return the run that the trainer takes for a cell."""
    return Specification(
        study="own",
        root="own root",
        run_id=f"cell-{design}-s{seed}",
        condition="cell",
        arm=design,
        seed=seed,
        tier=1,
        role="primary",
        regime=cell.regime,
        at_noise=cell.regime,
        scale_rewards="group" if cell.is_scaled else "none",
        prompts_per_step=cell.prompts,
        group_size=cell.rollouts,
        learning_rate=str(cell.rate),
        surface_tokens=cell.tokens,
        optimizer=cell.optimizer,
        square_decay=str(cell.square_decay),
        loss_type="dapo" if cell.by_symbols else "dr_grpo",
    )


def trained(run: Specification, steps: int) -> list[tuple[float, ...]]:
    """Return the trainer's parameters after each step."""
    weights, seen = checkpoint.start(untrained(run.surface_tokens)), []
    for _ in range(steps):
        weights, _rows = grpo.train_step(run, weights)
        seen.append(weights.parameters)
    return seen


def compared(cell: Cell, design: str, seed: int, steps: int) -> None:
    run, mine = specified(cell, design, seed), []
    place = (run.root, run.run_id, seed)
    own_training.train(cell, design, place, steps, lambda _, theta: mine.append(theta))
    np.testing.assert_allclose(mine[1:], trained(run, steps), rtol=0, atol=1e-9)
    assert not np.allclose(mine[-1], mine[0], atol=1e-4), "it has moved"


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", CELLS)
def test_two_implementations_take_the_same_steps(name: str, design: str) -> None:
    compared(CELLS[name], design, 3, 4)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("seed", [0, 1])
def test_two_implementations_train_the_same_policies(seed: int, design: str) -> None:
    compared(Cell(), design, seed, 100)


STORED: dict[str, Any] = json.loads(FILE.read_text())


def test_the_stored_summary_is_that_of_the_stored_curves() -> None:
    areas = np.array([[np.trapezoid(pair[d], dx=0.2) for d in DESIGNS] for pair in STORED["curves"]])
    first = np.array([[pair[d][0] for d in DESIGNS] for pair in STORED["curves"]])
    differences = areas[:, 0] - areas[:, 1]
    assert STORED["differences"] == pytest.approx(differences.tolist())
    assert STORED["mean"] == pytest.approx(differences.mean())
    assert STORED["positive"] == (differences > 1e-9).sum()
    gains = (areas - first).mean(axis=0)
    assert STORED["gain_ratio"] == pytest.approx(gains[0] / gains[1])
    assert Cell(**STORED["cell"]) == Cell()
    assert len(STORED["curves"]) == own_training.PAIRS


def test_pairing_slows_learning_under_faults_and_adam() -> None:
    # Explored before, with other seeds and samples: -0.0047, t = -7.9, 0 of 24 positive, gain ratio .89.
    assert -0.008 < STORED["mean"] < -0.002
    assert STORED["t"] < -4
    assert STORED["positive"] <= 3
    assert 0.8 < STORED["gain_ratio"] < 0.97


@pytest.mark.slow
def test_a_pair_of_the_stored_cell_is_trained_again() -> None:
    for design in DESIGNS:
        assert own_training.curve(Cell(), design, STORED["first_seed"]) == STORED["curves"][0][design]
