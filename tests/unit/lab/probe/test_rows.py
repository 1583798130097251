"""GramEvidence as rows: exactly what was measured comes back, and what is damaged is named."""

import math

import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.small import CLEAN, DESIGN, FAULTY
from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.probe.design import ACTIONS, ALL, DERIVED, OUTCOME, TRANSITION, index_rows, read_groups
from toolkit.lab.probe.evidence import GramEvidence, read_evidence
from toolkit.registers.arrow import Row, to_arrow, to_rows
from toolkit.registers.schema import TABLES

SETS = {OUTCOME: CLEAN, TRANSITION: FAULTY}
LISTS = ("rewards", "tokens", "weights", "gram", "products_mc", "products_sw")


def rows_of(noise: str, name: str = ALL) -> list[Row]:
    return [row for row in small.gram_rows(name) if row["noise"] == noise]


def stored(table: str, rows: list[Row]) -> list[Row]:
    """Return rows as a register holds them."""
    return to_rows(to_arrow(TABLES[table], rows))


def from_register(name: str = ALL) -> dict[str, GramEvidence]:
    rows = stored("probe_gram", small.gram_rows(name))
    return {
        noise: read_evidence([row for row in rows if row["noise"] == noise], rollouts)
        for noise, rollouts in SETS.items()
    }


@pytest.mark.parametrize("name", [ALL, ACTIONS])
@pytest.mark.parametrize("noise", [OUTCOME, TRANSITION])
def test_evidence_comes_back_from_its_register_bit_by_bit(noise: str, name: str) -> None:
    found, expected = from_register(name)[noise], small.measured(name)[noise]
    assert found.noise == expected.noise
    for part in ("rewards", "tokens", "weights", "gram"):
        one, other = getattr(found, part), getattr(expected, part)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes(), part
    assert set(found.products) == set(expected.products)
    for estimator, products in expected.products.items():
        assert found.products[estimator].tobytes() == products.tobytes()


@pytest.mark.parametrize("name", [ALL, ACTIONS])
def test_the_register_alone_gives_every_figure_exactly(name: str) -> None:
    groups = read_groups(stored("probe_indices", index_rows(DESIGN)), FAULTY)
    assert groups == small.groups()
    measured, read = (small.derived(one) for one in (small.measured(name), from_register(name)))
    assert read == measured
    assert {table: len(rows) for table, rows in read[0].items()} == {
        "probe": 4,
        "probe_intervals": 2 * (2 + 2 + 2) + 1 + 2 * (3 + 3 + 3),
        "probe_clean_tasks": CLEAN.tasks,
        "probe_diagnostic_tasks": FAULTY.tasks,
    }


@pytest.mark.parametrize("table", DERIVED)
def test_derived_rows_are_rows_of_their_tables(table: str) -> None:
    rows = small.derived(small.measured())[0][table]
    key = TABLES[table].key
    assert all(set(row) == {column.name for column in TABLES[table].columns} for row in rows)
    found = {tuple(row[part] for part in key): row for row in stored(table, rows)}
    assert found == {tuple(row[part] for part in key): row for row in rows}
    assert len(found) == len(rows)


def test_rows_by_task_sum_to_the_summary() -> None:
    rows = small.derived(small.measured())[0]
    (summary,) = (r for r in rows["probe"] if (r["noise"], r["estimator"]) == (OUTCOME, "MC"))
    scores, rewards = small.scored(OUTCOME).scores.astype(float), small.scored(OUTCOME).rewards
    for task, row in enumerate(rows["probe_clean_tasks"]):
        centred = scores[task] - scores[task].mean(axis=0)
        clean = rewards[task] @ centred / CLEAN.per_schedule
        spread = rewards[task] @ (centred**2).sum(axis=1) / CLEAN.per_schedule**2
        assert row["task_id"] == f"validation:{task}"
        assert row["successes"] == rewards[task].sum()
        assert row["condition_left"] == pytest.approx(clean @ clean, rel=1e-9, abs=1e-12)
        assert row["condition_right"] == pytest.approx(spread, rel=1e-9, abs=1e-12)
    for side in ("condition_left", "condition_right"):
        mean = math.fsum(row[side] for row in rows["probe_clean_tasks"]) / CLEAN.tasks
        assert summary[side] == pytest.approx(mean, rel=1e-12)
    assert abs(summary["identity_residual"]) < 1e-12
    (summary,) = (r for r in rows["probe"] if (r["noise"], r["estimator"]) == (TRANSITION, "MC"))
    for design, number in (("paired", 4), ("independent", 6), ("stratified", 6)):
        total = math.fsum(row[f"squared_norms_{design}"] for row in rows["probe_diagnostic_tasks"])
        second = summary[f"trace_{design}"] + summary[f"mean_norm_{design}"] ** 2
        assert total / (number * FAULTY.tasks) == pytest.approx(second, rel=1e-10)


# ----------------------------------------------------------------------------------- what is damaged


@pytest.mark.parametrize("column", LISTS)
@pytest.mark.parametrize("change", [lambda v: v[:-1], lambda v: [*v, v[0]], lambda _: []])
@pytest.mark.parametrize("noise", [OUTCOME, TRANSITION])
def test_a_row_of_another_length_is_named(noise: str, column: str, change: object) -> None:
    rows = rows_of(noise)
    rows[1][column] = change(rows[1][column])
    with pytest.raises(DamagedError, match=f"probe_gram.{column} has another length") as caught:
        read_evidence(rows, SETS[noise])
    assert f"base@{small.STEP}, all, {noise}, task 1" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:-1],
        lambda rows: rows[:1] + rows[2:],
        lambda rows: [*rows, rows[-1]],
        lambda rows: rows[::-1],
    ],
)
@pytest.mark.parametrize("noise", [OUTCOME, TRANSITION])
def test_a_missing_task_is_no_evidence(noise: str, change: object) -> None:
    with pytest.raises(IncompleteError, match=f"under {noise} noise lacks a task") as caught:
        read_evidence(change(rows_of(noise)), SETS[noise])
    assert f"tasks 0 to {SETS[noise].tasks - 1}" in str(caught.value)
