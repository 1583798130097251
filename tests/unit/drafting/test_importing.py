"""A log becomes a study: scores, costs, missing data as registered, and nothing is replaced in silence."""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.conftest import run
from tests.unit.drafting.conftest import Row, decided, draft, fill_in, write

TASKS, SEEDS, ARMS = 12, 3, ("careful", "plain")
LAUNCHED = "2999-01-01T00:00:00Z"


def episodes(seed: int = 1) -> list[Row]:
    """Return a log: the careful arm scores higher, and costs more."""
    draw = random.Random(seed)  # noqa: S311 - a test's numbers
    return [
        {
            "strategy": arm,
            "seed": number,
            "task": f"t{task}",
            "score": round(draw.uniform(0, 4) + (arm == "careful"), 3),
            "success": draw.random() < 0.5,
            "tokens": 100 + task,
            "cost": 0.1,
            "started_at": LAUNCHED,
        }
        for arm in ARMS
        for number in range(SEEDS)
        for task in range(TASKS)
    ]


def begun(project: Path, left_out: str = "", *changes: tuple[str, str]) -> None:
    """Begin a study of these logs, and freeze its rules with some words replaced by others."""
    draft(project, episodes(), "plain", left_out=[left_out])
    fill_in(project, *changes)
    assert run("freeze", "mine", "--demonstration").code == 0


def imported(project: Path, rows: list[Row], *options: str) -> Any:
    """Import a log with the columns of the pilot's."""
    pilot = (project / "pilot.csv").read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    write(project / "log.csv", rows, *(set(rows[0]) - set(pilot)))
    return run("registers", "import", "mine", "log.csv", "--json", *options)


def gaps(rows: list[Row], column: str) -> dict[str, Fraction]:
    """Return careful minus plain, seed by seed, of the mean of a column."""
    sums = {
        (arm, seed): sum(
            Fraction(str(float(row[column] or 0)))
            for row in rows
            if (row["strategy"], row["seed"]) == (arm, seed)
        )
        for arm in ARMS
        for seed in range(SEEDS)
    }
    return {str(s): (sums["careful", s] - sums["plain", s]) / TASKS for s in range(SEEDS)}


BCA = ('method = "t over tasks"', 'method = "bca bootstrap"\nresamples = 10000\nrng_seed = 1')


@pytest.mark.parametrize("changes", [[], [BCA]], ids=["t", "bca"])
def test_an_interval_of_scores_is_scipys_of_the_tasks_means(project: Path, changes: Any) -> None:
    begun(project, "success", *changes)
    assert imported(project, episodes()).code == 0
    signed = [(row["task"], (1 if row["strategy"] == "careful" else -1) * row["score"]) for row in episodes()]
    tasks = [sum(score for name, score in signed if name == f"t{task}") / SEEDS for task in range(TASKS)]
    if changes:
        rng = np.random.default_rng(1)
        expected = stats.bootstrap((tasks,), np.mean, n_resamples=40_000, rng=rng).confidence_interval
        near = 0.1 * np.std(tasks) / TASKS**0.5
    else:
        expected = stats.ttest_1samp(tasks, 0).confidence_interval()
        near = 1e-12
    made = decided()["interval"]
    assert (made["low"], made["high"]) == pytest.approx((expected.low, expected.high), abs=near)
    assert made["source"] == "computed from tasks"


def without_outcome(rows: list[Row]) -> list[Row]:
    """Leave two episodes without an outcome: one has failed to run, one has no row."""
    careful = next(i for i, row in enumerate(rows) if row["strategy"] == "careful" and row["success"])
    plain = next(i for i, row in enumerate(rows) if row["strategy"] == "plain" and row["success"])
    emptied = [row | {"success": ""} if i == careful else row for i, row in enumerate(rows)]
    return [row for i, row in enumerate(emptied) if i != plain]


TREATED = {
    counts_as: ('counts_as = "failure"\nmost = "0.05"', f'counts_as = "{counts_as}"\nmost = "{most}"')
    for counts_as, most in (("failure", "0.1"), ("excluded", "0.2"), ("bounds", "0.1"))
}
BAR = ("lower(gap_95) > 0", "mean(gap) >= 0.05")


def test_what_is_missing_counts_as_a_failure_and_the_other_bound_is_said(project: Path) -> None:
    begun(project, "score", TREATED["failure"])
    rows = without_outcome(episodes())
    done = imported(project, rows).json()
    assert any("2 missing" in said for said in done["notes"])
    failed = [row | {"success": row["success"] is True} for row in episodes()]
    lacking = [row | {"success": False} for row in failed if not _is_there(row, rows)]
    complete = [row for row in failed if _is_there(row, rows)] + lacking
    decision = decided()
    assert decision["estimate"]["by_seed"] == {
        s: round(float(v), 5) for s, v in gaps(complete, "success").items()
    }
    assert set(decision["missing_data"]) == {"counts_as", "all_fail", "all_succeed", "one_arm"}
    assert decision["missing_data"]["all_fail"] == decision["verdict"]
    assert run("registers", "verify", "--study", "mine").code == 0


