"""GRPO: groups, advantages, gradient, Adam, checkpoints."""

import hashlib
import struct
from itertools import islice, product
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DamagedError
from toolkit.estimators import mean_centred, standardized
from toolkit.lab.policies.agent import score
from toolkit.lab.policies.loglinear import Policy, layout, untrained
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.checkpoint import Weights, ascend, checkpoint_row, read_checkpoint, start
from toolkit.lab.training.grpo import advantages_of, play_rollout, train_step
from toolkit.lab.training.rows import draws_at, groups_at
from toolkit.specification import Specification
from toolkit.structs import replace

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


def test_tasks_of_one_request_are_met_once_before_any_is_met_again() -> None:
    alone = replace(SMALL, prompts_per_step=5, sub_requests=1)
    met = [group.task for step in range(1, 82) for group in groups_at(alone, step)]
    assert len(set(met)) == len(met) == 405
    assert {len(load_task(f"train:{task}").templates) for task in met} == {1}
    again = [group.task for step in range(82, 163) for group in groups_at(alone, step)]
    assert (sorted(again), again != met) == (sorted(met), True)
    seeds = [group.schedule_seeds[0] for step in (1, 2) for group in groups_at(SMALL, step)]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize(("name", "shared"), [("blocking", 8), ("blocking_paired", 1)])
def test_blocking_plays_each_task_clean_and_noisy(name: str, shared: int) -> None:
    groups = groups_at(arm(name), 1)
    assert [(g.position, g.regime) for g in groups] == list(enumerate(("clean", "flips_q010") * 2))
    assert [g.task for g in groups[::2]] == [g.task for g in groups[1::2]]
    assert {len(set(g.schedule_seeds)) for g in groups if g.regime != "clean"} == {shared}


@pytest.mark.parametrize("decay", [0.999, 0.9, 0.0])
def test_adam_is_the_algorithm_of_its_paper(decay: float) -> None:
    slopes = np.random.default_rng(1).normal(size=(20, 4)) * [1, 1e-3, 1e-9, 0]
    theta, m, v = np.array([0.5, -1.0, 2.0, 3.0]), np.zeros(4), np.zeros(4)
    weights = start(theta.tolist())
    for step, slope in enumerate(slopes, 1):
        weights = ascend(weights, slope.tolist(), 0.01, square_decay=decay)
        m, v = 0.9 * m + 0.1 * slope, decay * v + (1 - decay) * slope**2
        theta += 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - decay**step)) + 1e-8)
    assert weights.parameters == pytest.approx(theta.tolist(), rel=1e-12)


@pytest.mark.parametrize(
    ("optimizer", "moved"), [("gradient", (0.25, 0.0, -1.5)), ("sign", (0.5, 0.0, -0.5))]
)
def test_a_step_without_moments_by_hand(optimizer: str, moved: tuple[float, ...]) -> None:
    before = start([1.0, 1.0, 1.0])
    after = ascend(before, [0.5, 0.0, -3.0], 0.5, optimizer)
    assert [parameter - 1.0 for parameter in after.parameters] == list(moved)
    assert after == Weights(1, after.parameters, before.first_moment, before.second_moment)


def test_an_optimizer_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no optimizer 'lion'"):
        ascend(start([0.0]), [1.0], 0.1, "lion")


RESAMPLED = replace(SMALL, constant_groups="resampled")


def by_hand(run: Specification, most: int) -> tuple[list[list[int]], list[float], int, int]:
    """Draw the first step's groups; return rewards, the sum of scaled scores, and symbols and groups kept."""
    policy, rewards, parts, symbols, kept = Policy(untrained(2), 2), [], [[0.0]], 0, 0
    for group in islice(draws_at(run, 1), most):
        played = [play_rollout(run, policy, 1, group, slot) for slot in range(8)]
        rewards.append([episode.observed_reward for _, episode in played])
        if len(set(rewards[-1])) == 2:
            kept += 1
            symbols += sum(len(r.decisions) + len(r.tokens) for r, _ in played)
            scaled = standardized(rewards[-1]) if run.scale_rewards == "group" else mean_centred(rewards[-1])
            parts += [[a * s for s in score(policy, r)] for a, (r, _) in zip(scaled, played, strict=True)]
        if kept == run.prompts_per_step:
            break
    whole = [fsum(column) for column in zip(*(parts[1:] or [[0.0] * 414]), strict=True)]
    return rewards, whole, symbols, kept


