"""The data page: every study's registers, what a column means, how to load them, and a box to ask them."""

from collections.abc import Iterator, Sequence
from math import lcm
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.decisions.rows_query import quoted
from toolkit.estimators import auc_weights
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.study import Study
from toolkit.website.environment import WORDS
from toolkit.website.material import Material
from toolkit.website.page import Page
from toolkit.website.registers import LARGEST_FILE, carried, every_study, manifest_copy, table_bytes

FEW = 20
SLOW = 100_000  # rows that a browser reads in half a second
# What is asked of an episode, as far as the study recorded it.
EPISODE_COLUMNS = (
    *("phase", "pool", "regime", "step", "task", "schedule"),
    *("true_success", "score", "observed_reward", "calls", "ended"),
)


def pages(material: Material) -> Iterator[Page]:
    """Yield the data page, where there is any study."""
    studies = every_study(material)
    if not studies:
        return
    cases = {case.study.name: case for case in material.cases}
    asked = [
        {
            "study": study.name,
            "is_summary": study.is_summary,
            "examples": examples(study, cases.get(study.name)),
            "left_out": [table.name for table in study.tables if not carried(study, table.name)],
        }
        # The box opens on the study that holds rows: published figures are few.
        for study in sorted(studies, key=lambda study: not study.has("episodes"))
        if any(carried(study, table.name) for table in study.tables)
    ]
    yield Page(
        "data.html",
        "data.html",
        "Data: registers, columns, and a question of your own",
        "data",
        {
            "studies": [_study(study) for study in studies],
            "asked": asked,
            "schema": [_described(name, studies) for name in TABLES if any(s.has(name) for s in studies)],
            "largest_file": LARGEST_FILE,
            "schema_version": SCHEMA_VERSION,
        },
        ("query",),
    )


def _study(study: Study) -> dict[str, Any]:
    tables = [
        {
            "table": table,
            "entry": study.manifest.tables[table.name],
            "bytes": table_bytes(study, table.name),
            "carried": carried(study, table.name),
        }
        for table in study.tables
    ]
    # A table's files make a split: the first part of their names, or `train`.
    file = next((name.rpartition("/")[2] for t in study.tables for name in study.files(t.name)), "")
    split = file.partition("-")[0] if "-00000-of-" in file else "train"
    return {
        "name": study.name,
        "manifest": study.manifest,
        "manifest_copy": manifest_copy(study.name),
        "tables": tables,
        "split": split,
    }


def _described(name: str, studies: Sequence[Study]) -> dict[str, Any]:
    """Return a table of the schema with the columns that any study has, and which study leaves out which."""
    held = {s.name: s.table(name) for s in studies if s.has(name)}
    known = {column.name: column for table in held.values() for column in table.columns}
    columns = [known[c.name] for c in TABLES[name].columns if c.name in known]
    left_out = {s: [c.name for c in columns if not table.column(c.name)] for s, table in held.items()}
    return {
        "table": TABLES[name],
        "columns": columns,
        "studies": list(held),
        "left_out": {study: names for study, names in left_out.items() if names},
    }


def examples(study: Study, case: Case | None = None) -> list[dict[str, str]]:
    """Return questions with their SQL, as the browser's engine reads it, in the study's own names.

    Args:
        study: the study.
        case: the study with the rules that decide it; None where nothing does.
    """
    held = {table.name for table in study.tables if carried(study, table.name)}
    return list(_questions(study, case, held))


def _questions(study: Study, case: Case | None, held: set[str]) -> Iterator[dict[str, str]]:
    own = WORDS["examples"]
    if "evaluations" in held:
        yield own["success" if study.table("evaluations").column("successes") else "scores"]
        yield from _of_first_hypothesis(case)
    if {"episodes", "runs"} <= held:
        yield from _of_episodes(study)
    if "groups_summary" in held:
        yield own["flips"]
    if "runs" in held:
        yield own["runs"]
    elif first := next((table.name for table in study.tables if table.name in held), None):
        yield {"title": f"Look into {first}", "sql": f"SELECT *\nFROM {first}\nLIMIT {FEW}"}


def _of_first_hypothesis(case: Case | None) -> Iterator[dict[str, str]]:
    """Yield how the first hypothesis' endpoint over steps is made from its runs, by arm and seed."""
    for decision in case.decide_all() if case else ():
        for name in decision.endpoints if decision.kind == "hypothesis" else ():
            if case and (sql := _area(case, case.book.endpoints[name])):
                title = f"{decision.rule}: {case.book.endpoints[name].title}, by arm and seed"
                yield {"title": title, "sql": sql}
                return


def _area(case: Case, endpoint: Endpoint) -> str:
    """Return a query for an endpoint's area by arm and seed; empty where it is none, or nothing of it ran."""
    outcome = endpoint.outcome
    is_area = endpoint.over_steps == "auc" and endpoint.by == "seed" and not endpoint.attributes
    deciding = case.book.plan.deciding_runs(endpoint, case.study.rows("runs")).values()
    runs = [run for run in deciding if isinstance(run, str)]
    if not is_area or not isinstance(outcome, Rate) or not runs:
        return ""
    weights = auc_weights(endpoint.steps)
    whole = lcm(*(weight.denominator for weight in weights))
    cases = " ".join(f"WHEN {step} THEN {w * whole}" for step, w in zip(endpoint.steps, weights, strict=True))
    rate = f"1.0 * {outcome.count} / {outcome.of}"
    conditions = [
        *(f"{name} = {quoted(value)}" for name, value in endpoint.where.items()),
        *(f"{name} = {number}" for name, number in endpoint.expect.items()),
        f"step IN ({', '.join(map(str, endpoint.steps))})",
        f"run_id IN ({', '.join(map(quoted, runs))})",
    ]
    return (
        "-- A mean over steps by the trapezoidal rule, of the deciding runs, where all steps are there.\n"
        "SELECT condition, regime, arm, seed, run_id,\n"
        f"  ROUND(SUM((CASE step {cases} END)\n    * {rate}) / {whole}, 5) AS auc\n"
        "FROM evaluations\nWHERE " + "\n  AND ".join(conditions) + "\n"
        f"GROUP BY condition, regime, arm, seed, run_id\nHAVING COUNT(*) = {len(endpoint.steps)}\n"
        "ORDER BY seed, arm"
    )


def _of_episodes(study: Study) -> Iterator[dict[str, str]]:
    run, held = study.rows("runs")[0]["run_id"], study.table("episodes").column_names
    columns = ", ".join(name for name in EPISODE_COLUMNS if name in held)
    where = f"WHERE run_id = {quoted(run)}\nORDER BY phase, regime, step, task, schedule"
    yield {
        "title": f"The episodes of one run, {run}",
        "sql": f"SELECT {columns}\nFROM episodes\n{where}",
    }
    outcome = "SUM(true_success) AS solved" if "true_success" in held else "AVG(score) AS score"
    total = study.manifest.tables["episodes"].rows
    sql = f"SELECT regime, COUNT(*) AS played, {outcome}\nFROM episodes\nGROUP BY regime\nORDER BY regime"
    yield {
        "title": f"All {total:,} episodes, by regime{' (takes some seconds)' if total > SLOW else ''}",
        "sql": sql,
    }
