"""Evaluation sets and the luck-share diagnostic."""

import pytest

from toolkit.lab.evaluation.diagnostic import diagnose, regime_diagnosed
from toolkit.lab.evaluation.play import evaluate
from toolkit.lab.evaluation.sets import EvaluationSet, sets_at
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.registers.row_tables import EPISODES, LUCK_SHARE, OF_IMPORTS
from toolkit.seeds import evaluation_seed

POLICY = Policy(untrained(2), 2)
FEW = EvaluationSet("periodic", "validation", "faults_p025", 6, 2)


def sizes(at_noise: str) -> dict[str, tuple[int, int]]:
    """Return name → (tasks, schedules) of the sets at a run's last checkpoint."""
    return {s.name: (s.tasks, s.schedules) for s in sets_at("registered", at_noise, is_last=True)}


def test_the_registered_sets_of_a_run_under_faults() -> None:
    assert sizes("faults_p025") == {
        "periodic/clean": (64, 2),
        "periodic/faults_p025": (64, 2),
        "periodic/challenge": (64, 1),
        "final/clean": (200, 4),
        "final/faults_p010": (200, 4),
        "final/faults_p025": (200, 4),
        "final/held_out_types": (200, 4),
        "final/challenge": (200, 1),
    }


def test_training_noise_that_is_no_final_set_is_added() -> None:
    assert sizes("flips_q010")["final/flips_q010"] == (200, 4)


def test_before_the_end_there_are_no_final_sets() -> None:
    assert {s.phase for s in sets_at("registered", "faults_p025", is_last=False)} == {"periodic"}


@pytest.mark.parametrize(("at_noise", "regime"), [("flips_q010", "clean"), ("faults_p025", "faults_p025")])
def test_a_learning_curve_is_true_success_at_training_noise(at_noise: str, regime: str) -> None:
    for battery, tasks in (("learning", 300), ("curve", 100)):
        expected = EvaluationSet("periodic", "validation", regime, tasks, 2)
        assert sets_at(battery, at_noise, is_last=True) == (expected,)


def test_the_small_battery_has_the_registered_sets_with_fewer_episodes() -> None:
    registered = sets_at("registered", "flips_q010", is_last=True)
    small = sets_at("small", "flips_q010", is_last=True)
    assert [one.name for one in small] == [one.name for one in registered]
    pairs = list(zip(small, registered, strict=True))
    assert all(one.tasks <= other.tasks and one.schedules <= other.schedules for one, other in pairs)
    assert sum(one.tasks * one.schedules for one in small) == 64 * 3 + 64 * 5 + 64


@pytest.mark.parametrize(("battery", "tasks"), [("learning", [61]), ("small", [61] * 3 + [54] * 5)])
def test_sets_of_one_request_are_the_first_such_tasks_and_all_where_there_are_too_few(
    battery: str, tasks: list[int]
) -> None:
    alone = sets_at(battery, "faults_p025", is_last=True, sub_requests=1)
    every = sets_at(battery, "faults_p025", is_last=True)
    assert [one.tasks for one in alone] == tasks
    assert [one.name for one in alone] == [one.name for one in every]
    assert all(list(one.positions) == sorted(set(one.positions)) for one in alone)
    few = alone[0]._replace(tasks=3)
    assert few.positions == alone[0].positions[:3]


def test_an_unknown_battery_is_refused() -> None:
    with pytest.raises(ValueError, match="no battery"):
        sets_at("other", "clean", is_last=False)


def test_a_row_has_the_columns_of_the_register() -> None:
    assert set(evaluate(POLICY, FEW, "r", 0, 1)[0]) == set(EPISODES.column_names) - {*OF_IMPORTS}


def test_schedules_depend_on_task_and_index_alone() -> None:
    rows = evaluate(POLICY, FEW, "r", 0, 1) + evaluate(POLICY, FEW, "other", 40, 2)
    assert all(r["schedule_seed"] == evaluation_seed(f"validation:{r['task']}", r["schedule"]) for r in rows)


def test_runs_and_steps_sample_on_their_own() -> None:
    first, second = (evaluate(POLICY, FEW._replace(tasks=40), "r", 0, s) for s in (1, 2))
    assert [r["calls"] for r in first] != [r["calls"] for r in second]


def test_exposure_counts_what_landed() -> None:
    clean = evaluate(POLICY, FEW._replace(regime="clean"), "r", 0, 1)
    assert sum(r["transient"] + r["outage"] + r["stale_read"] for r in clean) == 0


def test_a_diagnostic_has_a_row_a_task_and_schedule() -> None:
    rows = diagnose(POLICY, "faults_p025", "r", 0, 1)
    assert [(r["task"], r["schedule"]) for r in rows] == [(t, k) for t in range(16) for k in range(8)]
    assert set(rows[0]) == set(LUCK_SHARE.column_names)
    assert {len(r["true_successes"]) for r in rows} == {8}


@pytest.mark.parametrize(
    ("training", "regime"),
    [("flips_q010", "faults_p025"), ("clean", "faults_p025"), ("faults_p010", "faults_p010")],
)
def test_runs_without_faults_are_diagnosed_under_the_default_mixture(training: str, regime: str) -> None:
    assert regime_diagnosed(training) == regime
