"""Intervals computed from episode rows: against loops over rows, and what they lack or contradict."""

from fractions import Fraction
from pathlib import Path
from statistics import pvariance
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.unit.decisions.rows_study import (
    REGISTRATION,
    ROW_RULES,
    SMALL_RUNS,
    VALIDATION,
    Evaluation,
    Run,
    episodes_of,
    evaluation_rows,
    write_rows_study,
)
from tests.unit.decisions.study import rule
from toolkit.decisions import computed
from toolkit.decisions.engine import Engine
from toolkit.decisions.interval import Interval
from toolkit.decisions.rulebook import load_rulebook
from toolkit.decisions.values import Missing
from toolkit.errors import DamagedError, RuleError
from toolkit.estimators import auc_weights, bootstrap_variance, draw_weights, nested_bootstrap
from toolkit.registers.study import Study

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
    return Engine(load_rulebook(rules), REGISTRATION, study).decide("H")


def interval_of(study: Study, rules: str = RULES) -> Interval:
    interval = decided(study, rules).interval
    assert isinstance(interval, Interval), interval
    return interval


def missing_of(study: Study, rules: str = RULES) -> str:
    interval = decided(study, rules).interval
    assert isinstance(interval, Missing)
    return "; ".join(interval.reasons)


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


def test_an_interval_is_the_percentiles_of_means_resampled_by_loops(tmp_path: Path) -> None:
    rules = RULES.replace("resamples = 10000", "resamples = 400").replace("rng_seed = 1", "rng_seed = 9")
    found = interval_of(write_rows_study(tmp_path), rules)
    means = resampled(loops(SMALL_RUNS, VALIDATION, auc_weights((0, 20)), ("paired", "independent")), 400, 9)
    low, high = np.quantile([float(mean) for mean in means], [0.025, 0.975])
    assert (float(found.low), float(found.high)) == pytest.approx((low, high), rel=1e-14)


def test_the_spread_of_its_means_is_that_of_the_closed_form() -> None:
    table = loops(SMALL_RUNS, VALIDATION, auc_weights((0, 20)), ("paired", "independent"))
    means = [float(mean) for mean in resampled(table, 4000, 1)]
    crossed, _ = bootstrap_variance(np.array(table, dtype=float))
    fourth = float(np.mean((np.array(means) - np.mean(means)) ** 4))
    error = np.sqrt((fourth - crossed**2) / len(means))  # of a variance of that many independent means
    assert abs(pvariance(means) - crossed) < 4 * error


def test_it_says_what_it_is_and_how_exact(tmp_path: Path) -> None:
    found = interval_of(write_rows_study(tmp_path))
    assert (found.source, found.resamples, found.is_stored) == ("computed", 10000, False)
    assert found.errors is not None
    assert all(0 <= error < Fraction(1, 50) for error in found.errors)
    assert found.origin == "computed from episode rows, 10,000 resamples"


def test_the_estimate_lies_between_its_ends_and_the_episodes_are_named(tmp_path: Path) -> None:
    decision = decided(write_rows_study(tmp_path))
    assert decision.interval.low <= decision.estimate.mean <= decision.interval.high
    assert "episodes" in [register.config for register in decision.registers]


@pytest.mark.parametrize(
    ("rules", "arms", "weights"),
    [
        (RULES.replace('over_steps = "auc"', 'over_steps = "mean"'), ("paired", "independent"), (1, 1)),
        (RULES.replace(GAP, ONE_ARM), ("paired",), (1, 1)),
        (RULES.replace(OVER, "steps = [20]\n"), ("paired", "independent"), (0, 2)),
    ],
    ids=["mean", "one arm", "single step"],
)
def test_means_single_steps_and_single_arms_are_resampled_too(
    tmp_path: Path, rules: str, arms: tuple[str, ...], weights: tuple[int, int]
) -> None:
    rules = rules.replace("resamples = 10000", "resamples = 200")
    found = interval_of(write_rows_study(tmp_path), rules)
    shares = tuple(Fraction(weight, 2) for weight in weights)
    means = [float(m) for m in resampled(loops(SMALL_RUNS, VALIDATION, shares, arms), 200, 1)]
    low, high = np.quantile(means, [0.025, 0.975])
    assert (float(found.low), float(found.high)) == pytest.approx((low, high), rel=1e-14)


