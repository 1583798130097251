"""Batches and the rows of their groups: what does not fit together is refused."""

from typing import Any

import pytest

from toolkit.errors import DamagedError
from toolkit.lab.training.language_model.environment import BackOffice
from toolkit.lab.training.language_model.groups import Rollout, check_groups, examples, group_rows, placed
from toolkit.specification import LanguageModelSpecification

SPECIFICATION = LanguageModelSpecification(
    study="tests", root="tests", run_id="r", condition="C2", arm="independent", seed=3, tier=1,
    role="primary", regime="faults_p025", at_noise="faults_p025", scale_rewards="group",
    steps=3, prompts_per_step=2, group_size=4,
)  # fmt: skip


def batch(step: int = 1) -> list[dict[str, Any]]:
    """Return a step as TRL hands it out: each row once a rollout."""
    rows = [row for row in examples(SPECIFICATION) if row["step"] == step]
    return [row for row in rows for _ in range(4)]


def rollout(row: dict[str, Any], **changed: Any) -> Rollout:
    environment = BackOffice()
    environment.reset(**{**row, **changed})
    return Rollout.of(row, environment, 0.5, 7, None)


def test_a_dataset_has_a_row_a_group_in_the_run_s_order() -> None:
    rows = examples(SPECIFICATION)
    assert [(row["step"], row["position"]) for row in rows] == [(s, p) for s in (1, 2, 3) for p in (0, 1)]
    assert len({row["task"] for row in rows}) == 6


def test_every_rollout_is_told_its_slot_and_that_slot_s_seed() -> None:
    rows = placed(batch(), 4)
    assert [(row["group_index"], row["rollout_slot"]) for row in rows] == [
        (group, slot) for group in (0, 1) for slot in range(4)
    ]
    assert [str(row["schedule_seed"]) for row in rows] == [
        seed for row in rows[::4] for seed in row["schedule_seeds"]
    ]


def test_a_second_process_goes_on_where_the_first_one_ends() -> None:
    whole = placed(batch(), 4)
    assert placed(batch()[:6], 4, 0) + placed(batch()[6:], 4, 6) == whole


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda rows: rows[::-1], "rollout 0 of step 1"),
        (lambda rows: [*rows[:3], rows[4], *rows[3:4], *rows[5:]], "rollout 3 of step 1"),
        (lambda rows: [*rows[:7], batch(2)[0]], "rollout 7 of step 1"),
    ],
    ids=["reversed", "two-swapped", "of-another-step"],
)
def test_a_batch_that_is_put_together_in_another_way_is_refused(change: Any, where: str) -> None:
    with pytest.raises(DamagedError, match="not the groups of its step") as raised:
        check_groups(change(batch()), 4, 1)
    assert raised.value.where == where


@pytest.mark.parametrize("changed", [{"schedule_seed": 1}, {"rollout_slot": 3}, {"group_index": 0}])
def test_a_rollout_that_was_played_elsewhere_is_refused(changed: dict[str, int]) -> None:
    row = placed(batch(), 4)[6]
    with pytest.raises(DamagedError, match="not played in its own environment"):
        rollout(row, **changed)


def test_weights_are_a_column_only_where_there_are_some() -> None:
    one = rollout(placed(batch(), 4)[0])
    (without,) = group_rows([one] * 4, 4)
    (with_weights,) = group_rows([one._replace(weight=weight) for weight in (0.0, 0.5, 1.0, 2.0)], 4)
    assert "importance_weights" not in without
    assert with_weights["importance_weights"] == [0.0, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("true", "observed", "zero_variance", "spurious"),
    [
        ("1111", "1111", True, False),
        ("1111", "1101", False, True),
        ("1111", "0000", True, False),
        ("1101", "1101", False, False),
        ("1101", "1100", False, False),
        ("0000", "0000", True, False),
    ],
)
def test_flags_follow_from_outcomes_and_rewards(
    true: str, observed: str, *, zero_variance: bool, spurious: bool
) -> None:
    one = rollout(placed(batch(), 4)[0])
    group = [
        one._replace(true_success=t == "1", observed_reward=o == "1")
        for t, o in zip(true, observed, strict=True)
    ]
    (row,) = group_rows(group, 4)
    assert (row["zero_variance"], row["spurious"]) == (zero_variance, spurious)
