"""Intervals computed from episode rows: against loops over rows, and what they lack or contradict."""

import statistics
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from tests.unit.decisions.rows_study import (
    REGISTRATION,
    ROW_RULES,
    SMALL_RUNS,
    VALIDATION,
    AsStored,
    Evaluation,
    Run,
    episodes_of,
    evaluation_rows,
    write_rows_study,
)
from tests.unit.decisions.study import rule
from toolkit.decisions.engine import Engine
from toolkit.decisions.intervals import Interval
from toolkit.errors import DamagedError
from toolkit.estimators import auc_weights, draw_weights, nested_bootstrap
from toolkit.registers.study import Study
from toolkit.rules.rulebook import load_rulebook
from toolkit.structs import as_builtins, replace

HYPOTHESIS = rule("H", "mean(gap) > 0", more='estimate = "gap"\ninterval = "gap_95"')
RULES = ROW_RULES + HYPOTHESIS
GONE = SMALL_RUNS[0]
OVER = 'steps = [0, 20]\nover_steps = "auc"\n'
SCALE = 'unit = "fraction"\nrange = ["-1", "1"]\n'
TIMED = """steps = [0, 20]
over_steps = "steps_to_threshold"
threshold = "0"
unit = "steps"
range = ["-20", "20"]
"""
GAP = 'arms = ["paired", "independent"]\nseeds = [0, 1]\nby = "seed"\n' + OVER + SCALE
ONE_ARM = GAP.replace('"paired", "independent"', '"paired"').replace('"-1"', '"0"')


def decided(study: Study, rules: str = RULES) -> Any:
    return Engine(load_rulebook(rules), REGISTRATION, AsStored(study)).decide("H")


def interval_of(study: Study, rules: str = RULES) -> Interval:
    interval = decided(study, rules).interval
    assert isinstance(interval, Interval), interval
    return interval


def missing_of(study: Study, rules: str = RULES) -> str:
    decision = decided(study, rules)
    assert decision.interval is None
    return "; ".join(decision.missing)


def loops(
    runs: tuple[Run, ...], e: Evaluation, weights: tuple[Fraction, ...], arms: tuple[str, ...]
) -> list[list[Fraction]]:
    """Return the difference of every seed and task, row by row."""
    seeds = sorted({run.seed for run in runs})
    table = [[Fraction(0)] * e.tasks for _ in seeds]
    for run in (run for run in runs if run.arm in arms):
        for row in episodes_of(run, [e]).to_pylist():
            share = weights[e.steps.index(row["step"])] / e.schedules
            sign = 1 if run.arm == arms[0] else -1
            table[seeds.index(run.seed)][row["task"]] += sign * share * row["true_success"]
    return table


def resampled(table: list[list[Fraction]], resamples: int, rng_seed: int) -> list[Fraction]:
    """Return the mean of every resample, drawn pair by pair and task by task."""
    weights = draw_weights(len(table), len(table[0]), resamples, rng_seed)
    means = []
    for in_seeds, in_tasks in zip(weights.seeds, weights.tasks, strict=True):
        pairs = [s for s, w in enumerate(in_seeds) for _ in range(round(w * len(table)))]
        tasks = [t for t, w in enumerate(in_tasks) for _ in range(round(w * len(table[0])))]
        total = sum((table[s][t] for s in pairs for t in tasks), Fraction(0))
        means.append(total / (len(pairs) * len(tasks)))
    return means


def test_it_says_what_it_is_and_how_exact(tmp_path: Path) -> None:
    decision = decided(write_rows_study(tmp_path))
    interval = decision.interval
    assert (interval.source, interval.resamples) == ("computed", 10000)
    assert interval.low <= decision.estimate.mean <= interval.high
    assert all(0 <= error < Fraction(1, 50) for error in interval.errors)
    assert interval.origin == "computed from episode rows, 10,000 resamples"
    assert "episodes" in [register.config for register in decision.registers]