def test_a_nested_interval_draws_tasks_within_seeds(tmp_path: Path) -> None:
    found = interval_of(write_rows_study(tmp_path), RULES.replace('"crossed"', '"nested"'))
    table = loops(SMALL_RUNS, VALIDATION, auc_weights((0, 20)), ("paired", "independent"))
    nested = nested_bootstrap(np.array(table, dtype=float), 10000, 1, 0.95)
    assert (found.low, found.high) == (Fraction(nested.low), Fraction(nested.high))


def test_endpoints_of_one_size_share_their_resamples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def counting(*key: int) -> Any:
        drawn.append(key)
        return draw_weights(*key)

    monkeypatch.setattr(computed, "draw_weights", counting)
    both = ROW_RULES + '[intervals.gap_90]\nendpoint = "gap"\nlevel = "0.90"\n'
    decided(write_rows_study(tmp_path), both + rule("H", "lower(gap_90) > lower(gap_95)"))
    assert drawn == [(2, 5, 10000, 1)]


def test_a_missing_run_leaves_no_interval(tmp_path: Path) -> None:
    assert missing_of(write_rows_study(tmp_path, SMALL_RUNS[1:])) == "X independent seed 0 was not run"


def test_a_run_without_episodes_leaves_no_interval(tmp_path: Path) -> None:
    found = missing_of(write_rows_study(tmp_path, episodes={GONE.id: None}))
    assert "episodes has no row of X-independent-0 at step 0" in found


def test_an_evaluation_that_lacks_a_task_leaves_no_interval(tmp_path: Path) -> None:
    four = Evaluation("periodic", "validation", "clean", (0, 20), 4, 2)
    rows = [r for r in evaluation_rows(SMALL_RUNS, [VALIDATION]) if r["run_id"] != GONE.id]
    rows += evaluation_rows([GONE], [four])
    study = write_rows_study(
        tmp_path, episodes={GONE.id: episodes_of(GONE, [four])}, rows={"evaluations": rows}
    )
    assert "expected 10 episodes, found 8" in missing_of(study)


def renumbered(column: str, change: dict[int, int]) -> pa.Table:
    """Return the episodes of a run with one of its numbers changed where it stands last."""
    rows = episodes_of(GONE, [VALIDATION])
    field = rows.schema.field(column)
    values = [change.get(value, value) for value in rows[column].to_pylist()]
    return rows.set_column(rows.column_names.index(column), field, pa.array(values, field.type))


def test_another_task_in_place_of_a_registered_one_leaves_no_interval(tmp_path: Path) -> None:
    study = write_rows_study(tmp_path, episodes={GONE.id: renumbered("task", {4: 7})})
    assert "did not meet the same tasks" in missing_of(study)


def test_another_schedule_in_place_of_a_registered_one_leaves_no_interval(tmp_path: Path) -> None:
    study = write_rows_study(tmp_path, episodes={GONE.id: renumbered("schedule", {1: 2})})
    assert "are not 5 tasks × 2 schedules" in missing_of(study)


@pytest.mark.parametrize(("column", "change"), [("successes", 1), ("episodes", 0)])
def test_episodes_that_contradict_the_evaluations_are_damage(
    tmp_path: Path, column: str, change: int
) -> None:
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
        ('method = "percentile bootstrap"', 'method = "guess"', "gap_95 is a guess of seed pairs"),
        ("tasks = 5\nschedules = 2", 'size = "not registered"', "is not registered"),
        (OVER + SCALE, TIMED, "is not a mean of episodes by seed"),
    ],
)
def test_what_cannot_be_computed_is_missing_with_its_reason(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    assert old in RULES
    assert reason in missing_of(write_rows_study(tmp_path), RULES.replace(old, new))


def test_one_seed_is_not_resampled(tmp_path: Path) -> None:
    rules = RULES.replace('seeds = [0, 1]\nby = "seed"', 'seeds = [0]\nby = "seed"')
    assert "nothing to resample" in missing_of(write_rows_study(tmp_path), rules)


def test_an_unknown_generator_is_refused() -> None:
    with pytest.raises(RuleError, match="'rng'"):
        load_rulebook(RULES.replace("rng_seed = 1", 'rng_seed = 1\nrng = "dice"'))


def test_the_known_generator_may_be_named() -> None:
    book = load_rulebook(RULES.replace("rng_seed = 1", 'rng_seed = 1\nrng = "PCG64"'))
    assert book.intervals == load_rulebook(RULES).intervals
