"""Groups played for the drift, and what is predicted from them: against steps that are made here."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.episodes.episode import play
from toolkit.lab.executors.executor import Executor
from toolkit.lab.policies.agent import Rollout, score
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.lab.probe.predicted import Cell, Groups, play_groups, predict, weighted_sums
from toolkit.lab.probing.drift import predicted_drift
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.draws import DESIGNS
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import Stream, drift_seed, order_seed, rollout_seed, row_seed, slot_seed

NAME, SIZE, V = "a test", 4, 2


@cache
def played(groups: int = 96) -> dict[str, Groups]:
    return play_groups(Policy(untrained(V), V), "faults_p025", SIZE, NAME, range(groups))


def rollouts_again(design: str, number: int) -> list[tuple[Rollout, int]]:
    """Return a group's rollouts and rewards, played from seeds that are derived here."""
    policy = Policy(untrained(V), V)
    run, sampling = drift_seed(NAME), drift_seed(NAME, design)
    task = load_task(f"train:{Stream(order_seed(run, 0)).shuffled(range(2000))[number % 2000]}")
    row, found = row_seed(run, number // 2000, number % 2000), []
    for slot in range(SIZE):
        rollout = Rollout(policy, rollout_seed(sampling, number // 2000, number % 2000, slot))
        seed = row if design == "paired" else slot_seed(row, slot)
        found.append((rollout, play(task, REGIMES["faults_p025"], seed, rollout).observed_reward))
    return found


@pytest.mark.parametrize("design", DESIGNS)
def test_a_group_is_its_rollouts_weighted_by_their_rewards_beyond_the_mean(design) -> None:
    groups = played()[design]
    policy = Policy(untrained(V), V)
    assert 0 < groups.varied[:24].sum() < 24
    for number in range(24):
        rollouts, rewards = zip(*rollouts_again(design, number), strict=True)
        weights = np.array(rewards) - np.mean(rewards)
        expected = weights @ np.array([score(policy, rollout) for rollout in rollouts]) / SIZE
        np.testing.assert_allclose(groups.gradients[number], expected, atol=1e-12)
        assert groups.varied[number] == (len(set(rewards)) > 1)
        if groups.varied[number]:
            assert groups.divisors[number] == pytest.approx(np.std(rewards, ddof=1) + 1e-4)
        assert groups.symbols[number] == sum(len(r.decisions) + len(r.tokens) for r in rollouts)


def test_what_cancels_is_zero_and_what_is_small_is_not() -> None:
    weights, vectors = np.array([[0.1, 0.2, -0.3]]), np.array([[1.0, 1e-9], [1.0, 0.0], [1.0, 0.0]])
    assert 0.1 + 0.2 - 0.3 != 0
    found = weighted_sums(weights, vectors)
    assert found[0, 0] == 0
    assert found[0, 1] == pytest.approx(1e-10)


def test_any_cut_gives_the_same_groups() -> None:
    policy = Policy(untrained(V), V)
    parts = [play_groups(policy, "faults_p025", SIZE, NAME, of) for of in (range(5), range(5, 12))]
    for design in DESIGNS:
        joined, whole = Groups.joined([part[design] for part in parts]), played()[design]
        np.testing.assert_allclose(joined.gradients, whole.gradients[:12], atol=1e-12)
        np.testing.assert_array_equal(joined.numbers, whole.numbers[:12])
        np.testing.assert_array_equal(joined.symbols, whole.symbols[:12])


def mean_products(one: list[np.ndarray], other: list[np.ndarray]) -> np.ndarray:
    """Return the mean product of a gradient of `one` and one of `other` from another block, pair by pair."""
    pairs = [
        (a, b)
        for i, ones in enumerate(one)
        for j, others in enumerate(other)
        if i != j
        for a in ones
        for b in others
    ]
    return np.mean([a * b for a, b in pairs], axis=0)


CELLS = [
    Cell(group_size=SIZE, surface_tokens=V, scale_rewards=scale, constant_groups=constant, loss_type=loss)
    for scale in ("group", "none")
    for constant in ("kept", "resampled")
    for loss in ("dapo", "dr_grpo")
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c.scale_rewards}-{c.constant_groups}-{c.loss_type}")
@pytest.mark.parametrize("batch", [1, 3])
def test_the_drift_is_that_of_steps_made_one_by_one(cell, batch) -> None:
    cell = replace(cell, prompts_per_step=batch)
    found = predict(played(), cell)
    size = 8 if cell.loss_type == "dr_grpo" or batch == 1 else 9
    if cell.loss_type == "dapo" and cell.constant_groups == "resampled":
        size = {1: 8, 3: 18}[batch]
    number = 96 // size
    assert found.blocks == number
    drifts = {}
    direction = [
        [played()[design].gradients[at] for design in DESIGNS for at in range(b * size, b * size + size)]
        for b in range(number)
    ]
    for design in DESIGNS:
        groups, steps = played()[design], []
        for block in range(number):
            rows = range(block * size, block * size + size)
            if cell.constant_groups == "resampled":
                rows = [at for at in rows if groups.varied[at]]
            scale = groups.divisors if cell.scale_rewards == "group" else np.ones(96)
            mine = [SIZE * groups.gradients[at] / scale[at] for at in rows]
            if cell.loss_type == "dapo":
                weights = [groups.symbols[at] for at in rows]
                whole = range(0, len(mine) - batch + 1, batch)
                mine = [sum(mine[i : i + batch]) / sum(weights[i : i + batch]) for i in whole]
            steps.append(mine)
        squared, every = mean_products(steps, steps), [step for block in steps for step in block]
        variance = np.mean(np.square(every), axis=0) - squared
        drifts[design] = (squared, variance, mean_products(direction, steps))
    if (cell.scale_rewards, cell.constant_groups, cell.loss_type) == ("none", "kept", "dr_grpo"):
        both = (drifts["paired"][0] + drifts["independent"][0]) / 2
        drifts = {design: (both, variance, both) for design, (_, variance, _) in drifts.items()}
    gains = {}
    for design, (squared, variance, towards) in drifts.items():
        noise = np.maximum(variance, 0) / (1 if cell.loss_type == "dapo" else batch)
        root = np.sqrt(np.maximum(squared, 0) + noise)
        gains[design] = sum(t / r for t, r in zip(towards, root, strict=True) if r > 0)
    assert found.ratios["drift"].value == pytest.approx(gains["paired"] / gains["independent"], rel=1e-9)


def test_variances_are_those_of_the_gradients() -> None:
    found = predict(played(), Cell(group_size=SIZE, surface_tokens=V, loss_type="dr_grpo"))
    for design in DESIGNS:
        groups, figures = played()[design], found.designs[design]
        scaled = groups.gradients / groups.divisors[:, None]
        # Blocks of eight tasks: the unbiased mean differs little from the plain one.
        assert figures.trace == pytest.approx(scaled.var(axis=0, ddof=1).sum(), rel=0.01)
        assert figures.constant == 1 - groups.varied.mean()
        assert figures.draws == 1
        assert figures.strongest < figures.trace


def test_plain_steps_of_unscaled_gradients_gain_the_same() -> None:
    cell = Cell("faults_p025", SIZE, V, "none", "kept", "dr_grpo", 2, "gradient")
    assert predict(played(), cell).ratios["drift"].value == 1


def test_cells_share_what_was_played_and_processes_change_no_more_than_rounding() -> None:
    cells = [
        Cell("faults_p025", SIZE, V),
        Cell("faults_p025", SIZE, V, prompts_per_step=2),
        Cell(group_size=2),
    ]
    one = predicted_drift(cells, groups=60, seed=NAME, executor=Executor(places=1))
    told: list[str] = []
    more = Executor(places=2, watch=lambda done, total, doing: told.append(f"{done}/{total} {doing}"))
    # Matrix products differ in the last digits with the number of threads.
    for mine, other in zip(one, predicted_drift(cells, groups=60, seed=NAME, executor=more), strict=True):
        assert mine.steps == other.steps
        for name in (
            "trace",
            "along",
            "drift",
        ):  # which coordinates are strongest may be a tie of so few groups
            assert other.ratios[name].value == pytest.approx(mine.ratios[name].value, rel=1e-9)
    assert len(told) == 2
    assert [prediction.cell for prediction in one] == cells


@pytest.mark.parametrize(
    ("change", "groups", "error"),
    [
        ({"regime": "rain"}, 60, UsageError),
        ({"optimizer": "lion"}, 60, UsageError),
        ({"prompts_per_step": 0}, 60, UsageError),
        ({}, 8, IncompleteError),
        ({"prompts_per_step": 24}, 40, IncompleteError),
    ],
)
def test_what_cannot_be_predicted_says_so(change, groups, error) -> None:
    cell = Cell(**{"group_size": 2, "surface_tokens": 0, "prompts_per_step": 1, **change})
    with pytest.raises(error) as raised:
        predicted_drift([cell], groups=groups)
    assert raised.value.expected
