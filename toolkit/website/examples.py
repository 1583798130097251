"""Questions that a study's registers can answer, for readers who have none of their own yet."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from toolkit.website.registers import carried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.registers.arrow import Row
    from toolkit.registers.study import Study

FEW = 20
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
            "SELECT condition, regime, arm, step, SUM(episodes) AS played, SUM(successes) AS solved,\n"
            "  ROUND(1.0 * SUM(successes) / SUM(episodes), 4) AS success\n"
            "FROM evaluations\nWHERE phase = 'periodic'\n"
            "GROUP BY condition, regime, arm, step\nORDER BY condition, regime, arm, step"
        ),
    )
    curve = _most_curves(rows)
    if curve is None:
        return
    condition, regime, steps = curve
    ends, gap = f"({steps[0]}, {steps[-1]})", (len(steps) - 1) * 2
    yield (
        "Area under the curve, seed by seed",
        (
            "-- Trapezoidal mean over evenly spaced steps: the two ends count half.\n"
            "SELECT arm, seed, run_id, COUNT(*) AS steps,\n"
            f"  ROUND(SUM(CASE WHEN step IN {ends} THEN 1.0 ELSE 2.0 END\n"
            f"    * successes / episodes) / {gap}, 5) AS auc\n"
            "FROM evaluations\n"
            f"WHERE phase = 'periodic' AND condition = {quoted(condition)} AND regime = {quoted(regime)}\n"
            "GROUP BY arm, seed, run_id\nORDER BY seed, arm, run_id"
        ),
    )


def _most_curves(rows: list[Row]) -> tuple[str, str, tuple[int, ...]] | None:
    """Return the condition and regime that most arms and seeds have a curve of, where its steps are even."""
    curves: dict[tuple[Any, Any], Counter[Any]] = {}
    for row in rows:
        if row["phase"] == "periodic":
            counted = curves.setdefault((row["condition"], row["regime"]), Counter())
            counted[row["step"]] += 1
    for (condition, regime), counted in sorted(curves.items(), key=lambda item: -item[1].total()):
        steps = tuple(sorted(counted))
        if (
            len({after - before for before, after in pairwise(steps)}) == 1
            and len(set(counted.values())) == 1
        ):
            return str(condition), str(regime), steps
    return None


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
    yield (
        f"All {total:,} episodes, by regime (takes a few seconds)",
        (
            "SELECT regime, COUNT(*) AS played, SUM(true_success) AS solved\nFROM episodes\n"
            "GROUP BY regime\nORDER BY regime"
        ),
    )


def quoted(text: object) -> str:
    """Return a text as SQL writes it."""
    return "'" + str(text).replace("'", "''") + "'"
