"""Registered intervals computed from episode rows: of seed pairs and tasks, or of tasks; tasks whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import fsum, lcm, ulp
from typing import TYPE_CHECKING

from toolkit.decisions.endpoints import COUNTED_BY_TASK, Endpoint, IntervalSpec, Rate
from toolkit.decisions.interval import Interval, computed_interval, unavailable
from toolkit.decisions.lookup import Row, Tables
from toolkit.decisions.measure import counted_at
from toolkit.decisions.methods import OVER_TASKS
from toolkit.decisions.plan import Plan
from toolkit.decisions.subgroup import EPISODES, episode_counts, in_words, rows_of
from toolkit.decisions.taskwise import Draws, interval_over_tasks
from toolkit.decisions.values import Missing, together
from toolkit.errors import DamagedError
from toolkit.estimators import (
    auc_weights,
    counted_bootstrap,
    crossed_bootstrap,
    draw_weights,
    nested_bootstrap,
)
from toolkit.estimators.bootstrap import SMALLEST_SAMPLE, BootstrapInterval, BootstrapWeights

if TYPE_CHECKING:
    from toolkit.registers.episode_counts import Counts

RESAMPLED = ("seed pairs", "tasks with all their schedules")


class Resampler:
    """Computes intervals from a study's episodes; endpoints on as many seeds and tasks share resamples.

    Args:
        registers: a study with episode rows.
        plan: the registered runs.
    """

    def __init__(self, registers: Tables, plan: Plan) -> None:
        self._registers = registers
        self._plan = plan
        self._counted: dict[str, Counts | Missing] = {}
        self._weights: dict[tuple[int, int, int, int], BootstrapWeights] = {}
        self._drawn: Draws = {}

    def interval(self, spec: IntervalSpec, endpoint: Endpoint) -> Interval | Missing:
        """Compute a registered interval.

        1. It is of an endpoint that is a weighted mean of episodes, with enough seeds and tasks.
        2. Every seed has its deciding runs.
        3. At every step their episodes are as many as `evaluations` says, and those registered.
        4. Take the difference of every seed and task, over schedules and steps.
        5. Resample seed pairs and tasks; or make an interval of the tasks.
        """
        unknown = _unknown(spec, endpoint)  # 1
        if unknown:
            return unavailable(unknown)
        differences = self.differences(endpoint)  # 2, 3, 4
        if isinstance(differences, Missing):
            return differences
        numerators, denominator = differences
        if len(numerators[0]) < SMALLEST_SAMPLE:
            return unavailable(f"of the tasks of {endpoint.id}, fewer than two are left: nothing to resample")
        if spec.method in OVER_TASKS:  # 5
            return interval_over_tasks(spec, numerators, denominator, self._drawn)
        drawn = self._resampled(spec, numerators, denominator)
        return computed_interval(spec, drawn.low, drawn.high, drawn.low_error or 0, drawn.high_error or 0)

    def differences(self, endpoint: Endpoint) -> tuple[list[list[int | float]], int] | Missing:
        """Return the difference of each seed and task, or what is missing for it."""
        if not is_mean_of_episodes(endpoint):
            return unavailable(f"{endpoint.id} is not a mean of episodes by seed")
        runs = self._plan.deciding_runs(endpoint, self._registers.rows("runs"))
        run_ids = {key: run for key, run in runs.items() if isinstance(run, str)}
        if len(run_ids) < len(runs):
            return together(run for run in runs.values() if isinstance(run, Missing))
        if endpoint.id not in self._counted:
            self._counted[endpoint.id] = self._counts(endpoint, tuple(run_ids.values()))
        counts = self._counted[endpoint.id]
        return counts if isinstance(counts, Missing) else _differences(endpoint, run_ids, counts)

    def _counts(self, endpoint: Endpoint, runs: Sequence[str]) -> Counts | Missing:
        counts = episode_counts(endpoint, runs, self._registers)
        table = rows_of(endpoint, self._registers)
        if isinstance(table, Missing):
            return table
        gaps = [self._gap(endpoint, counts, table, run, step) for run in runs for step in endpoint.steps]
        reasons = tuple(gap for gap in gaps if gap)
        if reasons:
            return Missing(not_run=False, reasons=reasons)
        first = set(counts[runs[0], endpoint.steps[0]])
        if any(set(counted) != first for counted in counts.values()):
            return unavailable(f"the runs of {endpoint.id} did not meet the same tasks")
        return counts

    def _gap(self, endpoint: Endpoint, counts: Counts, table: Sequence[Row], run: str, step: int) -> str:
        """Return what a run's evaluation lacks of the registered one."""
        tasks = counts.get((run, step))
        place = [*(f"{name}={value}" for name, value in endpoint.where.items()), *in_words(endpoint)]
        row_key = f"{run} at step {step}, {', '.join(place)}"
        if not tasks:
            return f"{EPISODES} has no row of {row_key}"
        row = counted_at(endpoint, table, run, step)
        if isinstance(row, Missing):
            return "; ".join(row.reasons)
        count, of = endpoint.outcome.columns
        sums = [t.successes for t in tasks.values()]
        counted = (fsum(sums), sum(t.episodes for t in tasks.values()))
        # Counts are exact; a sum of scores was rounded in every task, and again.
        rounded = fsum(ulp(number) for number in (*sums, row[count]) if isinstance(number, float))
        if counted[1] != row[of] or abs(counted[0] - row[count]) > rounded:
            raise DamagedError(
                f"{EPISODES} contradicts {endpoint.register}",
                expected=f"{row[count]} {count} of {row[of]} {of}, as in {endpoint.register}",
                found=f"{counted[0]} of {counted[1]}",
                where=row_key,
                remedy="restore the files, or rebuild the registers",
            )
        registered = (endpoint.schedules, endpoint.schedules - 1)
        whole = all((t.episodes, t.last_schedule) == registered for t in tasks.values())
        left_out = (row.get("excluded") or 0) // endpoint.schedules
        if len(tasks) + left_out != endpoint.tasks or not whole:
            return f"{EPISODES} of {row_key} are not {endpoint.tasks} tasks × {endpoint.schedules} schedules"
        return ""

    def _resampled(
        self, spec: IntervalSpec, numerators: Sequence[Sequence[int | float]], denominator: int
    ) -> BootstrapInterval:
        level = float(spec.level)
        if spec.crossing == "nested":
            table = [[n / denominator for n in row] for row in numerators]
            return nested_bootstrap(table, spec.resamples, spec.rng_seed, level)
        key = (len(numerators), len(numerators[0]), spec.resamples, spec.rng_seed)
        if key not in self._weights:
            self._weights[key] = draw_weights(*key)
        if not all(isinstance(n, int) for row in numerators for n in row):
            table = [[n / denominator for n in row] for row in numerators]
            return crossed_bootstrap(table, self._weights[key], level)
        return counted_bootstrap(numerators, denominator, self._weights[key], level)


