"""Training groups counted: as loops over rows count them, and only where rows say what their rewards give."""

from typing import Any

import pyarrow as pa
import pytest

from toolkit.errors import DamagedError
from toolkit.registers.arrow import arrow_schema
from toolkit.registers.episode_counts import COUNTED_OF_GROUPS, count_groups
from toolkit.registers.row_tables import GROUPS

RUN = "r"
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
        "run_id": RUN,
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


def changed(at: int, **values: Any) -> pa.Table:
    return table([*ROWS[:at], ROWS[at] | values, *ROWS[at + 1 :]])


def test_groups_are_counted_as_a_loop_counts_them() -> None:
    sharing = sum(len(set(each["schedule_seeds"])) == 1 for each in ROWS)
    assert count_groups(RUN, table(ROWS)) == {
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
    assert count_groups(RUN, parts) == count_groups(RUN, whole)
    assert count_groups(RUN, whole.slice(1, 3)) == count_groups(RUN, table(ROWS[1:4]))


DAMAGES = {
    "no row": (table([]), "not its run's"),
    "a row of another run": (changed(2, run_id="other"), "not its run's"),
    "an absent list": (changed(2, advantages=None), "not its run's"),
    "a group said to vary": (changed(1, zero_variance=False), "zero_variance is not what"),
    "a group said to be spurious": (changed(2, spurious=True), "spurious is not what"),
    "a spurious group said to be none": (changed(0, spurious=False), "spurious is not what"),
    "fewer seeds than rollouts": (changed(1, schedule_seeds=[2, 2]), "does not say as much"),
    "a rollout without advantage": (changed(0, advantages=[0.7]), "does not say as much"),
    "a group of nothing": (
        changed(4, true_successes=[], observed_rewards=[], schedule_seeds=[], advantages=[]),
        "does not say as much",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_rows_that_contradict_themselves_are_damage(damage: str) -> None:
    groups, problem = DAMAGES[damage]
    with pytest.raises(DamagedError, match=problem) as caught:
        count_groups(RUN, groups)
    assert str(caught.value.where).startswith("groups/r.parquet")


def test_the_group_that_is_not_as_its_rewards_say_is_named() -> None:
    with pytest.raises(DamagedError) as caught:
        count_groups(RUN, changed(3, zero_variance=False))
    assert caught.value.where == "groups/r.parquet: step 2, position 1"
    assert (caught.value.expected, caught.value.found) == ("True", "False")