@pytest.mark.parametrize(
    ("rules", "arms", "weights"),
    [
        (RULES.replace("rng_seed = 1", 'rng_seed = 1\nrng = "PCG64"'), ("paired", "independent"), (1, 1)),
        (RULES.replace('over_steps = "auc"', 'over_steps = "mean"'), ("paired", "independent"), (1, 1)),
        (RULES.replace(GAP, ONE_ARM), ("paired",), (1, 1)),
        (RULES.replace(OVER, "steps = [20]\n"), ("paired", "independent"), (0, 2)),
    ],
    ids=["area", "mean", "one arm", "single step"],
)
def test_an_interval_is_the_percentiles_of_means_resampled_by_loops(tmp_path, rules, arms, weights) -> None:
    rules = rules.replace("resamples = 10000", "resamples = 200")
    interval = interval_of(write_rows_study(tmp_path), rules)
    shares = tuple(Fraction(weight, 2) for weight in weights)
    means = [float(m) for m in resampled(loops(SMALL_RUNS, VALIDATION, shares, arms), 200, 1)]
    low, high = np.quantile(means, [0.025, 0.975])
    assert (float(interval.low), float(interval.high)) == pytest.approx((low, high), rel=1e-14)


def test_a_nested_interval_draws_tasks_within_seeds(tmp_path: Path) -> None:
    interval = interval_of(write_rows_study(tmp_path), RULES.replace('"crossed"', '"nested"'))
    table = loops(SMALL_RUNS, VALIDATION, auc_weights((0, 20)), ("paired", "independent"))
    nested = nested_bootstrap(np.array(table, dtype=float), 10000, 1, 0.95)
    assert (interval.low, interval.high) == (Fraction(nested.low), Fraction(nested.high))


def short_by_a_task() -> dict[str, Any]:
    """Return a study in which one run has a task less, and its evaluation says so."""
    four = replace(VALIDATION, tasks=4)
    rows = [*evaluation_rows([GONE], [four]), *evaluation_rows(SMALL_RUNS[1:], [VALIDATION])]
    return {"episodes": {GONE.id: episodes_of(GONE, [four])}, "rows": {"evaluations": rows}}


def renumbered(column: str, change: dict[int, int]) -> pa.Table:
    """Return the episodes of a run with one of its numbers changed where it stands last."""
    rows = episodes_of(GONE, [VALIDATION])
    field = rows.schema.field(column)
    values = [change.get(value, value) for value in rows[column].to_pylist()]
    return rows.set_column(rows.column_names.index(column), field, pa.array(values, field.type))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"runs": SMALL_RUNS[1:]}, "X independent seed 0 was not run"),
        ({"episodes": {GONE.id: None}}, "episodes has no row of X-independent-0 at step 0"),
        (short_by_a_task(), "expected 10 episodes, found 8"),
        ({"episodes": {GONE.id: renumbered("task", {4: 7})}}, "did not meet the same tasks"),
        ({"episodes": {GONE.id: renumbered("schedule", {1: 2})}}, "are not 5 tasks × 2 schedules"),
    ],
    ids=["no run", "no episodes", "a task less", "another task", "another schedule"],
)
def test_incomplete_evidence_leaves_no_interval(tmp_path: Path, made: dict[str, Any], reason: str) -> None:
    assert reason in missing_of(write_rows_study(tmp_path, **made))


