"""Luck shares, and what training groups looked like: spurious, without variance, sharing a schedule."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.values import exact
from toolkit.estimators import luck_share, spurious_rate
from toolkit.registers.row_types import LuckShareRow, LuckShareSummaryRow
from toolkit.website.charts.drawing import Chart
from toolkit.website.charts.luck import Luck, luck_shares, reward_table
from toolkit.website.material import Material
from toolkit.website.page import Page, luck_page, run_page
from toolkit.website.views import elsewhere, rules_reading, standing_view

SHARES, TABLES, GROUPS = "luck_share_summary", "luck_share", "groups_summary"
OBSERVED = "observed_reward"
COUNTS = ("groups", "all_correct", "spurious", "zero_variance", "sharing_one_seed", "several_seeds")


def pages(material: Material) -> Iterator[Page]:
    """Yield the luck page of every study that has luck shares or counted training groups."""
    for case in material.cases:
        if not (case.study.has(SHARES) or case.study.has(GROUPS)):
            continue
        study = case.study
        runs = {row["run_id"]: row for row in study.rows("runs")} if study.has("runs") else {}
        shares = study.rows(SHARES) if study.has(SHARES) else []
        yield Page(
            luck_page(study.name),
            "luck.html",
            f"Luck share and training groups ({study.name})",
            "luck",
            {
                "study": study.name,
                "same_elsewhere": elsewhere(material.cases, case, "page of luck shares", luck_page),
                "is_summary": study.is_summary,
                "stands_on": standing_view(case),
                "rules": rules_reading(case, (SHARES, TABLES, GROUPS)),
                "has_shares": bool(shares),
                "charts": _charts(shares, is_summary=study.is_summary),
                "shares": [{**row, **dict(zip(("low", "high"), _ends(row), strict=True))} for row in shares],
                "example": _example(case),
                "arms": _by_arm(study.rows(GROUPS), runs) if study.has(GROUPS) else [],
                "groups": _group_rows(study, runs) if study.has(GROUPS) else [],
            },
        )


def _charts(rows: Sequence[LuckShareSummaryRow], *, is_summary: bool) -> list[Chart]:
    """Return a chart a condition: its runs' shares of the reward that training saw, by step."""
    drawn = []
    conditions = dict.fromkeys(row["condition"] for row in rows if row["condition"] is not None)
    origin = "as published" if is_summary else "computed from the tables"
    for condition in conditions:
        of = [r for r in rows if r["condition"] == condition and r["target"] in (OBSERVED, None)]
        shares = tuple(
            Luck(r["run_id"], str(r["arm"]), r["step"], float(r["luck_share"]), *_ends(r)) for r in of
        )
        interval = f"bars: 95% intervals {origin}, tasks resampled"
        if all(share.low is None for share in shares):
            interval = "no intervals: the study holds none for these runs"
        elif any(share.low is None for share in shares):
            interval += "; a dot without a bar has none"
        if chart := luck_shares(f"Condition {condition}", shares, interval):
            drawn.append(chart)
    return drawn


def _ends(row: LuckShareSummaryRow) -> tuple[float | None, float | None]:
    if row["interval_low"] is None or row["interval_high"] is None:
        return None, None
    return float(row["interval_low"]), float(row["interval_high"])


def _example(case: Case) -> dict[str, Any] | None:
    """Return one table of rewards: of the first deciding run, at its first step, the luckiest task."""
    if not case.study.has(TABLES):
        return None
    rows = case.study.rows(TABLES)
    first = next((run for run in _registered_runs(case) if any(r["run_id"] == run for r in rows)), None)
    if first is None:
        return None
    of_run = [row for row in rows if row["run_id"] == first]
    step = min(row["step"] for row in of_run)
    pool = next(row["pool"] for row in of_run if row["step"] == step)
    tasks: dict[int, list[LuckShareRow]] = {}
    for row in of_run:
        if (row["step"], row["pool"]) == (step, pool):
            tasks.setdefault(row["task"], []).append(row)
    split = {task: luck_share([row["observed_rewards"] for row in held]) for task, held in tasks.items()}
    defined = {task: parts.share for task, parts in split.items() if parts.share is not None}
    if not defined:
        return None
    task = max(defined, key=lambda t: (defined[t], -t))
    held = sorted(tasks[task], key=lambda row: row["schedule"])
    named = f"{first}, step {step}, {pool} task {task}, observed rewards"
    words = (
        f"Luck share {defined[task]:.2f}: {split[task].between:.3f} between schedules, "
        f"{split[task].within:.3f} within (reward²)"
    )
    grid = tuple(tuple(bool(reward) for reward in row["observed_rewards"]) for row in held)
    return {
        "chart": reward_table(named, words, grid, tuple(row["schedule"] for row in held)),
        "run": first,
        "run_page": run_page(case.study.name, first),
        "task": task,
        "step": step,
        "defined": len(defined),
        "tasks": len(tasks),
        "schedules": len(held),
        "rollouts": len(held[0]["observed_rewards"]),
    }


def _registered_runs(case: Case) -> Iterator[str]:
    """Yield the runs of the registered matrix that the study has, in its order, deciding ones alone."""
    held: dict[tuple[str, str, int], str] = {}
    for row in case.study.rows("runs"):
        if row["role"] in case.book.plan.roles:
            held.setdefault((row["condition"], row["arm"], row["seed"]), row["run_id"])
    for cell in case.book.plan.cells:
        for arm in cell.arms:
            for seed in cell.seeds:
                if (run := held.get((cell.condition, arm, seed))) is not None:
                    yield run


def _by_arm(rows: Sequence[Mapping[str, Any]], runs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the counts of every condition and arm, added up over its runs, beside what theory gives."""
    arms: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        run = runs.get(row["run_id"], {})
        key = (row["condition"], row["arm"], run.get("scale_rewards"), run.get("role"))
        named = dict(zip(("condition", "arm", "scaling", "role"), key, strict=True))
        new = {**named, "expected": _expected(run, row["arm"]), **dict.fromkeys(("runs", *COUNTS), 0)}
        entry = arms.setdefault(key, new)
        entry["runs"] += 1
        for name in COUNTS:
            held, more = entry[name], row[name]
            entry[name] = None if held is None or more is None else held + more
    return [{**entry, "rate": _rate(entry)} for entry in arms.values()]


def _rate(entry: Mapping[str, Any]) -> float | None:
    """Return spurious groups over all-correct ones; None where there is no all-correct group."""
    return float(Fraction(entry["spurious"], entry["all_correct"])) if entry["all_correct"] else None


def _expected(run: Mapping[str, Any], arm: str) -> float | None:
    """Return the rate of spurious groups that theory gives; None where it says nothing of the arm."""
    flips, size = run.get("flip_rate"), run.get("group_size")
    if flips is None or size is None:
        return None
    if arm == "independent":
        return float(spurious_rate(exact(flips), size))
    # All rollouts of a paired group share one flip: it reaches everybody or nobody.
    return 0.0 if arm in ("paired", "clean") or not flips else None


def _group_rows(study: Any, runs: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "role": runs.get(row["run_id"], {}).get("role"),
            "page": run_page(study.name, row["run_id"]),
            "rate": _rate(row),
        }
        for row in study.rows(GROUPS)
    ]