def _is_there(row: Row, rows: list[Row]) -> bool:
    place = ("strategy", "seed", "task")
    return any(all(row[n] == other[n] for n in place) and other["success"] != "" for other in rows)


@pytest.mark.parametrize(
    ("change", "lacking", "reason"),
    [
        (TREATED["excluded"], TASKS * SEEDS, "no task has an outcome in every run"),
        (BAR, 2, "2 of 12 episodes are missing"),
    ],
)
def test_with_too_few_outcomes_nothing_is_decided(
    project: Path, change: Any, lacking: int, reason: str
) -> None:
    begun(project, "score", change)
    rows = [row | {"success": ""} if i < lacking else row for i, row in enumerate(episodes())]
    assert imported(project, rows).code == 0
    decision = decided()
    assert decision["verdict"] == "not_evaluable"
    assert any(reason in each for each in decision["missing"])


def test_a_task_that_lacks_an_outcome_leaves_the_comparison_of_its_seed(project: Path) -> None:
    begun(project, "score", TREATED["excluded"])
    rows = without_outcome(episodes())
    done = imported(project, rows)
    assert done.code == 0, done.err
    out = {(row["seed"], row["task"]) for row in episodes() if not _is_there(row, rows)}
    kept = [row for row in episodes() if (row["seed"], row["task"]) not in out]
    left = {str(seed): TASKS - sum(of == seed for of, _ in out) for seed in range(3)}
    assert set(left.values()) > {TASKS}, "some seed keeps all of its tasks, and some does not"
    decision = decided()
    assert decision["estimate"]["by_seed"] == {
        s: round(float(v * TASKS / left[s]), 5) for s, v in gaps(kept, "success").items()
    }
    assert decision["interval"] is not None
    assert "missing_data" not in decision
    assert run("registers", "verify", "--study", "mine").code == 0


def test_a_verdict_that_its_bounds_do_not_share_does_not_stand(project: Path) -> None:
    begun(project, "score", TREATED["bounds"], BAR)
    wrong = [{"strategy": "plain", "seed": seed, "task": f"t{seed}"} for seed in (1, 2)]
    rows = [row | {"success": not any(w.items() <= row.items() for w in wrong)} for row in episodes()]
    place = {"strategy": "careful", "seed": 0, "task": "t0"}
    lost = [row | {"success": ""} if place.items() <= row.items() else row for row in rows]
    assert imported(project, lost).code == 0
    decision = decided()
    assert decision["missing_data"] == {
        "counts_as": "bounds",
        "all_fail": "miss",
        "all_succeed": "pass",
        "one_arm": {"careful": "pass", "plain": "miss"},
    }
    assert decision["verdict"] == "not_evaluable"


@pytest.mark.parametrize(("attempts", "success"), [("first", False), ("last", True)])
def test_of_several_attempts_the_registered_one_counts(project: Path, attempts: str, success: bool) -> None:
    changes = (
        ('attempts = "one"', f'attempts = "{attempts}"'),
        ("[constants]\n", '[constants]\nschedule = "0"\n'),
    )
    begun(project, "score", *changes)
    rows = [row | {"success": False} for row in episodes()]
    retried = [*rows, *(row | {"success": True} for row in rows)]
    assert imported(project, retried).code == 0
    evaluations = pl.read_parquet(project / "registers/mine/evaluations/*.parquet")
    assert evaluations["successes"].to_list() == [TASKS * success] * 6


def test_a_row_that_is_there_twice_is_refused_and_more_episodes_of_every_task_are_not(project: Path) -> None:
    begun(project, "score")
    twice = [*episodes(), episodes()[4]]
    imported(project, twice).refused(4, "there more often", "2 of task 't4'", "rows 5 and 73")
    whole = imported(project, [*episodes(), *episodes()])
    assert whole.code == 0, whole.err
    assert decided()["verdict"] == "not_evaluable"


def test_other_rows_over_decided_ones_need_a_reason_that_is_kept(project: Path) -> None:
    begun(project, "score")
    first = imported(project, episodes()).json()
    assert imported(project, episodes()).code == 0
    others = [row | {"success": row["strategy"] == "careful"} for row in episodes()]
    imported(project, others).refused(2, "was decided on other rows", "--replace")
    told = imported(project, others, "--replace", "the first log was another study's")
    assert told.code == 0
    (version,) = json.loads((project / "registers/mine/source/versions.json").read_text(encoding="utf-8"))
    assert version["logical_sha256"] == first["logical_sha256"]
    assert version["reason"] == "the first log was another study's"
    assert version["verdicts"] == first["verdicts"]
    after = told.json()["verdicts"]
    turned = {rule: [old, after[rule]] for rule, old in first["verdicts"].items() if old != after[rule]}
    assert version["turned"] == turned
    assert imported(project, others, "--check").code == 0
    assert imported(project, episodes(), "--check").code == 1
