"""Figures of a probe whose evidence was not published, in the rows of `probe_intervals`.

L/R follows task by task; shares and norms from the pooled traces. A ratio of traces needs the products of
different tasks' gradients to be resampled, which nobody published: it stands without an interval.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from toolkit.decisions.measure import Tables
from toolkit.estimators import debiased_between_share, noise_within_share
from toolkit.lab.probe import evidence, figures, moments
from toolkit.lab.probe.design import ALL, DESIGNS, OUTCOME
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study

CLEAN = "probe_clean_tasks"
SIZED = ("probe_diagnostic_tasks", "runs", "probe_checkpoints")
LEVEL = 0.95
RESAMPLES = 10_000
RNG_SEED = 13


class ProbeSize(NamedTuple):
    """How much was scored for transition noise at every checkpoint: tasks T, and paired groups a task N."""

    tasks: int
    groups: int

    @property
    def all_groups(self) -> int:
        """Paired groups over all tasks."""
        return self.tasks * self.groups


def published_figures(study: Study) -> list[Row]:
    """Return what a study's summaries allow, as rows of `probe_intervals`."""
    rows: list[Row] = []
    clean: dict[evidence.Place, list[Row]] = {}
    for row in study.rows(CLEAN) if study.has(CLEAN) else ():
        clean.setdefault(_place(row), []).append(row)
    size = probe_size(study)
    for row in study.rows("probe"):
        at, tasks = _place(row), clean.get(_place(row), [])
        figures = list(_plain(row, size, len(tasks)))
        if (row["noise"], row["estimator"]) == (OUTCOME, moments.MC) and len(tasks) > 1:
            figures += _condition(tasks)
        scored_tasks = size.tasks if size else None
        number = (len(tasks) or None) if row["noise"] == OUTCOME else scored_tasks
        common = {"noise": row["noise"], "estimator": row["estimator"], "tasks": number, "level": LEVEL}
        rows += [at._asdict() | common | figure for figure in figures]
    return rows


def probe_size(study: Tables) -> ProbeSize | None:
    """Return the sizes that all checkpoints share.

    None where checkpoints or runs differ in them, or where there are fewer than two tasks or groups a task.
    """
    if not all(study.has(table) for table in SIZED):
        return None
    diagnosed, runs, checkpoints = map(study.rows, SIZED)
    tasks = Counter((row["trajectory"], row["step"]) for row in diagnosed if row["scored"] == ALL)
    group_sizes = {row["group_size"] for row in runs}
    rollouts = {row["diagnostic_rollouts"] for row in checkpoints}
    if 0 in group_sizes or not len(set(tasks.values())) == len(group_sizes) == len(rollouts) == 1:
        return None
    size = next(iter(tasks.values()))
    groups, rest = divmod(rollouts.pop(), size * group_sizes.pop())
    return None if rest or min(size, groups) < 2 else ProbeSize(size, groups)  # noqa: PLR2004 - a variance needs two


def _place(row: Mapping[str, Any]) -> evidence.Place:
    return evidence.Place(row["trajectory"], row["step"], row["scored"])


def _condition(tasks: list[Row]) -> list[Row]:
    left, right = (np.array([row[f"condition_{side}"] for row in tasks]) for side in ("left", "right"))
    how = figures.Resampling(LEVEL, RESAMPLES, RNG_SEED, 1)
    return figures.resampled_rows(
        lambda counts: {figures.CONDITION: (counts @ left) / (counts @ right)}, len(tasks), how
    )


def _plain(row: Mapping[str, Any], size: ProbeSize | None, clean: int) -> Iterator[Row]:
    ratios = {
        figures.RATIO: ("trace_paired", "trace_independent"),
        figures.WITHIN_RATIO: ("trace_within_paired", "trace_within_independent"),
        figures.STRATIFIED_RATIO: ("trace_paired", "trace_stratified"),
    }
    for name, (numerator, denominator) in ratios.items():
        if row[numerator] is not None and row[denominator]:
            yield _figure(name, row[numerator] / row[denominator])
    for design in DESIGNS[row["noise"]]:
        trace, within, between = (
            row[f"{part}_{design}"] for part in ("trace", "trace_within", "trace_between")
        )
        if not trace or within is None:
            continue
        beside = {}
        if row["noise"] != OUTCOME and size is not None and within > 0:
            share = debiased_between_share(within, between, size.tasks, size.groups)
            pure = noise_within_share(size.tasks, size.groups)
            beside = {"pure_noise": pure, "debiased": 1 - share}
        yield _figure(f"{figures.SHARE}_{design}", within / trace) | beside
        tasks = clean if row["noise"] == OUTCOME else size and size.tasks
        if tasks and between is not None:
            yield figures.floor_row(design, row[f"mean_norm_{design}"] ** 2, between, tasks)


def _figure(name: str, value: float) -> Row:
    return {
        "figure": name,
        "value": value,
        **dict.fromkeys((*figures.RESAMPLED, "pure_noise", "debiased")),
    }
