"""Runs of scripted rollouts: what the trainer records, counts and follows is what their scripts came to."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest

from tests.unit.lab.training.language_model.conftest import WEIGHTS, WithVllm
from tests.unit.lab.training.language_model.scripts import MIXED, confused, hasty, inventive, stubborn
from tests.unit.lab.training.language_model.small_model import conversation
from tests.unit.lab.training.language_model.trained import EngineDeadError, Trained
from toolkit.estimators import mean_centred, standardized
from toolkit.lab.training.language_model.session import Session
from toolkit.lab.training.recipe import load_recipe
from toolkit.noise.draws import group_seeds
from toolkit.seeds import row_seed, run_seed

RUN = run_seed("tests", 3)
KEPT = np.array([weight if weight <= 3 else 0.0 for weight in WEIGHTS])


@pytest.fixture(params=["paired", "independent"])
def run(request: pytest.FixtureRequest) -> Trained:
    return request.getfixturevalue(request.param)


# ------------------------------------------------------------------------------------- groups and schedules


def test_every_rollout_met_the_schedule_that_its_design_asks_for(run: Trained) -> None:
    """Group by group, in the trainer's order; what the test's own desks met is what was recorded."""
    places = [(step, position) for step in range(1, 1 + len(run.steps)) for position in (0, 1)]
    assert [(group["step"], group["position"]) for group in run.groups] == places
    arm = run.specification.arm
    seeds = [group["schedule_seeds"] for group in run.groups]
    assert seeds == [list(group_seeds(arm, row_seed(RUN, *place), 8)) for place in places]
    assert len({seed for group in seeds for seed in group}) == len(places) * (1 if arm == "paired" else 8)
    assert all(group["schedule_seeds"][slot] == p.episode.schedule.seed for group, slot, p in run.rollouts)


def test_rollouts_that_do_the_same_meet_the_same_where_they_are_paired(run: Trained) -> None:
    """The reference agent, and the one that calls the same in other words."""
    pairs = [(step.completion(at), step.completion(at + 4)) for step in run.steps for at in (0, 8)]
    assert all(one == other for one, other in pairs) == (run.specification.arm == "paired")


def test_both_arms_of_a_seed_start_alike_and_meet_the_same_tasks(paired, independent) -> None:
    mine, theirs = ([group["task"] for group in run.groups] for run in (paired, independent))
    assert mine[:2] == theirs
    assert len(set(mine)) == 4
    assert paired.start
    assert paired.start == independent.start


# ------------------------------------------------------------------------------------- outcomes and charges


def test_outcomes_are_those_of_the_rollouts_own_desks(run: Trained) -> None:
    for group, slot, part in run.rollouts:
        assert group["true_successes"][slot] == part.episode.true_success
        assert group["observed_rewards"][slot] == bool(part.episode.observed_reward)
    for number, group in enumerate(run.groups):
        parts = [part for _, _, part in run.rollouts[8 * number : 8 * number + 8]]
        assert group["exposed"] == sum(bool(part.episode.exposures) for part in parts)
    assert any(group["exposed"] for group in run.groups)
    episodes = [part.episode for _, _, part in run.rollouts]
    assert {episode.true_success for episode in episodes} == {True, False}
    assert {episode.ended for episode in episodes} == {"finished", "budget_exceeded", "stopped"}


def test_every_attempted_call_is_charged_whatever_it_is(run: Trained) -> None:
    """An unknown tool, arguments of other names or none; to finish costs nothing, and a budget ends."""
    for step in run.steps:
        assert step.calls == [part.episode.calls for part in step.parts]
        for first in (0, 8):
            parts = {agent: step.parts[first + slot] for slot, agent in enumerate(MIXED)}
            assert parts[inventive].calls[0][0] == "look_up_everything"
            assert [arguments for _, arguments in parts[confused].calls[:2]] == [{"minutes": 3}, {}]
            assert parts[hasty].episode.calls == 0
            assert parts[stubborn].episode.ended == "budget_exceeded"


def test_advantages_are_those_of_the_estimator(run: Trained) -> None:
    for group in run.groups:
        expected = standardized(np.array(group["observed_rewards"], float))
        np.testing.assert_allclose(group["advantages"], expected, rtol=2e-6, atol=1e-7)
    assert any(not group["zero_variance"] for group in run.groups)


def test_a_flip_changes_the_reward_and_never_the_true_outcome(flips: Trained) -> None:
    """Advantages that are not scaled are centred alone."""
    flipped = [part.episode.flipped for _, _, part in flips.rollouts]
    for (group, slot, _), is_flipped in zip(flips.rollouts, flipped, strict=True):
        assert group["true_successes"][slot]
        assert group["observed_rewards"][slot] != is_flipped
    for group in flips.groups:
        expected = mean_centred(np.array(group["observed_rewards"], float))
        np.testing.assert_allclose(group["advantages"], expected, rtol=2e-6, atol=1e-7)
        assert group["spurious"] == (not group["zero_variance"])
    assert any(group["spurious"] for group in flips.groups)


# ------------------------------------------------------------------------------------------ tokens and loss


def test_the_mask_is_one_exactly_on_what_was_sampled(run: Trained) -> None:
    for step in run.steps:
        for at, part in enumerate(step.parts):
            ids, mask = step.completion(at)
            sampled = [token for token, counts in zip(ids, mask, strict=True) if counts]
            assert sampled == [token for turn in part.turns for token in turn]


def test_between_two_turns_stand_the_answers_of_the_tools(run: Trained, tokenizer: Any) -> None:
    """A transcript is the conversation as the template renders it whole, but for the last answer."""
    for step in run.steps:
        for at, part in enumerate(step.parts):
            calls = [(c.tool, c.arguments, c.answer) for c in part.episode.trace]
            messages = conversation(part.episode.task.prompt, calls)
            stopped = part.episode.ended == "stopped"
            if stopped:
                messages.append({"role": "assistant", "content": "done"})
            whole = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
            transcript = step.prompt(at) + step.completion(at)[0]
            assert transcript == whole[: len(transcript)]
            rest = tokenizer.decode(whole[len(transcript) :])
            assert rest == "" if stopped else rest.startswith("<tool>")


def test_the_loss_is_divided_by_the_tokens_that_the_mask_counts(run: Trained) -> None:
    tokens = [group["tokens"][slot] for group, slot, _ in run.rollouts]
    assert tokens == [sum(map(len, part.turns)) for _, _, part in run.rollouts]
    sums = [int(step.output["num_items_in_batch"]) for step in run.steps]
    assert sums == [sum(tokens[at : at + 16]) for at in range(0, len(tokens), 16)]


def apart(run: Trained, weights: np.ndarray) -> list[float]:
    """Return how far each step's gradient is from T⁻¹ Σ A w S of the register's rows and the probe's scores.

    Source:
        Paper app:probe.
    """
    distances = []
    for number, step in enumerate(run.steps):
        groups = run.groups[2 * number : 2 * number + 2]
        advantages = np.concatenate([group["advantages"] for group in groups])
        tokens = sum(sum(group["tokens"]) for group in groups)
        expected = (advantages * weights) @ step.scores / tokens
        distances.append(np.linalg.norm(step.gradient + expected) / np.linalg.norm(expected))
    return distances


def test_the_loss_s_gradient_is_the_mean_of_advantage_times_score(paired: Trained) -> None:
    assert max(apart(paired, np.ones(16))) < 1e-4
    for step in paired.steps:
        masks = (step.output["prompt_mask"], step.output["completion_mask"])
        assert all(bool((mask == 0).any()) for mask in masks), "nothing was padded"
    assert "linear_attention" in paired.session.trainer.model.config.layer_types


# --------------------------------------------------------------------------------- vLLM, in TRL's own loop


def test_importance_weights_enter_the_gradient_and_are_recorded(with_vllm: WithVllm) -> None:
    """A weight above the bound is masked."""
    assert max(apart(with_vllm.run, KEPT)) < 1e-4
    assert min(apart(with_vllm.run, np.ones(16))) > 0.1
    recorded = np.concatenate([group["importance_weights"] for group in with_vllm.run.groups])
    np.testing.assert_allclose(recorded, KEPT, rtol=1e-4)


def test_both_ways_sample_and_record_the_same(with_vllm: WithVllm, paired: Trained) -> None:
    (step,), other = with_vllm.run.steps, paired.steps[0]
    assert step.calls == other.calls
    for at in range(16):
        ids, mask = step.completion(at)
        there, counted = other.completion(at)
        # The answer to the call that ended a rollout is appended here, and read by nobody.
        assert ids[: len(there)] == there
        assert mask[: len(there)] == counted
        assert not any(mask[len(there) :])
    for group, expected in zip(with_vllm.run.groups, paired.groups[:2], strict=True):
        assert {name: value for name, value in group.items() if name != "importance_weights"} == expected


def test_a_rollout_that_is_over_is_not_sent_to_the_engine(with_vllm: WithVllm) -> None:
    """It would fail where it is asked after the end; here: it was asked once a turn, and no more."""
    asked, parts = with_vllm.engine.asked[:-2], [part for _, _, part in with_vllm.run.rollouts]
    assert sum(asked) == sum(len(part.turns) for part in parts)
    assert asked[0] == 16 > asked[1]


def test_an_engine_that_dies_is_told_of_and_what_was_recorded_stays(with_vllm: WithVllm) -> None:
    assert with_vllm.told.problem == "the vLLM engine died"
    assert isinstance(with_vllm.told.__cause__, EngineDeadError)
    assert [group["step"] for group in with_vllm.run.groups] == [1, 1]
    assert with_vllm.run.saved == [1]
    assert with_vllm.engine.synced == 2, "the engine gets the weights of every step"


@pytest.mark.parametrize("sleep", ["false", "true"])
def test_an_engine_that_sleeps_is_woken_with_its_caches_before_it_evaluates(sleep: str) -> None:
    """Of itself, TRL's synchronization wakes the weights alone."""
    recipe = load_recipe("qwen3.5-2b", changes=[f"engine.sleep={sleep}"])
    llm, happened = Mock(), Mock()
    llm.llm_engine.model_config.max_model_len = 100
    generation = SimpleNamespace(llm=llm, sync_weights=happened.sync_weights)
    llm.wake_up = happened.wake_up
    trainer = SimpleNamespace(use_vllm=True, vllm_generation=generation, chat=None)
    Session(trainer, recipe).engine()
    assert happened.mock_calls == [call.sync_weights()] + [call.wake_up(tags=["kv_cache"])] * (
        sleep == "true"
    )