@pytest.mark.parametrize(("column", "change"), [("successes", 1), ("episodes", 0)])
def test_episodes_that_contradict_evaluations_are_damage(tmp_path: Path, column: str, change: int) -> None:
    rows = evaluation_rows(SMALL_RUNS, [VALIDATION])
    episodes: dict[str, Any] = {}
    if change:
        low = next(row for row in rows if row[column] < row["episodes"])
        low[column] += change
        low["observed_successes"] += change
    else:  # a task is missing of which the evaluation says that it was played
        whole = episodes_of(GONE, [VALIDATION])
        episodes = {GONE.id: whole.filter(pc.not_equal(whole["task"], 4))}
    study = write_rows_study(tmp_path, rows={"evaluations": rows}, episodes=episodes)
    with pytest.raises(DamagedError, match="episodes contradicts evaluations"):
        decided(study)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"tasks with all their schedules"', '"tasks"', "is a percentile bootstrap of seed pairs; tasks"),
        ("tasks = 5\nschedules = 2", 'size = "not registered"', "is not registered"),
        (OVER + SCALE, TIMED, "is not a mean of episodes by seed"),
        ('seeds = [0, 1]\nby = "seed"', 'seeds = [0]\nby = "seed"', "nothing to resample"),
    ],
)
def test_what_cannot_be_computed_says_why(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in RULES
    assert reason in missing_of(write_rows_study(tmp_path), RULES.replace(old, new))


def by_tasks(method: str) -> str:
    """Return the small registration with an interval over tasks, of what was said no more than it takes."""
    return RULES.replace("[intervals.gap_95]", f'[intervals.gap_95]\nmethod = "{method}"')


@pytest.mark.parametrize("seeds", [(0, 1), (1,)], ids=["two seeds", "a single seed"])
def test_t_over_tasks_is_students_interval_of_tasks_averaged_by_loops(tmp_path, seeds) -> None:
    rules = by_tasks("t over tasks").replace(
        'seeds = [0, 1]\nby = "seed"', f'seeds = {list(seeds)}\nby = "seed"'
    )
    made = interval_of(write_rows_study(tmp_path), rules)
    table = loops(SMALL_RUNS, VALIDATION, auc_weights((0, 20)), ("paired", "independent"))
    values = [float(statistics.mean(table[seed][task] for seed in seeds)) for task in range(5)]
    expected = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert (float(made.low), float(made.high)) == pytest.approx(expected, rel=1e-13)
    assert (made.origin, made.errors) == ("computed from tasks", None)
    assert "resamples" not in as_builtins(made)


def test_a_bca_bootstrap_is_scipys_on_the_tasks_that_are_drawn(tmp_path: Path) -> None:
    made = interval_of(write_rows_study(tmp_path), by_tasks("bca bootstrap"))
    table = loops(SMALL_RUNS, VALIDATION, auc_weights((0, 20)), ("paired", "independent"))
    values = np.array([float(8 * (a + b)) for a, b in zip(*table, strict=True)])  # whole: ties are ties
    stream = np.random.SeedSequence(1).spawn(2)[1]
    drawn = np.random.default_rng(stream).integers(0, 5, (5, 10_000))
    theirs = bca_of_scipy(values, values[drawn].mean(axis=0))
    assert (float(16 * made.low), float(16 * made.high)) == pytest.approx(theirs, rel=1e-12)
    assert made.origin == "computed from tasks, 10,000 resamples"
    assert made.errors is not None
    assert all(error >= 0 for error in made.errors)


def bca_of_scipy(values: np.ndarray, means: np.ndarray) -> tuple[float, float]:
    """Return scipy's interval of a mean from means that were drawn."""
    found = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=0,
        method="BCa",
        bootstrap_result=SimpleNamespace(bootstrap_distribution=means),
    )
    return found.confidence_interval.low, found.confidence_interval.high


def test_tasks_that_are_all_alike_have_no_corrected_interval(tmp_path: Path) -> None:
    alike = {run.id: all_won(run) for run in SMALL_RUNS}
    rows = [
        {**row, "successes": 10, "observed_successes": 10}
        for row in evaluation_rows(SMALL_RUNS, [VALIDATION])
    ]
    study = write_rows_study(tmp_path, episodes=alike, rows={"evaluations": rows})
    assert "all alike" in missing_of(study, by_tasks("bca bootstrap"))
    made = interval_of(study, by_tasks("t over tasks"))
    assert (made.low, made.high) == (0, 0)


def all_won(run: Run) -> pa.Table:
    """Return a run's episodes, every one a success."""
    rows = episodes_of(run, [VALIDATION])
    won = pa.array([True] * rows.num_rows)
    for column in ("true_success", "observed_reward"):
        rows = rows.set_column(rows.column_names.index(column), column, won)
    return rows


@pytest.mark.parametrize("method", ["t over tasks", "bca bootstrap"])
def test_an_interval_over_tasks_takes_two_tasks(tmp_path: Path, method: str) -> None:
    single = by_tasks(method).replace("tasks = 5", "tasks = 1")
    one = replace(VALIDATION, tasks=1)
    assert "1 tasks: nothing to resample" in missing_of(
        write_rows_study(tmp_path, evaluations=(one,)), single
    )