def is_mean_of_episodes(endpoint: Endpoint) -> bool:
    """Whether an endpoint is a weighted mean of episodes by seed: each task has a value of its own."""
    outcome = endpoint.outcome
    counted = isinstance(outcome, Rate) and outcome.count in COUNTED_BY_TASK and outcome.of == EPISODES
    return endpoint.by == "seed" and counted and endpoint.threshold is None and bool(endpoint.steps)


def _unknown(spec: IntervalSpec, endpoint: Endpoint) -> str:
    """Return why an interval cannot be computed here, or nothing."""
    over_tasks = spec.method in OVER_TASKS
    if not over_tasks and spec.resampled != RESAMPLED:
        return (
            f"{spec.id} is a {spec.method} of {'; '.join(spec.resampled)}, "
            f"and one of {'; '.join(RESAMPLED)} can be computed"
        )
    if not is_mean_of_episodes(endpoint):
        return f"{endpoint.id} is not a mean of episodes by seed, which is what can be resampled"
    if not endpoint.tasks:
        return f"the size of the evaluation set of {endpoint.id} is not registered"
    if min(endpoint.tasks if over_tasks else len(endpoint.seeds), endpoint.tasks) < SMALLEST_SAMPLE:
        return (
            f"{endpoint.id} has {len(endpoint.seeds)} seeds and {endpoint.tasks} tasks: nothing to resample"
        )
    return ""


def step_weights(endpoint: Endpoint) -> tuple[Fraction, ...]:
    """Return the weight of each step in an endpoint's value; they sum to one, and of a gain to zero."""
    if endpoint.over_steps == "auc":
        return auc_weights(endpoint.steps)
    if endpoint.over_steps == "auc_gain":
        first, *others = auc_weights(endpoint.steps)
        return (first - 1, *others)
    return tuple(Fraction(1, len(endpoint.steps)) for _ in endpoint.steps)


def _differences(
    endpoint: Endpoint, runs: Mapping[tuple[str, int], str], counts: Counts
) -> tuple[list[list[int | float]], int]:
    """Return the difference of each seed and task over one denominator: of counts, as whole numbers."""
    weights = step_weights(endpoint)
    scale = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * scale) for weight in weights]
    tasks = sorted(counts[runs[endpoint.arms[0], endpoint.seeds[0]], endpoint.steps[0]])
    table: list[list[int | float]] = [[0] * len(tasks) for _ in endpoint.seeds]
    for sign, arm in zip((1, -1), endpoint.arms, strict=False):
        for row, seed in zip(table, endpoint.seeds, strict=True):
            for weight, step in zip(whole, endpoint.steps, strict=True):
                counted = counts[runs[arm, seed], step]
                for at, task in enumerate(tasks):
                    row[at] += sign * weight * counted[task].successes
    return table, scale * endpoint.schedules
