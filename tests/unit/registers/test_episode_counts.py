"""Episodes counted by task: every row once, one noise for all, from files that are the manifest's."""

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.row_study import with_column, with_value
from tests.unit.decisions.rows_study import SMALL_RUNS, VALIDATION, Evaluation, episodes_of, write_rows_study
from toolkit.errors import DamagedError
from toolkit.registers.arrow import arrow_schema
from toolkit.registers.episode_counts import (
    COUNTED,
    COUNTED_OF_GROUPS,
    PLACE,
    Counts,
    count_groups,
    count_run,
    success_counts,
)
from toolkit.registers.row_tables import FAULTS, GROUPS
from toolkit.registers.schema import EVALUATIONS
from toolkit.registers.study import Study

WHERE = {"phase": "periodic", "pool": "validation", "regime": "clean"}
RUN = SMALL_RUNS[0]
RUNS = [run.id for run in SMALL_RUNS]


def counted(study: Study, *runs: str, steps: tuple[int, ...] = (0, 20)) -> Counts:
    return study.success_counts("true_success", runs or (RUN.id,), WHERE, steps)


def changed(column: str, row: int, value: object) -> pa.Table:
    """Return a run's episodes with one value changed."""
    return with_value(episodes_of(RUN, [VALIDATION]), column, row, value)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return write_rows_study(tmp_path_factory.mktemp("plain"))


def test_successes_are_counted_as_a_loop_counts_them(plain: Study) -> None:
    expected: dict[tuple[str, int], dict[int, int]] = {}
    for run in SMALL_RUNS:
        for row in episodes_of(run, [VALIDATION]).to_pylist():
            tasks = expected.setdefault((run.id, row["step"]), {})
            tasks[row["task"]] = tasks.get(row["task"], 0) + row["true_success"]
    counts = counted(plain, *RUNS)
    assert {at: {t: c.successes for t, c in tasks.items()} for at, tasks in counts.items()} == expected
    assert {(c.episodes, c.last_schedule) for tasks in counts.values() for c in tasks.values()} == {(2, 1)}
    assert counted(plain, "nobody") == {}


def test_other_steps_regimes_and_runs_are_not_counted(tmp_path: Path) -> None:
    other = Evaluation("periodic", "validation", "challenge", (0, 20), 3, 2)
    study = write_rows_study(tmp_path, evaluations=(VALIDATION, other))
    assert counted(study, steps=(20,)) == {(RUN.id, 20): counted(study)[RUN.id, 20]}
    assert len(counted(study)[RUN.id, 20]) == VALIDATION.tasks


def test_a_full_column_may_be_called_nullable_and_have_no_statistics(tmp_path: Path, plain: Study) -> None:
    rows = episodes_of(RUN, [VALIDATION])
    loose = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
    study = write_rows_study(tmp_path, episodes={RUN.id: loose}, statistics=False)
    assert counted(study, *RUNS) == counted(plain, *RUNS)


def twice(at: int) -> pa.Table:
    rows = episodes_of(RUN, [VALIDATION])
    return pa.concat_tables([rows.slice(0, at), rows.slice(3, 1), rows.slice(at)])


def without(column: str) -> pa.Table:
    """Return a run's episodes, the last of which lacks a value."""
    rows = episodes_of(RUN, [VALIDATION])
    there = pa.array([True] * (rows.num_rows - 1) + [False])
    return with_column(rows, column, pc.if_else(there, rows[column], None))


