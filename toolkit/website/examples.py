"""Questions that a study's registers can answer, for readers who have none of their own yet."""

from collections.abc import Iterator
from math import lcm

from toolkit.decisions.case import Case
from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.estimators import auc_weights
from toolkit.registers.study import Study
from toolkit.website.registers import carried

FEW = 20
SLOW = 100_000  # rows that a browser reads in half a second
# What is asked of an episode, as far as the study recorded it.
EPISODE_COLUMNS = (
    *("phase", "pool", "regime", "step", "task", "schedule"),
    *("true_success", "score", "observed_reward", "calls", "ended"),
)
SUCCESS = (
    "Success by regime, arm and step",
    (
        "SELECT condition, pool, regime, arm, step, SUM(episodes) AS played, SUM(successes) AS solved,\n"
        "  ROUND(1.0 * SUM(successes) / SUM(episodes), 4) AS success\n"
        "FROM evaluations\nWHERE phase = 'periodic'\n"
        "GROUP BY condition, pool, regime, arm, step\nORDER BY condition, pool, regime, arm, step"
    ),
)
SCORES = (
    "Mean score by regime, arm and step",
    (
        "SELECT condition, pool, regime, arm, step, SUM(episodes) AS played,\n"
        "  ROUND(SUM(score) / SUM(episodes), 4) AS score\n"
        "FROM evaluations\n"
        "GROUP BY condition, pool, regime, arm, step\nORDER BY condition, pool, regime, arm, step"
    ),
)
FLIPS = (
    "Flips that look like signal",
    (
        "SELECT condition, arm, COUNT(*) AS runs, SUM(all_correct) AS correct,\n  SUM(spurious) AS misled\n"
        "FROM groups_summary\nGROUP BY condition, arm\nORDER BY condition, arm"
    ),
)
RUNS = (
    "The runs",
    "SELECT run_id, condition, arm, seed, role, status\nFROM runs\nORDER BY condition, seed, arm",
)


def examples(study: Study, case: Case | None = None) -> list[dict[str, str]]:
    """Return questions with their SQL, as the browser's engine reads it, in the study's own names.

    Args:
        study: the study.
        case: the study with the rules that decide it; None where nothing does.
    """
    held = {table.name for table in study.tables if carried(study, table.name)}
    return [{"title": title, "sql": sql} for title, sql in _questions(study, case, held)]


def _questions(study: Study, case: Case | None, held: set[str]) -> Iterator[tuple[str, str]]:
    if "evaluations" in held:
        yield SUCCESS if study.table("evaluations").column("successes") else SCORES
        yield from _of_first_hypothesis(case)
    if {"episodes", "runs"} <= held:
        yield from _of_episodes(study)
    if "groups_summary" in held:
        yield FLIPS
    if "runs" in held:
        yield RUNS
    elif first := next((table for table in study.tables if table.name in held), None):
        yield f"Look into {first.name}", f"SELECT *\nFROM {first.name}\nLIMIT {FEW}"


def _of_first_hypothesis(case: Case | None) -> Iterator[tuple[str, str]]:
    """Yield how the first hypothesis' endpoint over steps is made from its runs, by arm and seed."""
    for decision in case.decide_all() if case else ():
        for name in decision.endpoints if decision.kind == "hypothesis" else ():
            if case and (sql := _area(case, case.book.endpoints[name])):
                yield f"{decision.rule}: {case.book.endpoints[name].title}, by arm and seed", sql
                return


def _area(case: Case, endpoint: Endpoint) -> str:
    """Return a query for an endpoint's area by arm and seed; empty where it is none, or nothing of it ran."""
    outcome = endpoint.outcome
    deciding = case.book.plan.deciding_runs(endpoint, case.study.rows("runs")).values()
    runs = [run for run in deciding if isinstance(run, str)]
    if (
        endpoint.attributes
        or endpoint.over_steps != "auc"
        or endpoint.by != "seed"
        or not isinstance(outcome, Rate)
        or not runs
    ):
        return ""
    weights = auc_weights(endpoint.steps)
    whole = lcm(*(weight.denominator for weight in weights))
    cases = " ".join(f"WHEN {step} THEN {w * whole}" for step, w in zip(endpoint.steps, weights, strict=True))
    rate = f"1.0 * {outcome.count} / {outcome.of}"
    conditions = [f"{name} = {quoted(value)}" for name, value in endpoint.where.items()]
    conditions += [f"{name} = {number}" for name, number in endpoint.expect.items()]
    conditions += [f"step IN ({', '.join(map(str, endpoint.steps))})"]
    conditions += [f"run_id IN ({', '.join(map(quoted, runs))})"]
    return (
        "-- A mean over steps by the trapezoidal rule, of the deciding runs, where all steps are there.\n"
        "SELECT condition, regime, arm, seed, run_id,\n"
        f"  ROUND(SUM((CASE step {cases} END)\n    * {rate}) / {whole}, 5) AS auc\n"
        "FROM evaluations\nWHERE " + "\n  AND ".join(conditions) + "\n"
        f"GROUP BY condition, regime, arm, seed, run_id\nHAVING COUNT(*) = {len(endpoint.steps)}\n"
        "ORDER BY seed, arm"
    )


def _of_episodes(study: Study) -> Iterator[tuple[str, str]]:
    run, held = study.rows("runs")[0]["run_id"], study.table("episodes").column_names
    columns = ", ".join(name for name in EPISODE_COLUMNS if name in held)
    where = f"WHERE run_id = {quoted(run)}\nORDER BY phase, regime, step, task, schedule"
    yield f"The episodes of one run, {run}", f"SELECT {columns}\nFROM episodes\n{where}"
    outcome = "SUM(true_success) AS solved" if "true_success" in held else "AVG(score) AS score"
    total = study.manifest.tables["episodes"].rows
    slow = " (takes some seconds)" if total > SLOW else ""
    yield (
        f"All {total:,} episodes, by regime{slow}",
        (f"SELECT regime, COUNT(*) AS played, {outcome}\nFROM episodes\nGROUP BY regime\nORDER BY regime"),
    )


def quoted(text: object) -> str:
    """Return a text as SQL writes it."""
    return "'" + str(text).replace("'", "''") + "'"
