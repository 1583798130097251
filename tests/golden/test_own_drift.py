"""Drift and trace by brute force: beside what the map registered, and beside the probe on the same groups."""

import json
from functools import cache
from math import hypot
from typing import Any

import numpy as np
import pytest

from tests.golden import own_drift
from tests.golden.own_drift import CELLS, DESIGNS, FILE, Cell, registered
from toolkit import estimators
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.lab.probe import predicted
from toolkit.lab.probe.predicted import Groups, play_groups
from toolkit.structs import replace

SMALL = Cell(rollouts=4, tokens=2)


STORED: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
REGISTERED = registered()


@pytest.mark.parametrize("name", CELLS)
def test_brute_force_finds_what_the_map_registered(name: str) -> None:
    """Within three errors of both; those of a registered trace, of thrice the groups, are no larger."""
    found, said = STORED["cells"][name], REGISTERED[name]
    assert Cell(**found["cell"]) == CELLS[name]
    trace, drift = found["trace"], found["drift"]
    assert trace["corrected"] == pytest.approx(said["trace"], abs=3 * hypot(trace["error"], trace["error"]))
    error = hypot(drift["error"], said["drift_error"])
    assert drift["corrected"] == pytest.approx(said["drift"], abs=3 * error)
    assert (trace["error"] < 0.02, drift["error"] < 0.025) == (True, True)


@cache
def played(design: str) -> own_drift.Groups:
    return own_drift.play(SMALL, design, range(96))


@cache
def for_the_probe(design: str) -> Groups:
    """Return the same groups as the probe takes them, its means over rollouts."""
    mine = played(design)
    ratio = np.abs(mine.plain).sum(axis=1) / np.where(mine.varied, np.abs(mine.scaled).sum(axis=1), 1)
    divisors = np.where(mine.varied, ratio, 1)
    return Groups(
        np.arange(96), mine.plain / SMALL.rollouts, divisors, mine.symbols.astype(float), mine.varied
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_the_probe_plays_the_same_groups(design: str) -> None:
    theirs = play_groups(Policy(untrained(2), 2), SMALL.regime, 4, own_drift.NAME, range(24))[design]
    mine = for_the_probe(design)
    np.testing.assert_allclose(theirs.gradients, mine.gradients[:24], atol=1e-12)
    np.testing.assert_allclose(theirs.divisors, mine.divisors[:24], rtol=1e-9)
    np.testing.assert_array_equal(theirs.symbols, mine.symbols[:24])
    np.testing.assert_array_equal(theirs.varied, mine.varied[:24])


# What differs from Adam, two groups a step, scaled, over the step's symbols; and the tasks of a block.
ALIKE: dict[str, tuple[dict[str, Any], int]] = {
    "adam": ({}, 8),
    "b1": ({"prompts": 1}, 8),
    "b3": ({"prompts": 3}, 9),
    "b6": ({"prompts": 6}, 12),
    "unscaled": ({"is_scaled": False}, 8),
    "resampled": ({"is_resampled": True}, 12),
    "resampled, unscaled": ({"is_resampled": True, "is_scaled": False}, 12),
    "resampled, fixed divisor": ({"is_resampled": True, "by_symbols": False, "prompts": 3}, 8),
    "fixed divisor": ({"by_symbols": False, "prompts": 3}, 8),
    "gradient": ({"optimizer": "gradient", "by_symbols": False}, 8),
}


def predict(cell: Cell) -> predicted.Prediction:
    """Return what the probe predicts of the same groups."""
    return predicted.predict(
        {design: for_the_probe(design) for design in DESIGNS},
        predicted.Cell(
            group_size=cell.rollouts,
            surface_tokens=cell.tokens,
            scale_rewards="group" if cell.is_scaled else "none",
            constant_groups="resampled" if cell.is_resampled else "kept",
            loss_type="dapo" if cell.by_symbols else "dr_grpo",
            prompts_per_step=cell.prompts,
            optimizer=cell.optimizer,
        ),
    )


@pytest.mark.parametrize("name", ALIKE)
def test_the_probe_predicts_what_brute_force_finds(name: str) -> None:
    changes, size = ALIKE[name]
    cell = replace(SMALL, **changes)
    theirs = predict(cell)
    mine = own_drift.measured({design: played(design) for design in DESIGNS}, cell, size)
    assert theirs.blocks == 96 // size
    for ratio in ("trace", "drift"):
        of = theirs.ratios[ratio]
        assert of.value == pytest.approx(mine[ratio]["value"], rel=1e-9)
        assert of.corrected == pytest.approx(mine[ratio]["corrected"], rel=1e-6)
        assert of.standard_error == pytest.approx(mine[ratio]["error"], rel=1e-6)


def test_the_probe_takes_the_mean_of_plain_gradients_to_be_one() -> None:
    """Neither scaled nor divided by symbols, both designs' have one; three groups make a step."""
    blocks = {design: [played(design).plain[at : at + 8] for at in range(0, 96, 8)] for design in DESIGNS}
    squared = {design: own_drift.mean_product(of, of) for design, of in blocks.items()}
    both, gains = np.mean(list(squared.values()), axis=0), []
    for design, of in blocks.items():
        noise = np.maximum(np.mean(np.concatenate(of) ** 2, axis=0) - squared[design], 0) / 3
        root = np.sqrt(np.maximum(both, 0) + noise)
        gains.append(sum(t / r for t, r in zip(both, root, strict=True) if r > 0))
    found = predict(replace(SMALL, is_scaled=False, by_symbols=False, prompts=3))
    assert found.ratios["drift"].value == pytest.approx(gains[0] / gains[1], rel=1e-9)


@pytest.mark.parametrize("optimizer", ["adam", "gradient"])
def test_the_estimators_find_what_brute_force_finds(optimizer: str) -> None:
    """Along one's own mean gradient, a block a task."""
    cell = replace(SMALL, optimizer=optimizer, by_symbols=False, prompts=2)
    for design in DESIGNS:
        gradients = played(design).scaled
        blocks = [gradients[at : at + 8] for at in range(0, 96, 8)]
        moments = estimators.coordinate_moments(gradients, np.arange(96) // 8)
        assert estimators.drift(moments, 2, optimizer) == pytest.approx(
            own_drift.progress(cell, blocks, blocks), rel=1e-9
        )


@pytest.mark.slow
def test_the_stored_figures_of_a_kind_of_group_are_found_again() -> None:
    cell = CELLS["flips-b2"]
    groups = {design: own_drift.play(cell, design, range(STORED["groups"])) for design in DESIGNS}
    found = own_drift.measured(groups, cell, STORED["block"])
    for ratio in ("trace", "drift"):
        assert found[ratio] == pytest.approx(STORED["cells"]["flips-b2"][ratio], rel=1e-9)
