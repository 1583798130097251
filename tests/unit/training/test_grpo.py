"""GRPO: groups, advantages, gradient, Adam, checkpoints."""

import hashlib
import struct
from dataclasses import replace
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DamagedError
from toolkit.estimators import mean_centred, standardized
from toolkit.policies.loglinear import Policy, layout, untrained
from toolkit.policies.score import score
from toolkit.training.adam import Weights, ascend, start
from toolkit.training.checkpoint import checkpoint_row, read_checkpoint
from toolkit.training.grpo import advantages_of, play_rollout, train_step
from toolkit.training.rows import groups_at
from toolkit.training.specification import Specification

SMALL = Specification(
    study="test",
    root="test",
    run_id="c4-paired-s0",
    condition="C4",
    arm="paired",
    seed=0,
    tier=1,
    role="primary",
    regime="flips_q010",
    at_noise="flips_q010",
    scale_rewards="group",
    prompts_per_step=4,
    surface_tokens=2,
)
# Of the parameters after two steps of the small run: the same bits on every machine, Python and library.
TWO_STEPS = "53f573c77d7fc2246f416bbaafe8d393f3e1951e1d01a25f59d5caa887151af9"


def arm(name: str, **changes: object) -> Specification:
    """Return the small specification for another arm."""
    return replace(SMALL, arm=name, run_id=f"c4-{name}-s0", **changes)


def trained(specification: Specification, steps: int) -> Weights:
    """Train from the start."""
    weights = start(untrained(specification.surface_tokens))
    for _ in range(steps):
        weights, _rows = train_step(specification, weights)
    return weights


@given(st.lists(st.integers(0, 1), min_size=2, max_size=12))
def test_advantages_are_the_estimators(rewards: list[int]) -> None:
    for scaled, estimator in ((True, standardized), (False, mean_centred)):
        advantages = advantages_of(tuple(rewards), scaled=scaled)
        assert advantages == pytest.approx(estimator(rewards).tolist(), abs=1e-12)


@pytest.mark.parametrize(("name", "number"), [("paired", 1), ("independent", 8)])
def test_groups_share_a_schedule_where_they_are_paired(name: str, number: int) -> None:
    assert {len(set(g.schedule_seeds)) for g in groups_at(arm(name), 1)} == {number}


def test_arms_of_one_seed_meet_the_same_tasks_in_the_same_order_and_other_seeds_others() -> None:
    specifications = (SMALL, arm("independent"), arm("clean"), replace(SMALL, seed=1))
    mine, *theirs, other = ([g.task for s in range(1, 9) for g in groups_at(a, s)] for a in specifications)
    assert theirs == [mine] * 2
    assert other != mine


def test_every_task_is_met_once_before_any_is_met_again() -> None:
    whole = replace(SMALL, prompts_per_step=20)
    met = [group.task for step in range(1, 101) for group in groups_at(whole, step)]
    assert sorted(met) == list(range(2000))


def test_groups_of_one_step_have_schedules_of_their_own() -> None:
    seeds = [group.schedule_seeds[0] for step in (1, 2) for group in groups_at(SMALL, step)]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize(("name", "shared"), [("blocking", 8), ("blocking_paired", 1)])
def test_blocking_plays_each_task_clean_and_noisy(name: str, shared: int) -> None:
    groups = groups_at(arm(name), 1)
    assert [(g.position, g.regime) for g in groups] == list(enumerate(("clean", "flips_q010") * 2))
    assert [g.task for g in groups[::2]] == [g.task for g in groups[1::2]]
    assert {len(set(g.schedule_seeds)) for g in groups if g.regime != "clean"} == {shared}


def test_a_step_climbs_the_token_weighted_gradient() -> None:
    before = start(untrained(2))
    policy = Policy(before.parameters, 2)
    after, rows = train_step(SMALL, before)
    parts, symbols = [], 0
    for group, row in zip(groups_at(SMALL, 1), rows, strict=True):
        played = [play_rollout(SMALL, policy, 1, group, slot) for slot in range(8)]
        symbols += sum(len(r.decisions) + len(r.tokens) for r, _ in played)
        rewards = [episode.observed_reward for _, episode in played]
        assert row["observed_rewards"] == list(map(bool, rewards))
        parts += [
            [a * s for s in score(policy, r)] for a, (r, _) in zip(standardized(rewards), played, strict=True)
        ]
    gradient = [fsum(column) / symbols for column in zip(*parts, strict=True)]
    assert [m / 0.1 for m in after.first_moment] == pytest.approx(gradient, abs=1e-12)


def test_adam_is_the_algorithm_of_its_paper() -> None:
    slopes = np.random.default_rng(1).normal(size=(20, 3))
    weights, theta, m, v = start([0.5, -1.0, 2.0]), np.array([0.5, -1.0, 2.0]), np.zeros(3), np.zeros(3)
    for step, slope in enumerate(slopes, 1):
        weights = ascend(weights, slope.tolist(), 0.01)
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        theta += 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    assert weights.parameters == pytest.approx(theta.tolist(), rel=1e-12)


def test_training_gives_the_same_bits_everywhere() -> None:
    parameters = trained(SMALL, 2).parameters
    assert hashlib.sha256(struct.pack(f"<{len(parameters)}d", *parameters)).hexdigest() == TWO_STEPS


def test_arms_take_samples_of_their_own() -> None:
    assert trained(SMALL, 1) != trained(replace(SMALL, run_id="another"), 1)


@pytest.mark.parametrize(("name", "is_any"), [("independent", True), ("paired", False)])
def test_a_spurious_group_is_all_correct_and_varies_and_none_is_paired(name: str, *, is_any: bool) -> None:
    _, rows = train_step(arm(name, prompts_per_step=24), start(untrained(2)))
    spurious = [all(r["true_successes"]) and len(set(r["observed_rewards"])) == 2 for r in rows]
    assert [r["spurious"] for r in rows] == spurious
    assert any(spurious) == is_any


def test_a_checkpoint_comes_back_bit_for_bit() -> None:
    weights = trained(SMALL, 1)
    row = checkpoint_row("r", weights)
    assert read_checkpoint(row, "r", layout(2).size) == weights


@pytest.mark.parametrize(
    ("run_id", "surface_tokens", "number", "problem"),
    [
        ("s", 2, 0.0, "another run"),
        ("r", 16, 0.0, "another policy"),
        ("r", 2, 1e-300, "not those that were written"),
    ],
)
def test_another_checkpoint_or_a_changed_one_is_refused(
    run_id: str, surface_tokens: int, number: float, problem: str
) -> None:
    row = checkpoint_row("r", start(untrained(2)))
    row["second_moment"][3] = number
    with pytest.raises(DamagedError, match=problem):
        read_checkpoint(row, run_id, layout(surface_tokens).size)
