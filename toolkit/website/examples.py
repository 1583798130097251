"""Questions that a study's registers can answer, for readers who have none of their own yet."""

from __future__ import annotations

from collections import Counter
from math import lcm
from typing import TYPE_CHECKING

from toolkit.estimators.area import auc_weights
from toolkit.website.registers import carried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.registers.arrow import Row
    from toolkit.registers.study import Study

FEW = 20
SLOW = 100_000  # rows that a browser reads in half a second
# What is asked of an episode, as far as the study recorded it.
SHOWN = (
    "phase",
    "pool",
    "regime",
    "step",
    "task",
    "schedule",
    "true_success",
    "observed_reward",
    "calls",
    "ended",
)


def examples(study: Study) -> list[dict[str, str]]:
    """Return questions with their SQL, as the browser's engine reads it, in the study's own names."""
    held = {table.name for table in study.tables if carried(study, table.name)}
    return [{"title": title, "sql": sql} for title, sql in _questions(study, held)]


def _questions(study: Study, held: set[str]) -> Iterator[tuple[str, str]]:
    if "evaluations" in held:
        yield from _of_evaluations(study.rows("evaluations"))
    if {"episodes", "runs"} <= held:
        yield from _of_episodes(study)
    if "groups_summary" in held:
        yield (
            "Flips that look like signal",
            (
                "SELECT condition, arm, COUNT(*) AS runs, SUM(all_correct) AS correct,\n"
                "  SUM(spurious) AS misled\n"
                "FROM groups_summary\nGROUP BY condition, arm\nORDER BY condition, arm"
            ),
        )
    if "runs" in held:
        yield (
            "The runs",
            "SELECT run_id, condition, arm, seed, role, status\nFROM runs\nORDER BY condition, seed, arm",
        )
    elif first := next((table for table in study.tables if table.name in held), None):
        yield f"Look into {first.name}", f"SELECT *\nFROM {first.name}\nLIMIT {FEW}"


def _of_evaluations(rows: list[Row]) -> Iterator[tuple[str, str]]:
    yield (
        "Success by regime, arm and step",
        (
            "SELECT condition, pool, regime, arm, step, SUM(episodes) AS played, SUM(successes) AS solved,\n"
            "  ROUND(1.0 * SUM(successes) / SUM(episodes), 4) AS success\n"
            "FROM evaluations\nWHERE phase = 'periodic'\n"
            "GROUP BY condition, pool, regime, arm, step\nORDER BY condition, pool, regime, arm, step"
        ),
    )
    curve = _most_curves(rows)
    if curve is None:
        return
    where, steps = curve
    weights = auc_weights(steps)
    whole = lcm(*(weight.denominator for weight in weights))
    cases = " ".join(f"WHEN {step} THEN {w * whole}" for step, w in zip(steps, weights, strict=True))
    yield (
        "Area under the curve, seed by seed",
        (
            "-- A mean over steps by the trapezoidal rule, of runs that were evaluated at all of them.\n"
            "SELECT arm, seed, run_id,\n"
            f"  ROUND(SUM((CASE step {cases} END)\n    * 1.0 * successes / episodes) / {whole}, 5) AS auc\n"
            "FROM evaluations\n"
            f"WHERE phase = 'periodic' AND {' AND '.join(f'{k} = {quoted(v)}' for k, v in where.items())}\n"
            f"GROUP BY arm, seed, run_id\nHAVING COUNT(*) = {len(steps)}\nORDER BY seed, arm, run_id"
        ),
    )


def _most_curves(rows: list[Row]) -> tuple[dict[str, str], tuple[int, ...]] | None:
    """Return the condition, pool and regime that have most curves, and their steps; None where none has."""
    names = ("condition", "pool", "regime")
    curves: dict[tuple[str, ...], Counter[int]] = {}
    for row in rows:
        if row["phase"] == "periodic":
            curves.setdefault(tuple(str(row[name]) for name in names), Counter())[row["step"]] += 1
    long = [(where, counted) for where, counted in curves.items() if 1 < len(counted) <= FEW]
    if not long:
        return None
    where, counted = max(long, key=lambda item: item[1].total())
    return dict(zip(names, where, strict=True)), tuple(sorted(counted))


def _of_episodes(study: Study) -> Iterator[tuple[str, str]]:
    run, held = study.rows("runs")[0]["run_id"], study.table("episodes").column_names
    yield (
        f"The episodes of one run, {run}",
        (
            f"SELECT {', '.join(name for name in SHOWN if name in held)}\n"
            f"FROM episodes\nWHERE run_id = {quoted(run)}\nORDER BY phase, regime, step, task, schedule"
        ),
    )
    total = study.manifest.tables["episodes"].rows
    slow = " (takes some seconds)" if total > SLOW else ""
    yield (
        f"All {total:,} episodes, by regime{slow}",
        (
            "SELECT regime, COUNT(*) AS played, SUM(true_success) AS solved\nFROM episodes\n"
            "GROUP BY regime\nORDER BY regime"
        ),
    )


def quoted(text: object) -> str:
    """Return a text as SQL writes it."""
    return "'" + str(text).replace("'", "''") + "'"