@pytest.mark.parametrize("loss_type", ["dapo", "dr_grpo"])
@pytest.mark.parametrize("arm_name", ["paired", "independent"])
def test_a_resampled_step_drops_constant_groups_and_climbs_on_the_others(arm_name, loss_type) -> None:
    run = arm(
        arm_name, constant_groups="resampled", loss_type=loss_type, optimizer="gradient", learning_rate="1"
    )
    before = start(untrained(2))
    after, rows = train_step(run, before)
    rewards, whole, symbols, kept = by_hand(run, 40)
    assert [row["observed_rewards"] for row in rows] == [list(map(bool, each)) for each in rewards]
    assert len(rows) > kept == 4
    divisor = symbols if loss_type == "dapo" else 4 * 8
    moved = [b - a for a, b in zip(before.parameters, after.parameters, strict=True)]
    assert moved == pytest.approx([part / divisor for part in whole], abs=1e-12)


@pytest.mark.parametrize("most", [1, 2])
def test_a_step_that_has_drawn_the_most_goes_on_with_what_it_has(monkeypatch, most) -> None:
    monkeypatch.setattr("toolkit.lab.training.rows.MOST_DRAWS", most)
    run = replace(RESAMPLED, prompts_per_step=3, optimizer="gradient", learning_rate="1")
    runs = (replace(run, seed=seed) for seed in range(20))
    run, (_, whole, symbols, kept) = next((r, h) for r in runs if (h := by_hand(r, 3 * most))[3] in (1, 2))
    before = start(untrained(2))
    after, rows = train_step(run, before)
    assert (len(rows), kept < 3) == (3 * most, True)
    moved = [b - a for a, b in zip(before.parameters, after.parameters, strict=True)]
    assert moved == pytest.approx([part / symbols for part in whole], abs=1e-12)


def test_a_step_without_a_varied_group_climbs_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.lab.training.rows.MOST_DRAWS", 1)
    runs = (replace(RESAMPLED, prompts_per_step=1, seed=seed) for seed in range(50))
    for loss_type, run in product(("dapo", "dr_grpo"), runs):
        after, (row,) = train_step(replace(run, loss_type=loss_type), start(untrained(2)))
        if row["zero_variance"]:
            assert after.parameters == untrained(2)
            return
    raise AssertionError("fifty groups in a row vary")


def test_draws_begin_with_the_groups_of_a_run_that_keeps_all_and_no_task_comes_twice() -> None:
    run = replace(RESAMPLED, steps=50)
    steps = [list(draws_at(run, step)) for step in range(1, 51)]
    assert {len(draws) for draws in steps} == {4 * 10}
    assert [tuple(draws[:4]) for draws in steps] == [groups_at(SMALL, step) for step in range(1, 51)]
    assert [groups_at(run, step) for step in range(1, 51)] == [tuple(draws[:4]) for draws in steps]
    assert sorted(group.task for draws in steps for group in draws) == list(range(2000))
    assert [group.position for group in steps[7]] == list(range(40))
    seeds = [group.schedule_seeds for draws in steps for group in draws]
    assert len(set(seeds)) == len(seeds)


def test_training_gives_the_same_bits_everywhere_and_arms_take_samples_of_their_own() -> None:
    parameters = trained(SMALL, 2).parameters
    assert hashlib.sha256(struct.pack(f"<{len(parameters)}d", *parameters)).hexdigest() == TWO_STEPS
    assert trained(SMALL, 1) != trained(replace(SMALL, run_id="another"), 1)


@pytest.mark.parametrize(("name", "is_any"), [("independent", True), ("paired", False)])
def test_a_spurious_group_is_all_correct_and_varies_and_none_is_paired(name: str, *, is_any: bool) -> None:
    _, rows = train_step(arm(name, prompts_per_step=24), start(untrained(2)))
    spurious = [all(r["true_successes"]) and len(set(r["observed_rewards"])) == 2 for r in rows]
    assert [r["spurious"] for r in rows] == spurious
    assert any(spurious) == is_any


@pytest.mark.parametrize(
    ("run_id", "surface_tokens", "number", "problem"),
    [
        ("s", 2, 0.0, "another run"),
        ("r", 16, 0.0, "another policy"),
        ("r", 2, 1e-300, "not those that were written"),
    ],
)
def test_another_checkpoint_or_a_changed_one_is_refused(run_id, surface_tokens, number, problem) -> None:
    weights = trained(SMALL, 1)
    row = checkpoint_row("r", weights)
    assert read_checkpoint(row, "r", layout(2).size) == weights
    row = checkpoint_row("r", start(untrained(2)))
    row["second_moment"][3] = number
    with pytest.raises(DamagedError, match=problem):
        read_checkpoint(row, run_id, layout(surface_tokens).size)
