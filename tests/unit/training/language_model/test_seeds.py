"""Schedules by group and slot: what the register says that each rollout met is what its design asks for."""

from pathlib import Path

import pytest

from tests.unit.training.language_model.scripts import MIXED
from tests.unit.training.language_model.trained import Trained
from toolkit.noise.draws import group_seeds
from toolkit.registers.arrow import Row
from toolkit.seeds import row_seed, run_seed

PLACES = [(1, 0), (1, 1), (2, 0), (2, 1)]
RUN = run_seed("tests", 3)


def column(groups: list[Row], name: str) -> list[object]:
    return [group[name] for group in groups]


def test_every_group_of_every_step_is_recorded_in_the_trainer_s_order(paired: Trained) -> None:
    assert [(group["step"], group["position"]) for group in paired.groups] == PLACES


def test_rollouts_of_a_paired_group_share_one_schedule(paired: Trained) -> None:
    assert column(paired.groups, "schedule_seeds") == [
        list(group_seeds("paired", row_seed(RUN, *place), 8)) for place in PLACES
    ]
    assert [len(set(group["schedule_seeds"])) for group in paired.groups] == [1, 1, 1, 1]


def test_rollouts_of_an_independent_group_have_a_schedule_each(independent: Trained) -> None:
    assert column(independent.groups, "schedule_seeds") == [
        list(group_seeds("independent", row_seed(RUN, *place), 8)) for place in PLACES
    ]
    assert len({seed for group in independent.groups for seed in group["schedule_seeds"]}) == 32


def test_paired_rollouts_that_do_the_same_meet_the_same(paired: Trained) -> None:
    """The reference agent, and the one that calls the same in other words."""
    for step in paired.steps:
        for first in (0, 8):
            assert step.completion(first) == step.completion(first + 4)


def test_independent_rollouts_that_do_the_same_meet_different_faults(independent: Trained) -> None:
    pairs = [(step.completion(at), step.completion(at + 4)) for step in independent.steps for at in (0, 8)]
    assert any(one != other for one, other in pairs)


def test_both_arms_of_a_seed_meet_the_same_tasks_in_the_same_order(
    paired: Trained, independent: Trained
) -> None:
    assert column(paired.groups, "task") == column(independent.groups, "task")
    assert len(set(column(paired.groups, "task"))) == 4


def test_arms_of_a_seed_start_from_one_adapter(paired: Trained, independent: Trained) -> None:
    assert paired.start
    assert paired.start == independent.start


def test_another_seed_starts_from_another_adapter(paired: Trained, model: str, tmp_path: Path) -> None:
    from tests.unit.training.language_model.small_model import specified
    from tests.unit.training.language_model.trained import adapter_of, opened

    other = opened(model, tmp_path, specified(model, seed=4, run_id="c2-paired-s4"), [])
    assert adapter_of(other).keys() == paired.start.keys()
    assert adapter_of(other) != paired.start


@pytest.mark.parametrize(("arm", "shared"), [("blocking", False), ("blocking_paired", True)])
def test_a_blocking_arm_has_a_clean_and_a_noisy_group_of_every_task(
    model: str, tmp_path: Path, arm: str, *, shared: bool
) -> None:
    from tests.unit.training.language_model.trained import trained

    run = trained(model, tmp_path, ["step.steps=1"], agents=MIXED, arm=arm, run_id=f"c2-{arm}-s3")
    clean, noisy = run.groups
    assert (clean["regime"], noisy["regime"]) == ("clean", "faults_p025")
    assert clean["task"] == noisy["task"]
    assert len(set(clean["schedule_seeds"])) == 8
    assert (len(set(noisy["schedule_seeds"])) == 1) == shared
    assert clean["exposed"] == 0 < noisy["exposed"]
