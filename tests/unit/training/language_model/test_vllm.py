"""With vLLM, TRL's own loop takes the turns: the same rollouts, and importance weights that are recorded."""

import numpy as np

from tests.unit.training.language_model.conftest import WEIGHTS, WithVllm
from tests.unit.training.language_model.test_gradient import NEAR, expected, relative
from tests.unit.training.language_model.trained import Trained

KEPT = np.array([weight if weight <= 3 else 0.0 for weight in WEIGHTS])


def test_both_ways_sample_the_same_tokens(with_vllm: WithVllm, paired: Trained) -> None:
    for step, other in zip(with_vllm.run.steps, paired.steps, strict=True):
        for at, part in enumerate(step.parts):
            ids, mask = step.completion(at)
            there, counted = other.completion(at)
            # The answer to the call that ended a rollout is appended here, and read by nobody.
            assert ids[: len(there)] == there
            assert mask[: len(there)] == counted
            assert not any(mask[len(there) :])
            assert part.turns


def test_both_ways_record_the_same_groups_but_for_the_weights(with_vllm: WithVllm, paired: Trained) -> None:
    without = [
        {name: value for name, value in group.items() if name != "importance_weights"}
        for group in with_vllm.run.groups
    ]
    assert without == paired.groups


def test_both_ways_charge_the_same_calls(with_vllm: WithVllm, paired: Trained) -> None:
    assert [step.calls for step in with_vllm.run.steps] == [step.calls for step in paired.steps]


def test_a_rollout_that_is_over_is_not_sent_to_the_engine(with_vllm: WithVllm) -> None:
    """It would fail where it is asked after the end; here: it was asked once a turn, and no more."""
    turns = sum(len(part.turns) for step in with_vllm.run.steps for part in step.parts)
    assert sum(with_vllm.engine.asked) == turns
    assert with_vllm.engine.asked[0] == 16 > with_vllm.engine.asked[1]


def test_the_engine_gets_the_weights_of_every_step(with_vllm: WithVllm) -> None:
    assert with_vllm.engine.synced == 2


def test_importance_weights_are_recorded_in_their_own_rollouts(with_vllm: WithVllm) -> None:
    for number in (1, 2):
        groups = [group for group in with_vllm.run.groups if group["step"] == number]
        found = np.concatenate([group["importance_weights"] for group in groups])
        np.testing.assert_allclose(found, KEPT, rtol=1e-4)


def test_a_weight_above_the_bound_is_masked(with_vllm: WithVllm) -> None:
    for group in with_vllm.run.groups:
        assert [at for at, weight in enumerate(group["importance_weights"]) if weight == 0] == [3, 6]


def test_the_loss_s_gradient_is_the_mean_of_advantage_times_weight_times_score(with_vllm: WithVllm) -> None:
    for number, step in enumerate(with_vllm.run.steps, start=1):
        assert relative(-step.gradient, expected(with_vllm.run, number, KEPT)) < NEAR


def test_the_weights_matter_to_the_gradient(with_vllm: WithVllm) -> None:
    plain = expected(with_vllm.run, 1, np.ones(16))
    assert relative(expected(with_vllm.run, 1, KEPT), plain) > 0.1