DAMAGED = {
    "an episode beside itself": (lambda: twice(4), "has an episode twice"),
    "an episode at the end, too": (lambda: twice(20), "has an episode twice"),
    "a schedule with two seeds": (lambda: changed("schedule_seed", 0, 1), "two seeds"),
    "an outcome that is absent": (lambda: without("true_success"), "true_success is absent"),
    "a regime that is absent": (lambda: without("regime"), "regime is absent"),
    "rows of another run": (
        lambda: pa.concat_tables([episodes_of(run, [VALIDATION]) for run in SMALL_RUNS[:2]]),
        "has rows of another run",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_episodes_are_not_counted(tmp_path: Path, damage: str) -> None:
    rows, problem = DAMAGED[damage]
    study = write_rows_study(tmp_path, episodes={RUN.id: rows()})
    with pytest.raises(DamagedError, match=problem):
        counted(study, *RUNS)


def made() -> list[dict[str, Any]]:
    """Return rows of one run: two evaluations, of which the first met no fault, and tasks not from 0 on."""
    rows: list[dict[str, Any]] = []
    for step, tasks in ((0, (3, 4)), (20, (1, 3, 4))):
        for task in tasks:
            for schedule in range(1 + (task + step) % 3):
                success = (task + schedule) % 2 == 0
                row = dict.fromkeys(COUNTED, 0) | WHERE | {"run_id": "r", "step": step, "task": task}
                row |= {"schedule": schedule, "schedule_seed": 9 * task + schedule, "calls": 3 + task}
                row |= {"true_success": success, "observed_reward": success and not schedule}
                row |= {"score": 0.1 * task + 1e-9 * schedule, "missing": task == 1, "tokens": 7 * task}
                row |= {"cost": 0.1, "excluded": step == 20 and task == 1}
                row |= {
                    "transient": step and task % 2,
                    "ended": "finished" if task > 1 else "budget_exceeded",
                }
                rows.append(row | {"rate_limit": 2 * (step and task == 4)})
    return rows


def test_evaluations_are_counted_as_loops_count_them() -> None:
    rows, expected = made(), []
    for step in (0, 20):
        there = [row for row in rows if row["step"] == step]
        mine = [row for row in there if not row["excluded"]]
        exposed = [row for row in mine if sum(row[fault] for fault in FAULTS)]
        tasks = sorted({row["task"] for row in mine})
        expected.append(
            {
                **WHERE,
                "step": step,
                "episodes": len(mine),
                "successes": sum(row["true_success"] for row in mine),
                "score": float(sum(Fraction(row["score"]) for row in mine)),
                "missing": sum(row["missing"] for row in mine),
                "excluded": len(there) - len(mine),
                "tokens": sum(row["tokens"] for row in mine),
                "cost": float(sum(Fraction(row["cost"]) for row in mine)),
                "observed_successes": sum(row["observed_reward"] for row in mine),
                "flipped": sum(row["true_success"] and not row["observed_reward"] for row in mine),
                "exposed": len(exposed),
                "recovered": sum(row["true_success"] for row in exposed) if exposed else None,
                "finished": sum(row["ended"] == "finished" for row in mine),
                "budget_exceeded": sum(row["ended"] == "budget_exceeded" for row in mine),
                "calls": sum(row["calls"] for row in mine),
                "tasks": len(tasks),
                "episodes_per_task": max(sum(row["task"] == task for row in mine) for task in tasks),
                "task_set": hashlib.sha256("".join(f"{task}\n" for task in tasks).encode()).hexdigest(),
            }
        )
    run = count_run("r", pa.Table.from_pylist(rows), EVALUATIONS.column_names)
    assert list(run.evaluations) == expected
    assert expected[0]["recovered"] is None
    assert expected[1]["flipped"]
    assert expected[1]["excluded"]
    assert run.episodes == len(rows)


def test_what_episodes_do_not_say_is_not_counted() -> None:
    rows = pa.Table.from_pylist(made()).drop_columns(
        ["observed_reward", "ended", "calls", "rate_limit", "score", "missing", "excluded", "tokens", "cost"]
    )
    (first, _) = count_run("r", rows, EVALUATIONS.column_names).evaluations
    assert list(first) == [*PLACE, "episodes", "successes", "tasks", "episodes_per_task", "task_set"]


@pytest.mark.parametrize("at", [1, 2, 3], ids=["schedules", "steps", "tasks"])
def test_rows_out_of_order_are_damage(at: int) -> None:
    rows = made()
    rows[at : at + 2] = rows[at + 1], rows[at]
    with pytest.raises(DamagedError, match="twice, or out of order"):
        count_run("r", pa.Table.from_pylist(rows), ("episodes",))


def test_runs_that_met_other_tasks_share_the_seeds_of_those_that_both_met() -> None:
    whole = count_run("r", pa.Table.from_pylist(made()), ())
    part = pa.Table.from_pylist(made()[1:])
    assert success_counts([whole, count_run("r", part, ())], "true_success", WHERE, (0,))
    forged = with_value(part, "schedule_seed", 0, 1)
    with pytest.raises(DamagedError, match="two seeds"):
        success_counts([whole, count_run("r", forged, ())], "true_success", WHERE, (0,))


GROUPED = "r"
# Truths, rewards, seeds, advantages: spurious, all alike, mixed, all failed under several seeds, one alone.
GROUPS_MADE = (
    ([True, True], [True, False], [1, 1], [0.7, -0.9]),
    ([True, True, True], [True, True, True], [2, 2, 2], [0.0, 0.0, 0.0]),
    ([True, False], [True, False], [3, 4], [1.5, -1.0]),
    ([False, False], [False, False], [6, 5], [0.0, 0.0]),
    ([True], [True], [7], [0.25]),
)


def row(at: int, truths: list[bool], rewards: list[bool], seeds: list[int], advantages: list[float]) -> Any:
    varies = len(set(rewards)) > 1
    return {
        "run_id": GROUPED,
        "step": 1 + at // 2,
        "position": at % 2,
        "schedule_seeds": seeds,
        "true_successes": truths,
        "observed_rewards": rewards,
        "advantages": advantages,
        "zero_variance": not varies,
        "spurious": varies and all(truths),
    }


ROWS = [row(at, *made) for at, made in enumerate(GROUPS_MADE)]


def table(rows: list[Any]) -> pa.Table:
    schema = arrow_schema(GROUPS)
    fields = [schema.field(name).with_nullable(True) for name in ("run_id", *COUNTED_OF_GROUPS)]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def regrouped(at: int, **values: Any) -> pa.Table:
    return table([*ROWS[:at], ROWS[at] | values, *ROWS[at + 1 :]])


def test_groups_are_counted_as_a_loop_counts_them() -> None:
    sharing = sum(len(set(each["schedule_seeds"])) == 1 for each in ROWS)
    assert count_groups(GROUPED, table(ROWS)) == {
        "groups": len(ROWS),
        "all_correct": sum(all(each["true_successes"]) for each in ROWS),
        "spurious": sum(each["spurious"] for each in ROWS),
        "zero_variance": sum(each["zero_variance"] for each in ROWS),
        "mean_max_abs_advantage": pytest.approx(
            sum(max(map(abs, each["advantages"])) for each in ROWS) / len(ROWS), abs=1e-15
        ),
        "sharing_one_seed": sharing,
        "several_seeds": len(ROWS) - sharing,
    }


def test_groups_in_parts_and_slices_are_counted_alike() -> None:
    whole = table(ROWS)
    parts = pa.concat_tables([whole.slice(0, 2), whole.slice(2)])
    assert count_groups(GROUPED, parts) == count_groups(GROUPED, whole)
    assert count_groups(GROUPED, whole.slice(1, 3)) == count_groups(GROUPED, table(ROWS[1:4]))


DAMAGES = {
    "no row": (table([]), "not its run's"),
    "a row of another run": (regrouped(2, run_id="other"), "not its run's"),
    "an absent list": (regrouped(2, advantages=None), "not its run's"),
    "a group said to vary": (regrouped(1, zero_variance=False), "zero_variance is not what"),
    "a group said to be spurious": (regrouped(2, spurious=True), "spurious is not what"),
    "a spurious group said to be none": (regrouped(0, spurious=False), "spurious is not what"),
    "fewer seeds than rollouts": (regrouped(1, schedule_seeds=[2, 2]), "does not say as much"),
    "a rollout without advantage": (regrouped(0, advantages=[0.7]), "does not say as much"),
    "a group of nothing": (
        regrouped(4, true_successes=[], observed_rewards=[], schedule_seeds=[], advantages=[]),
        "does not say as much",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_rows_that_contradict_themselves_are_damage(damage: str) -> None:
    groups, problem = DAMAGES[damage]
    with pytest.raises(DamagedError, match=problem) as caught:
        count_groups(GROUPED, groups)
    assert str(caught.value.where).startswith("groups/r.parquet")


def test_the_group_that_is_not_as_its_rewards_say_is_named() -> None:
    with pytest.raises(DamagedError) as caught:
        count_groups(GROUPED, regrouped(3, zero_variance=False))
    assert caught.value.where == "groups/r.parquet: step 2, position 1"
    assert (caught.value.expected, caught.value.found) == ("True", "False")
