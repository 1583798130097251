"""Index lists: which rollouts make a group, by what law, and what no list can be."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from math import comb

import pytest
from scipy import stats

from tests.unit.lab.probe import small
from tests.unit.lab.probe.small import DESIGN, FAULTY
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.probe.design import draw_groups, index_rows, paired_groups, read_groups
from toolkit.registers.arrow import Row

SIZE = FAULTY.per_schedule
DRAWS = 8000
LEAST = 1e-3
"""A p-value below it is refused; the seed is fixed, so that a test passes or fails for good."""


@cache
def many(comparator: str) -> tuple[tuple[int, ...], ...]:
    """Return many groups of one comparator, over several tasks."""
    design = replace(DESIGN, groups=DRAWS // 4)
    return tuple(group for task in range(4) for group in draw_groups(design, comparator, task))


def labels(group: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(at // SIZE for at in group)


def fits(counted: Counter[object], chances: dict[object, float]) -> bool:
    """Say whether counts fit a law, by a chi-square test; what has no chance must not occur."""
    assert set(counted) <= set(chances)
    total = sum(counted.values())
    observed = [counted[key] for key in chances]
    return stats.chisquare(observed, [chance * total for chance in chances.values()]).pvalue > LEAST


# -------------------------------------------------------------------------------------- what lists are


def test_paired_groups_are_the_schedules() -> None:
    found = paired_groups(FAULTY)
    assert sorted(at for group in found for at in group) == list(range(FAULTY.rollouts))
    assert [set(labels(group)) for group in found] == [{k} for k in range(FAULTY.schedules)]


def test_more_schedules_than_places_are_drawn_without_replacement() -> None:
    design = replace(DESIGN, transition=FAULTY._replace(schedules=9), groups=900)
    found = [labels(group) for task in range(4) for group in draw_groups(design, "stratified", task)]
    assert all(len(set(one)) == SIZE for one in found)
    counted = Counter(label for one in found for label in one)
    assert fits(counted, dict.fromkeys(range(9), 1 / 9))


def test_lists_follow_from_the_seed_alone_by_task_and_comparator() -> None:
    assert index_rows(DESIGN) == index_rows(replace(DESIGN, level=0.5, rng_seed=1))
    assert index_rows(DESIGN) != index_rows(replace(DESIGN, root="another"))
    drawn = {draw_groups(DESIGN, name, task) for name in ("independent", "stratified") for task in (0, 1)}
    assert len(drawn) == 4


# -------------------------------------------------------------------------------- by what law they are drawn


def test_labels_are_drawn_with_replacement_place_by_place() -> None:
    counted = Counter(labels(group) for group in many("independent"))
    every = list(product(range(FAULTY.schedules), repeat=SIZE))
    assert len(every) == 256
    assert fits(counted, dict.fromkeys(every, 1 / len(every)))


def test_rollouts_within_a_label_are_equally_likely_and_distinct() -> None:
    """Where a label fills n places, each of the C(G, n) sets of its rollouts is as likely."""
    by_number: dict[int, Counter[object]] = {n: Counter() for n in range(1, SIZE + 1)}
    for group in many("independent"):
        for label in set(labels(group)):
            inside = frozenset(at % SIZE for at in group if at // SIZE == label)
            by_number[labels(group).count(label)][inside] += 1
    for number in (1, 2, 3):
        assert len(by_number[number]) == comb(SIZE, number)
        assert fits(by_number[number], dict.fromkeys(by_number[number], 1 / comb(SIZE, number)))


def test_the_place_of_a_rollout_does_not_depend_on_its_label() -> None:
    counted = Counter((at, group[at]) for group in many("independent") for at in range(SIZE))
    cells = list(product(range(SIZE), range(FAULTY.rollouts)))
    assert fits(counted, dict.fromkeys(cells, 1 / len(cells)))


def test_stratified_labels_come_in_every_order() -> None:
    counted = Counter(labels(group) for group in many("stratified"))
    every = list(permutations(range(FAULTY.schedules), SIZE))
    assert fits(counted, dict.fromkeys(every, 1 / len(every)))


def test_stratified_rollouts_are_drawn_within_their_schedule() -> None:
    counted = Counter(tuple(at % SIZE for at in group) for group in many("stratified"))
    every = list(product(range(SIZE), repeat=SIZE))
    assert fits(counted, dict.fromkeys(every, 1 / len(every)))


# --------------------------------------------------------------------------------------- what is refused


def rows_with(change: object, design: str = "independent") -> list[Row]:
    """Return the index rows with one list changed."""
    rows = index_rows(DESIGN)
    at = next(i for i, row in enumerate(rows) if (row["design"], row["task"], row["group"]) == (design, 1, 2))
    rows[at] = rows[at] | {"rollouts": change(rows[at]["rollouts"])}
    return rows


def test_lists_are_read_as_they_were_drawn() -> None:
    found = read_groups(index_rows(DESIGN), FAULTY)
    assert list(found) == ["paired", "independent", "stratified"]
    for task in range(FAULTY.tasks):
        assert found["paired"][task] == paired_groups(FAULTY)
        for name in ("independent", "stratified"):
            assert found[name][task] == draw_groups(DESIGN, name, task)
    assert found == small.groups()


@pytest.mark.parametrize(
    ("design", "change", "reason"),
    [
        ("independent", lambda _: [0, 1, 2, FAULTY.rollouts], "does not have"),
        ("independent", lambda _: [0, 1, 2, -1], "does not have"),
        ("independent", lambda listed: [*listed[:3], listed[0]], "names a rollout twice"),
        ("independent", lambda listed: listed[:3], "another number of rollouts"),
        ("stratified", lambda listed: [*listed, 0], "another number of rollouts"),
        ("stratified", lambda _: [0, 1, 5, 9], "two rollouts of one schedule"),
    ],
)
def test_a_list_that_no_comparator_draws_is_named(design: str, change: object, reason: str) -> None:
    with pytest.raises(DamagedError, match=reason) as caught:
        read_groups(rows_with(change, design), FAULTY)
    assert f"probe_indices, {design}, task 1, group 2" in str(caught.value)


@pytest.mark.parametrize(
    ("task", "groups", "problem", "named"),
    [
        (2, range(6), "no stratified group of a task", "task 2"),
        (1, [5], "fewer stratified groups", "5 of task 1"),
    ],
)
def test_a_task_without_groups_or_with_fewer_is_named(
    task: int, groups: list[int], problem: str, named: str
) -> None:
    lacking = [("stratified", task, group) for group in groups]
    rows = [r for r in index_rows(DESIGN) if (r["design"], r["task"], r["group"]) not in lacking]
    with pytest.raises(IncompleteError, match=problem) as caught:
        read_groups(rows, FAULTY)
    assert named in str(caught.value)


# ------------------------------------------------------------------------------------------- the design


def test_sets_that_make_no_group_are_refused() -> None:
    with pytest.raises(UsageError, match="fewer than two rollouts"):
        replace(DESIGN, outcome=DESIGN.outcome._replace(per_schedule=1))
    with pytest.raises(UsageError, match="fewer schedules than rollouts") as caught:
        replace(DESIGN, transition=FAULTY._replace(schedules=SIZE - 1))
    assert f"at least {SIZE} schedules" in str(caught.value)


def test_every_part_of_a_design_is_in_its_digest() -> None:
    changed = {
        "root": "b",
        "scored": ("all",),
        "outcome": DESIGN.outcome._replace(tasks=6),
        "transition": FAULTY._replace(regime="clean"),
    }
    numbers = {"flip_rate", "groups", "rollouts_per_step", "level", "resamples", "rng_seed"}
    changed |= {name: getattr(DESIGN, name) * 1.01 for name in numbers}
    assert set(changed) == set(DESIGN.__dataclass_fields__)
    others = {replace(DESIGN, **{name: value}).sha256() for name, value in changed.items()}
    assert len(others - {DESIGN.sha256()}) == len(changed)
    assert replace(DESIGN).sha256() == DESIGN.sha256()
